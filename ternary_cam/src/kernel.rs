// SPDX-License-Identifier: BSD-2-Clause
//! Compare kernels: one algorithm, one file for each instruction set.
//!
//! A kernel compares a key with 16 of the 64 entries of a [`Block`] and answers with a
//! bitmap of candidates. It knows nothing of ages or of which entries are live; [`first`] and
//! [`first_in_queue`] arbitrate that in code all kernels share.
//!
//! All `unsafe` of the crate is here and in the files below: the loads, and the calls that enter a
//! function compiled for instructions of which [`Available`] says that the processor has them.

mod avx2;
mod avx512;
mod block;
mod first_of_blocks;
mod first_of_queue;
mod instructions;
mod lanes;
mod prints;
mod scalar;
mod words;

use crate::entry::Key;

pub(crate) use block::{Block, ShortQueue};
pub(crate) use instructions::Available;
pub use instructions::{Kernel, UnknownKernel};
pub(crate) use lanes::{LANES, STEP};
pub(crate) use prints::{Prints, Sought, first_accepted};
pub(crate) use words::enter;
pub use words::{Compare, Search};

/// Index of the first live entry that matches, `64 * block + lane`.
pub(crate) fn first(kernel: Available, blocks: &[Block], live: &[u64], key: &Key) -> Option<usize> {
    match kernel.get() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor supports what is `Available`.
        Kernel::Avx512 => unsafe { avx512::first(blocks, live, key) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kernel::Avx2 => unsafe { avx2::first(blocks, live, key) },
        _ => scalar::first(blocks, live, key),
    }
}

/// What `found` makes of the slot of the first live entry that matches. Every step with a
/// live one is compared: where the match is cannot be predicted.
///
/// The fields of the key come by value: from one that was stored a moment ago, field by field,
/// the compiler would load two at once, which waits for the stores.
#[inline(always)]
pub(crate) fn first_in_queue<T>(
    kernel: Available,
    queue: &ShortQueue,
    (bits, ignore, source): (u64, u64, u32),
    found: impl FnOnce(u16) -> T,
) -> Option<T> {
    match kernel.get() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor supports what is `Available`.
        Kernel::Avx512 => unsafe { avx512::first_in_queue(queue, bits, ignore, source, found) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kernel::Avx2 => unsafe { avx2::first_in_queue(queue, bits, ignore, source, found) },
        _ => scalar::first_in_queue(queue, bits, ignore, source, found),
    }
}

/// How many bits are set in a bitmap.
pub(crate) fn count_ones(kernel: Available, words: &[u64]) -> usize {
    match kernel.get() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor supports what is `Available`.
        Kernel::Avx512 => unsafe { avx512::count_ones(words) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kernel::Avx2 => unsafe { avx2::count_ones(words) },
        _ => scalar::count_ones(words),
    }
}

#[cfg(test)]
mod tests;
