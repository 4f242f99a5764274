// SPDX-License-Identifier: BSD-2-Clause
//! The kernel for every processor, against which the others are tested.

use super::block::{Block, ShortQueue};
use super::first_of_blocks::first_with;
use super::lanes::{LANES, STEP};
use crate::bits::Bits;
use crate::entry::{Key, Source};

pub(super) fn first(blocks: &[Block], live: &[u64], key: &Key) -> Option<usize> {
    first_with(blocks, live, |block, at| candidates(block, at, key))
}

#[inline(never)]
pub(super) fn first_in_queue<T>(
    queue: &ShortQueue,
    bits: u64,
    ignore: u64,
    source: u32,
    found: impl FnOnce(u16) -> T,
) -> Option<T> {
    let key = Key { bits, ignore, source: Source(source) };
    let lane = Bits(queue.live).find(|&lane| matches(&queue.block, lane, &key))?;
    Some(found(queue.ids[lane % LANES]))
}

pub(super) fn count_ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// Returns a bitmap: bit `i` is set if entry `at + i` of the block matches.
#[inline]
pub(super) fn candidates(block: &Block, at: usize, key: &Key) -> u16 {
    (0..STEP).fold(0, |hits, bit| hits | u16::from(matches(block, at + bit, key)) << bit)
}

#[inline(always)]
fn matches(block: &Block, lane: usize, key: &Key) -> bool {
    let (bits, ignore, source) = block.get(lane % LANES);
    let differ = (bits ^ key.bits) & !(ignore | key.ignore);
    differ == 0 && (source == key.source.0 || source == Source::ANY.0 || key.source.is_any())
}
