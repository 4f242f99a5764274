// SPDX-License-Identifier: BSD-2-Clause
//! Long messages: they stay in the sender's memory until they are matched.
//!
//! ```text
//! sender                      receiver
//!   Rendezvous (where) ------>  matched
//!                               process_vm_readv: read it            kernel copy
//!   <------------------ Done
//!
//!                               or, if the kernel refuses:
//!   <------------------ Pull (transfer, length)
//!   Chunk, Chunk, ... ------->  copy out, free the buffer            copy pipeline
//!   <------------------ Done
//! ```

use ffi::Errno;
use nic::message::{Envelope, Grant};

use channel::{
    bytes::{Remote, SharedBytes},
    contract::{Payload, Sent},
    way::CopyError,
    wire::{Flags, Header, Kind},
};

use crate::{
    device::carried::{About, RecvOp},
    engine::{
        Engine,
        deferred::MOST,
        ops::OpKind,
        transfers::{LongCopy, MessageCopy, Stream, Transfer, UNLOCKED},
    },
};

impl Engine {
    /// Copies a matched message from its sender's memory.
    pub(crate) fn fetch(
        &mut self,
        peer: u32,
        grant: Grant<RecvOp>,
        envelope: &Envelope,
        about: About,
        remote: &Remote,
    ) {
        let len = usize::try_from(envelope.len).unwrap_or(usize::MAX);
        let to = grant.data.buffer.part(grant.offset as usize, len);
        let wanted = to.len();
        // Not for a multi-receive buffer: the copy may be the part that returns the buffer.
        let later = self.domain.locked && wanted >= UNLOCKED && !grant.data.multi;
        let epoch = self.peers.epoch(peer);
        let copied = match self.peers.link(peer) {
            Ok(link) => {
                if later && let Some(copier) = link.copier() {
                    let (remote, envelope) = (*remote, *envelope);
                    let copy =
                        MessageCopy { copier, remote, to, peer, grant, envelope, epoch, about };
                    self.copies.push_back(LongCopy::Message(Box::new(copy)));
                    return;
                }
                link.read(remote, &to, about.op_of_memory())
            }
            Err(errno) => Err(CopyError::Failed(errno)),
        };
        self.fetched(peer, grant, envelope, about, wanted, copied);
    }

    /// The next copy to make without the lock. None starts while the endpoint closes.
    pub(crate) fn next_copy(&mut self) -> Option<LongCopy> {
        let next = if self.closes { None } else { self.copies.pop_front() };
        self.copying += u32::from(next.is_some());
        next
    }

    /// Makes the next copy at once; a poll would make it without the lock. Returns whether there
    /// was one.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn make_copy(&mut self) -> bool {
        let Some(copy) = self.next_copy() else { return false };
        let copied = copy.make();
        self.copied(copy, copied);
        true
    }

    /// Handles the result of a copy that was made without the lock. The peer may have gone
    /// meanwhile.
    pub(crate) fn copied(&mut self, copy: LongCopy, copied: Result<(), CopyError>) {
        self.copying -= 1;
        match copy {
            LongCopy::Message(copy) => self.message_copied(*copy, copied),
            LongCopy::Memory(copy) => self.memory_copied(&copy, copied),
        }
    }

    fn message_copied(&mut self, copy: MessageCopy, copied: Result<(), CopyError>) {
        let MessageCopy { peer, grant, envelope, about, to, .. } = copy;
        let is_there = copy.epoch == self.peers.epoch(peer);
        let copied = match (copied, self.peers.link(peer)) {
            _ if !is_there => Err(CopyError::Failed(Errno::ECONNABORTED)),
            (_, Err(errno)) => Err(CopyError::Failed(errno)),
            (copied, Ok(link)) => link.confirm(copied, about.op_of_memory()),
        };
        self.fetched(peer, grant, &envelope, about, to.len(), copied);
    }

    /// Continues after a long message was copied, or was not.
    fn fetched(
        &mut self,
        peer: u32,
        grant: Grant<RecvOp>,
        envelope: &Envelope,
        about: About,
        wanted: usize,
        copied: Result<(), CopyError>,
    ) {
        let About { flags: message_flags, op, .. } = about;
        match copied {
            Ok(()) => {
                let channel = self.peers.copied(peer);
                channel.received += 1;
                channel.received_bytes += wanted as u64;
                self.slot_check = about.check;
                self.complete_recv(&grant, envelope, about.flags, about.data, wanted);
                // `len` is the channel that was used.
                self.peers.answer(peer, Kind::Done, op, 1);
            }
            Err(CopyError::Refused) => {
                let to = grant.data.buffer.part(grant.offset as usize, wanted);
                let transfer = self.transfers.insert(Transfer {
                    peer,
                    grant,
                    envelope: *envelope,
                    about,
                    wanted,
                    received: 0,
                    landing: None,
                });
                if let Ok(link) = self.peers.link(peer)
                    && let Some(landing) = link.expect(transfer as u64, &to)
                {
                    self.transfers[transfer].landing = Some(landing);
                }
                let header = Header {
                    kind: Kind::Pull,
                    flags: Flags::empty(),
                    peer: 0,
                    count: 1,
                    bits: 0,
                    data: transfer as u64,
                    len: wanted as u64,
                    op,
                };
                self.peers.reply(peer, header);
            }
            Err(CopyError::Failed(errno)) => {
                let tagged = message_flags.contains(Flags::TAGGED);
                self.fail_recv(&grant.data, tagged, envelope.bits, grant.last, errno);
                self.peers.answer(peer, Kind::Failed, op, errno.get() as u64);
            }
        }
    }

    /// Handles the answer to a send: the receiver has the message, or failed.
    pub(crate) fn finished(&mut self, from: u32, header: &Header) {
        if !self.is_send_to(from, header.op) {
            tracing::debug!("an answer to an operation that is not under way any more");
            return;
        }
        let Some(op) = self.sends.take(header.op) else { return };
        self.streams.retain(|stream| stream.op != header.op);
        if header.kind == Kind::Failed {
            let errno = i32::try_from(header.len).ok().filter(|errno| (1..4096).contains(errno));
            self.fail_op(&op, errno.map_or(Errno::EPROTO, Errno::new));
            return;
        }
        let bytes = op.buffer.len() as u64;
        if header.len == 1 {
            let channel = self.peers.copied(from);
            channel.sent += 1;
            channel.sent_bytes += bytes;
        } else if header.len == 0 && op.buffer.is_copied() {
            self.peers.channels.shm.sent += 1;
            self.peers.channels.shm.sent_bytes += bytes;
        }
        self.complete_op(&op);
    }

    /// Returns whether an operation with this number is in progress at a peer.
    pub(crate) fn is_send_to(&self, peer: u32, number: u64) -> bool {
        self.sends.find(number, |op| op.peer == peer) == Some(true)
    }

    /// Handles a request of the receiver to send through buffers.
    pub(crate) fn pulled(&mut self, from: u32, header: &Header) {
        let found = self.sends.find(header.op, |op| (op.peer, op.kind, op.buffer.len()));
        let Some((_, kind, most)) = found.filter(|&(peer, ..)| peer == from) else {
            tracing::debug!("a pull of an operation that is not under way any more");
            if header.count == 1 && self.peers.unanswered(from) < MOST {
                self.peers.answer(from, Kind::Dropped, header.data, 0);
            }
            return;
        };
        if matches!(kind, OpKind::Atomic | OpKind::Fetch)
            || self.streams.iter().any(|stream| stream.op == header.op)
        {
            tracing::warn!("a pull of an operation that does not go through buffers, or does");
            return;
        }
        let len = usize::try_from(header.len).unwrap_or(usize::MAX).min(most);
        if matches!(kind, OpKind::Read | OpKind::Write)
            && let Ok(link) = self.peers.link(from)
        {
            link.note_pull();
        }
        let channel = self.peers.in_parts(from);
        channel.sent += 1;
        channel.sent_bytes += len as u64;
        self.stream(header.op, from, header.data, len);
    }

    /// Starts to send an operation through buffers.
    pub(crate) fn stream(&mut self, op: u64, peer: u32, transfer: u64, len: usize) {
        self.streams.push_back(Stream { op, peer, transfer, offset: 0, len, answered: 0 });
    }

    /// Sends parts of the operations that go through buffers. Returns whether any part was sent.
    pub(crate) fn pump(&mut self) -> bool {
        let mut progress = false;
        for _ in 0..self.streams.len() {
            let Some(mut stream) = self.streams.pop_front() else { break };
            progress |= self.pump_stream(&mut stream);
            if stream.offset < stream.len {
                self.streams.push_back(stream);
            }
        }
        progress
    }

    fn pump_stream(&mut self, stream: &mut Stream) -> bool {
        let found = self.sends.find(stream.op, |op| (op.kind, op.buffer.clone()));
        let Some((kind, buffer)) = found else { return false };
        if matches!(kind, OpKind::Read | OpKind::Write) {
            return self.pump_rma(stream);
        }
        let start = stream.offset;
        let Ok(most) = self.peers.link(stream.peer).map(|link| link.part_len()) else {
            return false;
        };
        while stream.offset < stream.len {
            let left = stream.len - stream.offset;
            let part = buffer.part(stream.offset, left.min(most));
            let header = Header {
                kind: Kind::Chunk,
                flags: if left <= most { Flags::empty() } else { Flags::PART },
                peer: 0,
                count: 0,
                bits: 0,
                data: stream.offset as u64,
                len: part.len() as u64,
                op: stream.transfer,
            };
            if self.peers.push(stream.peer, &header, Payload::Part(&part)) != Ok(Sent::Yes) {
                break;
            }
            stream.offset += part.len();
        }
        if stream.offset == stream.len {
            self.has_gone(stream);
        }
        stream.offset > start
    }

    /// Handles the end of a message in parts. Over the network there is no answer, unless the
    /// sender requested an acknowledgement.
    fn has_gone(&mut self, stream: &Stream) {
        if self.peers.is_net(stream.peer)
            && self.sends.find(stream.op, |op| op.acknowledged) == Some(false)
            && let Some(op) = self.sends.take(stream.op)
        {
            self.complete_op(&op);
        }
    }

    /// Handles a part of a message that comes through buffers.
    pub(crate) fn chunk(&mut self, from: u32, header: &Header, payload: SharedBytes<'_>) {
        let Self { transfers, peers, .. } = self;
        let key = usize::try_from(header.op).unwrap_or(usize::MAX);
        let transfer = transfers.get_mut(key).filter(|transfer| transfer.peer == from);
        let Some(transfer) = transfer else {
            tracing::debug!("a part of a message that is not under way any more");
            return;
        };
        let offset = usize::try_from(header.data).unwrap_or(usize::MAX).min(transfer.wanted);
        let room = (header.len as usize).min(transfer.wanted - offset);
        if header.kind == Kind::Landed {
            transfer.received += room;
        } else {
            let link = peers.link(from).ok();
            let Some(body) = link.and_then(|link| link.body(header, payload)) else {
                tracing::error!("a part of a message without all its bytes: the message fails");
                let transfer = transfers.remove(key);
                self.fail_transfer(&transfer);
                self.peers.answer(
                    from,
                    Kind::Failed,
                    transfer.about.op,
                    Errno::EPROTO.get() as u64,
                );
                return;
            };
            let to = transfer.grant.data.buffer.part(transfer.grant.offset as usize + offset, room);
            transfer.received += body.bytes().first(room).deliver(&to);
        }
        if transfer.received < transfer.wanted {
            return;
        }
        let done = transfers.remove(key);
        let channel = self.peers.in_parts(from);
        channel.received += 1;
        channel.received_bytes += done.wanted as u64;
        let about = done.about;
        self.slot_check = about.check;
        self.complete_recv(&done.grant, &done.envelope, about.flags, about.data, done.wanted);
        if !self.peers.is_net(from) || about.flags.contains(Flags::ACK) {
            self.peers.answer(from, Kind::Done, about.op, 2);
        }
    }

    /// Handles the early end of a message that comes through buffers.
    pub(crate) fn dropped(&mut self, from: u32, header: &Header) {
        let key = usize::try_from(header.op).unwrap_or(usize::MAX);
        if self.transfers.get(key).is_some_and(|transfer| transfer.peer == from) {
            let transfer = self.transfers.remove(key);
            self.fail_transfer(&transfer);
        }
    }

    /// Fails a message whose sender, or the context that sent it, is gone.
    pub(crate) fn fail_transfer(&mut self, transfer: &Transfer) {
        let Transfer { grant, envelope, about, .. } = transfer;
        let tagged = about.flags.contains(Flags::TAGGED);
        self.fail_recv(&grant.data, tagged, envelope.bits, grant.last, Errno::ECONNABORTED);
    }

    /// Ends the receives of a shared context that long messages are being received into. The
    /// endpoint that receives them closes, but the receives belong to the context.
    pub(crate) fn end_receives(&mut self) {
        if !self.device.is_shared() {
            return;
        }
        let copies = self.copies.drain(..).filter_map(LongCopy::message);
        let mut ended: Vec<_> = copies.map(|it| (it.grant, it.envelope, it.about)).collect();
        let transfers = std::mem::take(&mut self.transfers);
        ended.extend(transfers.into_iter().map(|(_, it)| (it.grant, it.envelope, it.about)));
        for (grant, envelope, about) in ended {
            let tagged = about.flags.contains(Flags::TAGGED);
            self.fail_recv(&grant.data, tagged, envelope.bits, grant.last, Errno::ECONNABORTED);
        }
    }

    /// Returns whether another message is still being received into a multi-receive buffer that is
    /// about to be returned. That message then returns it.
    pub(crate) fn passes_release(&mut self, op: &RecvOp) -> bool {
        let mut others = self.transfers.iter_mut().filter(|(_, transfer)| {
            transfer.grant.data.multi
                && transfer.grant.data.context == op.context
                && transfer.grant.data.buffer.addr() == op.buffer.addr()
        });
        match others.next() {
            Some((_, other)) => {
                other.grant.last = true;
                true
            }
            None => false,
        }
    }
}
