// SPDX-License-Identifier: BSD-2-Clause
//! A plain CAM, as in a NIC: a search compares every entry, and the oldest match wins.
//!
//! A NIC compares match bits and source of every entry in one clock cycle. A processor compares 16
//! bits of each entry, its *fingerprint* (`cam/fingerprint.rs`), with up to 32 entries per
//! instruction. It then compares the entries whose fingerprints agree. A CAM gives the same results
//! as [`Table`](crate::Table) and is slower with many entries, but its code is short.
//!
//! ```text
//! place            0     1     2     3     4     5    in age order, oldest first
//! fingerprints  [  a  |  -  |  c  |  d  |  -  |     ]
//! cares         [  a  |  -  |  c  |  d  |  -  |     ]  fingerprint bits that the entry compares
//! live             1     0     1     1     0     0     removals leave holes
//! ids           [  7  |  -  |  0  |  3  |  -  |     ]  the slot of the entry, which does not move
//!                head                       tail
//!
//! insert(e):  close up if there is no place left
//!             write fingerprint, care and id of e at the tail
//! search(k):  for each place whose fingerprint agrees with that of k, the lowest first:
//!                 if it is live and its entry matches k: found
//! remove(e):  leave a hole, or move the tail back; close up if there are many holes
//! ```
//!
//! The number of places is at least twice the capacity. So closing up adds at most a constant
//! number of moves per insertion or removal, on average.

mod fingerprint;

use crate::bits::Bits;
use crate::entry::{Entry, Key, Source};
use crate::handle::{Full, Handle, Hit, MAX_CAPACITY, TableError};
use crate::kernel::{self, Available, Fingerprints, Kernel, LANES, MaskedFingerprint};
use crate::slot::{Class, Slot, Stamp};

/// Up to this many entries are compared one by one. A vector comparison of few entries costs as
/// much, and would wait for fingerprints that were just stored.
const ALONE: usize = 4;

/// When a page becomes empty, the entries close up if they span more than this many places per
/// entry, plus one page.
const SPARSE: usize = 4;

/// A bounded ternary match table that compares every entry; see the module.
pub struct Cam {
    slots: Box<[Slot]>,
    /// Free slots, a stack.
    free: Vec<u16>,
    /// Serial number of the next entry.
    serial: u64,
    fingerprints: Fingerprints,
    /// Page of the oldest entry.
    head: usize,
    /// The place of the next entry, after all others.
    tail: usize,
    kernel: Available,
}

impl Cam {
    /// Creates a table of `capacity` entries (0 to 65,536) that compares with `kernel`.
    ///
    /// # Errors
    /// The capacity is too large, or this processor does not support the kernel.
    pub fn new(capacity: usize, kernel: Kernel) -> Result<Self, TableError> {
        if capacity > MAX_CAPACITY {
            return Err(TableError::Capacity(capacity));
        }
        let kernel = Available::new(kernel).ok_or(TableError::Kernel(kernel))?;
        let pages = (2 * capacity).div_ceil(LANES);
        Ok(Self {
            slots: vec![Slot::EMPTY; capacity].into(),
            free: (0..capacity).rev().map(|slot| slot as u16).collect(),
            serial: 0,
            fingerprints: Fingerprints::new(pages),
            head: 0,
            tail: 0,
            kernel,
        })
    }

    /// Returns the maximum number of entries.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
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
        self.free.is_empty()
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
        let first = self.is_empty();
        let Some(id) = self.free.pop() else { return Err(Full) };
        if self.tail == self.fingerprints.pages.len() * LANES {
            self.close_up();
        }
        let serial = self.serial;
        self.serial += 1;
        let place = self.tail;
        self.tail += 1;
        let Entry { bits, ignore, source, token } = entry;
        let slot = &mut self.slots[usize::from(id)];
        (slot.bits, slot.ignore, slot.source, slot.token) = (bits, ignore, source.0, token);
        slot.stamp = Stamp::new(serial, Class::NONE);
        slot.link.location = place as u32;
        self.fingerprints.set(place, id, sought(bits, ignore, source), first);
        Ok(Handle { slot: id, serial })
    }

    /// Returns the oldest entry that matches; `None` if no entry matches.
    #[inline(always)]
    #[must_use]
    pub fn first_match(&self, key: &Key) -> Option<Hit> {
        let matches = |place: usize| self.slot_at(place).1.matches(key);
        let place = if self.len() <= ALONE {
            self.first_of_few(matches)?
        } else {
            let sought = sought(key.bits, key.ignore, key.source);
            kernel::first_accepted(self.kernel, &self.fingerprints, self.pages(), sought, matches)?
        };
        let (slot, &Slot { stamp, token, .. }) = self.slot_at(place);
        Some(Hit { handle: Handle { slot, serial: stamp.serial() }, token })
    }

    #[inline(always)]
    fn first_of_few(&self, matches: impl Fn(usize) -> bool) -> Option<usize> {
        for page in self.pages() {
            let mut places =
                Bits(self.fingerprints.pages[page].live).map(|lane| page * LANES + lane);
            let found = places.find(|&place| matches(place));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    #[inline(always)]
    fn slot_at(&self, place: usize) -> (u16, &Slot) {
        let id = self.fingerprints.pages[place / LANES].ids[place % LANES];
        (id, &self.slots[usize::from(id)])
    }

    /// Removes an entry and returns it; `None` if it was removed already.
    #[inline(always)]
    pub fn remove(&mut self, handle: Handle) -> Option<Entry> {
        let slot = self.slots.get_mut(usize::from(handle.slot))?;
        if slot.stamp.serial() != handle.serial {
            return None;
        }
        slot.stamp = Stamp::NONE;
        let (entry, place) = (slot.entry(), slot.link.location as usize);
        self.free.push(handle.slot);
        let live = &mut self.fingerprints.pages[place / LANES].live;
        let left = *live & !(1 << (place % LANES));
        *live = left;
        if self.free.len() == self.slots.len() {
            (self.head, self.tail) = (0, 0);
            return Some(entry);
        }
        if place + 1 == self.tail {
            // Also reclaim the holes before this place in its page.
            self.tail = place;
            while !self.tail.is_multiple_of(LANES) && left >> ((self.tail - 1) % LANES) & 1 == 0 {
                self.tail -= 1;
            }
        }
        if left == 0 {
            self.note_empty_page();
        }
        Some(entry)
    }

    /// Called when a page has only holes, but other pages have entries. Moves the head to the first
    /// page with an entry, and closes up if the entries are sparse.
    #[cold]
    fn note_empty_page(&mut self) {
        while self.fingerprints.pages[self.head].live == 0 {
            self.head += 1;
        }
        if self.tail > self.head * LANES + LANES + SPARSE * self.len() {
            self.close_up();
        }
    }

    /// Moves all entries to the lowest places, in order.
    #[cold]
    fn close_up(&mut self) {
        let mut to = 0;
        for page in self.pages() {
            for lane in Bits(std::mem::take(&mut self.fingerprints.pages[page].live)) {
                let id = self.fingerprints.move_down(page * LANES + lane, to);
                self.slots[usize::from(id)].link.location = to as u32;
                to += 1;
            }
        }
        (self.head, self.tail) = (0, to);
    }

    /// Returns the numbers of the pages from the head to the tail.
    #[inline]
    fn pages(&self) -> std::ops::Range<usize> {
        self.head..self.tail.div_ceil(LANES)
    }

    /// Returns the places of all entries, oldest first.
    #[inline]
    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let of_page = |page: usize| {
            Bits(self.fingerprints.pages[page].live).map(move |lane| page * LANES + lane)
        };
        self.pages().flat_map(of_page)
    }

    /// Returns the entry of a handle; `None` if it was removed.
    #[inline]
    #[must_use]
    pub fn get(&self, handle: Handle) -> Option<Entry> {
        self.live(handle).map(Slot::entry)
    }

    #[inline]
    fn live(&self, handle: Handle) -> Option<&Slot> {
        self.slots.get(usize::from(handle.slot)).filter(|slot| slot.stamp.serial() == handle.serial)
    }

    /// Returns the number of entries that a linear list in age order would have compared to reach
    /// this entry, including the entry itself: its age rank from 1. Returns 0 if the entry was
    /// removed.
    #[must_use]
    pub fn depth(&self, handle: Handle) -> usize {
        let Some(slot) = self.live(handle) else { return 0 };
        let (page, lane) =
            (slot.link.location as usize / LANES, slot.link.location as usize % LANES);
        let before =
            self.fingerprints.pages[self.head..page].iter().map(|page| page.live.count_ones());
        let up_to = self.fingerprints.pages[page].live << (LANES - 1 - lane);
        (before.sum::<u32>() + up_to.count_ones()) as usize
    }

    /// Returns all entries, oldest first.
    pub fn iter(&mut self) -> impl Iterator<Item = (Handle, Entry)> + '_ {
        self.places().map(|place| {
            let (id, slot) = self.slot_at(place);
            (Handle { slot: id, serial: slot.stamp.serial() }, slot.entry())
        })
    }
}

#[inline(always)]
const fn sought(bits: u64, ignore: u64, source: Source) -> MaskedFingerprint {
    MaskedFingerprint {
        fingerprint: fingerprint::of(bits, source),
        care: fingerprint::care(ignore, source),
    }
}

impl std::fmt::Debug for Cam {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cam")
            .field("kernel", &self.kernel())
            .field("capacity", &self.capacity())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
