// SPDX-License-Identifier: BSD-2-Clause
//! Eight words, compared with what every processor of the architecture has, so that
//! it can be done in place.

use super::{FEW_WORDS, Word};

/// Bit `i` is set when word `i` agrees with the key.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn agree(words: &[u32; FEW_WORDS], ignore: &[u32; FEW_WORDS], key: Word) -> u64 {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_andnot_si128, _mm_cmpeq_epi32, _mm_loadu_si128,
        _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set1_epi32, _mm_setzero_si128,
        _mm_xor_si128,
    };
    // SAFETY: both arrays are 32 readable bytes, and SSE2 is part of x86-64.
    unsafe {
        let value = _mm_set1_epi32(key.value.cast_signed());
        let care = _mm_set1_epi32((!key.ignore).cast_signed());
        let (words, ignore) = (words.as_ptr().cast::<__m128i>(), ignore.as_ptr().cast::<__m128i>());
        let half = |at: usize| {
            let differ = _mm_xor_si128(_mm_loadu_si128(words.add(at)), value);
            let differ = _mm_andnot_si128(_mm_loadu_si128(ignore.add(at)), differ);
            _mm_cmpeq_epi32(_mm_and_si128(differ, care), _mm_setzero_si128())
        };
        let agree = _mm_packs_epi16(_mm_packs_epi32(half(0), half(1)), _mm_setzero_si128());
        u64::from(_mm_movemask_epi8(agree).cast_unsigned())
    }
}

/// Bit `i` is set when word `i` agrees with the key.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn agree(words: &[u32; FEW_WORDS], ignore: &[u32; FEW_WORDS], key: Word) -> u64 {
    let agrees = |lane: usize| u64::from(key.differs(words[lane], ignore[lane]) == 0);
    (0..FEW_WORDS).fold(0, |hits, lane| hits | agrees(lane) << lane)
}
