// SPDX-License-Identifier: BSD-2-Clause
//! The entries that have left the nursery, and what finds the oldest of them.
//!
//! | entries | key | found by |
//! |---|---|---|
//! | of one kind | exact | a probe of the home index |
//! | exact | of the kind that the home index serves | the same |
//! | exact | of another kind | a probe of a side index, once such keys repeat |
//! | of several classes | exact | a probe of the home index for each class; the oldest wins |
//! | some without a class | exact | that and the scan; if they are most, soon the scan of all |
//! | with wildcards | with wildcards | the scan of all entries, once there were such keys |
//! | any | the first ones of their kind | a pass over the slots |
//! | few | any, if entries or keys are of several kinds | a comparison with all of them, the tray |
//!
//! The home index holds base entries under the pattern that most keys have, others under that of
//! their class. Keys have no wildcards at first, but a queue of unexpected messages that is only
//! ever searched with any source soon keeps its home index, and nothing else, under that. What no
//! search has used for long is dropped, and built again when searches wish for it.

use crate::kernel::Available;
use crate::nursery::CAPACITY;
use crate::slot::{Class, Slot};
use crate::wildcards::Wildcards;

use classes::Classes;
use home::Home;
use keep::Keep;
use scan::Scan;
use side::{SIDE_INDEXES, SideIndex};
use tray::Tray;
use wishes::{Wish, Wishes};

mod age_log;
#[cfg(test)]
mod check;
mod classes;
mod home;
mod index;
mod insert;
mod keep;
mod pattern;
mod rings;
mod scan;
mod search;
mod side;
mod spread;
mod state;
mod tray;
mod tuple_space;
mod uniform;
mod upkeep;
mod wishes;

/// Inserts from one [`Deep::housekeeping`] to the next.
const TICK: usize = 64;

/// See the module. What operations on base entries touch comes first, in few lines of the cache.
#[repr(C)]
pub(crate) struct Deep {
    classes: Classes,
    /// Most entries there were at an insert since the last [`Deep::housekeeping`].
    peak: usize,
    /// Inserts since the last [`Deep::housekeeping`].
    since_tick: usize,
    kernel: Available,
    /// Has every entry that has a class.
    home: Home,
    /// By cell of the keys: the side index that serves them, if any does and no keys of the same
    /// cell came after them. Keys come in any order: a search that asked one index after the other
    /// would not be predicted.
    serving: [u8; Wildcards::CELLS],
    /// Every base entry, for keys that the home index does not serve.
    side: [SideIndex; SIDE_INDEXES],
    /// Bit `i`: `side[i]` is kept up.
    awake: u32,
    /// Most entries there were at an insert before the last [`Deep::housekeeping`].
    high_water: usize,
    /// Room to put entries in order.
    order: Box<[u16]>,
    /// Entries without a class.
    unclassed: usize,
    /// Entries without a class; all entries while awake.
    scan: Scan,
    scan_keep: Keep,
    wishes: Wishes,
    tray: Tray,
}

impl Deep {
    pub(crate) fn new(capacity: usize, kernel: Available) -> Self {
        Self {
            kernel,
            high_water: 0,
            peak: 0,
            order: vec![0; capacity].into(),
            classes: Classes::new(),
            home: Home::new(),
            serving: [0; Wildcards::CELLS],
            side: std::array::from_fn(|_| SideIndex::new(capacity)),
            awake: 0,
            since_tick: 0,
            unclassed: 0,
            scan: Scan::new(capacity),
            scan_keep: Keep::default(),
            wishes: Wishes::default(),
            tray: Tray::new(kernel),
        }
    }

    pub(crate) const fn kernel(&self) -> Available {
        self.kernel
    }

    pub(crate) fn len(&self) -> usize {
        self.classes.len() + self.unclassed + self.tray.len()
    }

    /// How many entries are of this one's age or older.
    pub(crate) fn rank(&self, slots: &[Slot], id: u16) -> usize {
        if self.tray.is_in_use() {
            return self.tray.rank(&slots[usize::from(id)]);
        }
        if self.scan_keep.is_awake() {
            self.scan_keep.note_use();
            return self.scan.rank(self.kernel, id);
        }
        self.wish(Wish::ScanAll);
        let stamp = slots[usize::from(id)].stamp;
        entries(self.slots_used(slots)).filter(|&(_, slot)| slot.stamp <= stamp).count()
    }

    /// The slots that ever had an entry, the first ones: slots are taken in the order
    /// of their numbers, and before any other those that were given back. Up to the next
    /// insert no more than a nursery is added.
    fn slots_used<'a>(&self, slots: &'a [Slot]) -> &'a [Slot] {
        &slots[..slots.len().min(self.high_water.max(self.peak) + CAPACITY as usize)]
    }

    /// Every entry, oldest first.
    pub(crate) fn in_order(&mut self, slots: &[Slot]) -> &[u16] {
        let used = self.slots_used(slots);
        put_in_order(&mut self.order, used)
    }

    /// Has a later remove or insert fulfil a wish.
    #[inline(always)]
    fn wish(&self, wish: Wish) {
        self.wishes.add(wish);
        self.classes.raise_extra_work();
    }

    /// Fulfils wishes, where entries leave before they come here.
    #[inline(always)]
    pub(crate) fn fulfil_if_pending(&mut self, slots: &mut [Slot]) {
        if self.classes.state().has_extra_work() && self.wishes.are_pending() {
            self.fulfil(slots);
        }
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], id: u16, class: Class) {
        if self.classes.state().has_extra_work() {
            if class == Class::TRAY {
                return self.tray.remove(&slots[usize::from(id)]);
            }
            return self.remove_everywhere(slots, id, class);
        }
        self.classes.leave(class);
        self.home.index.remove(slots, id);
    }

    /// Takes an entry out where there is more than the home index.
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
        self.home.index.remove(slots, id);
        if class == Class::BASE {
            self.remove_from_side(id);
        }
        if self.scan_keep.is_awake() {
            self.scan.remove(id);
        }
        if self.wishes.are_pending() {
            self.fulfil(slots);
        }
    }

    /// Whether no entry has wildcards: only then one index serves keys that do.
    #[inline]
    fn entries_are_exact(&self) -> bool {
        !self.classes.has_wild()
            && self.unclassed == 0
            && self.classes.base().wildcards() == Wildcards::NONE
    }
}

/// Every entry in these slots, in no order.
fn entries(slots: &[Slot]) -> impl Iterator<Item = (u16, &Slot)> {
    let slots = slots.iter().enumerate().map(|(id, slot)| (id as u16, slot));
    slots.filter(|(_, slot)| slot.stamp.class().is_deep())
}

/// Every entry in these slots, oldest first.
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
