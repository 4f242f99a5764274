// SPDX-License-Identifier: BSD-2-Clause
//! What a kind of wildcard leaves to compare, and its hash.

use crate::entry::Key;
use crate::slot::Slot;

/// Odd constants: the golden ratio, which spreads consecutive tags evenly over the
/// buckets, and the fractional part of the square root of 3.
pub(crate) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const SOURCE: u64 = 0xbb67_ae85_84ca_a73b;

/// Class of entries that name their source and ignore the base (see `classes.rs`).
pub(crate) const EXACT: u8 = 0;

/// Cells to look a kind of wildcards up in.
pub(crate) const CELLS: usize = 64;

/// Hash of a kind of wildcards; the high bits are the good ones.
#[inline(always)]
pub(crate) const fn hash_of(ignore: u64, any_source: bool) -> u64 {
    (ignore ^ if any_source { SOURCE } else { 0 }).wrapping_mul(SPREAD)
}

/// The cell of a kind of wildcards. Another kind may have the same.
#[inline(always)]
pub(crate) const fn cell_of(ignore: u64, any_source: bool) -> usize {
    (hash_of(ignore, any_source) >> (u64::BITS - CELLS.trailing_zeros())) as usize
}

/// Which bits are compared, and whether the source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Bits that are not compared, and those that are.
    ignore: u64,
    care: u64,
    /// All ones where the source is compared.
    care_source: u64,
}

impl Pattern {
    /// Exact entries under exact keys.
    pub(crate) const EXACT: Self = Self::new(0, false);

    /// For entries with these wildcards under exact keys, or the other way round.
    pub(crate) const fn new(ignore: u64, any_source: bool) -> Self {
        let care_source = if any_source { 0 } else { u64::MAX };
        Self { ignore, care: !ignore, care_source }
    }

    /// The same pattern, known to be of exact entries under exact keys.
    #[inline(always)]
    pub(crate) const fn exact(&self) -> Self {
        Self { care_source: u64::MAX, ..*self }
    }

    #[inline(always)]
    pub(crate) const fn care(&self) -> u64 {
        self.care
    }

    #[inline]
    pub(crate) const fn ignore(&self) -> u64 {
        self.ignore
    }

    #[inline]
    pub(crate) const fn has(&self, ignore: u64, any_source: bool) -> bool {
        self.care == !ignore && (self.care_source == 0) == any_source
    }

    /// What is compared, to be hashed: ones where it is not, since tag 0 is the most common
    /// one, and would share its bucket with any tag. No source counts as zero: its entries
    /// would share buckets with those of any source.
    #[inline(always)]
    pub(crate) const fn compared(&self, bits: u64, source: u32) -> u64 {
        let source = (source as u64 + 1).wrapping_mul(SOURCE) & self.care_source;
        (bits | self.ignore).wrapping_add(source)
    }

    /// Whether an exact entry agrees with a key in all that is compared.
    #[inline(always)]
    pub(crate) const fn equal(&self, slot: &Slot, key: &Key) -> bool {
        let source = (slot.source ^ key.source.0) as u64 & self.care_source;
        (slot.bits ^ key.bits) & self.care | source == 0
    }
}
