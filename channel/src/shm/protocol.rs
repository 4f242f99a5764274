// SPDX-License-Identifier: BSD-2-Clause
//! The lock-free steps of a ring ([`super::ring`]), of a list of senders ([`super::senders`]) and
//! of a doorbell ([`super::doorbell`]). The words that they change are in a segment, or in a model
//! whose interleavings loom checks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A word of a ring.
pub(crate) trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    /// Stores `new` (acquire and release) if the word is `current`. Otherwise, fails with the value
    /// of the word. May also fail if the word is `current`.
    fn replace(&self, current: u64, new: u64) -> Result<u64, u64>;
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    #[inline]
    fn replace(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.compare_exchange_weak(current, new, Ordering::AcqRel, Ordering::Relaxed)
    }
}

/// The words of a ring and of its overflow area.
///
/// A *place* is the word of a slot: a position in the ring, or the place of a slot in the overflow
/// area. The tail is the place that is claimed next. The turn of a filled slot is its place plus
/// one.
///
/// ```text
/// 63         62              53   52        0
/// | overflow | slot of handover | position  |
/// ```
///
/// The sender that claims the last free slot of the ring may *hand over*: it moves the tail to the
/// first slot of the overflow area. Later senders claim one slot of that area after the other. When
/// the owner has handled them all, it moves the tail back to the ring. Positions never repeat, so
/// an old turn is never that of the next slot: those of the overflow area begin at the next multiple
/// of twice its length, and the ring goes on after the last one. The turn of the slot with which
/// the ring was handed over has the bits 53 to 63 as well. The owner then goes on in the
/// overflow area. If the sender is killed before it stores this turn, these bits in the tail show
/// which slot it had claimed.
pub(crate) trait Ring {
    type Word: Word;
    /// Slots of the ring, a power of two up to 1,024.
    const SLOTS: u64;
    /// Slots of the overflow area, a power of two.
    const OVERFLOW: u64;

    /// Next place that a sender may claim.
    fn tail(&self) -> &Self::Word;
    /// First position that the owner has not consumed, as last published.
    fn head(&self) -> &Self::Word;
}

const IN_OVERFLOW: u64 = 1 << 63;
const HANDOVER: u32 = 53;
const POSITION: u64 = (1 << HANDOVER) - 1;

/// Returns whether a place is in the overflow area, or is that of a handover.
#[inline]
pub(crate) fn is_overflow(place: u64) -> bool {
    place & IN_OVERFLOW != 0
}

/// Returns the position of a place.
#[inline]
pub(crate) fn position_of(place: u64) -> u64 {
    place & POSITION
}

/// Returns the index of a place in the overflow area. It is the number of slots if they are all
/// claimed, and can be higher if the word is damaged.
pub(crate) fn index_of<R: Ring>(place: u64) -> u64 {
    place % (2 * R::OVERFLOW)
}

/// Returns the place of the slot at a position of the ring if the ring is handed over there.
fn handover_at<R: Ring>(position: u64) -> u64 {
    IN_OVERFLOW | ((position % R::SLOTS) << HANDOVER) | (position & POSITION)
}

/// Returns the first place in the overflow area after a handover.
fn first_after<R: Ring>(handover: u64) -> u64 {
    (handover | (2 * R::OVERFLOW - 1)).wrapping_add(1)
}

/// Returns the word with which a sender announces that it claims a place. `ring` is the name of the
/// ring ([`crate::identity::Identity::ring`]). Only for port 0 can the word be zero.
pub(crate) fn intent(ring: u32, place: u64) -> u64 {
    u64::from(ring) << 32 | u64::from(place as u32)
}

/// Claims the next position of a ring, and announces the claim in `own`, a word of the sender.
/// `name` is the name of the ring, and `head` is the sender's copy of its head. Returns `None` if,
/// according to this copy, at most one slot is free; [`claim_last`] then claims a slot.
#[inline]
pub(crate) fn claim<R: Ring>(ring: &R, own: &R::Word, name: u32, head: u64) -> Option<u64> {
    let mut position = ring.tail().load(Ordering::Relaxed);
    // A damaged head or tail makes the result wrong, never unsafe: positions are taken modulo the
    // length of the ring.
    while position.wrapping_sub(head) < R::SLOTS - 1 {
        // A thread that sees this intent also sees the turn of the slot that this thread claimed
        // before.
        own.store(intent(name, position), Ordering::Release);
        match ring.tail().replace(position, position.wrapping_add(1)) {
            Ok(_) => return Some(position),
            Err(now) => position = now,
        }
    }
    None
}

/// A claimed slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// A position of the ring, or a place in the overflow area.
    pub(crate) place: u64,
    /// The turn with which the slot is filled.
    pub(crate) turn: u64,
}

/// Claims the next slot of a ring that may be full or handed over; otherwise like [`claim`].
/// `may_use` returns whether this sender may use the overflow slot with an index; the owner must be
/// able to read a slot that was claimed. Returns `None` if there is no room.
pub(crate) fn claim_last<R: Ring>(
    ring: &R,
    own: &R::Word,
    name: u32,
    head: &mut u64,
    may_use: impl Fn(u64) -> bool,
) -> Option<Claim> {
    loop {
        // A head that is read afterwards is not older than this tail.
        let tail = ring.tail().load(Ordering::Acquire);
        let following = (tail.wrapping_add(1), tail.wrapping_add(1));
        let claimed = if is_overflow(tail) {
            may_use(index_of::<R>(tail)).then_some(following)
        } else {
            *head = ring.head().load(Ordering::Acquire);
            match tail.wrapping_sub(*head).checked_sub(R::SLOTS - 1) {
                Some(0) if may_use(0) => {
                    let handover = handover_at::<R>(tail);
                    Some((first_after::<R>(handover), handover.wrapping_add(1)))
                }
                None | Some(0) => Some(following),
                Some(_) => None,
            }
        };
        let Some((next, turn)) = claimed else {
            // The head may be ahead of the tail that was read before.
            if ring.tail().load(Ordering::Relaxed) != tail {
                continue;
            }
            // Withdraw the announcement: this thread claims nothing.
            own.store(0, Ordering::Release);
            return None;
        };
        own.store(intent(name, tail), Ordering::Release);
        if ring.tail().replace(tail, next).is_ok() {
            return Some(Claim { place: tail, turn });
        }
    }
}

/// Publishes a claimed slot to the owner. The slot must be written.
#[inline]
pub(crate) fn fill(turn_word: &impl Word, turn: u64) {
    turn_word.store(turn, Ordering::Release);
}

/// Returns the turn of the owner's current slot, which is filled if the turn is the owner's place
/// plus one.
#[inline]
pub(crate) fn turn(turn_word: &impl Word) -> u64 {
    turn_word.load(Ordering::Acquire)
}

/// Where the owner of a ring goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nowhere: the current slot is not filled.
    Stay,
    /// The current slot is filled, and the ring was handed over with it. This is its place.
    Handover(u64),
    /// At this place of the overflow area, which is claimed.
    Overflow(u64),
    /// At this position of the ring, which is empty.
    Ring(u64),
}

/// Returns where the owner goes on that is at the place `at`, if it has found another turn there
/// than that of a filled slot, and `at` or the turn is of the overflow area. `is_in_ring`: the
/// owner looked at a slot of the ring.
pub(crate) fn follow<R: Ring>(ring: &R, at: u64, is_in_ring: bool, turn: u64) -> Step {
    if !is_overflow(at) {
        let handover = handover_at::<R>(at);
        let is_last = turn == handover.wrapping_add(1);
        return if is_last { Step::Handover(handover) } else { Step::Stay };
    }
    // In the ring, `at` is the place after a handover.
    let next = if is_in_ring { first_after::<R>(at.wrapping_sub(1)) } else { at };
    let mut tail = ring.tail().load(Ordering::Acquire);
    while tail == next {
        // Everything was handled. Senders see an empty ring as soon as the tail is back.
        let position = position_of(next);
        give_back(ring, position);
        if ring.tail().replace(next, position).is_ok() {
            return Step::Ring(position);
        }
        tail = ring.tail().load(Ordering::Acquire);
    }
    let is_claimed = tail.wrapping_sub(next).wrapping_sub(1) < R::OVERFLOW;
    if is_claimed { Step::Overflow(next) } else { Step::Stay }
}

/// Returns whether the slot at the owner's place was claimed.
pub(crate) fn is_claimed<R: Ring>(ring: &R, at: u64) -> bool {
    let tail = position_of(ring.tail().load(Ordering::Acquire));
    let ahead = tail.wrapping_sub(position_of(at)).wrapping_sub(1);
    ahead < R::SLOTS + 3 * R::OVERFLOW
}

/// Returns the place after the one at which the owner skips a slot that was claimed and is not
/// filled.
pub(crate) fn after_skipped<R: Ring>(ring: &R, at: u64) -> u64 {
    let handover = handover_at::<R>(at);
    // The ring has fewer slots in use than it has slots, so this is the slot of the handover.
    let hands_over = ring.tail().load(Ordering::Acquire) >> HANDOVER == handover >> HANDOVER;
    (if hands_over { handover } else { at }).wrapping_add(1)
}

/// Returns whether a sender announced the claim of a place.
pub(crate) fn is_intent(announced: &impl Word, name: u32, place: u64) -> bool {
    announced.load(Ordering::Acquire) == intent(name, place)
}

/// Makes the positions before this one available to senders.
#[inline]
pub(crate) fn give_back<R: Ring>(ring: &R, position: u64) {
    ring.head().store(position, Ordering::Release);
}

/// The words of a list of senders.
pub(crate) trait SenderList {
    type Word: Word;
    const NUMBERS: u64;

    /// The number at which the search for a free number begins. As far as known, no lower number is
    /// free.
    fn next(&self) -> &Self::Word;
    /// The number after the highest one that was ever given.
    fn end(&self) -> &Self::Word;
    /// The sender with a number; 0 if the number is free.
    fn entry(&self, number: u64) -> &Self::Word;
}

/// Enters the sender `who` at the first number that the search finds free, and returns this number.
/// Returns `None` if no number is free. `make_ready` is called for each number before its entry is
/// read; its error ends the search.
///
/// The end is raised before the entry is written. So the owner reads the entry even if the sender
/// is killed right after writing it. `next` may skip a number that is freed at the same
/// time; that number is found when no other is free.
pub(crate) fn enter<L: SenderList, E>(
    list: &L,
    who: u64,
    mut make_ready: impl FnMut(u64) -> Result<(), E>,
) -> Result<Option<u64>, E> {
    let first = list.next().load(Ordering::Acquire);
    for step in 0..L::NUMBERS {
        let number = first.wrapping_add(step) % L::NUMBERS;
        make_ready(number)?;
        if list.entry(number).load(Ordering::Relaxed) != 0 {
            continue;
        }
        change(list.end(), |end| (end <= number).then_some(number + 1));
        if change(list.entry(number), |now| (now == 0).then_some(who)) {
            change(list.next(), |next| (next == first).then_some(number + 1));
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// Frees the number of a sender that has closed or died, if the number still belongs to it.
pub(crate) fn strike<L: SenderList>(list: &L, number: u64, who: u64) {
    if change(list.entry(number), |now| (now == who).then_some(0)) {
        change(list.next(), |next| (next > number).then_some(number));
    }
}

/// Changes a word to the value that `to` returns, unless that is `None`. Returns whether the word
/// was changed.
fn change(word: &impl Word, to: impl Fn(u64) -> Option<u64>) -> bool {
    let mut now = word.load(Ordering::Acquire);
    while let Some(new) = to(now) {
        match word.replace(now, new) {
            Ok(_) => return true,
            Err(other) => now = other,
        }
    }
    false
}

/// The flags of a doorbell.
pub(crate) trait DoorbellFlags {
    fn load(&self) -> u32;
    fn add(&self, flags: u32);
    /// Clears all flags, and returns them.
    fn take(&self) -> u32;
    /// A fence between all stores before it and all loads after it.
    fn fence();
}

impl DoorbellFlags for AtomicU32 {
    #[inline]
    fn load(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }

    #[inline]
    fn add(&self, flags: u32) {
        self.fetch_or(flags, Ordering::SeqCst);
    }

    #[inline]
    fn take(&self) -> u32 {
        self.swap(0, Ordering::AcqRel)
    }

    #[inline]
    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// Announces that the owner is about to sleep; `how` is the doorbell's flag for this kind of sleep.
/// The owner must look for messages once more before it sleeps.
#[inline]
pub(crate) fn arm<F: DoorbellFlags>(doorbell: &F, how: u32) {
    doorbell.add(how);
    F::fence();
}

/// Returns whether the owner must be woken. To be called after a message was published to the
/// owner.
#[inline]
pub(crate) fn must_ring<F: DoorbellFlags>(sleeps: &F, doorbell: &F) -> bool {
    sleeps.load() != 0 && {
        F::fence();
        doorbell.load() != 0
    }
}

#[cfg(test)]
#[path = "protocol_tests.rs"]
mod tests;
