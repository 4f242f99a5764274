// SPDX-License-Identifier: BSD-2-Clause
//! The eager policy: whether a message of medium length goes through a buffer or by kernel copy.
//!
//! Through a buffer, each cache line of a message moves between the caches twice: the sender
//! fetches it from the receiver that emptied the buffer last, and the receiver fetches it from the
//! sender. If the two cores are near each other, that takes about 5 ns per line, and the message
//! arrives two to three times sooner than by kernel copy. A kernel copy moves each line once, but
//! takes 2 us before the first. If the cores are far apart, a buffer takes 30 ns per line, and a
//! stream of messages is faster by kernel copy. The distance is unknown, and with virtual
//! processors it changes from second to second. So the sender measures how long it takes to fill a
//! buffer (a *fill*), for some of the messages. A buffer is *back* once it has been returned:
//!
//! ```text
//! the last buffer is back:  through a buffer
//! fills are fast:           all through buffers; one in SAMPLE is timed
//! fills are slow:           by kernel copy, except one in TRY, which is timed
//! ```
//!
//! Half round trip and bandwidth through MPICH, with near cores and with cores far apart:
//!
//! ```text
//!                near: kernel copy   buffers      far: kernel copy   buffers
//!  8 KiB  us     4.2 to 5.5          1.8 to 2.5   7.7                6.0
//! 16 KiB  us     5.7 to 7.0          2.5 to 4.6   13                 12
//!  8 KiB  GB/s   3.3                 9            3.0                2.3
//! 16 KiB  GB/s   5.3                 14           4.9                2.7
//! ```
//!
//! Rejected: kernel copy whenever the last buffer is not back (streams gain nothing); kernel copy
//! when more than two or eight buffers are not back (streams alternate between kernel copy and
//! buffers, and are slower than with either).

use std::time::Duration;

use crate::prefetch::LINE;

/// Nanoseconds per cache line up to which a fill is fast. A kernel copy of 16 KiB takes this time
/// per line.
const QUICK: f32 = 14.0;

/// If fills are fast: number of messages of which one is timed.
const SAMPLE: u32 = 8;

/// If fills are slow: number of messages of which one goes through a buffer and is timed.
const TRY: u32 = 64;

/// Weight of the last fill in the moving average.
const WEIGHT: f32 = 1.0 / 8.0;

/// A longer fill counts as this time, in nanoseconds per cache line: the sender may have been
/// interrupted.
const SLOWEST: f32 = 4.0 * QUICK;

/// The eager policy for one peer.
#[derive(Debug)]
pub(crate) struct EagerPolicy {
    /// Moving average of the fill time, in nanoseconds per cache line.
    line: f32,
    /// Messages before the next one that is timed.
    left: u32,
}

impl EagerPolicy {
    /// Creates the policy. Fills count as fast until they are measured.
    pub(super) fn new() -> Self {
        Self { line: 0.0, left: 0 }
    }

    fn is_quick(&self) -> bool {
        self.line <= QUICK
    }

    /// Decides how to send a message. `is_alone`: the last buffer is back. Returns `None` for a
    /// kernel copy. Otherwise the message goes through a buffer, and the result says whether to
    /// time the fill.
    #[inline]
    pub(crate) fn decide(&mut self, is_alone: bool) -> Option<bool> {
        let is_due = self.left == 0;
        self.left = match self.left {
            0 if self.is_quick() => SAMPLE - 1,
            0 => TRY - 1,
            left => left - 1,
        };
        (is_due || is_alone || self.is_quick()).then_some(is_due)
    }

    /// Notes that a fill of `len` bytes took `time`.
    #[cold]
    pub(crate) fn note(&mut self, len: usize, time: Duration) {
        let lines = len as f32 / LINE as f32;
        let line = (time.as_nanos() as f32 / lines).min(SLOWEST);
        self.line += (line - self.line) * WEIGHT;
    }
}

#[cfg(test)]
mod tests {
    use super::{EagerPolicy, LINE, TRY};
    use std::time::Duration;

    const LEN: usize = 8192;

    /// Sends a stream of messages whose fills take `line` nanoseconds per cache line. Returns the
    /// number that went through buffers.
    fn send(policy: &mut EagerPolicy, messages: u32, line: u64) -> u32 {
        let time = Duration::from_nanos((LEN / LINE) as u64 * line);
        let filled = (0..messages).filter(|_| match policy.decide(false) {
            Some(is_timed) => {
                if is_timed {
                    policy.note(LEN, time);
                }
                true
            }
            None => false,
        });
        filled.count() as u32
    }

    #[test]
    fn buffers_are_used_while_they_are_quick() {
        let mut policy = EagerPolicy::new();
        assert_eq!(send(&mut policy, 1000, 5), 1000);
        send(&mut policy, 1000, 30);
        assert_eq!(send(&mut policy, 10 * TRY, 30), 10);
        assert!((0..1000).all(|_| policy.decide(true).is_some()));
        send(&mut policy, 20 * TRY, 5);
        assert_eq!(send(&mut policy, 1000, 5), 1000);
    }

    #[test]
    fn one_interruption_changes_nothing() {
        let mut policy = EagerPolicy::new();
        send(&mut policy, 1000, 5);
        policy.note(LEN, Duration::from_millis(10));
        assert_eq!(send(&mut policy, 1000, 5), 1000);
    }
}
