// SPDX-License-Identifier: BSD-2-Clause
//! The clock of a peer on another host, and the times at which its messages came.
//!
//! Each timed frame contains the time of its send, in nanoseconds of the sender's
//! `CLOCK_MONOTONIC`. The *difference* of a frame is the time at which this end handles it, minus
//! the time in it. It is the offset of the clocks plus the delay of the frame, so the smallest
//! difference is an upper bound of the offset. The smallest difference at the peer is the negative
//! of a lower bound. Each frame contains the one that its sender knows:
//!
//! ```text
//! here - there <= smallest (handled here - sent there)    upper bound, known here
//! here - there >= -smallest (handled there - sent here)   lower bound, from frames of the peer
//! offset        = middle of both bounds; the upper bound until the lower one is known
//! time of a message = time of its send + offset, at most the time at which it is handled
//! error         = half of the distance of the bounds
//! ```
//! Clocks drift, so a bound becomes looser with its age. A clock may also stand still, as that of a
//! suspended machine. Then the upper bound is below the lower one, the upper one begins anew, and
//! the error is half of their distance until the lower one is new as well. A peer may send any
//! words. They change recorded times only, and all sums wrap around.

use crate::contract::Came;

/// A bound becomes looser by one nanosecond for each `1 << DRIFT` nanoseconds of its age, which is
/// 61 us per second. Clocks drift by less than that, mostly by less than a tenth.
const DRIFT: u32 = 14;
/// Stands for a smallest difference that is not known.
const UNKNOWN: u64 = 0;

/// The times in a frame: the smallest difference that the sender knows, and the time of the send.
pub(super) type Times = [u64; 2];

/// Bounds of the offset of a peer's clock; see the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerClock {
    /// Smallest difference of frames from the peer.
    here: Option<Smallest>,
    /// Smallest difference of frames to the peer, as the peer says.
    there: Option<Smallest>,
}

/// A smallest difference, and the local time at which it was measured or received.
#[derive(Clone, Copy, Debug)]
struct Smallest {
    difference: u64,
    at: u64,
}

impl Smallest {
    /// Returns the difference plus the drift since it was measured.
    fn aged(self, now: u64) -> u64 {
        self.difference.wrapping_add(now.wrapping_sub(self.at) >> DRIFT)
    }
}

impl PeerClock {
    /// Returns the times of a frame that is sent now.
    pub(super) fn times(&self, now: u64) -> Times {
        [self.here.map_or(UNKNOWN, |it| it.aged(now)), now]
    }

    /// Notes the times in a frame that is handled now. Returns the time at which the frame came.
    pub(super) fn note(&mut self, [smallest, sent]: Times, now: u64) -> Came {
        let difference = now.wrapping_sub(sent);
        if self.here.is_none_or(|it| is_before(difference, it.aged(now))) {
            self.here = Some(Smallest { difference, at: now });
        }
        if smallest != UNKNOWN {
            self.there = Some(Smallest { difference: smallest, at: now });
        }
        if self.distance(now).is_some_and(|distance| distance < 0) {
            self.here = Some(Smallest { difference, at: now });
        }
        let (offset, error_ns) = self.offset(now);
        let came = sent.wrapping_add(offset);
        Came { ns: if is_before(came, now) { came } else { now }, error_ns }
    }

    /// Returns the local time minus the time of the peer, and the largest error of this offset.
    fn offset(&self, now: u64) -> (u64, u32) {
        let upper = self.here.map_or(0, |it| it.aged(now));
        let Some(distance) = self.distance(now) else { return (upper, u32::MAX) };
        let error = distance.unsigned_abs().div_ceil(2);
        (upper.wrapping_sub((distance / 2) as u64), error.min(u32::MAX.into()) as u32)
    }

    /// Returns the distance of the bounds, the sum of both smallest differences; `None` if one of
    /// them is unknown.
    fn distance(&self, now: u64) -> Option<i64> {
        Some(self.here?.aged(now).wrapping_add(self.there?.aged(now)) as i64)
    }
}

fn is_before(time: u64, other: u64) -> bool {
    (time.wrapping_sub(other) as i64) < 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Two hosts. The clock of the second one is `ahead` of the first one at time 0, and gains one
    /// nanosecond in every `drift` nanoseconds.
    struct Hosts {
        clocks: [PeerClock; 2],
        ahead: u64,
        drift: i64,
    }

    impl Hosts {
        fn new(ahead: u64, drift: i64) -> Self {
            Self { clocks: [PeerClock::default(); 2], ahead, drift }
        }

        fn time(&self, host: usize, now: u64) -> u64 {
            let drifted = (now as i64 / self.drift) as u64;
            if host == 0 { now } else { now.wrapping_add(self.ahead).wrapping_add(drifted) }
        }

        /// A host sends a frame, which the other one handles after a delay. Returns the error of
        /// the time at which it came, relative to its send.
        fn send(&mut self, from: usize, at: u64, delay: u64) -> i64 {
            let times = self.clocks[from].times(self.time(from, at));
            let (sent, handled) = (self.time(1 - from, at), self.time(1 - from, at + delay));
            let came = self.clocks[1 - from].note(times, handled);
            assert!(!is_before(handled, came.ns));
            let error = came.ns.wrapping_sub(sent) as i64;
            assert!(error.unsigned_abs() <= came.error_ns.into(), "{error} {came:?}");
            error
        }
    }

    proptest! {
        #[test]
        fn times_are_within_the_distance_of_the_bounds(
            ahead in any::<u64>(),
            drift in prop_oneof![20_000_i64..1_000_000, -1_000_000_i64..-20_000],
            frames in prop::collection::vec((0_usize..2, 0_u64..SECOND, 1000_u64..SECOND), 1..50),
        ) {
            let mut hosts = Hosts::new(ahead, drift);
            let mut now = 0;
            for (from, pause, delay) in frames {
                now += pause;
                let error = hosts.send(from, now, delay);
                now += delay;
                // A message comes before it is handled, and not long before its send.
                let most = (delay + delay / 10_000) as i64;
                prop_assert!((-(SECOND as i64)..=most).contains(&error), "{error}");
            }
            // A frame in each direction that is handled at once.
            hosts.send(0, now, 5000);
            hosts.send(1, now + 5000, 5000);
            hosts.send(0, now + 10_000, 5000);
            for from in 0..2 {
                let error = hosts.send(from, now + 20_000, SECOND / 3);
                prop_assert!(error.unsigned_abs() < 25_000, "{error}");
            }
        }

        #[test]
        fn arbitrary_words_do_no_harm(
            words in prop::collection::vec((any::<[u64; 2]>(), any::<u64>()), 1..20),
        ) {
            let mut clock = PeerClock::default();
            for (times, now) in words {
                let came = clock.note(times, now);
                prop_assert!(!is_before(now, came.ns));
                prop_assert_eq!(clock.times(now)[1], now);
            }
        }
    }

    #[test]
    fn without_a_lower_bound_a_message_never_comes_before_its_send() {
        let mut hosts = Hosts::new(1 << 60, i64::MAX);
        assert_eq!(hosts.send(0, 0, 900), 900);
        assert_eq!(hosts.send(0, 1000, 400), 400);
        let drift = (SECOND >> DRIFT) as i64;
        assert_eq!(hosts.send(0, 2000, SECOND), 400 + drift);
        // The lower bound of the other end has the age of the frame with the smallest delay.
        assert_eq!(hosts.send(1, SECOND + 3000, 400), -drift / 2);
    }

    #[test]
    fn a_clock_that_stood_still_makes_a_large_error_until_the_next_answer() {
        for still in [0, 1] {
            let mut hosts = Hosts::new(1 << 60, i64::MAX);
            for at in [0, 20_000] {
                hosts.send(0, at, 5000);
                hosts.send(1, at + 10_000, 5000);
            }
            let stop = 5 * SECOND;
            hosts.ahead =
                hosts.ahead.wrapping_add_signed(if still == 0 { 5 } else { -5 } * SECOND as i64);
            // `send` checks that the recorded error covers that of the time.
            hosts.send(1 - still, stop, 5000);
            hosts.send(still, stop + 10_000, 5000);
            for at in [20_000, 40_000] {
                assert!(hosts.send(1 - still, stop + at, 5000).abs() <= 5000);
                assert!(hosts.send(still, stop + at + 10_000, 5000).abs() <= 5000);
            }
        }
    }

    #[test]
    fn old_bounds_are_replaced_when_the_clocks_drift() {
        for drift in [-20_000, 20_000] {
            let mut hosts = Hosts::new(7, drift);
            for second in 0..600 {
                let now = second * SECOND;
                let errors = [(0, 0), (1, 6000)].map(|(from, at)| hosts.send(from, now + at, 5000));
                // Within a second, the clocks drift by 50 us.
                let most = if second > 0 { 70_000 } else { 5000 };
                assert!(errors.iter().all(|it| it.abs() <= most), "{drift} {second}: {errors:?}");
            }
        }
    }
}
