// SPDX-License-Identifier: BSD-2-Clause
//! The index of a table: contains all entries except the recent ones (`recent.rs`), and finds the
//! oldest of them that matches a key. The crate documentation (lib.rs) defines the terms kind,
//! class, pattern, base and uniform.
//!
//! | entries | key | found by |
//! |---|---|---|
//! | of one kind | exact | a probe of the primary index |
//! | exact | of the kind that the primary index serves | a probe of the primary index |
//! | exact | of another kind | a probe of a secondary index, once such keys repeat |
//! | of several classes | exact | a probe of the primary index for each class; the oldest wins |
//! | some without a class | exact | the primary index and the scan; if most have no class, a scan of all entries |
//! | with wildcards | with wildcards | a scan of all entries, after the first such keys |
//! | any | the first keys of their kind | a comparison with every slot in use |
//! | few | any, if entries or keys are of several kinds | a comparison with all entries (the small set) |
//!
//! The primary index hashes base entries under the pattern of the keys that it serves, and other
//! entries under the pattern of their class. At first it serves exact keys. If all searches of a
//! queue are any-source searches, its primary index soon serves these, and no other index is kept.
//! A structure that no search has used for long is dropped, and built again when searches request
//! it.
//!
//! Recent entries move to the index four at a time, by one of these paths:
//!
//! ```text
//! insert
//!  +- insert_base          entries of the base class, exact keys
//!  +- insert_uniform       one pattern serves all entries, and all keys except those of
//!  |                       secondary indexes
//!  +- insert_classes       only the primary index, for exact keys
//!  +- insert_in_small_set  few entries (small_set.rs)
//!  +- insert_general       anything else
//! ```
//!
//! Each path is a separate function. Otherwise a short path would also save the registers that only
//! a long path needs. The comment of a function states the conditions under which it is called. If
//! the first two paths find an entry of another kind, they call `insert_each`. `insert_each`,
//! `insert_classes` and `insert_general` may take the small set into use.
//!
//! Searches take one of these:
//!
//! ```text
//! first_match                only base entries and an exact key; else
//!  +- first_match_exact      exact key, only the primary index
//!  |   +- .._uniform           one pattern serves all entries
//!  |   +- .._classes           entries of several classes
//!  +- first_match_flagged    key with wildcards, or structures besides the primary index
//!      +- .._uniform           one pattern serves all entries and keys of this kind
//!      +- .._named             as above, but this key names its source
//!      +- .._in_secondary      as above, but a secondary index serves this key (secondary.rs)
//!      +- small_set.first      few entries (small_set.rs)
//!      +- .._general
//!          +- first_in_scan    no entry has a class
//!          +- .._wild          wildcards: the scan of all, or the primary index and the scan
//!          +- .._primary       exact entries, the primary index serves the key
//!          +- .._in_secondary  the secondary index that `serving` names, or else
//!              +- .._unserved  another secondary index, the scan, or every slot in use
//! ```
//!
//! Likely cases come first and do the least work. Functions for rare cases are called last, so that
//! the call is a jump.

mod age_log;
mod bucket_lists;
mod buckets;
mod classes;
mod idle_timeout;
mod maintenance;
mod pattern;
mod primary;
mod rebuild_requests;
mod scan;
mod secondary;
mod seeded_hash;
mod small_set;
mod state;
mod uniform;

use crate::bits::Bits;
use crate::entry::{Key, Source};
use crate::kernel::Available;
use crate::recent::{CAPACITY, RecentEntries};
use crate::slot::{Class, Slot};
use crate::wildcards::Wildcards;

use buckets::ProbedBucket;
use classes::Classes;
use idle_timeout::IdleTimeout;
use pattern::Pattern;
use primary::PrimaryIndex;
use rebuild_requests::{RebuildRequest, RebuildRequests};
use scan::Scan;
use secondary::{SECONDARY_INDEXES, SecondaryIndex};
use small_set::SmallSet;
use state::TableState;
use uniform::Uniform;

/// Minimum number of inserts between two calls of [`Index::housekeeping`]. The comments call such a
/// call a tick.
const TICK: usize = 64;

/// Maximum number of slots that a search compares one by one without a request for a faster
/// structure.
const CHEAP_PASS: usize = 8;

/// The structures behind the recent entries; see the module. The fields that operations on base
/// entries use come first, in few cache lines.
#[repr(C)]
pub(crate) struct Index {
    classes: Classes,
    /// Maximum number of entries at an insert since the last [`Index::housekeeping`].
    peak: usize,
    /// Inserts since the last [`Index::housekeeping`].
    since_tick: usize,
    kernel: Available,
    /// Contains every entry that has a class.
    primary: PrimaryIndex,
    /// Indexed by [`Wildcards::cell`] of the keys: the secondary index that was last built for keys
    /// of this cell. If a search tried one index after the other instead, its branches would be
    /// mispredicted, since keys come in any order.
    serving: [u8; Wildcards::CELLS],
    /// Each active one contains every base entry, for keys that the primary index does not serve.
    secondary: [SecondaryIndex; SECONDARY_INDEXES],
    /// Bit `i`: `secondary[i]` is maintained.
    active: u32,
    /// Maximum number of entries at an insert before the last [`Index::housekeeping`].
    high_water: usize,
    /// Scratch memory to sort entries.
    order: Vec<u16>,
    /// Number of entries without a class.
    unclassed: usize,
    /// Contains the entries without a class; all entries while `scan_timeout` is active.
    scan: Scan,
    scan_timeout: IdleTimeout,
    requests: RebuildRequests,
    small_set: SmallSet,
}

impl Index {
    pub(crate) fn new(kernel: Available) -> Self {
        Self {
            kernel,
            high_water: 0,
            peak: 0,
            order: Vec::new(),
            classes: Classes::new(),
            primary: PrimaryIndex::new(),
            serving: [0; Wildcards::CELLS],
            secondary: std::array::from_fn(|_| SecondaryIndex::new()),
            active: 0,
            since_tick: 0,
            unclassed: 0,
            scan: Scan::default(),
            scan_timeout: IdleTimeout::default(),
            requests: RebuildRequests::default(),
            small_set: SmallSet::new(kernel),
        }
    }

    /// Makes room for the entries of all these slots.
    #[cold]
    pub(crate) fn grow(&mut self, slots: &mut [Slot]) {
        self.order.resize(slots.len(), 0);
        self.scan.grow(slots.len());
        for which in Bits(self.active.into()) {
            self.secondary[which % SECONDARY_INDEXES].lists.grow(slots.len());
        }
        if self.primary.buckets.grow(slots.len()) {
            self.fill_primary(slots);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.classes.len() + self.unclassed + self.small_set.len()
    }

    /// Returns the number of entries that are as old as this one or older, including itself. If
    /// neither the small set nor a scan of all entries is in use, compares all entries and requests
    /// the scan for later calls.
    pub(crate) fn rank(&self, slots: &[Slot], id: u16) -> usize {
        if self.small_set.in_use {
            return self.small_set.rank(&slots[usize::from(id)]);
        }
        if self.scan_timeout.is_active() {
            self.scan_timeout.note_use();
            return self.scan.rank(self.kernel, id);
        }
        self.request(RebuildRequest::ScanAll);
        let stamp = slots[usize::from(id)].stamp;
        entries(self.slots_used(slots)).filter(|&(_, slot)| slot.stamp <= stamp).count()
    }

    /// Returns a prefix of `slots` that contains all slots that ever had an entry. The table reuses
    /// freed slots first, and takes new ones in ascending order. Between two calls of
    /// [`Index::insert`], the number of entries in use grows by at most four.
    fn slots_used<'a>(&self, slots: &'a [Slot]) -> &'a [Slot] {
        &slots[..slots.len().min(self.high_water.max(self.peak) + CAPACITY as usize)]
    }

    /// Returns the slot numbers of all entries in the index, oldest first.
    pub(crate) fn in_order(&mut self, slots: &[Slot]) -> &[u16] {
        let used = self.slots_used(slots);
        put_in_order(&mut self.order, used)
    }

    /// Leaves a request, which a later remove or insert fulfils.
    #[inline(always)]
    fn request(&self, request: RebuildRequest) {
        self.requests.add(request);
        self.classes.raise_extra_work();
    }

    /// Returns true if no entry has wildcards. Only then can one index serve keys with wildcards.
    #[inline]
    fn entries_are_exact(&self) -> bool {
        !self.classes.has_wild()
            && self.unclassed == 0
            && self.classes.base().wildcards() == Wildcards::NONE
    }
}

/// Inserts.
impl Index {
    /// Adds four recent entries. `taken` is the number of slots in use, which include the slots of
    /// these entries.
    #[inline(never)]
    pub(crate) fn insert(&mut self, slots: &mut [Slot], recent: RecentEntries, taken: usize) {
        self.peak = self.peak.max(taken);
        self.since_tick += CAPACITY as usize;
        if self.since_tick >= TICK {
            return self.insert_at_tick(slots, recent, taken);
        }
        self.insert_now(slots, recent, taken);
    }

    #[cold]
    fn insert_at_tick(&mut self, slots: &mut [Slot], recent: RecentEntries, taken: usize) {
        self.housekeeping(slots);
        // The peak restarts at the current number of entries. Housekeeping may have left the small
        // set, and this insert may enter it again. It must not move more entries there than fit.
        self.peak = taken;
        self.insert_now(slots, recent, taken);
    }

    #[inline(always)]
    fn insert_now(&mut self, slots: &mut [Slot], recent: RecentEntries, taken: usize) {
        let state = self.classes.state();
        let uniform = self.classes.uniform();
        if uniform.will_hold(state) {
            if uniform.is_base() {
                return self.insert_base(slots, recent);
            }
            if self.active != 0 {
                return self.insert_uniform::<true>(slots, recent);
            }
            return self.insert_uniform::<false>(slots, recent);
        }
        if !state.has_flags() {
            return self.insert_classes(slots, recent);
        }
        if self.small_set.in_use {
            return self.insert_in_small_set(slots, recent, taken);
        }
        self.insert_general(slots, recent);
    }

    /// Called if all entries are of the base class and keys are exact.
    #[inline(never)]
    fn insert_base(&mut self, slots: &mut [Slot], recent: RecentEntries) {
        let pattern = self.classes.base();
        self.insert_under(slots, recent, Class::BASE, pattern.wildcards(), &pattern);
    }

    /// Called if one pattern serves all entries, and all keys except those of secondary indexes.
    #[inline(never)]
    fn insert_uniform<const SECONDARY: bool>(&mut self, slots: &mut [Slot], recent: RecentEntries) {
        let uniform = self.classes.uniform();
        let (class, entries, pattern) = (uniform.class, uniform.entries, uniform.pattern);
        let are_uniform = if pattern.wildcards().any_source {
            self.insert_under(slots, recent, class, entries, &pattern.comparing_source(false))
        } else {
            self.insert_under(slots, recent, class, entries, &pattern.comparing_source(true))
        };
        if SECONDARY && are_uniform && class == Class::BASE {
            self.insert_in_secondary(slots, recent.all());
        }
    }

    /// If all recent entries have the wildcards `entries`, adds them to `class` and returns true.
    /// Otherwise adds each entry according to its kind.
    #[inline(always)]
    fn insert_under(
        &mut self,
        slots: &mut [Slot],
        recent: RecentEntries,
        class: Class,
        entries: Wildcards,
        pattern: &Pattern,
    ) -> bool {
        let ids = recent.all();
        if !ids.into_iter().all(|id| slots[usize::from(id)].wildcards() == entries) {
            self.insert_each(slots, ids);
            return false;
        }
        self.classes.enter_several(class, ids.len());
        for id in ids {
            let slot = &mut slots[usize::from(id)];
            slot.stamp = slot.stamp.with_class(class);
            self.primary.buckets.insert(slots, (class, pattern), id);
        }
        true
    }

    /// Adds recent entries that are not all of the same kind as the entries in the index.
    #[inline(never)]
    fn insert_each(&mut self, slots: &mut [Slot], ids: [u16; CAPACITY as usize]) {
        for id in ids {
            self.insert_one(slots, id);
        }
        self.consider_small_set(slots);
    }

    /// Called if the small set is not in use and no other path applies. May take the small set into
    /// use.
    #[inline(never)]
    fn insert_general(&mut self, slots: &mut [Slot], recent: RecentEntries) {
        if self.small_set_suits() {
            self.enter_small_set(slots);
            return self.insert_in_small_set(slots, recent, self.peak);
        }
        if self.requests.are_pending() {
            self.fulfil(slots);
        }
        for id in recent.all() {
            self.insert_one(slots, id);
        }
    }

    /// Adds an entry to all structures that must contain it, while the small set is not in use.
    #[inline(always)]
    fn insert_one(&mut self, slots: &mut [Slot], id: u16) {
        let slot = &mut slots[usize::from(id)];
        if self.classes.enter_base(slot.wildcards()) {
            slot.stamp = slot.stamp.with_class(Class::BASE);
            self.primary.buckets.insert(slots, (Class::BASE, &self.primary.pattern), id);
            if self.active != 0 {
                self.insert_in_secondary(slots, [id]);
            }
        } else {
            self.insert_wild(slots, id);
        }
        if self.scan_timeout.is_active() && slots[usize::from(id)].stamp.class() != Class::NONE {
            self.scan.push(&slots[usize::from(id)], id);
        }
    }

    /// Adds an entry whose kind is not that of the base class. If the index is empty, the entry may
    /// redefine the base class.
    #[inline(never)]
    fn insert_wild(&mut self, slots: &mut [Slot], id: u16) {
        let slot = &mut slots[usize::from(id)];
        let class = self.classes.enter_wild(slot.wildcards());
        slot.stamp = slot.stamp.with_class(class);
        if class == Class::NONE {
            return self.insert_unclassed(slots, id);
        }
        let primary = &mut self.primary;
        if class == Class::BASE {
            primary.pattern = self.classes.base();
        }
        if primary.keys == Wildcards::NONE {
            primary.buckets.insert_marked(slots, (class, self.classes.pattern(class)), id);
        } else {
            self.rebuild_primary(slots, Wildcards::NONE);
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

    /// Called if there is only the primary index, for exact keys. The function has no loop, because
    /// branches are predicted better if each of the four entries has separate branches.
    #[inline(never)]
    fn insert_classes(&mut self, slots: &mut [Slot], recent: RecentEntries) {
        let [a, b, c, d] = recent.all();
        self.insert_one_of_several(slots, a);
        self.insert_one_of_several(slots, b);
        self.insert_one_of_several(slots, c);
        self.insert_one_of_several(slots, d);
        if self.classes.are_several() || self.unclassed != 0 {
            self.consider_small_set(slots);
        } else {
            self.find_uniform();
        }
    }

    /// Adds one entry. Each paired class (`index/classes.rs`) has a separate path, in which the
    /// address of its entry counter is constant. So the next entry need not wait for that address.
    #[inline(always)]
    fn insert_one_of_several(&mut self, slots: &mut [Slot], id: u16) {
        let wildcards = slots[usize::from(id)].wildcards();
        if !wildcards.any_source {
            if self.classes.has::<0>(wildcards) {
                return self.insert_in::<0>(slots, id);
            }
            if self.classes.has::<2>(wildcards) {
                return self.insert_in::<2>(slots, id);
            }
        } else {
            if self.classes.has::<1>(wildcards) {
                return self.insert_in::<1>(slots, id);
            }
            if self.classes.has::<3>(wildcards) {
                return self.insert_in::<3>(slots, id);
            }
        }
        self.insert_one_rare(slots, id);
    }

    /// Adds an entry of a paired class that has entries.
    #[inline(always)]
    fn insert_in<const CLASS: usize>(&mut self, slots: &mut [Slot], id: u16) {
        self.classes.enter_another::<CLASS>();
        let slot = &mut slots[usize::from(id)];
        slot.stamp = slot.stamp.with_class(Class::hashed(CLASS));
        let pattern =
            self.classes.pattern(Class::hashed(CLASS)).comparing_source(CLASS.is_multiple_of(2));
        self.primary.buckets.insert_marked(slots, (Class::hashed(CLASS), &pattern), id);
    }

    /// Calls [`Index::insert_one`], and is not inlined.
    #[inline(never)]
    fn insert_one_rare(&mut self, slots: &mut [Slot], id: u16) {
        self.insert_one(slots, id);
    }
}

/// Removes.
impl Index {
    /// Fulfils pending requests. The table calls this when it removes a recent entry.
    #[inline(always)]
    pub(crate) fn fulfil_if_pending(&mut self, slots: &mut [Slot]) {
        if self.classes.state().has_extra_work() && self.requests.are_pending() {
            self.fulfil(slots);
        }
    }

    /// Removes an entry.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], id: u16, class: Class) {
        if self.classes.state().has_extra_work() {
            if class == Class::SMALL_SET {
                return self.small_set.remove(&slots[usize::from(id)]);
            }
            return self.remove_everywhere(slots, id, class);
        }
        self.classes.leave(class);
        self.primary.buckets.remove(slots, id);
    }

    /// Removes an entry if there are structures besides the primary index.
    #[inline(never)]
    fn remove_everywhere(&mut self, slots: &mut [Slot], id: u16, class: Class) {
        if class == Class::NONE {
            self.scan.remove(id);
            self.unclassed -= 1;
            if self.unclassed == 0 {
                self.refresh_state();
            }
            return;
        }
        self.classes.leave(class);
        self.primary.buckets.remove(slots, id);
        if class == Class::BASE {
            self.remove_from_secondary(id);
        }
        if self.scan_timeout.is_active() {
            self.scan.remove(id);
        }
        if self.requests.are_pending() {
            self.fulfil(slots);
        }
    }
}

/// Searches.
impl Index {
    /// Returns the oldest entry of the index that matches: the number of its slot, and the slot.
    /// Returns `None` if no entry matches; the recent entries are not searched.
    #[inline(always)]
    pub(crate) fn first_match<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let state = self.classes.state();
        if state == TableState::EMPTY {
            return None;
        }
        if state.has_flags() || !key.is_exact() {
            return self.first_match_flagged(slots, key);
        }
        if state != TableState::ONLY_BASE {
            return self.first_match_exact(slots, key);
        }
        self.first_match_with_source(slots, key, (Class::BASE, &self.classes.base()))
    }

    /// Called if all entries are of one class, and one pattern serves them and this key and
    /// compares the source.
    #[inline(always)]
    fn first_match_with_source<'a>(
        &self,
        slots: &'a [Slot],
        key: &Key,
        (class, pattern): (Class, &Pattern),
    ) -> Option<(u16, &'a Slot)> {
        self.primary.buckets.first_named(slots, (class, &pattern.comparing_source(true)), key)
    }

    /// Called if the key is exact and there is only the primary index.
    #[inline(never)]
    fn first_match_exact<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.classes.uniform().holds(self.classes.state()) {
            return self.first_match_uniform(slots, key);
        }
        self.first_match_classes(slots, key)
    }

    /// Called if one pattern serves all entries and this key.
    #[inline(never)]
    fn first_match_uniform<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let Uniform { class, ref pattern, .. } = *self.classes.uniform();
        if !pattern.wildcards().any_source {
            return self.first_match_with_source(slots, key, (class, pattern));
        }
        let pattern = pattern.comparing_source(false);
        let care = pattern.care();
        // Buckets::first_for would make this function save more registers.
        let agrees = move |slot: &Slot| (slot.bits ^ key.bits) & care == 0;
        self.primary.buckets.first(slots, (class, &pattern), (key.bits, key.source.0), agrees)
    }

    /// Called if the key has wildcards, or there are structures besides the primary index.
    #[inline(never)]
    fn first_match_flagged<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let uniform = self.classes.uniform();
        if uniform.holds_quietly(self.classes.state()) {
            if uniform.keys == key.wildcards() {
                return self.first_match_uniform(slots, key);
            }
            if uniform.keys.serves(key) {
                return self.first_match_named(slots, key);
            }
            if self.active != 0 && uniform.are_exact() {
                return self.first_match_in_secondary(slots, key);
            }
        }
        if self.small_set.in_use {
            return self.small_set.first(self.kernel, slots, key);
        }
        self.first_match_general(slots, key)
    }

    /// Called if the small set is not in use. If no entry has a class, all entries are in the scan.
    #[inline(never)]
    fn first_match_general<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.classes.is_empty() {
            return self.first_in_scan(slots, key);
        }
        if !self.entries_are_exact() {
            return self.first_match_wild(slots, key);
        }
        if self.primary.keys.serves(key) {
            return self.first_match_primary(slots, key);
        }
        self.first_match_in_secondary(slots, key)
    }

    /// Called if the primary index contains all entries with a class under patterns that serve this
    /// key.
    #[inline(always)]
    fn first_match_primary<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.primary.keys.any_source && !key.source.is_any() {
            return self.first_match_named(slots, key);
        }
        self.primary.note_use();
        if self.classes.uniform().holds(self.classes.state()) {
            self.request(RebuildRequest::PrimaryUsed);
        }
        self.primary.buckets.first_for(slots, &self.primary.pattern, key)
    }

    /// Called if the key names a source, and the primary index also serves keys without a source.
    #[inline(never)]
    fn first_match_named<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        self.primary.timeout.note_use();
        let pattern = self.primary.pattern.comparing_source(false);
        let found = self.primary.buckets.first_named(slots, (Class::BASE, &pattern), key);
        if self.primary.should_split() {
            self.request(RebuildRequest::SplitPrimary);
        }
        found
    }

    /// Called if there are entries with wildcards, or the base ignores some bits.
    #[inline(never)]
    fn first_match_wild<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.unclassed != 0 && self.scan_timeout.is_active() {
            self.scan_timeout.note_use();
            return self.first_in_scan(slots, key);
        }
        if !self.primary.keys.serves(key) || self.unclassed > self.classes.len() {
            return self.first_match_unserved(slots, key);
        }
        let oldest = if self.primary.keys == Wildcards::NONE {
            self.first_match_classes(slots, key)
        } else {
            self.first_match_primary(slots, key)
        };
        if self.unclassed == 0 {
            return oldest;
        }
        older(oldest, self.first_in_scan(slots, key))
    }

    /// Called if neither the primary index nor the secondary index in `serving` serves the key, or
    /// if most entries are in no index. If no structure serves the key, compares every slot in use,
    /// and leaves requests for a structure.
    #[inline(never)]
    fn first_match_unserved<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let slots_used = self.slots_used(slots);
        let is_cheap = slots_used.len() <= CHEAP_PASS;
        if self.entries_are_exact() {
            let keys = key.wildcards();
            if let Some(which) =
                self.secondary.iter().position(|secondary| secondary.keys == Some(keys))
            {
                return self.secondary[which].first(slots, key);
            }
            if !is_cheap && self.requests.count_search(keys) {
                self.request(RebuildRequest::Keys(keys));
            }
        }
        if self.scan_timeout.is_active() {
            self.scan_timeout.note_use();
            return self.first_in_scan(slots, key);
        }
        if is_cheap {
            // The next insert takes its general path, on which it may take the small set into use.
            self.classes.raise_extra_work();
        } else {
            self.request(RebuildRequest::ScanAll);
        }
        entries(slots_used).filter(|(_, slot)| slot.matches(key)).min_by_key(|(_, slot)| slot.stamp)
    }

    #[inline(always)]
    fn first_in_scan<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        self.scan.first_match(self.kernel, key).map(|id| (id, &slots[usize::from(id)]))
    }

    /// Returns the oldest match of any class, for an exact key.
    ///
    /// ```text
    /// for each pair of classes (classes.rs) with entries, and each of its two classes:
    ///     hash the key under the pattern
    ///     candidate = its bucket, if that may hold an entry of this hash
    /// no candidate: no match
    /// one candidate, as nearly always: its first entry that matches
    /// several candidates: the oldest of their first entries that match
    /// ```
    ///
    /// The class of the match is unpredictable, so there is no branch on it. The marks in the
    /// buckets are the fingerprints of Fan et al., "Cuckoo Filter", CoNEXT 2014.
    #[inline(never)]
    fn first_match_classes<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        self.primary.timeout.note_use();
        match self.classes.live() {
            ..0b10 => self.first_of::<1>(slots, key),
            0b10..0b100 => self.first_of::<2>(slots, key),
            0b100..0b1000 => self.first_of::<3>(slots, key),
            0b1000..0b1_0000 => self.first_of::<4>(slots, key),
            _ => self.first_of_all(slots, key.bits, key.source),
        }
    }

    /// Called if only the first `N` classes have entries; all of these are paired.
    #[inline(always)]
    fn first_of<'a, const N: usize>(
        &self,
        slots: &'a [Slot],
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        let buckets = &self.primary.buckets;
        let (mut best, mut other) = (ProbedBucket::NONE, ProbedBucket::NONE);
        for (class, row) in buckets.rows::<N>()?.into_iter().enumerate() {
            let pattern = self
                .classes
                .pattern(Class::hashed(class & !1))
                .comparing_source(class.is_multiple_of(2));
            let (probed, is_good) = buckets.probe(row, &pattern, key.bits, key.source.0);
            other = if is_good { best } else { other };
            best = if is_good { probed } else { best };
        }
        if !other.is_none() {
            return self.first_of_all(slots, key.bits, key.source);
        }
        if best.is_none() {
            return None;
        }
        buckets.first_in_probed(slots, best, |slot| slot.matches_exact(key))
    }

    /// Like [`Index::first_match_classes`], but any classes may have entries.
    #[inline(never)]
    fn first_of_all<'a>(
        &self,
        slots: &'a [Slot],
        bits: u64,
        source: Source,
    ) -> Option<(u16, &'a Slot)> {
        let key = &Key { bits, ignore: 0, source };
        let buckets = &self.primary.buckets;
        let mut oldest = None;
        for (class, pattern) in self.classes.live_patterns() {
            let (probed, is_good) = buckets.probe(buckets.row(class), pattern, bits, source.0);
            if is_good {
                let found = buckets.first_in_probed(slots, probed, |slot| slot.matches_exact(key));
                oldest = older(oldest, found);
            }
        }
        oldest
    }
}

/// Returns all entries of the index in these slots, in the order of the slots.
fn entries(slots: &[Slot]) -> impl Iterator<Item = (u16, &Slot)> {
    let slots = slots.iter().enumerate().map(|(id, slot)| (id as u16, slot));
    slots.filter(|(_, slot)| slot.stamp.class().is_indexed())
}

/// Sorts the slot numbers of all entries of the index in these slots, oldest first, and returns
/// them.
fn put_in_order<'o>(order: &'o mut [u16], slots: &[Slot]) -> &'o [u16] {
    let mut len = 0;
    for (id, _) in entries(slots) {
        order[len] = id;
        len += 1;
    }
    let order = &mut order[..len];
    order.sort_unstable_by_key(|&id| slots[usize::from(id)].stamp);
    order
}

/// Returns the older of two matches, or the only one; `None` if there is no match.
#[inline(always)]
fn older<'a>(a: Option<(u16, &'a Slot)>, b: Option<(u16, &'a Slot)>) -> Option<(u16, &'a Slot)> {
    let (Some((_, x)), Some((_, y))) = (a, b) else { return a.or(b) };
    if x.stamp < y.stamp { a } else { b }
}

#[cfg(test)]
impl Index {
    /// Checks that every entry is in the structure that its class names, and that a uniform queue
    /// is uniform.
    pub(crate) fn check(&self, slots: &[Slot]) {
        let classes = || entries(self.slots_used(slots)).map(|(_, slot)| slot.stamp.class());
        let classed =
            classes().filter(|class| ![Class::SMALL_SET, Class::NONE].contains(class)).count();
        let base = classes().filter(|&class| class == Class::BASE).count();
        let under = |slot: &Slot| match slot.stamp.class() {
            Class::BASE => (Class::BASE, &self.primary.pattern),
            class => (class, self.classes.pattern(class)),
        };
        assert_eq!(self.primary.buckets.check(slots, under), classed);
        for which in Bits(self.active.into()) {
            let secondary = &self.secondary[which];
            assert_eq!(secondary.lists.check(slots, &secondary.pattern), base);
        }
        self.classes.check();
        let uniform = self.classes.uniform();
        if uniform.holds(self.classes.state()) {
            assert_eq!(self.primary.keys, uniform.keys);
            for (_, slot) in entries(self.slots_used(slots)) {
                assert_eq!(
                    (slot.stamp.class(), slot.wildcards()),
                    (uniform.class, uniform.entries)
                );
            }
            self.primary.buckets.check(slots, |_| (uniform.class, &uniform.pattern));
        }
    }
}

#[cfg(test)]
#[path = "index/classes_tests.rs"]
mod tests;
