// SPDX-License-Identifier: BSD-2-Clause
//! The AVX2 version of the scalar kernel. A vector contains the match bits of four entries.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m256i, _mm256_andnot_si256, _mm256_castsi256_pd, _mm256_castsi256_ps, _mm256_cmpeq_epi32,
    _mm256_cmpeq_epi64, _mm256_load_si256, _mm256_movemask_pd, _mm256_movemask_ps, _mm256_or_si256,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_xor_si256,
};

use super::block::{Block, ShortQueue};
use super::first_of_blocks::first_with;
use super::first_of_queue::first_in_queue_with;
use super::lanes::{LANES, STEP};
use crate::entry::Key;

/// 64-bit lanes of a 256-bit vector.
const FEW: usize = 4;

#[target_feature(enable = "avx2")]
pub(super) fn first(blocks: &[Block], live: &[u64], key: &Key) -> Option<usize> {
    first_with(blocks, live, |block, at| candidates(block, at, key))
}

#[target_feature(enable = "avx2,popcnt")]
pub(super) fn first_in_queue<T>(
    queue: &ShortQueue,
    bits: u64,
    ignore: u64,
    source: u32,
    found: impl FnOnce(u16) -> T,
) -> Option<T> {
    let candidates = |block: &_, at, key: &_| candidates(block, at, key);
    first_in_queue_with(queue, (bits, ignore, source), candidates, found)
}

#[target_feature(enable = "avx2,popcnt")]
pub(super) fn count_ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// Returns a bitmap: bit `i` is set if entry `at + i` of the block matches.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn candidates(block: &Block, at: usize, key: &Key) -> u16 {
    let hits = candidates8(block, at, key) | candidates8(block, at + STEP / 2, key) << (STEP / 2);
    hits as u16
}

#[inline]
#[target_feature(enable = "avx2")]
fn candidates8(block: &Block, at: usize, key: &Key) -> i32 {
    let same_bits = same_bits(block, at, key) | same_bits(block, at + FEW, key) << FEW;
    let (peers, none) = (load8_peers(&block.peer, at), _mm256_setzero_si256());
    let peer = _mm256_set1_epi32((!key.source.0).cast_signed());
    let every = _mm256_set1_epi32(if key.source.is_any() { -1 } else { 0 });
    let named = _mm256_or_si256(_mm256_cmpeq_epi32(peers, peer), _mm256_cmpeq_epi32(peers, none));
    same_bits & _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_or_si256(named, every)))
}

/// Returns a bitmap: bit `i` is set if entry `at + i`, of four entries, agrees with the key in the
/// bits that both compare.
#[inline]
#[target_feature(enable = "avx2")]
fn same_bits(block: &Block, at: usize, key: &Key) -> i32 {
    let bits = _mm256_set1_epi64x(key.bits.cast_signed());
    let ignore = _mm256_set1_epi64x(key.ignore.cast_signed());
    let ignore = _mm256_or_si256(load4(&block.ignore, at), ignore);
    let differ = _mm256_andnot_si256(ignore, _mm256_xor_si256(load4(&block.bits, at), bits));
    let same = _mm256_cmpeq_epi64(differ, _mm256_setzero_si256());
    _mm256_movemask_pd(_mm256_castsi256_pd(same))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load4(words: &[u64; LANES], at: usize) -> __m256i {
    let words: &[u64; FEW] = words[at..at + FEW].try_into().expect("FEW words");
    // SAFETY: `words` is 32 readable bytes; they are aligned, as the arrays of a
    // block start at multiples of 64 bytes and `at` is a multiple of FEW.
    unsafe { _mm256_load_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load8_peers(words: &[u32; LANES], at: usize) -> __m256i {
    let words: &[u32; 2 * FEW] = words[at..at + 2 * FEW].try_into().expect("2 * FEW words");
    // SAFETY: `words` is 32 readable bytes, aligned as above.
    unsafe { _mm256_load_si256(words.as_ptr().cast()) }
}
