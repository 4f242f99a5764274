// SPDX-License-Identifier: BSD-2-Clause
//! The tx rings of an endpoint to all its peers, for one thread at a time.

use ffi::Buffer;

use super::{link::Link, segment::Segment, tx_ring::TxRing};
use crate::{contract::Sent, wire::Header};

/// See the module.
#[derive(Debug)]
pub(crate) struct TxRings {
    /// Index of the intent word in which the thread announces its claims.
    thread: usize,
    /// By peer number.
    all: Vec<Option<Box<TxRing>>>,
    /// Messages that were sent to open peers, and their bytes.
    sent: (u64, u64),
}

impl TxRings {
    pub(crate) fn new(thread: usize) -> Self {
        Self { thread, all: Vec::new(), sent: (0, 0) }
    }

    /// From now on, messages to `peer` go over this link.
    pub(crate) fn connect(&mut self, peer: u32, link: &Link) {
        let index = peer as usize;
        if self.all.len() <= index {
            self.all.resize_with(index + 1, || None);
        }
        self.all[index] = Some(Box::new(link.tx_ring(self.thread)));
    }

    /// Sends nothing more to a peer.
    pub(crate) fn disconnect(&mut self, peer: u32) {
        if let Some(tx_ring) = self.all.get_mut(peer as usize) {
            *tx_ring = None;
        }
    }

    /// Sends nothing more to any peer.
    pub(crate) fn disconnect_all(&mut self) {
        self.all.clear();
    }

    /// The tx ring to a peer.
    #[inline(always)]
    pub(super) fn get(&mut self, peer: u32) -> Option<&mut TxRing> {
        self.all.get_mut(peer as usize)?.as_deref_mut()
    }

    /// The tx ring to a peer that has not closed its endpoint.
    #[inline(always)]
    pub(super) fn open(&mut self, peer: u32) -> Option<&mut TxRing> {
        self.get(peer).filter(|tx_ring| tx_ring.is_open())
    }

    /// Sends a message that fits a slot. Returns `None` if there is no open tx ring to its
    /// receiver.
    #[inline(always)]
    pub(crate) fn send_short(
        &mut self,
        own: &Segment,
        peer: u32,
        header: &Header,
        message: &Buffer,
    ) -> Option<Sent> {
        let sent = Sent::if_room(self.open(peer)?.push_inline(own, header, message));
        self.note(sent, header);
        Some(sent)
    }

    /// Sends an open peer the location of a message. The peer reports when it has read the message.
    pub(crate) fn send_where(
        &mut self,
        own: &Segment,
        peer: u32,
        header: &Header,
        message: &Buffer,
    ) -> Option<Sent> {
        Some(Sent::if_room(self.open(peer)?.push_rendezvous(own, header, message)))
    }

    #[inline(always)]
    pub(super) fn note(&mut self, sent: Sent, header: &Header) {
        if sent == Sent::Yes {
            self.sent = (self.sent.0 + 1, self.sent.1 + header.len);
        }
    }

    /// Messages that were sent to open peers, and their bytes.
    pub(crate) fn sent(&self) -> (u64, u64) {
        self.sent
    }
}
