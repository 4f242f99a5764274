// SPDX-License-Identifier: BSD-2-Clause
//! The entries that have left the nursery, and what finds the oldest of them.
//!
//! | key | entries | found by |
//! |---|---|---|
//! | exact | any | a probe of the home index for each live class, then the scan if there are more classes than that; the lowest position wins |
//! | wildcards | exact | the index for the key's pattern, once such keys repeat |
//! | wildcards | any | the scan of all, once there are such keys |
//! | first of its kind | any | a walk of the age log |
//!
//! An index that no search has used for long is dropped and built again on
//! demand: a queue of unexpected messages that is only ever searched with any
//! source keeps that one index.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::age_log::AgeLog;
use crate::classes::{Classes, EXACT, UNCLASSED};
use crate::demand::{Demand, Keep, Wish};
use crate::entry::{Key, Source};
use crate::index::{Home, Index, Wild};
use crate::kernel::Kernel;
use crate::pattern::Pattern;
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
    /// Every entry that has a class, under the pattern of its class.
    home: Index<Home>,
    home_keep: Keep,
    /// Every exact entry, under the pattern of a kind of key.
    wild: [ForKeys; WILD],
    /// Only the home index is to be kept up, and no search has asked for more.
    plain: AtomicBool,
    /// Inserts since the last [`Deep::housekeeping`].
    since_tick: usize,
    /// Entries without a class.
    unclassed: usize,
    /// Entries without a class; all entries while awake.
    scan: Scan,
    scan_keep: Keep,
    demand: Demand,
}

/// An index for one kind of key with wildcards.
struct ForKeys {
    pattern: Pattern,
    index: Index<Wild>,
    keep: Keep,
}

impl Deep {
    pub(crate) fn new(capacity: usize, kernel: Kernel) -> Self {
        let wild = |which| ForKeys {
            pattern: Pattern::EXACT,
            index: Index::new(capacity, Wild(which)),
            keep: Keep::default(),
        };
        Self {
            kernel,
            log: AgeLog::new(capacity),
            classes: Classes::new(),
            home: Index::new(capacity, Home),
            home_keep: Keep::awake(),
            wild: std::array::from_fn(wild),
            plain: AtomicBool::new(true),
            since_tick: 0,
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
    pub(crate) fn insert(&mut self, slots: &mut [Slot], ids: [u16; 4]) {
        self.since_tick += ids.len();
        if self.since_tick >= TICK || self.log.is_at_end() {
            self.housekeeping(slots);
        }
        let first = self.log.push_four(ids);
        for (position, id) in (first..).zip(ids) {
            let slot = &mut slots[usize::from(id)];
            let any_source = slot.source == Source::ANY.0;
            let exact = slot.ignore == 0 && !any_source;
            let class = if exact { EXACT } else { self.classes.enter(slot.ignore, any_source) };
            slot.age = Age::new(position, class);
            if class == UNCLASSED || !*self.plain.get_mut() {
                self.insert_other(slots, id, class);
            } else if exact {
                self.home.insert(slots, &Pattern::EXACT, id);
            } else {
                self.home.insert(slots, self.classes.pattern(class), id);
            }
        }
    }

    /// The same for an entry of no class, or when there is more than the home index
    /// to keep up.
    #[inline(never)]
    fn insert_other(&mut self, slots: &mut [Slot], id: u16, class: u8) {
        if self.scan_keep.is_awake() || class == UNCLASSED {
            self.scan.push(&slots[usize::from(id)], id);
        }
        if class == UNCLASSED {
            self.unclassed += 1;
            *self.plain.get_mut() = false;
            return;
        }
        if self.home_keep.is_awake() {
            self.home.insert(slots, self.classes.pattern(class), id);
        } else if class != EXACT {
            // Found nowhere else. The log has it already.
            self.wake_home(slots);
        }
        if class == EXACT {
            for wild in self.wild.iter_mut().filter(|wild| wild.keep.is_awake()) {
                wild.index.insert(slots, &wild.pattern, id);
            }
        }
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], id: u16) {
        let age = slots[usize::from(id)].age;
        self.log.remove(age.position());
        if !*self.plain.get_mut() {
            return self.remove_other(slots, id, age.class());
        }
        if age.class() != EXACT {
            self.classes.leave(age.class());
        }
        self.home.remove(slots, id);
    }

    /// The same when there is more than the home index to keep up.
    #[inline(never)]
    fn remove_other(&mut self, slots: &mut [Slot], id: u16, class: u8) {
        if self.scan_keep.is_awake() || class == UNCLASSED {
            self.scan.remove(id);
        }
        match class {
            UNCLASSED => {
                self.unclassed -= 1;
                return self.note_plain();
            }
            EXACT => {}
            _ => self.classes.leave(class),
        }
        if self.home_keep.is_awake() {
            self.home.remove(slots, id);
        }
        if class == EXACT {
            for wild in self.wild.iter_mut().filter(|wild| wild.keep.is_awake()) {
                wild.index.remove(slots, id);
            }
        }
        if self.demand.is_pending() {
            self.fulfil(slots);
        }
    }

    /// The slot of the oldest entry that matches.
    #[inline(always)]
    pub(crate) fn first_match(&self, slots: &[Slot], key: &Key) -> Option<u16> {
        if key.ignore != 0 || key.source.is_any() {
            return self.first_match_wild(slots, key);
        }
        self.home_keep.note_use();
        if self.plain.load(Relaxed) && self.classes.are_exact() {
            return self.home.first(slots, &Pattern::EXACT, key.bits, key.source.0);
        }
        self.first_match_classes(slots, key)
    }

    /// The same among entries of several classes.
    #[inline(never)]
    fn first_match_classes(&self, slots: &[Slot], key: &Key) -> Option<u16> {
        if !self.home_keep.is_awake() {
            return self.first_match_asleep(slots, key);
        }
        let mut oldest = self.home.first(slots, &Pattern::EXACT, key.bits, key.source.0);
        let mut age = oldest.map_or(Age::IN_NURSERY, |id| slots[usize::from(id)].age);
        for pattern in self.classes.live() {
            if let Some(id) = self.home.first(slots, pattern, key.bits, key.source.0) {
                let found = slots[usize::from(id)].age;
                if found < age {
                    (oldest, age) = (Some(id), found);
                }
            }
        }
        if self.unclassed != 0 {
            oldest = older(slots, oldest, self.scan.first_match(self.kernel, key));
        }
        oldest
    }

    /// The same for a key with wildcards.
    #[inline(never)]
    fn first_match_wild(&self, slots: &[Slot], key: &Key) -> Option<u16> {
        if self.classes.are_exact() && self.unclassed == 0 {
            let any_source = key.source.is_any();
            for wild in self.wild.iter().filter(|wild| wild.keep.is_awake()) {
                if wild.pattern.has(key.ignore, any_source) {
                    wild.keep.note_use();
                    return wild.index.first(slots, &wild.pattern, key.bits, key.source.0);
                }
            }
            if self.log.len() > FEW {
                self.demand.count_pattern(key.ignore, any_source);
                if self.demand.is_pending() {
                    self.plain.store(false, Relaxed);
                }
            }
        }
        if self.scan_keep.is_awake() {
            self.scan_keep.note_use();
            return self.scan.first_match(self.kernel, key);
        }
        if self.log.len() > FEW {
            self.demand.wish_mirror();
            self.plain.store(false, Relaxed);
        }
        self.walk(slots, key)
    }

    /// The same for an exact key while the home index is asleep.
    #[cold]
    fn first_match_asleep(&self, slots: &[Slot], key: &Key) -> Option<u16> {
        if self.log.len() > FEW {
            self.demand.wish_home();
        }
        self.walk(slots, key)
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
                Wish::Home if !self.home_keep.is_awake() => self.wake_home(slots),
                Wish::Mirror if !self.scan_keep.is_awake() => {
                    self.scan.clear();
                    self.scan_keep.wake();
                    for (id, _) in self.log.iter() {
                        self.scan.push(&slots[usize::from(id)], id);
                    }
                }
                Wish::Pattern { ignore, any_source } => self.wake_wild(slots, ignore, any_source),
                Wish::Home | Wish::Mirror => {}
            }
        }
        self.note_plain();
    }

    /// Builds the home index.
    #[cold]
    fn wake_home(&mut self, slots: &mut [Slot]) {
        self.home.clear();
        self.home_keep.wake();
        self.note_plain();
        for (id, _) in self.log.iter() {
            let class = slots[usize::from(id)].age.class();
            if class != UNCLASSED {
                self.home.insert(slots, self.classes.pattern(class), id);
            }
        }
    }

    /// Builds an index for keys of this pattern in place of one that sleeps or of
    /// the one that was not used for longest, if that is long enough.
    fn wake_wild(&mut self, slots: &mut [Slot], ignore: u64, any_source: bool) {
        let Some(wild) = self.wild.iter_mut().max_by_key(|wild| wild.keep.idle()) else { return };
        if wild.keep.idle() < self.log.len() {
            return;
        }
        wild.pattern = Pattern::of_keys(ignore, any_source);
        wild.index.clear();
        wild.keep.wake();
        for (id, _) in self.log.iter() {
            if slots[usize::from(id)].age.class() == EXACT {
                wild.index.insert(slots, &wild.pattern, id);
            }
        }
    }

    /// Whether the home index is all there is to keep up.
    fn note_plain(&mut self) {
        *self.plain.get_mut() = self.home_keep.is_awake()
            && !self.scan_keep.is_awake()
            && self.unclassed == 0
            && self.wild.iter().all(|wild| !wild.keep.is_awake());
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
        if self.classes.are_exact() {
            self.home_keep.tick(inserts, len);
        }
        for wild in &mut self.wild {
            wild.keep.tick(inserts, len);
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
        self.note_plain();
    }
}

/// The older of two entries that were found.
#[inline]
fn older(slots: &[Slot], a: Option<u16>, b: Option<u16>) -> Option<u16> {
    let (Some(x), Some(y)) = (a, b) else { return a.or(b) };
    if slots[usize::from(x)].age < slots[usize::from(y)].age { a } else { b }
}
