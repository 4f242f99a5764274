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
    /// Number of elements from which on the array is indexed; `u32::MAX` from the first queues on,
    /// until one is long.
    pub(super) from: u32,
    pub(super) exact: Exact,
    /// The place of the last removal plus one, while there is an index. Without an index,
    /// `Packed::after_removed` is this place.
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
    /// Prevents an index until a queue is long. Called when the first queues are made, because from
    /// then on most searches use the queues and not the array of all elements.
    pub(super) fn wait_for_long_queue(&mut self) {
        self.from = u32::MAX;
    }

    /// Allows an index again if this array of a queue is long. Called after the array closed up.
    pub(super) fn note_queue(&mut self, array: &AgeArray) {
        if array.len >= LONG / 2 {
            self.from = LONG;
        }
    }
}
