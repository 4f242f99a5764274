// SPDX-License-Identifier: BSD-2-Clause
//! Answers that wait because the peer's ring or connection has no room, or because no buffer is
//! free. There is a queue for each peer, so that a slow peer does not delay the others. *Answers*
//! are results of operations, data that peers read, and slots that request or end parts of
//! messages.
//!
//! A peer may request more than it receives. If its pending answers need [`MOST`] bytes, its
//! requests for memory fail with `ENOBUFS`. This happens only to a peer with more operations in
//! progress than tcam starts ([`MOST_OPERATIONS`]). If the answers need twice as many bytes, the
//! peer's requests get no answer.

use std::collections::{BTreeMap, VecDeque};

use channel::wire::{Header, LONGEST};

/// If the pending answers to a peer need this many bytes, its requests fail. The answers to 1,024
/// operations, the default size of a transmit queue, need a quarter of this.
pub(crate) const MOST: usize = 64 << 20;

/// Approximate bytes of an answer without its payload.
const ANSWER: usize = 128;

/// Maximum number of operations on peers' memory that an endpoint has in progress: the answers to
/// as many need less than [`MOST`] bytes at the peer.
pub(super) const MOST_OPERATIONS: usize = MOST / (LONGEST + 2 * ANSWER);

/// The pending answers to a peer.
#[derive(Debug, Default)]
struct PendingAnswers {
    answers: VecDeque<(Header, Box<[u8]>)>,
    size: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct DeferredAnswers {
    queues: BTreeMap<u32, PendingAnswers>,
}

impl DeferredAnswers {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Returns whether an answer to a peer is pending. Later answers must not overtake it.
    #[inline]
    pub(crate) fn has(&self, peer: u32) -> bool {
        !self.queues.is_empty() && self.queues.contains_key(&peer)
    }

    /// Returns the bytes that the pending answers to a peer need.
    pub(crate) fn size(&self, peer: u32) -> usize {
        self.queues.get(&peer).map_or(0, |queue| queue.size)
    }

    pub(crate) fn push(&mut self, peer: u32, header: Header, bytes: Box<[u8]>) {
        let queue = self.queues.entry(peer).or_default();
        queue.size += ANSWER + bytes.len();
        queue.answers.push_back((header, bytes));
    }

    /// Drops the pending answers to a peer.
    pub(crate) fn forget(&mut self, peer: u32) {
        self.queues.remove(&peer);
    }

    /// Calls `send` for the pending answers to each peer, in order. If `send` returns false because
    /// there is no room, this answer and the later ones to the same peer stay pending.
    pub(crate) fn flush(&mut self, mut send: impl FnMut(u32, &Header, &[u8]) -> bool) {
        self.queues.retain(|&peer, queue| {
            while let Some((header, bytes)) = queue.answers.front() {
                if !send(peer, header, bytes) {
                    return true;
                }
                queue.size -= ANSWER + bytes.len();
                queue.answers.pop_front();
            }
            false
        });
    }
}
