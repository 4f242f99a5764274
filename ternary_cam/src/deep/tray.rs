// SPDX-License-Identifier: BSD-2-Clause
//! Few entries of several kinds, by age and in no index.
//!
//! Where there are few, to compare a key with all of them costs less than to look up the
//! class of an entry or the index for a key and to mispredict which it is. A search is one
//! comparison with 16 to 64 positions; that it could stop at the first match is not used, since
//! where that is cannot be predicted either.
//!
//! When it is in use: `tray/policy.rs`. The indexes and the scan are empty meanwhile, but stay
//! ready for what they serve.

use super::Deep;
use crate::bits::Bits;
use crate::entry::Key;
use crate::kernel::{self, Available, LANES, STEP, ShortQueue};
use crate::nursery::{CAPACITY, Nursery};
use crate::slot::{Class, Slot};

use policy::{ENTER_AFTER, Policy, REVIEW};

mod policy;

/// Positions: bits of a word.
const POSITIONS: usize = LANES;

/// Entries that come at once: those of a nursery.
const GROUP: usize = CAPACITY as usize;

/// See the module.
///
/// ```text
/// position   0     1     2     3     4    ...  63
/// block    [ a  |  -  |  b  |  c  |  -  |  unused ]     what is compared
/// ids      [ a  |  -  |  b  |  c  |  -  |  unused ]     slots
/// live       1     0     1     1     0     0
///            oldest            youngest   ^ tail
/// ```
///
/// The slot of an entry knows its position. Entries come at the tail and leave holes; they
/// close up when that spares searches a step, and the tail starts over when none is left.
pub(super) struct Tray {
    entries: ShortQueue,
    tail: usize,
    in_use: bool,
    policy: Policy,
}

impl Tray {
    pub(super) fn new(kernel: Available) -> Self {
        let policy = Policy::new(kernel);
        Self { entries: ShortQueue::EMPTY, tail: 0, in_use: false, policy }
    }

    #[inline(always)]
    pub(super) fn is_in_use(&self) -> bool {
        self.in_use
    }

    pub(super) fn len(&self) -> usize {
        self.entries.live.count_ones() as usize
    }

    /// How many entries are of the age of this one or older.
    pub(super) fn rank(&self, slot: &Slot) -> usize {
        self.policy.note_several();
        (self.entries.live << (POSITIONS - 1 - position_of(slot))).count_ones() as usize
    }

    /// The oldest entry that matches.
    #[inline(always)]
    pub(super) fn first<'a>(
        &self,
        kernel: Available,
        slots: &'a [Slot],
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        if self.policy.wants(key) {
            return self.note_and_find(kernel, slots, key);
        }
        self.find(kernel, slots, key)
    }

    /// A function with the search in it: around a call of [`Policy::note`] alone, registers would
    /// be saved.
    #[cold]
    #[inline(never)]
    fn note_and_find<'a>(
        &self,
        kernel: Available,
        slots: &'a [Slot],
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        self.policy.note(key);
        self.find(kernel, slots, key)
    }

    #[inline(always)]
    fn find<'a>(&self, kernel: Available, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let key = (key.bits, key.ignore, key.source.0);
        let found = move |id| (id, &slots[usize::from(id)]);
        kernel::first_in_queue(kernel, &self.entries, key, found)
    }

    /// Puts an entry at a position.
    #[inline(always)]
    fn set(&mut self, at: usize, slots: &mut [Slot], id: u16) {
        let (at, slot) = (at % POSITIONS, &mut slots[usize::from(id)]);
        slot.stamp = slot.stamp.with_class(Class::TRAY);
        slot.link.bucket = at as u32;
        self.entries.block.set(at, slot.bits, slot.ignore, slot.source);
        self.entries.ids[at] = id;
    }

    /// Adds those of a nursery, for which there must be room.
    #[inline(always)]
    fn push(&mut self, slots: &mut [Slot], ids: [u16; GROUP]) {
        let tail = self.tail;
        debug_assert!(tail + GROUP <= POSITIONS);
        let (mut last, mut differ) = (self.policy.last, 0);
        for (at, id) in ids.into_iter().enumerate() {
            self.set(tail + at, slots, id);
            differ |= last.next(slots[usize::from(id)].wildcards());
        }
        self.policy.note_entries(last, differ);
        self.entries.live |= ((1 << GROUP) - 1) << tail;
        self.tail = tail + GROUP;
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: &Slot) {
        self.entries.live &= !(1 << position_of(slot));
        if self.entries.live == 0 {
            self.tail = 0;
        }
    }

    /// Whether to close up before the next push: a step of positions has been used up, and
    /// there are as many holes.
    #[inline(always)]
    fn is_sparse(&self) -> bool {
        self.tail.is_multiple_of(STEP) && self.tail >= self.len() + STEP
    }

    /// Moves the entries together at the front.
    #[cold]
    fn close_up(&mut self, slots: &mut [Slot]) {
        let ids = &mut self.entries.ids;
        for (to, from) in Bits(self.entries.live).enumerate() {
            ids[to] = ids[from];
        }
        self.fill(slots, self.len());
    }

    /// Has the entries of the first so many [`ShortQueue::ids`], and no others.
    fn fill(&mut self, slots: &mut [Slot], len: usize) {
        debug_assert!(len < POSITIONS);
        for at in 0..len {
            self.set(at, slots, self.entries.ids[at]);
        }
        self.entries.live = !u64::MAX.checked_shl(len as u32).unwrap_or(0);
        self.tail = len.next_multiple_of(GROUP);
    }
}

/// The position of an entry in the tray.
#[inline(always)]
fn position_of(slot: &Slot) -> usize {
    slot.link.bucket as usize % POSITIONS
}

impl Deep {
    /// Adds those of a nursery to the tray. If there are too many it is no longer in use.
    #[inline(never)]
    pub(super) fn insert_in_tray(&mut self, slots: &mut [Slot], nursery: Nursery, taken: usize) {
        if !self.tray.has_room_for(taken, slots) {
            return self.outgrow_tray(slots, nursery, ENTER_AFTER);
        }
        if self.tray.is_sparse() {
            self.tray.close_up(slots);
        }
        if self.tray.tail == POSITIONS {
            // So it would be again before long.
            return self.outgrow_tray(slots, nursery, REVIEW);
        }
        self.tray.push(slots, nursery.all());
    }

    /// Adds those for which there is no room. The tray is left for so many ticks.
    #[cold]
    fn outgrow_tray(&mut self, slots: &mut [Slot], nursery: Nursery, ticks: u32) {
        self.tray.policy.wait(ticks);
        self.leave_tray(slots);
        self.insert_general(slots, nursery);
    }

    /// Moves every entry from the indexes and the scan.
    #[cold]
    pub(super) fn enter_tray(&mut self, slots: &mut [Slot]) {
        // What searches have wished for they find in the tray.
        self.wishes.take().for_each(drop);
        self.tray.policy.enter(self.have_many_kinds());
        let len = self.in_order(slots).len();
        for at in 0..len {
            let id = self.order[at];
            self.remove_everywhere(slots, id, slots[usize::from(id)].stamp.class());
            self.tray.entries.ids[at] = id;
        }
        self.tray.fill(slots, len);
        self.tray.in_use = true;
        self.refresh_state();
    }

    /// Moves every entry to where it would be without a tray.
    fn leave_tray(&mut self, slots: &mut [Slot]) {
        let (ids, live) = (self.tray.entries.ids, self.tray.entries.live);
        self.tray.entries.live = 0;
        self.tray.tail = 0;
        self.tray.in_use = false;
        self.refresh_state();
        for at in Bits(live) {
            self.insert_one(slots, ids[at]);
        }
    }
}

#[cfg(test)]
mod tests;
