// SPDX-License-Identifier: BSD-2-Clause
//! `fi_msg(3)` and the sends and receives of `fi_tagged(3)`: both take the same path, with or
//! without match bits.

use std::sync::Arc;

use ffi::{
    Errno, OpContext, Result,
    ops::ep::{OpFlags, Recv, Send},
};
use nic::message::{Envelope, Grant, Post, Receive};
use nic::trace;

use channel::{
    contract::{Payload, Sent},
    wire::{Flags, Header, Kind, LONGEST},
};

use crate::{
    device::{
        carried::{Body, Kept, RecvOp},
        receive::{RecvDefaults, receive_of},
    },
    engine::{
        Engine,
        completions::CqBinding,
        ops::{OpKind, SendOp},
        outgoing::{EAGER_AT_TIMES, Outgoing},
        tagged::PROBE_FLAGS,
    },
};

impl Engine {
    /// Any form of `fi_send` and `fi_tsend`.
    #[inline]
    pub(crate) fn send(&mut self, op: &Send) -> Result<()> {
        if !self.enabled {
            return Err(Errno::EOPBADSTATE);
        }
        let CqBinding { op_flags, selective, .. } = self.completions.tx;
        let outgoing = Outgoing::of(op, op_flags, selective, &self.sizes)?;
        let len = op.buffer.len();
        let peer = self.peers.at(op.dest)?;
        self.link_to(peer)?;
        if outgoing.fence && self.has_under_way(peer) {
            return Err(Errno::EAGAIN);
        }
        if self.rma_under_way.get() > 0 && self.overtakes(peer) {
            return Err(Errno::EAGAIN);
        }

        let header = outgoing.header(op);
        let Outgoing { report, inject, .. } = outgoing;
        self.note_message(peer, &op.buffer);
        let sent = if self.peers.home.fits(len) || len <= self.at_once || inject {
            self.send_eager::<false>(peer, op, header, report, inject)
        } else {
            self.send_longer(peer, op, header, report)
        };
        if self.records_sends && sent.is_ok() {
            self.record_send(peer, op);
        }
        sent
    }

    #[cold]
    fn record_send(&mut self, peer: u32, op: &Send) {
        let (bits, len) = (op.tag.unwrap_or(0), op.buffer.len() as u64);
        self.device.lock_own().context(op.tag.is_some()).note_send(trace::Sent { peer, bits, len });
    }

    /// Sends a message that does not have to go through a buffer.
    #[inline(never)]
    fn send_longer(&mut self, peer: u32, op: &Send, header: Header, report: bool) -> Result<()> {
        let len = op.buffer.len();
        if self.peers.is_net(peer) {
            return match len <= self.net_eager_size {
                true => self.send_eager::<false>(peer, op, header, report, false),
                false => self.send_rendezvous(peer, op, header, report),
            };
        }
        if len <= self.eager_size.min(LONGEST) {
            // Only if the network sends shorter messages at once.
            return self.send_eager::<false>(peer, op, header, report, false);
        }
        if len <= (EAGER_AT_TIMES * self.eager_size).min(LONGEST) {
            return self.send_eager::<true>(peer, op, header, report, false);
        }
        self.send_rendezvous(peer, op, header, report)
    }

    /// Sends a message through a buffer; `IF_QUICK`: only if that is faster than a copy by the
    /// receiver. The payload is chosen at compile time: passed in memory, it costs 15 instructions
    /// per message.
    #[inline(never)]
    fn send_eager<const IF_QUICK: bool>(
        &mut self,
        peer: u32,
        op: &Send,
        mut header: Header,
        report: bool,
        inject: bool,
    ) -> Result<()> {
        let payload = match IF_QUICK {
            false => Payload::Message(&op.buffer),
            true => Payload::IfQuick(&op.buffer),
        };
        let waits = header.flags.contains(Flags::ACK);
        if waits {
            header.op = self.track_send(peer, op, report, waits);
        }
        let sent = self.peers.push(peer, &header, payload);
        if sent != Ok(Sent::Yes) {
            if waits {
                self.sends.take(header.op);
                header.op = 0;
            }
            return match sent? {
                Sent::NoBuffer if inject => self.send_copied(peer, op, header, report),
                Sent::NoBuffer => self.send_rendezvous(peer, op, header, report),
                _ => Err(Errno::EAGAIN),
            };
        }
        self.peers.channels.shm.sent += 1;
        self.peers.channels.shm.sent_bytes += header.len;
        if !waits {
            self.completions.complete_kind(
                OpKind::of_message(op),
                report,
                op.context,
                self.completions.work(),
            );
        }
        Ok(())
    }

    pub(crate) fn send_rendezvous(
        &mut self,
        peer: u32,
        op: &Send,
        mut header: Header,
        report: bool,
    ) -> Result<()> {
        let waits = header.flags.contains(Flags::ACK);
        header.op = self.track_send(peer, op, report, waits);
        if self.peers.push(peer, &header, Payload::Where(&op.buffer))? == Sent::Yes {
            return Ok(());
        }
        self.sends.take(header.op);
        Err(Errno::EAGAIN)
    }

    fn track_send(&mut self, peer: u32, op: &Send, report: bool, acknowledged: bool) -> u64 {
        self.sends.enter(SendOp {
            acknowledged,
            work: self.completions.work(),
            ..SendOp::of_message(peer, op, report)
        })
    }

    /// Any form of `fi_recv` and `fi_trecv`. It is inlined, like the functions that it calls: an
    /// operation that is copied from call to call waits for the store buffer each time.
    #[inline(always)]
    pub(crate) fn recv(&mut self, op: &Recv) -> Result<()> {
        if !self.enabled {
            return Err(Errno::EOPBADSTATE);
        }
        if let OpFlags::Given(given) = op.flags
            && given & PROBE_FLAGS != 0
        {
            return self.probe(op, given);
        }
        let defaults = RecvDefaults {
            op_flags: self.completions.rx.op_flags,
            min_multi_recv: self.min_multi_recv,
            tagged_multi: self.tagged_multi,
            work: self.completions.work(),
        };
        let tagged = op.tag.is_some();
        let source = self.source_key(op.source, tagged)?;
        self.watch(source);
        let mut receive = receive_of(op, defaults, source)?;
        let Some(device) = self.device.own_here() else {
            // A copy: of an argument that is lent to a call, every field is stored, even if the
            // call is not made.
            return self.recv_beside(tagged, receive.clone());
        };
        let mut posted = device.context(tagged).post(&mut receive);
        if let Post::Pending = posted {
            self.flow.posted(tagged);
            self.has_posted();
            return Ok(());
        }
        loop {
            match posted {
                Post::Pending => return Ok(()),
                Post::HeldBack => self.flow.hold_post(tagged)?,
                Post::Matched { grant, envelope, message, again } => {
                    self.deliver_kept(grant, &envelope, message);
                    if !again {
                        return Ok(());
                    }
                }
            }
            posted = self.device.lock_own().context(tagged).post_anyway(&mut receive);
        }
    }

    /// Posts a receive in a thread that already holds the engine: deferred work, or a receive
    /// through an alias.
    #[cold]
    fn recv_beside(&mut self, tagged: bool, mut receive: Receive<RecvOp>) -> Result<()> {
        // Receives of a shared context are posted there.
        let shared = self.device.own_beside().map(Arc::clone).ok_or(Errno::EOPNOTSUPP)?;
        shared.post(tagged, &mut receive, |grant, envelope, message| {
            self.deliver_kept(grant, envelope, message);
            true
        })?;
        Ok(())
    }

    /// Gives a kept message to its receive.
    pub(crate) fn deliver_kept(
        &mut self,
        grant: Grant<RecvOp>,
        envelope: &Envelope,
        message: Kept,
    ) {
        let (about, peer) = (message.about, message.peer);
        match message.body {
            Body::Bytes(bytes) => {
                let to = grant.data.buffer.part(grant.offset as usize, bytes.len());
                let received = to.fill(&bytes);
                self.slot_check = about.check;
                self.complete_recv(&grant, envelope, about.flags, about.data, received);
                if about.flags.contains(Flags::ACK) && message.epoch == self.peers.epoch(peer) {
                    self.peers.answer(peer, Kind::Done, about.op, 0);
                }
            }
            Body::Remote(remote) if message.epoch == self.peers.epoch(peer) => {
                self.fetch(peer, grant, envelope, about, &remote);
            }
            Body::Remote(_) => {
                let tagged = about.flags.contains(Flags::TAGGED);
                let (bits, last) = (envelope.bits, grant.last);
                self.fail_recv(&grant.data, tagged, bits, last, Errno::ECONNABORTED);
            }
        }
    }

    /// `fi_cancel`: only receives can be cancelled.
    pub(crate) fn cancel(&mut self, context: OpContext) -> Result<()> {
        for tagged in [true, false] {
            let mut device = self.device.lock();
            let named = |op: &RecvOp| op.context.0 as u64;
            let cancelled = device.context(tagged).cancel_named(context.0 as u64, named);
            if let Some(receive) = &cancelled {
                device.begin(&receive.data, true);
            }
            drop(device);
            if let Some(receive) = cancelled {
                let bits = receive.key.bits;
                self.fail_recv(&receive.data, tagged, bits, true, Errno::ECANCELED);
                return Ok(());
            }
        }
        Err(Errno::ENOENT)
    }
}
