// SPDX-License-Identifier: BSD-2-Clause
//! The AVX-512 version of the scalar kernel. It compares sixteen entries per step.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m512i, _mm512_kunpackb, _mm512_load_si512, _mm512_mask_testn_epi32_mask, _mm512_min_epu32,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_ternarylogic_epi64, _mm512_testn_epi64_mask,
    _mm512_xor_si512,
};

use super::block::{Block, ShortQueue};
use super::first_of_blocks::first_with;
use super::first_of_queue::first_in_queue_with;
use super::lanes::{LANES, STEP};
use crate::entry::Key;

/// `(a ^ b) & !c` as a truth table of `vpternlog`, `a` the highest index bit.
const XOR_ANDNOT: i32 = 0b0001_0100;

#[target_feature(enable = "avx512f")]
pub(super) fn first(blocks: &[Block], live: &[u64], key: &Key) -> Option<usize> {
    first_with(blocks, live, |block, at| candidates(block, at, key))
}

#[target_feature(enable = "avx512f,popcnt")]
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

#[target_feature(enable = "avx512f,popcnt")]
pub(super) fn count_ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// Returns a bitmap: bit `i` is set if entry `at + i` of the block matches. The masks are combined
/// in mask registers. If each mask were moved to a general register, the compiler would combine
/// them with vector shuffles.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn candidates(block: &Block, at: usize, key: &Key) -> u16 {
    let same_bits = _mm512_kunpackb(
        same_bits(block, at + STEP / 2, key).into(),
        same_bits(block, at, key).into(),
    );
    let peer = _mm512_set1_epi32((!key.source.0).cast_signed());
    let peers = load16_peers(&block.peer, at);
    let least = _mm512_min_epu32(_mm512_xor_si512(peers, peer), _mm512_min_epu32(peers, peer));
    _mm512_mask_testn_epi32_mask(same_bits, least, least)
}

/// Returns a bitmap: bit `i` is set if entry `at + i`, of eight entries, agrees with the key in the
/// bits that both compare.
#[inline]
#[target_feature(enable = "avx512f")]
fn same_bits(block: &Block, at: usize, key: &Key) -> u8 {
    let bits = _mm512_set1_epi64(key.bits.cast_signed());
    let care = _mm512_set1_epi64((!key.ignore).cast_signed());
    let differ = _mm512_ternarylogic_epi64::<XOR_ANDNOT>(
        load8(&block.bits, at),
        bits,
        load8(&block.ignore, at),
    );
    _mm512_testn_epi64_mask(differ, care)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load8(words: &[u64; LANES], at: usize) -> __m512i {
    let words: &[u64; STEP / 2] = words[at..at + STEP / 2].try_into().expect("STEP / 2 words");
    // SAFETY: `words` is 64 readable bytes; they are aligned, as the arrays of a
    // block start at multiples of 64 bytes and `at` is a multiple of 8 words.
    unsafe { _mm512_load_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load16_peers(words: &[u32; LANES], at: usize) -> __m512i {
    let words: &[u32; STEP] = words[at..at + STEP].try_into().expect("STEP words");
    // SAFETY: `words` is 64 readable bytes, aligned as above.
    unsafe { _mm512_load_si512(words.as_ptr().cast()) }
}
