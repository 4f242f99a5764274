// SPDX-License-Identifier: BSD-2-Clause
//! Words compared with the instructions of the 512-bit kernel.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m512i, _mm256_cmpeq_epi16_mask, _mm256_loadu_si256, _mm256_set1_epi16,
    _mm512_cmpeq_epi16_mask, _mm512_kunpackd, _mm512_loadu_si512, _mm512_set1_epi16,
};

use super::search::{Compare, Search};
use crate::kernel::lanes::{LANES, STEP};

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn enter<S: Search>(search: S) -> S::Found {
    search.run(Avx512Words(()))
}

/// A value exists only where these instructions may be used: in [`enter`].
#[derive(Clone, Copy)]
struct Avx512Words(());

impl Compare for Avx512Words {
    #[inline(always)]
    fn step(self, words: &[u16; STEP], value: u16) -> u64 {
        // SAFETY: see the type.
        unsafe { equal16(words, value) }
    }

    #[inline(always)]
    fn page(self, words: &[u16; LANES], value: u16) -> u64 {
        // SAFETY: see the type.
        unsafe { equal64(words, value) }
    }
}

/// Returns a bitmap: bit `i` is set if word `i` equals `value`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn equal16(words: &[u16; STEP], value: u16) -> u64 {
    // SAFETY: `words` is 32 readable bytes.
    let words = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
    _mm256_cmpeq_epi16_mask(words, _mm256_set1_epi16(value.cast_signed())).into()
}

/// Returns a bitmap: bit `i` is set if word `i` equals `value`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn equal64(words: &[u16; LANES], value: u16) -> u64 {
    let value = _mm512_set1_epi16(value.cast_signed());
    let halves = words.as_chunks().0;
    let half = |half: usize| _mm512_cmpeq_epi16_mask(load32(&halves[half]), value);
    _mm512_kunpackd(half(1).into(), half(0).into())
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load32(words: &[u16; LANES / 2]) -> __m512i {
    // SAFETY: `words` is 64 readable bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}
