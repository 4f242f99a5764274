// SPDX-License-Identifier: BSD-2-Clause
//! Side indexes: the base entries once more, for keys that the home index does not serve.

use super::{Deep, put_in_order};
use crate::bits::Bits;
use crate::deep::keep::Keep;
use crate::deep::pattern::Pattern;
use crate::deep::rings::Rings;
use crate::entry::Key;
use crate::slot::{Class, Slot};
use crate::wildcards::Wildcards;

/// Indexes beside the home index, a power of two.
pub(super) const SIDE_INDEXES: usize = 4;

/// An index for one kind of keys.
pub(super) struct SideIndex {
    /// Nothing while it sleeps.
    pub(super) keys: Option<Wildcards>,
    pub(super) pattern: Pattern,
    pub(super) rings: Rings,
    pub(super) keep: Keep,
}

impl SideIndex {
    /// For a table of this capacity.
    pub(super) fn new(capacity: usize) -> Self {
        let (pattern, rings) = (Pattern::EXACT, Rings::new(capacity));
        Self { keys: None, pattern, rings, keep: Keep::default() }
    }

    /// The oldest match of one of its keys, where all entries are exact.
    #[inline(always)]
    pub(super) fn first<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        self.keep.note_use();
        self.rings.first_for(slots, &self.pattern, key)
    }

    #[inline(always)]
    fn insert(&mut self, slots: &[Slot], id: u16) {
        self.rings.insert(slots, &self.pattern, id);
    }
}

impl Deep {
    /// Adds base entries.
    #[inline(never)]
    pub(super) fn insert_in_side<const N: usize>(&mut self, slots: &[Slot], ids: [u16; N]) {
        for which in Bits(self.awake.into()) {
            let side = &mut self.side[which % SIDE_INDEXES];
            for id in ids {
                side.insert(slots, id);
            }
        }
    }

    /// Takes a base entry out.
    #[inline(always)]
    pub(super) fn remove_from_side(&mut self, id: u16) {
        for which in Bits(self.awake.into()) {
            self.side[which % SIDE_INDEXES].rings.remove(id);
        }
    }

    /// All entries are exact, and the home index does not serve the key.
    #[inline(never)]
    pub(super) fn first_match_in_side<'a>(
        &self,
        slots: &'a [Slot],
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        let keys = key.wildcards();
        let which = usize::from(self.serving[keys.cell()]) % SIDE_INDEXES;
        let side = &self.side[which];
        if side.keys != Some(keys) {
            return self.first_match_unserved(slots, key);
        }
        side.first(slots, key)
    }

    /// Builds an index for keys of this kind in place of one that sleeps or of the one that was
    /// not used for longest, if that is long enough.
    pub(super) fn wake_side(&mut self, slots: &[Slot], keys: Wildcards) {
        let len = self.len();
        let idle = |&which: &usize| self.side[which].keep.idle();
        let Some(which) = (0..SIDE_INDEXES).max_by_key(idle) else { return };
        if idle(&which) < len {
            return;
        }
        let entries = self.high_water.max(self.peak);
        let side = &mut self.side[which];
        side.keys = Some(keys);
        side.pattern = Pattern::new(keys);
        side.rings.clear(entries);
        side.keep.wake();
        self.serving[keys.cell()] = which as u8;
        self.awake |= 1 << which;
        self.fill_side(slots, which);
    }

    /// Fills an empty index with the base entries.
    pub(super) fn fill_side(&mut self, slots: &[Slot], which: usize) {
        let used = self.slots_used(slots);
        for &id in put_in_order(&mut self.order, used) {
            if slots[usize::from(id)].stamp.class() == Class::BASE {
                self.side[which].insert(slots, id);
            }
        }
    }

    /// Has an index kept up no longer; the keys that it served.
    pub(super) fn put_to_sleep(&mut self, which: usize) -> Option<Wildcards> {
        self.awake &= !(1 << which);
        self.side[which].keep.sleep();
        self.side[which].keys.take()
    }
}
