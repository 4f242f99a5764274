// SPDX-License-Identifier: BSD-2-Clause
//! The searches of lines, each compiled for the instructions of every kernel.

use ternary_cam::{Compare, Search};

use super::{Best, Line, ONE_PAGE, Packed, Places, Print, Probe, STEP};
use crate::Key;

/// A search of the line of all.
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
pub(super) struct Own<'s, const WHERE: u8> {
    pub(super) packed: &'s Packed,
    pub(super) line: &'s Line,
    pub(super) probe: &'s Probe<'s>,
}

impl<const WHERE: u8> Search for Own<'_, WHERE> {
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

/// A search of a line for all that agrees; `in_all` tells where in the line of all it is.
pub(super) struct Several<'s, T, F> {
    pub(super) packed: &'s Packed,
    pub(super) line: &'s Line,
    pub(super) places: &'s Places<T>,
    pub(super) key: &'s Key,
    pub(super) in_all: F,
}

impl<T: Copy, F: Fn(u32) -> u32> Search for Several<'_, T, F> {
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
