// SPDX-License-Identifier: BSD-2-Clause
//! Progress: arriving messages go through the device to their receives.

use std::{sync::Arc, time::Instant};

use nic::message::{Envelope, Grant};

use channel::{
    bytes::{Remote, SharedBytes},
    contract::Arrivals,
    rx::{NET, Rx, TRANSPORTS},
    wire::{Flags, Header, Kind},
};
use host::{live::Live, owner::own_count};

use crate::{
    device::{
        carried::{Body, Kept, RecvOp},
        shared::Shared,
    },
    engine::{
        Engine,
        liveness::MOST_POLLS,
        peer::{Unknown, epoch, sender},
    },
    wait::pollable::Progress,
};

/// Most slots that are handled before the caller gets its completions.
const BATCH: u32 = 64;
/// Most polls that found something, and posts, between reads of the clock. With a draft of a
/// report, each read also shows the counters.
const LOOK: u32 = 128;
/// Most probes between reads of the clock.
const PROBES: u32 = 64;
/// Reads of the clock between shows of the counters. A show takes about 0.1 us.
const SHOW: u32 = 8;

impl Engine {
    /// Handles arrivals, and continues work that waited for room.
    #[inline]
    pub(crate) fn progress(&mut self) -> Progress {
        let mut progress = self.receive();
        if !self.deferred.is_empty() {
            self.flush_deferred();
        }
        if !self.streams.is_empty() && self.pump() {
            progress = Progress::Some;
        }
        if progress == Progress::Some {
            self.idle.busy(own_count() > 1);
            match self.until_shown.checked_sub(1) {
                Some(less) => self.until_shown = less,
                None => self.show_and_look(),
            }
        }
        progress
    }

    /// Notes that a receive was posted: many may follow before the next poll.
    #[inline]
    pub(crate) fn has_posted(&mut self) {
        match self.until_shown.checked_sub(1) {
            Some(less) => self.until_shown = less,
            None => self.show_in_turn(),
        }
    }

    /// Notes a probe. A program that only probes finds messages, so that none of its polls seems
    /// empty.
    #[inline]
    pub(crate) fn has_probed(&mut self) {
        match self.until_shown.checked_sub(LOOK / PROBES) {
            Some(less) => self.until_shown = less,
            None => self.show_and_look(),
        }
    }

    /// Does the periodic work while messages come.
    #[cold]
    fn show_and_look(&mut self) {
        self.show_in_turn();
        self.look_around();
        self.until_shown = LOOK.min(LOOK / MOST_POLLS * self.look_every);
    }

    #[cold]
    fn show_in_turn(&mut self) {
        self.until_shown = LOOK;
        if self.draft.is_some() || self.shows.is_multiple_of(SHOW) {
            self.show();
        }
        self.shows = self.shows.wrapping_add(1);
    }

    /// Shows the counters to `tcam watch`, and writes the draft of the report.
    #[cold]
    pub(crate) fn show(&mut self) {
        let live = {
            let device = self.device.lock();
            Live {
                rank: self.rank,
                job: self.job,
                ns: self.opened.elapsed().as_nanos() as u64,
                tagged: device.tagged.live(),
                msg: device.msg.live(),
            }
        };
        self.own.show(&live);
        if let Some(mut draft) = self.draft.take() {
            let now = Instant::now();
            if draft.is_due(now) {
                draft.put(|report| self.count(report), &live, now);
            }
            self.draft = Some(draft);
        }
    }

    /// Handles a batch of slots of each transport.
    #[inline]
    pub(crate) fn receive(&mut self) -> Progress {
        let near = self.receive_over(0);
        let others = TRANSPORTS > NET + 1 || self.inboxes[NET].is_some();
        let other = others && self.receive_beside(near);
        if near > 0 || other { Progress::Some } else { Progress::None }
    }

    /// Handles slots of the other transports, after `near` slots over shared memory. Returns
    /// whether there were any.
    #[inline(never)]
    fn receive_beside(&mut self, near: u32) -> bool {
        let mut some = false;
        for transport in NET + 1..TRANSPORTS {
            some |= self.receive_over(transport) > 0;
        }
        if self.inboxes[NET].is_none() {
            return some;
        }
        if near > 0 {
            self.home.turns.came_near(near);
        }
        if self.home.turns.is_due() {
            self.home.turns.ask();
            let before = self.channels.shm;
            match self.receive_over(NET) {
                0 => self.home.turns.found_nothing(),
                count => {
                    self.home.turns.came_far(count);
                    self.channels.turn_far(before);
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
            Rx::Shm(inbox) => self.empty(inbox),
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
                    self.answer(self.sender_of(header), Kind::Done, header.op, 0);
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
        let from = self.sender_of(header);
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
        self.channels.shm.received += 1;
        self.channels.shm.received_bytes += header.len;
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
                let (peer, body) = (sender(&self.sources, header), Body::Bytes(bytes.keep()));
                let epoch = epoch(&self.epochs, peer);
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
            let (peer, body) = (sender(&self.sources, header), Body::Bytes(bytes.keep()));
            Kept { about, holder, peer, epoch: epoch(&self.epochs, peer), body }
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
        let from = self.sender_of(header);
        if let Err(errno) = self.link(from) {
            tracing::warn!("a message is lost, its sender is gone: {errno}");
            // Its receive fails: the next message must not take its place.
            return self.arrive_remote(source, header, Remote::default());
        }
        // Taken out of `links` for a moment, so that the bytes can be lent to `arrive`.
        let Some(link) = self.links[from as usize].take() else { return };
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
        self.links[from as usize] = Some(link);
        if matched && header.flags.contains(Flags::ACK) {
            self.answer(from, Kind::Done, header.op, 0);
        }
    }

    fn arrive_rendezvous(&mut self, source: u32, header: &Header, payload: SharedBytes<'_>) {
        let peer = self.sender_of(header);
        let Some(remote) = payload.remote(header.count, header.len) else {
            tracing::warn!("a long message with an impossible length");
            return;
        };
        if header.flags.contains(Flags::COPIED)
            && let Some(bytes) = self.read_copy(peer, header, &remote)
        {
            self.arrive(source, header, SharedBytes::from(&*bytes));
            self.answer(peer, Kind::Done, header.op, 0);
            return;
        }
        self.arrive_remote(source, header, remote);
    }

    /// Handles a message whose bytes are in its sender's memory.
    fn arrive_remote(&mut self, source: u32, header: &Header, remote: Remote) {
        let peer = self.sender_of(header);
        let envelope = Envelope { source, bits: header.bits, len: header.len };
        let (holder, about) = (self.device.holder(), self.about(header));
        let epoch = epoch(&self.epochs, peer);
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
