// SPDX-License-Identifier: BSD-2-Clause
//! The entries that have left the nursery, and what finds the oldest of them.
//!
//! | key | entries | found by |
//! |---|---|---|
//! | of one kind | of one kind, one of both exact | a probe of the home index: what is usual (`classes.rs`) |
//! | exact | any | a probe of the home index for each live class, then the scan if there are more classes than that; the oldest wins. The scan alone, if it has all or most entries have no class |
//! | any | exact | the index for the key's pattern, once such keys repeat |
//! | wildcards | any | the scan of all, once there are such keys |
//! | first of its kind | any | a pass over the slots |
//! | any | at most 32 (16 with the scalar kernel), 64 of many kinds or under keys of many kinds, where there are or were lately several kinds of entries, or a key with wildcards that the home index does not serve | a comparison with all of them, the tray (`deep/tray.rs`); none is in an index then |
//!
//! The home index holds exact entries under the pattern that most keys have: no
//! wildcards at first, but a queue of unexpected messages that is only ever searched
//! with any source soon keeps its home index, and nothing else, under that. Keys that do
//! name their source are served by it as well, unless they pass too many entries of other
//! sources there. What no search has used for long is dropped, and built again on demand.

use crate::classes::{Classes, TRAY, UNCLASSED, YOUNG};
use crate::demand::{Demand, Keep};
use crate::entry::Key;
use crate::kernel::Kernel;
use crate::nursery::{CAPACITY, Nursery};
use crate::pattern::{CELLS, EXACT, Kind, Pattern};
use crate::scan::Scan;
use crate::slot::Slot;

use home::Home;
use others::{OTHERS, Other};
use tray::Tray;

#[cfg(test)]
mod check;
mod home;
mod mixed;
mod others;
mod tray;
mod upkeep;

/// Slots that are passed over without a thought of building something.
const FEW: usize = 8;

/// Inserts from one [`Deep::housekeeping`] to the next.
const TICK: usize = 64;

/// See the module. What exact entries touch comes first, in few lines of the cache.
#[repr(C)]
pub(crate) struct Deep {
    classes: Classes,
    /// Most entries there were at an insert since the last [`Deep::housekeeping`].
    longest: usize,
    /// Inserts since the last [`Deep::housekeeping`].
    since_tick: usize,
    kernel: Kernel,
    /// Has every entry that has a class.
    home: Home,
    /// By cell of the keys: the other index that serves them, if any does and no keys of the same
    /// cell came after them. Keys come in any order: a search that asked one after the other
    /// would not be predicted.
    serving: [u8; CELLS],
    /// Every exact entry, for keys that the home index does not serve.
    others: [Other; OTHERS],
    /// Bit `i`: `others[i]` is kept up.
    awake: u32,
    /// Most entries there were at an insert before the last [`Deep::housekeeping`].
    used: usize,
    /// Room to put entries in order.
    order: Box<[u16]>,
    /// Inserts since an index was last spread anew.
    since_spread: usize,
    /// Entries without a class.
    unclassed: usize,
    /// Entries without a class; all entries while awake.
    scan: Scan,
    scan_keep: Keep,
    demand: Demand,
    tray: Tray,
}

/// The links of the home index in a slot.
const HOME: usize = 0;

impl Deep {
    pub(crate) fn new(capacity: usize, kernel: Kernel) -> Self {
        Self {
            kernel,
            used: 0,
            longest: 0,
            order: vec![0; capacity].into(),
            classes: Classes::new(),
            home: Home::new(),
            serving: [0; CELLS],
            others: std::array::from_fn(|_| Other::new()),
            awake: 0,
            since_tick: 0,
            since_spread: usize::MAX,
            unclassed: 0,
            scan: Scan::new(capacity),
            scan_keep: Keep::default(),
            demand: Demand::default(),
            tray: Tray::new(kernel),
        }
    }

    pub(crate) const fn kernel(&self) -> Kernel {
        self.kernel
    }

    pub(crate) fn len(&self) -> usize {
        self.classes.len() + self.unclassed + self.tray.len()
    }

    /// How many entries are of this one's age or older.
    pub(crate) fn rank(&self, slots: &[Slot], id: u16) -> usize {
        if self.tray.is_in_use() {
            self.tray.note_several();
            return self.tray.rank(&slots[usize::from(id)]);
        }
        if self.scan_keep.is_awake() {
            self.scan_keep.note_use();
            return self.scan.rank(self.kernel, id);
        }
        self.wish_mirror();
        let stamp = slots[usize::from(id)].stamp;
        self.slots(slots).filter(|&(_, slot)| slot.stamp <= stamp).count()
    }

    /// Slots that ever had an entry: so many, the first ones. Slots are taken in the order
    /// of their numbers and before any other those that were given back. Up to the next
    /// insert no more than a nursery is added.
    fn slots_used(&self, slots: &[Slot]) -> usize {
        slots.len().min(self.used.max(self.longest) + CAPACITY as usize)
    }

    /// Every entry, in no order.
    fn slots<'a>(&self, slots: &'a [Slot]) -> impl Iterator<Item = (u16, &'a Slot)> {
        let used = slots[..self.slots_used(slots)].iter().enumerate();
        used.map(|(id, slot)| (id as u16, slot)).filter(|(_, slot)| slot.stamp.class() < YOUNG)
    }

    /// Every entry, oldest first.
    pub(crate) fn in_order(&mut self, slots: &[Slot]) -> &[u16] {
        let mut len = 0;
        for (id, slot) in slots[..self.slots_used(slots)].iter().enumerate() {
            if slot.stamp.class() < YOUNG {
                self.order[len] = id as u16;
                len += 1;
            }
        }
        let order = &mut self.order[..len];
        order.sort_unstable_by_key(|&id| slots[usize::from(id)].stamp);
        order
    }

    /// Adds the entries of a full nursery, when `taken` slots are. Every way to insert is a
    /// function of its own, so that none saves registers for another.
    #[inline(never)]
    pub(crate) fn insert(&mut self, slots: &mut [Slot], grown: Nursery, taken: usize) {
        self.longest = self.longest.max(taken);
        self.since_tick += CAPACITY as usize;
        if self.since_tick >= TICK {
            return self.insert_at_tick(slots, grown, taken);
        }
        self.insert_now(slots, grown, taken);
    }

    /// The same, and what need not happen at every insert.
    #[cold]
    fn insert_at_tick(&mut self, slots: &mut [Slot], grown: Nursery, taken: usize) {
        self.housekeeping(slots);
        // It starts over with none, and may have left the tray, which the insert may take into use
        // again: no more entries may be moved there than there is room for.
        self.longest = taken;
        self.insert_now(slots, grown, taken);
    }

    /// The same without that.
    #[inline(always)]
    fn insert_now(&mut self, slots: &mut [Slot], grown: Nursery, taken: usize) {
        let state = self.classes.state();
        let usual = self.classes.usual();
        if usual.will_hold(state) {
            if usual.is_exact() {
                return self.insert_exact(slots, grown);
            }
            if self.awake != 0 {
                return self.insert_usual::<true>(slots, grown);
            }
            return self.insert_usual::<false>(slots, grown);
        }
        if state < Classes::TURNED {
            return self.insert_classes(slots, grown);
        }
        if self.tray.is_in_use() {
            return self.insert_in_tray(slots, grown, taken);
        }
        self.insert_unusual(slots, grown);
    }

    /// Adds those of a nursery where one pattern serves all entries and keys, or all that other
    /// indexes do not.
    #[inline(never)]
    fn insert_usual<const BESIDE: bool>(&mut self, slots: &mut [Slot], grown: Nursery) {
        let usual = self.classes.usual();
        let (class, entries, pattern) = (usual.class, usual.entries, usual.pattern);
        let are_usual = if pattern.kind().any_source {
            self.insert_under(slots, grown, class, entries, &pattern.with_source(false))
        } else {
            self.insert_under(slots, grown, class, entries, &pattern.with_source(true))
        };
        if BESIDE && are_usual && class == EXACT {
            self.insert_in_others(slots, grown.all());
        }
    }

    /// The same where all entries and keys are exact.
    #[inline(never)]
    fn insert_exact(&mut self, slots: &mut [Slot], grown: Nursery) {
        let pattern = self.classes.exact();
        self.insert_under(slots, grown, EXACT, pattern.kind(), &pattern);
    }

    /// Whether all are usual; otherwise they are added as what they are.
    #[inline(always)]
    fn insert_under(
        &mut self,
        slots: &mut [Slot],
        grown: Nursery,
        class: u8,
        entries: Kind,
        pattern: &Pattern,
    ) -> bool {
        let ids = grown.all();
        if !ids.into_iter().all(|id| slots[usize::from(id)].kind() == entries) {
            self.insert_others(slots, ids);
            return false;
        }
        self.classes.enter_several(class, ids.len());
        for id in ids {
            let slot = &mut slots[usize::from(id)];
            slot.stamp = slot.stamp.with_class(class);
            self.home.index.insert(slots, HOME, pattern, id);
        }
        true
    }

    /// Adds those of a nursery of which some are not usual.
    #[inline(never)]
    fn insert_others(&mut self, slots: &mut [Slot], ids: [u16; CAPACITY as usize]) {
        for id in ids {
            self.insert_one_unusual(slots, id);
        }
        self.consider_tray(slots);
    }

    /// Adds one with wildcards, out of the way of exact ones.
    #[inline(never)]
    fn insert_wild(&mut self, slots: &mut [Slot], id: u16) {
        let slot = &mut slots[usize::from(id)];
        let class = self.classes.enter_wild(slot.kind());
        slot.stamp = slot.stamp.with_class(class);
        if class == UNCLASSED {
            return self.insert_unclassed(slots, id);
        }
        let home = &mut self.home;
        if class == EXACT {
            home.pattern = self.classes.exact();
        }
        if home.keys == Kind::EXACT {
            home.index.insert_marked(slots, HOME, self.classes.pattern(class), id);
        } else {
            self.turn_home(slots, Kind::EXACT);
        }
    }

    /// Adds those of a nursery where there is more to care for than the home index, or
    /// that is turned.
    #[inline(never)]
    fn insert_unusual(&mut self, slots: &mut [Slot], grown: Nursery) {
        if self.tray_suits() {
            self.enter_tray(slots);
            return self.insert_in_tray(slots, grown, self.longest);
        }
        if self.demand.is_pending() {
            self.fulfil(slots);
        }
        for id in grown.all() {
            self.insert_one_unusual(slots, id);
        }
    }

    /// Adds one where there is more to care for than the home index, or that is turned.
    #[inline(always)]
    fn insert_one_unusual(&mut self, slots: &mut [Slot], id: u16) {
        let slot = &mut slots[usize::from(id)];
        if self.classes.enter_exact(slot.kind()) {
            slot.stamp = slot.stamp.with_class(EXACT);
            self.home.index.insert(slots, HOME, &self.home.pattern, id);
            if self.awake != 0 {
                self.insert_in_others(slots, [id]);
            }
        } else {
            self.insert_wild(slots, id);
        }
        if self.scan_keep.is_awake() && slots[usize::from(id)].stamp.class() != UNCLASSED {
            self.scan.push(&slots[usize::from(id)], id);
        }
    }

    #[inline(always)]
    fn insert_unclassed(&mut self, slots: &[Slot], id: u16) {
        self.scan.push(&slots[usize::from(id)], id);
        self.unclassed += 1;
        if self.unclassed == 1 {
            self.note_unusual();
        }
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], id: u16, class: u8) {
        if self.classes.state() & Classes::BUSY != 0 {
            if class == TRAY {
                return self.tray.remove(&slots[usize::from(id)]);
            }
            return self.remove_everywhere(slots, id, class);
        }
        self.classes.leave(class);
        self.home.index.remove(slots, HOME, id);
    }

    /// Acts on what searches have asked for, where entries leave before they come here.
    #[inline(always)]
    pub(crate) fn act(&mut self, slots: &mut [Slot]) {
        if self.classes.state() & Classes::BUSY != 0 && self.demand.is_pending() {
            self.fulfil(slots);
        }
    }

    /// The same when there is more than the home index.
    #[inline(never)]
    fn remove_everywhere(&mut self, slots: &mut [Slot], id: u16, class: u8) {
        if class == UNCLASSED {
            self.scan.remove(id);
            self.unclassed -= 1;
            if self.unclassed == 0 {
                self.note_unusual();
            }
            return;
        }
        self.classes.leave(class);
        self.home.index.remove(slots, HOME, id);
        if class == EXACT {
            self.remove_from_others(slots, id);
        }
        if self.scan_keep.is_awake() {
            self.scan.remove(id);
        }
        if self.demand.is_pending() {
            self.fulfil(slots);
        }
    }

    /// The oldest entry that matches, and its slot.
    #[inline(always)]
    pub(crate) fn first_match<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let state = self.classes.state();
        if state == Classes::EMPTY {
            return None;
        }
        if state >= Classes::TURNED || !key.is_exact() {
            return self.first_match_other(slots, key);
        }
        if state != Classes::ONLY_EXACT {
            return self.first_match_exact(slots, key);
        }
        self.first_match_with_source(slots, key, &self.classes.exact())
    }

    /// The same under one pattern that compares the source.
    #[inline(always)]
    fn first_match_with_source<'a>(
        &self,
        slots: &'a [Slot],
        key: &Key,
        pattern: &Pattern,
    ) -> Option<(u16, &'a Slot)> {
        self.home.index.first_named(slots, HOME, &pattern.with_source(true), key)
    }

    /// The same for an exact key, where there is only the home index.
    #[inline(never)]
    fn first_match_exact<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.classes.usual().holds(self.classes.state()) {
            return self.first_match_usual(slots, key);
        }
        self.first_match_classes(slots, key)
    }

    /// The same where one pattern serves all entries and this key.
    #[inline(never)]
    fn first_match_usual<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let pattern = &self.classes.usual().pattern;
        if !pattern.kind().any_source {
            return self.first_match_with_source(slots, key, pattern);
        }
        let pattern = pattern.with_source(false);
        let care = pattern.care();
        let equals = move |slot: &Slot| (slot.bits ^ key.bits) & care == 0;
        self.home.index.first(slots, HOME, &pattern, (key.bits, key.source.0), equals)
    }

    /// The same for keys with wildcards, and when something is unusual.
    #[inline(never)]
    fn first_match_other<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let usual = self.classes.usual();
        if usual.holds_unnoted(self.classes.state()) {
            if usual.keys == key.kind() {
                return self.first_match_usual(slots, key);
            }
            if usual.keys.serves(key) {
                return self.first_match_named(slots, key);
            }
            if self.awake != 0 && usual.are_exact() {
                return self.first_match_beside(slots, key);
            }
        }
        if self.tray.is_in_use() {
            return self.tray.first(self.kernel, slots, key);
        }
        self.first_match_unusual(slots, key)
    }

    /// The same where the tray is not in use. If no entry has a class, all are in the scan.
    #[inline(never)]
    fn first_match_unusual<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.classes.is_empty() {
            return self.scan.first_match(self.kernel, key).map(|id| at(slots, id));
        }
        if !self.entries_are_exact() {
            return self.first_match_wild(slots, key);
        }
        if self.home.keys.serves(key) {
            return self.first_match_home(slots, key);
        }
        self.first_match_beside(slots, key)
    }

    /// The same where all entries with a class are exact, for a key that the home index serves.
    #[inline(always)]
    fn first_match_home<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.home.keys.any_source && !key.source.is_any() {
            return self.first_match_named(slots, key);
        }
        self.home.note_use();
        if self.classes.usual().holds(self.classes.state()) {
            self.demand.note_usual();
            self.classes.call();
        }
        self.home.index.first_under(slots, HOME, &self.home.pattern, key)
    }

    /// The same for a key that names a source, where keys that do not are served as well.
    #[inline(never)]
    fn first_match_named<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        self.home.keep.note_use();
        let pattern = self.home.pattern.with_source(false);
        let found = self.home.index.first_named(slots, HOME, &pattern, key);
        if self.home.is_walked_too_far() {
            self.demand.wish_apart();
            self.classes.call();
        }
        found
    }

    /// The same where there are entries with wildcards, or something is unusual.
    #[inline(never)]
    fn first_match_wild<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.unclassed != 0 && self.scan_keep.is_awake() {
            self.scan_keep.note_use();
            return self.scan.first_match(self.kernel, key).map(|id| at(slots, id));
        }
        if !self.home.keys.serves(key) || self.unclassed > self.classes.len() {
            return self.first_match_elsewhere(slots, key);
        }
        let oldest = if self.home.keys == Kind::EXACT {
            self.first_match_classes(slots, key)
        } else {
            self.first_match_home(slots, key)
        };
        if self.unclassed == 0 {
            return oldest;
        }
        older(oldest, self.scan.first_match(self.kernel, key).map(|id| at(slots, id)))
    }

    /// The same for a kind of key that has no cell or that no index serves, and where most
    /// entries are in no index.
    #[inline(never)]
    fn first_match_elsewhere<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.entries_are_exact() {
            let keys = key.kind();
            if let Some(which) = self.others.iter().position(|other| other.keys == Some(keys)) {
                return self.others[which].first(slots, which, key);
            }
            if self.slots_used(slots) > FEW && self.demand.count_keys(keys) {
                self.classes.call();
            }
        }
        if self.scan_keep.is_awake() {
            self.scan_keep.note_use();
            return self.scan.first_match(self.kernel, key).map(|id| at(slots, id));
        }
        if self.slots_used(slots) > FEW {
            self.demand.wish_mirror();
        }
        self.classes.call();
        let matching = self.slots(slots).filter(|(_, slot)| slot.matches(key));
        matching.min_by_key(|(_, slot)| slot.stamp)
    }

    #[cold]
    fn wish_mirror(&self) {
        self.demand.wish_mirror();
        self.classes.call();
    }

    /// Whether no entry has wildcards: only then one index serves keys that do.
    #[inline]
    fn entries_are_exact(&self) -> bool {
        !self.classes.has_wild()
            && self.unclassed == 0
            && self.classes.exact().kind() == Kind::EXACT
    }
}

/// An entry and its slot.
#[inline]
fn at(slots: &[Slot], id: u16) -> (u16, &Slot) {
    (id, &slots[usize::from(id)])
}

/// The older of two entries that were found.
#[inline(always)]
fn older<'a>(a: Option<(u16, &'a Slot)>, b: Option<(u16, &'a Slot)>) -> Option<(u16, &'a Slot)> {
    let (Some((_, x)), Some((_, y))) = (a, b) else { return a.or(b) };
    if x.stamp < y.stamp { a } else { b }
}
