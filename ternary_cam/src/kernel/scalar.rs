// SPDX-License-Identifier: BSD-2-Clause
//! The kernel every processor has, and what the others are tested against.

use super::{Block, LANES, first_with};
use crate::entry::{Key, Source};

pub(super) fn first(blocks: &[Block], live: &[u64], key: &Key) -> Option<usize> {
    first_with(blocks, live, |block| candidates(block, key))
}

pub(super) fn count_ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// Bit `i` is set when entry `i` of the block matches.
#[inline]
pub(super) fn candidates(block: &Block, key: &Key) -> u64 {
    let mut hits = 0;
    for lane in 0..LANES {
        let differ = (block.bits[lane] ^ key.bits) & !(block.ignore[lane] | key.ignore);
        let source = block.source[lane];
        let same_source =
            source == key.source.0 || source == Source::ANY.0 || key.source == Source::ANY;
        hits |= u64::from(differ == 0 && same_source) << lane;
    }
    hits
}
