// SPDX-License-Identifier: BSD-2-Clause
//! The index of a long array, and the decision to have one.

use crate::engine::queue::age_array::AgeArray;
use crate::engine::queue::exact::Exact;
use crate::engine::queue::page::NO_PLACE;

/// Number of elements from which on an array is indexed: a search of more fingerprints takes longer
/// than a search of the index.
pub(super) const LONG: u32 = 2048;

/// The index of a long array.
pub(super) struct LongIndex {
    /// Number of elements from which on the array is indexed; `u32::MAX` while there are queues and
    /// all of them are short.
    pub(super) from: u32,
    pub(super) exact: Exact,
    /// With an index, the place of the last removal plus one (without an index, `Packed::left`).
    pub(super) after_removed: u32,
    /// Pages with elements that `exact` lacks, and possibly other pages, in ascending order.
    pub(super) wild: Vec<u32>,
}

impl Default for LongIndex {
    fn default() -> Self {
        Self { from: LONG, exact: Exact::default(), after_removed: NO_PLACE, wild: Vec::new() }
    }
}

impl LongIndex {
    /// Called when the first queues are made. From then on, most searches use the queues and not
    /// the array of all elements.
    pub(super) fn wait_for_long_queue(&mut self) {
        self.from = u32::MAX;
    }

    /// Called with the array of a queue after it closed up.
    pub(super) fn note_queue(&mut self, array: &AgeArray) {
        if array.len >= LONG / 2 {
            self.from = LONG;
        }
    }
}
