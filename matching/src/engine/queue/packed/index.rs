// SPDX-License-Identifier: BSD-2-Clause
//! The index of a long line, and when there is one.

use crate::engine::queue::exact::Exact;
use crate::engine::queue::line::Line;
use crate::engine::queue::page::NOBODY;

/// Elements from which on a line is indexed: with as many a search of all fingerprints takes
/// longer than an index.
pub(super) const LONG: u32 = 2048;

/// Index of a long line.
pub(super) struct Index {
    /// Elements from which on there is one: none are enough while all queues are short.
    pub(super) from: u32,
    pub(super) exact: Exact,
    /// What `Packed::left` is elsewhere.
    pub(super) left: u32,
    /// Pages with elements that it lacks, and maybe others, lowest first.
    pub(super) wild: Vec<u32>,
}

impl Default for Index {
    fn default() -> Self {
        Self { from: LONG, exact: Exact::default(), left: NOBODY, wild: Vec::new() }
    }
}

impl Index {
    /// Elements get queues, which are searched instead of all.
    pub(super) fn wait_for_long_queue(&mut self) {
        self.from = u32::MAX;
    }

    /// Notes the length of a queue that filled its region.
    pub(super) fn note_queue(&mut self, line: &Line) {
        if line.len >= LONG / 2 {
            self.from = LONG;
        }
    }
}
