// SPDX-License-Identifier: BSD-2-Clause
//! Where an entry stays from insertion to removal.

use crate::entry::{Entry, Key, Source};
use crate::pattern::Kind;

/// Indexes: the home index and those for other kinds of keys.
pub(crate) const INDEXES: usize = 5;

/// An entry and its links: one cache line.
///
/// ```text
/// byte 0      8        16       20      24      32     38               62
///      | bits | ignore | source | token | stamp | home | other 4 indexes  |
/// ```
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) bits: u64,
    pub(crate) ignore: u64,
    pub(crate) source: u32,
    pub(crate) token: u32,
    pub(crate) stamp: Stamp,
    pub(crate) links: [Link; INDEXES],
}

/// Serial number of an entry, which says its age and is its name, and its class;
/// the smaller is the older.
///
/// ```text
/// 63                            4 3       0
/// [ serial number                | class   ]
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// Of a slot without an entry; younger than every entry.
    pub(crate) const NONE: Self = Self(u64::MAX);

    const CLASS_BITS: u32 = 4;
    const CLASS: u64 = (1 << Self::CLASS_BITS) - 1;

    #[inline(always)]
    pub(crate) const fn new(serial: u64, class: u8) -> Self {
        Self(serial << Self::CLASS_BITS | class as u64)
    }

    #[inline(always)]
    pub(crate) const fn serial(self) -> u64 {
        self.0 >> Self::CLASS_BITS
    }

    #[inline(always)]
    pub(crate) const fn class(self) -> u8 {
        (self.0 & Self::CLASS) as u8
    }

    /// The same entry in another class.
    #[inline(always)]
    pub(crate) const fn with_class(self, class: u8) -> Self {
        Self(self.0 & !Self::CLASS | class as u64)
    }
}

/// Links of one index (see `index.rs`): a bucket, and a ring of the entries in it by
/// age; the next of the youngest is the oldest.
///
/// Each field is stored and loaded by itself: the store buffer cannot forward a part
/// that was just stored to a load of more.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// In the tray the home link's is the position (see `deep/tray.rs`).
    pub(crate) bucket: u16,
    /// The next younger.
    pub(crate) next: u16,
    /// The next older.
    pub(crate) prev: u16,
}

impl Link {
    const NONE: Self = Self { bucket: 0, next: 0, prev: 0 };
}

impl Slot {
    pub(crate) const EMPTY: Self = Self {
        bits: 0,
        ignore: 0,
        source: 0,
        token: 0,
        stamp: Stamp::NONE,
        links: [Link::NONE; INDEXES],
    };

    #[inline]
    pub(crate) const fn entry(&self) -> Entry {
        Entry {
            bits: self.bits,
            ignore: self.ignore,
            source: Source(self.source),
            token: self.token,
        }
    }

    /// Whether it matches, where both are exact: they ignore the base.
    #[inline(always)]
    pub(crate) const fn equals(&self, key: &Key, care: u64) -> bool {
        (self.bits ^ key.bits) & care | (self.source ^ key.source.0) as u64 == 0
    }

    #[inline(always)]
    pub(crate) const fn kind(&self) -> Kind {
        Kind::of(self.ignore, Source(self.source))
    }

    /// Whether it matches, where the key is exact.
    #[inline(always)]
    pub(crate) const fn matches_exact(&self, key: &Key) -> bool {
        (self.bits ^ key.bits) & !self.ignore == 0
            && (self.source == key.source.0 || self.source == Source::ANY.0)
    }

    #[inline]
    pub(crate) const fn matches(&self, key: &Key) -> bool {
        (self.bits ^ key.bits) & !(self.ignore | key.ignore) == 0
            && (self.source == key.source.0 || self.source == Source::ANY.0 || key.source.is_any())
    }
}

const _: () = assert!(size_of::<Slot>() == 64);
