// SPDX-License-Identifier: BSD-2-Clause
//! What a kind of wildcard leaves to compare, and its hash.

use crate::entry::{Key, Source};
use crate::slot::Slot;

/// Odd constants: the golden ratio, and the fractional part of the square root of 3.
pub(crate) const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const SOURCE: u64 = 0xbb67_ae85_84ca_a73b;

/// From a source to the next in the hash: a little more than a bucket of `index.rs`. Tags
/// that follow each other lie a golden ratio apart, so that the gaps between any number of
/// them are alike (three-gap theorem), and sources that follow each other fill these gaps from
/// one end. Of consecutive tags from consecutive sources, whatever number of each, no two of
/// 6,000 entries share a bucket; an ordinary hash puts 22 % of 4,096 into one with others. Of
/// 6,200 grids with strides from 1 to 1,024 an eighth collides more than under an ordinary
/// hash; this fraction of a bucket is the best of some hundred for them. It is the same in
/// every hash: with the same tag, one source in 15,000 shares the bucket of another.
const STEP: u64 = 0x0004_5799_8e48_6355;

/// Class of entries that name their source and ignore the base (see `classes.rs`).
pub(crate) const EXACT: u8 = 0;

/// Cells to look a kind up in.
pub(crate) const CELLS: usize = 64;

/// The wildcards of an entry or key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Ignore bits.
    pub(crate) ignore: u64,
    /// Whether it names no source.
    pub(crate) any_source: bool,
}

impl Kind {
    /// Without wildcards.
    pub(crate) const EXACT: Self = Self { ignore: 0, any_source: false };

    #[inline(always)]
    pub(crate) const fn of(ignore: u64, source: Source) -> Self {
        Self { ignore, any_source: source.is_any() }
    }

    /// The same with a source.
    pub(crate) const fn named(self) -> Self {
        Self { any_source: false, ..self }
    }

    /// Whether an index under the pattern of keys of this kind serves this one: it does not
    /// compare sources where not all of its keys name one.
    #[inline(always)]
    pub(crate) const fn serves(self, key: &Key) -> bool {
        self.ignore == key.ignore && (self.any_source | !key.source.is_any())
    }

    /// Its hash; the high bits are the good ones.
    #[inline(always)]
    pub(crate) const fn hash(self) -> u64 {
        (self.ignore ^ if self.any_source { SOURCE } else { 0 }).wrapping_mul(SPREAD)
    }

    /// Its cell. Another kind may have the same.
    #[inline(always)]
    pub(crate) const fn cell(self) -> usize {
        (self.hash() >> (u64::BITS - CELLS.trailing_zeros())) as usize
    }
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
    pub(crate) const EXACT: Self = Self::new(Kind::EXACT);

    /// For entries with these wildcards under exact keys, or the other way round.
    pub(crate) const fn new(kind: Kind) -> Self {
        let care_source = if kind.any_source { 0 } else { u64::MAX };
        Self { ignore: kind.ignore, care: !kind.ignore, care_source }
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
    pub(crate) const fn kind(&self) -> Kind {
        Kind { ignore: self.ignore, any_source: self.care_source == 0 }
    }

    /// The hash of what is compared.
    #[inline(always)]
    pub(crate) const fn hash(&self, spread: u64, bits: u64, source: u32) -> u64 {
        self.compared(bits).wrapping_mul(spread).wrapping_add(self.steps(source))
    }

    /// The same pattern, known to compare the source or not to.
    #[inline(always)]
    pub(crate) const fn with_source(&self, source: bool) -> Self {
        Self { care_source: if source { u64::MAX } else { 0 }, ..*self }
    }

    /// The bits that are compared, to be hashed: ones where they are not, since tag 0 is the
    /// most common one, and would share its bucket with any tag.
    #[inline(always)]
    const fn compared(&self, bits: u64) -> u64 {
        bits | self.ignore
    }

    /// So many steps as the number of the source, if it is compared. No source counts as
    /// zero: its entries would share buckets with those of any source.
    #[inline(always)]
    const fn steps(&self, source: u32) -> u64 {
        (source as u64 + 1).wrapping_mul(STEP) & self.care_source
    }

    /// Whether an entry agrees with a key in all that is compared.
    #[inline(always)]
    pub(crate) const fn equal(&self, slot: &Slot, key: &Key) -> bool {
        let source = (slot.source ^ key.source.0) as u64 & self.care_source;
        (slot.bits ^ key.bits) & self.care | source == 0
    }
}
