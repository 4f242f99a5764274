// SPDX-License-Identifier: BSD-2-Clause
//! Decides which polls of an endpoint include the network. Polling shared memory takes 10 ns;
//! polling the network takes a system call.
//!
//! ```text
//! ratio:       polls without the network after each poll that includes it
//! every:       ratio = 0
//! static(R):   ratio = R
//! dynamic(H):  after H messages, m near and n far: ratio = m / (n + 1)
//! auto:        after a near message: ratio + 1; after a far one came or was sent: ratio = 0
//! ```
//! A *message* here is one slot: *near* over shared memory, *far* over the network. The ratio of
//! *dynamic* and *auto* is at most [`MAX_RATIO`], so that no transport starves. *Static* and
//! *dynamic* are the schemes of these names in section 3.2 of *Analysis of Design Considerations
//! for Optimizing Multi-Channel MPI over InfiniBand* (Chai, Sur, Jin, Panda; IPDPS 2005). *Auto* is
//! the dynamic scheme with a history that begins at the last far message. After many near messages,
//! *auto* finds the next far message late, and those after it without delay.

use std::time::{Duration, Instant};

use nic::polling::Polling;

/// Maximum ratio, except for a static one.
const MAX_RATIO: u32 = 256;

/// Minimum time between a poll of the network and the next one that precedes an operation on the
/// device. A poll takes about 1 us, so such polls take at most a tenth of the time.
const LOOK: Duration = Duration::from_micros(10);

/// The schedule of the polls of the network; see the module.
#[derive(Debug)]
pub struct NetworkSchedule {
    policy: Polling,
    ratio: u32,
    /// Polls without the network before the next one that includes it.
    left: u32,
    near: u32,
    far: u32,
    /// Polls of the network.
    polls: u64,
    /// Polls of the network that found nothing.
    empty: u64,
    /// Time of the last poll of the network; `None` if polls are not timed. They are timed only on
    /// request, because reading the clock takes a tenth of the time of such a poll.
    last_poll: Option<Instant>,
    /// Time between the last two polls of the network.
    gap: Duration,
    /// Sum of `gap` over the polls that found something.
    discovery: Duration,
}

/// Counts of polls of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polls {
    /// All polls.
    pub all: u64,
    /// Polls that found nothing.
    pub empty: u64,
    /// Sum, over the polls that found something, of the time since the previous poll of the
    /// network; zero if polls are not timed.
    pub discovery: Duration,
}

impl NetworkSchedule {
    /// Creates the schedule of a policy. `times`: measure the time of discovery.
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
            last_poll: times.then(Instant::now),
            gap: Duration::ZERO,
            discovery: Duration::ZERO,
        }
    }

    /// If polls are timed, notes the time of a poll of the network that begins now.
    #[inline]
    pub fn note_poll_time(&mut self) {
        if let Some(last_poll) = &mut self.last_poll {
            let now = Instant::now();
            self.gap = now - std::mem::replace(last_poll, now);
        }
    }

    /// Returns whether the last timed poll of the network was at least [`LOOK`] ago.
    #[must_use]
    pub fn is_look_due(&self) -> bool {
        self.last_poll.is_none_or(|last| last.elapsed() >= LOOK)
    }

    /// Counts a poll. Returns whether it includes the network.
    #[inline]
    pub fn advance(&mut self) -> bool {
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

    /// Returns whether each poll includes the network at the current ratio.
    #[inline]
    #[must_use]
    pub fn is_every_poll(&self) -> bool {
        self.ratio == 0
    }

    /// Notes that a poll of the network found nothing.
    #[inline]
    pub fn note_empty_poll(&mut self) {
        self.empty += 1;
    }

    /// Notes that `count` messages came over shared memory.
    #[inline]
    pub fn note_near(&mut self, count: u32) {
        match self.policy {
            Polling::Auto => self.ratio = (self.ratio + count).min(MAX_RATIO),
            Polling::Dynamic(history) => {
                self.near += count;
                self.settle(history);
            }
            Polling::Every | Polling::Static(_) => {}
        }
    }

    /// Notes that the last poll of the network found `count` messages.
    #[inline]
    pub fn note_far(&mut self, count: u32) {
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

    /// Notes a send over the network. An answer may come, so *auto* polls the network in the next
    /// poll.
    #[inline]
    pub fn note_far_send(&mut self) {
        if self.policy == Polling::Auto {
            self.turn_far();
        }
    }

    /// Counts `count` additional polls of shared memory. The next poll of the network is due that
    /// much sooner.
    #[inline]
    pub fn advance_by(&mut self, count: u32) {
        self.left = self.left.saturating_sub(count);
    }

    /// Makes the next poll include the network, regardless of the ratio.
    pub fn make_due(&mut self) {
        self.left = 0;
    }

    fn turn_far(&mut self) {
        (self.ratio, self.left) = (0, 0);
    }

    fn settle(&mut self, history: u32) {
        if self.near + self.far >= history {
            self.ratio = (self.near / (self.far + 1)).min(MAX_RATIO);
            self.left = self.left.min(self.ratio);
            (self.near, self.far) = (0, 0);
        }
    }

    /// Returns the counts of polls of the network.
    #[must_use]
    pub fn counts(&self) -> Polls {
        Polls { all: self.polls, empty: self.empty, discovery: self.discovery }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns which of the next `polls` polls include the network, by index.
    fn due(schedule: &mut NetworkSchedule, polls: usize) -> Vec<usize> {
        (0..polls).filter(|_| schedule.advance()).collect()
    }

    #[test]
    fn a_static_ratio_never_changes() {
        let mut schedule = NetworkSchedule::new(Polling::Static(3), false);
        assert_eq!(due(&mut schedule, 9), [0, 4, 8]);
        schedule.note_near(1000);
        schedule.note_far(1000);
        assert_eq!(due(&mut schedule, 8), [3, 7]);
        assert_eq!(schedule.counts(), Polls { all: 5, ..Polls::default() });
        assert_eq!(due(&mut NetworkSchedule::new(Polling::Every, false), 3), [0, 1, 2]);
        let mut schedule = NetworkSchedule::new(Polling::Static(50), false);
        assert_eq!(due(&mut schedule, 1), [0]);
        schedule.advance_by(48);
        assert_eq!(due(&mut schedule, 4), [2]);
        schedule.advance_by(80);
        assert_eq!(due(&mut schedule, 2), [0]);
    }

    #[test]
    fn discovery_is_the_time_since_the_poll_before() {
        let mut schedule = NetworkSchedule::new(Polling::Every, true);
        std::thread::sleep(Duration::from_millis(2));
        let before = Instant::now();
        schedule.note_poll_time();
        schedule.note_empty_poll();
        assert_eq!(schedule.counts().discovery, Duration::ZERO);
        std::thread::sleep(Duration::from_millis(2));
        schedule.note_poll_time();
        schedule.note_far(3);
        let discovery = schedule.counts().discovery;
        assert!(discovery >= Duration::from_millis(2), "{discovery:?}");
        assert!(discovery <= before.elapsed(), "{discovery:?}");
    }

    #[test]
    fn a_dynamic_ratio_is_that_of_the_papers_formula() {
        let mut schedule = NetworkSchedule::new(Polling::Dynamic(10), false);
        schedule.note_near(9);
        assert!(schedule.is_every_poll());
        schedule.note_far(1);
        assert_eq!(schedule.ratio, 9 / 2);
        schedule.note_near(10);
        assert_eq!(schedule.ratio, 10);
        schedule.note_far(10);
        assert!(schedule.is_every_poll());
    }

    #[test]
    fn no_transport_starves_and_a_send_resets_the_ratio() {
        for policy in [Polling::Auto, Polling::Dynamic(10_000)] {
            let mut schedule = NetworkSchedule::new(policy, false);
            (0..20_000).for_each(|_| schedule.note_near(1));
            assert_eq!(schedule.ratio, MAX_RATIO);
            assert!(due(&mut schedule, 2 * MAX_RATIO as usize + 2).len() >= 2);
        }
        let mut schedule = NetworkSchedule::new(Polling::Auto, false);
        schedule.note_near(1000);
        assert!(schedule.advance() && !schedule.advance());
        schedule.note_far_send();
        assert!(schedule.advance() && schedule.advance());
    }
}
