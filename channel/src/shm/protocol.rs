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

/// The words of a ring.
pub(crate) trait Ring {
    type Word: Word;
    const SLOTS: u64;

    /// Next position that a sender may claim.
    fn tail(&self) -> &Self::Word;
    /// First position that the owner has not consumed, as last published.
    fn head(&self) -> &Self::Word;
    /// The turn of the slot at a position: the position plus one, once the slot is filled.
    fn turn(&self, position: u64) -> &Self::Word;
}

/// Returns the word with which a sender announces that it claims a position of a ring. `ring` is
/// the name of the ring ([`crate::identity::Identity::ring`]). Only for port 0 can the word be
/// zero.
pub(crate) fn intent(ring: u32, position: u64) -> u64 {
    u64::from(ring) << 32 | u64::from(position as u32)
}

/// Claims the next position of a ring, and announces the claim in `own`, a word of the sender.
/// Returns `None` if the ring is full. `name` is the name of the ring, and `head` is the sender's
/// copy of its head.
#[inline]
pub(crate) fn claim<R: Ring>(ring: &R, own: &R::Word, name: u32, head: &mut u64) -> Option<u64> {
    let mut position = ring.tail().load(Ordering::Relaxed);
    loop {
        // A damaged head or tail makes the result wrong, never unsafe: positions are taken modulo
        // the length of the ring.
        if position.wrapping_sub(*head) >= R::SLOTS {
            *head = ring.head().load(Ordering::Acquire);
            if position.wrapping_sub(*head) >= R::SLOTS {
                // Withdraw the announcement: this thread claims nothing.
                own.store(0, Ordering::Release);
                return None;
            }
        }
        // A thread that sees this intent also sees the turn of the slot that this thread claimed
        // before.
        own.store(intent(name, position), Ordering::Release);
        match ring.tail().replace(position, position.wrapping_add(1)) {
            Ok(_) => return Some(position),
            Err(now) => position = now,
        }
    }
}

/// Publishes the slot at a claimed position to the owner. The slot must be written.
#[inline]
pub(crate) fn fill<R: Ring>(ring: &R, position: u64) {
    ring.turn(position).store(position.wrapping_add(1), Ordering::Release);
}

/// Returns whether the owner's current position is filled.
#[inline]
pub(crate) fn is_filled<R: Ring>(ring: &R, position: u64) -> bool {
    ring.turn(position).load(Ordering::Acquire) == position.wrapping_add(1)
}

/// Returns whether the owner's current position was claimed.
pub(crate) fn is_claimed<R: Ring>(ring: &R, position: u64) -> bool {
    ring.tail().load(Ordering::Acquire).wrapping_sub(position).wrapping_sub(1) < R::SLOTS
}

/// Returns whether a sender announced the claim of a position of a ring.
pub(crate) fn is_intent(announced: &impl Word, name: u32, position: u64) -> bool {
    announced.load(Ordering::Acquire) == intent(name, position)
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
