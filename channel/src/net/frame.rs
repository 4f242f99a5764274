// SPDX-License-Identifier: BSD-2-Clause
//! The head of a frame. A frame carries over the network what a slot and its buffer carry over
//! shared memory: a message, a part of one, a request or an answer.
//!
//! ```text
//!  0       8      12      16                                        56
//!  | token | sum  | check | kind, flags, peer, count | bits .. op    | payload ...
//! ```
//! The token is a random number that the receiver sent in its Hello. `sum` is the checksum of the
//! payload followed by the words, and `check` is that of the message. Both are set if
//! `FI_TCAM_CHECK=on`. Words have the byte order of the sender. The receiver has the same byte
//! order, because the handshake compares them ([`super::handshake`]).
//!
//! If one of the two ends records, each frame but the parts of long messages has times
//! ([`super::peer_clock`], [`Flags::TIMED`](crate::wire::Flags::TIMED)). Its payload follows them:
//! ```text
//!  56                                    64                 72
//!  | smallest difference at the sender   | time of the send | payload ...
//! ```

use super::peer_clock::Times;
use crate::wire::{Header, Kind};

/// Bytes of the head.
pub(super) const HEAD: usize = 56;
/// Bytes of the times in a frame.
pub(super) const TIMES: usize = size_of::<Times>();
/// Maximum length in bytes of a message that is sent at once. A longer one needs a rendezvous,
/// which takes as long as sending about 20 KiB.
pub const EAGER: usize = 64 * 1024;
/// Maximum length in bytes of a part of a long message. Parts are sent from, and received into, the
/// memory of the application.
pub(super) const PART: usize = 256 * 1024;
/// Maximum length in bytes of a frame that the receiver copies: a message, or a write with the list
/// of the memory that it writes.
pub(super) const MAX_STAGED: usize = HEAD + TIMES + EAGER + 256;
/// Maximum length in bytes of a frame: its head and its payload.
pub(super) const MAX_FRAME: usize = HEAD + PART;

/// The head of a frame; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) token: u64,
    pub(super) sum: u32,
    pub(super) check: u32,
    pub(super) words: [u64; 5],
}

impl FrameHeader {
    pub(super) fn to_bytes(self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..8].copy_from_slice(&self.token.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.sum.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.check.to_ne_bytes());
        for (to, word) in bytes[16..].chunks_exact_mut(8).zip(self.words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    pub(super) fn of_bytes(bytes: &[u8; HEAD]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: usize| u64::from_ne_bytes(words[at]);
        let (halves, _) = bytes.as_chunks::<4>();
        let half = |at: usize| u32::from_ne_bytes(halves[at]);
        let words = [word(2), word(3), word(4), word(5), word(6)];
        Self { token: word(0), sum: half(2), check: half(3), words }
    }

    /// Returns the checksum of the header and the payload.
    pub(super) fn sum_of(words: &[u64; 5], payload: &[u8]) -> u32 {
        let add = |sum, word: &u64| crc32c::crc32c_append(sum, &word.to_ne_bytes());
        words.iter().fold(crc32c::crc32c(payload), add)
    }
}

/// Returns whether a payload of this length contains all bytes that the header names. Only
/// `Inline`, `Chunk` and `Answer` are checked here. The result is false for `Buffered`, and true
/// for all other kinds.
pub(super) fn is_whole(header: &Header, payload: usize) -> bool {
    match header.kind {
        Kind::Inline | Kind::Chunk | Kind::Answer => header.len <= payload as u64,
        // Its buffer would be in a segment that this process cannot map.
        Kind::Buffered => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_round_trip() {
        let head = FrameHeader { token: 1, sum: 2, check: 3, words: [4, 5, 6, 7, u64::MAX] };
        assert_eq!(FrameHeader::of_bytes(&head.to_bytes()), head);
        assert_ne!(FrameHeader::sum_of(&head.words, b"a"), FrameHeader::sum_of(&head.words, b"b"));
    }
}
