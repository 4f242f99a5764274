// SPDX-License-Identifier: BSD-2-Clause
//! Words of queues: searches of them ([`Search`]) are entered here, in code that is compiled for
//! the instructions of a kernel.

mod avx2;
mod avx512;

use super::{Available, Kernel, LANES, STEP};
use crate::scanner::{Compare, Search};

/// Runs a search.
#[inline(always)]
pub(crate) fn enter<S: Search>(kernel: Available, search: S) -> S::Found {
    match kernel.get() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor supports what is `Available`.
        Kernel::Avx512 => unsafe { avx512::enter(search) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kernel::Avx2 => unsafe { avx2::enter(search) },
        _ => enter_scalar(search),
    }
}

/// Out of line, as its twins have to be.
#[inline(never)]
fn enter_scalar<S: Search>(search: S) -> S::Found {
    search.run(Words)
}

#[derive(Clone, Copy)]
struct Words;

impl Compare for Words {
    #[inline(always)]
    fn page(self, words: &[u16; LANES], value: u16) -> u64 {
        let steps = words.as_chunks().0.iter().enumerate();
        steps.fold(0, |hits, (number, step)| hits | self.step(step, value) << (number * STEP))
    }
}

/// Bit `i` is set when word `i` equals `value`: with what every processor of the architecture has.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn equal(words: &[u16; STEP], value: u16) -> u64 {
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
pub(crate) fn equal(words: &[u16; STEP], value: u16) -> u64 {
    (0..STEP).fold(0, |hits, lane| hits | u64::from(words[lane] == value) << lane)
}
