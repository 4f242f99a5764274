// SPDX-License-Identifier: BSD-2-Clause
//! Builds, rebuilds and drops the structures of the index as searches need them. A *tick* is a call
//! of `Index::housekeeping`, about every 64 inserts.
//!
//! Searches leave a request to report that they use the primary index. A request by every search
//! would cost 0.3 ns, so only one search every `ASK` ticks leaves one:
//!
//! ```text
//! every ASK ticks:                     blocks the fast path (Uniform::quiet_state)
//! a search with uniform keys:          takes the general path, notes the use of the index,
//!                                      and leaves the request RebuildRequest::PrimaryUsed
//! a later remove or insert:            opens the fast path again
//! no use for long (IdleTimeout):       the index is rebuilt for other keys
//! ```
//!
//! If the primary index serves keys with and without a source, searches with a source count the
//! entries that they pass ([`Buckets::passed`](crate::index::buckets::Buckets)). If the count is
//! too high, the search leaves the request
//! [`RebuildRequest::SplitPrimary`](crate::index::rebuild_requests::RebuildRequest).

use std::sync::atomic::Ordering::Relaxed;

use super::Index;
use super::pattern::Pattern;
use super::primary::PASSES_PER_INSERT;
use super::put_in_order;
use super::rebuild_requests::RebuildRequest;
use super::secondary::SECONDARY_INDEXES;
use super::small_set::policy::{
    ALIKE, ENTER_AFTER, LEAVE_AFTER, LastEntry, MANY, Noting, POSITIONS, REVIEW,
};
use crate::bits::Bits;
use crate::entry::Key;
use crate::recent::RecentEntries;
use crate::slot::{Class, Slot};
use crate::wildcards::Wildcards;

/// Ticks for which the first split of the primary index lasts (see `split_primary`). Each further
/// split lasts twice as long.
const SPLIT_TICKS: u32 = 4096;

/// Maximum number of doublings of `SPLIT_TICKS`.
const MOST_DOUBLINGS: u32 = 15;

/// Ticks between two requests for
/// [`RebuildRequest::PrimaryUsed`](crate::index::rebuild_requests::RebuildRequest): rare enough to
/// cost nothing, and frequent enough for [`IdleTimeout`](crate::index::idle_timeout::IdleTimeout).
const ASK: u32 = 4;

impl Index {
    /// Fulfils the requests of searches.
    #[cold]
    #[inline(never)]
    pub(super) fn fulfil(&mut self, slots: &mut [Slot]) {
        for request in self.requests.take() {
            match request {
                RebuildRequest::ScanAll if !self.scan_timeout.is_active() => {
                    self.scan_timeout.activate();
                    self.fill_scan(slots, |_| true);
                }
                RebuildRequest::Keys(keys)
                    if self.primary.may_serve(keys) && self.entries_are_exact() =>
                {
                    self.rebuild_primary(slots, keys);
                }
                RebuildRequest::Keys(keys) => self.activate_secondary(slots, keys),
                RebuildRequest::SplitPrimary => self.split_primary(slots),
                RebuildRequest::PrimaryUsed => self.classes.note_primary_used(),
                RebuildRequest::ScanAll => {}
            }
        }
        self.refresh_state();
    }

    /// Clears the scan, and fills it with the entries whose class `wanted` accepts.
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

    /// Sets the flags of the state according to the keys of the primary index and the other
    /// structures. Also determines whether the queue is uniform.
    pub(super) fn refresh_state(&mut self) {
        if self.small_set.in_use {
            self.classes.suspend_uniform();
            return self.classes.set_flags(true, true);
        }
        let wild_keys = self.primary.keys != Wildcards::NONE || self.active != 0;
        let extra_work = self.active != 0 || self.is_more_than_indexes();
        self.classes.set_flags(wild_keys, extra_work);
        self.find_uniform();
    }

    /// Determines whether one pattern serves all entries, and all keys except those of secondary
    /// indexes.
    pub(super) fn find_uniform(&mut self) {
        if self.unclassed != 0 {
            return self.classes.suspend_uniform();
        }
        let others = self.is_more_than_indexes();
        self.classes.find_uniform(self.primary.keys, self.active != 0, others);
    }

    /// Returns true if there are structures or requests besides the indexes.
    fn is_more_than_indexes(&self) -> bool {
        self.scan_timeout.is_active() || self.unclassed != 0 || self.requests.are_pending()
    }

    /// Drops structures that were unused for long, and does other work that is not needed at every
    /// insert.
    #[cold]
    pub(super) fn housekeeping(&mut self, slots: &mut [Slot]) {
        if self.requests.are_pending() {
            self.fulfil(slots);
        }
        let inserts = std::mem::take(&mut self.since_tick);
        let peak = std::mem::take(&mut self.peak);
        self.high_water = self.high_water.max(peak);
        if self.tick_small_set(slots, peak) {
            return;
        }
        let len = self.len();
        for which in 0..SECONDARY_INDEXES {
            if self.secondary[which].timeout.tick(inserts, len) {
                self.deactivate_secondary(which);
            }
        }
        self.tick_primary(slots, inserts, len);
        if self.scan_timeout.tick(inserts, len) {
            self.fill_scan(slots, |class| class == Class::NONE);
        }
        self.reseed(slots, inserts);
        self.refresh_state();
    }

    /// Rebuilds, with another hash, each index in which a search passed many entries, unless its
    /// hash was changed recently. Rebuilds each secondary index that has too few buckets.
    fn reseed(&mut self, slots: &mut [Slot], inserts: usize) {
        if self.primary.buckets.reseed(inserts, self.high_water, self.classes.live()) {
            self.fill_primary(slots);
        }
        for which in Bits(self.active.into()) {
            let lists = &mut self.secondary[which].lists;
            let narrow = lists.is_narrow(self.high_water);
            if narrow {
                lists.clear(self.high_water, slots.len());
            }
            if narrow || lists.reseed(inserts, self.high_water) {
                self.fill_secondary(slots, which);
            }
        }
    }
}

/// The primary index.
impl Index {
    /// Rebuilds the primary index for keys of this kind.
    #[cold]
    pub(super) fn rebuild_primary(&mut self, slots: &mut [Slot], keys: Wildcards) {
        self.set_primary(keys);
        self.primary.buckets.clear(self.classes.live());
        self.primary.set_pass_budget(self.high_water.max(self.peak));
        self.fill_primary(slots);
        self.refresh_state();
    }

    /// Makes the empty primary index serve keys of this kind.
    pub(super) fn set_primary(&mut self, keys: Wildcards) {
        let primary = &mut self.primary;
        primary.keys = keys;
        primary.pattern = match keys {
            Wildcards::NONE => self.classes.base(),
            _ => Pattern::new(keys),
        };
        primary.timeout.activate();
        match keys.any_source {
            true => primary.timeout_any_source.activate(),
            false => primary.timeout_any_source.deactivate(),
        }
    }

    /// Fills the empty primary index with the entries that have a class.
    pub(super) fn fill_primary(&mut self, slots: &mut [Slot]) {
        let used = self.slots_used(slots);
        for &id in put_in_order(&mut self.order, used) {
            let class = slots[usize::from(id)].stamp.class();
            let pattern = match class {
                Class::BASE => &self.primary.pattern,
                Class::SMALL_SET | Class::NONE => continue,
                class => self.classes.pattern(class),
            };
            self.primary.buckets.insert_marked(slots, (class, pattern), id);
        }
    }

    /// Adapts the primary index to the keys that are used.
    pub(super) fn tick_primary(&mut self, slots: &mut [Slot], inserts: usize, len: usize) {
        let primary = &mut self.primary;
        primary.split = primary.split.saturating_sub(1);
        primary.set_pass_budget(self.high_water);
        primary.buckets.credit(PASSES_PER_INSERT * inserts);
        if self.active == 0 {
            // Searches with exact keys leave no request in this case.
            primary.timeout.note_use();
        }
        primary.ticks = primary.ticks.wrapping_add(1);
        if primary.ticks.is_multiple_of(ASK) {
            self.classes.ask_whether_primary_is_used();
        }
        if primary.timeout.tick(inserts, len) {
            primary.timeout.activate();
            self.serve_other_keys(slots);
        } else if primary.timeout_any_source.tick(inserts, len) {
            let keys = primary.keys.with_source();
            self.rebuild_primary(slots, keys);
        }
    }

    /// Splits a primary index in which searches with a source pass too many entries. The primary
    /// index then serves only keys with a source, and a secondary index serves keys without a
    /// source. Each split lasts longer than the one before.
    #[cold]
    pub(super) fn split_primary(&mut self, slots: &mut [Slot]) {
        let primary = &mut self.primary;
        let keys = primary.keys;
        if keys.any_source && primary.should_split() {
            primary.split = SPLIT_TICKS << primary.doublings;
            primary.doublings = MOST_DOUBLINGS.min(primary.doublings + 1);
            self.rebuild_primary(slots, keys.with_source());
            self.activate_secondary(slots, keys);
        }
    }

    /// Called if no search has used the primary index for long. Rebuilds it for the keys of the
    /// secondary index that was used last, and drops that secondary index. Does nothing if there is
    /// no secondary index, or if entries have wildcards.
    fn serve_other_keys(&mut self, slots: &mut [Slot]) {
        if !self.entries_are_exact() {
            return;
        }
        let idle = |&which: &usize| self.secondary[which].timeout.idle_inserts();
        if let Some(which) = Bits(self.active.into()).min_by_key(idle)
            && let Some(keys) = self.deactivate_secondary(which)
        {
            self.rebuild_primary(slots, keys);
        }
    }
}

/// Secondary indexes.
impl Index {
    /// Adds base entries to the secondary indexes.
    #[inline(never)]
    pub(super) fn insert_in_secondary<const N: usize>(&mut self, slots: &[Slot], ids: [u16; N]) {
        for which in Bits(self.active.into()) {
            let secondary = &mut self.secondary[which % SECONDARY_INDEXES];
            for id in ids {
                secondary.insert(slots, id);
            }
        }
    }

    /// Removes a base entry from the secondary indexes.
    #[inline(always)]
    pub(super) fn remove_from_secondary(&mut self, id: u16) {
        for which in Bits(self.active.into()) {
            self.secondary[which % SECONDARY_INDEXES].lists.remove(id);
        }
    }

    /// Called if all entries are exact and the primary index does not serve the key.
    #[inline(never)]
    pub(super) fn first_match_in_secondary<'a>(
        &self,
        slots: &'a [Slot],
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        let keys = key.wildcards();
        let which = usize::from(self.serving[keys.cell()]) % SECONDARY_INDEXES;
        let secondary = &self.secondary[which];
        if secondary.keys != Some(keys) {
            return self.first_match_unserved(slots, key);
        }
        secondary.first(slots, key)
    }

    /// Builds a secondary index for keys of this kind. It replaces one that is not maintained or,
    /// if all are maintained, the one that was unused for longest. Does nothing if a search has
    /// used the index to be replaced within as many inserts as there are entries.
    pub(super) fn activate_secondary(&mut self, slots: &[Slot], keys: Wildcards) {
        let len = self.len();
        let idle = |&which: &usize| self.secondary[which].timeout.idle_inserts();
        let Some(which) = (0..SECONDARY_INDEXES).max_by_key(idle) else { return };
        if idle(&which) < len {
            return;
        }
        let entries = self.high_water.max(self.peak);
        let secondary = &mut self.secondary[which];
        secondary.keys = Some(keys);
        secondary.pattern = Pattern::new(keys);
        secondary.lists.clear(entries, slots.len());
        secondary.timeout.activate();
        self.serving[keys.cell()] = which as u8;
        self.active |= 1 << which;
        self.fill_secondary(slots, which);
    }

    /// Fills an empty secondary index with the base entries.
    pub(super) fn fill_secondary(&mut self, slots: &[Slot], which: usize) {
        let used = self.slots_used(slots);
        for &id in put_in_order(&mut self.order, used) {
            if slots[usize::from(id)].stamp.class() == Class::BASE {
                self.secondary[which].insert(slots, id);
            }
        }
    }

    /// Stops maintaining a secondary index. Returns the keys that it served; `None` if it was not
    /// maintained.
    pub(super) fn deactivate_secondary(&mut self, which: usize) -> Option<Wildcards> {
        self.active &= !(1 << which);
        self.secondary[which].timeout.deactivate();
        self.secondary[which].keys.take()
    }
}

/// The small set.
impl Index {
    /// Adds four recent entries to the small set. If they do not fit, moves all entries out of the
    /// small set instead.
    #[inline(never)]
    pub(super) fn insert_in_small_set(
        &mut self,
        slots: &mut [Slot],
        recent: RecentEntries,
        taken: usize,
    ) {
        if !self.small_set.has_room_for(taken, slots) {
            return self.outgrow_small_set(slots, recent, ENTER_AFTER);
        }
        if self.small_set.is_sparse() {
            self.small_set.close_up(slots);
        }
        if self.small_set.tail == POSITIONS {
            // Closing up would gain only few positions.
            return self.outgrow_small_set(slots, recent, REVIEW);
        }
        self.small_set.push(slots, recent.all());
    }

    /// Moves all entries out of the small set, because they do not fit, and adds the recent entries
    /// elsewhere. The small set stays unused for at least this many ticks with few entries.
    #[cold]
    fn outgrow_small_set(&mut self, slots: &mut [Slot], recent: RecentEntries, ticks: u32) {
        self.small_set.policy.wait = ticks;
        self.leave_small_set(slots);
        self.insert_general(slots, recent);
    }

    /// Moves all entries from the indexes and the scan to the small set.
    #[cold]
    pub(super) fn enter_small_set(&mut self, slots: &mut [Slot]) {
        // The small set serves all keys that searches requested structures for.
        self.requests.take().for_each(drop);
        self.small_set.policy.enter(self.have_many_kinds());
        let len = self.in_order(slots).len();
        for at in 0..len {
            let id = self.order[at];
            self.remove_everywhere(slots, id, slots[usize::from(id)].stamp.class());
            self.small_set.entries.ids[at] = id;
        }
        self.small_set.fill(slots, len);
        self.small_set.in_use = true;
        self.refresh_state();
    }

    /// Moves all entries from the small set to the indexes and the scan.
    pub(super) fn leave_small_set(&mut self, slots: &mut [Slot]) {
        let (ids, live) = (self.small_set.entries.ids, self.small_set.entries.live);
        self.small_set.entries.live = 0;
        self.small_set.tail = 0;
        self.small_set.in_use = false;
        self.refresh_state();
        for at in Bits(live) {
            self.insert_one(slots, ids[at]);
        }
    }

    /// Takes the small set into use if there are few entries, and these are of several kinds.
    #[inline(never)]
    pub(super) fn consider_small_set(&mut self, slots: &mut [Slot]) {
        if self.small_set_suits() && (self.classes.are_several() || self.unclassed != 0) {
            self.enter_small_set(slots);
        }
    }

    /// Returns true if the small set may be taken into use.
    #[inline(always)]
    pub(super) fn small_set_suits(&self) -> bool {
        let policy = &self.small_set.policy;
        policy.wait == 0 && policy.has_room(self.peak, self.have_many_kinds())
    }

    /// Returns true if indexes for many kinds of keys are maintained, if most entries have no
    /// class, or if all entries are in the scan and some are not base entries.
    #[inline(always)]
    pub(super) fn have_many_kinds(&self) -> bool {
        self.active.count_ones() >= MANY
            || self.unclassed > self.classes.len()
            || self.scan_timeout.is_active() && self.classes.has_wild()
    }

    /// Leaves a small set that is no longer needed. If the small set is not in use, counts the
    /// ticks until it may be used. Returns true if the small set is in use afterwards.
    pub(super) fn tick_small_set(&mut self, slots: &mut [Slot], peak: usize) -> bool {
        let noting = std::mem::replace(self.small_set.policy.noting.get_mut(), Noting::NONE.0);
        if !self.small_set.in_use {
            let has_room = self.small_set.policy.has_room(peak, self.have_many_kinds());
            let wait = &mut self.small_set.policy.wait;
            *wait = if has_room { wait.saturating_sub(1) } else { ENTER_AFTER.max(*wait) };
            return false;
        }
        let noting = Noting(noting);
        // Entries of several kinds may stay although none was added since the last tick.
        let one_kind = noting != Noting::SEVERAL && !self.small_set.has_more_kinds::<1>(slots);
        let exact_keys = matches!(noting, Noting::NONE | Noting::EXACT);
        let policy = &mut self.small_set.policy;
        policy.ticks += 1;
        policy.plain_ticks = if one_kind && exact_keys { policy.plain_ticks + 1 } else { 0 };
        if !one_kind {
            policy.sample.reject();
        }
        if self.small_set.policy.plain_ticks == LEAVE_AFTER {
            self.leave_small_set_for(slots, Wildcards::NONE);
        } else if self.keys_are_alike(peak) {
            self.leave_small_set_for(slots, self.small_set.policy.sample.keys());
        } else if self.small_set.policy.ticks == REVIEW {
            self.small_set.policy.forget_kinds();
            self.deactivate_all_secondary();
        }
        self.small_set.in_use
    }

    /// Returns true if for long all entries were exact and all keys of one kind, and there are
    /// enough entries for an index to be faster.
    fn keys_are_alike(&self, peak: usize) -> bool {
        let policy = &self.small_set.policy;
        policy.sample.alike.load(Relaxed) >= ALIKE
            && peak > policy.few / 2
            && policy.last == LastEntry::default()
            && self.classes.base().wildcards() == Wildcards::NONE
    }

    /// Moves all entries to the primary index, which then serves keys of this kind. No other
    /// structure is maintained.
    #[cold]
    fn leave_small_set_for(&mut self, slots: &mut [Slot], keys: Wildcards) {
        self.small_set.policy.sample.reject();
        self.deactivate_all_secondary();
        self.scan_timeout.deactivate();
        self.set_primary(keys);
        self.leave_small_set(slots);
    }

    /// Stops maintaining the secondary indexes, which are empty. Searches may request them again.
    fn deactivate_all_secondary(&mut self) {
        for which in 0..SECONDARY_INDEXES {
            self.deactivate_secondary(which);
        }
    }
}

#[cfg(test)]
#[path = "maintenance_tests.rs"]
mod tests;
