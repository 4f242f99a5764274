// SPDX-License-Identifier: BSD-2-Clause
//! Compare kernels: one algorithm, one file per instruction set.
//!
//! A kernel compares a key with 16 of the 64 entries of a [`Block`] and returns a bitmap of
//! candidates. It knows neither the ages of the entries nor which of them are live. The loops in
//! `first_of_blocks.rs` and, for the vector kernels, `first_of_queue.rs` select the oldest live
//! candidate. `fingerprints.rs` and `words.rs` contain further kernels, which compare 16-bit words.
//!
//! All `unsafe` code of the crate is here and in the files below: the loads, and the calls of
//! functions that are compiled for instructions which the processor has according to [`Available`].

mod avx2;
mod avx512;
mod block;
mod fingerprints;
mod first_of_blocks;
mod first_of_queue;
mod instructions;
mod lanes;
mod scalar;
mod words;

use crate::entry::Key;

pub(crate) use block::{Block, ShortQueue};
pub(crate) use fingerprints::{Fingerprints, MaskedFingerprint, first_accepted};
pub(crate) use instructions::Available;
pub use instructions::{Kernel, UnknownKernel};
pub(crate) use lanes::{LANES, STEP};
pub(crate) use words::enter;
pub use words::{Compare, Search};

/// Returns the index of the first live entry that matches, `64 * block + lane`; `None` if no entry
/// matches.
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

/// Calls `found` with the slot of the first live entry that matches, and returns its result.
/// Returns `None` if no entry matches. A vector kernel does not stop at the first match, because
/// its place is unpredictable: it compares every step of 16 entries that contains a live one.
///
/// The fields of the key are passed by value: from a key that was just stored field by field, the
/// compiler would load two fields at once, which waits for the stores.
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

/// Returns the number of bits set in a bitmap.
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
