// SPDX-License-Identifier: BSD-2-Clause
//! Makes progress on an endpoint: handles the slots (`channel::wire`) that have come, and continues
//! answers and operations that waited for room. Messages go through the device to their receives.
//!
//! # The moment of arrival
//! A NIC matches a message when it comes, even while the program computes. The provider runs only
//! in calls of the program. So each operation on the device (a post, a probe or a cancel) first
//! handles the messages that have come, and the device sees all operations in the order of a NIC:
//!
//! ```text
//! ring       next slot not filled: one load, of a line that polls read as well
//!            otherwise: end = tail; handle slots up to end
//! network    last poll less than LOOK ago: nothing
//!            otherwise: poll until nothing comes
//! ```
//!
//! A message over shared memory *has come* when its slot and all slots before it are filled. A
//! sender that is preempted while it writes a slot holds up the messages of other senders behind
//! it. `end` is read once, so the call returns even if senders are faster than this thread.

use channel::{
    bytes::{Remote, SharedBytes},
    contract::{Arrivals, CopyError},
    rx::{NET, Rx, TRANSPORTS},
    wire::{Flags, Header, Kind},
};
use ffi::{
    Errno, flags,
    ops::cq::{Completion, Failure},
};
use host::owner::own_count;

use super::{
    Engine,
    copies::LongCopy,
    peers::Unknown,
    rma_target::Request,
    rx::{is_message, read_copy},
};
use crate::wait::pollable::Progress;

/// Maximum number of slots of one transport that one call handles. Then the caller gets its
/// completions.
const BATCH: u32 = 64;

/// Maximum number of times that a call looks at slots whose senders write them at present. This
/// takes some 10 us.
const SPINS: u32 = 500;
/// Maximum number of polls of the network before an operation on the device. Each handles up to 64
/// frames.
const MOST_POLLS: u32 = 1024;

impl Engine {
    /// Handles slots that have come, and continues work that waited for room. Returns whether it
    /// handled a slot, or sent or requested a part of an operation.
    #[inline]
    pub(crate) fn progress(&mut self) -> Progress {
        let mut progress = self.receive();
        if !self.peers.has_no_pending_answers() {
            self.peers.flush();
        }
        if !self.tx.has_no_streams() && self.tx.pump(&mut self.peers, &mut self.completions) {
            progress = Progress::Some;
        }
        if self.records_sends {
            self.rx.device.lock().polled();
        }
        if progress == Progress::Some {
            self.idle.note_found(own_count() > 1);
            if self.publisher.is_due() {
                self.show_and_look();
            }
        }
        progress
    }

    /// Handles a batch of slots of each transport, the network only if its schedule
    /// (`channel::polling`) includes it in this poll. Returns whether there were slots.
    #[inline]
    pub(super) fn receive(&mut self) -> Progress {
        let local = self.receive_over(0);
        let other = self.inbound.has_others() && self.receive_others(local);
        if local > 0 || other { Progress::Some } else { Progress::None }
    }

    /// Handles slots of the other transports, after a poll has handled `local` slots over shared
    /// memory. Returns whether there were slots.
    #[inline(never)]
    fn receive_others(&mut self, local: u32) -> bool {
        let mut some = false;
        for transport in NET + 1..TRANSPORTS {
            some |= self.receive_over(transport) > 0;
        }
        if !self.inbound.has_net() {
            return some;
        }
        if local > 0 {
            self.peers.transports.schedule.note_near(local);
        }
        if self.peers.transports.schedule.advance() {
            some |= self.poll_net();
        }
        some
    }

    /// Handles a batch of slots of the network. Returns whether there were slots.
    pub(super) fn poll_net(&mut self) -> bool {
        self.peers.transports.schedule.note_poll_time();
        let before = self.peers.channels.shm;
        match self.receive_over(NET) {
            0 => {
                self.peers.transports.schedule.note_empty_poll();
                false
            }
            count => {
                self.peers.transports.schedule.note_far(count);
                self.peers.channels.move_to_net(before);
                true
            }
        }
    }

    /// Handles a batch of slots of one transport. Returns their number.
    #[inline(always)]
    pub(super) fn receive_over(&mut self, transport: usize) -> u32 {
        let Some(mut receiver) = self.inbound.take(transport) else { return 0 };
        #[cfg(test)]
        crate::panic_tests::PanicAt::Receiver.reached();
        let count = match &mut *receiver {
            Rx::Shm(receiver) => self.handle_batch(receiver),
            receiver => self.handle_batch(receiver),
        };
        self.inbound.put_back(transport, receiver);
        count
    }

    /// Handles up to [`BATCH`] slots of a receiving end, until a slot must stay there. Returns how
    /// many it handled or dropped.
    fn handle_batch<I: Arrivals>(&mut self, receiver: &mut I) -> u32 {
        let (mut count, mut is_short) = (0, false);
        while count < BATCH && !self.rx.copies.holds_arrivals() {
            let Some(slot) = receiver.peek() else { break };
            if count > 0 {
                receiver.expect_more();
            }
            match slot.header {
                Some(header)
                    if header.flags.intersects(Flags::CHECKED.union(Flags::TIMED))
                        && !self.check_slot(receiver, &header) =>
                {
                    self.fail_damaged(receiver);
                }
                Some(header) => match self.source_of(&header) {
                    Ok(source) => {
                        if self.rx.holds_ring() && self.rx.is_held_back(source, &header) {
                            break;
                        }
                        let payload = receiver.payload().skip(header.flags.payload_shift());
                        self.handle(source, &header, payload);
                    }
                    Err(Unknown::Unlisted) => {
                        tracing::warn!(
                            "dropped a slot: its sender is unlisted, or is not the endpoint \
                             that it claims to be"
                        );
                    }
                    Err(Unknown::Short) => {
                        is_short = true;
                        break;
                    }
                },
                None => tracing::warn!("dropped a slot: its header is invalid"),
            }
            receiver.release();
            count += 1;
        }
        if count > 0 {
            receiver.publish();
        }
        if count > 0 || is_short {
            self.inbound.set_short(is_short);
        }
        count
    }

    /// Handles a slot. This is inlined. Out of line, with the header in memory, a message would
    /// take 23 instructions more.
    #[inline(always)]
    fn handle(&mut self, source: u32, header: &Header, payload: SharedBytes<'_>) {
        match header.kind {
            Kind::Inline if header.len <= payload.len() as u64 => {
                let bytes = payload.first(header.len as usize);
                if self.arrive(source, header, bytes) && header.flags.contains(Flags::ACK) {
                    self.peers.answer(self.peers.sender(header), Kind::Done, header.op, 0);
                }
            }
            Kind::Inline => tracing::warn!(
                "dropped a message of {} bytes: its slot has only {}",
                header.len,
                payload.len()
            ),
            Kind::Buffered => self.arrive_buffered(source, header, payload),
            Kind::Rendezvous => self.arrive_rendezvous(source, header, payload),
            _ => self.handle_control(header, payload),
        }
    }

    /// Handles a slot that is not a message.
    #[inline]
    fn handle_control(&mut self, header: &Header, payload: SharedBytes<'_>) {
        let Self { peers, completions, rx, tx, target, .. } = self;
        let from = peers.sender(header);
        match header.kind {
            Kind::Inline | Kind::Buffered | Kind::Rendezvous => {}
            Kind::Done | Kind::Failed => tx.finished(peers, completions, from, header),
            Kind::Pull => tx.pulled(peers, from, header),
            Kind::Chunk | Kind::Landed => rx.chunk(peers, completions, from, header, payload),
            Kind::Dropped => rx.end_transfer(completions, from, header.op),
            Kind::Write | Kind::Read | Kind::Atomic => {
                let request = Request { from, header, payload, check: rx.slot_check() };
                target.serve(peers, completions, &mut rx.copies, request);
            }
            Kind::Answer => {
                tx.answered(peers, completions, rx.slot_check(), from, header, payload);
            }
        }
    }

    #[inline(always)]
    fn arrive(&mut self, source: u32, header: &Header, bytes: SharedBytes<'_>) -> bool {
        self.rx.arrive(&mut self.peers, &mut self.completions, source, header, bytes)
    }

    fn arrive_buffered(&mut self, source: u32, header: &Header, payload: SharedBytes<'_>) {
        let from = self.peers.sender(header);
        if self.peers.link(from).is_err() {
            tracing::warn!("lost a message, because its sender is gone: its receive fails");
            // The message still matches a receive, which fails. Otherwise the next message would
            // match this receive.
            return self.arrive_remote(source, header, Remote::default());
        }
        // The link is taken for a moment, so that the bytes can be lent to `arrive`.
        let Some(link) = self.peers.take(from) else { return };
        #[cfg(test)]
        crate::panic_tests::PanicAt::Link.reached();
        let matched = match link.body(header, payload) {
            Some(body) => {
                // The first bytes are loaded into the cache while the device searches for the
                // receive. For bytes in a slot this gains nothing.
                body.bytes().expect();
                self.arrive(source, header, body.bytes())
            }
            None => {
                tracing::warn!(
                    "dropped a message: its sender has no buffer with the number in the slot"
                );
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
            tracing::warn!("dropped a long message: its slot does not list segments of its length");
            return;
        };
        if header.flags.contains(Flags::COPIED)
            && let Some(bytes) = read_copy(&mut self.peers, peer, header, &remote)
        {
            self.arrive(source, header, SharedBytes::from(&*bytes));
            self.peers.answer(peer, Kind::Done, header.op, 0);
            return;
        }
        self.arrive_remote(source, header, remote);
    }

    /// See [`super::rx::Rx::arrive_remote`].
    fn arrive_remote(&mut self, source: u32, header: &Header, remote: Remote) {
        self.rx.arrive_remote(&mut self.peers, &mut self.completions, source, header, remote);
    }

    /// Returns false if the next slot has checksums and is not what its sender wrote. Notes the
    /// checksum of its payload, and for the recorder the time of its message.
    #[cold]
    fn check_slot(&mut self, receiver: &impl Arrivals, header: &Header) -> bool {
        if header.flags.contains(Flags::CHECKED) {
            let check = receiver.check();
            self.rx.set_slot_check(check.unwrap_or_default());
            if check.is_none() {
                return false;
            }
        }
        if header.flags.contains(Flags::TIMED)
            && is_message(header.kind)
            && let Some(came) = receiver.time()
        {
            self.rx.device.note_came(header.is_tagged(), came);
        }
        true
    }

    /// Reports that the next slot differs from what its sender wrote. The error goes to the posted
    /// receive that matches its message, or names no receive.
    #[cold]
    fn fail_damaged(&mut self, receiver: &mut impl Arrivals) {
        tracing::error!("FI_TCAM_CHECK: a slot differs from what its sender wrote");
        let header = receiver.peek().and_then(|slot| slot.header);
        if let Some(header) = header.filter(|header| is_message(header.kind))
            && let Ok(source) = self.source_of(&header)
            && self.rx.fail_expected(&mut self.completions, source, &header)
        {
            return;
        }
        let completion =
            Completion { flags: flags::RECV, source: flags::ADDR_UNSPEC, ..Default::default() };
        self.completions.rx.fail(Failure { completion, overflow: 0, errno: Errno::ECRC });
    }

    /// Makes the next copy that is due, with the lock of the engine. Returns whether a copy was
    /// due.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn make_copy(&mut self) -> bool {
        let Some(copy) = self.rx.copies.begin() else { return false };
        let copied = copy.make();
        self.copied(copy, copied);
        true
    }

    /// Handles the result of a copy that [`super::copies::Copies::begin`] returned.
    pub(crate) fn copied(&mut self, copy: LongCopy, copied: std::result::Result<(), CopyError>) {
        let Self { peers, completions, rx, target, .. } = self;
        rx.copies.end(&copy);
        match copy {
            LongCopy::Message(copy) => rx.message_copied(peers, completions, *copy, copied),
            LongCopy::Memory(copy) => target.memory_copied(peers, completions, &copy, copied),
        }
    }
}

/// The moment of arrival; see the module.
impl Engine {
    /// Handles all messages that have come, before an operation on the device. With
    /// `FI_TCAM_ARRIVAL=poll`, does nothing.
    #[inline(always)]
    pub(crate) fn receive_before_operation(&mut self) {
        if self.arrival_of_nic && (self.inbound.has_over(0) || self.inbound.has_others()) {
            self.receive_arrived();
        }
    }

    /// Handles all messages that have come.
    #[inline(never)]
    pub(crate) fn receive_arrived(&mut self) {
        for transport in (0..TRANSPORTS).filter(|&transport| transport != NET) {
            let Some(end) = self.inbound.end_over(transport) else { continue };
            let mut spins = SPINS;
            while self.inbound.position_over(transport) < end && spins > 0 {
                if self.receive_over(transport) == 0 {
                    // A slot that has come and must stay unhandled is not waited for.
                    if self.inbound.has_over(transport) {
                        break;
                    }
                    spins -= 1;
                    std::hint::spin_loop();
                }
            }
        }
        if self.inbound.has_net() && self.peers.transports.schedule.is_look_due() {
            let mut polls = 0..MOST_POLLS;
            while polls.next().is_some() && self.poll_net() {}
        }
    }
}
