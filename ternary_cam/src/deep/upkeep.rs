// SPDX-License-Identifier: BSD-2-Clause
//! Builds, rebuilds and drops structures as searches need them.
//!
//! The home index learns from wishes of searches whether keys of its kind are still used. A wish
//! for each search would cost 0.3 ns, so only the first search in a while leaves one:
//!
//! ```text
//! every ASK ticks:                     no state is quiet any longer (uniform.rs)
//! a search with uniform keys:          takes the general path, notes its use, and leaves
//!                                      the wish Wish::HomeUsed
//! a later remove or insert:            the state is quiet again, searches take the fast path
//! no use for long (Keep):              the index serves other keys
//! ```
//!
//! If an index serves keys with and without a source, searches with a source count the entries that
//! they pass ([`crate::deep::index::Index::walked`]). If these are too many, a search leaves the
//! wish [`crate::deep::wishes::Wish::SplitHome`].

use std::sync::atomic::Ordering::Relaxed;

use super::Deep;
use super::home::WALK_PER_INSERT;
use super::pattern::Pattern;
use super::put_in_order;
use super::side::SIDE_INDEXES;
use super::tray::policy::{
    ALIKE, ENTER_AFTER, LEAVE_AFTER, LastEntry, MANY, Noting, POSITIONS, REVIEW,
};
use super::wishes::Wish;
use crate::bits::Bits;
use crate::entry::Key;
use crate::nursery::Nursery;
use crate::slot::{Class, Slot};
use crate::wildcards::Wildcards;

/// Number of ticks for which the home index is split the first time. It doubles each time.
const SPLIT_TICKS: u32 = 4096;

/// Maximum number of doublings.
const MOST_DOUBLINGS: u32 = 15;

/// Ticks between two requests for [`crate::deep::wishes::Wish::HomeUsed`]: rare enough to cost
/// nothing, and frequent enough for [`crate::deep::keep::Keep`].
const ASK: u32 = 4;

impl Deep {
    /// Fulfils the wishes of searches.
    #[cold]
    #[inline(never)]
    pub(super) fn fulfil(&mut self, slots: &mut [Slot]) {
        for wish in self.wishes.take() {
            match wish {
                Wish::ScanAll if !self.scan_keep.is_awake() => {
                    self.scan_keep.wake();
                    self.fill_scan(slots, |_| true);
                }
                Wish::Keys(keys) if self.home.may_serve(keys) && self.entries_are_exact() => {
                    self.rebuild_home(slots, keys);
                }
                Wish::Keys(keys) => self.wake_side(slots, keys),
                Wish::SplitHome => self.split_home(slots),
                Wish::HomeUsed => self.classes.note_home_used(),
                Wish::ScanAll => {}
            }
        }
        self.refresh_state();
    }

    /// Fills the scan with the entries of some classes.
    fn fill_scan(&mut self, slots: &[Slot], wanted: impl Fn(Class) -> bool) {
        let used = self.slots_used(slots);
        self.scan.clear();
        for &id in put_in_order(&mut self.order, used) {
            let slot = &slots[usize::from(id)];
            if wanted(slot.stamp.class()) {
                self.scan.push(slot, id);
            }
        }
    }

    /// Sets the state's flags according to the structures besides the home index.
    pub(super) fn refresh_state(&mut self) {
        if self.tray.is_in_use() {
            self.classes.suspend_uniform();
            return self.classes.set_flags(true, true);
        }
        let wild_keys = self.home.keys != Wildcards::NONE || self.awake != 0;
        let extra_work = self.awake != 0 || self.is_more_than_indexes();
        self.classes.set_flags(wild_keys, extra_work);
        self.find_uniform();
    }

    /// Determines whether one pattern serves all entries, and all keys except those of side
    /// indexes.
    pub(super) fn find_uniform(&mut self) {
        if self.unclassed != 0 {
            return self.classes.suspend_uniform();
        }
        let others = self.is_more_than_indexes();
        self.classes.find_uniform(self.home.keys, self.awake != 0, others);
    }

    /// Returns true if there are structures or wishes besides the indexes.
    fn is_more_than_indexes(&self) -> bool {
        self.scan_keep.is_awake() || self.unclassed != 0 || self.wishes.are_pending()
    }

    /// Work that is not needed at every insert: drops structures that were unused for long.
    #[cold]
    pub(super) fn housekeeping(&mut self, slots: &mut [Slot]) {
        if self.wishes.are_pending() {
            self.fulfil(slots);
        }
        let inserts = std::mem::take(&mut self.since_tick);
        let peak = std::mem::take(&mut self.peak);
        self.high_water = self.high_water.max(peak);
        if self.tick_tray(slots, peak) {
            return;
        }
        let len = self.len();
        for which in 0..SIDE_INDEXES {
            if self.side[which].keep.tick(inserts, len) {
                self.put_to_sleep(which);
            }
        }
        self.tick_home(slots, inserts, len);
        if self.scan_keep.tick(inserts, len) {
            self.fill_scan(slots, |class| class == Class::NONE);
        }
        self.spread_anew(slots, inserts);
        self.refresh_state();
    }

    /// Rebuilds each index in which a search passed many entries with another hash, unless that was
    /// done recently. Rebuilds each side index with too few buckets with more.
    fn spread_anew(&mut self, slots: &mut [Slot], inserts: usize) {
        if self.home.index.spread_anew(inserts, self.high_water, self.classes.live()) {
            self.fill_home(slots);
        }
        for which in Bits(self.awake.into()) {
            let rings = &mut self.side[which].rings;
            let narrow = rings.is_narrow(self.high_water);
            if narrow {
                rings.clear(self.high_water, slots.len());
            }
            if narrow || rings.spread_anew(inserts, self.high_water) {
                self.fill_side(slots, which);
            }
        }
    }
}

/// The home index.
impl Deep {
    /// Rebuilds the home index for keys of this kind.
    #[cold]
    pub(super) fn rebuild_home(&mut self, slots: &mut [Slot], keys: Wildcards) {
        self.set_home(keys);
        self.home.index.clear(self.classes.live());
        self.home.set_walk_budget(self.high_water.max(self.peak));
        self.fill_home(slots);
        self.refresh_state();
    }

    /// Makes the empty home index serve keys of this kind.
    pub(super) fn set_home(&mut self, keys: Wildcards) {
        let home = &mut self.home;
        home.keys = keys;
        home.pattern = match keys {
            Wildcards::NONE => self.classes.base(),
            _ => Pattern::new(keys),
        };
        home.keep.wake();
        match keys.any_source {
            true => home.keep_any_source.wake(),
            false => home.keep_any_source.sleep(),
        }
    }

    /// Fills the empty home index with the entries that have a class.
    pub(super) fn fill_home(&mut self, slots: &mut [Slot]) {
        let used = self.slots_used(slots);
        for &id in put_in_order(&mut self.order, used) {
            let class = slots[usize::from(id)].stamp.class();
            let pattern = match class {
                Class::BASE => &self.home.pattern,
                Class::TRAY | Class::NONE => continue,
                class => self.classes.pattern(class),
            };
            self.home.index.insert_marked(slots, (class, pattern), id);
        }
    }

    /// Adapts the home index to the keys that are used.
    pub(super) fn tick_home(&mut self, slots: &mut [Slot], inserts: usize, len: usize) {
        let home = &mut self.home;
        home.split = home.split.saturating_sub(1);
        home.set_walk_budget(self.high_water);
        home.index.credit(WALK_PER_INSERT * inserts);
        if self.awake == 0 {
            // Searches with exact keys leave no wish in this case.
            home.keep.note_use();
        }
        home.ticks = home.ticks.wrapping_add(1);
        if home.ticks.is_multiple_of(ASK) {
            self.classes.ask_whether_home_is_used();
        }
        if home.keep.tick(inserts, len) {
            home.keep.wake();
            self.serve_other_keys(slots);
        } else if home.keep_any_source.tick(inserts, len) {
            let keys = home.keys.with_source();
            self.rebuild_home(slots, keys);
        }
    }

    /// Searches with a source pass too many entries in the home index. Makes it serve only keys
    /// with a source, for longer each time, and a side index those without.
    #[cold]
    pub(super) fn split_home(&mut self, slots: &mut [Slot]) {
        let home = &mut self.home;
        let keys = home.keys;
        if keys.any_source && home.is_walked_too_far() {
            home.split = SPLIT_TICKS << home.doublings;
            home.doublings = MOST_DOUBLINGS.min(home.doublings + 1);
            self.rebuild_home(slots, keys.with_source());
            self.wake_side(slots, keys);
        }
    }

    /// The home index was not used for long. Makes it serve the keys of a side index, which is
    /// dropped.
    fn serve_other_keys(&mut self, slots: &mut [Slot]) {
        if !self.entries_are_exact() {
            return;
        }
        let idle = |&which: &usize| self.side[which].keep.idle();
        if let Some(which) = Bits(self.awake.into()).min_by_key(idle)
            && let Some(keys) = self.put_to_sleep(which)
        {
            self.rebuild_home(slots, keys);
        }
    }
}

/// Side indexes.
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

    /// Removes a base entry.
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

    /// Builds an index for keys of this kind. It replaces an index that is not kept up, or the one
    /// that was unused for longest, if that is long enough.
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
        side.rings.clear(entries, slots.len());
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

    /// Stops keeping up an index. Returns the keys that it served.
    pub(super) fn put_to_sleep(&mut self, which: usize) -> Option<Wildcards> {
        self.awake &= !(1 << which);
        self.side[which].keep.sleep();
        self.side[which].keys.take()
    }
}

/// The tray.
impl Deep {
    /// Adds the entries of a nursery to the tray. If there are too many, the tray is left.
    #[inline(never)]
    pub(super) fn insert_in_tray(&mut self, slots: &mut [Slot], nursery: Nursery, taken: usize) {
        if !self.tray.has_room_for(taken, slots) {
            return self.outgrow_tray(slots, nursery, ENTER_AFTER);
        }
        if self.tray.is_sparse() {
            self.tray.close_up(slots);
        }
        if self.tray.tail == POSITIONS {
            // After closing up, it would be full again soon.
            return self.outgrow_tray(slots, nursery, REVIEW);
        }
        self.tray.push(slots, nursery.all());
    }

    /// Leaves the tray for this many ticks, because the entries do not fit.
    #[cold]
    fn outgrow_tray(&mut self, slots: &mut [Slot], nursery: Nursery, ticks: u32) {
        self.tray.policy.wait(ticks);
        self.leave_tray(slots);
        self.insert_general(slots, nursery);
    }

    /// Moves all entries from the indexes and the scan to the tray.
    #[cold]
    pub(super) fn enter_tray(&mut self, slots: &mut [Slot]) {
        // The tray serves all keys that searches requested structures for.
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

    /// Moves all entries to the structures that contain them without a tray.
    pub(super) fn leave_tray(&mut self, slots: &mut [Slot]) {
        let (ids, live) = (self.tray.entries.ids, self.tray.entries.live);
        self.tray.entries.live = 0;
        self.tray.tail = 0;
        self.tray.in_use = false;
        self.refresh_state();
        for at in Bits(live) {
            self.insert_one(slots, ids[at]);
        }
    }

    /// Takes the tray into use if there are few entries, of several kinds.
    #[inline(never)]
    pub(super) fn consider_tray(&mut self, slots: &mut [Slot]) {
        if self.tray_suits() && (self.classes.are_several() || self.unclassed != 0) {
            self.enter_tray(slots);
        }
    }

    /// Returns true if the tray may be taken into use.
    #[inline(always)]
    pub(super) fn tray_suits(&self) -> bool {
        let policy = &self.tray.policy;
        policy.wait == 0 && policy.has_room(self.peak, self.have_many_kinds())
    }

    /// Returns true if indexes for many kinds of keys are kept up, if most entries have no class,
    /// or if the scan compares keys of several kinds with entries of several kinds.
    #[inline(always)]
    pub(super) fn have_many_kinds(&self) -> bool {
        self.awake.count_ones() >= MANY
            || self.unclassed > self.classes.len()
            || self.scan_keep.is_awake() && self.classes.has_wild()
    }

    /// If the tray is in use, leaves it if it is no longer needed; otherwise checks whether it
    /// would suit. Returns true if it is in use.
    pub(super) fn tick_tray(&mut self, slots: &mut [Slot], peak: usize) -> bool {
        let noting = std::mem::replace(self.tray.policy.noting.get_mut(), Noting::NONE.0);
        if !self.tray.in_use {
            let has_room = self.tray.policy.has_room(peak, self.have_many_kinds());
            let wait = &mut self.tray.policy.wait;
            *wait = if has_room { wait.saturating_sub(1) } else { ENTER_AFTER.max(*wait) };
            return false;
        }
        let noting = Noting(noting);
        // Entries of several kinds may stay although none was added since the last tick.
        let one_kind = noting != Noting::SEVERAL && !self.tray.has_more_kinds::<1>(slots);
        let exact_keys = matches!(noting, Noting::NONE | Noting::EXACT);
        let policy = &mut self.tray.policy;
        policy.ticks += 1;
        policy.plain = if one_kind && exact_keys { policy.plain + 1 } else { 0 };
        if !one_kind {
            policy.sample.reject();
        }
        if self.tray.policy.plain == LEAVE_AFTER {
            self.leave_tray_for(slots, Wildcards::NONE);
        } else if self.keys_are_alike(peak) {
            self.leave_tray_for(slots, self.tray.policy.sample.keys());
        } else if self.tray.policy.ticks == REVIEW {
            self.tray.policy.forget_kinds();
            self.sleep_all_but_home();
        }
        self.tray.in_use
    }

    /// Returns true if for long all entries were exact and all keys of one kind, and there are
    /// enough entries for an index to be faster.
    fn keys_are_alike(&self, peak: usize) -> bool {
        let policy = &self.tray.policy;
        policy.sample.alike.load(Relaxed) >= ALIKE
            && peak > policy.few / 2
            && policy.last == LastEntry::default()
            && self.classes.base().wildcards() == Wildcards::NONE
    }

    /// Moves all entries to the home index, which then serves keys of this kind. No other structure
    /// is kept up.
    #[cold]
    fn leave_tray_for(&mut self, slots: &mut [Slot], keys: Wildcards) {
        self.tray.policy.sample.reject();
        self.sleep_all_but_home();
        self.scan_keep.sleep();
        self.set_home(keys);
        self.leave_tray(slots);
    }

    /// Stops keeping up the side indexes, which are empty. Keys may request them again.
    fn sleep_all_but_home(&mut self) {
        for which in 0..SIDE_INDEXES {
            self.put_to_sleep(which);
        }
    }
}

#[cfg(test)]
#[path = "upkeep_tests.rs"]
mod tests;
