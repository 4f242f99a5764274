// SPDX-License-Identifier: BSD-2-Clause
//! The data that the device carries for each receive and each unexpected message.

use channel::{bytes::Remote, wire::Flags};
use ffi::{Buffer, OpContext};

/// A posted receive, as the device carries it.
#[derive(Debug)]
pub(crate) struct RecvOp {
    pub(crate) buffer: Buffer,
    pub(crate) context: OpContext,
    /// Whether success is reported on a queue with selective completion.
    pub(crate) report: bool,
    pub(crate) multi: bool,
    /// Number of the deferred work that posted this receive, or 0; see
    /// [`crate::engine::completions::Completions`].
    pub(crate) work: u32,
}

/// The clones are inlined and copy field by field. A function that is not inlined would store the
/// fields and then copy the value as a whole, and this copy would wait until the stores have left
/// the store buffer.
impl Clone for RecvOp {
    #[inline(always)]
    fn clone(&self) -> Self {
        let Self { context, report, multi, work, .. } = *self;
        Self { buffer: self.buffer.clone(), context, report, multi, work }
    }

    #[inline(always)]
    fn clone_from(&mut self, source: &Self) {
        self.buffer.clone_from(&source.buffer);
        self.context = source.context;
        self.report = source.report;
        self.multi = source.multi;
        self.work = source.work;
    }
}

/// An unexpected message, as the device carries it.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) about: About,
    /// Number, in a shared receive context, of the endpoint that received the message; 0 otherwise.
    pub(crate) holder: u32,
    /// The peer that sent the message and gets the answer. If it is a context other than 0 of a
    /// scalable endpoint, receives name another peer.
    pub(crate) peer: u32,
    /// Epoch of the sender, which distinguishes the sender from earlier endpoints at its address
    /// (`Peers::epoch`).
    pub(crate) epoch: u32,
    pub(crate) body: Body,
}

/// The location of the bytes of a kept message.
#[derive(Debug)]
pub(crate) enum Body {
    /// In this process.
    Bytes(Box<[u8]>),
    /// In the sender's memory.
    Remote(Remote),
}

/// The data that completes a message, besides its envelope and its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) flags: Flags,
    /// Remote CQ data.
    pub(crate) data: u64,
    /// Number of the sender's operation.
    pub(crate) op: u64,
    /// Checksum, if the flags include [`Flags::CHECKED`].
    pub(crate) check: u32,
}

impl About {
    /// Returns the sender's operation whose memory contains the message; `None` if the message is
    /// in a copy that outlives the operation.
    pub(crate) fn op_of_memory(&self) -> Option<u64> {
        (!self.flags.contains(Flags::COPIED)).then_some(self.op)
    }
}
