// SPDX-License-Identifier: BSD-2-Clause
//! Inserts entries, a full nursery at a time.
//!
//! ```text
//! insert
//!  +- insert_base        entries of the base class, exact keys
//!  +- insert_uniform     one pattern serves all entries, and all keys except those of side indexes
//!  +- insert_classes     only the home index, for exact keys (tuple_space.rs)
//!  +- insert_in_tray     few entries (tray/exchange.rs)
//!  +- insert_general     anything else
//! ```
//!
//! Each path is a separate function, so that none saves registers for another. The comment of a
//! function states the conditions under which it is called. Entries of an unexpected kind in the
//! first two paths go through `insert_each`. `insert_each`, `insert_classes` and `insert_general`
//! may take the tray into use.

use super::parts::Deep;
use crate::deep::pattern::Pattern;
use crate::nursery::{CAPACITY, Nursery};
use crate::slot::{Class, Slot};
use crate::wildcards::Wildcards;

/// Inserts between two calls of [`Deep::housekeeping`].
pub(super) const TICK: usize = 64;

impl Deep {
    /// Adds the entries of a full nursery; `taken` slots are in use.
    #[inline(never)]
    pub(crate) fn insert(&mut self, slots: &mut [Slot], nursery: Nursery, taken: usize) {
        self.peak = self.peak.max(taken);
        self.since_tick += CAPACITY as usize;
        if self.since_tick >= TICK {
            return self.insert_at_tick(slots, nursery, taken);
        }
        self.insert_now(slots, nursery, taken);
    }

    #[cold]
    fn insert_at_tick(&mut self, slots: &mut [Slot], nursery: Nursery, taken: usize) {
        self.housekeeping(slots);
        // The peak restarts at the current number of entries. Housekeeping may have left the tray,
        // which this insert may take into use again: no more entries may be moved there than fit.
        self.peak = taken;
        self.insert_now(slots, nursery, taken);
    }

    #[inline(always)]
    fn insert_now(&mut self, slots: &mut [Slot], nursery: Nursery, taken: usize) {
        let state = self.classes.state();
        let uniform = self.classes.uniform();
        if uniform.will_hold(state) {
            if uniform.is_base() {
                return self.insert_base(slots, nursery);
            }
            if self.awake != 0 {
                return self.insert_uniform::<true>(slots, nursery);
            }
            return self.insert_uniform::<false>(slots, nursery);
        }
        if !state.has_flags() {
            return self.insert_classes(slots, nursery);
        }
        if self.tray.is_in_use() {
            return self.insert_in_tray(slots, nursery, taken);
        }
        self.insert_general(slots, nursery);
    }

    /// All entries are of the base class, and keys are exact.
    #[inline(never)]
    fn insert_base(&mut self, slots: &mut [Slot], nursery: Nursery) {
        let pattern = self.classes.base();
        self.insert_under(slots, nursery, Class::BASE, pattern.wildcards(), &pattern);
    }

    /// One pattern serves all entries, and all keys except those of side indexes.
    #[inline(never)]
    fn insert_uniform<const SIDE: bool>(&mut self, slots: &mut [Slot], nursery: Nursery) {
        let uniform = self.classes.uniform();
        let (class, entries, pattern) = (uniform.class, uniform.entries, uniform.pattern);
        let are_uniform = if pattern.wildcards().any_source {
            self.insert_under(slots, nursery, class, entries, &pattern.with_source(false))
        } else {
            self.insert_under(slots, nursery, class, entries, &pattern.with_source(true))
        };
        if SIDE && are_uniform && class == Class::BASE {
            self.insert_in_side(slots, nursery.all());
        }
    }

    /// Adds entries that should all have these wildcards. If they do not, they are added each by
    /// its own kind. Returns true if they do.
    #[inline(always)]
    fn insert_under(
        &mut self,
        slots: &mut [Slot],
        nursery: Nursery,
        class: Class,
        entries: Wildcards,
        pattern: &Pattern,
    ) -> bool {
        let ids = nursery.all();
        if !ids.into_iter().all(|id| slots[usize::from(id)].wildcards() == entries) {
            self.insert_each(slots, ids);
            return false;
        }
        self.classes.enter_several(class, ids.len());
        for id in ids {
            let slot = &mut slots[usize::from(id)];
            slot.stamp = slot.stamp.with_class(class);
            self.home.index.insert(slots, (class, pattern), id);
        }
        true
    }

    /// The entries are not all uniform.
    #[inline(never)]
    fn insert_each(&mut self, slots: &mut [Slot], ids: [u16; CAPACITY as usize]) {
        for id in ids {
            self.insert_one(slots, id);
        }
        self.consider_tray(slots);
    }

    /// Only known: the tray is not in use.
    #[inline(never)]
    pub(super) fn insert_general(&mut self, slots: &mut [Slot], nursery: Nursery) {
        if self.tray_suits() {
            self.enter_tray(slots);
            return self.insert_in_tray(slots, nursery, self.peak);
        }
        if self.wishes.are_pending() {
            self.fulfil(slots);
        }
        for id in nursery.all() {
            self.insert_one(slots, id);
        }
    }

    /// Adds an entry to all structures that must contain it, while the tray is not in use.
    #[inline(always)]
    pub(super) fn insert_one(&mut self, slots: &mut [Slot], id: u16) {
        let slot = &mut slots[usize::from(id)];
        if self.classes.enter_base(slot.wildcards()) {
            slot.stamp = slot.stamp.with_class(Class::BASE);
            self.home.index.insert(slots, (Class::BASE, &self.home.pattern), id);
            if self.awake != 0 {
                self.insert_in_side(slots, [id]);
            }
        } else {
            self.insert_wild(slots, id);
        }
        if self.scan_keep.is_awake() && slots[usize::from(id)].stamp.class() != Class::NONE {
            self.scan.push(&slots[usize::from(id)], id);
        }
    }

    /// Adds an entry that is not of the base class, or is the first of all.
    #[inline(never)]
    fn insert_wild(&mut self, slots: &mut [Slot], id: u16) {
        let slot = &mut slots[usize::from(id)];
        let class = self.classes.enter_wild(slot.wildcards());
        slot.stamp = slot.stamp.with_class(class);
        if class == Class::NONE {
            return self.insert_unclassed(slots, id);
        }
        let home = &mut self.home;
        if class == Class::BASE {
            home.pattern = self.classes.base();
        }
        if home.keys == Wildcards::NONE {
            home.index.insert_marked(slots, (class, self.classes.pattern(class)), id);
        } else {
            self.rebuild_home(slots, Wildcards::NONE);
        }
    }

    #[inline(always)]
    fn insert_unclassed(&mut self, slots: &[Slot], id: u16) {
        self.scan.push(&slots[usize::from(id)], id);
        self.unclassed += 1;
        if self.unclassed == 1 {
            self.refresh_state();
        }
    }
}
