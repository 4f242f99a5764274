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
//! A turn contains its lap, so that slots need no clearing. `head` and `tail` are on separate cache
//! lines. A sender reads `head` only if its copy says that the ring is full, and the receiver never
//! reads `tail` while messages come in. One message moves one cache line between the cores.
//!
//! A sender that is killed between claim and turn would leave a slot that is never filled, and stop
//! the ring. Before the claim it announces it as its *intent* in its segment, which has an intent
//! word for each of its threads that may send at a time. If the ring stands still with positions
//! claimed, the receiver skips a position that no living peer intends ([`Receiver::skip`]).
//!
//! Rejected:
//! - a ring for each pair of endpoints: memory grows with the square of the number of ranks, and
//!   the receiver polls them all;
//! - a turn that the receiver resets (Vyukov's queue): the sender waits for that line to come back.
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

/// Returns whether the ring of a segment takes another slot.
pub(crate) fn has_room(of: &Segment) -> bool {
    let tail = of.tail().load(Ordering::Relaxed);
    tail.wrapping_sub(of.head().load(Ordering::Acquire)) < SLOTS
}

/// The sending end of a peer's ring.
#[derive(Debug)]
pub(crate) struct Sender {
    /// The name of the peer's ring.
    ring: u32,
    /// Index of the intent word. One thread at a time uses it.
    thread: usize,
    head: u64,
    /// The position after the slot that was filled last.
    next: u64,
    /// [`Flags::CHECKED`] for the first word of each slot, or 0.
    checked: u64,
    /// Checksum of the payload of the next slot.
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

    /// Sets the checksum of the payload of the next slot.
    pub(crate) fn set_check(&mut self, check: u32) {
        self.check = check;
    }

    /// Puts a slot into the ring. Returns false if it is full. `payload` writes at most `INLINE`
    /// bytes to its pointer.
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

    /// Puts a slot with arbitrary words and payload into the ring.
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
        // If no other endpoint sends, this sender fills the slots that follow as well. It does not
        // prefetch the next one, which the receiver polls.
        if position == self.next {
            lines::expect_writes(peer.slot(position.wrapping_add(2)), 1);
        }
        self.next = position.wrapping_add(1);
        true
    }
}

/// Distance at which a receiver prefetches while several slots wait. It handles fewer slots until a
/// line has come from another core. 3 to 6 are alike, 10 gains nothing.
const AHEAD: u64 = 4;

/// The receiving end of an endpoint's own ring.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Receiver {
    head: u64,
    published: u64,
}

/// A filled slot.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its header; `None` if a peer wrote an invalid one.
    pub header: Option<Header>,
}

/// The checksum of a slot.
///
/// # Safety
/// `slot` is one of a mapping.
unsafe fn sum(slot: *mut u8) -> u32 {
    let mut bytes = [0_u8; SLOT];
    // SAFETY: a slot has SLOT bytes, and a mapping does not overlap the array.
    unsafe { ptr::copy_nonoverlapping(slot, bytes.as_mut_ptr(), SLOT) };
    crc32c::crc32c(&bytes[8..CHECKS + 4])
}

/// Writes the checksums of a slot. All its words but the first must be written.
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

/// The checksum of the message of a slot; `None` if the checksum of the slot is wrong.
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
    /// Returns whether the next slot is not filled.
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
        // A receiver looks at the next slot as soon as it has handled this one, so its line may
        // come meanwhile. Rejected: the sender also prefetches the line of this next slot. The
        // receiver then takes it from the sender (half a round trip takes 12 % longer).
        lines::expect_read(own.slot(self.head.wrapping_add(1)));
        let slot = own.slot(self.head);
        // SAFETY: the slot lies in our own mapping.
        let word = |index| unsafe { slot_word(slot, index).load(Ordering::Relaxed) };
        Some(Slot { header: Header::read([word(1), word(2), word(3), word(4), word(5)]) })
    }

    /// The payload of the next slot, valid until `release`. The header contains its length.
    #[inline]
    pub(crate) fn payload<'a>(&self, own: &'a Segment) -> SharedBytes<'a> {
        own.payload(self.head)
    }

    /// The checksum of the payload of the next slot; `None` if the checksum of the slot is wrong.
    #[cold]
    pub(crate) fn check(&self, own: &Segment) -> Option<u32> {
        // SAFETY: the slot lies in our own mapping.
        unsafe { checks_of(own.slot(self.head)) }
    }

    /// Prefetches a later slot, for a receiver that found several. A receiver that waits for the
    /// next message would take lines from a sender that is about to write them.
    #[inline]
    pub(crate) fn expect_more(&self, own: &Segment) {
        lines::expect_read(own.slot(self.head.wrapping_add(AHEAD)));
    }

    /// Releases the slot that `peek` returned.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.head = self.head.wrapping_add(1);
    }

    /// Makes the released slots available to senders.
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

    /// Returns whether the next position was claimed.
    pub(crate) fn is_claimed(&self, own: &Segment) -> bool {
        protocol::is_claimed(own, self.head)
    }

    /// Returns whether a peer announced the claim of the next position.
    pub(crate) fn is_intent_of(&self, own: &Segment, peer: &Segment) -> bool {
        let ring = own.identity().ring();
        (0..INTENTS).any(|thread| protocol::is_intent(peer.intent(thread), ring, self.head))
    }

    /// Skips a position that a dead peer claimed.
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
    fn slots_stay_in_order_over_many_laps_and_a_full_ring_refuses() {
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
        // The state after a sender was killed between claim and turn.
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
