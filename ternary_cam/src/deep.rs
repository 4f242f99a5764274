// SPDX-License-Identifier: BSD-2-Clause
//! The entries that have left the nursery, and what finds the oldest of them.
//!
//! | key | entries | found by |
//! |---|---|---|
//! | exact | any | a probe of the home index for each live class, then the scan if there are more classes than that; the oldest wins. The scan of all, if most entries have no class |
//! | any | exact | the index for the key's pattern, once such keys repeat |
//! | wildcards | any | the scan of all, once there are such keys |
//! | first of its kind | any | a pass over the slots |
//!
//! The home index holds exact entries under the pattern that most keys have: no
//! wildcards at first, but a queue of unexpected messages that is only ever searched
//! with any source soon keeps its home index, and no other, under that. An index
//! that no search has used for long is dropped, and built again on demand.

use crate::age_log::Bits;
use crate::classes::{Classes, TURNED, UNCLASSED, YOUNG};
use crate::demand::{Demand, Keep, Wish};
use crate::entry::{Key, Source};
use crate::index::{Home, Index, Wild};
use crate::kernel::Kernel;
use crate::nursery::{CAPACITY, Nursery};
use crate::pattern::{EXACT, Pattern};
use crate::scan::Scan;
use crate::slot::{Slot, Stamp, WILD};

/// Slots that are passed over without a thought of building something.
const FEW: usize = 8;

/// Inserts from one [`Deep::housekeeping`] to the next.
const TICK: usize = 64;

/// See the module.
pub(crate) struct Deep {
    kernel: Kernel,
    /// Slots that ever had an entry: those before this one.
    used: usize,
    /// Room to put entries in order.
    order: Box<[u16]>,
    classes: Classes,
    /// Every entry that has a class, under the pattern of its class; exact ones under
    /// the pattern `primary`.
    home: Index<Home>,
    home_keep: Keep,
    /// Ignore bits, and any source or not, of the keys that the home index serves.
    home_keys: (u64, bool),
    /// Every exact entry, under the pattern of another kind of key.
    wild: [ForKeys; WILD],
    /// Bit `i`: `wild[i]` is awake.
    awake: u64,
    /// Pattern of exact entries in the home index, [`TURNED`] if it serves keys with
    /// wildcards.
    primary: u8,
    /// Inserts since the last [`Deep::housekeeping`].
    since_tick: usize,
    /// Entries without a class.
    unclassed: usize,
    /// Entries without a class; all entries while awake.
    scan: Scan,
    scan_keep: Keep,
    demand: Demand,
}

/// Ignore bits and any-source of keys without wildcards.
const EXACT_KEYS: (u64, bool) = (0, false);

/// An index for one kind of key.
struct ForKeys {
    /// Ignore bits, and any source or not.
    keys: (u64, bool),
    pattern: Pattern,
    index: Index<Wild>,
    keep: Keep,
}

impl Deep {
    pub(crate) fn new(capacity: usize, kernel: Kernel) -> Self {
        let wild = |which| ForKeys {
            keys: EXACT_KEYS,
            pattern: Pattern::EXACT,
            index: Index::new(Wild(which)),
            keep: Keep::default(),
        };
        Self {
            kernel,
            used: 0,
            order: vec![0; capacity].into(),
            classes: Classes::new(),
            home: Index::new(Home),
            home_keep: Keep::awake(),
            wild: std::array::from_fn(wild),
            home_keys: EXACT_KEYS,
            primary: EXACT,
            since_tick: 0,
            awake: 0,
            unclassed: 0,
            scan: Scan::new(capacity),
            scan_keep: Keep::default(),
            demand: Demand::default(),
        }
    }

    pub(crate) const fn kernel(&self) -> Kernel {
        self.kernel
    }

    pub(crate) fn len(&self) -> usize {
        self.classes.len() + self.unclassed
    }

    /// How many entries are of this one's age or older.
    pub(crate) fn rank(&self, slots: &[Slot], id: u16) -> usize {
        if self.scan_keep.is_awake() {
            self.scan_keep.note_use();
            return self.scan.rank(self.kernel, id);
        }
        self.wish_mirror();
        let stamp = slots[usize::from(id)].stamp;
        self.slots(slots).filter(|&(_, slot)| slot.stamp <= stamp).count()
    }

    /// Every entry, in no order.
    fn slots<'a>(&self, slots: &'a [Slot]) -> impl Iterator<Item = (u16, &'a Slot)> {
        let used = slots[..self.used].iter().enumerate();
        used.map(|(id, slot)| (id as u16, slot)).filter(|(_, slot)| slot.stamp.class() < YOUNG)
    }

    /// Every entry, oldest first.
    pub(crate) fn in_order(&mut self, slots: &[Slot]) -> &[u16] {
        let mut len = 0;
        for (id, slot) in slots[..self.used].iter().enumerate() {
            if slot.stamp.class() < YOUNG {
                self.order[len] = id as u16;
                len += 1;
            }
        }
        let order = &mut self.order[..len];
        order.sort_unstable_by_key(|&id| slots[usize::from(id)].stamp);
        order
    }

    /// Adds the entries of a full nursery, when `taken` slots are.
    #[inline(never)]
    pub(crate) fn insert(&mut self, slots: &mut [Slot], grown: Nursery, taken: usize) {
        // Slots are taken in the order of their numbers and before any other those that
        // were given back. Up to the next call no more than a nursery is added to what
        // is taken now.
        self.used = self.used.max(slots.len().min(taken + CAPACITY as usize));
        self.since_tick += CAPACITY as usize;
        if self.since_tick >= TICK {
            self.housekeeping(slots);
        }
        if self.classes.state() & Classes::BUSY != 0 && self.demand.is_pending() {
            self.fulfil(slots);
        }
        for id in grown.all() {
            let slot = &mut slots[usize::from(id)];
            let class = self.classes.enter(slot.ignore, slot.source == Source::ANY.0);
            slot.stamp = slot.stamp.with_class(class);
            let state = self.classes.state();
            if state & Classes::BUSY == 0 && class == EXACT {
                self.home.insert(slots, self.classes.pattern(self.primary), id);
            } else if state < Classes::TURNED && class != UNCLASSED {
                self.home.insert(slots, self.classes.pattern(class), id);
            } else {
                self.insert_other(slots, id, class);
            }
        }
    }

    /// Adds one when something is unusual.
    #[inline(never)]
    fn insert_other(&mut self, slots: &mut [Slot], id: u16, class: u8) {
        if class == UNCLASSED {
            return self.insert_unclassed(&slots[usize::from(id)], id);
        }
        if class == EXACT {
            self.home.insert(slots, self.classes.pattern(self.primary), id);
            for at in Bits(self.awake) {
                let wild = &mut self.wild[at % WILD];
                wild.index.insert(slots, &wild.pattern, id);
            }
        } else if self.primary == EXACT {
            self.home.insert(slots, self.classes.pattern(class), id);
        } else {
            self.turn_home(slots, EXACT_KEYS);
        }
        if self.scan_keep.is_awake() {
            self.scan.push(&slots[usize::from(id)], id);
        }
    }

    #[inline(never)]
    fn insert_unclassed(&mut self, slot: &Slot, id: u16) {
        self.scan.push(slot, id);
        self.unclassed += 1;
        self.note_unusual();
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], id: u16, class: u8) {
        if self.classes.state() & Classes::BUSY != 0 {
            return self.remove_everywhere(slots, id, class);
        }
        self.classes.leave(class);
        self.home.remove(slots, id);
    }

    /// The same when there is more than the home index.
    #[inline(never)]
    fn remove_everywhere(&mut self, slots: &mut [Slot], id: u16, class: u8) {
        if class == UNCLASSED {
            self.scan.remove(id);
            self.unclassed -= 1;
            return self.note_unusual();
        }
        self.classes.leave(class);
        self.home.remove(slots, id);
        if class == EXACT {
            for at in Bits(self.awake) {
                self.wild[at % WILD].index.remove(slots, id);
            }
        }
        if self.scan_keep.is_awake() {
            self.scan.remove(id);
        }
        if self.demand.is_pending() {
            self.fulfil(slots);
        }
    }

    /// The slot of the oldest entry that matches.
    #[inline(always)]
    pub(crate) fn first_match(&self, slots: &[Slot], key: &Key) -> Option<u16> {
        let state = self.classes.state();
        if state == Classes::EMPTY {
            return None;
        }
        if state < Classes::TURNED && key.ignore == 0 && !key.source.is_any() {
            self.home_keep.note_use();
            if state == Classes::ONLY_EXACT {
                let pattern = self.classes.pattern(EXACT).exact();
                return self.home.first(slots, &pattern, key.bits, key.source.0);
            }
            if state.is_power_of_two() {
                let pattern = self.classes.pattern(state.trailing_zeros() as u8);
                return self.home.first(slots, pattern, key.bits, key.source.0);
            }
            return self.first_match_classes(slots, key);
        }
        self.first_match_other(slots, key)
    }

    /// The same among several classes, when something is unusual, and for keys with
    /// wildcards.
    #[inline(never)]
    fn first_match_other(&self, slots: &[Slot], key: &Key) -> Option<u16> {
        if self.home_keys != (key.ignore, key.source.is_any()) {
            return self.first_match_elsewhere(slots, key);
        }
        if self.unclassed > self.classes.len() {
            return self.first_match_elsewhere(slots, key);
        }
        self.home_keep.note_use();
        let oldest = if self.classes.has_wild() {
            self.first_match_classes(slots, key)
        } else {
            self.home.first(slots, self.classes.pattern(self.primary), key.bits, key.source.0)
        };
        if self.unclassed == 0 {
            return oldest;
        }
        older(slots, oldest, self.scan.first_match(self.kernel, key))
    }

    /// The oldest match of any class.
    #[inline(never)]
    fn first_match_classes(&self, slots: &[Slot], key: &Key) -> Option<u16> {
        let (mut stamp, mut oldest) = (Stamp::NONE, 0);
        for pattern in self.classes.live_patterns() {
            if let Some(id) = self.home.first(slots, pattern, key.bits, key.source.0) {
                let found = slots[usize::from(id)].stamp;
                if found < stamp {
                    (stamp, oldest) = (found, id);
                }
            }
        }
        (stamp != Stamp::NONE).then_some(oldest)
    }

    /// The same for a kind of key that the home index does not serve, and where most
    /// entries are in no index.
    #[inline(never)]
    fn first_match_elsewhere(&self, slots: &[Slot], key: &Key) -> Option<u16> {
        if self.entries_are_exact() {
            let any_source = key.source.is_any();
            for at in Bits(self.awake) {
                let wild = &self.wild[at % WILD];
                if wild.keys == (key.ignore, any_source) {
                    wild.keep.note_use();
                    return wild.index.first(slots, &wild.pattern, key.bits, key.source.0);
                }
            }
            if self.used > FEW && self.demand.count_pattern(key.ignore, any_source) {
                self.classes.call();
            }
        }
        if self.scan_keep.is_awake() {
            self.scan_keep.note_use();
            return self.scan.first_match(self.kernel, key);
        }
        if self.used > FEW {
            self.wish_mirror();
        }
        let matching = self.slots(slots).filter(|(_, slot)| slot.matches(key));
        matching.min_by_key(|(_, slot)| slot.stamp).map(|(id, _)| id)
    }

    #[cold]
    fn wish_mirror(&self) {
        self.demand.wish_mirror();
        self.classes.call();
    }

    /// Whether no entry has wildcards: only then one index serves keys that do.
    #[inline]
    fn entries_are_exact(&self) -> bool {
        !self.classes.has_wild() && self.unclassed == 0 && self.classes.base() == 0
    }

    /// Builds what searches have asked for.
    #[cold]
    fn fulfil(&mut self, slots: &mut [Slot]) {
        for wish in self.demand.take() {
            match wish {
                Wish::Mirror if !self.scan_keep.is_awake() => {
                    self.scan_keep.wake();
                    self.fill_scan(slots, |_| true);
                }
                Wish::Pattern { ignore, any_source } => self.wake_wild(slots, ignore, any_source),
                Wish::Mirror => {}
            }
        }
        self.note_unusual();
    }

    /// Fills the scan with the entries of some classes.
    fn fill_scan(&mut self, slots: &[Slot], wanted: impl Fn(u8) -> bool) {
        self.scan.clear();
        for at in 0..self.in_order(slots).len() {
            let id = self.order[at];
            let slot = &slots[usize::from(id)];
            if wanted(slot.stamp.class()) {
                self.scan.push(slot, id);
            }
        }
    }

    /// Builds the home index anew, for keys of this kind.
    #[cold]
    fn turn_home(&mut self, slots: &mut [Slot], keys: (u64, bool)) {
        self.home_keys = keys;
        self.primary = EXACT;
        if keys != EXACT_KEYS {
            self.primary = TURNED;
            self.classes.set_turned(Pattern::of_keys(keys.0, keys.1));
        }
        self.home.clear();
        self.home_keep.wake();
        for at in 0..self.in_order(slots).len() {
            let id = self.order[at];
            match slots[usize::from(id)].stamp.class() {
                EXACT => self.home.insert(slots, self.classes.pattern(self.primary), id),
                UNCLASSED => {}
                class => self.home.insert(slots, self.classes.pattern(class), id),
            }
        }
        self.note_unusual();
    }

    /// Builds an index for keys of this pattern in place of one that sleeps or of
    /// the one that was not used for longest, if that is long enough.
    fn wake_wild(&mut self, slots: &mut [Slot], ignore: u64, any_source: bool) {
        let len = self.len();
        let wilds = self.wild.iter_mut().enumerate();
        let Some((which, wild)) = wilds.max_by_key(|(_, wild)| wild.keep.idle()) else { return };
        if wild.keep.idle() < len {
            return;
        }
        wild.keys = (ignore, any_source);
        wild.pattern = Pattern::of_keys(ignore, any_source);
        wild.index.clear();
        wild.keep.wake();
        self.awake |= 1 << which;
        for at in 0..self.in_order(slots).len() {
            let id = self.order[at];
            if slots[usize::from(id)].stamp.class() == EXACT {
                let wild = &mut self.wild[which];
                wild.index.insert(slots, &wild.pattern, id);
            }
        }
    }

    /// Finds out what is unusual.
    fn note_unusual(&mut self) {
        let turned = if self.primary == TURNED { Classes::TURNED } else { 0 };
        let busy = self.scan_keep.is_awake() || self.unclassed != 0 || self.awake != 0;
        self.classes.set_unusual(turned | if busy { Classes::BUSY } else { 0 });
    }

    /// What need not happen at every insert: drops what nobody has used for long.
    #[cold]
    fn housekeeping(&mut self, slots: &mut [Slot]) {
        if self.demand.is_pending() {
            self.fulfil(slots);
        }
        let inserts = std::mem::take(&mut self.since_tick);
        let len = self.len();
        for (at, wild) in self.wild.iter_mut().enumerate() {
            if wild.keep.tick(inserts, len) {
                self.awake &= !(1 << at);
            }
        }
        if self.home_keep.tick(inserts, len) {
            self.home_keep.wake();
            self.find_home(slots);
        }
        if self.scan_keep.tick(inserts, len) {
            self.fill_scan(slots, |class| class == UNCLASSED);
        }
        self.note_unusual();
    }

    /// Nobody has used the home index for long: turns it to the pattern of an index
    /// that is used, in place of that one.
    fn find_home(&mut self, slots: &mut [Slot]) {
        if !self.entries_are_exact() {
            return;
        }
        let used = Bits(self.awake).min_by_key(|&at| self.wild[at % WILD].keep.idle());
        if let Some(at) = used {
            self.awake &= !(1 << at);
            self.wild[at % WILD].keep.sleep();
            let keys = self.wild[at % WILD].keys;
            self.turn_home(slots, keys);
        }
    }
}

/// The older of two entries that were found.
#[inline]
fn older(slots: &[Slot], a: Option<u16>, b: Option<u16>) -> Option<u16> {
    let (Some(x), Some(y)) = (a, b) else { return a.or(b) };
    if slots[usize::from(x)].stamp < slots[usize::from(y)].stamp { a } else { b }
}
