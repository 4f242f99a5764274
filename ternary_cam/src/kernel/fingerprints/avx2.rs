// SPDX-License-Identifier: BSD-2-Clause
//! Fingerprints compared with the instructions of the 256-bit kernel.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_cmpeq_epi16, _mm256_load_si256, _mm256_min_epu16,
    _mm256_movemask_epi8, _mm256_packs_epi16, _mm256_permute4x64_epi64, _mm256_set1_epi16,
    _mm256_setzero_si256, _mm256_xor_si256,
};

use super::page::{GROUP, MaskedFingerprint, Page, first_accepted_with};
use crate::kernel::lanes::LANES;

/// Words per vector.
const WIDTH: usize = 16;

#[target_feature(enable = "avx2,popcnt")]
pub(super) fn first_accepted<const MIXED: bool>(
    pages: (&[Page], usize),
    sought: MaskedFingerprint,
    accept: impl Fn(usize) -> bool,
) -> Option<usize> {
    let fingerprint = _mm256_set1_epi16(sought.fingerprint.cast_signed());
    let care = _mm256_set1_epi16(sought.care.cast_signed());
    let zero = _mm256_setzero_si256();
    let differ = |page: &Page, quarter| {
        let own = if MIXED { _mm256_and_si256(load(&page.cares, quarter), care) } else { care };
        _mm256_and_si256(_mm256_xor_si256(load(&page.fingerprints, quarter), fingerprint), own)
    };
    let least = |page: &Page| {
        let half = |first| _mm256_min_epu16(differ(page, first), differ(page, first + 1));
        _mm256_min_epu16(half(0), half(2))
    };
    let any = |[a, b, c, d]: &[Page; GROUP]| {
        let halves = (_mm256_min_epu16(least(a), least(b)), _mm256_min_epu16(least(c), least(d)));
        let least = _mm256_min_epu16(halves.0, halves.1);
        _mm256_movemask_epi8(_mm256_cmpeq_epi16(least, zero)) != 0
    };
    let which = |page: &Page| {
        let same = |quarter| _mm256_cmpeq_epi16(differ(page, quarter), zero);
        let half = |first| {
            let bytes = _mm256_packs_epi16(same(first), same(first + 1));
            // The pack instruction interleaves the halves of both vectors.
            let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(bytes);
            u64::from(_mm256_movemask_epi8(bytes).cast_unsigned())
        };
        half(0) | half(2) << (LANES / 2)
    };
    first_accepted_with(pages, any, which, accept)
}

/// Loads a quarter of the words of a page.
#[inline]
#[target_feature(enable = "avx2")]
fn load(words: &[u16; LANES], quarter: usize) -> __m256i {
    let words: &[u16; WIDTH] = &words.as_chunks().0[quarter % (LANES / WIDTH)];
    // SAFETY: `words` is 32 readable bytes; they are aligned, as the arrays of a page start at
    // multiples of 64 bytes.
    unsafe { _mm256_load_si256(words.as_ptr().cast()) }
}
