// SPDX-License-Identifier: BSD-2-Clause
//! What wildcards leave to compare, and its hash.
//!
//! ```text
//! hash = (bits | ignore) * spread
//!      + (source + 1) * SOURCE_STEP    if the source is compared
//! ```
//!
//! modulo 2^64; the high bits choose the bucket. At first `spread` is the golden ratio: consecutive
//! tags lie a golden ratio apart, the gaps between any number of them are alike (three-gap
//! theorem), and consecutive sources fill these gaps from one end. Of consecutive tags from
//! consecutive sources, whatever number of each, no two of 6,000 entries share a bucket; an
//! ordinary hash puts 22 % of 4,096 into one with others. Of 6,200 grids with strides from 1 to
//! 1,024 an eighth collides more than under an ordinary hash.
//!
//! An index whose buckets are too long takes another `spread`. The step of the sources stays: to
//! load it would cost 0.2 ns. So it does not part entries with the same tag whose sources share a
//! bucket, of which there are one in 15,000.

use crate::entry::Key;
use crate::slot::Slot;
use crate::wildcards::Wildcards;

/// A little more than a bucket of `spread.rs`: of some hundred such fractions the best for the
/// grids above.
const SOURCE_STEP: u64 = 0x0004_5799_8e48_6355;

/// What is compared: which bits, and whether the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Bits that are not compared, and those that are.
    ignore: u64,
    care: u64,
    /// All ones where the source is compared.
    care_source: u64,
}

impl Pattern {
    /// Of exact entries under exact keys.
    pub(crate) const EXACT: Self = Self::new(Wildcards::NONE);

    /// For entries with these wildcards under exact keys, or exact entries under keys with them.
    pub(crate) const fn new(wildcards: Wildcards) -> Self {
        let care_source = if wildcards.any_source { 0 } else { u64::MAX };
        Self { ignore: wildcards.ignore, care: !wildcards.ignore, care_source }
    }

    #[inline(always)]
    pub(crate) const fn ignore(&self) -> u64 {
        self.ignore
    }

    #[inline(always)]
    pub(crate) const fn care(&self) -> u64 {
        self.care
    }

    #[inline]
    pub(crate) const fn wildcards(&self) -> Wildcards {
        Wildcards { ignore: self.ignore, any_source: self.care_source == 0 }
    }

    /// The hash of what is compared.
    #[inline(always)]
    pub(crate) const fn hash(&self, spread: u64, bits: u64, source: u32) -> u64 {
        self.compared(bits).wrapping_mul(spread).wrapping_add(self.steps(source))
    }

    /// The same pattern, where the compiler is to know whether it compares the source.
    #[inline(always)]
    pub(crate) const fn with_source(&self, source: bool) -> Self {
        Self { care_source: if source { u64::MAX } else { 0 }, ..*self }
    }

    /// The bits to be hashed, with ones where they are not compared: with zeros, tag 0, the most
    /// common one, would share its bucket with any tag.
    #[inline(always)]
    const fn compared(&self, bits: u64) -> u64 {
        bits | self.ignore
    }

    /// As many steps as the number of the source and one, if it is compared: with none, source 0
    /// would share its buckets with any source.
    #[inline(always)]
    const fn steps(&self, source: u32) -> u64 {
        (source as u64 + 1).wrapping_mul(SOURCE_STEP) & self.care_source
    }

    /// Whether an entry agrees with a key in all that is compared.
    #[inline(always)]
    pub(crate) const fn agree(&self, slot: &Slot, key: &Key) -> bool {
        let source = (slot.source ^ key.source.0) as u64 & self.care_source;
        (slot.bits ^ key.bits) & self.care | source == 0
    }
}
