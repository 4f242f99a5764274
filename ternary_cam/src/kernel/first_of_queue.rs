// SPDX-License-Identifier: BSD-2-Clause
//! The first match in a short queue: the loop around the vector kernels.
#![cfg(target_arch = "x86_64")]

use super::block::{Block, ShortQueue};
use super::lanes::{LANES, STEP};
use super::scalar;
use crate::entry::{Key, Source};

/// Up to this many live entries are compared one by one. A vector comparison of few entries
/// costs as much, and would wait for entries that were just stored.
const ALONE: u32 = 4;

/// Calls `found` with the slot of the first live entry that matches, and returns its result.
/// Returns `None` if no entry matches. `candidates` compares [`STEP`] entries of a block with a
/// vector kernel.
#[inline(always)]
pub(super) fn first_in_queue_with<T>(
    queue: &ShortQueue,
    (bits, ignore, source): (u64, u64, u32),
    candidates: impl Fn(&Block, usize, &Key) -> u16,
    found: impl FnOnce(u16) -> T,
) -> Option<T> {
    let live = queue.live;
    if live.count_ones() <= ALONE {
        return scalar::first_in_queue(queue, bits, ignore, source, found);
    }
    let key = Key { bits, ignore, source: Source(source) };
    let candidates = |step| candidates(&queue.block, step, &key);
    let mut hits = 0;
    if live as u16 != 0 {
        hits = u64::from(candidates(0));
    }
    if live >> STEP != 0 {
        for step in (STEP..LANES).step_by(STEP) {
            if (live >> step) as u16 != 0 {
                hits |= u64::from(candidates(step)) << step;
            }
        }
    }
    let hits = hits & live;
    (hits != 0).then(|| found(queue.ids[hits.trailing_zeros() as usize % LANES]))
}
