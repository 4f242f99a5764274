// SPDX-License-Identifier: BSD-2-Clause
//! Sends the messages of an endpoint, and follows all its operations at peers until they end.
//! [`super::rma`] starts reads and writes, and [`super::atomic`] starts atomic operations.
//!
//! ```text
//! an injected message, and
//! no buffer is free                FI_EAGAIN
//! no buffer was free for 1 ms      the message is copied; its receiver reads the copy when it
//! (50 us if the endpoint counts)   handles the slot, whether a receive is posted or not
//! limits of copies are reached     FI_EAGAIN; see CopyLimits in outgoing.rs
//! ```
//!
//! While a receiver computes, it keeps the buffers of messages that it has not handled. The sender
//! of a short message must not wait for the receiver (`MPI_Isend` returns at once), and a receiver
//! that holds all buffers must not delay messages to other peers. But if the receiver makes
//! progress, a buffer becomes free soon. To use this buffer costs less than a copy of the message,
//! because the receiver reads a copy with a system call.
//!
//! If the kernel does not let the receiver read the copy, the receiver requests the message in
//! parts ([`super::rx`]), which go through buffers when some are free.
//!
//! The send completes when the message is copied. Nothing more is reported, even if the receiver
//! dies. A message in a buffer is handled the same way.
//!
//! Rejected: a queue from which the sender sends later. The sender would have to call the provider
//! again for that, and all later messages would wait behind it.

use std::{collections::VecDeque, sync::Arc};

use channel::{
    contract::{Payload, Sent},
    wire::{Flags, Header, Kind},
};
use ffi::{Errno, Result, ops::ep::Send};

use super::{
    check::sum,
    completions::Completions,
    deferred::{MOST as MOST_ANSWERS, MOST_OPERATIONS},
    ops::{OpKind, Ops, SendOp, UnderWay},
    outgoing::{Outgoing, Route, TxSettings},
    peers::Peers,
};
use crate::attr;

/// An operation whose data goes in parts, through buffers or over the network. A read is requested
/// in parts.
#[derive(Debug)]
pub(super) struct TxStream {
    /// Number of the operation.
    pub(super) op: u64,
    pub(super) peer: u32,
    /// For a message: number of the receiver's transfer ([`super::rx`]).
    transfer: u64,
    /// Bytes that were sent or, of a read, requested.
    pub(super) offset: usize,
    pub(super) len: usize,
    /// Bytes of a read that have come.
    pub(super) answered: usize,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Tx {
    pub(crate) ops: Arc<Ops>,
    /// Number of reads, writes and atomic operations on peers' memory that are in progress.
    pub(crate) rma_under_way: UnderWay,
    /// Maximum of `rma_under_way`. A limit is needed because peers must keep the answers that find
    /// no room.
    pub(super) rma_limit: usize,
    pub(super) streams: VecDeque<TxStream>,
    pub(crate) settings: Arc<TxSettings>,
}

/// Returns the maximum number of operations on peers' memory in progress, with a transmit queue of
/// this size; 0 means the default size.
fn rma_limit(size: usize) -> usize {
    if size == 0 { attr::QUEUE_SIZE } else { size.min(MOST_OPERATIONS) }
}

impl Tx {
    /// `size`: the requested size of the transmit queue, or 0.
    pub(super) fn new(settings: TxSettings, size: usize, locked: bool) -> Self {
        Self {
            ops: Arc::new(Ops::new(locked)),
            rma_under_way: UnderWay::default(),
            rma_limit: rma_limit(size),
            streams: VecDeque::new(),
            settings: Arc::new(settings),
        }
    }

    /// Sets the size of the transmit queue.
    pub(crate) fn set_size(&mut self, size: usize) {
        self.rma_limit = rma_limit(size);
    }

    /// Sets whether messages have checksums.
    #[cfg(test)]
    pub(super) fn set_checks(&mut self, checks: bool) {
        if let Some(settings) = Arc::get_mut(&mut self.settings) {
            settings.checks = checks;
        }
    }

    /// Sends a message to a peer that has a link.
    ///
    /// # Errors
    /// `EAGAIN` if there is no room, or if the message must wait for earlier operations;
    /// `ECONNABORTED` if the peer is gone.
    #[inline]
    pub(super) fn send(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        peer: u32,
        op: &Send,
        outgoing: Outgoing,
    ) -> Result<()> {
        let len = op.buffer.len();
        if outgoing.fence && self.has_under_way(peer) {
            return Err(Errno::EAGAIN);
        }
        if self.rma_under_way.get() > 0 && self.overtakes(peers, peer) {
            return Err(Errno::EAGAIN);
        }
        let header = outgoing.header(op);
        if self.settings.checks {
            peers.set_check(peer, sum(&op.buffer));
        }
        if peers.transports.fits(len) || len <= self.settings.eager.any || outgoing.inject {
            self.send_eager::<false>(peers, completions, peer, op, header, outgoing)
        } else {
            self.send_longer(peers, completions, peer, op, header, outgoing)
        }
    }

    /// Sends a message that is too long to be copied at once over every transport. Its route
    /// depends on the peer.
    #[inline(never)]
    fn send_longer(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        peer: u32,
        op: &Send,
        header: Header,
        outgoing: Outgoing,
    ) -> Result<()> {
        match self.settings.eager.route(op.buffer.len(), peers.uses_net(peer)) {
            Route::Eager => {
                self.send_eager::<false>(peers, completions, peer, op, header, outgoing)
            }
            Route::IfQuick => {
                self.send_eager::<true>(peers, completions, peer, op, header, outgoing)
            }
            Route::Rendezvous => {
                self.send_rendezvous(peers, completions, peer, op, header, outgoing.report)
            }
        }
    }

    /// Sends a message in a slot or through a buffer; with `IF_QUICK` only if that is faster than a
    /// copy by the receiver. If it gets no buffer, sends the location of the message or, if the
    /// message is injected, of a copy. The kind of payload is chosen at compile time, because a
    /// payload that is passed in memory costs 15 instructions per message.
    ///
    /// # Errors
    /// Those of [`Self::send`].
    #[inline(never)]
    fn send_eager<const IF_QUICK: bool>(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        peer: u32,
        op: &Send,
        mut header: Header,
        outgoing: Outgoing,
    ) -> Result<()> {
        let payload = match IF_QUICK {
            false => Payload::Message(&op.buffer),
            true => Payload::IfQuick(&op.buffer),
        };
        let Outgoing { report, inject, ack, .. } = outgoing;
        if ack {
            header.op = self.track(completions, peer, op, report, true);
        }
        let sent = peers.push(peer, &header, payload);
        if sent != Ok(Sent::Yes) {
            if ack {
                self.ops.take(header.op);
            }
            return match sent? {
                Sent::NoBuffer if inject => {
                    self.send_copied(peers, completions, peer, op, outgoing)
                }
                Sent::NoBuffer => {
                    self.send_rendezvous(peers, completions, peer, op, header, report)
                }
                _ => Err(Errno::EAGAIN),
            };
        }
        peers.channels.shm.sent += 1;
        peers.channels.shm.sent_bytes += header.len;
        if !ack {
            let work = completions.work();
            completions.complete_kind(OpKind::of_message(op), report, op.context, work);
        }
        Ok(())
    }

    /// Sends the location of a message, which stays in local memory. Over the network, sends only
    /// its length.
    ///
    /// # Errors
    /// `EAGAIN` if there is no room, `ECONNABORTED` if the peer is gone.
    fn send_rendezvous(
        &mut self,
        peers: &mut Peers,
        completions: &Completions,
        peer: u32,
        op: &Send,
        mut header: Header,
        report: bool,
    ) -> Result<()> {
        let acknowledged = header.flags.contains(Flags::ACK);
        header.op = self.track(completions, peer, op, report, acknowledged);
        if peers.push(peer, &header, Payload::Where(&op.buffer))? == Sent::Yes {
            return Ok(());
        }
        self.ops.take(header.op);
        Err(Errno::EAGAIN)
    }

    /// Copies an injected message for which no buffer is free, and sends the location of the copy.
    ///
    /// # Errors
    /// `EAGAIN` if the message cannot be copied yet (see the module) or needs an acknowledgement,
    /// and the errors of [`Self::send_rendezvous`].
    #[cold]
    fn send_copied(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        peer: u32,
        op: &Send,
        outgoing: Outgoing,
    ) -> Result<()> {
        let shm = peers.transports.shm();
        if !shm.is_stuck(self.settings.copies.patience) {
            return Err(Errno::EAGAIN);
        }
        if outgoing.ack || !self.may_copy(op) {
            shm.note_waiting(peer);
            return Err(Errno::EAGAIN);
        }
        let kept = Send { buffer: op.buffer.copied(), ..op.clone() };
        let mut header = outgoing.header(op);
        header.flags |= Flags::COPIED;
        self.send_rendezvous(peers, completions, peer, &kept, header, false)?;
        let work = completions.work();
        completions.complete_kind(OpKind::of_message(op), outgoing.report, op.context, work);
        Ok(())
    }

    /// Returns whether a copy of an injected message is within the limits.
    fn may_copy(&self, op: &Send) -> bool {
        let limits = &self.settings.copies;
        let (operations, copied) = self.ops.size();
        operations < limits.operations && copied + op.buffer.len() <= limits.bytes
    }

    fn track(
        &self,
        completions: &Completions,
        peer: u32,
        op: &Send,
        report: bool,
        acknowledged: bool,
    ) -> u64 {
        self.ops.enter(SendOp {
            acknowledged,
            work: completions.work(),
            ..SendOp::of_message(peer, op, report)
        })
    }
}

/// Operations in progress.
impl Tx {
    /// Returns whether receivers still have to read copies of injected messages.
    pub(crate) fn has_copies(&self) -> bool {
        self.ops.any(|op| op.buffer.is_copied())
    }

    /// Returns whether operations at a peer are in progress. `FI_FENCE` waits for them.
    #[cold]
    pub(super) fn has_under_way(&self, peer: u32) -> bool {
        self.ops.any(|op| op.peer == peer)
    }

    /// Returns whether an operation with this number is in progress at a peer.
    pub(super) fn is_at(&self, peer: u32, number: u64) -> bool {
        self.ops.find(number, |op| op.peer == peer) == Some(true)
    }

    /// Removes and returns an operation that ends, and stops sending parts of it. Returns `None` if
    /// no operation with this number is in progress.
    pub(super) fn take(&mut self, number: u64) -> Option<SendOp> {
        let op = self.ops.take(number)?;
        self.streams.retain(|stream| stream.op != number);
        Some(op)
    }

    /// Handles a peer's answer [`Kind::Done`] or [`Kind::Failed`] to an operation.
    pub(super) fn finished(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        from: u32,
        header: &Header,
    ) {
        if !self.is_at(from, header.op) {
            tracing::debug!("ignored an answer to an operation that is no longer in progress");
            return;
        }
        let Some(op) = self.take(header.op) else { return };
        if header.kind == Kind::Failed {
            let errno = i32::try_from(header.len).ok().filter(|errno| (1..4096).contains(errno));
            self.fail(completions, &op, errno.map_or(Errno::EPROTO, Errno::new));
            return;
        }
        if matches!(op.kind, OpKind::Read | OpKind::Write)
            && op.buffer.len() > attr::order_size(self.settings.eager.size)
            && let Ok(link) = peers.link(from)
        {
            link.note_copied();
        }
        let channel = match header.len {
            1 => Some(peers.whole_counters(from)),
            0 if op.buffer.is_copied() => Some(&mut peers.channels.shm),
            _ => None,
        };
        if let Some(channel) = channel {
            channel.sent += 1;
            channel.sent_bytes += op.buffer.len() as u64;
        }
        self.complete(completions, &op);
    }

    /// Reports the success of an operation, unless it was a copy of an injected message, which was
    /// reported before.
    #[inline]
    pub(super) fn complete(&self, completions: &mut Completions, op: &SendOp) {
        self.ended(op);
        if !op.buffer.is_copied() {
            completions.complete_kind(op.kind, op.report, op.context, op.work);
        }
    }

    /// Reports a failed operation, unless it was a copy of an injected message, which was reported
    /// before.
    #[cold]
    pub(super) fn fail(&self, completions: &mut Completions, op: &SendOp, errno: Errno) {
        self.ended(op);
        if !op.buffer.is_copied() {
            completions.fail_op(op, errno);
        }
    }

    fn ended(&self, op: &SendOp) {
        if !op.kind.is_message() {
            self.rma_under_way.end();
        }
    }

    /// Fails the operations at a peer that is gone.
    pub(super) fn forget(&mut self, completions: &mut Completions, peer: u32) {
        self.streams.retain(|stream| stream.peer != peer);
        for op in self.ops.take_of_peer(peer) {
            self.fail(completions, &op, Errno::ECONNABORTED);
        }
    }

    /// Drops all operations in progress, without completions, except copies of injected messages.
    /// The memory of the dropped operations belongs to the application again when no peer
    /// [reaches](Peers::is_any_reaching) it. Receivers of messages in parts are informed.
    pub(super) fn drop_all(&mut self, peers: &mut Peers, completions: &mut Completions) {
        let of_message = |op: &SendOp| op.kind.is_message() && !op.buffer.is_copied();
        let dropped: Vec<_> = self
            .streams
            .iter()
            .filter(|stream| self.ops.find(stream.op, of_message) == Some(true))
            .map(|stream| (stream.peer, stream.transfer))
            .collect();
        let (ended, first) = self.ops.end_all();
        peers.own().void_before(first);
        for op in ended {
            self.ended(&op);
            completions.forget_work(op.work);
        }
        let Self { streams, ops, .. } = self;
        streams.retain(|stream| ops.find(stream.op, |_| ()).is_some());
        for (peer, transfer) in dropped {
            peers.answer(peer, Kind::Dropped, transfer, 0);
        }
    }
}

/// Operations whose data goes in parts.
impl Tx {
    /// Returns whether no operation has parts to send or to request.
    #[inline]
    pub(crate) fn has_no_streams(&self) -> bool {
        self.streams.is_empty()
    }

    /// Handles a peer's request to send the data of a message or a write, or to request the data of
    /// a read, in parts. Ignores the request if the operation has no parts or goes in parts
    /// already. If the operation is no longer in progress, a request for a message gets the answer
    /// [`Kind::Dropped`].
    pub(super) fn pulled(&mut self, peers: &mut Peers, from: u32, header: &Header) {
        let found = self.ops.find(header.op, |op| (op.peer, op.kind, op.buffer.len()));
        let Some((_, kind, most)) = found.filter(|&(peer, ..)| peer == from) else {
            tracing::debug!(
                "ignored a request to send an operation in parts: it is no longer in progress"
            );
            if header.count == 1 && peers.unanswered(from) < MOST_ANSWERS {
                peers.answer(from, Kind::Dropped, header.data, 0);
            }
            return;
        };
        if matches!(kind, OpKind::Atomic | OpKind::Fetch)
            || self.streams.iter().any(|stream| stream.op == header.op)
        {
            tracing::warn!(
                "{} requests parts of an operation that has none, or that is being sent already",
                peers.address_of(from)
            );
            return;
        }
        let len = usize::try_from(header.len).unwrap_or(usize::MAX).min(most);
        if matches!(kind, OpKind::Read | OpKind::Write)
            && let Ok(link) = peers.link(from)
        {
            link.note_pull();
        }
        let channel = peers.part_counters(from);
        channel.sent += 1;
        channel.sent_bytes += len as u64;
        self.stream(header.op, from, header.data, len);
    }

    /// Adds an operation to those whose data goes in parts. For a message, `transfer` is the number
    /// of the receiver's transfer.
    pub(super) fn stream(&mut self, op: u64, peer: u32, transfer: u64, len: usize) {
        self.streams.push_back(TxStream { op, peer, transfer, offset: 0, len, answered: 0 });
    }

    /// Sends or requests parts of the operations in `streams`. Returns whether any part was sent or
    /// requested.
    pub(super) fn pump(&mut self, peers: &mut Peers, completions: &mut Completions) -> bool {
        let mut progress = false;
        for _ in 0..self.streams.len() {
            let Some(mut stream) = self.streams.pop_front() else { break };
            progress |= self.pump_stream(peers, completions, &mut stream);
            if stream.offset < stream.len {
                self.streams.push_back(stream);
            }
        }
        progress
    }

    fn pump_stream(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        stream: &mut TxStream,
    ) -> bool {
        let Some(op) = self.ops.find(stream.op, SendOp::clone) else { return false };
        if matches!(op.kind, OpKind::Read | OpKind::Write) {
            return self.pump_rma(peers, stream, &op);
        }
        let start = stream.offset;
        let Ok(most) = peers.link(stream.peer).map(|link| link.part_len()) else { return false };
        while stream.offset < stream.len {
            let left = stream.len - stream.offset;
            let part = op.buffer.part(stream.offset, left.min(most));
            let header = Header {
                flags: if left <= most { Flags::empty() } else { Flags::PART },
                data: stream.offset as u64,
                len: part.len() as u64,
                ..Header::of(Kind::Chunk, stream.transfer)
            };
            if peers.push(stream.peer, &header, Payload::Part(&part)) != Ok(Sent::Yes) {
                break;
            }
            stream.offset += part.len();
        }
        // The receiver of a message in parts over the network answers only if the sender requested
        // an acknowledgement.
        if stream.offset == stream.len
            && peers.uses_net(stream.peer)
            && !op.acknowledged
            && let Some(op) = self.ops.take(stream.op)
        {
            self.complete(completions, &op);
        }
        stream.offset > start
    }
}
