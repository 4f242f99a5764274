// SPDX-License-Identifier: BSD-2-Clause
//! The wildcards of an entry or a key, which define its kind.

use crate::entry::{Key, Source};

/// The golden ratio, as an odd fraction of 2^64.
pub(crate) const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

/// The fractional part of the square root of 3, made odd.
const ANY_SOURCE: u64 = 0xbb67_ae85_84ca_a73b;

/// The fields that an entry or a key leaves open. Entries, or keys, with the same wildcards are of
/// one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wildcards {
    /// Ignore bits.
    pub(crate) ignore: u64,
    /// True if the entry or key names no source.
    pub(crate) any_source: bool,
}

impl Wildcards {
    /// The wildcards of exact entries and keys.
    pub(crate) const NONE: Self = Self { ignore: 0, any_source: false };

    /// Number of values of [`Wildcards::cell`], a power of two.
    pub(crate) const CELLS: usize = 64;

    #[inline(always)]
    pub(crate) const fn of(ignore: u64, source: Source) -> Self {
        Self { ignore, any_source: source.is_any() }
    }

    /// Returns these wildcards, but of entries or keys that name a source.
    pub(crate) const fn with_source(self) -> Self {
        Self { any_source: false, ..self }
    }

    /// Returns true if an index for keys with these wildcards serves this key. An index for keys
    /// without a source does not compare sources, so it also serves keys with a source.
    #[inline(always)]
    pub(crate) const fn serves(self, key: &Key) -> bool {
        self.ignore == key.ignore && (self.any_source | !key.source.is_any())
    }

    /// Returns a hash whose high bits are well mixed.
    #[inline(always)]
    pub(crate) const fn hash(self) -> u64 {
        (self.ignore ^ if self.any_source { ANY_SOURCE } else { 0 }).wrapping_mul(GOLDEN_RATIO)
    }

    /// Returns a number for these wildcards, below [`Wildcards::CELLS`]. Different wildcards may
    /// have the same number.
    #[inline(always)]
    pub(crate) const fn cell(self) -> usize {
        (self.hash() >> (u64::BITS - Self::CELLS.trailing_zeros())) as usize
    }
}

impl Key {
    #[inline(always)]
    pub(crate) const fn wildcards(&self) -> Wildcards {
        Wildcards::of(self.ignore, self.source)
    }
}
