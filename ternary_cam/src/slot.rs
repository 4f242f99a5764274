// SPDX-License-Identifier: BSD-2-Clause
//! Where an entry stays from insertion to removal.

use crate::entry::{Entry, Key, Source};

/// Indexes for keys with wildcards, beside the home index.
pub(crate) const WILD: usize = 3;

/// An entry and its links: one cache line.
///
/// ```text
/// byte 0      8        16       20      24      32     40               64
///      | bits | ignore | source | token | stamp | home | wild 0, 1, and 2 |
/// ```
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Slot {
    pub(crate) bits: u64,
    pub(crate) ignore: u64,
    pub(crate) source: u32,
    pub(crate) token: u32,
    pub(crate) stamp: Stamp,
    pub(crate) home: Link,
    pub(crate) wild: [Link; WILD],
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

/// Links of one index (see `index.rs`) in one word, written and read as a whole,
/// since the store buffer cannot forward parts of a word that was just stored to a
/// load of all of it.
///
/// ```text
/// 63      48 47      32 31      16 15         14          13         0
/// [ chain   | prev     | next     | not oldest | not first | bucket    ]
/// ```
///
/// - next: the next younger entry of the group; the youngest points to the oldest.
/// - prev: the next older entry of the group; the oldest points to the youngest.
/// - chain: of the oldest: the oldest of the next group in the bucket, itself at the
///   end.
/// - not oldest: of all but the oldest of a group. The others have a bucket, and are
///   not first unless the bucket points to them.
///
/// Slot numbers are held as what they differ in from the entry's own (exclusive or),
/// so that the links of an entry alone in its bucket are just the bucket's number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link(u64);

impl Link {
    const BUCKET_BITS: u32 = 14;
    /// Buckets an index has at most.
    pub(crate) const BUCKETS: usize = 1 << Self::BUCKET_BITS;
    const NOT_FIRST: u64 = 1 << 14;
    const NOT_OLDEST: u64 = 1 << 15;
    const NEXT: u32 = 16;
    const PREV: u32 = 32;
    const CHAIN: u32 = 48;

    /// Of the only entry in a bucket.
    #[inline(always)]
    pub(crate) const fn alone(bucket: usize) -> Self {
        debug_assert!(bucket < Self::BUCKETS);
        Self(bucket as u64)
    }

    /// The bucket of an entry alone in it.
    #[inline(always)]
    pub(crate) const fn bucket_alone(self) -> Option<usize> {
        if self.0 < Self::BUCKETS as u64 { Some(self.0 as usize) } else { None }
    }

    /// Of a younger entry of a group.
    pub(crate) const fn younger(id: u16, next: u16, prev: u16) -> Self {
        let (next, prev) = ((id ^ next) as u64, (id ^ prev) as u64);
        Self(Self::NOT_OLDEST | next << Self::NEXT | prev << Self::PREV)
    }

    const fn with(self, shift: u32, id: u16, other: u16) -> Self {
        Self(self.0 & !(0xffff << shift) | ((id ^ other) as u64) << shift)
    }

    const fn get(self, shift: u32, id: u16) -> u16 {
        (self.0 >> shift) as u16 ^ id
    }

    pub(crate) const fn next(self, id: u16) -> u16 {
        self.get(Self::NEXT, id)
    }

    pub(crate) const fn prev(self, id: u16) -> u16 {
        self.get(Self::PREV, id)
    }

    #[inline(always)]
    pub(crate) const fn chain(self, id: u16) -> u16 {
        self.get(Self::CHAIN, id)
    }

    pub(crate) const fn with_next(self, id: u16, next: u16) -> Self {
        self.with(Self::NEXT, id, next)
    }

    pub(crate) const fn with_prev(self, id: u16, prev: u16) -> Self {
        self.with(Self::PREV, id, prev)
    }

    pub(crate) const fn with_chain(self, id: u16, chain: u16) -> Self {
        self.with(Self::CHAIN, id, chain)
    }

    /// The same, said to be the first of its bucket or not.
    pub(crate) const fn with_first(self, first: bool) -> Self {
        Self(if first { self.0 & !Self::NOT_FIRST } else { self.0 | Self::NOT_FIRST })
    }

    /// The same, as the oldest of its group, with the bucket of another.
    pub(crate) const fn with_bucket_of(self, other: Self) -> Self {
        let bucket = (Self::BUCKETS as u64 - 1) | Self::NOT_FIRST | Self::NOT_OLDEST;
        Self(self.0 & !bucket | other.0 & bucket)
    }

    pub(crate) const fn is_first(self) -> bool {
        self.0 & Self::NOT_FIRST == 0
    }

    pub(crate) const fn is_oldest(self) -> bool {
        self.0 & Self::NOT_OLDEST == 0
    }

    pub(crate) const fn bucket(self) -> usize {
        self.0 as usize & (Self::BUCKETS - 1)
    }
}

impl Slot {
    pub(crate) const EMPTY: Self = Self {
        bits: 0,
        ignore: 0,
        source: 0,
        token: 0,
        stamp: Stamp::NONE,
        home: Link::alone(0),
        wild: [Link::alone(0); WILD],
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
