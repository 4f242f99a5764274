// SPDX-License-Identifier: BSD-2-Clause
//! The kernel every processor has, and what the others are tested against.

use super::{Block, LANES, WORDS, Word, first_with, first_word_with};
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

pub(super) fn first_word(
    words: &[u32],
    key: Word,
    accept: impl FnMut(usize) -> bool,
) -> Option<usize> {
    first_word_with(words.len(), |at| step::<WORDS>(words, at, key), accept)
}

pub(super) fn first_ternary_word(
    words: &[u32],
    ignore: &[u32],
    key: Word,
    accept: impl FnMut(usize) -> bool,
) -> Option<usize> {
    first_word_with(words.len(), |at| ternary_step::<WORDS>(words, ignore, at, key), accept)
}

/// Bit `i` is set when word `at + i` of `N` agrees with the key.
#[inline(always)]
pub(super) fn step<const N: usize>(words: &[u32], at: usize, key: Word) -> u64 {
    let words: &[u32; N] = words[at..at + N].try_into().expect("N words");
    zeros::<N>(|lane| key.differs(words[lane], 0))
}

/// [`step`] of words with ignore bits of their own.
#[inline(always)]
pub(super) fn ternary_step<const N: usize>(
    words: &[u32],
    ignore: &[u32],
    at: usize,
    key: Word,
) -> u64 {
    let words: &[u32; N] = words[at..at + N].try_into().expect("N words");
    let ignore: &[u32; N] = ignore[at..at + N].try_into().expect("N words");
    zeros::<N>(|lane| key.differs(words[lane], ignore[lane]))
}

#[inline(always)]
fn zeros<const N: usize>(differs: impl Fn(usize) -> u32) -> u64 {
    (0..N).fold(0, |hits, lane| hits | u64::from(differs(lane) == 0) << lane)
}
