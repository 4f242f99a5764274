// SPDX-License-Identifier: BSD-2-Clause
//! A search of words, and the comparisons that it uses.

use crate::kernel::lanes::{LANES, STEP};

/// Compares words with the instructions of a kernel: bit `i` of the result is set if word `i`
/// equals `value`.
pub trait Compare: Copy {
    /// Compares 16 words.
    #[inline(always)]
    fn step(self, words: &[u16; STEP], value: u16) -> u64 {
        equal(words, value)
    }

    /// Compares 64 words.
    fn page(self, words: &[u16; LANES], value: u16) -> u64;
}

/// A search of words. The whole search is compiled for the instructions of each kernel, because a
/// call for each comparison would cost as much as the comparison.
pub trait Search {
    /// The result.
    type Found;

    /// Runs the search. The implementation and all functions that it calls must be
    /// `#[inline(always)]`, because a function that is not inlined is compiled for the instructions
    /// that every processor has.
    fn run(self, compare: impl Compare) -> Self::Found;
}

/// Returns a bitmap: bit `i` is set if word `i` equals `value`. Uses instructions that every
/// processor of the architecture has.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn equal(words: &[u16; STEP], value: u16) -> u64 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi16, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16,
        _mm_set1_epi16,
    };
    // SAFETY: `words` is 32 readable bytes, and SSE2 is part of x86-64.
    unsafe {
        let value = _mm_set1_epi16(value.cast_signed());
        let words = words.as_ptr().cast::<__m128i>();
        let half = |at: usize| _mm_cmpeq_epi16(_mm_loadu_si128(words.add(at)), value);
        u64::from(_mm_movemask_epi8(_mm_packs_epi16(half(0), half(1))).cast_unsigned())
    }
}

/// Returns a bitmap: bit `i` is set if word `i` equals `value`.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn equal(words: &[u16; STEP], value: u16) -> u64 {
    (0..STEP).fold(0, |hits, lane| hits | u64::from(words[lane] == value) << lane)
}
