// SPDX-License-Identifier: BSD-2-Clause
//! Compare kernels: one algorithm, one file an instruction set.
//!
//! A kernel compares a key with the 64 entries of a [`Block`] and answers with a
//! bitmap of candidates, bit `i` for entry `i`. It knows nothing of ages or of
//! which entries are live; [`first`] arbitrates that in code all kernels share.
//!
//! All `unsafe` of the crate is here: the aligned loads, and the calls that enter a
//! function compiled for instructions the processor was asked about before.

mod avx2;
mod avx512;
mod scalar;

use crate::entry::{Key, Source};

/// Entries in a block: the bits of one bitmap word.
pub(crate) const LANES: usize = u64::BITS as usize;

/// 64 entries, one array a field, so that a vector load takes neighbours.
///
/// ```text
///          entry 0   1   2  ...  63
/// bits    [  u64 | u64 | u64 ... u64 ]   8 cache lines
/// ignore  [  u64 | u64 | u64 ... u64 ]   8 cache lines
/// source  [  u32 | u32 | u32 ... u32 ]   4 cache lines
/// ```
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Block {
    pub(crate) bits: [u64; LANES],
    pub(crate) ignore: [u64; LANES],
    pub(crate) source: [u32; LANES],
}

impl Block {
    pub(crate) const EMPTY: Self =
        Self { bits: [0; LANES], ignore: [0; LANES], source: [Source::ANY.0; LANES] };

    #[inline]
    pub(crate) fn set(&mut self, lane: usize, bits: u64, ignore: u64, source: u32) {
        (self.bits[lane], self.ignore[lane], self.source[lane]) = (bits, ignore, source);
    }

    #[inline]
    pub(crate) fn get(&self, lane: usize) -> (u64, u64, u32) {
        (self.bits[lane], self.ignore[lane], self.source[lane])
    }
}

/// The instruction set a table compares with, chosen once at its construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// 512-bit vectors: AVX-512 F, VL.
    Avx512,
    /// 256-bit vectors: AVX2.
    Avx2,
    /// Plain Rust, on every processor.
    Scalar,
}

impl Kernel {
    /// Fastest first.
    const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Scalar];

    /// The fastest kernel this processor supports.
    #[must_use]
    pub fn best() -> Self {
        Self::available().next().unwrap_or(Self::Scalar)
    }

    /// Every kernel this processor supports, fastest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    /// Whether this processor supports the kernel.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Scalar => true,
        }
    }
}

impl std::fmt::Display for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Scalar => "scalar",
        })
    }
}

/// Not the name of a [`Kernel`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no kernel: there are avx512, avx2, scalar")]
pub struct UnknownKernel(String);

impl std::str::FromStr for Kernel {
    type Err = UnknownKernel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kernel| kernel.to_string() == name)
            .ok_or_else(|| UnknownKernel(name.to_owned()))
    }
}

/// Index of the first live entry that matches, `64 * block + lane`.
///
/// `kernel` must be available ([`Kernel::is_available`]); where the instruction
/// set does not exist at all the scalar twin answers.
pub(crate) fn first(kernel: Kernel, blocks: &[Block], live: &[u64], key: &Key) -> Option<usize> {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a table is only made with a kernel this processor supports.
        Kernel::Avx512 => unsafe { avx512::first(blocks, live, key) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kernel::Avx2 => unsafe { avx2::first(blocks, live, key) },
        _ => scalar::first(blocks, live, key),
    }
}

/// How many bits are set in a bitmap.
pub(crate) fn count_ones(kernel: Kernel, words: &[u64]) -> usize {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a table is only made with a kernel this processor supports.
        Kernel::Avx512 => unsafe { avx512::count_ones(words) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kernel::Avx2 => unsafe { avx2::count_ones(words) },
        _ => scalar::count_ones(words),
    }
}

/// The loop around every kernel: skips dead blocks, stops at the first hit.
#[inline(always)]
fn first_with(blocks: &[Block], live: &[u64], candidates: impl Fn(&Block) -> u64) -> Option<usize> {
    for (index, (block, &live)) in blocks.iter().zip(live).enumerate() {
        if live == 0 {
            continue;
        }
        let hits = candidates(block) & live;
        if hits != 0 {
            return Some(index * LANES + hits.trailing_zeros() as usize);
        }
    }
    None
}

#[cfg(test)]
mod tests;
