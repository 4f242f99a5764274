// SPDX-License-Identifier: BSD-2-Clause
//! The public type [`Table`]. It stores each entry in a slot, and searches the index first and then
//! the recent entries. The number of slots grows with the number of entries.

use crate::entry::{Entry, Key};
use crate::handle::{Full, Handle, Hit, MAX_CAPACITY, TableError};
use crate::index::Index;
use crate::kernel::{Available, Kernel};
use crate::recent::RecentEntries;
use crate::slot::{Class, Slot, Stamp};

/// Number of slots of a table when it has its first entry, unless the capacity is lower.
const FEWEST_SLOTS: usize = 8;

/// A bounded ternary match table; see the crate documentation.
///
/// Insert, search and remove are always inlined. For a short queue and for exact keys they take a
/// few dozen instructions, and a call would take a third of that.
// The fields that searches and removals need are one cache line, in front: see the assertion below.
#[repr(C, align(64))]
pub struct Table {
    /// The number of slots doubles up to the capacity.
    slots: Box<[Slot]>,
    /// Free slots, a stack.
    free: Vec<u16>,
    /// The youngest entries.
    recent: RecentEntries,
    /// All other entries. Allocated with the first slots.
    index: Option<Box<Index>>,
    /// Serial number of the next entry.
    serial: u64,
    capacity: usize,
    kernel: Available,
}

impl Table {
    /// Creates a table of `capacity` entries (0 to 65,536) that compares with `kernel`.
    ///
    /// # Errors
    /// The capacity is too large, or this processor does not support the kernel.
    pub fn new(capacity: usize, kernel: Kernel) -> Result<Self, TableError> {
        if capacity > MAX_CAPACITY {
            return Err(TableError::Capacity(capacity));
        }
        let kernel = Available::new(kernel).ok_or(TableError::Kernel(kernel))?;
        Ok(Self {
            slots: Box::default(),
            free: Vec::new(),
            serial: 0,
            recent: RecentEntries::default(),
            index: None,
            capacity,
            kernel,
        })
    }

    /// Returns the maximum number of entries.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns true if the table holds no entry.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if every entry is in use.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free.is_empty() && self.slots.len() == self.capacity
    }

    /// Returns the kernel that the table compares with.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel.get()
    }

    /// Adds the youngest entry.
    ///
    /// # Errors
    /// [`Full`] if every entry is in use.
    #[inline(always)]
    pub fn insert(&mut self, entry: Entry) -> Result<Handle, Full> {
        if self.free.is_empty() {
            self.grow();
        }
        let Some(id) = self.free.pop() else { return Err(Full) };
        if self.recent.is_full()
            && let Some(index) = &mut self.index
        {
            let recent = std::mem::take(&mut self.recent);
            // The slot of the new entry does not count yet.
            let taken = self.slots.len() - self.free.len() - 1;
            index.insert(&mut self.slots, recent, taken);
        }
        let slot = &mut self.slots[usize::from(id)];
        slot.bits = entry.bits;
        slot.ignore = entry.ignore;
        slot.source = entry.source.0;
        slot.token = entry.token;
        let serial = self.serial;
        self.serial += 1;
        slot.stamp = Stamp::new(serial, Class::RECENT);
        self.recent.push(id);
        Ok(Handle { slot: id, serial })
    }

    /// Adds slots, if there are fewer than the capacity.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let len = self.slots.len();
        if len == self.capacity {
            return;
        }
        let more = (2 * len).clamp(FEWEST_SLOTS.min(self.capacity), self.capacity);
        let mut slots = std::mem::take(&mut self.slots).into_vec();
        slots.resize(more, Slot::EMPTY);
        self.slots = slots.into();
        self.free.reserve_exact(more);
        let index = self.index.get_or_insert_with(|| Box::new(Index::new(self.kernel)));
        index.grow(&mut self.slots);
        self.free.extend((len..more).rev().map(|slot| slot as u16));
    }

    /// Returns the oldest entry that matches; `None` if no entry matches.
    #[inline(always)]
    #[must_use]
    pub fn first_match(&self, key: &Key) -> Option<Hit> {
        let index = self.index.as_ref()?;
        if let Some((id, slot)) = index.first_match(&self.slots, key) {
            return Some(Self::hit(id, slot));
        }
        self.recent
            .iter()
            .map(|id| (id, &self.slots[usize::from(id)]))
            .find(|(_, slot)| slot.matches(key))
            .map(|(id, slot)| Self::hit(id, slot))
    }

    #[inline(always)]
    fn hit(id: u16, slot: &Slot) -> Hit {
        Hit { handle: Handle { slot: id, serial: slot.stamp.serial() }, token: slot.token }
    }

    /// Removes an entry and returns it; `None` if it was removed already.
    #[inline(always)]
    pub fn remove(&mut self, handle: Handle) -> Option<Entry> {
        let id = handle.slot;
        let slot = self.slots.get_mut(usize::from(id))?;
        let stamp = slot.stamp;
        if stamp.serial() != handle.serial {
            return None;
        }
        let index = self.index.as_mut()?;
        slot.stamp = Stamp::NONE;
        let entry = slot.entry();
        if stamp.class() == Class::RECENT {
            self.recent.remove(id);
            index.fulfil_if_pending(&mut self.slots);
        } else {
            index.remove(&mut self.slots, id, stamp.class());
        }
        self.free.push(id);
        Some(entry)
    }

    /// Returns the entry of a handle; `None` if it was removed.
    #[inline]
    #[must_use]
    pub fn get(&self, handle: Handle) -> Option<Entry> {
        self.live(handle).map(Slot::entry)
    }

    #[cfg(test)]
    pub(crate) fn index(&self) -> &Index {
        self.index.as_ref().unwrap()
    }

    /// Checks the invariants of all structures.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        if let Some(index) = &self.index {
            index.check(&self.slots);
        }
    }

    #[inline]
    fn live(&self, handle: Handle) -> Option<&Slot> {
        self.slots.get(usize::from(handle.slot)).filter(|slot| slot.stamp.serial() == handle.serial)
    }

    /// Returns the number of entries that a linear list in age order would have compared to reach
    /// this entry, including the entry itself: its age rank from 1. Returns 0 if the entry was
    /// removed. For some time after a call, inserts and removes in long queues maintain a structure
    /// that makes further calls fast, and take up to three times as long.
    #[must_use]
    pub fn depth(&self, handle: Handle) -> usize {
        match (self.live(handle), &self.index) {
            (Some(slot), Some(index)) if slot.stamp.class() == Class::RECENT => {
                index.len() + self.recent.rank(handle.slot) as usize + 1
            }
            (Some(_), Some(index)) => index.rank(&self.slots, handle.slot),
            _ => 0,
        }
    }

    /// Returns all entries, oldest first. The call sorts them, except the recent entries.
    pub fn iter(&mut self) -> impl Iterator<Item = (Handle, Entry)> + '_ {
        let index = self.index.iter_mut().flat_map(|index| index.in_order(&self.slots));
        index.copied().chain(self.recent.iter()).map(|id| {
            let slot = &self.slots[usize::from(id)];
            (Handle { slot: id, serial: slot.stamp.serial() }, slot.entry())
        })
    }
}

const _: () = assert!(std::mem::offset_of!(Table, serial) == 64);

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("kernel", &self.kernel())
            .field("capacity", &self.capacity())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
