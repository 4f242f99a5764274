// SPDX-License-Identifier: BSD-2-Clause
//! The storage `packed`: queues as arrays of fingerprints (`fingerprint.rs`). There is one array
//! (`age_array.rs`) for each queue, and one for all elements. The compare kernels of the table
//! search these arrays.
//!
//! ```text
//! array of all elements   a, b, d, e   elements and their ages; element e has no queue yet
//! array of queue 0        b            their places in the array of all elements
//! array of queue 1        a, d
//!
//! own                     for each place in the array of all elements: the queue of the element,
//!                         and its place in the array of that queue
//! ```
//!
//! A search compares fingerprints, up to 32 at a time, and then the element of the first
//! fingerprint that agrees:
//!
//! ```text
//! first(array, key), in code compiled for the kernel:
//!     up to 16 places, or one page: hits = places that agree
//!     more pages: hits = places that agree in the first page with any, 4 pages at a time
//!     if the element of the first hit matches: it is the oldest match
//!     else: check all elements that agree, one by one
//! ```
//!
//! If there are thousands of elements, those without wildcards are also in an index
//! (`packed/long.rs`).
//!
//! An element is stored in the array of all elements. Its place there gives access to all its data,
//! without another link to write and read. When the array is full or has too many holes, it closes
//! up: its elements move together. A handle is the place at which the element was added, plus the
//! sum of the array's lengths, holes included, when it closed up before (`shift`):
//!
//! ```text
//! handle(at) = shift + at
//! at(handle) = handle - shift                       if the array has not closed up since
//!              looked up in `moved`, ordered by handle   else
//! close up:    moved = handles of all elements, and their new places
//!              shift = shift + tail                  handles stay unique
//! ```

mod index;
mod long;
mod queues;
mod searches;

use ternary_cam::Scanner;

use index::LongIndex;

use super::{
    age_array::{AgeArray, PAGE, Places, Remaining, SMALLEST},
    fingerprint::Fingerprint,
    page::NO_PLACE,
};
use crate::engine::{config::EngineConfig, hit::HostHandle};
use crate::{Element, Key, Source, traffic::Fields};

/// The contents of a place in the array of all elements: half a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct PackedSlot {
    element: Element,
    age: u64,
}

/// The queue of an element.
#[derive(Clone, Copy)]
struct Placed {
    queue: u32,
    /// Place of the element in the array of the queue.
    at: u32,
}

/// An element that moved when the array closed up. If it was removed since then, its place may hold
/// a younger element.
#[derive(Clone, Copy)]
struct Moved {
    /// The handle, which does not change.
    handle: u64,
    age: u64,
    at: u32,
}

/// The number of a source, or all bits set for any source.
#[inline(always)]
fn number(source: Source) -> u32 {
    source.get().unwrap_or(u32::MAX)
}

impl PackedSlot {
    const VACANT: Self =
        Self { element: Element { bits: 0, ignore: 0, source: Source::ANY, token: 0 }, age: 0 };

    /// Does the same as [`Element::matches`] without branches, because the processor would often
    /// mispredict a branch on any source. Sources are compared in all bits or, if one of them is
    /// any source, in none.
    #[inline(always)]
    fn matches(&self, key: &Key) -> bool {
        let bits = (self.element.bits ^ key.bits) & !(self.element.ignore | key.ignore);
        let (own, other) = (number(self.element.source), number(key.source));
        let compared = |number: u32| u32::from(number != u32::MAX).wrapping_neg();
        let source = (own ^ other) & compared(own) & compared(other);
        bits | u64::from(source) == 0
    }
}

/// The storage; see the module.
pub struct Packed {
    /// The array of all elements. No other array has places in `slots`.
    all: AgeArray,
    /// Range of a search in `all` (`STEP` to `INDEXED`). It is stored, and not computed from the
    /// tail, because a search would then wait for the last removal, which changes the tail.
    search_range: u8,
    slots: Places<PackedSlot>,
    /// The place of the last removal plus one. If this equals the tail, the youngest element was
    /// removed, and the next push reuses its place. While there is an index, this field always
    /// equals the tail, so that one comparison in a push detects both cases.
    after_removed: u32,
    /// Difference between a handle and its place in `all`, unless the element is in `moved`.
    shift: u64,
    /// Elements that were in the array when it last closed up.
    moved: Vec<Moved>,
    /// Elements at this place in `all` and after it have no queue.
    unplaced: u32,
    /// Queues of the elements before `unplaced`.
    own: Vec<Placed>,
    /// The arrays of the queues; their items are places in `all`.
    arrays: Vec<AgeArray>,
    /// Pages and items of `arrays`.
    array_places: Places<u32>,
    /// Index of all elements, while `search_range` is `INDEXED`.
    index: LongIndex,
    fields: Fields,
    scanner: Scanner,
}

/// A key and its fingerprint.
pub struct Probe<'k> {
    key: &'k Key,
    fingerprint: Fingerprint,
}

impl Packed {
    /// Creates a storage without queues. Its fingerprints consist of the tag, communicator and
    /// source in the layout of `config`.
    #[must_use]
    pub fn new(config: &EngineConfig, scanner: Scanner) -> Self {
        Self {
            all: AgeArray::default(),
            search_range: STEP,
            slots: Places::new(PackedSlot::VACANT),
            after_removed: NO_PLACE,
            shift: 0,
            moved: Vec::new(),
            unplaced: 0,
            own: Vec::new(),
            arrays: Vec::new(),
            array_places: Places::new(0),
            index: LongIndex::default(),
            fields: config.layout.fields(),
            scanner,
        }
    }

    fn slot(&self, at: u32) -> &PackedSlot {
        self.slots.item(at).expect("the place exists")
    }

    /// The place of a live element in the array of all elements.
    #[inline(always)]
    fn place_of(&self, handle: HostHandle) -> u32 {
        let at = handle.0.wrapping_sub(self.shift);
        if self.all.ends_after(at) { at as u32 } else { self.moved_place_of(handle) }
    }

    #[cold]
    #[inline(never)]
    fn moved_place_of(&self, handle: HostHandle) -> u32 {
        // If there were no holes, as in an array that only grew, the handles are consecutive.
        let first = self.moved.first().map_or(0, |moved| moved.handle);
        if let Some(moved) = self.moved.get((handle.0 - first) as usize)
            && moved.handle == handle.0
        {
            return moved.at;
        }
        let found = self.moved.binary_search_by_key(&handle.0, |moved| moved.handle);
        self.moved[found.expect("the handle is live")].at
    }

    #[inline(always)]
    fn handle(&self, at: u32) -> HostHandle {
        HostHandle(self.shift + u64::from(at))
    }

    /// Frees the place of the youngest element, which was removed, for the next push.
    #[inline(always)]
    fn draw_back(&mut self) {
        self.all.draw_back_by_one();
        debug_assert!(!self.slots.is_live(self.all.tail), "the place is empty");
        self.unplaced = self.unplaced.min(self.all.tail);
        self.after_removed = NO_PLACE;
    }

    #[cold]
    #[inline(never)]
    fn close_up_all(&mut self) {
        self.after_removed = NO_PLACE;
        let indexed = self.search_range == INDEXED;
        if indexed {
            self.leave_index();
        }
        let Self { all, search_range, slots, shift, moved, unplaced, own, array_places, .. } = self;
        // The elements that moved before are the oldest.
        moved.retain(|moved| {
            slots.is_live(moved.at)
                && slots.item(moved.at).is_some_and(|slot| slot.age == moved.age)
        });
        let (mut rank, mut placed) = (0, 0);
        let tail = all.tail;
        all.close_up(PAGE, slots, |slot, from, to| {
            match moved.get_mut(rank) {
                Some(moved) => moved.at = to,
                None => {
                    moved.push(Moved { handle: *shift + u64::from(from), age: slot.age, at: to });
                }
            }
            rank += 1;
            if from < *unplaced {
                placed = to + 1;
                own[to as usize] = own[from as usize];
                array_places.set(own[to as usize].at, to);
            }
        });
        *shift += u64::from(tail);
        *search_range = self::search_range(all.tail.saturating_sub(1));
        *unplaced = placed;
        self.enter_index(indexed);
    }

    #[cold]
    fn close_up(&mut self, queue: usize) {
        let own = &mut self.own;
        self.arrays[queue].close_up(SMALLEST, &mut self.array_places, |name, _, to| {
            own[name as usize].at = to;
        });
        self.index.note_queue(&self.arrays[queue]);
    }

    #[inline(always)]
    fn leave_queue(&mut self, at: u32, leaves: impl FnOnce(&Element, usize)) {
        let Placed { queue, at: in_array } = self.own[at as usize];
        leaves(&self.slot(at).element, queue as usize);
        let array = &mut self.arrays[queue as usize];
        if let Remaining::EmptyPage = array.remove(in_array, false, &mut self.array_places)
            && array.note_empty_page(&self.array_places)
        {
            self.close_up(queue as usize);
        }
    }

    /// Removes an element without a queue.
    #[inline(always)]
    fn remove_unplaced(&mut self, at: u32, in_first: bool) {
        self.after_removed = at + 1;
        match self.all.remove(at, in_first, &mut self.slots) {
            Remaining::Empty => {
                self.after_removed = NO_PLACE;
                self.unplaced = self.all.tail;
                self.moved.clear();
            }
            Remaining::SamePage => {}
            Remaining::EmptyPage => self.note_empty_page(),
        }
    }

    /// Removes any element. Not inlined, so that the more frequent kinds of removal do not have to
    /// save registers for this code.
    #[inline(never)]
    fn remove_any(&mut self, handle: HostHandle, leaves: impl FnOnce(&Element, usize)) {
        let at = self.place_of(handle);
        if at < self.unplaced {
            self.leave_queue(at, leaves);
        }
        if self.search_range == INDEXED {
            self.leave(at);
            self.index.after_removed = at + 1;
        }
        self.remove_unplaced(at, self.search_range < PAGES);
        if self.search_range == INDEXED {
            self.after_removed = self.all.tail;
        }
    }

    #[cold]
    #[inline(never)]
    fn note_empty_page(&mut self) {
        if self.all.note_empty_page(&self.slots) {
            self.close_up_all();
        }
    }

    #[cold]
    fn note_first_at(&mut self, at: u32, placed: Placed) {
        self.own.resize(self.slots.len(), placed);
        self.own[at as usize] = placed;
    }
}

/// Range of a search: at most one step, one page, or several pages.
const STEP: u8 = 0;
const ONE_PAGE: u8 = 1;
const PAGES: u8 = 2;
/// Several pages, indexed (`long`).
const INDEXED: u8 = 3;

/// Range of a search if the youngest element is at this place, or at another place of the same
/// step.
const fn search_range(youngest: u32) -> u8 {
    (youngest >= Scanner::STEP as u32) as u8 + (youngest >= PAGE) as u8
}

#[cfg(test)]
#[path = "packed_tests.rs"]
mod tests;
