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
mod prints;
mod scalar;
mod words;

use crate::entry::{Key, Source};

pub(crate) use block::{Block, ShortQueue};
pub(crate) use prints::{Prints, Sought, first_accepted};
pub(crate) use words::{enter, equal};

/// Entries in a block: the bits of one bitmap word.
pub(crate) const LANES: usize = u64::BITS as usize;

/// Entries at most that are compared one by one: a vector costs as much, and would wait for
/// those among them that were stored a moment ago.
#[cfg(target_arch = "x86_64")]
const ALONE: u32 = 4;

/// Entries a kernel compares at once.
pub(crate) const STEP: usize = u16::BITS as usize;

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

/// A kernel that this processor supports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Available(Kernel);

impl Available {
    /// Nothing if it does not.
    pub(crate) fn new(kernel: Kernel) -> Option<Self> {
        kernel.is_available().then_some(Self(kernel))
    }

    pub(crate) const fn get(self) -> Kernel {
        self.0
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
pub(crate) fn first(kernel: Available, blocks: &[Block], live: &[u64], key: &Key) -> Option<usize> {
    match kernel.0 {
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
    match kernel.0 {
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
    match kernel.0 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor supports what is `Available`.
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
fn first_in_queue_with<T>(
    queue: &ShortQueue,
    (bits, ignore, source): (u64, u64, u32),
    candidates: impl Fn(&Block, usize, &Key) -> u16,
    found: impl FnOnce(u16) -> T,
) -> Option<T> {
    let live = queue.live;
    if live.count_ones() <= ALONE {
        return scalar::first_in_queue(queue, bits, ignore, source, found);
    }
    let key = Key { bits, ignore, source: Source(source) };
    let candidates = |step| candidates(&queue.block, step, &key);
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
    (hits != 0).then(|| found(queue.ids[hits.trailing_zeros() as usize % LANES]))
}

#[cfg(test)]
mod tests;
