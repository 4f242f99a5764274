// SPDX-License-Identifier: BSD-2-Clause
//! Where an entry stays from insertion to removal.

use crate::entry::{Entry, Key, Source};

/// Indexes for keys with wildcards, beside the home index.
pub(crate) const WILD: usize = 3;

/// An entry and its links: one cache line.
///
/// ```text
/// byte 0      8        16       20      24           28    32     40               64
///      | bits | ignore | source | token | generation | age | home | wild 0, 1, and 2 |
/// ```
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) bits: u64,
    pub(crate) ignore: u64,
    pub(crate) source: u32,
    pub(crate) token: u32,
    /// Counts the entries this slot has held; a handle knows its own.
    pub(crate) generation: u32,
    pub(crate) age: Age,
    pub(crate) home: Link,
    pub(crate) wild: [Link; WILD],
}

/// Position in the age log, and class, of an entry; the smaller is the older.
///
/// ```text
/// 31                            4 3       0
/// [ position                     | class   ]     all ones: in the nursery
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age(u32);

impl Age {
    /// Of an entry that is still in the nursery.
    pub(crate) const IN_NURSERY: Self = Self(u32::MAX);

    const CLASS_BITS: u32 = 4;

    #[inline]
    pub(crate) const fn new(position: u32, class: u8) -> Self {
        Self(position << Self::CLASS_BITS | class as u32)
    }

    #[inline]
    pub(crate) const fn position(self) -> u32 {
        self.0 >> Self::CLASS_BITS
    }

    #[inline]
    pub(crate) const fn class(self) -> u8 {
        self.0 as u8 & ((1 << Self::CLASS_BITS) - 1)
    }
}

/// Links of one index (see `index.rs`).
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Link {
    /// The next younger entry of the group; the youngest points to the oldest.
    pub(crate) next: u16,
    /// The next older entry of the group; the oldest points to the youngest.
    pub(crate) prev: u16,
    /// Of the oldest: the oldest of the next group in the bucket, itself at the end.
    pub(crate) chain: u16,
    /// Of the oldest: its bucket. [`Link::NOT_HEAD`] of all others.
    pub(crate) bucket: u16,
}

impl Link {
    pub(crate) const NOT_HEAD: u16 = u16::MAX;

    const NONE: Self = Self { next: 0, prev: 0, chain: 0, bucket: 0 };
}

impl Slot {
    pub(crate) const EMPTY: Self = Self {
        bits: 0,
        ignore: 0,
        source: 0,
        token: 0,
        generation: 0,
        age: Age::IN_NURSERY,
        home: Link::NONE,
        wild: [Link::NONE; WILD],
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

    #[inline]
    pub(crate) const fn matches(&self, key: &Key) -> bool {
        (self.bits ^ key.bits) & !(self.ignore | key.ignore) == 0
            && (self.source == key.source.0 || self.source == Source::ANY.0 || key.source.is_any())
    }
}

const _: () = assert!(size_of::<Slot>() == 64);
