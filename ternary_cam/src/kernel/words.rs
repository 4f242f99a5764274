// SPDX-License-Identifier: BSD-2-Clause
//! Runs searches ([`Search`]) of queues made of words, in code that is compiled for the
//! instructions of a kernel.

mod avx2;
mod avx512;
mod search;

use super::instructions::Available;
#[cfg(target_arch = "x86_64")]
use super::instructions::Kernel;
use super::lanes::{LANES, STEP};
pub use search::{Compare, Search};

/// Runs a search with a kernel and returns its result.
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

/// Runs a search with the scalar kernel. Never inlined, as the compiler cannot inline `enter` of
/// the other kernels here either.
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
