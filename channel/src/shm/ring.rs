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
//! A turn says which lap it belongs to, so a slot needs no clearing. `head` and
//! `tail` are on lines of their own: a sender reads `head` only when its copy
//! says that the ring is full, the receiver never reads `tail` while messages
//! come in. One message moves one cache line between the cores.
//!
//! A sender that is killed between claim and turn would leave a slot that is
//! never filled and stop the ring. It has announced the claim as its *intent*
//! in its own segment, which has a word for each of its threads that may send at a time; the
//! receiver, when the ring stands still with positions
//! claimed, skips a position that no living peer intends ([`Receiver::skip`]).
//!
//! Rejected: a ring a pair of endpoints (memory grows with the square of ranks,
//! and the receiver polls them all); a turn that the receiver resets (Vyukov's
//! queue: the sender then waits for that line to come back).
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    protocol::{self, Ring},
    segment::{INTENTS, SLOTS, Segment, slot_word},
};
use crate::{
    bytes::SharedBytes,
    identity::Identity,
    lines,
    wire::{CHECKS, Flags, Header, PAYLOAD, SLOT},
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

/// Whether the ring of a segment takes another slot.
pub(crate) fn has_room(of: &Segment) -> bool {
    let tail = of.tail().load(Ordering::Relaxed);
    tail.wrapping_sub(of.head().load(Ordering::Acquire)) < SLOTS
}

/// The sending end of a peer's ring.
#[derive(Debug)]
pub(crate) struct Sender {
    /// The name of the peer's ring.
    ring: u32,
    /// Which of our threads claims: one has this number at a time.
    thread: usize,
    head: u64,
    /// The position behind the slot that was filled last.
    next: u64,
    /// What the first word of a slot has besides: that there are checksums, or nothing.
    checked: u64,
    /// That of what goes with the next slot.
    check: u32,
}

impl Sender {
    pub(crate) fn new(peer: Identity, thread: usize) -> Self {
        Self { ring: peer.ring(), thread, head: 0, next: 0, checked: 0, check: 0 }
    }

    /// From now on slots have checksums.
    pub(crate) fn add_checks(&mut self) {
        self.checked = u64::from(Flags::CHECKED.bits()) << 8;
    }

    /// The checksum of what goes with the next slot.
    pub(crate) fn set_check(&mut self, check: u32) {
        self.check = check;
    }

    /// Puts a slot into the ring; `false` if it is full. `payload` writes at
    /// most `INLINE` bytes to the pointer it gets.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        own: &Segment,
        peer: &Segment,
        header: &Header,
        payload: impl FnOnce(*mut u8),
    ) -> bool {
        self.put(own, peer, header.words(), payload)
    }

    /// A slot with any words and any payload.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn push_words(
        &mut self,
        own: &Segment,
        peer: &Segment,
        words: [u64; 5],
        payload: &[u64; crate::wire::INLINE / 8],
    ) -> bool {
        self.put(own, peer, words, |to| {
            // SAFETY: a payload has room for INLINE bytes.
            unsafe { to.cast::<[u64; crate::wire::INLINE / 8]>().write_unaligned(*payload) };
        })
    }

    #[inline(always)]
    fn put(
        &mut self,
        own: &Segment,
        peer: &Segment,
        mut words: [u64; 5],
        payload: impl FnOnce(*mut u8),
    ) -> bool {
        words[0] |= self.checked;
        let claimed = protocol::claim(peer, own.intent(self.thread), self.ring, &mut self.head);
        let Some(position) = claimed else { return false };
        let slot = peer.slot(position);
        // SAFETY: the slot lies in the peer's mapping; the claim makes this
        // endpoint its only writer until the turn is stored.
        unsafe {
            for (index, word) in words.into_iter().enumerate() {
                slot_word(slot, index + 1).store(word, Ordering::Relaxed);
            }
            payload(slot.add(PAYLOAD));
            if self.checked != 0 {
                put_checks(slot, std::mem::take(&mut self.check));
            }
        }
        protocol::fill(peer, position);
        // Where nobody else sends, this sender fills the slots that follow as well. Not the next
        // one, at which the receiver looks all the time.
        if position == self.next {
            lines::expect_writes(peer.slot(position.wrapping_add(2)), 1);
        }
        self.next = position.wrapping_add(1);
        true
    }
}

/// How far ahead a receiver has slots fetched while several wait: further than it gets until a
/// line has come from another core. 3 to 6 are alike, 10 gains nothing.
const AHEAD: u64 = 4;

/// The receiving end of an endpoint's own ring.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Receiver {
    head: u64,
    published: u64,
}

/// A slot that was filled.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its header, or none if a peer wrote nonsense.
    pub header: Option<Header>,
}

/// The checksum of a slot.
///
/// # Safety
/// `slot` is one of a mapping.
unsafe fn sum(slot: *mut u8) -> u32 {
    let mut bytes = [0_u8; SLOT];
    // SAFETY: a slot has so many bytes, and a mapping overlaps nothing of ours.
    unsafe { ptr::copy_nonoverlapping(slot, bytes.as_mut_ptr(), SLOT) };
    crc32c::crc32c(&bytes[8..CHECKS + 4])
}

/// Writes the checksums of a slot, of which all else is written but its first word.
///
/// # Safety
/// `slot` is one that the caller alone writes to.
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

/// The checksum of the message of a slot; none if the slot's own is wrong.
///
/// # Safety
/// `slot` is one of a mapping.
unsafe fn checks_of(slot: *mut u8) -> Option<u32> {
    // SAFETY: both words are in the slot, whose end is aligned to 8.
    unsafe {
        let checks = slot.add(CHECKS).cast::<u32>();
        (checks.add(1).read() == sum(slot)).then(|| checks.read())
    }
}

impl Receiver {
    /// Whether the next slot is not filled.
    #[inline]
    pub(crate) fn is_empty(&self, own: &Segment) -> bool {
        !protocol::is_filled(own, self.head)
    }

    /// The next slot, if it is filled.
    #[inline]
    pub(crate) fn peek(&self, own: &Segment) -> Option<Slot> {
        if self.is_empty(own) {
            return None;
        }
        // A receiver looks at the next slot as soon as it has handled this one: its line may well
        // come meanwhile. Rejected: that a sender fetches the line of this next slot ahead, too,
        // which the receiver then takes from it (half a round trip 12 % longer).
        lines::expect_read(own.slot(self.head.wrapping_add(1)));
        let slot = own.slot(self.head);
        // SAFETY: the slot lies in our own mapping.
        let word = |index| unsafe { slot_word(slot, index).load(Ordering::Relaxed) };
        Some(Slot { header: Header::read([word(1), word(2), word(3), word(4), word(5)]) })
    }

    /// The payload of the next slot, of which its header says how much counts, until `release`.
    #[inline]
    pub(crate) fn payload<'a>(&self, own: &'a Segment) -> SharedBytes<'a> {
        own.payload(self.head)
    }

    /// The checksum of what goes with the next slot; none if the slot's own is wrong.
    #[cold]
    pub(crate) fn check(&self, own: &Segment) -> Option<u32> {
        // SAFETY: the slot lies in our own mapping.
        unsafe { checks_of(own.slot(self.head)) }
    }

    /// Has a slot further on fetched. For a receiver that found several: of one that waits for the
    /// next message it would take lines from a sender who is about to write them.
    #[inline]
    pub(crate) fn expect_more(&self, own: &Segment) {
        lines::expect_read(own.slot(self.head.wrapping_add(AHEAD)));
    }

    /// Gives the slot that `peek` answered back.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.head = self.head.wrapping_add(1);
    }

    /// Lets senders use what was released.
    #[inline]
    pub(crate) fn publish(&mut self, own: &Segment) {
        if self.published != self.head {
            self.published = self.head;
            protocol::give_back(own, self.head);
        }
    }

    /// The position of the next slot.
    pub(crate) fn position(&self) -> u64 {
        self.head
    }

    /// Whether a position was claimed that is not filled yet.
    pub(crate) fn is_claimed(&self, own: &Segment) -> bool {
        protocol::is_claimed(own, self.head)
    }

    /// Whether a peer announced the claim of the next position.
    pub(crate) fn is_intent_of(&self, own: &Segment, peer: &Segment) -> bool {
        let ring = own.identity().ring();
        (0..INTENTS).any(|thread| protocol::is_intent(peer.intent(thread), ring, self.head))
    }

    /// Goes past a position that a dead peer claimed.
    pub(crate) fn skip(&mut self, own: &Segment) {
        self.release();
        self.publish(own);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;
    use crate::wire::Kind;

    fn header(bits: u64) -> Header {
        let (kind, flags) = (Kind::Inline, Flags::empty());
        Header { kind, flags, peer: 0, count: 8, bits, data: 0, len: 8, op: 0 }
    }

    fn segment(port: u16) -> Segment {
        Segment::create(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap()
    }

    #[test]
    fn slots_come_out_in_order_over_many_laps_and_a_full_ring_says_so() {
        let (own, peer) = (segment(71), segment(72));
        let (mut sender, mut receiver) = (Sender::new(peer.identity(), 0), Receiver::default());
        let (mut sent, mut received) = (0, 0);
        for round in 0..10 {
            while sender.push(&own, &peer, &header(sent), |_| ()) {
                sent += 1;
            }
            assert_eq!(sent - received, SLOTS);
            for _ in 0..SLOTS - round * 7 {
                assert_eq!(receiver.peek(&peer).unwrap().header.unwrap().bits, received);
                receiver.release();
                received += 1;
            }
            receiver.publish(&peer);
        }
    }

    #[test]
    fn many_senders_lose_nothing_and_keep_their_order() {
        const EACH: u64 = 20_000;
        let receiver_segment = segment(73);
        let senders: Vec<_> = (74..77).map(segment).collect();
        std::thread::scope(|scope| {
            for (number, own) in (0..).zip(&senders) {
                let peer = &receiver_segment;
                scope.spawn(move || {
                    let mut sender = Sender::new(peer.identity(), 0);
                    for count in 0..EACH {
                        let header = Header { peer: number, ..header(count) };
                        while !sender.push(own, peer, &header, |_| ()) {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut receiver = Receiver::default();
            let mut next = [0; 3];
            for _ in 0..3 * EACH {
                let header = loop {
                    match receiver.peek(&receiver_segment) {
                        Some(slot) => break slot.header.unwrap(),
                        None => {
                            receiver.publish(&receiver_segment);
                            std::thread::yield_now();
                        }
                    }
                };
                receiver.release();
                assert_eq!(header.bits, next[header.peer as usize]);
                next[header.peer as usize] += 1;
            }
            assert_eq!(next, [EACH; 3]);
        });
    }

    #[test]
    fn a_claim_of_a_dead_peer_is_skipped() {
        let (own, peer) = (segment(77), segment(78));
        let (mut sender, mut receiver) = (Sender::new(peer.identity(), 0), Receiver::default());
        // What a sender killed after its claim leaves.
        own.intent(0).store(protocol::intent(peer.identity().ring(), 0), Ordering::Relaxed);
        peer.tail().store(1, Ordering::Relaxed);
        assert!(receiver.peek(&peer).is_none());
        assert!(receiver.is_claimed(&peer) && receiver.is_intent_of(&peer, &own));
        own.intent(0).store(0, Ordering::Relaxed);
        assert!(!receiver.is_intent_of(&peer, &own));
        let claim = protocol::intent(peer.identity().ring(), 0);
        own.intent(INTENTS - 1).store(claim, Ordering::Relaxed);
        assert!(receiver.is_intent_of(&peer, &own), "another thread's");
        receiver.skip(&peer);
        assert!(!receiver.is_claimed(&peer));
        assert!(sender.push(&own, &peer, &header(5), |_| ()));
        assert_eq!(receiver.peek(&peer).unwrap().header.unwrap().bits, 5);
    }
}
