// SPDX-License-Identifier: BSD-2-Clause
//! Injected messages for which no buffer is free.
//!
//! ```text
//! no buffer is free                FI_EAGAIN
//! none for PATIENCE                the message is copied; its receiver reads the copy when it
//!                                  handles the slot, whether a receive is posted or not
//! MOST operations in progress      FI_EAGAIN
//! ```
//!
//! A receiver that computes keeps its buffers. The sender of a short message must not wait for it
//! (`MPI_Isend` returns at once), and a receiver that holds all buffers must not delay messages to
//! other peers. But if the receiver makes progress, a buffer comes back soon, and costs less than a
//! copy, which takes the receiver a system call.
//!
//! If the kernel refuses the copy, the receiver gets the message through buffers, once some are
//! free.
//!
//! The send completed when the message was copied. Nothing more is reported, even if the receiver
//! dies. A message in a buffer is handled the same way.
//!
//! Rejected: a queue from which the sender sends later. The sender would have to call for that, and
//! all later messages would wait behind it.

use ffi::{Errno, Result, ops::ep::Send};

use channel::{
    bytes::Remote,
    wire::{Flags, Header, LONGEST},
};

use crate::engine::{Engine, ops::OpKind};

/// Operations in progress at which no more messages are copied: 4 MiB at most.
const MOST: usize = 1024;

impl Engine {
    /// Sends an injected message, which is longer than a slot, without a buffer.
    #[cold]
    pub(crate) fn send_copied(
        &mut self,
        peer: u32,
        op: &Send,
        mut header: Header,
        report: bool,
    ) -> Result<()> {
        let waits = header.flags.contains(Flags::ACK);
        if waits || self.sends.len() >= MOST || !self.peers.home.is_stuck() {
            return Err(Errno::EAGAIN);
        }
        let kept = Send { buffer: op.buffer.copied(), ..op.clone() };
        header.flags |= Flags::COPIED;
        self.send_rendezvous(peer, &kept, header, false)?;
        self.completions.complete_kind(
            OpKind::of_message(op),
            report,
            op.context,
            self.completions.work(),
        );
        Ok(())
    }

    /// Returns whether receivers have not read all copies.
    pub(crate) fn has_copies(&self) -> bool {
        self.sends.any(|op| op.buffer.is_copied())
    }

    /// Reads a copy. Returns `None` if that is impossible; the message is then handled like any
    /// long one.
    #[cold]
    pub(crate) fn read_copy(
        &mut self,
        from: u32,
        header: &Header,
        remote: &Remote,
    ) -> Option<Box<[u8]>> {
        let len = usize::try_from(header.len).ok().filter(|&len| len <= LONGEST)?;
        self.peers.link(from).ok()?.read_whole(remote, len).ok()
    }
}
