// SPDX-License-Identifier: BSD-2-Clause
//! Reports the end of operations: to completion queues, to counters, and to deferred work.

use channel::wire::Flags;
use ffi::{
    Errno, OpContext, flags,
    ops::{
        cq::{Completion, Failure},
        work::EndpointOp,
    },
};
use nic::message::{Envelope, Grant};

use crate::{
    device::carried::RecvOp,
    engine::{
        Engine,
        ops::{OpKind, SendOp},
    },
    wait::count::count,
};

impl Engine {
    /// Reports a receive that got its message.
    #[inline(always)]
    pub(crate) fn complete_recv(
        &mut self,
        grant: &Grant<RecvOp>,
        envelope: &Envelope,
        message_flags: Flags,
        data: u64,
        received: usize,
    ) {
        let op = &grant.data;
        let mut completion_flags = flags::RECV
            | if message_flags.contains(Flags::TAGGED) { flags::TAGGED } else { flags::MSG };
        if message_flags.contains(Flags::DATA) {
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
        if message_flags.contains(Flags::CHECKED) && self.is_damaged(grant, envelope, received) {
            self.rx.fail(Failure { completion, overflow: 0, errno: Errno::ECRC });
            count(self.counters.recv.as_ref(), true);
            self.recv_done(op, completion_flags, true);
        } else if received as u64 == envelope.len {
            // The release of a multi-receive buffer is always reported.
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

    /// Counts deferred work that has completed, on the counter that it names.
    #[inline]
    pub(crate) fn work_done(&mut self, work: u32, failed: bool) {
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

    /// Returns whether the success of an operation, which may be deferred work, is reported to the
    /// endpoint.
    #[inline]
    fn is_told(&self, work: u32) -> bool {
        work == 0 || self.work_reports(work)
    }

    #[cold]
    fn work_reports(&self, work: u32) -> bool {
        self.works.get(work as usize - 1).is_none_or(|deferred| deferred.reports)
    }

    /// Reports a triggered operation that failed to start.
    #[cold]
    pub(crate) fn fail_to_start(&mut self, op: &EndpointOp, work: u32, errno: Errno) {
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
        let reports = if receives { &self.rx } else { &self.tx };
        reports.fail(Failure { completion, overflow: 0, errno });
        let counter = if receives { self.counters.recv.as_ref() } else { self.counters.of(kind) };
        count(counter, true);
        self.work_done(work, true);
    }

    pub(crate) fn ended(&mut self, op: &SendOp) {
        if !op.kind.is_message() {
            self.rma_under_way.end();
        }
    }

    /// Reports an operation that its peer has completed. A copy ([`super::inject`]) was reported
    /// before.
    #[inline]
    pub(crate) fn complete_op(&mut self, op: &SendOp) {
        self.ended(op);
        if op.buffer.is_copied() {
            return;
        }
        self.complete_kind(op.kind, op.report, op.context, op.work);
    }

    /// Reports a successful operation.
    #[inline(always)]
    pub(crate) fn complete_kind(
        &mut self,
        kind: OpKind,
        report: bool,
        context: OpContext,
        work: u32,
    ) {
        self.tx.complete(report, kind.completion(context));
        if self.is_told(work) {
            count(self.counters.of(kind), false);
        }
        self.work_done(work, false);
    }

    /// Reports a failed operation.
    #[cold]
    pub(crate) fn fail_op(&mut self, op: &SendOp, errno: Errno) {
        self.ended(op);
        if op.buffer.is_copied() {
            return;
        }
        let completion = op.kind.completion(op.context);
        self.tx.fail(Failure { completion, overflow: 0, errno });
        count(self.counters.of(op.kind), true);
        self.work_done(op.work, true);
    }

    /// Returns whether a message into a multi-receive buffer returns the buffer. `last`: no further
    /// message goes into it.
    fn releases(&mut self, op: &RecvOp, last: bool) -> bool {
        match self.device.counts_parts() {
            None => last && !self.passes_release(op),
            Some(shared) => shared.end(op),
        }
    }

    /// Reports a receive that failed.
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
