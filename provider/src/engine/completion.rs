// SPDX-License-Identifier: BSD-2-Clause
//! The end of operations.

use channel::wire::Flags;
use ffi::{
    Errno, flags,
    ops::cq::{Completion, Failure},
};
use nic::message::{Envelope, Grant};

use crate::{
    device::carried::RecvOp,
    engine::{Engine, ops::SendOp},
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
            source: self.peers.source_address(envelope.source),
        };
        if message_flags.contains(Flags::CHECKED) && self.is_damaged(grant, envelope, received) {
            let failure = Failure { completion, overflow: 0, errno: Errno::ECRC };
            self.completions.fail_recv(op, failure);
        } else if received as u64 == envelope.len {
            self.completions.complete_recv(op, completion);
        } else {
            let overflow = (envelope.len - received as u64) as usize;
            self.completions.fail_recv(op, Failure { completion, overflow, errno: Errno::ETRUNC });
        }
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
        if !op.buffer.is_copied() {
            self.completions.complete_kind(op.kind, op.report, op.context, op.work);
        }
    }

    /// Reports a failed operation.
    #[cold]
    pub(crate) fn fail_op(&mut self, op: &SendOp, errno: Errno) {
        self.ended(op);
        if !op.buffer.is_copied() {
            self.completions.fail_op(op, errno);
        }
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
        self.completions.fail_recv(op, Failure { completion, overflow: 0, errno });
    }
}
