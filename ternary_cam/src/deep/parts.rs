// SPDX-License-Identifier: BSD-2-Clause
//! The fields of [`Deep`], and functions that all operations use.

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

/// The structures behind the nursery; see [`crate::deep`]. The fields that operations on base
/// entries use come first, in few cache lines.
#[repr(C)]
pub(crate) struct Deep {
    pub(super) classes: Classes,
    /// Maximum number of entries at an insert since the last [`Deep::housekeeping`].
    pub(super) peak: usize,
    /// Inserts since the last [`Deep::housekeeping`].
    pub(super) since_tick: usize,
    pub(super) kernel: Available,
    /// Contains every entry that has a class.
    pub(super) home: Home,
    /// Indexed by cell of the keys: the side index that serves them, unless keys of the same cell
    /// came after them. Since keys come in any order, searching one index after the other would be
    /// mispredicted.
    pub(super) serving: [u8; Wildcards::CELLS],
    /// Each contains every base entry, for keys that the home index does not serve.
    pub(super) side: [SideIndex; SIDE_INDEXES],
    /// Bit `i`: `side[i]` is kept up.
    pub(super) awake: u32,
    /// Maximum number of entries at an insert before the last [`Deep::housekeeping`].
    pub(super) high_water: usize,
    /// Scratch memory to sort entries.
    pub(super) order: Box<[u16]>,
    /// Number of entries without a class.
    pub(super) unclassed: usize,
    /// Contains the entries without a class; all entries while `scan_keep` is awake.
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

    /// Number of entries of this age or older.
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

    /// The slots that may ever have had an entry, a prefix of all. Slots are taken in ascending
    /// order, and freed ones first. Until the next insert at most a nursery is added.
    pub(super) fn slots_used<'a>(&self, slots: &'a [Slot]) -> &'a [Slot] {
        &slots[..slots.len().min(self.high_water.max(self.peak) + CAPACITY as usize)]
    }

    /// All entries, oldest first.
    pub(crate) fn in_order(&mut self, slots: &[Slot]) -> &[u16] {
        let used = self.slots_used(slots);
        put_in_order(&mut self.order, used)
    }

    /// Leaves a wish, which a later remove or insert fulfils.
    #[inline(always)]
    pub(super) fn wish(&self, wish: Wish) {
        self.wishes.add(wish);
        self.classes.raise_extra_work();
    }

    /// Returns true if no entry has wildcards: only then one index can serve keys that do.
    #[inline]
    pub(super) fn entries_are_exact(&self) -> bool {
        !self.classes.has_wild()
            && self.unclassed == 0
            && self.classes.base().wildcards() == Wildcards::NONE
    }
}

/// All entries in these slots, in no order.
pub(super) fn entries(slots: &[Slot]) -> impl Iterator<Item = (u16, &Slot)> {
    let slots = slots.iter().enumerate().map(|(id, slot)| (id as u16, slot));
    slots.filter(|(_, slot)| slot.stamp.class().is_deep())
}

/// All entries in these slots, oldest first.
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
