// SPDX-License-Identifier: BSD-2-Clause
//! The patterns of wildcards among the entries: an MPI has four at most (exact,
//! any tag, any source, both), an arbitrary program as many as entries.

use crate::age_log::Bits;
use crate::pattern::Pattern;

/// Patterns that are hashed; each one live costs a search a probe. Entries of
/// further patterns go to the scan.
const CLASSES: usize = 8;

/// Class of entries without wildcards.
pub(crate) const EXACT: u8 = 0;

/// Class of entries whose pattern is not hashed.
pub(crate) const UNCLASSED: u8 = 15;

/// The patterns of the entries that have wildcards.
pub(crate) struct Classes {
    patterns: [Pattern; CLASSES],
    /// Entries of each class; those of [`EXACT`] are not counted.
    len: [u32; CLASSES],
    /// Bit `i`: class `i` has entries.
    live: u32,
}

impl Classes {
    pub(crate) fn new() -> Self {
        Self { patterns: [Pattern::EXACT; CLASSES], len: [0; CLASSES], live: 0 }
    }

    /// Counts an entry with wildcards in and returns its class, [`UNCLASSED`] if
    /// there are too many others.
    #[inline]
    pub(crate) fn enter(&mut self, ignore: u64, any_source: bool) -> u8 {
        for class in Bits(self.live.into()) {
            if self.patterns[class % CLASSES].has(ignore, any_source) {
                self.len[class % CLASSES] += 1;
                return class as u8;
            }
        }
        self.make(ignore, any_source)
    }

    /// Makes a class for one entry.
    #[cold]
    fn make(&mut self, ignore: u64, any_source: bool) -> u8 {
        let Some(class) = (1..CLASSES).find(|&class| self.len[class] == 0) else {
            return UNCLASSED;
        };
        self.patterns[class] = Pattern::of_entries(ignore, any_source, class as u8);
        self.len[class] = 1;
        self.live |= 1 << class;
        class as u8
    }

    /// Counts an entry with wildcards out.
    #[inline]
    pub(crate) fn leave(&mut self, class: u8) {
        let len = &mut self.len[usize::from(class)];
        *len -= 1;
        if *len == 0 {
            self.live &= !(1 << class);
        }
    }

    #[inline]
    pub(crate) fn pattern(&self, class: u8) -> &Pattern {
        &self.patterns[usize::from(class)]
    }

    /// The patterns with wildcards that have entries.
    #[inline]
    pub(crate) fn live(&self) -> impl Iterator<Item = &Pattern> + '_ {
        Bits(self.live.into()).map(|class| &self.patterns[class % CLASSES])
    }

    /// Whether no entry has wildcards, as far as they are classed.
    #[inline]
    pub(crate) fn are_exact(&self) -> bool {
        self.live == 0
    }
}
