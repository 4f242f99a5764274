// SPDX-License-Identifier: BSD-2-Clause
//! Reports the end of operations to completion queues and to counters.
//!
//! *Deferred work* is an operation that the application submitted with `FI_QUEUE_WORK`
//! (`fi_trigger(3)`). It may name a counter of its own, which also counts the end of the operation.

use std::sync::Arc;

use ffi::{
    Errno, OpContext, flags,
    ops::{
        cq::{Completion, Failure},
        work::EndpointOp,
    },
};
use slab::Slab;

use super::ops::{OpKind, SendOp};
use crate::{
    cntr::Counter,
    cq::CompletionQueue,
    device::carried::RecvOp,
    wait::{pollable::count, triggers::DeferredOp},
};

/// Counters that are bound to an endpoint, by what they count (`fi_cntr(3)`).
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) send: Option<Arc<Counter>>,
    recv: Option<Arc<Counter>>,
    read: Option<Arc<Counter>>,
    write: Option<Arc<Counter>>,
    pub(super) remote_read: Option<Arc<Counter>>,
    pub(super) remote_write: Option<Arc<Counter>>,
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
    fn of(&self, kind: OpKind) -> Option<&Arc<Counter>> {
        match kind {
            OpKind::Msg | OpKind::Tagged => self.send.as_ref(),
            OpKind::Read | OpKind::Fetch => self.read.as_ref(),
            OpKind::Write | OpKind::Atomic => self.write.as_ref(),
        }
    }
}

/// The completion queue for transmits or for receives of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct CqBinding {
    pub(crate) cq: Option<Arc<CompletionQueue>>,
    /// Whether success is reported only for operations that request it.
    pub(crate) selective: bool,
}

impl CqBinding {
    /// Reports a success to the queue, if there is a queue and `report` is set. This is inlined
    /// down to the queue. Out of line, it would cost 20 instructions per message.
    #[inline(always)]
    pub(super) fn complete(&self, report: bool, completion: Completion) {
        if let (true, Some(cq)) = (report, &self.cq) {
            cq.complete(completion);
        }
    }

    /// Reports a failure to the queue, if there is one.
    #[cold]
    pub(super) fn fail(&self, failure: Failure) {
        if let Some(cq) = &self.cq {
            cq.fail(failure);
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    pub(crate) tx: CqBinding,
    pub(crate) rx: CqBinding,
    pub(crate) counters: Counters,
    /// Deferred work in progress.
    works: Slab<DeferredOp>,
    /// The deferred work whose operation is being started: its index in `works` + 1, or 0. The
    /// operation keeps this number.
    work: u32,
}

impl Completions {
    /// Reports the success of a message that was sent, or of an operation at a peer. The queue gets
    /// a completion only if `report` is set. `work` is the number of the deferred work, or 0.
    #[inline(always)]
    pub(super) fn complete_kind(
        &mut self,
        kind: OpKind,
        report: bool,
        context: OpContext,
        work: u32,
    ) {
        self.tx.complete(report, kind.completion(context));
        if self.is_reported(work) {
            count(self.counters.of(kind), false);
        }
        self.work_done(work, false);
    }

    /// Reports the failure of a message to a peer, or of an operation at a peer.
    #[cold]
    pub(super) fn fail_op(&mut self, op: &SendOp, errno: Errno) {
        let completion = op.kind.completion(op.context);
        self.tx.fail(Failure { completion, overflow: 0, errno });
        count(self.counters.of(op.kind), true);
        self.work_done(op.work, true);
    }

    /// Reports a receive that succeeded.
    #[inline(always)]
    pub(super) fn complete_recv(&mut self, op: &RecvOp, completion: Completion) {
        let completion_flags = completion.flags;
        // The release of a multi-receive buffer is always reported.
        let report = op.report || completion_flags & flags::MULTI_RECV != 0;
        let is_reported = self.is_reported(op.work);
        self.rx.complete(report || is_reported && !self.rx.selective, completion);
        if is_reported {
            count(self.counters.recv.as_ref(), false);
        }
        self.recv_done(op, completion_flags, false);
    }

    /// Reports a receive that failed.
    #[cold]
    pub(super) fn fail_recv(&mut self, op: &RecvOp, failure: Failure) {
        self.rx.fail(failure);
        count(self.counters.recv.as_ref(), true);
        self.recv_done(op, failure.completion.flags, true);
    }
}

/// Deferred work.
impl Completions {
    /// Returns the number of the deferred work that is being started, or 0. Its operation keeps
    /// this number.
    #[inline]
    pub(super) fn work(&self) -> u32 {
        self.work
    }

    /// Begins to start a triggered operation, which may be deferred work. If the deferred work does
    /// not report its success, sets `tx.selective` until [`Self::end_start`]. Returns the previous
    /// value of `tx.selective`, for [`Self::end_start`].
    pub(super) fn begin_start(&mut self, deferred: Option<DeferredOp>) -> bool {
        let selective = self.tx.selective;
        self.tx.selective |= deferred.as_ref().is_some_and(|deferred| !deferred.reports);
        self.work = deferred.map_or(0, |deferred| self.works.insert(deferred) as u32 + 1);
        selective
    }

    /// Ends the start of a triggered operation, and restores `tx.selective`. If the start failed,
    /// reports the failure, unless the operation will be started again (`EAGAIN`).
    pub(super) fn end_start(
        &mut self,
        op: &EndpointOp,
        selective: bool,
        started: Result<(), Errno>,
    ) {
        let work = std::mem::take(&mut self.work);
        self.tx.selective = selective;
        match started {
            Ok(()) => {}
            Err(Errno::EAGAIN) => self.forget_work(work),
            Err(errno) => self.fail_to_start(op, work, errno),
        }
    }

    /// Forgets deferred work without a report. `work` may be 0.
    pub(super) fn forget_work(&mut self, work: u32) {
        self.works.try_remove((work as usize).wrapping_sub(1));
    }

    /// Counts deferred work that has ended, on the counter that it names, and forgets it. `work`
    /// may be 0.
    #[inline]
    pub(super) fn work_done(&mut self, work: u32, failed: bool) {
        if work != 0 {
            self.count_work(work, failed, true);
        }
    }

    /// Counts a receive that is deferred work. Work on a multi-receive buffer ends when the buffer
    /// is returned.
    #[inline]
    fn recv_done(&mut self, op: &RecvOp, completion_flags: u64, failed: bool) {
        if op.work != 0 {
            let over = !op.multi || completion_flags & flags::MULTI_RECV != 0;
            self.count_work(op.work, failed, over);
        }
    }

    #[cold]
    fn count_work(&mut self, work: u32, failed: bool, over: bool) {
        let key = work as usize - 1;
        if let Some(deferred) = self.works.get(key) {
            count(deferred.counter.as_ref(), failed);
        }
        if over {
            self.works.try_remove(key);
        }
    }

    /// Returns whether the success of an operation is reported to the queues and counters of the
    /// endpoint; false for deferred work without `FI_COMPLETION`.
    #[inline]
    fn is_reported(&self, work: u32) -> bool {
        work == 0 || self.work_reports(work)
    }

    #[cold]
    fn work_reports(&self, work: u32) -> bool {
        self.works.get(work as usize - 1).is_none_or(|deferred| deferred.reports)
    }

    /// Reports a triggered operation that failed to start.
    #[cold]
    fn fail_to_start(&mut self, op: &EndpointOp, work: u32, errno: Errno) {
        let tagged = |tagged| if tagged { OpKind::Tagged } else { OpKind::Msg };
        let kind = match op {
            EndpointOp::Send(op) => tagged(op.tag.is_some()),
            EndpointOp::Rma(op) if op.write => OpKind::Write,
            EndpointOp::Rma(_) => OpKind::Read,
            EndpointOp::Atomic(op) => OpKind::of_atomic(op.form),
            EndpointOp::Recv(op) => tagged(op.tag.is_some()),
        };
        let receives = matches!(op, EndpointOp::Recv(_));
        let completion = Completion {
            context: op.context(),
            flags: if receives { kind.flags() ^ flags::SEND | flags::RECV } else { kind.flags() },
            source: flags::ADDR_UNSPEC,
            ..Default::default()
        };
        let binding = if receives { &self.rx } else { &self.tx };
        binding.fail(Failure { completion, overflow: 0, errno });
        let counter = if receives { self.counters.recv.as_ref() } else { self.counters.of(kind) };
        count(counter, true);
        self.work_done(work, true);
    }
}
