// SPDX-License-Identifier: BSD-2-Clause
//! Patterns: the fields that wildcards leave to compare, and the hash of these fields.
//!
//! ```text
//! hash = (bits | ignore) * seed
//!      + (source + 1) * SOURCE_STEP    if the source is compared
//! ```
//!
//! The hash is modulo 2^64. Its 14 highest bits choose the bucket. If there are fewer buckets,
//! only the lowest of these 14 bits choose it (`SeededHash`), and the highest match bits do not
//! affect it. At first `seed` is the golden ratio. The hashes of consecutive tags then lie a golden
//! ratio apart, and the gaps between them have similar sizes (three-gap theorem). Consecutive
//! sources fill these gaps from one end. No two of 6,000 entries with consecutive tags and sources
//! share a bucket, for any number of tags. This also holds for fewer entries in fewer buckets. An
//! ordinary hash puts 22 % of 4,096 entries into a shared bucket. With strides of tags and sources
//! from 1 to 1,024, one eighth of 6,200 combinations has more collisions than with an ordinary
//! hash.
//!
//! An index with long buckets takes another `seed`. The step of the sources does not change,
//! because loading it would cost 0.2 ns. So a new hash does not separate entries with the same tag
//! whose sources share a bucket, which is one pair of sources in 15,000.

use crate::entry::Key;
use crate::slot::Slot;
use crate::wildcards::Wildcards;

/// Slightly more than a bucket of `seeded_hash.rs`: the best of about a hundred such fractions for
/// the strides above.
const SOURCE_STEP: u64 = 0x0004_5799_8e48_6355;

/// The fields that are compared: which bits, and whether the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Bits that are not compared.
    ignore: u64,
    /// Bits that are compared: the others.
    care: u64,
    /// All ones if the source is compared; otherwise zero.
    care_source: u64,
}

impl Pattern {
    /// The pattern of exact entries under exact keys.
    pub(crate) const EXACT: Self = Self::new(Wildcards::NONE);

    /// Returns the pattern for entries with these wildcards under exact keys, or for exact entries
    /// under keys with these wildcards.
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

    /// Returns the hash of the compared fields.
    #[inline(always)]
    pub(crate) const fn hash(&self, seed: u64, bits: u64, source: u32) -> u64 {
        self.compared(bits).wrapping_mul(seed).wrapping_add(self.steps(source))
    }

    /// Returns this pattern, but with the source compared if and only if `source` is true. If
    /// `source` is a constant, the compiler knows whether the source is compared.
    #[inline(always)]
    pub(crate) const fn comparing_source(&self, source: bool) -> Self {
        Self { care_source: if source { u64::MAX } else { 0 }, ..*self }
    }

    /// Returns the bits to hash, with ones where bits are not compared. With zeros, tag 0, the most
    /// common tag, would share its bucket with any-tag entries.
    #[inline(always)]
    const fn compared(&self, bits: u64) -> u64 {
        bits | self.ignore
    }

    /// Returns the summand of a source in the hash: its number plus one, times [`SOURCE_STEP`], or
    /// 0 if it is not compared. Without the one, source 0 would share its buckets with any-source
    /// entries.
    #[inline(always)]
    const fn steps(&self, source: u32) -> u64 {
        (source as u64 + 1).wrapping_mul(SOURCE_STEP) & self.care_source
    }

    /// Returns true if an entry agrees with a key in all compared fields.
    #[inline(always)]
    pub(crate) const fn agree(&self, slot: &Slot, key: &Key) -> bool {
        let source = (slot.source ^ key.source.0) as u64 & self.care_source;
        (slot.bits ^ key.bits) & self.care | source == 0
    }
}
