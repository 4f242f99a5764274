// SPDX-License-Identifier: BSD-2-Clause
//! The searches of arrays, each compiled for the instructions of every kernel.

use ternary_cam::{Compare, Search};

use super::{ONE_PAGE, PAGES, Packed, Probe, STEP};
use crate::Key;
use crate::engine::queue::age_array::{AgeArray, Places};
use crate::engine::queue::contract::Best;
use crate::engine::queue::fingerprint::Fingerprint;
use crate::engine::queue::page::NO_PLACE;

/// A search of the array of all elements.
pub(super) struct All<'s, const WHERE: u8> {
    pub(super) packed: &'s Packed,
    pub(super) key: &'s Key,
}

impl<const WHERE: u8> Search for All<'_, WHERE> {
    type Found = Best;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Best {
        let Packed { fields, all, slots, .. } = self.packed;
        let fingerprint = Fingerprint::new(fields, self.key);
        let found = match WHERE {
            STEP => all.first_of_step(compare, fingerprint, slots),
            ONE_PAGE => all.first_of_page(compare, fingerprint, slots),
            _ => all.first_of_pages(compare, fingerprint, slots),
        };
        self.packed.verified(found, self.key)
    }
}

/// A search of the array of a queue.
pub(super) struct ArraySearch<'s, const WHERE: u8> {
    pub(super) packed: &'s Packed,
    pub(super) array: &'s AgeArray,
    pub(super) probe: &'s Probe<'s>,
}

impl<const WHERE: u8> Search for ArraySearch<'_, WHERE> {
    type Found = Best;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Best {
        let Self { packed, array, probe: &Probe { key, fingerprint } } = self;
        let places = &packed.array_places;
        let found = match WHERE {
            STEP => array.first_of_region::<true, _>(compare, fingerprint, places),
            ONE_PAGE => array.first_of_region::<false, _>(compare, fingerprint, places),
            _ => array.first_of_pages(compare, fingerprint, places),
        };
        packed.verified_own(found, array, key)
    }
}

/// A search of an array that checks every element whose fingerprint agrees; `in_all` maps a place
/// of the array to a place in the array of all elements.
pub(super) struct AgreeingSearch<'s, T, F> {
    pub(super) packed: &'s Packed,
    pub(super) array: &'s AgeArray,
    pub(super) places: &'s Places<T>,
    pub(super) key: &'s Key,
    pub(super) in_all: F,
}

impl<T: Copy, F: Fn(u32) -> u32> Search for AgreeingSearch<'_, T, F> {
    type Found = Best;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Best {
        let Self { packed, array, places, key, in_all } = self;
        let fingerprint = Fingerprint::new(&packed.fields, key);
        let found = array.first_accepted(compare, fingerprint, places, |place| {
            let at = in_all(place);
            let slot = packed.slot(at);
            slot.matches(key).then_some(Best { at, age: slot.age })
        });
        found.unwrap_or(Best::NONE)
    }
}

impl Packed {
    /// The first match in the array of all elements, given `found`, the first place whose
    /// fingerprint agrees. If the element there does not match, checks all elements that agree.
    #[inline(always)]
    pub(super) fn verified(&self, found: u32, key: &Key) -> Best {
        if let Some(slot) = self.slots.item(found)
            && slot.matches(key)
        {
            return Best { at: found, age: slot.age };
        }
        if found == NO_PLACE || self.all.len == 1 {
            return Best::NONE;
        }
        self.first_of_several(&self.all, &self.slots, key, |at| at)
    }

    /// The first match in the array of a queue; see [`verified`](Self::verified).
    #[inline(always)]
    pub(super) fn verified_own(&self, found: u32, array: &AgeArray, key: &Key) -> Best {
        if let Some(&at) = self.array_places.item(found)
            && let Some(slot) = self.slots.item(at)
            && slot.matches(key)
        {
            return Best { at, age: slot.age };
        }
        if found == NO_PLACE || array.len == 1 {
            return Best::NONE;
        }
        self.first_of_several(array, &self.array_places, key, |at| {
            *self.array_places.item(at).expect("a place")
        })
    }

    #[inline(always)]
    pub(super) fn first_of_all_pages(&self, key: &Key) -> Best {
        self.scanner.run(All::<PAGES> { packed: self, key })
    }

    /// The first match in the array of a queue. Never inlined, because it has several callers.
    #[inline(never)]
    pub(super) fn first_of_queue(&self, queue: usize, array: &AgeArray, probe: &Probe<'_>) -> Best {
        if array.is_short() {
            self.scanner.run(ArraySearch::<STEP> { packed: self, array, probe })
        } else if array.is_long() {
            if let Some(best) = self.first_of_all_in(queue, array, probe.key) {
                return best;
            }
            self.scanner.run(ArraySearch::<PAGES> { packed: self, array, probe })
        } else {
            self.scanner.run(ArraySearch::<ONE_PAGE> { packed: self, array, probe })
        }
    }

    /// The match in a queue of one element, or [`Best::NONE`].
    #[inline(never)]
    pub(super) fn only_of_queue(&self, array: &AgeArray, key: &Key) -> Best {
        self.verified_own(array.only(&self.array_places), array, key)
    }

    /// The first match of an array in which the fingerprints of elements may agree although the
    /// elements do not match.
    #[inline(never)]
    pub(super) fn first_of_several<T: Copy>(
        &self,
        array: &AgeArray,
        places: &Places<T>,
        key: &Key,
        in_all: impl Fn(u32) -> u32,
    ) -> Best {
        self.scanner.run(AgreeingSearch { packed: self, array, places, key, in_all })
    }
}
