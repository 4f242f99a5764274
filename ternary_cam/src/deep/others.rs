// SPDX-License-Identifier: BSD-2-Clause
//! Indexes of exact entries for keys that the home index does not serve, one for each kind.

use super::Deep;
use crate::age_log::Bits;
use crate::demand::Keep;
use crate::entry::Key;
use crate::index::Index;
use crate::pattern::{EXACT, Kind, Pattern};
use crate::slot::{INDEXES, Slot};

/// Indexes but the home index, a power of two.
pub(super) const OTHERS: usize = INDEXES - 1;

/// Their links in a slot.
#[inline(always)]
pub(super) const fn links(which: usize) -> usize {
    which % OTHERS + 1
}

/// An index for one kind of keys.
pub(super) struct Other {
    /// Nothing while it sleeps.
    pub(super) keys: Option<Kind>,
    pub(super) pattern: Pattern,
    pub(super) index: Index,
    pub(super) keep: Keep,
}

impl Other {
    pub(super) fn new() -> Self {
        let (pattern, index) = (Pattern::EXACT, Index::new());
        Self { keys: None, pattern, index, keep: Keep::default() }
    }

    /// The oldest match of one of its keys, where all entries are exact and ignore nothing.
    #[inline(always)]
    pub(super) fn first<'a>(
        &self,
        slots: &'a [Slot],
        which: usize,
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        self.keep.note_use();
        self.index.first_under(slots, links(which), &self.pattern, key)
    }
}

impl Deep {
    /// Adds exact ones, just added elsewhere, for keys that the home index does not serve.
    #[inline(never)]
    pub(super) fn insert_in_others<const N: usize>(&mut self, slots: &mut [Slot], ids: [u16; N]) {
        for which in Bits(self.awake.into()) {
            let Other { pattern, index, .. } = &mut self.others[which % OTHERS];
            for id in ids {
                index.insert(slots, links(which), pattern, id);
            }
        }
    }

    /// Takes an exact one out.
    #[inline(always)]
    pub(super) fn remove_from_others(&mut self, slots: &mut [Slot], id: u16) {
        for which in Bits(self.awake.into()) {
            self.others[which % OTHERS].index.remove(slots, links(which), id);
        }
    }

    /// The oldest entry that matches a key which the home index does not serve, where all are
    /// exact.
    #[inline(never)]
    pub(super) fn first_match_beside<'a>(
        &self,
        slots: &'a [Slot],
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        let keys = key.kind();
        let which = usize::from(self.serving[keys.cell()]) % OTHERS;
        let other = &self.others[which];
        if other.keys != Some(keys) {
            return self.first_match_elsewhere(slots, key);
        }
        other.first(slots, which, key)
    }

    /// Builds an index for keys of this kind in place of one that sleeps or of the one that was
    /// not used for longest, if that is long enough.
    pub(super) fn wake_other(&mut self, slots: &mut [Slot], keys: Kind) {
        let len = self.len();
        let others = self.others.iter_mut().enumerate();
        let Some((which, other)) = others.max_by_key(|(_, other)| other.keep.idle()) else {
            return;
        };
        if other.keep.idle() < len {
            return;
        }
        other.keys = Some(keys);
        self.serving[keys.cell()] = which as u8;
        other.pattern = Pattern::new(keys);
        other.index.clear();
        other.keep.wake();
        self.awake |= 1 << which;
        self.fill_other(slots, which);
    }

    /// Fills an empty index with the exact entries.
    pub(super) fn fill_other(&mut self, slots: &mut [Slot], which: usize) {
        for at in 0..self.in_order(slots).len() {
            let id = self.order[at];
            if slots[usize::from(id)].stamp.class() == EXACT {
                let Other { pattern, index, .. } = &mut self.others[which];
                index.insert(slots, links(which), pattern, id);
            }
        }
    }

    /// Has an index kept up no longer; the keys that it served.
    pub(super) fn put_to_sleep(&mut self, which: usize) -> Option<Kind> {
        self.awake &= !(1 << which);
        self.others[which].keep.sleep();
        self.others[which].keys.take()
    }
}
