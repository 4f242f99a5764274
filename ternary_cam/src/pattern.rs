// SPDX-License-Identifier: BSD-2-Clause
//! What a kind of wildcard leaves to compare, and its hash.

use crate::slot::Slot;

/// Odd constants: the golden ratio, which spreads consecutive tags evenly over the
/// buckets, and the fractional part of the square root of 3.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const SOURCE: u64 = 0xbb67_ae85_84ca_a73b;

/// Which bits are compared, and whether the source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// The opposite of ignore bits.
    care: u64,
    /// Ignore bits of the entries indexed under this pattern.
    entries_ignore: u64,
    /// All ones where the source is not compared: every source becomes "any".
    any: u32,
    /// The same for the source of an indexed entry, which is "any" already when it
    /// is the entries that have the wildcard.
    entries_any: u32,
    /// Keeps equal bits of different patterns in different buckets.
    salt: u64,
}

impl Pattern {
    /// Exact entries under exact keys.
    pub(crate) const EXACT: Self =
        Self { care: u64::MAX, entries_ignore: 0, any: 0, entries_any: 0, salt: 0 };

    /// For entries with these wildcards, searched with exact keys.
    pub(crate) const fn of_entries(ignore: u64, any_source: bool, class: u8) -> Self {
        let any = if any_source { u32::MAX } else { 0 };
        let salt = SOURCE.rotate_left(8 * class as u32);
        Self { care: !ignore, entries_ignore: ignore, any, entries_any: 0, salt }
    }

    /// For exact entries, searched by keys with these wildcards.
    pub(crate) const fn of_keys(ignore: u64, any_source: bool) -> Self {
        let pattern = Self::of_entries(ignore, any_source, 0);
        Self { entries_ignore: 0, entries_any: pattern.any, salt: 0, ..pattern }
    }

    #[inline]
    pub(crate) const fn has(&self, ignore: u64, any_source: bool) -> bool {
        self.care == !ignore && (self.any != 0) == any_source
    }

    /// Hash of what is compared; the high bits are the good ones.
    #[inline(always)]
    pub(crate) const fn hash(&self, bits: u64, source: u32) -> u64 {
        let source = ((source | self.any) as u64).wrapping_mul(SOURCE);
        (bits & self.care).wrapping_add(source).wrapping_add(self.salt).wrapping_mul(SPREAD)
    }

    /// Whether an indexed entry agrees in all that is compared.
    #[inline(always)]
    pub(crate) const fn same_group(&self, slot: &Slot, bits: u64, source: u32) -> bool {
        (slot.bits ^ bits) & self.care == 0
            && slot.source | self.entries_any == source | self.any
            && slot.ignore == self.entries_ignore
    }
}
