// SPDX-License-Identifier: BSD-2-Clause
//! The kernel every processor has, and what the others are tested against.

use super::{Block, LANES, Named, STEP, WORDS, Word, first_with, first_word_with, joined};
use crate::age_log::Bits;
use crate::entry::{Key, Source};
use crate::scanner::Page;

pub(super) fn first(blocks: &[Block], live: &[u64], key: &Key) -> Option<usize> {
    first_with(blocks, live, |block, at| candidates(block, at, key))
}

#[inline(never)]
pub(super) fn first_named<T>(
    named: &Named,
    bits: u64,
    ignore: u64,
    source: u32,
    found: impl FnOnce(u16) -> T,
) -> Option<T> {
    let key = Key { bits, ignore, source: Source(source) };
    let lane = Bits(named.live).find(|&lane| matches(&named.block, lane, &key))?;
    Some(found(named.names[lane % LANES]))
}

pub(super) fn count_ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// Bit `i` is set when entry `at + i` of the block matches.
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

pub(super) fn first_word<T>(
    pages: &[Page],
    key: Word,
    accept: impl FnMut(u32) -> Option<T>,
) -> Option<T> {
    let step = |page: &Page, at| zeros(|lane| key.differs(page.words[at + lane], 0));
    first_word_with(pages, step, accept)
}

pub(super) fn first_ternary_word<T>(
    pages: &[Page],
    key: Word,
    accept: impl FnMut(u32) -> Option<T>,
) -> Option<T> {
    first_word_with(pages, |page, at| agree16(page, at, key), accept)
}

/// Bit `i` is set when word `i` of the page agrees with the key.
pub(super) fn agree(page: &Page, key: Word) -> u64 {
    joined([0, 1, 2, 3].map(|number| agree16(page, number * WORDS, key)))
}

#[inline(always)]
fn agree16(page: &Page, at: usize, key: Word) -> u64 {
    zeros(|lane| key.differs(page.words[at + lane], page.ignores[at + lane]))
}

/// Bit `i` is set when `differs` of lane `i` is zero.
#[inline(always)]
fn zeros(differs: impl Fn(usize) -> u32) -> u64 {
    (0..WORDS).fold(0, |hits, lane| hits | u64::from(differs(lane) == 0) << lane)
}
