// SPDX-License-Identifier: BSD-2-Clause
//! Whether buffers fill quickly enough for messages that may go through one or be copied by the
//! kernel.
//!
//! Through a buffer each line of a message moves between the caches twice: the sender takes it
//! from who emptied the buffer last, the receiver from the sender. Where both are near each
//! other that costs some 5 ns a line, and the message arrives two to three times as soon as by the
//! kernel's copy, which moves each line once but takes 2 us before the first. Where they are not,
//! it costs 30 ns, and a stream of messages is quicker by the kernel. Which it is, nobody says, and
//! with virtual processors it changes from second to second. So the time of some fills is taken:
//!
//! ```text
//! the last is back:  through a buffer
//! quick:             all through buffers; the time of one in SAMPLE is taken
//! not quick:         by the kernel, but one in TRY, whose time is taken
//! ```
//!
//! Half round trip of 8 and 16 KiB through MPICH 4.2 to 5.5 and 5.7 to 7.0 us by the kernel, 1.8 to
//! 2.5 and 2.5 to 4.6 through buffers (7.7 and 13, 6.0 and 12 from afar); bandwidth 3.3 and
//! 5.3 GB/s by the kernel, through buffers 9 and 14 (3.0 and 4.9, 2.3 and 2.7).
//!
//! Rejected: the kernel whenever the last is not back (streams gain nothing); where more than two or
//! eight are lent (streams change between both ways, slower than either).

use std::time::Duration;

use crate::lines::LINE;

/// Nanoseconds a line up to which a fill is quick: what the kernel takes for 16 KiB.
const QUICK: f32 = 14.0;

/// Messages from one fill whose time is taken to the next, where they are quick.
const SAMPLE: u32 = 8;

/// The same where they are not.
const TRY: u32 = 64;

/// How much a fill counts, against all before it.
const WEIGHT: f32 = 1.0 / 8.0;

/// Nanoseconds a line that a fill counts as at most: who fills may be interrupted.
const SLOWEST: f32 = 4.0 * QUICK;

/// The fills for one peer.
#[derive(Debug)]
pub(crate) struct Fills {
    /// Nanoseconds a line, most of it of the last ones.
    line: f32,
    /// Messages before the next whose time is taken.
    left: u32,
}

impl Fills {
    /// Quick, until it is known better.
    pub(super) fn new() -> Self {
        Self { line: 0.0, left: 0 }
    }

    fn are_quick(&self) -> bool {
        self.line <= QUICK
    }

    /// What to do with a message, where the last buffer is back or not: whether to fill one, and
    /// then whether to take the time.
    #[inline]
    pub(crate) fn ask(&mut self, is_alone: bool) -> Option<bool> {
        let is_due = self.left == 0;
        self.left = match self.left {
            0 if self.are_quick() => SAMPLE - 1,
            0 => TRY - 1,
            left => left - 1,
        };
        (is_due || is_alone || self.are_quick()).then_some(is_due)
    }

    /// Notes that so many bytes took so long.
    #[cold]
    pub(crate) fn note(&mut self, len: usize, time: Duration) {
        let lines = len as f32 / LINE as f32;
        let line = (time.as_nanos() as f32 / lines).min(SLOWEST);
        self.line += (line - self.line) * WEIGHT;
    }
}

#[cfg(test)]
mod tests {
    use super::{Fills, LINE, TRY};
    use std::time::Duration;

    const LEN: usize = 8192;

    /// A stream of messages, of which fills take so many nanoseconds a line; how many were filled.
    fn send(fills: &mut Fills, messages: u32, line: u64) -> u32 {
        let time = Duration::from_nanos((LEN / LINE) as u64 * line);
        let filled = (0..messages).filter(|_| match fills.ask(false) {
            Some(is_timed) => {
                if is_timed {
                    fills.note(LEN, time);
                }
                true
            }
            None => false,
        });
        filled.count() as u32
    }

    #[test]
    fn buffers_are_used_while_they_are_quick() {
        let mut fills = Fills::new();
        assert_eq!(send(&mut fills, 1000, 5), 1000);
        send(&mut fills, 1000, 30);
        assert_eq!(send(&mut fills, 10 * TRY, 30), 10);
        assert!((0..1000).all(|_| fills.ask(true).is_some()));
        send(&mut fills, 20 * TRY, 5);
        assert_eq!(send(&mut fills, 1000, 5), 1000);
    }

    #[test]
    fn one_interruption_changes_nothing() {
        let mut fills = Fills::new();
        send(&mut fills, 1000, 5);
        fills.note(LEN, Duration::from_millis(10));
        assert_eq!(send(&mut fills, 1000, 5), 1000);
    }
}
