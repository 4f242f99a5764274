// SPDX-License-Identifier: BSD-2-Clause
//! `packed`: arrays of fingerprints (`print`), a line of them (`line`) for each queue
//! and one for all, searched by the compare kernels of the table.
//!
//! ```text
//! line of queue 0    b
//! line of queue 1    a, d          the names of these are slots
//! line of all        a, b, d, e    e is unplaced
//!
//! slot               element, age, its place in the line of all and in its queue's
//! ```
//!
//! A search compares fingerprints, up to 32 at a time, and then the element of the first
//! that agrees:
//!
//! ```text
//! first(line, key):  no more than 16 places: compare them in place
//!                    else, in code compiled for the kernel:
//!                      one page: hits = places that agree
//!                      more: hits = those of the first of 4 pages that has any, ...
//!                    the first hit has an element that matches: it is the oldest
//!                    else: each that agrees and is there, one by one
//! ```
//!
//! A handle is the number of a slot, and a slot a cache line: what is found is also
//! removed without another.

use ternary_cam::{Compare, Scanner, Search};

use super::{
    Best, Queues,
    line::{Left, Line, PAGE, Places, SMALLEST},
    page::NOBODY,
    print::Print,
};
use crate::engine::{EngineConfig, HostHandle, HostHit};
use crate::{Element, Key, Source, traffic::Fields};

/// No slot, no queue.
const NIL: u32 = u32::MAX;

/// Places that are searched as fast as it is found out which queue to search.
const NEAR: u32 = 64;

/// Lines that an element is in: that of all, that of its queue.
const ALL: usize = 0;
const OWN: usize = 1;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Slot {
    element: Element,
    age: u64,
    /// Its places in its lines.
    at: [u32; 2],
    /// Its queue, or the next unused slot.
    queue: u32,
}

/// The number of a source, or all bits.
#[inline(always)]
fn number(source: Source) -> u32 {
    source.get().unwrap_or(u32::MAX)
}

impl Slot {
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
    slots: Vec<Slot>,
    unused: u32,
    /// That of all elements, in places of its own, and those of the queues.
    all: Line,
    all_places: Places,
    lines: Vec<Line>,
    places: Places,
    /// Place in the line of all from which on elements have no queue.
    unplaced: u32,
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
            slots: Vec::new(),
            unused: NIL,
            all: Line::default(),
            all_places: Places::default(),
            lines: Vec::new(),
            places: Places::default(),
            unplaced: 0,
            fields: config.layout.fields(),
            scanner,
        }
    }

    fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    #[cold]
    fn close_up_all(&mut self) {
        let mut placed = 0;
        let (slots, unplaced) = (&mut self.slots, self.unplaced);
        self.all.close_up(PAGE, &mut self.all_places, |slot, from, to| {
            slots[slot as usize].at[ALL] = to;
            placed += u32::from(from < unplaced);
        });
        self.unplaced = self.all.tail - self.all.len + placed;
    }

    #[cold]
    fn close_up(&mut self, queue: usize) {
        let slots = &mut self.slots;
        self.lines[queue].close_up(SMALLEST, &mut self.places, |slot, _, to| {
            slots[slot as usize].at[OWN] = to;
        });
    }

    /// Makes a place and a slot.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        if self.all.is_at_end() {
            self.close_up_all();
        }
        if self.unused == NIL {
            self.unused = u32::try_from(self.slots.len()).expect("fewer than 2^32 elements");
            let element = Element { bits: 0, ignore: 0, source: Source::ANY, token: 0 };
            self.slots.push(Slot { element, age: 0, at: [0; 2], queue: NIL });
        }
    }

    /// The first match of a line, which is `found` if that is a slot and no false hit.
    #[inline(always)]
    fn verified(&self, found: u32, line: &Line, places: &Places, key: &Key) -> Best {
        if let Some(slot) = self.slots.get(found as usize)
            && slot.matches(key)
        {
            return Best { handle: found, age: slot.age };
        }
        if found == NOBODY || line.len == 1 {
            return Best::NONE;
        }
        self.first_of_several(line, places, key)
    }

    /// The first match of a line of a queue, out of line: they are searched from several
    /// places.
    #[inline(never)]
    fn first_of_queue(&self, line: &Line, probe: &Probe<'_>) -> Best {
        if line.is_short() {
            Scanner::run_in_place(Own::<STEP> { packed: self, line, probe })
        } else if line.is_long() {
            self.scanner.run(Own::<PAGES> { packed: self, line, probe })
        } else {
            self.scanner.run(Own::<ONE_PAGE> { packed: self, line, probe })
        }
    }

    /// The same where there is one element.
    #[inline(never)]
    fn only_of_queue(&self, line: &Line, key: &Key) -> Best {
        self.verified(line.only(&self.places), line, &self.places, key)
    }

    /// The first match of the line of all, if it is short.
    #[inline(never)]
    fn first_of_few(&self, key: &Key) -> Best {
        Scanner::run_in_place(All::<STEP> { packed: self, key })
    }

    /// The first match of a line, where what agrees need not match.
    #[inline(never)]
    fn first_of_several(&self, line: &Line, places: &Places, key: &Key) -> Best {
        self.scanner.run(Several { packed: self, line, places, key })
    }
}

/// Places that are searched: no more than are compared at once, a page, several pages.
const STEP: u8 = 0;
const ONE_PAGE: u8 = 1;
const PAGES: u8 = 2;

/// A search of the line of all.
struct All<'s, const WHERE: u8> {
    packed: &'s Packed,
    key: &'s Key,
}

impl<const WHERE: u8> Search for All<'_, WHERE> {
    type Found = Best;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Best {
        let Packed { fields, all, all_places, .. } = self.packed;
        let print = Print::new(fields, self.key);
        let found = match WHERE {
            STEP => all.first_of_step(compare, print, all_places),
            ONE_PAGE => all.first_of_page(compare, print, all_places),
            _ => all.first_of_pages(compare, print, all_places),
        };
        self.packed.verified(found, all, all_places, self.key)
    }
}

/// A search of the line of a queue.
struct Own<'s, const WHERE: u8> {
    packed: &'s Packed,
    line: &'s Line,
    probe: &'s Probe<'s>,
}

impl<const WHERE: u8> Search for Own<'_, WHERE> {
    type Found = Best;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Best {
        let Self { packed, line, probe: &Probe { key, print } } = self;
        let places = &packed.places;
        let found = match WHERE {
            STEP => line.first_of_region::<true>(compare, print, places),
            ONE_PAGE => line.first_of_region::<false>(compare, print, places),
            _ => line.first_of_pages(compare, print, places),
        };
        packed.verified(found, line, places, key)
    }
}

/// A search of a line for all that agrees.
struct Several<'s> {
    packed: &'s Packed,
    line: &'s Line,
    places: &'s Places,
    key: &'s Key,
}

impl Search for Several<'_> {
    type Found = Best;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Best {
        let Self { packed, line, places, key } = self;
        let print = Print::new(&packed.fields, key);
        let found = line.first_accepted(compare, print, places, |index| {
            let slot = packed.slot(index);
            slot.matches(key).then_some(Best { handle: index, age: slot.age })
        });
        found.unwrap_or(Best::NONE)
    }
}

impl Queues for Packed {
    type Probe<'k> = Probe<'k>;

    const LIST: usize = usize::MAX;

    #[inline]
    fn probe<'k>(&self, key: &'k Key) -> Probe<'k> {
        Probe { key, print: Print::new(&self.fields, key) }
    }

    fn ensure(&mut self, count: usize) {
        if count > self.lines.len() {
            self.lines.resize(count, Line::default());
        }
    }

    fn count(&self) -> usize {
        self.lines.len()
    }

    #[inline]
    fn push(&mut self, element: Element, age: u64) -> HostHandle {
        let Element { bits, ignore, source, token } = element;
        let print = Print::new(&self.fields, &Key { bits, ignore, source });
        let index = self.unused;
        let slot = self.slots.get_mut(index as usize);
        let (Some(slot), Some(page)) = (slot, self.all_places.page_mut(self.all.tail)) else {
            self.make_room();
            return self.push(element, age);
        };
        let at = [self.all.push_to(page, print, index), 0];
        self.unused = slot.queue;
        // Field by field: see `Queues::Probe`.
        *slot = Slot { element: Element { bits, ignore, source, token }, age, at, queue: NIL };
        HostHandle(index)
    }

    fn unplaced(&self) -> Option<HostHandle> {
        let at = self.all.next(self.unplaced, &self.all_places)?;
        Some(HostHandle(self.all_places.slot(at)))
    }

    #[inline]
    fn element(&self, handle: HostHandle) -> &Element {
        &self.slot(handle.0).element
    }

    #[inline(always)]
    fn place(&mut self, handle: HostHandle, queue: usize) {
        debug_assert_eq!(self.unplaced(), Some(handle), "older elements are placed first");
        if self.lines[queue].is_at_end() {
            self.close_up(queue);
        }
        let slot = &mut self.slots[handle.0 as usize];
        let at = slot.at[ALL];
        self.unplaced = at + 1;
        let print = Line::print(at, &self.all_places);
        slot.queue = queue as u32;
        slot.at[OWN] = self.lines[queue].push(print, handle.0, &mut self.places);
    }

    #[inline]
    fn queue_of(&self, handle: HostHandle) -> Option<usize> {
        let queue = self.slot(handle.0).queue;
        (queue != NIL).then_some(queue as usize)
    }

    #[inline(always)]
    fn remove_unplaced(&mut self, handle: HostHandle) -> Element {
        let slot = &mut self.slots[handle.0 as usize];
        let (element, at) = (slot.element, slot.at[ALL]);
        slot.queue = self.unused;
        self.unused = handle.0;
        match self.all.remove(at, &mut self.all_places) {
            Left::Empty => self.unplaced = self.all.tail,
            Left::Places => {}
            Left::Holes => self.close_up_all(),
        }
        element
    }

    #[inline(always)]
    fn leave_queue(&mut self, handle: HostHandle) {
        let Slot { queue, at, .. } = *self.slot(handle.0);
        // The place of the youngest of all will be that of the next one.
        self.unplaced = self.unplaced.min(self.all.tail - u32::from(at[ALL] + 1 == self.all.tail));
        if let Left::Holes = self.lines[queue as usize].remove(at[OWN], &mut self.places) {
            self.close_up(queue as usize);
        }
    }

    #[inline(always)]
    fn older_match(&self, queue: usize, probe: &Probe<'_>, best: Best) -> Best {
        match self.lines.get(queue) {
            Some(line) if line.len > 1 => best.or(self.first_of_queue(line, probe)),
            Some(line) if line.len == 1 => best.or(self.only_of_queue(line, probe.key)),
            _ => best,
        }
    }

    fn compared(&self, queue: usize, best: Best) -> u64 {
        let line = &self.lines[queue];
        match self.slots.get(best.handle as usize) {
            Some(slot) if slot.queue == queue as u32 => {
                line.rank(slot.at[OWN], &self.places) as u64
            }
            _ => u64::from(line.len),
        }
    }

    #[inline(always)]
    fn oldest_match(&self, probe: &Probe<'_>) -> Best {
        self.oldest_match_of(probe.key)
    }

    #[inline(always)]
    fn oldest_match_of(&self, key: &Key) -> Best {
        if self.all.spans_a_step() {
            self.first_of_few(key)
        } else if self.all.tail > PAGE {
            self.scanner.run(All::<PAGES> { packed: self, key })
        } else {
            self.scanner.run(All::<ONE_PAGE> { packed: self, key })
        }
    }

    fn oldest_match_in(&self, _: usize, _: impl Iterator<Item = usize>, probe: &Probe<'_>) -> Best {
        self.oldest_match(probe)
    }

    #[inline]
    fn prefers_list(&self, _: usize, split: bool) -> bool {
        // Holes are searched as well.
        !split || self.all.span() <= NEAR
    }

    #[inline]
    fn hit(&self, best: Best) -> Option<HostHit> {
        let Slot { element, age, .. } = self.slots.get(best.handle as usize)?;
        Some(HostHit { handle: HostHandle(best.handle), token: element.token, age: *age })
    }

    fn len_of(&self, queue: usize) -> usize {
        self.lines[queue].len as usize
    }

    fn elements(&self, queue: usize) -> impl Iterator<Item = &Element> + '_ {
        let slots = self.lines[queue].iter(&self.places);
        slots.map(|slot| &self.slot(slot).element)
    }

    fn oldest(&self) -> Option<HostHit> {
        let oldest = self.all.iter(&self.all_places).next()?;
        self.hit(Best { handle: oldest, ..Best::NONE })
    }

    fn depth(&self, handle: HostHandle) -> usize {
        self.all.rank(self.slot(handle.0).at[ALL], &self.all_places)
    }

    fn len(&self) -> usize {
        self.all.len as usize
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.all.iter(&self.all_places).map(|slot| {
            let Slot { element, age, .. } = self.slot(slot);
            (element.token, *age)
        })
    }
}

#[cfg(test)]
#[path = "packed_tests.rs"]
mod tests;
