// SPDX-License-Identifier: BSD-2-Clause
//! Decides when an endpoint reads the clock, and which peers it then checks for a close or a death.

use std::{
    collections::BTreeSet,
    ops::Range,
    time::{Duration, Instant},
};

use host::owner::Look;

/// Minimum time between two notifications of the trace's recorders that nothing was done. After a
/// notification, the next operation that is recorded reads the processor time of its thread.
const STALE: Duration = Duration::from_micros(10);
/// Minimum time between two checks.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of empty polls between two reads of the clock. A read takes as long as a poll.
pub(super) const MOST_POLLS: u32 = 64;
/// Time in which all peers are checked, however rarely the endpoint makes a check.
const ROUND: Duration = Duration::from_secs(2);
/// Least number of peers per check.
const PEERS_A_LOOK: usize = 8;
/// Up to this many peers, each check is a [close](Look::Closely) one.
const FEW: usize = 32;
/// With more peers, the checks are close in one of this many rounds over all peers.
const CLOSE: usize = 4;
/// Number of peers per check whose state is read, to find those that have closed.
const STATES_A_LOOK: usize = 1024;
/// Time from the end of a peer until the receives of a shared context that name it fail. Meanwhile
/// other endpoints of the context receive what the peer has sent to them.
const GRACE: Duration = Duration::from_secs(1);

/// Decides when the endpoint reads the clock, and which peers it checks.
#[derive(Debug)]
pub(crate) struct PeerChecks {
    /// Time of the last check.
    checked: Instant,
    /// Time of the last read of the clock.
    clocked: Instant,
    /// Empty polls between two reads of the clock.
    look_every: u32,
    /// Empty polls until the next read of the clock.
    until_look: u32,
    /// Position of the next check in the rounds over all links.
    next: usize,
    /// Position of the next check for closed peers.
    next_closed: usize,
    /// Time of the last check of senders that are in the list of senders and have not sent yet.
    silent_checked: Instant,
    /// Peers without a link that receives name.
    pub(super) awaited: BTreeSet<u32>,
    /// The awaited peer with which the next check begins.
    next_awaited: u32,
    /// Peers that are gone, each with the time at which receives of a shared context that name it
    /// fail.
    leaving: Vec<(Instant, u32)>,
    /// When recorders were last notified of idleness, if sends are recorded.
    idled: Option<Instant>,
}

impl PeerChecks {
    pub(super) fn new(records_sends: bool) -> Self {
        let now = Instant::now();
        Self {
            checked: now,
            clocked: now,
            look_every: 1,
            until_look: 0,
            next: 0,
            next_closed: 0,
            silent_checked: now,
            awaited: BTreeSet::new(),
            next_awaited: 0,
            leaving: Vec::new(),
            idled: records_sends.then_some(now),
        }
    }

    /// Counts a poll that found nothing. Returns whether the clock is to be read now.
    #[inline]
    pub(crate) fn is_look_due(&mut self) -> bool {
        let is_due = self.until_look == 0;
        self.until_look = self.until_look.saturating_sub(1);
        is_due
    }

    /// Empty polls between two reads of the clock.
    pub(super) fn look_every(&self) -> u32 {
        self.look_every
    }

    /// Adapts the number of polls between reads of the clock. Programs that poll rarely read it in
    /// each poll.
    pub(super) fn pace(&mut self, now: Instant) {
        let since = now - std::mem::replace(&mut self.clocked, now);
        if since > INTERVAL {
            self.look_every = 1;
        } else if since < INTERVAL / 4 {
            self.look_every = (2 * self.look_every).min(MOST_POLLS);
        }
        self.until_look = self.look_every - 1;
    }

    /// Returns whether recorders are to be notified of idleness now; false if sends are not
    /// recorded.
    pub(super) fn is_idle_due(&mut self, now: Instant) -> bool {
        let is_due = self.idled.is_some_and(|then| now - then >= STALE);
        if is_due {
            self.idled = Some(now);
        }
        is_due
    }

    /// Begins a check, if it is time. Returns the time since the last one; `None` if it is not
    /// time.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Duration> {
        let since = now - self.checked;
        if since < INTERVAL {
            return None;
        }
        self.checked = now;
        Some(since)
    }

    /// Returns how many of the `peers` with links to check, after the time `since` the last check.
    pub(super) fn due(peers: usize, since: Duration) -> usize {
        let due = (peers as f64 * since.div_duration_f64(ROUND)).ceil() as usize;
        due.max(PEERS_A_LOOK).min(peers)
    }

    /// Returns the place of the next peer to check, below the number `peers` of peers with links,
    /// and how to check it. `peers` is not 0.
    pub(super) fn next(&mut self, peers: usize) -> (usize, Look) {
        let (round, at) = (self.next / peers, self.next % peers);
        self.next = (self.next + 1) % (CLOSE * peers);
        let closely = round % CLOSE == 0 || peers <= FEW;
        (at, if closely { Look::Closely } else { Look::Briefly })
    }

    /// Returns the places of the next peers whose state is read, below the number `peers` of peers
    /// with links.
    pub(super) fn next_closed(&mut self, peers: usize) -> Range<usize> {
        let from = self.next_closed.min(peers);
        let to = (from + STATES_A_LOOK).min(peers);
        self.next_closed = if to == peers { 0 } else { to };
        from..to
    }

    /// Returns whether senders that have not sent yet are to be checked now. They are checked
    /// rarely, because there are few of them, and opening the segment of one takes 20 us.
    pub(super) fn is_silent_due(&mut self) -> bool {
        let is_due = self.silent_checked.elapsed() >= ROUND;
        if is_due {
            self.silent_checked = Instant::now();
        }
        is_due
    }

    /// Returns the awaited peers to look for in this check, at most [`PEERS_A_LOOK`].
    pub(super) fn awaited_now(&mut self) -> Vec<u32> {
        let (before, after) = (..self.next_awaited, self.next_awaited..);
        let turns = self.awaited.range(after).chain(self.awaited.range(before));
        let due: Vec<u32> = turns.copied().take(PEERS_A_LOOK).collect();
        if let Some(last) = due.last() {
            self.next_awaited = last + 1;
        }
        due
    }

    /// Notes that receives of a shared context that name this peer are to fail later.
    pub(super) fn leave_later(&mut self, peer: u32) {
        self.leaving.push((Instant::now() + GRACE, peer));
    }

    /// Removes and returns the peers for which receives of a shared context fail now.
    pub(super) fn leaving_now(&mut self, now: Instant) -> Vec<u32> {
        self.leaving.extract_if(.., |(end, _)| *end <= now).map(|(_, peer)| peer).collect()
    }

    /// Makes the next check due.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn hurry(&mut self) {
        self.checked -= INTERVAL;
    }

    #[cfg(test)]
    pub(super) fn awaits(&self, peer: u32) -> bool {
        self.awaited.contains(&peer)
    }
}
