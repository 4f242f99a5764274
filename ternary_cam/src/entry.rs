// SPDX-License-Identifier: BSD-2-Clause
//! Entries, keys and sources: the stored patterns and the search keys.

/// The source that a receive names or a message comes from, or any source.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source(pub(crate) u32);

impl Source {
    /// Matches every source.
    pub const ANY: Self = Self(u32::MAX);

    /// Returns the source with this peer number. The number must not be `u32::MAX`, which is
    /// [`Source::ANY`]; only debug builds check this.
    #[inline]
    #[must_use]
    pub const fn new(peer: u32) -> Self {
        debug_assert!(peer != u32::MAX, "u32::MAX means any source");
        Self(peer)
    }

    /// Returns true if this is [`Source::ANY`].
    #[inline]
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.0 == Self::ANY.0
    }

    /// Returns the peer number; `None` for [`Source::ANY`].
    #[inline]
    #[must_use]
    pub const fn get(self) -> Option<u32> {
        if self.is_any() { None } else { Some(self.0) }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() {
            Some(peer) => write!(f, "Source({peer})"),
            None => f.write_str("Source::ANY"),
        }
    }
}

/// An entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Match bits.
    pub bits: u64,
    /// Ignore bits: positions set here are not compared.
    pub ignore: u64,
    /// The source, or [`Source::ANY`].
    pub source: Source,
    /// An identifier chosen by the caller; the table only returns it.
    pub token: u32,
}

/// A search key. An arrival has no ignore bits and names its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Match bits.
    pub bits: u64,
    /// Ignore bits: positions set here are not compared.
    pub ignore: u64,
    /// The source, or [`Source::ANY`].
    pub source: Source,
}

impl Entry {
    /// Returns true if the entry matches the key. This is the definition of a match. The faster
    /// comparisons, which apply only to some entries and keys, are tested against it.
    #[inline]
    #[must_use]
    pub const fn matches(&self, key: &Key) -> bool {
        (self.bits ^ key.bits) & !(self.ignore | key.ignore) == 0
            && (self.source.0 == key.source.0 || self.source.is_any() || key.source.is_any())
    }
}

impl Key {
    /// Returns true if the key has no wildcards.
    #[inline(always)]
    pub(crate) const fn is_exact(&self) -> bool {
        self.ignore == 0 && !self.source.is_any()
    }
}
