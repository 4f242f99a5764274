// SPDX-License-Identifier: BSD-2-Clause
//! Answers that found no room, a queue for each peer: a peer that takes none holds up no other.
//!
//! A peer may ask for more than it takes. Once its untaken answers need [`MOST`] bytes, its requests fail
//! with `ENOBUFS`. At twice as many they get no answer. A peer comes to that only with more operations under
//! way than `fi_getinfo` grants.

use std::collections::{BTreeMap, VecDeque};

use channel::wire::Header;

/// Bytes of the answers that one peer may leave untaken. The default size of a transmit queue, 1,024
/// operations, needs a fourth.
pub(crate) const MOST: usize = 64 << 20;

/// Bytes of an answer without its payload, about.
const ANSWER: usize = 128;

/// The answers that a peer has not taken.
#[derive(Debug, Default)]
struct Queue {
    answers: VecDeque<(Header, Box<[u8]>)>,
    size: usize,
}

/// See above.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    queues: BTreeMap<u32, Queue>,
}

impl Deferred {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether an answer to a peer waits: those that follow may not pass it.
    #[inline]
    pub(crate) fn has(&self, peer: u32) -> bool {
        !self.queues.is_empty() && self.queues.contains_key(&peer)
    }

    /// Returns the bytes that the answers to a peer need.
    pub(crate) fn size(&self, peer: u32) -> usize {
        self.queues.get(&peer).map_or(0, |queue| queue.size)
    }

    pub(crate) fn push(&mut self, peer: u32, header: Header, bytes: Box<[u8]>) {
        let queue = self.queues.entry(peer).or_default();
        queue.size += ANSWER + bytes.len();
        queue.answers.push_back((header, bytes));
    }

    /// Drops the answers to a peer.
    pub(crate) fn forget(&mut self, peer: u32) {
        self.queues.remove(&peer);
    }

    /// Sends answers, to each peer until one finds no room.
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
