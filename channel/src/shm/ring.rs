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
//! If the owner counts, the sender that claims the last free slot hands the ring over to the
//! overflow area ([`super::overflow`]). Up to 65,536 further messages then do not wait for an owner
//! that computes. [`super::protocol`] has the steps. All messages stay in order. While the
//! ring is not full, this costs nothing: the tail shows a ring that was handed over, and an empty
//! poll still loads only the turn of the next slot.
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
use host::{clock, owner::Look};

use super::{
    doorbell,
    eager_policy::EagerPolicy,
    overflow,
    protocol::{self, Ring, Step},
    segment::{Area, INTENTS, SLOTS, Segment, SlotAt, slot_word},
};
use crate::{
    bytes::{Room, SharedBytes},
    contract::{Arrivals, Liveness, Received, Sent, is_short},
    identity::Identity,
    prefetch,
    wire::{CHECKED_INLINE, CHECKS, Flags, Header, INLINE, Kind, PAYLOAD, SLOT},
};

impl Ring for Segment {
    type Word = AtomicU64;
    const SLOTS: u64 = SLOTS;
    const OVERFLOW: u64 = overflow::SLOTS;

    #[inline]
    fn tail(&self) -> &AtomicU64 {
        self.tail()
    }

    #[inline]
    fn head(&self) -> &AtomicU64 {
        self.head()
    }
}

/// Returns whether a sender can claim another slot of the ring of a peer or of its overflow area.
pub(crate) fn has_room(of: &Segment) -> bool {
    let tail = of.tail().load(Ordering::Acquire);
    if protocol::is_overflow(tail) {
        return of.reserve_overflow(protocol::index_of::<Segment>(tail));
    }
    tail.wrapping_sub(of.head().load(Ordering::Acquire)) < SLOTS
}

/// Returns whether slots have come to the own ring of an endpoint that its owner has not handled,
/// or handles at present. Threads that do not poll the ring may call this.
#[inline]
#[must_use]
pub fn has_arrivals(own: &Segment) -> bool {
    let head = own.head().load(Ordering::Acquire);
    // SAFETY: the slot lies in this mapping, which the word does not outlive.
    let turn = protocol::turn(unsafe { slot_word(own.slot(head), 0) });
    // While the ring is handed over, only the owner knows the next slot.
    turn == head.wrapping_add(1) || protocol::is_overflow(turn | head)
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
    /// [`Flags::CHECKED`] and [`Flags::TIMED`] as in the first word of each slot; 0 if slots have
    /// neither checksums nor times.
    extras: u64,
    /// Checksum of the payload of the next slot.
    check: u32,
    pub(super) eager_policy: EagerPolicy,
}

impl TxRing {
    /// Creates the sending end that announces its claims in the intent word `thread`. `checks`:
    /// slots have checksums. They have times if the peer asks for them.
    pub(crate) fn new(peer: &Arc<Segment>, number: u16, thread: usize, checks: bool) -> Self {
        let mut extras = Flags::empty();
        extras.set(Flags::CHECKED, checks);
        extras.set(Flags::TIMED, peer.wants_times());
        Self {
            peer: Arc::clone(peer),
            ring: peer.identity().ring(),
            number,
            thread,
            head: 0,
            next: 0,
            extras: u64::from(extras.bits()) << 8,
            check: 0,
            eager_policy: EagerPolicy::new(),
        }
    }

    fn extras(&self) -> Flags {
        Flags::from_bits_retain((self.extras >> 8) as u8)
    }

    /// Returns the maximum length in bytes of a payload that needs no buffer.
    pub(super) fn inline_len(&self) -> usize {
        let extras = self.extras();
        let room = if extras.contains(Flags::CHECKED) { CHECKED_INLINE } else { INLINE };
        room - extras.payload_shift()
    }

    /// Sets the checksum of the payload of the next slot.
    pub(super) fn set_check(&mut self, check: u32) {
        self.check = check;
    }

    /// Notes that a message to the peer waits until a buffer is free.
    #[cold]
    pub(super) fn note_waiting(&mut self, own: &Segment) {
        self.peer.note_waiting(own);
        // The next claim goes to `claim_last`, which notes that the message no longer waits.
        self.head = self.peer.tail().load(Ordering::Relaxed).wrapping_sub(SLOTS);
    }

    /// Returns whether the peer has not closed its endpoint and is not marked as dead.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.peer.is_open()
    }

    /// Sends a message that fits a slot. Returns [`Sent::Yes`] or [`Sent::NoRoom`].
    #[inline(always)]
    pub(super) fn push_inline(&mut self, own: &Segment, header: &Header, message: &Buffer) -> Sent {
        debug_assert!(message.len() <= self.inline_len());
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
        // The clock is read before the claim. If this thread loses its processor after the claim,
        // the slots behind have later times nevertheless.
        let time = if self.extras().contains(Flags::TIMED) { clock::now() } else { 0 };
        let intent = own.intent(self.thread);
        let (slot, turn) = match protocol::claim(peer, intent, self.ring, self.head) {
            Some(position) => (peer.slot(position), position.wrapping_add(1)),
            None => match claim_last(peer, own, self.thread, &mut self.head, first) {
                Some(claimed) => claimed,
                None => return false,
            },
        };
        // SAFETY: the slot lies in a mapping of the peer's segment; the claim makes this
        // endpoint its only writer until the turn is stored.
        unsafe {
            // A loop over the words is not unrolled everywhere.
            slot_word(slot, 1).store(first | self.extras, Ordering::Relaxed);
            slot_word(slot, 2).store(bits, Ordering::Relaxed);
            slot_word(slot, 3).store(data, Ordering::Relaxed);
            slot_word(slot, 4).store(len, Ordering::Relaxed);
            slot_word(slot, 5).store(op, Ordering::Relaxed);
            let shift = self.extras().payload_shift();
            payload(&mut Room::new(slot.add(PAYLOAD + shift), INLINE - shift));
            if self.extras != 0 {
                put_extras(slot, self.extras(), time, std::mem::take(&mut self.check));
            }
            protocol::fill(slot_word(slot, 0), turn);
        }
        // If no other endpoint sends, this sender fills the following slots as well. It does not
        // prefetch the next slot, which the receiver polls.
        if turn.wrapping_sub(1) == self.next {
            prefetch::expect_writes(peer.slot(turn.wrapping_add(1)), 1);
        }
        self.next = turn;
        true
    }
}

/// Claims a slot of a ring that may be full or handed over. `first` is the first word of the header.
/// Returns the slot and the turn with which it is filled; `None` if there is no room. Notes a
/// message that finds no room. The sender's copy of the head is then that of a full ring, so the
/// next claim also comes here.
#[cold]
#[inline(never)]
fn claim_last(
    peer: &Segment,
    own: &Segment,
    thread: usize,
    head: &mut u64,
    first: u64,
) -> Option<(*mut u8, u64)> {
    let may_use = |index| peer.reserve_overflow(index);
    let ring = peer.identity().ring();
    let claimed = protocol::claim_last(peer, own.intent(thread), ring, head, may_use);
    if Kind::is_message_in(first) {
        match claimed {
            Some(_) => peer.end_waiting(),
            None => peer.note_waiting(own),
        }
    }
    let protocol::Claim { place, turn } = claimed?;
    let slot = match protocol::is_overflow(place) {
        true => peer.overflow_slot(protocol::index_of::<Segment>(place))?,
        false => peer.slot(place),
    };
    Some((slot, turn))
}

/// While several slots wait, a receiver prefetches the slot that is this number of slots ahead.
/// Until that line has come from another core, the receiver handles fewer slots than this. 3 to 6
/// perform alike; 10 gains nothing.
const AHEAD: usize = 4;

/// The receiving end of an endpoint's own ring.
#[derive(Debug)]
pub struct ShmRx {
    own: Arc<Segment>,
    /// Place of the next slot.
    head: u64,
    /// The area of that slot.
    area: Area,
    slot: SlotAt,
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
        let slot = self.own.slot_at(self.slot);
        prefetch::expect_read(slot.wrapping_add(SLOT));
        // SAFETY: the slot lies in our own mapping.
        let word = |index| unsafe { slot_word(slot, index).load(Ordering::Relaxed) };
        Some(Received { header: Header::read([word(1), word(2), word(3), word(4), word(5)]) })
    }

    #[inline(always)]
    fn payload(&self) -> SharedBytes<'_> {
        self.own.payload(self.slot)
    }

    #[cold]
    fn check(&self) -> Option<u32> {
        // SAFETY: the slot lies in our own mapping.
        unsafe { checks_of(self.own.slot_at(self.slot)) }
    }

    /// Prefetches the slot that is `AHEAD` slots ahead. A receiver that waits for the next message
    /// does not call this: the prefetch would take lines from a sender that is about to write them.
    #[inline(always)]
    fn expect_more(&self) {
        prefetch::expect_read(self.own.slot_at(self.slot).wrapping_add(AHEAD * SLOT));
    }

    #[inline(always)]
    fn release(&mut self) {
        self.go_to(self.head.wrapping_add(1));
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
        let (own, area) = (Arc::clone(own), Area::RING);
        Self { own, head: 0, area, slot: area.slot(0), published: 0, stuck: None }
    }

    /// Returns whether the next slot is not filled. If the ring was handed over, goes on in the
    /// overflow area, and back to the ring.
    #[inline]
    pub(crate) fn is_empty(&mut self) -> bool {
        let turn = self.turn();
        turn != self.head.wrapping_add(1)
            && !(protocol::is_overflow(turn | self.head) && self.follow(turn))
    }

    /// Goes to a place in the current area.
    #[inline]
    fn go_to(&mut self, head: u64) {
        self.head = head;
        self.slot = self.area.slot(head);
    }

    /// Returns the turn of the next slot.
    #[inline]
    fn turn(&self) -> u64 {
        // SAFETY: the slot lies in our own mapping.
        protocol::turn(unsafe { slot_word(self.own.slot_at(self.slot), 0) })
    }

    /// Goes on where the next slot is, if the ring was handed over or everything in the overflow
    /// area was handled. `turn` is the turn of the current slot. Returns whether the next slot is
    /// filled.
    #[cold]
    #[inline(never)]
    fn follow(&mut self, turn: u64) -> bool {
        let is_in_ring = self.area == Area::RING;
        let (head, area) = match protocol::follow(&*self.own, self.head, is_in_ring, turn) {
            Step::Stay => return false,
            Step::Handover(head) => (head, Area::RING),
            Step::Ring(head) => {
                self.published = head;
                (head, Area::RING)
            }
            Step::Overflow(head) => {
                let area = self.own.overflow_area(protocol::index_of::<Segment>(head));
                let Some(area) = area else { return false };
                (head, area)
            }
        };
        self.area = area;
        self.go_to(head);
        self.turn() == self.head.wrapping_add(1)
    }

    /// Returns the position of the next slot. It only grows, but may skip positions.
    pub(crate) fn position(&self) -> u64 {
        protocol::position_of(self.head)
    }

    /// Returns the position after all slots that were sent or are being sent.
    pub(crate) fn end(&self) -> u64 {
        protocol::position_of(self.own.tail().load(Ordering::Acquire))
    }

    /// Skips the current position if this call and the previous one find it claimed but not filled,
    /// and no living sender has announced a claim of it. Returns whether the position was skipped.
    pub(crate) fn skip_stuck(&mut self) -> bool {
        let stuck = self.is_stuck().then_some(self.head);
        let before = std::mem::replace(&mut self.stuck, stuck);
        // A sender that has replaced its intent meanwhile has filled the position.
        let skips = stuck.is_some() && before == stuck && !self.is_intended() && self.is_stuck();
        if skips {
            self.go_to(protocol::after_skipped(&*self.own, self.head));
            self.publish();
        }
        skips
    }

    /// Returns whether the current position is claimed and not filled.
    fn is_stuck(&mut self) -> bool {
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

/// Writes the time of the send and the checksums of a slot whose other words are written. `check`
/// is the checksum of the message.
///
/// # Safety
/// `slot` is a slot of a mapping that only the caller writes to.
#[inline(never)]
unsafe fn put_extras(slot: *mut u8, extras: Flags, time: u64, check: u32) {
    if extras.contains(Flags::TIMED) {
        // SAFETY: the word is in the slot.
        unsafe { slot_word(slot, PAYLOAD / 8).store(time, Ordering::Relaxed) };
    }
    if extras.contains(Flags::CHECKED) {
        // SAFETY: as the caller ensures.
        unsafe { put_checks(slot, check) };
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

    /// A segment that accepts overflow.
    fn extended(port: u16) -> Arc<Segment> {
        let mut segment = Segment::create(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap();
        segment.accept_overflow();
        Arc::new(segment)
    }

    /// The segment of a peer, as its senders open it.
    fn opened(port: u16) -> Arc<Segment> {
        Arc::new(Segment::open(port).unwrap().0)
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

    /// Messages that a ring and its overflow area hold. The handover takes the last slot of the
    /// ring.
    const ALL: u64 = SLOTS + overflow::SLOTS;

    #[test]
    fn an_owner_that_computes_gets_all_messages_in_order() {
        let (own, peer) = (segment(260), extended(261));
        let to = opened(261);
        let (mut tx, mut rx) = (TxRing::new(&to, 0, 0, false), ShmRx::new(&peer));
        let (mut sent, mut received) = (0, 0);
        for round in 0..4 {
            let most = [ALL, SLOTS, SLOTS + 1, 3 * SLOTS + 5][round];
            while sent - received < most {
                assert_eq!(tx.push(&own, header(sent), |_| ()), Sent::Yes, "{round} {sent}");
                sent += 1;
            }
            let is_full = most == ALL;
            assert_eq!(has_room(&to), !is_full);
            if is_full {
                for _ in 0..3 {
                    assert_eq!(tx.push(&own, header(sent), |_| ()), Sent::NoRoom);
                }
                assert_eq!(own.waited(), 1, "a message that is tried again is counted once");
            }
            while let Some(header) = next(&mut rx) {
                assert_eq!(header.bits, received);
                received += 1;
                if received % 64 == 0 {
                    rx.publish();
                }
            }
            assert_eq!((received, rx.position()), (sent, rx.end()), "{round}");
            assert!(has_room(&to) && rx.area == Area::RING);
        }
        assert_eq!(own.waited(), 1);
    }

    #[test]
    fn messages_that_come_meanwhile_follow_in_the_overflow_area() {
        let (own, peer) = (segment(262), extended(263));
        let to = opened(263);
        let (mut tx, mut rx) = (TxRing::new(&to, 0, 0, false), ShmRx::new(&peer));
        for sent in 0..2 * SLOTS {
            assert_eq!(tx.push(&own, header(sent), |_| ()), Sent::Yes);
        }
        // The backlog stays as long until the overflow area is used up. Then the ring is used again.
        let (mut sent, mut received) = (2 * SLOTS, 0);
        while received < 3 * overflow::SLOTS {
            if let Some(header) = next(&mut rx) {
                assert_eq!(header.bits, received);
                received += 1;
                rx.publish();
            } else {
                assert_eq!((received, rx.area), (sent, Area::RING));
            }
            if tx.push(&own, header(sent), |_| ()) == Sent::Yes {
                sent += 1;
            }
        }
        assert!(own.waited() > 0 && received <= sent);
    }

    #[test]
    fn a_ring_without_counts_is_never_handed_over() {
        let (own, peer) = (segment(264), segment(265));
        let to = opened(265);
        let mut tx = TxRing::new(&to, 0, 0, false);
        let sent = (0..2 * SLOTS).filter(|&bits| tx.push(&own, header(bits), |_| ()) == Sent::Yes);
        assert_eq!(sent.count() as u64, SLOTS);
        assert_eq!(peer.tail().load(Ordering::Relaxed), SLOTS);
        assert_eq!(peer.overflow_area(0), None);
    }

    #[test]
    fn threads_keep_their_order_while_the_ring_is_handed_over_and_back() {
        const EACH: u64 = 100_000;
        let peer = extended(266);
        // The count of all messages that were sent, in the order of their sends.
        let clock = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for (number, port) in (0..).zip(267..270) {
                let (to, clock) = (opened(266), &clock);
                scope.spawn(move || {
                    let (own, mut tx) = (segment(port), TxRing::new(&to, number, 0, false));
                    for count in 0..EACH {
                        let before = clock.load(Ordering::Acquire);
                        let header = Header { data: before, ..header(count) };
                        while tx.push(&own, header, |_| ()) != Sent::Yes {
                            std::thread::yield_now();
                        }
                        clock.fetch_add(1, Ordering::Release);
                    }
                });
            }
            let (mut rx, mut expected, mut received) = (ShmRx::new(&peer), [0; 3], 0);
            while received < 3 * EACH {
                let Some(header) = next(&mut rx) else {
                    rx.publish();
                    std::thread::yield_now();
                    continue;
                };
                assert_eq!(header.bits, expected[header.peer as usize]);
                // All messages that had been sent before this one was begun have come.
                assert!(header.data <= received, "{} of {received}", header.data);
                expected[header.peer as usize] += 1;
                received += 1;
                if received % 50_000 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
            assert!(rx.is_empty());
        });
    }

    #[test]
    fn claims_of_dead_peers_are_skipped_at_and_after_a_handover() {
        let (own, peer) = (segment(270), extended(271));
        let to = opened(271);
        let (mut tx, mut rx) = (TxRing::new(&to, 0, 0, false), ShmRx::new(&peer));
        let claims = |count: u64| {
            let mut head = 0;
            for _ in 0..count {
                let claimed = claim_last(&to, &own, 0, &mut head, 0).unwrap();
                assert!(!claimed.0.is_null());
            }
        };
        for bits in 0..SLOTS - 1 {
            assert_eq!(tx.push(&own, header(bits), |_| ()), Sent::Yes);
        }
        // Senders are killed while they hand over, and in the overflow area.
        claims(3);
        own.intent(0).store(0, Ordering::Relaxed);
        assert_eq!(tx.push(&own, header(SLOTS - 1), |_| ()), Sent::Yes);
        for bits in 0..SLOTS - 1 {
            assert_eq!(next(&mut rx).unwrap().bits, bits);
        }
        for _ in 0..3 {
            assert!(rx.peek().is_none());
            assert!(!rx.skip_stuck() && rx.skip_stuck());
        }
        assert_eq!(next(&mut rx).unwrap().bits, SLOTS - 1);
        assert!(rx.is_empty() && rx.position() == rx.end());
        assert_eq!(tx.push(&own, header(7), |_| ()), Sent::Yes);
        assert_eq!(next(&mut rx).unwrap().bits, 7);
    }

    #[test]
    fn damaged_words_do_no_harm() {
        let (own, peer) = (segment(272), extended(273));
        let to = opened(273);
        let words = [1_u64 << 63, u64::MAX, 1 << 53, (1 << 63) | 0x1ffff, (1 << 63) | 65_536, 9];
        for (tail, head) in words.iter().flat_map(|&tail| words.map(|head| (tail, head))) {
            let (mut tx, mut rx) = (TxRing::new(&to, 0, 0, false), ShmRx::new(&peer));
            peer.tail().store(tail, Ordering::Relaxed);
            peer.head().store(head, Ordering::Relaxed);
            for bits in 0..2000 {
                tx.push(&own, header(bits), |_| ());
                if rx.peek().is_some() {
                    rx.release();
                }
                rx.skip_stuck();
                rx.publish();
            }
        }
    }
}
