// SPDX-License-Identifier: BSD-2-Clause
//! The lanes of an endpoint to all its peers, for one thread at a time.

use ffi::Buffer;

use super::{lane::Lane, link::Link, segment::Segment};
use crate::{contract::Sent, wire::Header};

/// See the module.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// Which of the threads that send at a time it is for.
    thread: usize,
    /// By peer number.
    all: Vec<Option<Box<Lane>>>,
    /// Messages that were sent without the engine, and their bytes.
    sent: (u64, u64),
}

impl Lanes {
    pub(crate) fn new(thread: usize) -> Self {
        Self { thread, all: Vec::new(), sent: (0, 0) }
    }

    /// From now on this link leads to a peer.
    pub(crate) fn connect(&mut self, peer: u32, link: &Link) {
        let index = peer as usize;
        if self.all.len() <= index {
            self.all.resize_with(index + 1, || None);
        }
        self.all[index] = Some(Box::new(link.lane(self.thread)));
    }

    /// Nothing more goes to a peer.
    pub(crate) fn disconnect(&mut self, peer: u32) {
        if let Some(lane) = self.all.get_mut(peer as usize) {
            *lane = None;
        }
    }

    /// Nothing more goes to anybody.
    pub(crate) fn disconnect_all(&mut self) {
        self.all.clear();
    }

    /// The lane to a peer.
    #[inline(always)]
    pub(super) fn get(&mut self, peer: u32) -> Option<&mut Lane> {
        self.all.get_mut(peer as usize)?.as_deref_mut()
    }

    /// The lane to a peer that has not closed its endpoint.
    #[inline(always)]
    pub(super) fn open(&mut self, peer: u32) -> Option<&mut Lane> {
        self.get(peer).filter(|lane| lane.is_open())
    }

    /// Sends a message that fits a slot; none if there is no open lane to its receiver.
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

    /// Tells an open peer where a message is; who sends hears when it was read.
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

    /// Messages that were sent without the engine, and their bytes.
    pub(crate) fn sent(&self) -> (u64, u64) {
        self.sent
    }
}
