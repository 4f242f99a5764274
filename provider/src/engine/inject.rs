// SPDX-License-Identifier: BSD-2-Clause
//! Injected messages that no buffer is free for.
//!
//! ```text
//! no buffer is free             FI_EAGAIN
//! none for PATIENCE             the message is copied; its receiver reads the copy when it
//!                               comes to the slot, whether a receive waits for it or not
//! MOST operations under way     FI_EAGAIN
//! ```
//!
//! A receiver that computes keeps the buffers that it has, and the sender of a short message must
//! wait neither for it (`MPI_Isend` returns at once) nor, with all buffers there, before it sends
//! to anybody else. But where a receiver is at work a buffer is soon back, and better than a copy,
//! which takes the receiver a call to the kernel.
//!
//! Where the kernel refuses, who has been sent a copy gets it through buffers, once some are back.
//!
//! The application was told of an injected message when it was copied. It hears no more of it, not
//! even if the receiver dies, as of one in a buffer.
//!
//! Rejected: a queue that the sender sends from later. It has to call for that, and all that
//! follows must wait behind it.

use ffi::{Errno, Result, ops::ep::Send};

use channel::{
    bytes::Remote,
    wire::{Flags, Header, LONGEST},
};

use crate::engine::{Engine, ops::OpKind};

/// Operations under way with which nothing more is copied: 4 MiB at most.
const MOST: usize = 1024;

impl Engine {
    /// Sends an injected message, longer than a slot has room for, without a buffer.
    #[cold]
    pub(crate) fn send_copied(
        &mut self,
        peer: u32,
        op: &Send,
        mut header: Header,
        report: bool,
    ) -> Result<()> {
        let waits = header.flags.contains(Flags::ACK);
        if waits || self.sends.len() >= MOST || !self.home.is_stuck() {
            return Err(Errno::EAGAIN);
        }
        let kept = Send { buffer: op.buffer.copied(), ..op.clone() };
        header.flags |= Flags::COPIED;
        self.send_rendezvous(peer, &kept, header, false)?;
        self.complete_kind(OpKind::of_message(op), report, op.context, self.work);
        Ok(())
    }

    /// Whether copies have not been read yet.
    pub(crate) fn has_copies(&self) -> bool {
        self.sends.any(|op| op.buffer.is_copied())
    }

    /// Reads a copy; none if that cannot be, and then it is a message like any long one.
    #[cold]
    pub(crate) fn read_copy(
        &mut self,
        from: u32,
        header: &Header,
        remote: &Remote,
    ) -> Option<Box<[u8]>> {
        let len = usize::try_from(header.len).ok().filter(|&len| len <= LONGEST)?;
        self.link(from).ok()?.read_whole(remote, len).ok()
    }
}
