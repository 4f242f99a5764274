// SPDX-License-Identifier: BSD-2-Clause
//! The table: bounded, in age order, without allocation after construction.

use crate::deep::Deep;
use crate::entry::{Entry, Key};
use crate::kernel::Kernel;
use crate::nursery::Nursery;
use crate::slot::{Age, Slot};

/// Largest capacity of a table, in entries.
const MAX_CAPACITY: usize = 65_536;

/// Names an entry from its insertion to its removal. A handle of an entry that
/// was removed names nothing, even after its place was taken by another (until
/// that place was taken 2^32 times more).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    slot: u16,
    generation: u32,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The entry.
    pub handle: Handle,
    /// Its token.
    pub token: u32,
}

/// The table has no free entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table is full")]
pub struct Full;

/// Why a table cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// More than 65,536 entries.
    #[error("a table of {0} entries: the largest has 65536")]
    Capacity(usize),
    /// This processor lacks the instructions.
    #[error("this processor does not support the kernel {0}")]
    Kernel(Kernel),
}

/// A bounded ternary match table. See the crate's documentation.
///
/// Insert, search and remove are inlined by force: what they do for a short queue
/// and for exact keys is a few dozen instructions, of which a call would be a third.
pub struct Table {
    slots: Box<[Slot]>,
    /// Free slots: a stack of which the first `unused` are valid.
    free: Box<[u16]>,
    unused: usize,
    /// The youngest entries.
    nursery: Nursery,
    /// All others.
    deep: Deep,
}

impl Table {
    /// A table of `capacity` entries (0 to 65,536) that compares with `kernel`.
    ///
    /// # Errors
    /// The capacity is too large, or this processor does not support the kernel.
    pub fn new(capacity: usize, kernel: Kernel) -> Result<Self, TableError> {
        if capacity > MAX_CAPACITY {
            return Err(TableError::Capacity(capacity));
        }
        if !kernel.is_available() {
            return Err(TableError::Kernel(kernel));
        }
        Ok(Self {
            slots: vec![Slot::EMPTY; capacity].into(),
            free: (0..capacity).rev().map(|slot| slot as u16).collect(),
            unused: capacity,
            nursery: Nursery::default(),
            deep: Deep::new(capacity, kernel),
        })
    }

    /// Most entries it can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Entries it holds.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.unused
    }

    /// Whether it holds no entry.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether every entry is taken.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.unused == 0
    }

    /// The kernel it compares with.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.deep.kernel()
    }

    /// Adds an entry, the youngest from now on.
    ///
    /// # Errors
    /// [`Full`] when every entry is taken.
    #[inline(always)]
    pub fn insert(&mut self, entry: Entry) -> Result<Handle, Full> {
        if self.unused == 0 {
            return Err(Full);
        }
        if self.nursery.is_full() {
            let grown = std::mem::take(&mut self.nursery);
            self.deep.insert(&mut self.slots, grown);
        }
        self.unused -= 1;
        let id = self.free[self.unused];
        let slot = &mut self.slots[usize::from(id)];
        slot.bits = entry.bits;
        slot.ignore = entry.ignore;
        slot.source = entry.source.0;
        slot.token = entry.token;
        slot.age = Age::IN_NURSERY;
        self.nursery.push(id);
        Ok(Handle { slot: id, generation: slot.generation })
    }

    /// The oldest entry that matches.
    #[inline(always)]
    #[must_use]
    pub fn first_match(&self, key: &Key) -> Option<Hit> {
        if !self.deep.is_empty()
            && let Some(id) = self.deep.first_match(&self.slots, key)
        {
            return Some(self.hit(id));
        }
        self.nursery
            .iter()
            .find(|&id| self.slots[usize::from(id)].matches(key))
            .map(|id| self.hit(id))
    }

    #[inline]
    fn hit(&self, id: u16) -> Hit {
        let slot = &self.slots[usize::from(id)];
        Hit { handle: Handle { slot: id, generation: slot.generation }, token: slot.token }
    }

    /// Takes an entry out; nothing when the handle's entry is gone already.
    #[inline(always)]
    pub fn remove(&mut self, handle: Handle) -> Option<Entry> {
        let id = handle.slot;
        let slot = self.slots.get_mut(usize::from(id))?;
        if slot.generation != handle.generation {
            return None;
        }
        slot.generation = slot.generation.wrapping_add(1);
        let entry = slot.entry();
        if slot.age == Age::IN_NURSERY {
            self.nursery.remove(id);
        } else {
            self.deep.remove(&mut self.slots, id);
        }
        self.free[self.unused] = id;
        self.unused += 1;
        Some(entry)
    }

    /// The entry of a handle; nothing when it is gone.
    #[inline]
    #[must_use]
    pub fn get(&self, handle: Handle) -> Option<Entry> {
        self.live(handle).map(Slot::entry)
    }

    #[inline]
    fn live(&self, handle: Handle) -> Option<&Slot> {
        self.slots.get(usize::from(handle.slot)).filter(|slot| slot.generation == handle.generation)
    }

    /// Entries a linear list in age order would have compared to reach this one,
    /// itself counted: its rank by age from 1, or 0 when the handle's entry is
    /// gone. Costs nothing unless called.
    #[must_use]
    pub fn depth(&self, handle: Handle) -> usize {
        match self.live(handle) {
            None => 0,
            Some(slot) if slot.age == Age::IN_NURSERY => {
                self.deep.len() + self.nursery.rank(handle.slot) as usize + 1
            }
            Some(slot) => self.deep.rank(slot.age),
        }
    }

    /// Every entry, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (Handle, Entry)> + '_ {
        self.deep.iter().chain(self.nursery.iter()).map(|id| {
            let slot = &self.slots[usize::from(id)];
            (Handle { slot: id, generation: slot.generation }, slot.entry())
        })
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("kernel", &self.kernel())
            .field("capacity", &self.capacity())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
