// SPDX-License-Identifier: BSD-2-Clause
//! Sixteen words, compared with what every processor of the architecture has.

/// Bit `i` is set when word `i` equals `value`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn equal(words: &[u16; 16], value: u16) -> u64 {
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

/// Bit `i` is set when word `i` equals `value`.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn equal(words: &[u16; 16], value: u16) -> u64 {
    (0..16).fold(0, |hits, lane| hits | u64::from(words[lane] == value) << lane)
}
