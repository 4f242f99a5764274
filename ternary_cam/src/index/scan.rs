// SPDX-License-Identifier: BSD-2-Clause
//! The scan: entries in age order, which the kernels compare with a key 16 at a time. A CAM does
//! this in hardware. The cost does not depend on the ignore bits.

use crate::entry::Key;
use crate::index::age_log::AgeLog;
use crate::kernel::{self, Available, Block, LANES};
use crate::slot::Slot;

/// Entries in age order, with their fields in blocks indexed by position.
#[derive(Default)]
pub(crate) struct Scan {
    log: AgeLog,
    /// Indexed by position. Grows to the highest position ever used.
    blocks: Vec<Block>,
    /// Indexed by slot: the positions of the entries in the scan.
    positions: Vec<u32>,
}

impl Scan {
    /// Makes room for the entries of this many slots.
    pub(crate) fn grow(&mut self, slots: usize) {
        self.positions.resize(slots, 0);
    }

    /// Adds the youngest entry.
    #[inline]
    pub(crate) fn push(&mut self, slot: &Slot, id: u16) {
        if self.log.is_at_end() {
            let (blocks, positions) = (&mut self.blocks, &mut self.positions);
            self.log.close_up(|id, from, to| {
                let (bits, ignore, source) = blocks[from / LANES].get(from % LANES);
                blocks[to / LANES].set(to % LANES, bits, ignore, source);
                positions[usize::from(id)] = to as u32;
            });
        }
        let position = self.log.push(id);
        self.positions[usize::from(id)] = position;
        let at = position as usize;
        if at / LANES == self.blocks.len() {
            self.blocks.push(Block::EMPTY);
        }
        self.blocks[at / LANES].set(at % LANES, slot.bits, slot.ignore, slot.source);
    }

    /// Removes an entry.
    #[inline]
    pub(crate) fn remove(&mut self, id: u16) {
        self.log.remove(self.positions[usize::from(id)]);
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.log.clear();
    }

    /// Returns the slot number of the oldest entry that matches; `None` if no entry matches.
    #[inline]
    pub(crate) fn first_match(&self, kernel: Available, key: &Key) -> Option<u16> {
        let (first, live) = self.log.live();
        let blocks = &self.blocks[first / LANES..];
        Some(self.log.id(first + kernel::first(kernel, blocks, live, key)?))
    }

    /// Returns the number of entries that are as old as this one or older, including itself.
    pub(crate) fn rank(&self, kernel: Available, id: u16) -> usize {
        self.log.rank(kernel, self.positions[usize::from(id)])
    }
}
