// SPDX-License-Identifier: BSD-2-Clause
//! Operations of ours at peers, until these answer.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use ffi::{
    Buffer, Context,
    atomic::Form,
    flags,
    ops::{cq::Completion, ep::rma::RemoteParts},
};

/// What an operation of ours at a peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpKind {
    Msg,
    Tagged,
    Write,
    Read,
    /// Changes memory.
    Atomic,
    /// Changes memory and answers what was there.
    Fetch,
}

impl OpKind {
    /// What an atomic operation is.
    pub(crate) fn of_atomic(form: Form) -> Self {
        if form == Form::Base { Self::Atomic } else { Self::Fetch }
    }

    /// Flags of its completion.
    #[inline]
    pub(crate) fn flags(self) -> u64 {
        match self {
            Self::Msg => flags::SEND | flags::MSG,
            Self::Tagged => flags::SEND | flags::TAGGED,
            Self::Write => flags::RMA | flags::WRITE,
            Self::Read => flags::RMA | flags::READ,
            Self::Atomic => flags::ATOMIC | flags::WRITE,
            Self::Fetch => flags::ATOMIC | flags::READ,
        }
    }

    /// The completion of one with this context.
    #[inline(always)]
    pub(crate) fn completion(self, context: Context) -> Completion {
        Completion {
            context,
            flags: self.flags(),
            source: flags::ADDR_UNSPEC,
            ..Default::default()
        }
    }
}

/// How many operations are under way. Changed by who has the engine, and seen by any thread: one that
/// started an operation sees it counted until it is over.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    #[inline]
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn start(&self) {
        self.0.store(self.get() + 1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.0.store(self.get() - 1, Ordering::Relaxed);
    }
}

/// An operation that is not complete: the receiver will say when it is.
#[derive(Clone, Debug)]
pub(crate) struct SendOp {
    pub(crate) kind: OpKind,
    pub(crate) peer: u32,
    /// What is sent; for reads, where the answer goes.
    pub(crate) buffer: Buffer,
    /// The peer's memory, for reads and writes.
    pub(crate) remote: RemoteParts,
    /// Remote CQ data of a write.
    pub(crate) data: Option<u64>,
    pub(crate) context: Context,
    pub(crate) report: bool,
    /// Whether its end is told only when its receiver has said so.
    pub(crate) acknowledged: bool,
    /// Deferred work that this is; see [`Engine::work`].
    pub(crate) work: u32,
    /// Tells this operation from earlier ones with its number.
    pub(crate) age: u32,
}
