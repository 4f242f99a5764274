// SPDX-License-Identifier: BSD-2-Clause
//! The plain thing that a NIC has: a search compares every entry at once, and the oldest that
//! matches wins.
//!
//! A NIC compares all 97 bits of every entry in one clock. A processor compares 16 bits of each,
//! its *print* (`cam/print.rs`), 32 entries an instruction, and then the entries whose prints
//! agree. It does what [`Table`](crate::Table) does, slower where there are many entries, and
//! says in a page how.
//!
//! ```text
//! place        0     1     2     3     4     5    in order of age, the oldest first
//! prints    [  a  |  -  |  c  |  d  |  -  |     ]
//! cares     [  a  |  -  |  c  |  d  |  -  |     ]  bits of the print that the entry compares
//! live         1     0     1     1     0     0     removals leave holes
//! ids       [  7  |  -  |  0  |  3  |  -  |     ]  the slot of the entry, which stays put
//!            head                       tail
//!
//! insert(e):  close up if there is no place left
//!             write print, care and id of e at the tail
//! search(k):  for each place whose print agrees with that of k, the lowest first:
//!                 if its entry is there and matches k, that is it
//! remove(e):  leave a hole, or draw back the tail; close up if there are many holes
//! ```
//!
//! Places are twice as many as entries, so that closing up costs a removal or an insertion a
//! constant number of moves.

mod print;

use crate::bits::Bits;
use crate::entry::{Entry, Key, Source};
use crate::handle::{Full, Handle, Hit, MAX_CAPACITY, TableError};
use crate::kernel::{self, Available, Kernel, LANES, Prints, Sought};
use crate::slot::{Class, Slot, Stamp};

/// Entries at most that are compared one by one: a vector costs as much, and would wait for the
/// prints among them that were stored a moment ago.
const ALONE: usize = 4;

/// Places for each entry and hole: there are more holes than so before they are closed up.
const SPARSE: usize = 4;

/// A bounded ternary match table that compares every entry. See the module.
pub struct Cam {
    slots: Box<[Slot]>,
    /// Free slots, a stack.
    free: Vec<u16>,
    /// Serial number of the next entry.
    serial: u64,
    prints: Prints,
    /// Page of the oldest entry.
    head: usize,
    /// The place of the next entry, behind all others.
    tail: usize,
    kernel: Available,
}

impl Cam {
    /// A table of `capacity` entries (0 to 65,536) that compares with `kernel`.
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
            prints: Prints::new(pages),
            head: 0,
            tail: 0,
            kernel,
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
        self.slots.len() - self.free.len()
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
        self.free.is_empty()
    }

    /// The kernel it compares with.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel.get()
    }

    /// Adds an entry, the youngest from now on.
    ///
    /// # Errors
    /// [`Full`] when every entry is taken.
    #[inline(always)]
    pub fn insert(&mut self, entry: Entry) -> Result<Handle, Full> {
        let first = self.is_empty();
        let Some(id) = self.free.pop() else { return Err(Full) };
        if self.tail == self.prints.pages.len() * LANES {
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
        slot.link.bucket = place as u32;
        self.prints.set(place, id, sought(bits, ignore, source), first);
        Ok(Handle { slot: id, serial })
    }

    /// The oldest entry that matches.
    #[inline(always)]
    #[must_use]
    pub fn first_match(&self, key: &Key) -> Option<Hit> {
        let matches = |place: usize| self.slot_at(place).1.matches(key);
        let place = if self.len() <= ALONE {
            self.first_of_few(matches)?
        } else {
            let sought = sought(key.bits, key.ignore, key.source);
            kernel::first_accepted(self.kernel, &self.prints, self.pages(), sought, matches)?
        };
        let (slot, &Slot { stamp, token, .. }) = self.slot_at(place);
        Some(Hit { handle: Handle { slot, serial: stamp.serial() }, token })
    }

    #[inline(always)]
    fn first_of_few(&self, matches: impl Fn(usize) -> bool) -> Option<usize> {
        for page in self.pages() {
            let mut places = Bits(self.prints.pages[page].live).map(|lane| page * LANES + lane);
            let found = places.find(|&place| matches(place));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    #[inline(always)]
    fn slot_at(&self, place: usize) -> (u16, &Slot) {
        let id = self.prints.pages[place / LANES].ids[place % LANES];
        (id, &self.slots[usize::from(id)])
    }

    /// Takes an entry out; `None` when the handle's entry is gone already.
    #[inline(always)]
    pub fn remove(&mut self, handle: Handle) -> Option<Entry> {
        let slot = self.slots.get_mut(usize::from(handle.slot))?;
        if slot.stamp.serial() != handle.serial {
            return None;
        }
        slot.stamp = Stamp::NONE;
        let (entry, place) = (slot.entry(), slot.link.bucket as usize);
        self.free.push(handle.slot);
        let live = &mut self.prints.pages[place / LANES].live;
        let left = *live & !(1 << (place % LANES));
        *live = left;
        if self.free.len() == self.slots.len() {
            (self.head, self.tail) = (0, 0);
            return Some(entry);
        }
        if place + 1 == self.tail {
            // The holes before it in its page as well.
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

    /// Notes that a page has only holes, though there are entries in others.
    #[cold]
    fn note_empty_page(&mut self) {
        while self.prints.pages[self.head].live == 0 {
            self.head += 1;
        }
        if self.tail > self.head * LANES + LANES + SPARSE * self.len() {
            self.close_up();
        }
    }

    /// Moves all entries to the lowest places, in their order.
    #[cold]
    fn close_up(&mut self) {
        let mut to = 0;
        for page in self.pages() {
            for lane in Bits(std::mem::take(&mut self.prints.pages[page].live)) {
                let id = self.prints.move_down(page * LANES + lane, to);
                self.slots[usize::from(id)].link.bucket = to as u32;
                to += 1;
            }
        }
        (self.head, self.tail) = (0, to);
    }

    /// Pages that have entries, and those between them.
    #[inline]
    fn pages(&self) -> std::ops::Range<usize> {
        self.head..self.tail.div_ceil(LANES)
    }

    /// Places of all entries, oldest first.
    #[inline]
    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let of_page =
            |page: usize| Bits(self.prints.pages[page].live).map(move |lane| page * LANES + lane);
        self.pages().flat_map(of_page)
    }

    /// The entry of a handle; `None` when it is gone.
    #[inline]
    #[must_use]
    pub fn get(&self, handle: Handle) -> Option<Entry> {
        self.live(handle).map(Slot::entry)
    }

    #[inline]
    fn live(&self, handle: Handle) -> Option<&Slot> {
        self.slots.get(usize::from(handle.slot)).filter(|slot| slot.stamp.serial() == handle.serial)
    }

    /// Entries a linear list in age order would have compared to reach this one,
    /// itself counted: its rank by age from 1, or 0 when the handle's entry is
    /// gone.
    #[must_use]
    pub fn depth(&self, handle: Handle) -> usize {
        let Some(slot) = self.live(handle) else { return 0 };
        let (page, lane) = (slot.link.bucket as usize / LANES, slot.link.bucket as usize % LANES);
        let before = self.prints.pages[self.head..page].iter().map(|page| page.live.count_ones());
        let up_to = self.prints.pages[page].live << (LANES - 1 - lane);
        (before.sum::<u32>() + up_to.count_ones()) as usize
    }

    /// Every entry, oldest first.
    pub fn iter(&mut self) -> impl Iterator<Item = (Handle, Entry)> + '_ {
        self.places().map(|place| {
            let (id, slot) = self.slot_at(place);
            (Handle { slot: id, serial: slot.stamp.serial() }, slot.entry())
        })
    }
}

#[inline(always)]
const fn sought(bits: u64, ignore: u64, source: Source) -> Sought {
    Sought { print: print::of(bits, source), care: print::care(ignore, source) }
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
