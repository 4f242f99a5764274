// SPDX-License-Identifier: BSD-2-Clause
//! What the device carries for each receive and each message that no receive waited for.

use channel::{bytes::Remote, wire::Flags};
use ffi::{Buffer, Context};

/// A posted receive, as the device carries it.
#[derive(Debug)]
pub(crate) struct RecvOp {
    pub(crate) buffer: Buffer,
    pub(crate) context: Context,
    /// Whether success is reported on a queue that is bound for selective completion.
    pub(crate) report: bool,
    pub(crate) multi: bool,
    /// Deferred work that this is; see [`crate::engine::Engine::work`].
    pub(crate) work: u32,
}

/// Inlined by force, field by field: out of line it would be stored, and copied as a whole right
/// after, which waits until the stores have left the store buffer.
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

/// A message that no receive waited for, as the device carries it.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) about: About,
    /// Number of the endpoint in a shared receive context.
    pub(crate) holder: u32,
    /// Its sender, which is answered. Receives name another where that is a later context of a
    /// scalable endpoint.
    pub(crate) peer: u32,
    /// Which of those that had the sender's address it is of ([`crate::engine::Engine::epoch`]).
    pub(crate) epoch: u32,
    pub(crate) body: Body,
}

/// Where the bytes of a kept message are.
#[derive(Debug)]
pub(crate) enum Body {
    /// Here.
    Bytes(Box<[u8]>),
    /// In the sender's memory.
    Remote(Remote),
}

/// What completes a long message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) flags: Flags,
    /// Remote CQ data.
    pub(crate) data: u64,
    /// Operation of the sender.
    pub(crate) op: u64,
    /// Checksum, if the flags say that there is one.
    pub(crate) check: u32,
}

impl About {
    /// The operation whose memory the message is in, unless it is in a copy that outlives it.
    pub(crate) fn op_of_memory(&self) -> Option<u64> {
        (!self.flags.contains(Flags::COPIED)).then_some(self.op)
    }
}
