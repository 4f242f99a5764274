// SPDX-License-Identifier: BSD-2-Clause
//! The side indexes that are kept up, and the keys that they serve.

use super::SIDE_INDEXES;
use crate::bits::Bits;
use crate::deep::parts::{Deep, put_in_order};
use crate::deep::pattern::Pattern;
use crate::entry::Key;
use crate::slot::{Class, Slot};
use crate::wildcards::Wildcards;

impl Deep {
    /// Adds base entries.
    #[inline(never)]
    pub(in crate::deep) fn insert_in_side<const N: usize>(
        &mut self,
        slots: &[Slot],
        ids: [u16; N],
    ) {
        for which in Bits(self.awake.into()) {
            let side = &mut self.side[which % SIDE_INDEXES];
            for id in ids {
                side.insert(slots, id);
            }
        }
    }

    /// Removes a base entry.
    #[inline(always)]
    pub(in crate::deep) fn remove_from_side(&mut self, id: u16) {
        for which in Bits(self.awake.into()) {
            self.side[which % SIDE_INDEXES].rings.remove(id);
        }
    }

    /// All entries are exact, and the home index does not serve the key.
    #[inline(never)]
    pub(in crate::deep) fn first_match_in_side<'a>(
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

    /// Builds an index for keys of this kind. It replaces an index that is not kept up, or the one
    /// that was unused for longest, if that is long enough.
    pub(in crate::deep) fn wake_side(&mut self, slots: &[Slot], keys: Wildcards) {
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
    pub(in crate::deep) fn fill_side(&mut self, slots: &[Slot], which: usize) {
        let used = self.slots_used(slots);
        for &id in put_in_order(&mut self.order, used) {
            if slots[usize::from(id)].stamp.class() == Class::BASE {
                self.side[which].insert(slots, id);
            }
        }
    }

    /// Stops keeping up an index. Returns the keys that it served.
    pub(in crate::deep) fn put_to_sleep(&mut self, which: usize) -> Option<Wildcards> {
        self.awake &= !(1 << which);
        self.side[which].keep.sleep();
        self.side[which].keys.take()
    }
}
