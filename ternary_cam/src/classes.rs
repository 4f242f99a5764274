// SPDX-License-Identifier: BSD-2-Clause
//! The patterns of wildcards among the entries: an MPI has four at most (exact,
//! any tag, any source, both), an arbitrary program as many as entries.
//!
//! MPIs also ignore a few bits of their own in every receive: MPICH and Open MPI the
//! ones that tell a synchronous send. Entries that ignore just these, the *base*,
//! are as good as exact and have class [`EXACT`].

use crate::age_log::Bits;
use crate::pattern::{EXACT, Pattern};

/// Classes that are hashed; each one live costs a search a probe. Entries of further
/// patterns go to the scan.
const CLASSES: usize = 6;

/// Room for classes, a power of two: an index is bounded by a mask.
const ROOM: usize = 8;

/// Class of entries whose pattern is not hashed.
pub(crate) const UNCLASSED: u8 = 15;

/// The patterns of the entries that have wildcards.
pub(crate) struct Classes {
    patterns: [Pattern; ROOM],
    /// Entries of each class; those of [`EXACT`] are not counted.
    len: [u32; ROOM],
    /// Bit `i`: class `i` has entries.
    live: u32,
    /// Entries with wildcards that have a class.
    wild: u32,
}

impl Classes {
    pub(crate) fn new() -> Self {
        Self { patterns: [Pattern::EXACT; ROOM], len: [0; ROOM], live: 0, wild: 0 }
    }

    /// Counts an entry in and returns its class, [`UNCLASSED`] if there are too many
    /// others.
    #[inline(always)]
    pub(crate) fn enter(&mut self, ignore: u64, any_source: bool) -> u8 {
        if ignore == self.base() && !any_source {
            return EXACT;
        }
        for class in Bits(self.live.into()) {
            if self.patterns[class % ROOM].has(ignore, any_source) {
                self.len[class % ROOM] += 1;
                self.wild += 1;
                return class as u8;
            }
        }
        self.make(ignore, any_source)
    }

    /// Bits that exact entries ignore.
    #[inline(always)]
    pub(crate) fn base(&self) -> u64 {
        self.patterns[usize::from(EXACT)].ignore()
    }

    /// Sets the base; there must be no entry.
    pub(crate) fn set_base(&mut self, ignore: u64) {
        self.patterns[usize::from(EXACT)] = Pattern::of_entries(ignore, false, EXACT);
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
        self.wild += 1;
        class as u8
    }

    /// Counts an entry that has a class out.
    #[inline(always)]
    pub(crate) fn leave(&mut self, class: u8) {
        if class == EXACT {
            return;
        }
        let len = &mut self.len[usize::from(class) % ROOM];
        *len -= 1;
        self.wild -= 1;
        if *len == 0 {
            self.live &= !(1 << class);
        }
    }

    #[inline]
    pub(crate) fn pattern(&self, class: u8) -> &Pattern {
        &self.patterns[usize::from(class) % ROOM]
    }

    /// The patterns that have entries, given that there are `len` in all classes.
    #[inline(always)]
    pub(crate) fn live(&self, len: usize) -> impl Iterator<Item = &Pattern> + '_ {
        let exact = u32::from(self.wild() < len) << EXACT;
        Bits(u64::from(self.live | exact)).map(|class| &self.patterns[class % ROOM])
    }

    /// Entries with wildcards, as far as they are classed.
    #[inline]
    pub(crate) fn wild(&self) -> usize {
        self.wild as usize
    }
}
