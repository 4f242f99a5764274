// SPDX-License-Identifier: BSD-2-Clause
//! The buffers of an endpoint's own segment. The endpoint fills a buffer and lends it to the
//! receiver of a slot, which empties the buffer and returns it.
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{
    collections::VecDeque,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::segment::{BUFFER, BUFFERS, Segment};
use crate::bytes::Room;

/// Tracks which buffers are free and which ones receivers hold.
#[derive(Debug)]
pub(crate) struct Buffers {
    free: Vec<usize>,
    lent: VecDeque<usize>,
    /// The peer that each buffer was taken for.
    peers: [u32; BUFFERS],
    /// Time of the first failed request since the last successful one.
    starved_since: Option<Instant>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self {
            free: (0..BUFFERS).rev().collect(),
            lent: VecDeque::with_capacity(BUFFERS),
            peers: [0; BUFFERS],
            starved_since: None,
        }
    }

    /// Takes a free buffer, and marks it as lent to a peer. Returns `None` if no buffer is free.
    /// The buffer that was freed last is taken first, because it is probably in the cache.
    pub(crate) fn take(&mut self, own: &Segment, peer: u32) -> Option<usize> {
        match self.lent.front() {
            Some(&oldest) if is_back(own, oldest) => {
                self.lent.pop_front();
                self.free.push(oldest);
            }
            _ => {}
        }
        if self.free.is_empty() {
            self.collect(own);
        }
        let Some(buffer) = self.free.pop() else {
            self.starved_since.get_or_insert_with(Instant::now);
            return None;
        };
        self.starved_since = None;
        own.buffer_state(buffer).store(1, Ordering::Relaxed);
        self.lent.push_back(buffer);
        self.peers[buffer] = peer;
        Some(buffer)
    }

    /// Returns the room in the buffer that was taken last and is not sent yet.
    pub(crate) fn room<'a>(&mut self, own: &'a Segment) -> Room<'a> {
        let buffer = self.lent.back().copied().unwrap_or_default();
        // SAFETY: BUFFER bytes of the mapping. No receiver knows that the buffer is taken.
        unsafe { Room::new(own.buffer(buffer), BUFFER) }
    }

    /// Reclaims the buffers that a disconnected peer still holds.
    pub(crate) fn reclaim(&mut self, own: &Segment, peer: u32) {
        for &buffer in self.lent.iter().filter(|&&buffer| self.peers[buffer] == peer) {
            own.buffer_state(buffer).store(0, Ordering::Release);
        }
    }

    /// Frees the buffer that was taken last, because it was not sent.
    pub(crate) fn untake(&mut self, own: &Segment) {
        if let Some(buffer) = self.lent.pop_back() {
            own.buffer_state(buffer).store(0, Ordering::Relaxed);
            self.free.push(buffer);
        }
    }

    /// Returns whether all requests for a buffer have failed for at least this time.
    pub(crate) fn is_stuck(&self, patience: Duration) -> bool {
        self.starved_since.is_some_and(|since| since.elapsed() >= patience)
    }

    /// Returns whether a buffer is free.
    pub(crate) fn has_room(&mut self, own: &Segment) -> bool {
        self.collect(own);
        !self.free.is_empty()
    }

    /// Returns whether the receiver has returned the buffer that was taken last, or no buffer is
    /// lent. Checking all buffers would move their cache lines back and forth while receivers
    /// return them.
    pub(crate) fn last_is_back(&self, own: &Segment) -> bool {
        self.lent.back().is_none_or(|&last| is_back(own, last))
    }

    /// Returns whether receivers still hold buffers.
    pub(crate) fn has_lent(&mut self, own: &Segment) -> bool {
        self.collect(own);
        !self.lent.is_empty()
    }

    fn collect(&mut self, own: &Segment) {
        let Self { free, lent, .. } = self;
        lent.retain(|&buffer| {
            let back = is_back(own, buffer);
            if back {
                free.push(buffer);
            }
            !back
        });
    }
}

fn is_back(own: &Segment, buffer: usize) -> bool {
    own.buffer_state(buffer).load(Ordering::Acquire) == 0
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    #[test]
    fn buffers_run_out_and_come_back() {
        let own = Segment::create(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 81)).unwrap();
        let mut buffers = Buffers::new();
        let taken: Vec<_> = std::iter::from_fn(|| buffers.take(&own, 1)).collect();
        assert_eq!(taken.len(), BUFFERS);
        own.buffer_state(taken[5]).store(0, Ordering::Release);
        assert_eq!(buffers.take(&own, 2), Some(taken[5]));
        assert_eq!(buffers.take(&own, 2), None);
        buffers.untake(&own);
        assert_eq!(buffers.take(&own, 3), Some(taken[5]));
        assert!(buffers.has_lent(&own) && !buffers.last_is_back(&own));
        own.buffer_state(taken[5]).store(0, Ordering::Release);
        assert!(buffers.last_is_back(&own) && buffers.has_lent(&own));
    }

    #[test]
    fn reclaim_frees_the_buffers_of_one_peer_only() {
        let own = Segment::create(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 82)).unwrap();
        let mut buffers = Buffers::new();
        for peer in 0..BUFFERS as u32 {
            buffers.take(&own, peer % 2);
        }
        buffers.reclaim(&own, 1);
        let back: Vec<_> = std::iter::from_fn(|| buffers.take(&own, 0)).collect();
        assert_eq!(back.len(), BUFFERS / 2);
        buffers.reclaim(&own, 0);
        assert!(!buffers.has_lent(&own));
    }
}
