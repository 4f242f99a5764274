// SPDX-License-Identifier: BSD-2-Clause
//! The `Queues` interface of packed queues.

use ternary_cam::Scanner;

use super::searches::All;
use super::{INDEXED, ONE_PAGE, PAGES, Packed, PackedSlot, Placed, Probe, STEP, search_range};
use crate::engine::hit::{HostHandle, HostHit};
use crate::engine::queue::age_array::AgeArray;
use crate::engine::queue::contract::{Best, Lookup, Queues};
use crate::engine::queue::fingerprint::Fingerprint;
use crate::{Element, Key};

/// Number of places up to which a search of all elements is as fast as selecting a queue.
const NEAR: u32 = 64;

impl Lookup for Packed {
    type Probe<'k> = Probe<'k>;

    #[inline]
    fn probe<'k>(&self, key: &'k Key) -> Probe<'k> {
        Probe { key, fingerprint: Fingerprint::new(&self.fields, key) }
    }

    fn count(&self) -> usize {
        self.arrays.len()
    }

    #[inline(always)]
    fn older_match(&self, queue: usize, probe: &Probe<'_>, best: Best) -> Best {
        match self.arrays.get(queue) {
            Some(array) if array.len > 1 => best.or(self.first_of_queue(queue, array, probe)),
            Some(array) if array.len == 1 => best.or(self.only_of_queue(array, probe.key)),
            _ => best,
        }
    }

    fn profiled(&self, queue: usize, best: Best) -> u64 {
        self.compared(queue, best)
    }

    #[inline(always)]
    fn oldest_match(&self, probe: &Probe<'_>) -> Best {
        self.oldest_match_of(probe.key)
    }

    fn oldest_match_in(&self, _: usize, _: impl Iterator<Item = usize>, probe: &Probe<'_>) -> Best {
        self.oldest_match(probe)
    }

    #[inline]
    fn prefers_list(&self, _: usize, split: bool) -> bool {
        // The span includes holes, which are searched as well.
        !split || self.all.span() <= NEAR
    }
}

impl Queues for Packed {
    const LIST: usize = usize::MAX;

    fn ensure(&mut self, count: usize) {
        if count > self.arrays.len() {
            if self.arrays.is_empty() {
                self.index.wait_for_long_queue();
            }
            self.arrays.resize(count, AgeArray::default());
        }
    }

    #[inline(always)]
    fn push(&mut self, element: Element, age: u64) -> HostHandle {
        let Element { bits, ignore, source, token } = element;
        let fingerprint = Fingerprint::new(&self.fields, &Key { bits, ignore, source });
        if self.after_removed == self.all.tail {
            if self.search_range == INDEXED {
                return self.push_long(bits, ignore, source, token, age);
            }
            self.draw_back();
        }
        if self.all.tail.is_multiple_of(Scanner::STEP as u32) {
            if self.all.len >= self.index.from {
                return self.push_long(bits, ignore, source, token, age);
            }
            self.search_range = search_range(self.all.tail);
        }
        let Some((page, slot)) = self.slots.at_mut(self.all.tail) else {
            self.close_up_all();
            return self.push_again(bits, ignore, source, token, age);
        };
        let at = self.all.push_to(page, fingerprint);
        // Stored field by field: see `Lookup::Probe`.
        *slot = PackedSlot { element: Element { bits, ignore, source, token }, age };
        self.handle(at)
    }

    fn unplaced(&self) -> Option<HostHandle> {
        self.all.next(self.unplaced, &self.slots).map(|at| self.handle(at))
    }

    #[inline]
    fn element(&self, handle: HostHandle) -> &Element {
        &self.slot(self.place_of(handle)).element
    }

    fn handle_of(&self, token: u32) -> Option<HostHandle> {
        let next = |at| self.all.next(at, &self.slots);
        let mut places = std::iter::successors(next(0), |at| next(at + 1));
        places.find(|&at| self.slot(at).element.token == token).map(|at| self.handle(at))
    }

    #[inline(always)]
    fn place(&mut self, handle: HostHandle, queue: usize) {
        debug_assert_eq!(self.unplaced(), Some(handle), "older elements are placed first");
        if self.arrays[queue].is_at_end() {
            self.close_up(queue);
        }
        let at = self.place_of(handle);
        self.unplaced = at + 1;
        let in_array =
            self.arrays[queue].push(self.slots.fingerprint(at), at, &mut self.array_places);
        let placed = Placed { queue: queue as u32, at: in_array };
        match self.own.get_mut(at as usize) {
            Some(own) => *own = placed,
            None => self.note_first_at(at, placed),
        }
    }

    #[inline(always)]
    fn remove(&mut self, handle: HostHandle, leaves: impl FnOnce(&Element, usize)) {
        let at = handle.0.wrapping_sub(self.shift);
        let unplaced = self.all.ends_after(at) && at >= u64::from(self.unplaced);
        match self.search_range {
            STEP | ONE_PAGE if unplaced => self.remove_unplaced(at as u32, true),
            PAGES if unplaced => self.remove_unplaced(at as u32, false),
            _ => self.remove_any(handle, leaves),
        }
    }

    fn compared(&self, queue: usize, best: Best) -> u64 {
        let array = &self.arrays[queue];
        match self.own.get(best.at as usize) {
            Some(own) if best.at < self.unplaced && own.queue == queue as u32 => {
                array.rank(own.at, &self.array_places) as u64
            }
            _ => u64::from(array.len),
        }
    }

    #[inline(always)]
    fn oldest_match_of(&self, key: &Key) -> Best {
        match self.search_range {
            STEP => self.scanner.run(All::<STEP> { packed: self, key }),
            ONE_PAGE => self.scanner.run(All::<ONE_PAGE> { packed: self, key }),
            PAGES => self.first_of_all_pages(key),
            _ => self.first_indexed(key),
        }
    }

    fn traversed_in(
        &self,
        _: usize,
        _: impl Iterator<Item = usize>,
        _: &Probe<'_>,
        found: Best,
    ) -> u64 {
        self.traversed_of_all(found)
    }

    #[inline]
    fn hit(&self, best: Best) -> Option<HostHit> {
        let PackedSlot { element, age } = self.slots.item(best.at)?;
        Some(HostHit { handle: self.handle(best.at), token: element.token, age: *age })
    }

    fn len_of(&self, queue: usize) -> usize {
        self.arrays[queue].len as usize
    }

    fn elements(&self, queue: usize) -> impl Iterator<Item = &Element> + '_ {
        let places = self.arrays[queue].iter(&self.array_places);
        places.map(|at| &self.slot(at).element)
    }

    fn oldest(&self) -> Option<HostHit> {
        let oldest = self.all.next(0, &self.slots)?;
        self.hit(Best { at: oldest, ..Best::NONE })
    }

    fn depth(&self, handle: HostHandle) -> usize {
        self.all.rank(self.place_of(handle), &self.slots)
    }

    fn len(&self) -> usize {
        self.all.len as usize
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.all.iter(&self.slots).map(|PackedSlot { element, age }| (element.token, age))
    }
}
