// SPDX-License-Identifier: BSD-2-Clause
//! The small set: entries of several kinds, in age order and in no index.
//!
//! With few entries, comparing a key with all of them costs less than looking up the class of an
//! entry or the index of a key, because the branches of the lookup are mispredicted. If there are
//! more than four entries, a vector kernel compares 16 to 64 positions. It does not stop at the
//! first match, since the processor cannot predict the place of the match either. The crate
//! documentation (lib.rs) defines kind and class.
//!
//! `small_set/policy.rs` decides when the small set is in use. While it is in use, the indexes and
//! the scan are empty, but keep their configuration.

pub(super) mod policy;

use crate::bits::Bits;
use crate::entry::Key;
use crate::index::state::CLASSES;
use crate::kernel::{self, Available, STEP, ShortQueue};
use crate::slot::{Class, Slot};
use crate::wildcards::Wildcards;

use policy::{GROUP, MANY, POSITIONS, Policy};

/// The small set; see the module.
///
/// ```text
/// position   0     1     2     3     4    ...  63
/// block    [ a  |  -  |  b  |  c  |  -  |  unused ]     compared fields
/// ids      [ a  |  -  |  b  |  c  |  -  |  unused ]     slots
/// live       1     0     1     1     0     0
///            oldest            youngest   ^ tail
/// ```
///
/// The slot of an entry contains its position. Entries are added at the tail, and removals leave
/// holes. The entries close up if that saves searches a step. When the set becomes empty, the tail
/// returns to 0.
pub(super) struct SmallSet {
    pub(super) entries: ShortQueue,
    pub(super) tail: usize,
    pub(super) in_use: bool,
    pub(super) policy: Policy,
}

impl SmallSet {
    pub(super) fn new(kernel: Available) -> Self {
        let policy = Policy::new(kernel);
        Self { entries: ShortQueue::EMPTY, tail: 0, in_use: false, policy }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.live.count_ones() as usize
    }

    /// Returns the number of entries of this age or older, and notes that a rank was requested.
    pub(super) fn rank(&self, slot: &Slot) -> usize {
        self.policy.note_several();
        (self.entries.live << (POSITIONS - 1 - position_of(slot))).count_ones() as usize
    }

    /// Returns the slot number and the slot of the oldest entry that matches; `None` if no entry
    /// matches. Notes the key if the policy wants it.
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

    /// Notes the key and searches. If this function only noted the key, the caller would have to
    /// save registers for the search.
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
        slot.stamp = slot.stamp.with_class(Class::SMALL_SET);
        slot.link.location = at as u32;
        self.entries.block.set(at, slot.bits, slot.ignore, slot.source);
        self.entries.ids[at] = id;
    }

    /// Adds four recent entries. There must be room.
    #[inline(always)]
    pub(super) fn push(&mut self, slots: &mut [Slot], ids: [u16; GROUP]) {
        let tail = self.tail;
        debug_assert!(tail + GROUP <= POSITIONS);
        let (mut last, mut differ) = (self.policy.last, 0);
        for (at, id) in ids.into_iter().enumerate() {
            self.set(tail + at, slots, id);
            differ |= last.replace(slots[usize::from(id)].wildcards());
        }
        self.policy.note_entries(last, differ);
        self.entries.live |= ((1 << GROUP) - 1) << tail;
        self.tail = tail + GROUP;
    }

    /// Removes an entry.
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: &Slot) {
        self.entries.live &= !(1 << position_of(slot));
        if self.entries.live == 0 {
            self.tail = 0;
        }
    }

    /// Returns true if the policy allows this many entries in the set.
    #[inline(always)]
    pub(super) fn has_room_for(&mut self, entries: usize, slots: &[Slot]) -> bool {
        entries <= self.policy.most || self.find_room_for(entries, slots)
    }

    /// Recomputes the limit on entries, and returns true if it allows this many. The limit is above
    /// `few` if there are many kinds of keys, or more kinds of entries than classes.
    #[cold]
    fn find_room_for(&mut self, entries: usize, slots: &[Slot]) -> bool {
        let many_keys = self.policy.wild_keys.get_mut().count_ones() >= MANY;
        let many_kinds = many_keys || self.has_more_kinds::<CLASSES>(slots);
        self.policy.most = self.policy.good_for(many_kinds);
        entries <= self.policy.most
    }

    /// Returns true if there are more than `THAN` kinds of entries.
    pub(super) fn has_more_kinds<const THAN: usize>(&self, slots: &[Slot]) -> bool {
        let mut known = [Wildcards::NONE; THAN];
        let mut len = 0;
        for position in Bits(self.entries.live) {
            let wildcards = slots[usize::from(self.entries.ids[position])].wildcards();
            if !known[..len].contains(&wildcards) {
                if len == THAN {
                    return true;
                }
                known[len] = wildcards;
                len += 1;
            }
        }
        false
    }

    /// Returns true if the entries should close up before the next push: the next entry would begin
    /// a new step of positions, and there are at least as many holes as a step has positions.
    #[inline(always)]
    pub(super) fn is_sparse(&self) -> bool {
        self.tail.is_multiple_of(STEP) && self.tail >= self.len() + STEP
    }

    /// Moves the entries together at the front.
    #[cold]
    pub(super) fn close_up(&mut self, slots: &mut [Slot]) {
        let ids = &mut self.entries.ids;
        for (to, from) in Bits(self.entries.live).enumerate() {
            ids[to] = ids[from];
        }
        self.fill(slots, self.len());
    }

    /// Sets the contents to the first `len` entries of [`ShortQueue::ids`].
    pub(super) fn fill(&mut self, slots: &mut [Slot], len: usize) {
        debug_assert!(len < POSITIONS);
        for at in 0..len {
            self.set(at, slots, self.entries.ids[at]);
        }
        self.entries.live = !u64::MAX.checked_shl(len as u32).unwrap_or(0);
        self.tail = len.next_multiple_of(GROUP);
    }
}

/// Returns the position of an entry in the small set.
#[inline(always)]
fn position_of(slot: &Slot) -> usize {
    slot.link.location as usize % POSITIONS
}

#[cfg(test)]
mod tests;
