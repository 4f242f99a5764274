// SPDX-License-Identifier: BSD-2-Clause
//! The searches of lines, each compiled for the instructions of every kernel.

use ternary_cam::{Compare, Search};

use super::{ONE_PAGE, PAGES, Packed, Probe, STEP};
use crate::Key;
use crate::engine::queue::contract::Best;
use crate::engine::queue::line::{Line, Places};
use crate::engine::queue::page::NOBODY;
use crate::engine::queue::print::Print;

/// A search of the line of all elements.
pub(super) struct All<'s, const WHERE: u8> {
    pub(super) packed: &'s Packed,
    pub(super) key: &'s Key,
}

impl<const WHERE: u8> Search for All<'_, WHERE> {
    type Found = Best;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Best {
        let Packed { fields, all, slots, .. } = self.packed;
        let print = Print::new(fields, self.key);
        let found = match WHERE {
            STEP => all.first_of_step(compare, print, slots),
            ONE_PAGE => all.first_of_page(compare, print, slots),
            _ => all.first_of_pages(compare, print, slots),
        };
        self.packed.verified(found, self.key)
    }
}

/// A search of the line of a queue.
pub(super) struct LineSearch<'s, const WHERE: u8> {
    pub(super) packed: &'s Packed,
    pub(super) line: &'s Line,
    pub(super) probe: &'s Probe<'s>,
}

impl<const WHERE: u8> Search for LineSearch<'_, WHERE> {
    type Found = Best;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Best {
        let Self { packed, line, probe: &Probe { key, print } } = self;
        let names = &packed.names;
        let found = match WHERE {
            STEP => line.first_of_region::<true, _>(compare, print, names),
            ONE_PAGE => line.first_of_region::<false, _>(compare, print, names),
            _ => line.first_of_pages(compare, print, names),
        };
        packed.verified_own(found, line, key)
    }
}

/// A search of a line that checks every element that agrees; `in_all` maps a place of the line to a
/// place in the line of all.
pub(super) struct AgreeingSearch<'s, T, F> {
    pub(super) packed: &'s Packed,
    pub(super) line: &'s Line,
    pub(super) places: &'s Places<T>,
    pub(super) key: &'s Key,
    pub(super) in_all: F,
}

impl<T: Copy, F: Fn(u32) -> u32> Search for AgreeingSearch<'_, T, F> {
    type Found = Best;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Best {
        let Self { packed, line, places, key, in_all } = self;
        let print = Print::new(&packed.fields, key);
        let found = line.first_accepted(compare, print, places, |place| {
            let at = in_all(place);
            let slot = packed.slot(at);
            slot.matches(key).then_some(Best { at, age: slot.age })
        });
        found.unwrap_or(Best::NONE)
    }
}

impl Packed {
    /// The first match in the line of all. It is at `found` if that is a place and not a false hit.
    #[inline(always)]
    pub(super) fn verified(&self, found: u32, key: &Key) -> Best {
        if let Some(slot) = self.slots.item(found)
            && slot.matches(key)
        {
            return Best { at: found, age: slot.age };
        }
        if found == NOBODY || self.all.len == 1 {
            return Best::NONE;
        }
        self.first_of_several(&self.all, &self.slots, key, |at| at)
    }

    /// The first match in the line of a queue; see [`verified`](Self::verified).
    #[inline(always)]
    pub(super) fn verified_own(&self, found: u32, line: &Line, key: &Key) -> Best {
        if let Some(&at) = self.names.item(found)
            && let Some(slot) = self.slots.item(at)
            && slot.matches(key)
        {
            return Best { at, age: slot.age };
        }
        if found == NOBODY || line.len == 1 {
            return Best::NONE;
        }
        self.first_of_several(line, &self.names, key, |at| *self.names.item(at).expect("a place"))
    }

    #[inline(always)]
    pub(super) fn first_of_all_pages(&self, key: &Key) -> Best {
        self.scanner.run(All::<PAGES> { packed: self, key })
    }

    /// The first match in the line of a queue. Never inlined, because it has several callers.
    #[inline(never)]
    pub(super) fn first_of_queue(&self, queue: usize, line: &Line, probe: &Probe<'_>) -> Best {
        if line.is_short() {
            self.scanner.run(LineSearch::<STEP> { packed: self, line, probe })
        } else if line.is_long() {
            if let Some(best) = self.first_of_all_in(queue, line, probe.key) {
                return best;
            }
            self.scanner.run(LineSearch::<PAGES> { packed: self, line, probe })
        } else {
            self.scanner.run(LineSearch::<ONE_PAGE> { packed: self, line, probe })
        }
    }

    /// The match in a queue of one element.
    #[inline(never)]
    pub(super) fn only_of_queue(&self, line: &Line, key: &Key) -> Best {
        self.verified_own(line.only(&self.names), line, key)
    }

    /// The first match of a line if elements that agree need not match.
    #[inline(never)]
    pub(super) fn first_of_several<T: Copy>(
        &self,
        line: &Line,
        places: &Places<T>,
        key: &Key,
        in_all: impl Fn(u32) -> u32,
    ) -> Best {
        self.scanner.run(AgreeingSearch { packed: self, line, places, key, in_all })
    }
}
