// SPDX-License-Identifier: BSD-2-Clause
//! Long copies between processes, which are made without the lock of the engine if several threads
//! may use the endpoint.

use std::collections::VecDeque;

use channel::{
    bytes::Remote,
    contract::{CopyError, Direction},
    peer::Copier,
    wire::Header,
};
use ffi::{Buffer, ops::ep::rma::RemoteParts};
use nic::message::{Envelope, Grant};

use super::peers::Peers;
use crate::{
    device::carried::{About, RecvOp},
    regions::Target,
};

/// Minimum length in bytes of a copy that is made without the lock. Such a copy takes about as long
/// as waking a thread that waits for the lock.
pub(super) const UNLOCKED: usize = 64 * 1024;

/// A receive, and the long message that goes into its buffer.
#[derive(Debug)]
pub(crate) struct LongRecv {
    /// The sender.
    pub(super) peer: u32,
    /// Epoch of the sender ([`Peers::epoch`]).
    pub(super) epoch: u32,
    pub(super) grant: Grant<RecvOp>,
    pub(super) envelope: Envelope,
    pub(super) about: About,
}

impl LongRecv {
    /// Returns whether the endpoint that sent the message is still known at its address. Otherwise
    /// no answer may be sent, because a later endpoint at the address would get it.
    pub(super) fn is_current(&self, peers: &Peers) -> bool {
        self.epoch == peers.epoch(self.peer)
    }

    /// Returns the part of the receive's buffer for `len` bytes of the message from `offset` on.
    /// The part is shorter if the buffer ends before.
    pub(super) fn buffer(&self, offset: usize, len: usize) -> Buffer {
        self.grant.data.buffer.part(self.grant.offset as usize + offset, len)
    }
}

/// A copy that is made without the lock.
#[derive(Debug)]
pub(crate) enum LongCopy {
    Message(Box<MessageCopy>),
    Memory(Box<MemoryCopy>),
}

impl LongCopy {
    /// Makes the copy. The result goes to [`super::Engine::copied`].
    pub(crate) fn make(&self) -> Result<(), CopyError> {
        #[cfg(test)]
        crate::panic_tests::PanicAt::Copy.reached();
        match self {
            Self::Message(copy) => copy.copier.read(&copy.remote, &copy.to),
            Self::Memory(copy) => {
                let what = (&copy.remote, copy.header.op);
                copy.copier.exchange(copy.direction, what, copy.target.placed())
            }
        }
    }
}

/// A copy of a matched message.
#[derive(Debug)]
pub(crate) struct MessageCopy {
    pub(super) copier: Copier,
    pub(super) remote: Remote,
    pub(super) to: Buffer,
    pub(super) recv: LongRecv,
}

/// A copy for a peer's read or write of local memory. Slots that came after the request wait until
/// the copy is done.
#[derive(Debug)]
pub(crate) struct MemoryCopy {
    pub(super) copier: Copier,
    pub(super) direction: Direction,
    pub(super) remote: Remote,
    pub(super) target: Target,
    /// The requesting peer.
    pub(super) peer: u32,
    pub(super) epoch: u32,
    pub(super) header: Header,
    pub(super) parts: RemoteParts,
}

/// The copies of an endpoint that are due or in progress.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    due: VecDeque<LongCopy>,
    /// Number of copies that are being made.
    under_way: u32,
    /// Whether a copy for a peer's read or write is due or in progress. Slots that came after the
    /// request wait.
    holds_arrivals: bool,
    /// Whether the endpoint is being closed, so that no copy begins.
    closes: bool,
}

impl Copies {
    /// Returns whether no copy is due.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Returns whether no copy is due or in progress.
    pub(super) fn is_done(&self) -> bool {
        self.under_way == 0 && self.due.is_empty()
    }

    /// Returns whether arriving slots must wait: they may read what a copy writes.
    #[inline]
    pub(crate) fn holds_arrivals(&self) -> bool {
        self.holds_arrivals
    }

    pub(super) fn push_message(&mut self, copy: MessageCopy) {
        self.due.push_back(LongCopy::Message(Box::new(copy)));
    }

    #[cold]
    pub(super) fn push_memory(&mut self, copy: MemoryCopy) {
        self.due.push_back(LongCopy::Memory(Box::new(copy)));
        self.holds_arrivals = true;
    }

    /// Begins the next copy. Returns `None` if no copy is due, or if the endpoint is being closed.
    pub(crate) fn begin(&mut self) -> Option<LongCopy> {
        let next = if self.closes { None } else { self.due.pop_front() };
        self.under_way += u32::from(next.is_some());
        next
    }

    /// Notes that a copy that [`Self::begin`] returned has been made or has failed.
    pub(super) fn end(&mut self, copy: &LongCopy) {
        self.under_way -= 1;
        if let LongCopy::Memory(_) = copy {
            self.holds_arrivals = false;
        }
    }

    /// Returns whether no copy is in progress. If one is, no further copy begins from now on.
    pub(crate) fn close(&mut self) -> bool {
        self.closes |= self.under_way > 0;
        self.under_way == 0
    }

    /// Removes the copies of messages that are due, and returns their receives.
    pub(super) fn take_messages(&mut self) -> Vec<LongRecv> {
        let mut receives = Vec::new();
        for copy in std::mem::take(&mut self.due) {
            match copy {
                LongCopy::Message(copy) => receives.push(copy.recv),
                memory => self.due.push_back(memory),
            }
        }
        receives
    }
}
