// SPDX-License-Identifier: BSD-2-Clause
//! How an operation ends: on a completion queue, on counters, and for the deferred
//! work that it may be.

use std::sync::Arc;

use ffi::{
    Context, Errno,
    atomic::Form,
    flags,
    ops::{
        cq::{Completion, Failure},
        work::Op,
    },
};
use nic::message::{Envelope, Grant};

use crate::{
    channel::wire,
    cntr::Counter,
    cq::CompletionQueue,
    engine::{Engine, RecvOp, SendOp},
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
}

/// Counters bound to an endpoint, by what they count (`fi_cntr(3)`).
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
    /// Each, with the flag it is bound with.
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

/// How the operation of deferred work ends.
#[derive(Debug)]
pub(crate) struct DeferredOp {
    /// What counts it.
    pub(crate) counter: Option<Arc<Counter>>,
    /// Whether success is told to the endpoint's queue and counters, too.
    pub(crate) reports: bool,
}

#[inline]
pub(crate) fn count(counter: Option<&Arc<Counter>>, failed: bool) {
    if let Some(counter) = counter {
        counter.count(failed);
    }
}

/// The queue of one direction.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    pub(crate) cq: Option<Arc<CompletionQueue>>,
    /// Success is only reported where an operation asks for it.
    pub(crate) selective: bool,
    /// Flags of operations that have none of their own.
    pub(crate) op_flags: u64,
}

impl Reports {
    #[inline]
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

impl Engine {
    /// Reports a receive that got its message.
    #[inline(always)]
    pub(crate) fn complete_recv(
        &mut self,
        grant: &Grant<RecvOp>,
        envelope: &Envelope,
        message_flags: u8,
        data: u64,
        received: usize,
    ) {
        let op = &grant.data;
        let mut completion_flags = flags::RECV
            | if message_flags & wire::TAGGED != 0 { flags::TAGGED } else { flags::MSG };
        if message_flags & wire::DATA != 0 {
            completion_flags |= flags::REMOTE_CQ_DATA;
        }
        if op.multi && self.releases(op, grant.last) {
            completion_flags |= flags::MULTI_RECV;
        }
        let completion = Completion {
            context: op.context,
            flags: completion_flags,
            len: received,
            buf: op.buffer.addr() + grant.offset as usize,
            data,
            tag: envelope.bits,
            source: self.address_of(envelope.source),
        };
        if message_flags & wire::CHECKED != 0 && self.is_damaged(grant, envelope, received) {
            self.rx.fail(Failure { completion, overflow: 0, errno: Errno::ECRC });
            count(self.counters.recv.as_ref(), true);
            self.recv_done(op, completion_flags, true);
        } else if received as u64 == envelope.len {
            // The release of a multi-receive buffer is always told.
            let report = op.report || completion_flags & flags::MULTI_RECV != 0;
            let is_told = self.is_told(op.work);
            self.rx.complete(report || is_told && !self.rx.selective, completion);
            if is_told {
                count(self.counters.recv.as_ref(), false);
            }
            self.recv_done(op, completion_flags, false);
        } else {
            let overflow = (envelope.len - received as u64) as usize;
            self.rx.fail(Failure { completion, overflow, errno: Errno::ETRUNC });
            count(self.counters.recv.as_ref(), true);
            self.recv_done(op, completion_flags, true);
        }
    }

    /// Counts deferred work that is done, for the counter it names.
    #[inline]
    pub(crate) fn work_done(&mut self, work: u32, failed: bool) {
        if work != 0 {
            self.count_work(work, failed, true);
        }
    }

    /// The same of a receive, of which there is more to come until it gives a buffer for several
    /// messages back.
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

    /// Whether the endpoint is told of the success of an operation, which may be deferred work.
    #[inline]
    fn is_told(&self, work: u32) -> bool {
        work == 0 || self.work_reports(work)
    }

    #[cold]
    fn work_reports(&self, work: u32) -> bool {
        self.works.get(work as usize - 1).is_none_or(|deferred| deferred.reports)
    }

    /// Reports an operation that waited for its time in vain.
    #[cold]
    pub(crate) fn fail_to_start(&mut self, op: &Op, work: u32, errno: Errno) {
        let tagged = |tagged| if tagged { OpKind::Tagged } else { OpKind::Msg };
        let kind = match op {
            Op::Send(op) => tagged(op.tag.is_some()),
            Op::Rma(op) if op.write => OpKind::Write,
            Op::Rma(_) => OpKind::Read,
            Op::Atomic(op) => OpKind::of_atomic(op.form),
            Op::Recv(op) => tagged(op.tag.is_some()),
        };
        let receives = matches!(op, Op::Recv(_));
        let completion = Completion {
            context: op.context(),
            flags: if receives { kind.flags() ^ flags::SEND | flags::RECV } else { kind.flags() },
            source: flags::ADDR_UNSPEC,
            ..Default::default()
        };
        let reports = if receives { &self.rx } else { &self.tx };
        reports.fail(Failure { completion, overflow: 0, errno });
        let counter = if receives { self.counters.recv.as_ref() } else { self.counters.of(kind) };
        count(counter, true);
        self.work_done(work, true);
    }

    fn ended(&mut self, op: &SendOp) {
        if !matches!(op.kind, OpKind::Msg | OpKind::Tagged) {
            self.rma_under_way -= 1;
        }
    }

    /// Reports an operation of ours that its peer has done; nothing of a copy ([`crate::inject`]).
    #[inline]
    pub(crate) fn complete_op(&mut self, op: &SendOp) {
        self.ended(op);
        if op.buffer.is_copied() {
            return;
        }
        self.complete_kind(op.kind, op.report, op.context, op.work);
    }

    /// Reports an operation of ours.
    #[inline(always)]
    pub(crate) fn complete_kind(
        &mut self,
        kind: OpKind,
        report: bool,
        context: Context,
        work: u32,
    ) {
        let completion = Completion {
            context,
            flags: kind.flags(),
            source: flags::ADDR_UNSPEC,
            ..Default::default()
        };
        self.tx.complete(report, completion);
        if self.is_told(work) {
            count(self.counters.of(kind), false);
        }
        self.work_done(work, false);
    }

    /// Reports an operation of ours that failed.
    #[cold]
    pub(crate) fn fail_op(&mut self, op: &SendOp, errno: Errno) {
        self.ended(op);
        if op.buffer.is_copied() {
            return;
        }
        let completion = Completion {
            context: op.context,
            flags: op.kind.flags(),
            source: flags::ADDR_UNSPEC,
            ..Default::default()
        };
        self.tx.fail(Failure { completion, overflow: 0, errno });
        count(self.counters.of(op.kind), true);
        self.work_done(op.work, true);
    }

    /// Whether a message, `last` to go into a multi-receive buffer or not, gives it back.
    fn releases(&mut self, op: &RecvOp, last: bool) -> bool {
        match &self.device.shared {
            None => last && !self.passes_release(op),
            Some(member) => member.srx.end(op),
        }
    }

    /// Reports a receive that got no message.
    #[cold]
    pub(crate) fn fail_recv(
        &mut self,
        op: &RecvOp,
        tagged: bool,
        bits: u64,
        last: bool,
        errno: Errno,
    ) {
        let mut completion_flags = flags::RECV | if tagged { flags::TAGGED } else { flags::MSG };
        if op.multi && self.releases(op, last) {
            completion_flags |= flags::MULTI_RECV;
        }
        let completion = Completion {
            context: op.context,
            flags: completion_flags,
            tag: bits,
            source: flags::ADDR_UNSPEC,
            ..Default::default()
        };
        self.rx.fail(Failure { completion, overflow: 0, errno });
        count(self.counters.recv.as_ref(), true);
        self.recv_done(op, completion_flags, true);
    }
}
