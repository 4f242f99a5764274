// SPDX-License-Identifier: BSD-2-Clause
//! Compare kernels: one algorithm, one file an instruction set.
//!
//! A kernel compares a key with 16 of the 64 entries of a [`Block`] and answers with a
//! bitmap of candidates. It knows nothing of ages or of which entries are live; [`first`] and
//! [`first_named`] arbitrate that in code all kernels share.
//!
//! All `unsafe` of the crate is here: the loads, and the calls that enter a
//! function compiled for instructions the processor was asked about before.

mod avx2;
mod avx512;
mod few;
mod scalar;
mod words;

use crate::entry::{Key, Source};

pub(crate) use few::equal;
pub(crate) use words::enter;

/// Entries in a block: the bits of one bitmap word.
pub(crate) const LANES: usize = u64::BITS as usize;

/// Entries at most that are compared one by one: a vector costs as much, and would wait for
/// those among them that were stored a moment ago.
#[cfg(target_arch = "x86_64")]
const ALONE: u32 = 4;

/// Entries a kernel compares at once.
pub(crate) const STEP: usize = u16::BITS as usize;

/// 64 entries, one array a field, so that a vector load takes neighbours.
///
/// ```text
///          entry 0   1   2  ...  63
/// bits    [  u64 | u64 | u64 ... u64 ]   8 cache lines
/// ignore  [  u64 | u64 | u64 ... u64 ]   8 cache lines
/// peer    [  u32 | u32 | u32 ... u32 ]   4 cache lines
/// ```
/// A peer is a source with all its bits turned, so that any source is zero: the AVX-512
/// kernel then needs one test for both ways to agree.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Block {
    pub(crate) bits: [u64; LANES],
    pub(crate) ignore: [u64; LANES],
    pub(crate) peer: [u32; LANES],
}

impl Block {
    pub(crate) const EMPTY: Self =
        Self { bits: [0; LANES], ignore: [0; LANES], peer: [!Source::ANY.0; LANES] };

    #[inline]
    pub(crate) fn set(&mut self, lane: usize, bits: u64, ignore: u64, source: u32) {
        (self.bits[lane], self.ignore[lane], self.peer[lane]) = (bits, ignore, !source);
    }

    #[inline]
    pub(crate) fn get(&self, lane: usize) -> (u64, u64, u32) {
        (self.bits[lane], self.ignore[lane], !self.peer[lane])
    }
}

/// A block with a name for each entry, some of them live: a short queue in one piece.
#[repr(C, align(64))]
pub(crate) struct Named {
    pub(crate) block: Block,
    pub(crate) names: [u16; LANES],
    /// Bit `i` is set when entry `i` is there.
    pub(crate) live: u64,
}

impl Named {
    pub(crate) const EMPTY: Self = Self { block: Block::EMPTY, names: [0; LANES], live: 0 };
}

/// The instruction set a table compares with, chosen once at its construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// 512-bit vectors: AVX-512 F, BW, VL.
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
                    && is_x86_feature_detected!("avx512bw")
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

/// What `found` makes of the name of the first live entry that matches. Every step with a
/// live one is compared: where the match is cannot be predicted.
///
/// The fields of the key come by value: from one that was stored a moment ago, field by field,
/// the compiler would load two at once, which waits for the stores.
#[inline(always)]
pub(crate) fn first_named<T>(
    kernel: Kernel,
    named: &Named,
    (bits, ignore, source): (u64, u64, u32),
    found: impl FnOnce(u16) -> T,
) -> Option<T> {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a table is only made with a kernel this processor supports.
        Kernel::Avx512 => unsafe { avx512::first_named(named, bits, ignore, source, found) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kernel::Avx2 => unsafe { avx2::first_named(named, bits, ignore, source, found) },
        _ => scalar::first_named(named, bits, ignore, source, found),
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

/// The loop around every kernel: skips the dead, stops at the first hit. `candidates`
/// compares [`STEP`] entries of a block.
#[inline(always)]
fn first_with(
    blocks: &[Block],
    live: &[u64],
    candidates: impl Fn(&Block, usize) -> u16,
) -> Option<usize> {
    for (index, (block, &live)) in blocks.iter().zip(live).enumerate() {
        if live == 0 {
            continue;
        }
        for step in (0..LANES).step_by(STEP) {
            let live = (live >> step) as u16;
            if live == 0 {
                continue;
            }
            let hits = candidates(block, step) & live;
            if hits != 0 {
                return Some(index * LANES + step + hits.trailing_zeros() as usize);
            }
        }
    }
    None
}

/// The loop around the vector kernels of a short queue. `candidates` compares [`STEP`] of
/// them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn first_named_with<T>(
    named: &Named,
    (bits, ignore, source): (u64, u64, u32),
    candidates: impl Fn(&Block, usize, &Key) -> u16,
    found: impl FnOnce(u16) -> T,
) -> Option<T> {
    let live = named.live;
    if live.count_ones() <= ALONE {
        return scalar::first_named(named, bits, ignore, source, found);
    }
    let key = Key { bits, ignore, source: Source(source) };
    let candidates = |step| candidates(&named.block, step, &key);
    let mut hits = 0;
    if live as u16 != 0 {
        hits = u64::from(candidates(0));
    }
    if live >> STEP != 0 {
        for step in (STEP..LANES).step_by(STEP) {
            if (live >> step) as u16 != 0 {
                hits |= u64::from(candidates(step)) << step;
            }
        }
    }
    let hits = hits & live;
    (hits != 0).then(|| found(named.names[hits.trailing_zeros() as usize % LANES]))
}

#[cfg(test)]
mod tests;
