// SPDX-License-Identifier: BSD-2-Clause
//! What is deep: the parts, and what all operations ask them.

use super::classes::Classes;
use super::home::Home;
use super::keep::Keep;
use super::scan::Scan;
use super::side::{SIDE_INDEXES, SideIndex};
use super::tray::Tray;
use super::wishes::{Wish, Wishes};
use crate::kernel::Available;
use crate::nursery::CAPACITY;
use crate::slot::Slot;
use crate::wildcards::Wildcards;

/// See [`crate::deep`]. What operations on base entries touch comes first, in few lines of the
/// cache.
#[repr(C)]
pub(crate) struct Deep {
    pub(super) classes: Classes,
    /// Most entries there were at an insert since the last [`Deep::housekeeping`].
    pub(super) peak: usize,
    /// Inserts since the last [`Deep::housekeeping`].
    pub(super) since_tick: usize,
    pub(super) kernel: Available,
    /// Has every entry that has a class.
    pub(super) home: Home,
    /// By cell of the keys: the side index that serves them, if any does and no keys of the same
    /// cell came after them. Keys come in any order: a search that asked one index after the other
    /// would not be predicted.
    pub(super) serving: [u8; Wildcards::CELLS],
    /// Every base entry, for keys that the home index does not serve.
    pub(super) side: [SideIndex; SIDE_INDEXES],
    /// Bit `i`: `side[i]` is kept up.
    pub(super) awake: u32,
    /// Most entries there were at an insert before the last [`Deep::housekeeping`].
    pub(super) high_water: usize,
    /// Room to put entries in order.
    pub(super) order: Box<[u16]>,
    /// Entries without a class.
    pub(super) unclassed: usize,
    /// Entries without a class; all entries while awake.
    pub(super) scan: Scan,
    pub(super) scan_keep: Keep,
    pub(super) wishes: Wishes,
    pub(super) tray: Tray,
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
    pub(super) fn slots_used<'a>(&self, slots: &'a [Slot]) -> &'a [Slot] {
        &slots[..slots.len().min(self.high_water.max(self.peak) + CAPACITY as usize)]
    }

    /// Every entry, oldest first.
    pub(crate) fn in_order(&mut self, slots: &[Slot]) -> &[u16] {
        let used = self.slots_used(slots);
        put_in_order(&mut self.order, used)
    }

    /// Has a later remove or insert fulfil a wish.
    #[inline(always)]
    pub(super) fn wish(&self, wish: Wish) {
        self.wishes.add(wish);
        self.classes.raise_extra_work();
    }

    /// Whether no entry has wildcards: only then one index serves keys that do.
    #[inline]
    pub(super) fn entries_are_exact(&self) -> bool {
        !self.classes.has_wild()
            && self.unclassed == 0
            && self.classes.base().wildcards() == Wildcards::NONE
    }
}

/// Every entry in these slots, in no order.
pub(super) fn entries(slots: &[Slot]) -> impl Iterator<Item = (u16, &Slot)> {
    let slots = slots.iter().enumerate().map(|(id, slot)| (id as u16, slot));
    slots.filter(|(_, slot)| slot.stamp.class().is_deep())
}

/// Every entry in these slots, oldest first.
pub(super) fn put_in_order<'o>(order: &'o mut [u16], slots: &[Slot]) -> &'o [u16] {
    let mut len = 0;
    for (id, _) in entries(slots) {
        order[len] = id;
        len += 1;
    }
    let order = &mut order[..len];
    order.sort_unstable_by_key(|&id| slots[usize::from(id)].stamp);
    order
}
