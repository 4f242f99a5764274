// SPDX-License-Identifier: BSD-2-Clause
//! 256-bit twin of the scalar kernel: four entries a vector.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::_mm_castsi128_ps;
use std::arch::x86_64::{
    __m128i, __m256i, _mm_cmpeq_epi32, _mm_load_si128, _mm_movemask_ps, _mm_or_si128,
    _mm_set1_epi32, _mm256_and_si256, _mm256_andnot_si256, _mm256_castsi256_pd,
    _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpeq_epi64, _mm256_load_si256,
    _mm256_loadu_si256, _mm256_movemask_pd, _mm256_movemask_ps, _mm256_set1_epi32,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_xor_si256,
};

use super::{Block, LANES, STEP, WORDS, Word, first_with, first_word_with, joined};
use crate::entry::{Key, Source};
use crate::scanner::Page;

/// 64-bit lanes of a 256-bit vector.
const FEW: usize = 4;

#[target_feature(enable = "avx2")]
pub(super) fn first(blocks: &[Block], live: &[u64], key: &Key) -> Option<usize> {
    first_with(blocks, live, |block, at| candidates(block, at, key))
}

#[target_feature(enable = "avx2,popcnt")]
pub(super) fn count_ones(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

#[target_feature(enable = "avx2")]
pub(super) fn first_word<T>(
    pages: &[Page],
    key: Word,
    accept: impl FnMut(u32) -> Option<T>,
) -> Option<T> {
    let (value, care) = broadcast(key);
    let half = |page: &Page, at| {
        let differ = _mm256_xor_si256(load8_words(&page.words, at), value);
        zeros(_mm256_and_si256(differ, care))
    };
    let step = |page: &Page, at| half(page, at) | half(page, at + WORDS / 2) << (WORDS / 2);
    first_word_with(pages, step, accept)
}

#[target_feature(enable = "avx2")]
pub(super) fn first_ternary_word<T>(
    pages: &[Page],
    key: Word,
    accept: impl FnMut(u32) -> Option<T>,
) -> Option<T> {
    let (value, care) = broadcast(key);
    first_word_with(pages, |page, at| agree16(page, at, value, care), accept)
}

/// Bit `i` is set when word `i` of the page agrees with the key.
#[target_feature(enable = "avx2")]
pub(super) fn agree(page: &Page, key: Word) -> u64 {
    let (value, care) = broadcast(key);
    joined([0, 1, 2, 3].map(|number| agree16(page, number * WORDS, value, care)))
}

/// The key's word, and the bits of it that are compared.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast(key: Word) -> (__m256i, __m256i) {
    (_mm256_set1_epi32(key.value.cast_signed()), _mm256_set1_epi32((!key.ignore).cast_signed()))
}

#[inline]
#[target_feature(enable = "avx2")]
fn agree16(page: &Page, at: usize, value: __m256i, care: __m256i) -> u64 {
    let half = |at| {
        let differ = _mm256_xor_si256(load8_words(&page.words, at), value);
        let differ = _mm256_andnot_si256(load8_words(&page.ignores, at), differ);
        zeros(_mm256_and_si256(differ, care))
    };
    half(at) | half(at + WORDS / 2) << (WORDS / 2)
}

/// Bit `i` is set when word `i` is zero.
#[inline]
#[target_feature(enable = "avx2")]
fn zeros(words: __m256i) -> u64 {
    let zero = _mm256_cmpeq_epi32(words, _mm256_setzero_si256());
    u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(zero)).cast_unsigned())
}

/// Bit `i` is set when entry `at + i` of the block matches.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn candidates(block: &Block, at: usize, key: &Key) -> u16 {
    let bits = _mm256_set1_epi64x(key.bits.cast_signed());
    let care = _mm256_set1_epi64x((!key.ignore).cast_signed());
    let source = _mm_set1_epi32(key.source.0.cast_signed());
    let any = _mm_set1_epi32(Source::ANY.0.cast_signed());
    let every_source = if key.source.is_any() { 0b1111 } else { 0 };

    let mut hits = 0;
    for lane in (0..STEP).step_by(FEW) {
        let from = at + lane;
        let differ = _mm256_and_si256(_mm256_xor_si256(load4(&block.bits, from), bits), care);
        let differ = _mm256_andnot_si256(load4(&block.ignore, from), differ);
        let same_bits = _mm256_cmpeq_epi64(differ, _mm256_setzero_si256());
        let same_bits = _mm256_movemask_pd(_mm256_castsi256_pd(same_bits));

        let sources = load4_sources(&block.source, from);
        let same_source =
            _mm_or_si128(_mm_cmpeq_epi32(sources, source), _mm_cmpeq_epi32(sources, any));
        let same_source = _mm_movemask_ps(_mm_castsi128_ps(same_source)) | every_source;

        hits |= ((same_bits & same_source) as u16) << lane;
    }
    hits
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
fn load4_sources(words: &[u32; LANES], at: usize) -> __m128i {
    let words: &[u32; FEW] = words[at..at + FEW].try_into().expect("FEW words");
    // SAFETY: `words` is 16 readable bytes, aligned as above.
    unsafe { _mm_load_si128(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load8_words(words: &[u32], at: usize) -> __m256i {
    let words: &[u32; WORDS / 2] = words[at..at + WORDS / 2].try_into().expect("WORDS / 2 words");
    // SAFETY: `words` is 32 readable bytes.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}
