// SPDX-License-Identifier: BSD-2-Clause
//! `packed`: arrays of fingerprints (`print`), a line of them (`line`) for each queue
//! and one for all, searched by the compare kernels of the table.
//!
//! ```text
//! line of all        a, b, d, e    elements and their ages; e is unplaced
//! line of queue 0    b             their places in the line of all
//! line of queue 1    a, d
//!
//! own                queue and place there, by place in the line of all
//! ```
//!
//! A search compares fingerprints, up to 32 at a time, and then the element of the first
//! that agrees:
//!
//! ```text
//! first(line, key), in code compiled for the kernel:
//!     16 places, one page: hits = places that agree
//!     more: hits = those of the first of 4 pages that has any, ...
//!     the first hit has an element that matches: it is the oldest
//!     else: each that agrees and is there, one by one
//! ```
//! A line of all with thousands of elements has an index of those that are exact (`packed/long.rs`).
//!
//! An element lies in the line of all, and who knows its place knows all of it: nothing
//! leads from one to the other that would have to be written and read. A handle is how many
//! places were used before, those before the line last closed up included:
//!
//! ```text
//! handle(at) = shift + at
//! at(handle) = handle - shift                       if the line has not closed up since
//!              what `moved` has, ordered by handle   else
//! close up:    moved = handles of all and their new places
//!              shift = shift + tail                  no number is used twice
//! ```

mod index;
mod long;
mod queues;
mod searches;

use ternary_cam::Scanner;

use index::Index;

use super::{
    line::{Left, Line, PAGE, Places, SMALLEST},
    page::NOBODY,
    print::Print,
};
use crate::engine::{config::EngineConfig, contract::HostHandle};
use crate::{Element, Key, Source, traffic::Fields};

/// What lies at a place of the line of all: half a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Slot {
    element: Element,
    age: u64,
}

/// Where an element is besides.
#[derive(Clone, Copy)]
struct Placed {
    queue: u32,
    /// Its place in the line of the queue.
    at: u32,
}

/// An element that was moved. Where it is may be another by now, of another age.
#[derive(Clone, Copy)]
struct Moved {
    name: u64,
    age: u64,
    at: u32,
}

/// The number of a source, or all bits.
#[inline(always)]
fn number(source: Source) -> u32 {
    source.get().unwrap_or(u32::MAX)
}

impl Slot {
    const VACANT: Self =
        Self { element: Element { bits: 0, ignore: 0, source: Source::ANY, token: 0 }, age: 0 };

    /// [`Element::matches`] in one test: one that asks whether a source is named would often
    /// be mispredicted. Hence sources are compared in all bits or, if one is any, in none.
    #[inline(always)]
    fn matches(&self, key: &Key) -> bool {
        let bits = (self.element.bits ^ key.bits) & !(self.element.ignore | key.ignore);
        let (own, other) = (number(self.element.source), number(key.source));
        let compared = |number: u32| u32::from(number != u32::MAX).wrapping_neg();
        let source = (own ^ other) & compared(own) & compared(other);
        bits | u64::from(source) == 0
    }
}

/// See the module.
pub struct Packed {
    /// That of all elements, which has its places for itself.
    all: Line,
    /// How much of it is searched. That is not asked of its tail, which the last removal may
    /// have changed, by what the search before found: the next would wait for it.
    reach: u8,
    slots: Places<Slot>,
    /// One behind the place that was left last. If that is the tail, the youngest left, and
    /// the next one comes there: the removal need not ask. While there is an index it is always
    /// the tail, so that a push without one need not ask for it.
    left: u32,
    /// What is to be added to a place in it to name it.
    shift: u64,
    /// Elements that were there when the line last closed up.
    moved: Vec<Moved>,
    /// Place in it from which on elements have no queue.
    unplaced: u32,
    /// Of those before it.
    own: Vec<Placed>,
    /// Those of the queues: places in that of all.
    lines: Vec<Line>,
    names: Places<u32>,
    /// Of all elements, while `reach` says so.
    index: Index,
    fields: Fields,
    scanner: Scanner,
}

/// A key and its fingerprint.
pub struct Probe<'k> {
    key: &'k Key,
    print: Print,
}

impl Packed {
    /// No queue yet. Match bits are told apart best in the layout of `config`.
    #[must_use]
    pub fn new(config: &EngineConfig, scanner: Scanner) -> Self {
        Self {
            all: Line::default(),
            reach: STEP,
            slots: Places::new(Slot::VACANT),
            left: NOBODY,
            shift: 0,
            moved: Vec::new(),
            unplaced: 0,
            own: Vec::new(),
            lines: Vec::new(),
            names: Places::new(0),
            index: Index::default(),
            fields: config.layout.fields(),
            scanner,
        }
    }

    fn slot(&self, at: u32) -> &Slot {
        self.slots.item(at).expect("there is such a place")
    }

    /// The place in the line of all of a live element.
    #[inline(always)]
    fn place_of(&self, handle: HostHandle) -> u32 {
        let at = handle.0.wrapping_sub(self.shift);
        if self.all.ends_behind(at) { at as u32 } else { self.moved_place_of(handle) }
    }

    #[cold]
    #[inline(never)]
    fn moved_place_of(&self, handle: HostHandle) -> u32 {
        // Where there were no holes, as in a line that only grew, the names follow each other.
        let first = self.moved.first().map_or(0, |moved| moved.name);
        if let Some(moved) = self.moved.get((handle.0 - first) as usize)
            && moved.name == handle.0
        {
            return moved.at;
        }
        let found = self.moved.binary_search_by_key(&handle.0, |moved| moved.name);
        self.moved[found.expect("the handle is live")].at
    }

    #[inline(always)]
    fn handle(&self, at: u32) -> HostHandle {
        HostHandle(self.shift + u64::from(at))
    }

    /// Uses the place of the youngest, which left, for the next one.
    #[inline(always)]
    fn draw_back(&mut self) {
        self.all.draw_back_by_one();
        debug_assert!(!self.slots.is_live(self.all.tail), "no other came there");
        self.unplaced = self.unplaced.min(self.all.tail);
        self.left = NOBODY;
    }

    #[cold]
    #[inline(never)]
    fn close_up_all(&mut self) {
        self.left = NOBODY;
        let indexed = self.reach == INDEXED;
        if indexed {
            self.leave_index();
        }
        let Self { all, reach, slots, shift, moved, unplaced, own, names, .. } = self;
        // Those that moved before are the oldest.
        moved.retain(|moved| {
            slots.is_live(moved.at)
                && slots.item(moved.at).is_some_and(|slot| slot.age == moved.age)
        });
        let (mut rank, mut placed) = (0, 0);
        let tail = all.tail;
        all.close_up(PAGE, slots, |slot, from, to| {
            match moved.get_mut(rank) {
                Some(moved) => moved.at = to,
                None => moved.push(Moved { name: *shift + u64::from(from), age: slot.age, at: to }),
            }
            rank += 1;
            if from < *unplaced {
                placed = to + 1;
                own[to as usize] = own[from as usize];
                names.set(own[to as usize].at, to);
            }
        });
        *shift += u64::from(tail);
        *reach = self::reach(all.tail.saturating_sub(1));
        *unplaced = placed;
        self.enter_index(indexed);
    }

    #[cold]
    fn close_up(&mut self, queue: usize) {
        let own = &mut self.own;
        self.lines[queue].close_up(SMALLEST, &mut self.names, |name, _, to| {
            own[name as usize].at = to;
        });
        self.index.note_queue(&self.lines[queue]);
    }

    #[inline(always)]
    fn leave_queue(&mut self, at: u32, leaves: impl FnOnce(&Element, usize)) {
        let Placed { queue, at: in_line } = self.own[at as usize];
        leaves(&self.slot(at).element, queue as usize);
        let line = &mut self.lines[queue as usize];
        if let Left::EmptyPage = line.remove(in_line, false, &mut self.names)
            && line.note_empty_page(&self.names)
        {
            self.close_up(queue as usize);
        }
    }

    /// Takes an element out that has no queue.
    #[inline(always)]
    fn remove_unplaced(&mut self, at: u32, in_first: bool) {
        self.left = at + 1;
        match self.all.remove(at, in_first, &mut self.slots) {
            Left::Empty => {
                self.left = NOBODY;
                self.unplaced = self.all.tail;
                self.moved.clear();
            }
            Left::Page => {}
            Left::EmptyPage => self.note_empty_page(),
        }
    }

    /// The same of any element: rare in short queues, whose removals save no registers for it.
    #[inline(never)]
    fn remove_any(&mut self, handle: HostHandle, leaves: impl FnOnce(&Element, usize)) {
        let at = self.place_of(handle);
        if at < self.unplaced {
            self.leave_queue(at, leaves);
        }
        if self.reach == INDEXED {
            self.leave(at);
            self.index.left = at + 1;
        }
        self.remove_unplaced(at, self.reach < PAGES);
        if self.reach == INDEXED {
            self.left = self.all.tail;
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

/// Places that are searched: no more than are compared at once, a page, several pages.
const STEP: u8 = 0;
const ONE_PAGE: u8 = 1;
const PAGES: u8 = 2;
/// Several pages, indexed (`long`).
const INDEXED: u8 = 3;

/// How many are searched if this is the place of the youngest in the line of all, or one of
/// the others in its step.
const fn reach(youngest: u32) -> u8 {
    (youngest >= Scanner::STEP as u32) as u8 + (youngest >= PAGE) as u8
}

#[cfg(test)]
#[path = "packed_tests.rs"]
mod tests;
