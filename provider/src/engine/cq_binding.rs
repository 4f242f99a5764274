// SPDX-License-Identifier: BSD-2-Clause
//! The completion queue of each direction, and the counters, of an endpoint.

use std::sync::Arc;

use ffi::{
    flags,
    ops::cq::{Completion, Failure},
};

use crate::{cntr::Counter, cq::CompletionQueue, engine::ops::OpKind};

/// Counters that are bound to an endpoint, by what they count (`fi_cntr(3)`).
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) send: Option<Arc<Counter>>,
    pub(crate) recv: Option<Arc<Counter>>,
    pub(crate) read: Option<Arc<Counter>>,
    pub(crate) write: Option<Arc<Counter>>,
    pub(crate) remote_read: Option<Arc<Counter>>,
    pub(crate) remote_write: Option<Arc<Counter>>,
}

impl Counters {
    /// All counters, each with its bind flag.
    pub(crate) fn all(&mut self) -> [(u64, &mut Option<Arc<Counter>>); 6] {
        [
            (flags::SEND, &mut self.send),
            (flags::RECV, &mut self.recv),
            (flags::READ, &mut self.read),
            (flags::WRITE, &mut self.write),
            (flags::REMOTE_READ, &mut self.remote_read),
            (flags::REMOTE_WRITE, &mut self.remote_write),
        ]
    }

    #[inline]
    pub(crate) fn of(&self, kind: OpKind) -> Option<&Arc<Counter>> {
        match kind {
            OpKind::Msg | OpKind::Tagged => self.send.as_ref(),
            OpKind::Read | OpKind::Fetch => self.read.as_ref(),
            OpKind::Write | OpKind::Atomic => self.write.as_ref(),
        }
    }
}

/// One direction of an endpoint: its queue and its flags.
#[derive(Debug, Default)]
pub(crate) struct CqBinding {
    pub(crate) cq: Option<Arc<CompletionQueue>>,
    /// Success is reported only if an operation requests it.
    pub(crate) selective: bool,
    /// Default flags of operations.
    pub(crate) op_flags: u64,
}

impl CqBinding {
    /// Inlined down to the queue: out of line, it costs 20 instructions per message.
    #[inline(always)]
    pub(crate) fn complete(&self, report: bool, completion: Completion) {
        if let (true, Some(cq)) = (report, &self.cq) {
            cq.complete(completion);
        }
    }

    #[cold]
    pub(crate) fn fail(&self, failure: Failure) {
        if let Some(cq) = &self.cq {
            cq.fail(failure);
        }
    }
}
