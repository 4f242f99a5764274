// SPDX-License-Identifier: BSD-2-Clause
//! When the network is asked: to look into shared memory takes some 10 ns, to ask a network
//! a call to the kernel.
//!
//! ```text
//! ratio = 0                              each time
//! ratio = R                              once, then R times not
//! dynamic(H):  after H messages, m of them near and n far:  ratio = m / (n + 1)
//! auto:        a message near: ratio + 1;  a message far, or one that is sent there: ratio = 0
//! ```
//! The ratio is never more than [`MOST`], so that no way starves (papers/channel-polling.txt, section
//! 3.2, *static* and *dynamic*). *Auto* is the dynamic scheme with the history from the last message
//! over the network on: the first after a long time near is found late, those that follow at once.

use std::time::{Duration, Instant};

use nic::polling::Polling;

/// Most polls of shared memory for one of the network.
const MOST: u32 = 256;

/// See the module.
#[derive(Debug)]
pub struct Turns {
    policy: Polling,
    ratio: u32,
    /// Polls until the next turn.
    left: u32,
    near: u32,
    far: u32,
    /// Polls of the network, and how many of them found nothing.
    polls: u64,
    empty: u64,
    /// When the network was asked last, if that is timed: a look at the clock is a tenth of a poll.
    asked: Option<Instant>,
    /// From the poll before to this one.
    gap: Duration,
    /// Of polls that found something, together.
    discovery: Duration,
}

/// Polls of the network up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polls {
    /// All.
    pub all: u64,
    /// Those that found nothing.
    pub empty: u64,
    /// Time from the poll before to each that found something, together; zero if it is not taken.
    pub discovery: Duration,
}

impl Turns {
    /// By a policy; `times` says whether the time of discovery is taken.
    #[must_use]
    pub fn new(policy: Polling, times: bool) -> Self {
        Self {
            policy,
            ratio: if let Polling::Static(ratio) = policy { ratio } else { 0 },
            left: 0,
            near: 0,
            far: 0,
            polls: 0,
            empty: 0,
            asked: times.then(Instant::now),
            gap: Duration::ZERO,
            discovery: Duration::ZERO,
        }
    }

    /// The network is asked now.
    #[inline]
    pub fn ask(&mut self) {
        if let Some(asked) = &mut self.asked {
            let now = Instant::now();
            self.gap = now - std::mem::replace(asked, now);
        }
    }

    /// Whether the network is to be asked at this poll.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(less) => {
                self.left = less;
                false
            }
            None => {
                self.left = self.ratio;
                self.polls += 1;
                true
            }
        }
    }

    /// Whether the network is asked each time.
    #[inline]
    #[must_use]
    pub fn is_each(&self) -> bool {
        self.ratio == 0
    }

    /// A poll of the network found nothing.
    #[inline]
    pub fn found_nothing(&mut self) {
        self.empty += 1;
    }

    /// So many messages came over shared memory.
    #[inline]
    pub fn came_near(&mut self, count: u32) {
        match self.policy {
            Polling::Auto => self.ratio = (self.ratio + count).min(MOST),
            Polling::Dynamic(history) => {
                self.near += count;
                self.settle(history);
            }
            Polling::Every | Polling::Static(_) => {}
        }
    }

    /// So many messages came over the network.
    #[inline]
    pub fn came_far(&mut self, count: u32) {
        self.discovery += self.gap;
        match self.policy {
            Polling::Auto => self.turn_far(),
            Polling::Dynamic(history) => {
                self.far += count;
                self.settle(history);
            }
            Polling::Every | Polling::Static(_) => {}
        }
    }

    /// Something was sent over the network: an answer may come.
    #[inline]
    pub fn sent_far(&mut self) {
        if self.policy == Polling::Auto {
            self.turn_far();
        }
    }

    /// So many looks into shared memory beside the polls: they count as polls.
    #[inline]
    pub fn looked(&mut self, count: u32) {
        self.left = self.left.saturating_sub(count);
    }

    /// The next poll asks the network, whatever the ratio.
    pub fn hurry(&mut self) {
        self.left = 0;
    }

    fn turn_far(&mut self) {
        (self.ratio, self.left) = (0, 0);
    }

    fn settle(&mut self, history: u32) {
        if self.near + self.far >= history {
            self.ratio = (self.near / (self.far + 1)).min(MOST);
            self.left = self.left.min(self.ratio);
            (self.near, self.far) = (0, 0);
        }
    }

    /// Polls of the network up to now.
    #[must_use]
    pub fn counts(&self) -> Polls {
        Polls { all: self.polls, empty: self.empty, discovery: self.discovery }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At which of the next polls the network is asked.
    fn due(turns: &mut Turns, polls: usize) -> Vec<usize> {
        (0..polls).filter(|_| turns.is_due()).collect()
    }

    #[test]
    fn a_static_ratio_is_kept_whatever_comes() {
        let mut turns = Turns::new(Polling::Static(3), false);
        assert_eq!(due(&mut turns, 9), [0, 4, 8]);
        turns.came_near(1000);
        turns.came_far(1000);
        assert_eq!(due(&mut turns, 8), [3, 7]);
        assert_eq!(turns.counts(), Polls { all: 5, ..Polls::default() });
        assert_eq!(due(&mut Turns::new(Polling::Every, false), 3), [0, 1, 2]);
        let mut turns = Turns::new(Polling::Static(50), false);
        assert_eq!(due(&mut turns, 1), [0]);
        turns.looked(48);
        assert_eq!(due(&mut turns, 4), [2]);
        turns.looked(80);
        assert_eq!(due(&mut turns, 2), [0]);
    }

    #[test]
    fn discovery_is_the_time_since_the_poll_before() {
        let mut turns = Turns::new(Polling::Every, true);
        std::thread::sleep(Duration::from_millis(2));
        turns.ask();
        turns.found_nothing();
        assert_eq!(turns.counts().discovery, Duration::ZERO);
        let before = Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        turns.ask();
        turns.came_far(3);
        let discovery = turns.counts().discovery;
        assert!(discovery >= Duration::from_millis(2), "{discovery:?}");
        assert!(discovery <= before.elapsed() + Duration::from_millis(1), "{discovery:?}");
    }

    #[test]
    fn a_dynamic_ratio_is_that_of_the_papers_formula() {
        let mut turns = Turns::new(Polling::Dynamic(10), false);
        turns.came_near(9);
        assert!(turns.is_each());
        turns.came_far(1);
        assert_eq!(turns.ratio, 9 / 2);
        turns.came_near(10);
        assert_eq!(turns.ratio, 10);
        turns.came_far(10);
        assert!(turns.is_each());
    }

    #[test]
    fn no_way_starves_and_what_is_sent_there_is_answered_soon() {
        for policy in [Polling::Auto, Polling::Dynamic(10_000)] {
            let mut turns = Turns::new(policy, false);
            (0..20_000).for_each(|_| turns.came_near(1));
            assert_eq!(turns.ratio, MOST);
            assert!(due(&mut turns, 2 * MOST as usize + 2).len() >= 2);
        }
        let mut turns = Turns::new(Polling::Auto, false);
        turns.came_near(1000);
        assert!(turns.is_due() && !turns.is_due());
        turns.sent_far();
        assert!(turns.is_due() && turns.is_due());
    }
}
