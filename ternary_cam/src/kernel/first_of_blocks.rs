// SPDX-License-Identifier: BSD-2-Clause
//! The first match in blocks: the loop around every kernel.

use super::block::Block;
use super::lanes::{LANES, STEP};

/// Returns the index of the first live entry that matches; `None` if no entry matches. Skips steps
/// without a live entry and stops at the first hit. `candidates` compares [`STEP`] entries of a
/// block.
#[inline(always)]
pub(super) fn first_with(
    blocks: &[Block],
    live: &[u64],
    candidates: impl Fn(&Block, usize) -> u16,
) -> Option<usize> {
    for (index, (block, &live)) in blocks.iter().zip(live).enumerate() {
        if live == 0 {
            continue;
        }
        for step in (0..LANES).step_by(STEP) {
            let live = (live >> step) as u16;
            if live == 0 {
                continue;
            }
            let hits = candidates(block, step) & live;
            if hits != 0 {
                return Some(index * LANES + step + hits.trailing_zeros() as usize);
            }
        }
    }
    None
}
