// SPDX-License-Identifier: BSD-2-Clause
//! The ring of a segment: many senders, one receiver, bounded, lock-free.
//!
//! ```text
//! send:    p = tail; if p - head >= SLOTS: full
//!          intent = (receiver, p); CAS tail p -> p + 1, else again
//!          write header and payload of slot p; turn of slot p = p + 1 (release)
//! receive: slot = head; if turn (acquire) != head + 1: empty
//!          use it; head += 1; publish head once a batch
//! ```
//!
//! The turn of a slot has another value in each lap of the ring, so slots need no clearing. `head`
//! and `tail` are on separate cache lines. A sender reads `head` only if its copy of `head` says
//! that the ring is full, and the receiver never reads `tail` while messages come in. A message of
//! up to 16 bytes moves one cache line between the cores.
//!
//! A sender that is killed after it has claimed a position and before it has stored the turn would
//! leave a slot that is never filled, and stop the ring. So a sender announces each claim in
//! advance, as an *intent* in its own segment, which has an intent word for each thread that may
//! send at the same time. If a position stays claimed and not filled, and no living peer has
//! announced its claim, the receiver skips the position ([`ShmRx::skip_stuck`]).
//!
//! Rejected:
//! - a ring for each pair of endpoints: memory grows with the square of the number of ranks, and
//!   the receiver polls them all;
//! - a turn that the receiver resets (Vyukov's queue): the sender waits for that line to come back.
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{
    ptr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ffi::Buffer;
use host::owner::Look;

use super::{
    doorbell,
    eager_policy::EagerPolicy,
    protocol::{self, Ring},
    segment::{INTENTS, SLOTS, Segment, slot_word},
};
use crate::{
    bytes::{Room, SharedBytes},
    contract::{Arrivals, Liveness, Received, Sent, is_short},
    identity::Identity,
    prefetch,
    wire::{CHECKS, Flags, Header, INLINE, Kind, PAYLOAD, SLOT},
};

impl Ring for Segment {
    type Word = AtomicU64;
    const SLOTS: u64 = SLOTS;

    #[inline]
    fn tail(&self) -> &AtomicU64 {
        self.tail()
    }

    #[inline]
    fn head(&self) -> &AtomicU64 {
        self.head()
    }

    #[inline]
    fn turn(&self, position: u64) -> &AtomicU64 {
        // SAFETY: the slot lies in this mapping, which the result borrows.
        unsafe { slot_word(self.slot(position), 0) }
    }
}

/// Returns whether the ring of a segment has room for another slot.
pub(crate) fn has_room(of: &Segment) -> bool {
    let tail = of.tail().load(Ordering::Relaxed);
    tail.wrapping_sub(of.head().load(Ordering::Acquire)) < SLOTS
}

/// Returns whether slots have come to the own ring of an endpoint that its owner has not handled,
/// or handles at present. Threads that do not poll the ring may call this.
#[inline]
#[must_use]
pub fn has_arrivals(own: &Segment) -> bool {
    protocol::is_filled(own, own.head().load(Ordering::Acquire))
}

/// The sending end of a peer's ring, for one thread at a time.
#[derive(Debug)]
pub(crate) struct TxRing {
    peer: Arc<Segment>,
    /// The name of the peer's ring; see [`Identity::ring`].
    ring: u32,
    /// This endpoint's number in the peer's list of senders.
    number: u16,
    /// Index of the intent word. One thread at a time uses it.
    thread: usize,
    /// Copy of the head of the ring.
    head: u64,
    /// The position after the slot that was filled last.
    next: u64,
    /// [`Flags::CHECKED`] for the first word of each slot, or 0.
    checked: u64,
    /// Checksum of the payload of the next slot.
    check: u32,
    pub(super) eager_policy: EagerPolicy,
}

impl TxRing {
    /// Creates the sending end that announces its claims in the intent word `thread`. `checks`:
    /// slots have checksums.
    pub(crate) fn new(peer: &Arc<Segment>, number: u16, thread: usize, checks: bool) -> Self {
        Self {
            peer: Arc::clone(peer),
            ring: peer.identity().ring(),
            number,
            thread,
            head: 0,
            next: 0,
            checked: if checks { u64::from(Flags::CHECKED.bits()) << 8 } else { 0 },
            check: 0,
            eager_policy: EagerPolicy::new(),
        }
    }

    /// Sets the checksum of the payload of the next slot.
    pub(super) fn set_check(&mut self, check: u32) {
        self.check = check;
    }

    /// Returns whether the peer has not closed its endpoint and is not marked as dead.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.peer.is_open()
    }

    /// Sends a message that fits a slot. Returns [`Sent::Yes`] or [`Sent::NoRoom`].
    #[inline(always)]
    pub(super) fn push_inline(&mut self, own: &Segment, header: &Header, message: &Buffer) -> Sent {
        debug_assert!(message.len() <= INLINE);
        let header = Header { kind: Kind::Inline, count: message.len() as u32, ..*header };
        self.push(own, header, |room| room.put_buffer(message))
    }

    /// Sends a slot, and wakes a peer that sleeps. Returns [`Sent::Yes`] or [`Sent::NoRoom`].
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        own: &Segment,
        mut header: Header,
        payload: impl FnOnce(&mut Room<'_>),
    ) -> Sent {
        header.peer = self.number.into();
        if !self.put(own, header.words(), payload) {
            return Sent::NoRoom;
        }
        doorbell::ring(&self.peer);
        Sent::Yes
    }

    /// Puts a slot into the ring. Returns false if the ring is full.
    #[inline(always)]
    pub(crate) fn put(
        &mut self,
        own: &Segment,
        [first, bits, data, len, op]: [u64; 5],
        payload: impl FnOnce(&mut Room<'_>),
    ) -> bool {
        let peer = &*self.peer;
        let claimed = protocol::claim(peer, own.intent(self.thread), self.ring, &mut self.head);
        let Some(position) = claimed else { return false };
        let slot = peer.slot(position);
        // SAFETY: the slot lies in the peer's mapping; the claim makes this
        // endpoint its only writer until the turn is stored.
        unsafe {
            // A loop over the words is not unrolled everywhere.
            slot_word(slot, 1).store(first | self.checked, Ordering::Relaxed);
            slot_word(slot, 2).store(bits, Ordering::Relaxed);
            slot_word(slot, 3).store(data, Ordering::Relaxed);
            slot_word(slot, 4).store(len, Ordering::Relaxed);
            slot_word(slot, 5).store(op, Ordering::Relaxed);
            payload(&mut Room::new(slot.add(PAYLOAD), INLINE));
            if self.checked != 0 {
                put_checks(slot, std::mem::take(&mut self.check));
            }
        }
        protocol::fill(peer, position);
        // If no other endpoint sends, this sender fills the following slots as well. It does not
        // prefetch the next slot, which the receiver polls.
        if position == self.next {
            prefetch::expect_writes(peer.slot(position.wrapping_add(2)), 1);
        }
        self.next = position.wrapping_add(1);
        true
    }
}

/// While several slots wait, a receiver prefetches the slot that is this number of slots ahead.
/// Until that line has come from another core, the receiver handles fewer slots than this. 3 to 6
/// perform alike; 10 gains nothing.
const AHEAD: u64 = 4;

/// The receiving end of an endpoint's own ring.
#[derive(Debug)]
pub struct ShmRx {
    own: Arc<Segment>,
    /// Position of the next slot.
    head: u64,
    /// The value of `head` that senders see.
    published: u64,
    /// Position that was claimed and not filled at the last call of [`ShmRx::skip_stuck`].
    stuck: Option<u64>,
}

impl Arrivals for ShmRx {
    #[inline(always)]
    fn peek(&mut self) -> Option<Received> {
        if self.is_empty() {
            return None;
        }
        // The receiver polls the next slot as soon as it has handled this one. The prefetch fetches
        // the line of the next slot meanwhile. Rejected: the sender prefetches that line as well.
        // The receiver's prefetch then takes the line from the sender, and half a round trip takes
        // 12 % longer.
        prefetch::expect_read(self.own.slot(self.head.wrapping_add(1)));
        let slot = self.own.slot(self.head);
        // SAFETY: the slot lies in our own mapping.
        let word = |index| unsafe { slot_word(slot, index).load(Ordering::Relaxed) };
        Some(Received { header: Header::read([word(1), word(2), word(3), word(4), word(5)]) })
    }

    #[inline(always)]
    fn payload(&self) -> SharedBytes<'_> {
        self.own.payload(self.head)
    }

    #[cold]
    fn check(&self) -> Option<u32> {
        // SAFETY: the slot lies in our own mapping.
        unsafe { checks_of(self.own.slot(self.head)) }
    }

    /// Prefetches the slot that is `AHEAD` slots ahead. A receiver that waits for the next message
    /// does not call this: the prefetch would take lines from a sender that is about to write them.
    #[inline(always)]
    fn expect_more(&self) {
        prefetch::expect_read(self.own.slot(self.head.wrapping_add(AHEAD)));
    }

    #[inline(always)]
    fn release(&mut self) {
        self.head = self.head.wrapping_add(1);
    }

    #[inline(always)]
    fn publish(&mut self) {
        if self.published != self.head {
            self.published = self.head;
            protocol::give_back(&*self.own, self.head);
        }
    }
}

impl ShmRx {
    pub(crate) fn new(own: &Arc<Segment>) -> Self {
        Self { own: Arc::clone(own), head: 0, published: 0, stuck: None }
    }

    /// Returns whether the next slot is not filled.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !protocol::is_filled(&*self.own, self.head)
    }

    pub(crate) fn position(&self) -> u64 {
        self.head
    }

    /// Returns the position after all slots that were sent or are being sent.
    pub(crate) fn end(&self) -> u64 {
        self.own.tail().load(Ordering::Acquire)
    }

    /// Skips the current position if this call and the previous one find it claimed but not filled,
    /// and no living sender has announced a claim of it. Returns whether the position was skipped.
    pub(crate) fn skip_stuck(&mut self) -> bool {
        let stuck = self.is_stuck().then_some(self.head);
        let before = std::mem::replace(&mut self.stuck, stuck);
        // A sender that has replaced its intent meanwhile has filled the position.
        let skips = stuck.is_some() && before == stuck && !self.is_intended() && self.is_stuck();
        if skips {
            self.release();
            self.publish();
        }
        skips
    }

    /// Returns whether the current position is claimed and not filled.
    fn is_stuck(&self) -> bool {
        self.is_empty() && protocol::is_claimed(&*self.own, self.head)
    }

    /// Returns whether a sender that may be alive announced a claim of the current position. All
    /// senders in the list are checked, also those from which no slot has come yet.
    fn is_intended(&self) -> bool {
        let mut senders = (0..self.own.list_pages()).flat_map(|page| self.own.senders_in(page));
        senders.any(|(_, who)| self.may_intend(who))
    }

    /// Returns whether a sender announced a claim of the current position and is alive, or may be.
    fn may_intend(&self, who: Identity) -> bool {
        match Segment::open_only(who) {
            Ok((peer, _)) => {
                self.is_intent_of(&peer) && peer.liveness(Look::Closely) == Liveness::Alive
            }
            // A shortage hides the state of the sender, so it may be alive.
            Err(errno) => is_short(errno),
        }
    }

    /// Returns whether a peer announced the claim of the current position.
    fn is_intent_of(&self, peer: &Segment) -> bool {
        let ring = self.own.identity().ring();
        (0..INTENTS).any(|thread| protocol::is_intent(peer.intent(thread), ring, self.head))
    }
}

/// Returns the checksum of a slot.
///
/// # Safety
/// `slot` is a slot of a mapping.
unsafe fn sum(slot: *mut u8) -> u32 {
    let mut bytes = [0_u8; SLOT];
    // SAFETY: a slot has SLOT bytes, and a mapping does not overlap the array.
    unsafe { ptr::copy_nonoverlapping(slot, bytes.as_mut_ptr(), SLOT) };
    crc32c::crc32c(&bytes[8..CHECKS + 4])
}

/// Writes the two checksums of a slot: `check`, the checksum of the message, and that of the slot.
/// All other words of the slot but the first must be written before.
///
/// # Safety
/// `slot` is a slot of a mapping that only the caller writes to.
#[cold]
unsafe fn put_checks(slot: *mut u8, check: u32) {
    // SAFETY: both words are in the slot, whose end is aligned to 8.
    unsafe {
        let checks = slot.add(CHECKS).cast::<u32>();
        checks.write(check);
        let sum = sum(slot);
        checks.add(1).write(sum);
    }
}

/// Returns the checksum of the message of a slot; `None` if the checksum of the slot is wrong.
///
/// # Safety
/// `slot` is a slot of a mapping.
unsafe fn checks_of(slot: *mut u8) -> Option<u32> {
    // SAFETY: both words are in the slot, whose end is aligned to 8.
    unsafe {
        let checks = slot.add(CHECKS).cast::<u32>();
        (checks.add(1).read() == sum(slot)).then(|| checks.read())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    fn header(bits: u64) -> Header {
        let (kind, flags) = (Kind::Inline, Flags::empty());
        Header { kind, flags, peer: 0, count: 8, bits, data: 0, len: 8, op: 0 }
    }

    fn segment(port: u16) -> Arc<Segment> {
        Arc::new(Segment::create(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap())
    }

    fn next(rx: &mut ShmRx) -> Option<Header> {
        let header = rx.peek()?.header.unwrap();
        rx.release();
        Some(header)
    }

    #[test]
    fn slots_stay_in_order_over_many_laps_and_a_full_ring_refuses() {
        let (own, peer) = (segment(79), segment(72));
        let (mut tx, mut rx) = (TxRing::new(&peer, 0, 0, false), ShmRx::new(&peer));
        let (mut sent, mut received) = (0, 0);
        for round in 0..10 {
            while tx.push(&own, header(sent), |_| ()) == Sent::Yes {
                sent += 1;
            }
            assert_eq!(sent - received, SLOTS);
            for _ in 0..SLOTS - round * 7 {
                assert_eq!(next(&mut rx).unwrap().bits, received);
                received += 1;
            }
            rx.publish();
        }
    }

    #[test]
    fn many_senders_lose_nothing_and_keep_their_order() {
        const EACH: u64 = 20_000;
        let peer = segment(73);
        std::thread::scope(|scope| {
            for (number, port) in (0..).zip(74..77) {
                let mut tx = TxRing::new(&peer, number, 0, false);
                scope.spawn(move || {
                    let own = segment(port);
                    for count in 0..EACH {
                        while tx.push(&own, header(count), |_| ()) != Sent::Yes {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let (mut rx, mut expected) = (ShmRx::new(&peer), [0; 3]);
            for _ in 0..3 * EACH {
                let header = loop {
                    match next(&mut rx) {
                        Some(header) => break header,
                        None => {
                            rx.publish();
                            std::thread::yield_now();
                        }
                    }
                };
                assert_eq!(header.bits, expected[header.peer as usize]);
                expected[header.peer as usize] += 1;
            }
            assert_eq!(expected, [EACH; 3]);
        });
    }

    #[test]
    fn a_claim_of_a_dead_peer_is_skipped() {
        let (own, peer) = (segment(77), segment(78));
        let (mut tx, mut rx) = (TxRing::new(&peer, 0, 0, false), ShmRx::new(&peer));
        // The state after a sender was killed between claim and turn.
        let claim = protocol::intent(peer.identity().ring(), 0);
        own.intent(0).store(claim, Ordering::Relaxed);
        peer.tail().store(1, Ordering::Relaxed);
        assert!(rx.peek().is_none());
        assert!(rx.is_stuck() && rx.is_intent_of(&own));
        own.intent(0).store(0, Ordering::Relaxed);
        assert!(!rx.is_intent_of(&own));
        own.intent(INTENTS - 1).store(claim, Ordering::Relaxed);
        assert!(rx.is_intent_of(&own), "another thread's");
        assert!(!rx.skip_stuck(), "it may be filled yet");
        assert!(rx.skip_stuck() && !rx.is_stuck());
        assert_eq!(tx.push(&own, header(5), |_| ()), Sent::Yes);
        assert_eq!(next(&mut rx).unwrap().bits, 5);
    }
}
