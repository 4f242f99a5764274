// SPDX-License-Identifier: BSD-2-Clause
//! Long messages in progress.

use ffi::{Buffer, ops::ep::rma::RemoteParts};
use nic::message::{Envelope, Grant};

use channel::{
    bytes::Remote,
    contract::{CopyError, Direction},
    net::peer::Landing,
    peer::Copier,
    wire::Header,
};

use crate::{
    device::carried::{About, RecvOp},
    regions::Target,
};

/// A receive that gets its message through buffers.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// The sender.
    pub(crate) peer: u32,
    pub(crate) grant: Grant<RecvOp>,
    pub(crate) envelope: Envelope,
    pub(crate) about: About,
    pub(super) wanted: usize,
    pub(super) received: usize,
    /// Parts are written directly to the buffer until this is dropped.
    pub(super) landing: Option<Landing>,
}

/// An operation that is being sent through buffers.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Number of the operation.
    pub(crate) op: u64,
    pub(crate) peer: u32,
    /// Number of the receiver's [`Transfer`], for a send.
    pub(super) transfer: u64,
    pub(crate) offset: usize,
    pub(crate) len: usize,
    /// Bytes of a read that have come.
    pub(crate) answered: usize,
}

/// Shortest copy that is made without the lock: it takes about as long as waking a thread that
/// waits for the lock.
pub(super) const UNLOCKED: usize = 64 * 1024;

/// A copy that is made without the lock.
#[derive(Debug)]
pub(crate) enum LongCopy {
    Message(Box<MessageCopy>),
    Memory(Box<MemoryCopy>),
}

impl LongCopy {
    /// The copy, if it is of a message.
    pub(super) fn message(self) -> Option<MessageCopy> {
        match self {
            Self::Message(copy) => Some(*copy),
            Self::Memory(_) => None,
        }
    }

    pub(crate) fn make(&self) -> Result<(), CopyError> {
        match self {
            Self::Message(copy) => copy.copier.read(&copy.remote, &copy.to),
            Self::Memory(copy) => {
                let what = (&copy.remote, copy.header.op);
                copy.copier.exchange(copy.direction, what, copy.target.placed())
            }
        }
    }
}

/// A matched message.
#[derive(Debug)]
pub(crate) struct MessageCopy {
    pub(super) copier: Copier,
    pub(super) remote: Remote,
    pub(super) to: Buffer,
    /// The sender.
    pub(super) peer: u32,
    pub(super) grant: Grant<RecvOp>,
    pub(super) envelope: Envelope,
    pub(super) epoch: u32,
    pub(super) about: About,
}

impl MessageCopy {
    /// The sender, and the number of its operation.
    pub(super) fn sender(&self) -> (u32, u64) {
        (self.peer, self.about.op)
    }
}

/// A read of local memory by a peer, or a write. Slots that came after its request wait until it is
/// done.
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
