// SPDX-License-Identifier: BSD-2-Clause
//! The entries that have left the nursery, and what finds the oldest of them.
//!
//! | key | entries | found by |
//! |---|---|---|
//! | exact | any | a probe of the home index for each live class, then the scan if there are more classes than that; the oldest wins |
//! | any | exact | the index for the key's pattern, once such keys repeat |
//! | wildcards | any | the scan of all, once there are such keys |
//! | first of its kind | any | a walk of the age log |
//!
//! The home index holds exact entries under the pattern that most keys have: no
//! wildcards at first, but a queue of unexpected messages that is only ever searched
//! with any source soon keeps its home index, and no other, under that. An index
//! that no search has used for long is dropped, and built again on demand.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::age_log::{AgeLog, Bits};
use crate::classes::{Classes, UNCLASSED};
use crate::demand::{Demand, Keep, Wish};
use crate::entry::{Key, Source};
use crate::index::{Home, Index, Wild};
use crate::kernel::Kernel;
use crate::nursery::{CAPACITY, Nursery};
use crate::pattern::{EXACT, Pattern};
use crate::scan::Scan;
use crate::slot::{Age, Slot, WILD};

/// Entries that are walked without a thought of building something.
const FEW: usize = 8;

/// Inserts from one [`Deep::housekeeping`] to the next.
const TICK: usize = 64;

/// See the module.
pub(crate) struct Deep {
    kernel: Kernel,
    /// Every entry, by age.
    log: AgeLog,
    classes: Classes,
    /// Every entry that has a class, under the pattern of its class; exact ones under
    /// `primary`.
    home: Index<Home>,
    home_keep: Keep,
    /// Pattern of exact entries in the home index: that of their class, or that of
    /// the keys in use if no entry has wildcards.
    primary: Pattern,
    /// Ignore bits, and any source or not, of the keys that the home index serves.
    home_keys: (u64, bool),
    /// Every exact entry, under the pattern of another kind of key.
    wild: [ForKeys; WILD],
    /// Bit `i`: `wild[i]` is awake.
    awake: u64,
    /// What the operations have to care for, a [`Mode`].
    mode: AtomicU8,
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

/// How much there is to keep up.
struct Mode;

impl Mode {
    /// The home index and more, or a search has asked for more.
    const BUSY: u8 = 0;
    /// Only the home index, for keys with wildcards.
    const WILD: u8 = 1;
    /// Only the home index, for exact keys.
    const EXACT: u8 = 2;
}

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
            log: AgeLog::new(capacity),
            classes: Classes::new(),
            home: Index::new(Home),
            home_keep: Keep::awake(),
            wild: std::array::from_fn(wild),
            primary: Pattern::EXACT,
            home_keys: EXACT_KEYS,
            mode: AtomicU8::new(Mode::EXACT),
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

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.log.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// How many entries are of this age or older.
    pub(crate) fn rank(&self, age: Age) -> usize {
        self.log.rank(self.kernel, age.position())
    }

    /// Slots, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.log.iter().map(|(id, _)| id)
    }

    /// Adds the entries of a full nursery.
    #[inline(never)]
    pub(crate) fn insert(&mut self, slots: &mut [Slot], grown: Nursery) {
        self.since_tick += CAPACITY as usize;
        if *self.mode.get_mut() == Mode::BUSY && self.demand.is_pending() {
            self.fulfil(slots);
        }
        if self.since_tick >= TICK || self.log.is_at_end() {
            self.housekeeping(slots);
        }
        if self.log.is_empty() && *self.mode.get_mut() == Mode::EXACT {
            self.choose_base(&slots[usize::from(grown.get(0))]);
        }
        let first = self.log.push_four(grown.all());
        for rank in 0..CAPACITY {
            let (position, id) = (first + rank, grown.get(rank));
            if *self.mode.get_mut() != Mode::EXACT {
                self.insert_other(slots, id, position);
                continue;
            }
            let slot = &mut slots[usize::from(id)];
            let class = self.classes.enter(slot.ignore, slot.source == Source::ANY.0);
            slot.age = Age::new(position, class);
            if class == EXACT {
                self.home.insert(slots, &self.primary.exact(), id);
            } else if class == UNCLASSED {
                self.insert_unclassed(slot, id);
            } else {
                self.home.insert(slots, self.classes.pattern(class), id);
            }
        }
    }

    /// Takes what the first entry ignores for what all do.
    fn choose_base(&mut self, slot: &Slot) {
        if slot.ignore != self.classes.base() && slot.source != Source::ANY.0 {
            self.classes.set_base(slot.ignore);
            self.primary = *self.classes.pattern(EXACT);
        }
    }

    /// The same in the other modes.
    #[inline(never)]
    fn insert_other(&mut self, slots: &mut [Slot], id: u16, position: u32) {
        let slot = &mut slots[usize::from(id)];
        let class = self.classes.enter(slot.ignore, slot.source == Source::ANY.0);
        slot.age = Age::new(position, class);
        if class == EXACT {
            self.home.insert(slots, &self.primary, id);
            if *self.mode.get_mut() == Mode::BUSY {
                self.insert_everywhere(slots, id);
            }
            return;
        }
        if class == UNCLASSED {
            return self.insert_unclassed(slot, id);
        }
        if self.scan_keep.is_awake() {
            self.scan.push(slot, id);
        }
        if self.home_keys == EXACT_KEYS {
            self.home.insert(slots, self.classes.pattern(class), id);
        } else {
            // The log has it already.
            self.turn_home(slots, EXACT_KEYS);
        }
    }

    /// Adds an exact entry to what there is beside the home index.
    #[inline(always)]
    fn insert_everywhere(&mut self, slots: &mut [Slot], id: u16) {
        for at in Bits(self.awake) {
            let wild = &mut self.wild[at % WILD];
            wild.index.insert(slots, &wild.pattern, id);
        }
        if self.scan_keep.is_awake() {
            self.scan.push(&slots[usize::from(id)], id);
        }
    }

    #[inline(never)]
    fn insert_unclassed(&mut self, slot: &Slot, id: u16) {
        self.scan.push(slot, id);
        self.unclassed += 1;
        *self.mode.get_mut() = Mode::BUSY;
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], id: u16) {
        let age = slots[usize::from(id)].age;
        self.log.remove(age.position());
        if *self.mode.get_mut() == Mode::BUSY {
            return self.remove_everywhere(slots, id, age.class());
        }
        self.classes.leave(age.class());
        self.home.remove(slots, id);
    }

    /// The same when there is more than the home index.
    #[inline(never)]
    fn remove_everywhere(&mut self, slots: &mut [Slot], id: u16, class: u8) {
        if class == UNCLASSED {
            self.scan.remove(id);
            self.unclassed -= 1;
            return self.note_mode();
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
        if self.mode.load(Relaxed) == Mode::EXACT
            && self.classes.wild() == 0
            && key.ignore == 0
            && !key.source.is_any()
        {
            self.home_keep.note_use();
            return self.home.first(slots, &self.primary.exact(), key.bits, key.source.0);
        }
        self.first_match_other(slots, key)
    }

    /// The same in the other modes, among several classes, and for keys with
    /// wildcards.
    #[inline(never)]
    fn first_match_other(&self, slots: &[Slot], key: &Key) -> Option<u16> {
        if self.home_keys != (key.ignore, key.source.is_any()) {
            return self.first_match_elsewhere(slots, key);
        }
        self.home_keep.note_use();
        let oldest = if self.classes.wild() == 0 {
            self.home.first(slots, &self.primary, key.bits, key.source.0)
        } else {
            self.first_match_classes(slots, key)
        };
        if self.unclassed == 0 {
            return oldest;
        }
        older(slots, oldest, self.scan.first_match(self.kernel, key))
    }

    /// The oldest match of any class.
    #[inline(always)]
    fn first_match_classes(&self, slots: &[Slot], key: &Key) -> Option<u16> {
        let mut oldest = None;
        let mut age = Age::IN_NURSERY;
        for pattern in self.classes.live(self.log.len() - self.unclassed) {
            if let Some(id) = self.home.first(slots, pattern, key.bits, key.source.0) {
                let found = slots[usize::from(id)].age;
                if found < age {
                    (oldest, age) = (Some(id), found);
                }
            }
        }
        oldest
    }

    /// The same for a kind of key that the home index does not serve.
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
            if self.log.len() > FEW && self.demand.count_pattern(key.ignore, any_source) {
                self.mode.store(Mode::BUSY, Relaxed);
            }
        }
        if self.scan_keep.is_awake() {
            self.scan_keep.note_use();
            return self.scan.first_match(self.kernel, key);
        }
        if self.log.len() > FEW {
            self.demand.wish_mirror();
            self.mode.store(Mode::BUSY, Relaxed);
        }
        self.walk(slots, key)
    }

    /// Whether no entry has wildcards: only then one index serves keys that do.
    #[inline]
    fn entries_are_exact(&self) -> bool {
        self.classes.wild() == 0 && self.unclassed == 0 && self.classes.base() == 0
    }

    /// Compares one after the other.
    fn walk(&self, slots: &[Slot], key: &Key) -> Option<u16> {
        self.iter().find(|&id| slots[usize::from(id)].matches(key))
    }

    /// Builds what searches have asked for.
    #[cold]
    fn fulfil(&mut self, slots: &mut [Slot]) {
        for wish in self.demand.take() {
            match wish {
                Wish::Mirror if !self.scan_keep.is_awake() => {
                    self.scan.clear();
                    self.scan_keep.wake();
                    for (id, _) in self.log.iter() {
                        self.scan.push(&slots[usize::from(id)], id);
                    }
                }
                Wish::Pattern { ignore, any_source } => self.wake_wild(slots, ignore, any_source),
                Wish::Mirror => {}
            }
        }
        self.note_mode();
    }

    /// Builds the home index anew, for keys of this kind.
    #[cold]
    fn turn_home(&mut self, slots: &mut [Slot], keys: (u64, bool)) {
        self.home_keys = keys;
        self.primary = match keys {
            EXACT_KEYS => *self.classes.pattern(EXACT),
            (ignore, any_source) => Pattern::of_keys(ignore, any_source),
        };
        self.home.clear();
        self.home_keep.wake();
        for (id, _) in self.log.iter() {
            match slots[usize::from(id)].age.class() {
                EXACT => self.home.insert(slots, &self.primary, id),
                UNCLASSED => {}
                class => self.home.insert(slots, self.classes.pattern(class), id),
            }
        }
        self.note_mode();
    }

    /// Builds an index for keys of this pattern in place of one that sleeps or of
    /// the one that was not used for longest, if that is long enough.
    fn wake_wild(&mut self, slots: &mut [Slot], ignore: u64, any_source: bool) {
        let wilds = self.wild.iter_mut().enumerate();
        let Some((at, wild)) = wilds.max_by_key(|(_, wild)| wild.keep.idle()) else { return };
        if wild.keep.idle() < self.log.len() {
            return;
        }
        wild.keys = (ignore, any_source);
        wild.pattern = Pattern::of_keys(ignore, any_source);
        wild.index.clear();
        wild.keep.wake();
        self.awake |= 1 << at;
        for (id, _) in self.log.iter() {
            if slots[usize::from(id)].age.class() == EXACT {
                wild.index.insert(slots, &wild.pattern, id);
            }
        }
    }

    /// Finds out how much there is to keep up.
    fn note_mode(&mut self) {
        *self.mode.get_mut() =
            if self.scan_keep.is_awake() || self.unclassed != 0 || self.awake != 0 {
                Mode::BUSY
            } else if self.home_keys == EXACT_KEYS {
                Mode::EXACT
            } else {
                Mode::WILD
            };
    }

    /// What need not happen at every insert: closes up the log, drops what nobody
    /// has used for long.
    #[cold]
    fn housekeeping(&mut self, slots: &mut [Slot]) {
        if self.log.is_at_end() {
            self.log.close_up(|id, _, to| {
                let age = &mut slots[usize::from(id)].age;
                *age = Age::new(to as u32, age.class());
            });
        }
        if self.demand.is_pending() {
            self.fulfil(slots);
        }
        let inserts = std::mem::take(&mut self.since_tick);
        let len = self.log.len();
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
            self.scan.clear();
            for (id, _) in self.log.iter() {
                let slot = &slots[usize::from(id)];
                if slot.age.class() == UNCLASSED {
                    self.scan.push(slot, id);
                }
            }
        }
        self.note_mode();
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
    if slots[usize::from(x)].age < slots[usize::from(y)].age { a } else { b }
}
