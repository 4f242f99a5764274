// SPDX-License-Identifier: BSD-2-Clause
//! The table of an endpoint's operations in progress: messages, reads, writes and atomic
//! operations. An operation has a number, which the answer of its peer contains.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use channel::wire::{PLACES, age_after, number, parts_of};
use ffi::{
    Buffer, OpContext,
    atomic::Form,
    flags,
    ops::{
        cq::Completion,
        ep::{Send, rma::RemoteParts},
    },
    serial::Serial,
};
use slab::Slab;

/// The kind of an operation to which a peer may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpKind {
    Msg,
    Tagged,
    Write,
    Read,
    /// An atomic operation without results (`fi_atomic`).
    Atomic,
    /// An atomic operation that returns the previous values (`fi_fetch_atomic`,
    /// `fi_compare_atomic`).
    Fetch,
}

impl OpKind {
    /// The kind of a message.
    #[inline]
    pub(crate) fn of_message(op: &Send) -> Self {
        if op.tag.is_some() { Self::Tagged } else { Self::Msg }
    }

    /// The kind of an atomic operation.
    pub(crate) fn of_atomic(form: Form) -> Self {
        if form == Form::Base { Self::Atomic } else { Self::Fetch }
    }

    /// Returns whether it is a message.
    pub(crate) fn is_message(self) -> bool {
        matches!(self, Self::Msg | Self::Tagged)
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

    /// The completion of an operation with this context.
    #[inline(always)]
    pub(crate) fn completion(self, context: OpContext) -> Completion {
        Completion {
            context,
            flags: self.flags(),
            source: flags::ADDR_UNSPEC,
            ..Default::default()
        }
    }
}

/// The number of reads, writes and atomic operations in progress. Only the thread that holds the
/// engine changes it. Any thread may read it. A thread that started an operation reads a number
/// that includes this operation until it has ended.
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

/// An operation in progress.
#[derive(Clone, Debug)]
pub(crate) struct SendOp {
    pub(crate) kind: OpKind,
    pub(crate) peer: u32,
    /// The data of a message or a write; for reads and fetching atomic operations, the memory for
    /// the answer; empty for other atomic operations.
    pub(crate) buffer: Buffer,
    /// The peer's memory, for reads and writes; otherwise empty.
    pub(crate) remote: RemoteParts,
    /// Remote CQ data of a write.
    pub(crate) data: Option<u64>,
    pub(crate) context: OpContext,
    pub(crate) report: bool,
    /// Whether the operation completes only when its peer has answered, over any transport. A long
    /// message without this flag completes over the network when all its parts are sent.
    pub(crate) acknowledged: bool,
    /// Number of the deferred work that this operation is, or 0; see
    /// [`crate::engine::completions::Completions`].
    pub(crate) work: u32,
    /// Distinguishes this operation from earlier ones at the same place of the table.
    pub(crate) age: u64,
}

impl SendOp {
    /// Creates the operation of a message to a peer.
    #[inline]
    pub(crate) fn of_message(peer: u32, op: &Send, report: bool) -> Self {
        Self::new(OpKind::of_message(op), peer, &op.buffer, op.context, report)
    }

    /// Creates an operation that has no remote memory, no remote CQ data and no acknowledgement,
    /// and that is not deferred work.
    pub(crate) fn new(
        kind: OpKind,
        peer: u32,
        buffer: &Buffer,
        context: OpContext,
        report: bool,
    ) -> Self {
        let (buffer, remote, data) = (buffer.clone(), RemoteParts::default(), None);
        let (acknowledged, work, age) = (false, 0, 0);
        Self { kind, peer, buffer, remote, data, context, report, acknowledged, work, age }
    }
}

/// The operations of an endpoint that are in progress, by number (`channel::wire::number`). Threads
/// that send without the engine also enter their operations here ([`crate::tx_fast_path`]).
#[derive(Debug)]
pub(crate) struct Ops(Serial<Table>);

#[derive(Debug)]
struct Table {
    ops: Slab<SendOp>,
    next_age: u64,
    /// Bytes of the copies of injected messages among the operations.
    copied: usize,
}

impl Table {
    fn enter(&mut self, op: SendOp) -> u64 {
        let age = self.next_age;
        self.next_age = age_after(age);
        self.copied += copied_bytes(&op);
        let key = self.ops.insert(SendOp { age, ..op });
        assert!(key < PLACES, "16 million operations are under way");
        number(age, key)
    }

    fn remove(&mut self, key: usize) -> SendOp {
        let op = self.ops.remove(key);
        self.copied -= copied_bytes(&op);
        op
    }

    fn key(&self, number: u64) -> Option<usize> {
        let (age, key) = parts_of(number);
        self.ops.get(key).is_some_and(|op| op.age == age).then_some(key)
    }
}

fn copied_bytes(op: &SendOp) -> usize {
    if op.buffer.is_copied() { op.buffer.len() } else { 0 }
}

impl Ops {
    /// Creates an empty table. `locked`: several threads use the endpoint.
    pub(crate) fn new(locked: bool) -> Self {
        let ops = Slab::with_capacity(256);
        Self(Serial::new(Table { ops, next_age: 0, copied: 0 }, locked))
    }

    /// Enters an operation. Returns its number, which the answer of the peer will contain.
    pub(crate) fn enter(&self, op: SendOp) -> u64 {
        self.0.lock().enter(op)
    }

    /// Enters an operation, and calls `go` with its number to send it. If `go` returns false,
    /// removes the operation again. Returns whether it was sent. The table is locked meanwhile, so
    /// that after a disconnect [`Self::take_of_peer`] returns all operations that were sent.
    pub(crate) fn enter_if(&self, op: SendOp, go: impl FnOnce(u64) -> bool) -> bool {
        let mut table = self.0.lock();
        let number = table.enter(op);
        let goes = go(number);
        if !goes {
            let (_, key) = parts_of(number);
            table.remove(key);
        }
        goes
    }

    /// Removes and returns the operation with a number; `None` if it is not in progress.
    pub(crate) fn take(&self, number: u64) -> Option<SendOp> {
        let mut table = self.0.lock();
        table.key(number).map(|key| table.remove(key))
    }

    /// Returns what `look` returns for the operation with a number; `None` if it is not in
    /// progress.
    pub(crate) fn find<T>(&self, number: u64, look: impl FnOnce(&SendOp) -> T) -> Option<T> {
        let table = self.0.lock();
        table.key(number).map(|key| look(&table.ops[key]))
    }

    /// Removes and returns the operations at a peer.
    pub(crate) fn take_of_peer(&self, peer: u32) -> Vec<SendOp> {
        let mut table = self.0.lock();
        let of_peer = table.ops.iter().filter(|(_, op)| op.peer == peer).map(|(key, _)| key);
        let keys: Vec<usize> = of_peer.collect();
        keys.into_iter().map(|key| table.remove(key)).collect()
    }

    /// Removes and returns all operations but copies of injected messages. Also returns the age of
    /// the next operation.
    pub(crate) fn end_all(&self) -> (Vec<SendOp>, u64) {
        let mut table = self.0.lock();
        let all = table.ops.iter().filter(|(_, op)| !op.buffer.is_copied()).map(|(key, _)| key);
        let keys: Vec<usize> = all.collect();
        let ended = keys.into_iter().map(|key| table.remove(key)).collect();
        (ended, table.next_age)
    }

    /// Returns whether an operation satisfies `is_such`.
    pub(crate) fn any(&self, mut is_such: impl FnMut(&SendOp) -> bool) -> bool {
        self.0.lock().ops.iter().any(|(_, op)| is_such(op))
    }

    /// Returns the number of operations, and the bytes of the copies of injected messages.
    pub(crate) fn size(&self) -> (usize, usize) {
        let table = self.0.lock();
        (table.ops.len(), table.copied)
    }

    /// Returns the number of the operation at a place of the table. If the place is empty, the
    /// number has the age 0.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn number_at(&self, key: usize) -> u64 {
        let table = self.0.lock();
        number(table.ops.get(key).map_or(0, |op| op.age), key)
    }
}

#[cfg(test)]
mod tests {
    use ffi::ops::ep::OpFlags;

    use super::*;

    #[test]
    fn end_all_keeps_copies() {
        let ops = Ops::new(true);
        let message = |buffer: Buffer| {
            let (flags, context) = (OpFlags::Default, OpContext::default());
            let send = Send { buffer, dest: 0, tag: None, data: None, context, flags };
            SendOp::of_message(3, &send, true)
        };
        let first = ops.enter(message(Buffer::default()));
        let copy = ops.enter(message(Buffer::default().copied()));
        assert_eq!(ops.size(), (2, 0));
        assert!(!ops.enter_if(message(Buffer::default()), |_| false));
        let (ended, first_age) = ops.end_all();
        assert_eq!((ended.len(), first_age), (1, 3));
        assert!(ops.take(first).is_none(), "the first is forgotten");
        let next = ops.enter(message(Buffer::default()));
        assert_eq!(parts_of(next), (first_age, parts_of(first).1));
        assert!(ops.take(first).is_none(), "another one has its place");
        assert!(ops.take(copy).is_some() && ops.take(next).is_some());
        assert_eq!(ops.size(), (0, 0));
    }
}
