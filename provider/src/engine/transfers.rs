// SPDX-License-Identifier: BSD-2-Clause
//! Long messages under way.

use ffi::Buffer;
use nic::message::{Envelope, Grant};

use channel::{
    bytes::Remote,
    way::{Copier, CopyError},
};

use crate::device::carried::{About, RecvOp};

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
}

/// An operation that is being put through buffers.
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

/// A matched message that is copied without the lock.
#[derive(Debug)]
pub(crate) struct LongCopy {
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

impl LongCopy {
    pub(crate) fn make(&self) -> Result<(), CopyError> {
        self.copier.read(&self.remote, &self.to)
    }

    /// The sender, and which operation of its own it is.
    pub(crate) fn sender(&self) -> (u32, u64) {
        (self.peer, self.about.op)
    }
}
