// SPDX-License-Identifier: BSD-2-Clause
//! The memory of an entry from insertion to removal.

use crate::entry::{Entry, Key, Source};
use crate::wildcards::Wildcards;

/// An entry and its link: one cache line.
///
/// ```text
/// byte 0      8        16       20      24      32     40       64
///      | bits | ignore | source | token | stamp | link | unused |
/// ```
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) bits: u64,
    pub(crate) ignore: u64,
    pub(crate) source: u32,
    pub(crate) token: u32,
    pub(crate) stamp: Stamp,
    pub(crate) link: RingLink,
}

/// Age and class of an entry. The entry with the lower stamp is older. Serial numbers are unique,
/// so the class does not affect the order.
///
/// ```text
/// 63                            4 3       0
/// [ serial number                | class   ]
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(u64);

/// The structure that contains an entry. A value below [`Class::SMALL_SET`] is the number of a
/// pattern: the primary index contains the entry under this pattern (see `index/classes.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class(u8);

impl Class {
    /// Under the base pattern: the entry names its source and ignores exactly the base.
    pub(crate) const BASE: Self = Self(0);
    /// In the small set.
    pub(crate) const SMALL_SET: Self = Self(12);
    /// In the scan, because its pattern has no class. Also the class of all entries of a
    /// [`Cam`](crate::Cam).
    pub(crate) const NONE: Self = Self(13);
    /// One of the recent entries.
    pub(crate) const RECENT: Self = Self(14);
    // 15 is the class of a slot without an entry.

    #[inline(always)]
    pub(crate) const fn hashed(pattern: usize) -> Self {
        Self(pattern as u8)
    }

    /// Returns the number of the pattern of a class of the primary index.
    #[inline(always)]
    pub(crate) const fn pattern(self) -> usize {
        self.0 as usize
    }

    /// Returns true for an entry in [`crate::index::Index`].
    #[inline(always)]
    pub(crate) const fn is_indexed(self) -> bool {
        self.0 < Self::RECENT.0
    }
}

impl Stamp {
    /// The stamp of a slot without an entry. It is higher than the stamp of every entry.
    pub(crate) const NONE: Self = Self(u64::MAX);

    const CLASS_BITS: u32 = 4;
    const CLASS: u64 = (1 << Self::CLASS_BITS) - 1;

    #[inline(always)]
    pub(crate) const fn new(serial: u64, class: Class) -> Self {
        Self(serial << Self::CLASS_BITS | class.0 as u64)
    }

    #[inline(always)]
    pub(crate) const fn serial(self) -> u64 {
        self.0 >> Self::CLASS_BITS
    }

    #[inline(always)]
    pub(crate) const fn class(self) -> Class {
        Class((self.0 & Self::CLASS) as u8)
    }

    /// Returns the stamp of the same entry in another class.
    #[inline(always)]
    pub(crate) const fn with_class(self, class: Class) -> Self {
        Self(self.0 & !Self::CLASS | class.0 as u64)
    }
}

/// The place of an entry in the primary index (see `index/buckets.rs`): a bucket, and the
/// neighbours in the ring of its entries.
///
/// Each field is stored and loaded separately: the store buffer cannot forward a narrow store to a
/// wider load.
#[derive(Clone, Copy)]
pub(crate) struct RingLink {
    /// The number of the bucket in the primary index. For an entry in the small set, its position
    /// there; for an entry of a [`Cam`](crate::Cam), its place.
    pub(crate) location: u32,
    /// The next younger entry; for the youngest, the oldest.
    pub(crate) next: u16,
    /// The next older entry; for the oldest, the youngest.
    pub(crate) prev: u16,
}

impl RingLink {
    const NONE: Self = Self { location: 0, next: 0, prev: 0 };
}

impl Slot {
    pub(crate) const EMPTY: Self =
        Self { bits: 0, ignore: 0, source: 0, token: 0, stamp: Stamp::NONE, link: RingLink::NONE };

    #[inline]
    pub(crate) const fn entry(&self) -> Entry {
        Entry {
            bits: self.bits,
            ignore: self.ignore,
            source: Source(self.source),
            token: self.token,
        }
    }

    /// Returns true if the entry matches the key. Both must name their source, and `care` must
    /// contain the bits that both compare.
    #[inline(always)]
    pub(crate) const fn equals(&self, key: &Key, care: u64) -> bool {
        (self.bits ^ key.bits) & care | (self.source ^ key.source.0) as u64 == 0
    }

    #[inline(always)]
    pub(crate) const fn wildcards(&self) -> Wildcards {
        Wildcards::of(self.ignore, Source(self.source))
    }

    /// Returns true if the entry matches an exact key. The code has no branch on whether the entry
    /// names its source, because this is unpredictable among entries of several classes.
    #[inline(always)]
    pub(crate) const fn matches_exact(&self, key: &Key) -> bool {
        let named = if self.source == Source::ANY.0 { 0 } else { u32::MAX };
        let source = (self.source ^ key.source.0) & named;
        (self.bits ^ key.bits) & !self.ignore | source as u64 == 0
    }

    #[inline]
    pub(crate) const fn matches(&self, key: &Key) -> bool {
        self.entry().matches(key)
    }
}

const _: () = assert!(size_of::<Slot>() == 64);
