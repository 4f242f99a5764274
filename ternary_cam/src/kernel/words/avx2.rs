// SPDX-License-Identifier: BSD-2-Clause
//! Words compared with the instructions of the 256-bit kernel.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    _mm256_cmpeq_epi16, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_packs_epi16,
    _mm256_permute4x64_epi64, _mm256_set1_epi16,
};

use super::search::{Compare, Search};
use crate::kernel::lanes::LANES;

#[target_feature(enable = "avx2")]
pub(super) fn enter<S: Search>(search: S) -> S::Found {
    search.run(Avx2Words(()))
}

/// A value exists only where these instructions may be used: in [`enter`].
#[derive(Clone, Copy)]
struct Avx2Words(());

impl Compare for Avx2Words {
    #[inline(always)]
    fn page(self, words: &[u16; LANES], value: u16) -> u64 {
        // SAFETY: see the type.
        unsafe { equal64(words, value) }
    }
}

/// Returns a bitmap: bit `i` is set if word `i` equals `value`.
#[inline]
#[target_feature(enable = "avx2")]
fn equal64(words: &[u16; LANES], value: u16) -> u64 {
    let value = _mm256_set1_epi16(value.cast_signed());
    let quarter = |words: &[u16; LANES / 4]| {
        // SAFETY: `words` is 32 readable bytes.
        _mm256_cmpeq_epi16(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }, value)
    };
    let quarters = words.as_chunks().0;
    let half = |first: usize| {
        let bytes = _mm256_packs_epi16(quarter(&quarters[first]), quarter(&quarters[first + 1]));
        // The pack instruction interleaves the halves of both vectors.
        let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(bytes);
        u64::from(_mm256_movemask_epi8(bytes).cast_unsigned())
    };
    half(0) | half(2) << (LANES / 2)
}
