// SPDX-License-Identifier: BSD-2-Clause
//! `packed`: arrays of fingerprints (`print`), a line of them (`line`) for each queue
//! and one for all, searched by the compare kernels of the table.
//!
//! ```text
//! line of queue 0    b
//! line of queue 1    a, d          the words of these point to slots
//! line of all        a, b, d, e    e is unplaced
//!
//! slot               element, age, its place in the line of all and in its queue's
//! ```
//!
//! A search compares fingerprints, 16 at a time, and then the elements of those that
//! agree, which is seldom more than one. A handle is the number of a slot, and a slot
//! a cache line: what is found is also removed without another.

use ternary_cam::Scanner;

use super::{
    Best, Queues,
    line::{Line, Places},
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

/// See the module.
pub struct Packed {
    slots: Vec<Slot>,
    unused: u32,
    /// That of all elements, and those of the queues.
    all: Line,
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
        self.all.close_up(&mut self.places, |slot, from, to| {
            slots[slot as usize].at[ALL] = to;
            placed += u32::from(from < unplaced);
        });
        self.unplaced = self.all.tail - self.all.len + placed;
    }

    #[cold]
    fn close_up(&mut self, queue: usize) {
        let slots = &mut self.slots;
        self.lines[queue].close_up(&mut self.places, |slot, _, to| {
            slots[slot as usize].at[OWN] = to;
        });
    }

    /// A slot that is not in use.
    #[cold]
    fn extend(&mut self) -> u32 {
        let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 elements");
        let element = Element { bits: 0, ignore: 0, source: Source::ANY, token: 0 };
        self.slots.push(Slot { element, age: 0, at: [0; 2], queue: NIL });
        slot
    }

    /// [`Packed::first`], out of line: queues are searched from several places.
    #[inline(never)]
    fn first_in(&self, line: &Line, probe: &Probe<'_>) -> Best {
        self.first(line, probe)
    }

    #[inline(always)]
    fn first(&self, line: &Line, probe: &Probe<'_>) -> Best {
        let found = line.first(self.scanner, probe.print, &self.places, |index| {
            let slot = self.slot(index);
            slot.element.matches(probe.key).then_some(Best { handle: index, age: slot.age })
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
        if self.all.is_at_end() {
            self.close_up_all();
        }
        if self.unused == NIL {
            self.unused = self.extend();
        }
        let index = self.unused;
        let at = [self.all.push(print, index, &mut self.places), 0];
        let slot = &mut self.slots[index as usize];
        self.unused = slot.queue;
        // Field by field: see `Queues::Probe`.
        *slot = Slot { element: Element { bits, ignore, source, token }, age, at, queue: NIL };
        HostHandle(index)
    }

    fn unplaced(&self) -> Option<HostHandle> {
        let at = self.all.next(self.unplaced, &self.places)?;
        Some(HostHandle(self.places.slot(at)))
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
        let print = Line::print(at, &self.places);
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
        if self.all.remove(at, &mut self.places) {
            self.close_up_all();
        }
        self.unplaced = self.unplaced.min(self.all.tail);
        element
    }

    #[inline(always)]
    fn remove(&mut self, handle: HostHandle) -> Element {
        let slot = self.slot(handle.0);
        let (queue, at) = (slot.queue as usize, slot.at[OWN]);
        if self.lines[queue].remove(at, &mut self.places) {
            self.close_up(queue);
        }
        self.remove_unplaced(handle)
    }

    #[inline(always)]
    fn older_match(&self, queue: usize, probe: &Probe<'_>, best: Best) -> Best {
        match self.lines.get(queue) {
            Some(line) if line.len > 0 => best.or(self.first_in(line, probe)),
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
        self.first(&self.all, probe)
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
        let oldest = self.all.iter(&self.places).next()?;
        self.hit(Best { handle: oldest, ..Best::NONE })
    }

    fn depth(&self, handle: HostHandle) -> usize {
        self.all.rank(self.slot(handle.0).at[ALL], &self.places)
    }

    fn len(&self) -> usize {
        self.all.len as usize
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.all.iter(&self.places).map(|slot| {
            let Slot { element, age, .. } = self.slot(slot);
            (element.token, *age)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;

    /// Tokens and, in order of age, their handles.
    struct Harness {
        queues: Packed,
        expected: Vec<(u32, HostHandle)>,
        age: u64,
    }

    const QUEUES: usize = 3;

    impl Harness {
        fn new() -> Self {
            let scanner = Scanner::new(Kernel::best()).unwrap();
            let mut queues = Packed::new(&EngineConfig::default(), scanner);
            queues.ensure(QUEUES);
            Self { queues, expected: Vec::new(), age: 0 }
        }

        fn push(&mut self) {
            let token = self.age as u32;
            let ignore = if self.age % 50 == 49 { 1 } else { 0 };
            let bits = 2 * self.age;
            let element = Element { bits, ignore, source: Source::new(1), token };
            let handle = self.queues.insert(token as usize % QUEUES, element, self.age);
            self.expected.push((token, handle));
            self.age += 1;
        }

        fn remove(&mut self, rank: usize) {
            let (token, handle) = self.expected.remove(rank);
            let key = Key { bits: 2 * u64::from(token), ignore: 0, source: Source::new(1) };
            let probe = self.queues.probe(&key);
            let queue = self.queues.queue_of(handle).unwrap();
            let found = self.queues.older_match(queue, &probe, Best::NONE);
            assert_eq!(self.queues.hit(found).unwrap().token, token);
            assert_eq!(self.queues.oldest_match(&probe), found);
            assert_eq!(self.queues.depth(handle), rank + 1);
            assert_eq!(self.queues.remove(handle).token, token);
            assert_eq!(self.queues.oldest_match(&probe), Best::NONE);
        }

        fn check(&self) {
            let tokens = self.expected.iter().map(|&(token, _)| token);
            assert!(self.queues.iter().map(|(token, _)| token).eq(tokens.clone()));
            assert_eq!(self.queues.oldest().map(|hit| hit.token), tokens.clone().next());
            for queue in 0..QUEUES {
                let of_queue = tokens.clone().filter(|&token| token as usize % QUEUES == queue);
                assert_eq!(self.queues.len_of(queue), of_queue.clone().count());
                assert!(self.queues.elements(queue).map(|element| element.token).eq(of_queue));
            }
        }
    }

    #[test]
    fn lines_grow_close_up_and_empty_in_every_order() {
        type Pick = fn(usize, usize) -> usize;
        let picks: [Pick; 4] =
            [|_, _| 0, |len, _| len - 1, |len, step| step * 37 % len, |len, _| len / 2];
        let mut harness = Harness::new();
        for pick in picks {
            let lengths = if cfg!(miri) { &[1, 5, 70][..] } else { &[1, 5, 9, 40, 70, 500] };
            for &most in lengths {
                (0..most).for_each(|_| harness.push());
                // As many come as go, then all go.
                for step in 0..2 * most {
                    harness.remove(pick(harness.expected.len(), step));
                    harness.push();
                }
                for step in 0..most {
                    harness.remove(pick(harness.expected.len(), step));
                    if step % 64 == 0 {
                        harness.check();
                    }
                }
                harness.check();
            }
        }
    }

    #[test]
    fn nothing_is_allocated_once_the_longest_is_known() {
        let mut harness = Harness::new();
        let mut lengths = Vec::new();
        for _ in 0..4 {
            (0..300).for_each(|_| harness.push());
            (0..300).for_each(|_| harness.remove(0));
            lengths.push((harness.queues.slots.capacity(), harness.queues.places.len()));
        }
        assert!(lengths.iter().all(|&length| length == lengths[0]), "{lengths:?}");
    }
}
