// SPDX-License-Identifier: BSD-2-Clause
//! Progress: arriving messages go through the device to their receives.

use std::{sync::Arc, time::Instant};

use nic::{
    message::{Envelope, Grant},
    report::Report,
};

use channel::{
    bytes::{Remote, SharedBytes},
    home::{NET, WAYS},
    way::{Arrivals, Inbox},
    wire::{Flags, Header, Kind},
};
use host::endpoint::own_count;

use crate::{
    device::{
        carried::{Body, Kept, RecvOp},
        shared::Shared,
    },
    engine::{Engine, peer_checks::MOST_POLLS, peers::Unknown},
    wait::pollable::Progress,
};

/// Most slots that are handled before the caller gets its completions.
const BATCH: u32 = 64;

impl Engine {
    /// Handles arrivals, and continues work that waited for room.
    #[inline]
    pub(crate) fn progress(&mut self) -> Progress {
        let mut progress = self.receive();
        if !self.peers.has_answered() {
            self.peers.flush();
        }
        if !self.streams.is_empty() && self.pump() {
            progress = Progress::Some;
        }
        if progress == Progress::Some {
            self.idle.busy(own_count() > 1);
            if self.publisher.is_due() {
                self.show_and_look();
            }
        }
        progress
    }

    /// Notes that a receive was posted: many may follow before the next poll.
    #[inline]
    pub(crate) fn has_posted(&mut self) {
        if self.publisher.is_due() {
            self.show_in_turn();
        }
    }

    /// Notes a probe. A program that only probes finds messages, so that none of its polls seems
    /// empty.
    #[inline]
    pub(crate) fn has_probed(&mut self) {
        if self.publisher.is_due_after_probe() {
            self.show_and_look();
        }
    }

    /// Does the periodic work while messages come.
    #[cold]
    fn show_and_look(&mut self) {
        self.show_in_turn();
        self.look_around();
        self.publisher.pace(self.checks.look_every(), MOST_POLLS);
    }

    #[cold]
    fn show_in_turn(&mut self) {
        if self.publisher.shows_in_turn() {
            self.show();
        }
    }

    /// Shows the counters to `tcam watch`, and writes the draft of the report.
    #[cold]
    pub(crate) fn show(&mut self) {
        let live = self.publisher.live(&self.device.lock());
        self.peers.own().show(&live);
        if let Some(mut draft) = self.publisher.take_draft() {
            let now = Instant::now();
            if draft.is_due(now) {
                draft.put(|report| self.count(report), &live, now);
            }
            self.publisher.put_back(draft);
        }
    }

    /// Writes the counters of the endpoint into a report.
    pub(crate) fn count(&mut self, report: &mut Report) {
        report.processes = self.processes;
        report.context = self.context;
        // Matches in a shared context are in its own report.
        if !self.device.is_shared() {
            let device = self.device.lock_own();
            (report.tagged, report.msg) = (device.tagged.counters(), device.msg.counters());
        }
        self.peers.report(report);
    }

    /// Handles a batch of slots of each transport.
    #[inline]
    pub(crate) fn receive(&mut self) -> Progress {
        let near = self.receive_over(0);
        let others = WAYS > NET + 1 || self.inboxes[NET].is_some();
        let other = others && self.receive_beside(near);
        if near > 0 || other { Progress::Some } else { Progress::None }
    }

    /// Handles slots of the other transports, after `near` slots over shared memory. Returns
    /// whether there were any.
    #[inline(never)]
    fn receive_beside(&mut self, near: u32) -> bool {
        let mut some = false;
        for transport in NET + 1..WAYS {
            some |= self.receive_over(transport) > 0;
        }
        if self.inboxes[NET].is_none() {
            return some;
        }
        if near > 0 {
            self.peers.home.turns.came_near(near);
        }
        if self.peers.home.turns.is_due() {
            self.peers.home.turns.ask();
            let before = self.peers.channels.shm;
            match self.receive_over(NET) {
                0 => self.peers.home.turns.found_nothing(),
                count => {
                    self.peers.home.turns.came_far(count);
                    self.peers.channels.turn_far(before);
                    some = true;
                }
            }
        }
        some
    }

    /// Handles a batch of slots of one transport. Returns their number.
    #[inline(always)]
    fn receive_over(&mut self, transport: usize) -> u32 {
        // Taken out of the engine for a moment, so that its slots can be lent.
        let taken = self.inboxes[transport].take_if(|inbox| !inbox.is_empty());
        let Some(mut inbox) = taken else { return 0 };
        let count = match &mut *inbox {
            Inbox::Shm(inbox) => self.empty(inbox),
            inbox => self.empty(inbox),
        };
        self.inboxes[transport] = Some(inbox);
        count
    }

    fn empty<I: Arrivals>(&mut self, inbox: &mut I) -> u32 {
        let mut count = 0;
        while count < BATCH && !self.holds_arrivals {
            let Some(slot) = inbox.peek() else { break };
            if count > 0 {
                inbox.expect_more();
            }
            match slot.header {
                Some(header)
                    if header.flags.contains(Flags::CHECKED) && !self.is_slot_whole(inbox) =>
                {
                    self.fail_damaged(inbox);
                }
                Some(header) => match self.source_of(&header) {
                    Ok(source) => {
                        if self.flow.holds_ring() && self.is_held_back(source, &header) {
                            break;
                        }
                        self.handle(source, &header, inbox.payload());
                    }
                    Err(Unknown::Unlisted) => {
                        tracing::warn!("a message of a peer that is not listed");
                    }
                    Err(Unknown::Short) => {
                        self.is_short = true;
                        break;
                    }
                },
                None => tracing::warn!("a peer wrote a slot that is no message"),
            }
            inbox.release();
            count += 1;
        }
        if count > 0 {
            inbox.publish();
            self.is_short = false;
        }
        count
    }

    /// Inlined: out of line, with the header in memory, a message takes 23 instructions more.
    #[inline(always)]
    fn handle(&mut self, source: u32, header: &Header, payload: SharedBytes<'_>) {
        match header.kind {
            Kind::Inline if header.len <= payload.len() as u64 => {
                let bytes = payload.first(header.len as usize);
                if self.arrive(source, header, bytes) && header.flags.contains(Flags::ACK) {
                    self.peers.answer(self.peers.sender(header), Kind::Done, header.op, 0);
                }
            }
            Kind::Inline => tracing::warn!("a message with an impossible length"),
            Kind::Buffered => self.arrive_buffered(source, header, payload),
            Kind::Rendezvous => self.arrive_rendezvous(source, header, payload),
            _ => self.handle_control(header, payload),
        }
    }

    /// Handles a slot that is not a message.
    #[inline]
    fn handle_control(&mut self, header: &Header, payload: SharedBytes<'_>) {
        let from = self.peers.sender(header);
        match header.kind {
            Kind::Inline | Kind::Buffered | Kind::Rendezvous => {}
            Kind::Done | Kind::Failed => self.finished(from, header),
            Kind::Pull => self.pulled(from, header),
            Kind::Chunk | Kind::Landed => self.chunk(from, header, payload),
            Kind::Dropped => self.dropped(from, header),
            Kind::Write | Kind::Read | Kind::Atomic => self.serve(from, header, payload),
            Kind::Answer => self.answered(from, header, payload),
        }
    }

    /// Handles a message whose bytes have come. Returns whether a receive got it. Inlined, like the
    /// functions that it calls: out of line, a message takes 120 instructions more.
    #[inline(always)]
    fn arrive(&mut self, source: u32, header: &Header, bytes: SharedBytes<'_>) -> bool {
        let envelope = Envelope { source, bits: header.bits, len: header.len };
        self.peers.channels.shm.received += 1;
        self.peers.channels.shm.received_bytes += header.len;
        let (holder, about) = (self.device.holder(), self.about(header));
        if let Some(shared) = self.device.tails() {
            // Copies: of an argument that is lent to a call, every field is stored, even if the
            // call is not made.
            let (shared, envelope, header) = (Arc::clone(shared), envelope, *header);
            return self.arrive_at_tails(&shared, &envelope, &header, bytes);
        }
        let mut device = self.device.lock();
        let context = device.context(header.is_tagged());
        match context.arrive(&envelope) {
            Some(grant) => {
                device.begin(&grant.data, grant.last);
                drop(device);
                self.give(&grant, &envelope, header, bytes);
                true
            }
            None => {
                let (peer, body) = (self.peers.sender(header), Body::Bytes(bytes.keep()));
                let epoch = self.peers.epoch(peer);
                context.keep(envelope, Kept { about, holder, peer, epoch, body });
                if context.holds_back() {
                    self.flow.hold_ring();
                }
                false
            }
        }
    }

    /// As [`Engine::arrive`], if another thread may search the unexpected messages meanwhile. Out
    /// of line, for the reason given there.
    #[inline(never)]
    fn arrive_at_tails(
        &mut self,
        shared: &Shared,
        envelope: &Envelope,
        header: &Header,
        bytes: SharedBytes<'_>,
    ) -> bool {
        let (holder, about) = (self.device.holder(), self.about(header));
        let keep = || {
            let (peer, body) = (self.peers.sender(header), Body::Bytes(bytes.keep()));
            Kept { about, holder, peer, epoch: self.peers.epoch(peer), body }
        };
        let grant = shared.arrive_at_tails(header.is_tagged(), envelope, keep);
        if let Some(grant) = &grant {
            self.give(grant, envelope, header, bytes);
        }
        grant.is_some()
    }

    /// Gives a message whose bytes have come to its receive.
    #[inline(always)]
    fn give(
        &mut self,
        grant: &Grant<RecvOp>,
        envelope: &Envelope,
        header: &Header,
        bytes: SharedBytes<'_>,
    ) {
        let received = if grant.offset == 0 {
            bytes.deliver(&grant.data.buffer)
        } else {
            bytes.deliver(&grant.data.buffer.part(grant.offset as usize, usize::MAX))
        };
        self.complete_recv(grant, envelope, header.flags, header.data, received);
    }

    fn arrive_buffered(&mut self, source: u32, header: &Header, payload: SharedBytes<'_>) {
        let from = self.peers.sender(header);
        if let Err(errno) = self.peers.link(from) {
            tracing::warn!("a message is lost, its sender is gone: {errno}");
            // Its receive fails: the next message must not take its place.
            return self.arrive_remote(source, header, Remote::default());
        }
        // Taken for a moment, so that the bytes can be lent to `arrive`.
        let Some(link) = self.peers.take(from) else { return };
        let matched = match link.body(header, payload) {
            Some(body) => {
                // The bytes come while the receive is searched. For bytes in a slot this gains
                // nothing.
                body.bytes().expect();
                self.arrive(source, header, body.bytes())
            }
            None => {
                tracing::warn!("a message in a buffer that does not exist");
                false
            }
        };
        self.peers.put_back(from, link);
        if matched && header.flags.contains(Flags::ACK) {
            self.peers.answer(from, Kind::Done, header.op, 0);
        }
    }

    fn arrive_rendezvous(&mut self, source: u32, header: &Header, payload: SharedBytes<'_>) {
        let peer = self.peers.sender(header);
        let Some(remote) = payload.remote(header.count, header.len) else {
            tracing::warn!("a long message with an impossible length");
            return;
        };
        if header.flags.contains(Flags::COPIED)
            && let Some(bytes) = self.read_copy(peer, header, &remote)
        {
            self.arrive(source, header, SharedBytes::from(&*bytes));
            self.peers.answer(peer, Kind::Done, header.op, 0);
            return;
        }
        self.arrive_remote(source, header, remote);
    }

    /// Handles a message whose bytes are in its sender's memory.
    fn arrive_remote(&mut self, source: u32, header: &Header, remote: Remote) {
        let peer = self.peers.sender(header);
        let envelope = Envelope { source, bits: header.bits, len: header.len };
        let (holder, about) = (self.device.holder(), self.about(header));
        let epoch = self.peers.epoch(peer);
        let keep = || Kept { about, holder, peer, epoch, body: Body::Remote(remote) };
        let (grant, holds_back) = self.device.arrive(header.is_tagged(), &envelope, keep);
        if let Some(grant) = grant {
            self.fetch(peer, grant, &envelope, about, &remote);
        } else if holds_back {
            self.flow.hold_ring();
        }
    }

    /// Returns whether the next message in the ring must stay there.
    #[cold]
    pub(crate) fn is_held_back(&mut self, source: u32, header: &Header) -> bool {
        if !matches!(header.kind, Kind::Inline | Kind::Buffered | Kind::Rendezvous) {
            return false;
        }
        if self.flow.is_ring_due()
            || !self.device.lock().contexts().iter().any(|context| context.holds_back())
        {
            self.flow.release_ring();
            return false;
        }
        let envelope = Envelope { source, bits: header.bits, len: header.len };
        let mut device = self.device.lock();
        let context = device.context(header.is_tagged());
        context.holds_back() && !context.expects(&envelope)
    }
}
