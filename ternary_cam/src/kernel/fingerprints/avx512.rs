// SPDX-License-Identifier: BSD-2-Clause
//! Fingerprints compared with the instructions of the 512-bit kernel.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_kunpackd, _mm512_load_si512, _mm512_min_epu16,
    _mm512_set1_epi16, _mm512_ternarylogic_epi64, _mm512_testn_epi16_mask,
};

use super::page::{GROUP, MaskedFingerprint, Page, first_accepted_with};
use crate::kernel::lanes::LANES;

/// `(a ^ b) & c` as a truth table of `vpternlog`, `a` the highest index bit.
const XOR_AND: i32 = 0b0010_1000;

/// Words per vector.
const WIDTH: usize = 32;

#[target_feature(enable = "avx512f,avx512bw,popcnt")]
pub(super) fn first_accepted<const MIXED: bool>(
    pages: (&[Page], usize),
    sought: MaskedFingerprint,
    accept: impl Fn(usize) -> bool,
) -> Option<usize> {
    let fingerprint = _mm512_set1_epi16(sought.fingerprint.cast_signed());
    let care = _mm512_set1_epi16(sought.care.cast_signed());
    let differ = |page: &Page, half| {
        let own = if MIXED { _mm512_and_si512(load(&page.cares, half), care) } else { care };
        _mm512_ternarylogic_epi64::<XOR_AND>(load(&page.fingerprints, half), fingerprint, own)
    };
    let least = |page: &Page| _mm512_min_epu16(differ(page, 0), differ(page, 1));
    let any = |[a, b, c, d]: &[Page; GROUP]| {
        let halves = (_mm512_min_epu16(least(a), least(b)), _mm512_min_epu16(least(c), least(d)));
        let least = _mm512_min_epu16(halves.0, halves.1);
        _mm512_testn_epi16_mask(least, least) != 0
    };
    let which = |page: &Page| {
        let half = |half| {
            let differ = differ(page, half);
            _mm512_testn_epi16_mask(differ, differ)
        };
        _mm512_kunpackd(half(1).into(), half(0).into())
    };
    first_accepted_with(pages, any, which, accept)
}

/// Loads half of the words of a page.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &[u16; LANES], half: usize) -> __m512i {
    let words: &[u16; WIDTH] = &words.as_chunks().0[half % (LANES / WIDTH)];
    // SAFETY: `words` is 64 readable bytes; they are aligned, as the arrays of a page start at
    // multiples of 64 bytes.
    unsafe { _mm512_load_si512(words.as_ptr().cast()) }
}
