// SPDX-License-Identifier: BSD-2-Clause
//! The primary index, which contains every entry that has a class (lib.rs). The kinds of keys that
//! searches use determine which keys it serves:
//!
//! ```text
//! keys of one kind                         an index under their pattern
//! keys with and keys without a source,     an index that does not compare sources, unless
//!     which ignore the same bits           searches with a source pass too many entries there
//! keys of other kinds                      an index for the most used kind; the other kinds have
//!                                          secondary indexes
//! ```

use crate::index::buckets::Buckets;
use crate::index::idle_timeout::IdleTimeout;
use crate::index::pattern::Pattern;
use crate::wildcards::Wildcards;

/// Number of entries without a match that searches may pass in the primary index per insert.
/// Serving some of the keys in a secondary index instead would cost as much.
pub(super) const PASSES_PER_INSERT: usize = 2;

/// Number of entries that searches may pass in addition, per entry of the table, because there may
/// be many searches between two inserts.
const PASSES_PER_ENTRY: usize = 8;

/// The primary index: base entries under the pattern of `keys`, other entries under the pattern of
/// their class. The fields that every operation loads come first, in one cache line.
#[repr(C, align(64))]
pub(super) struct PrimaryIndex {
    pub(super) keys: Wildcards,
    /// Pattern of base entries under these keys.
    pub(super) pattern: Pattern,
    pub(super) buckets: Buckets,
    pub(super) timeout: IdleTimeout,
    /// Timeout for keys without a source.
    pub(super) timeout_any_source: IdleTimeout,
    /// Value of [`Buckets::passed`] beyond which the index should be split.
    pass_budget: u32,
    /// Number of further ticks for which the index stays split, that is, does not also serve keys
    /// without a source.
    pub(super) split: u32,
    /// How often the time of a split was doubled.
    pub(super) doublings: u32,
    /// Number of ticks.
    pub(super) ticks: u32,
}

impl PrimaryIndex {
    /// Creates an index for exact keys.
    pub(super) fn new() -> Self {
        Self {
            keys: Wildcards::NONE,
            pattern: Pattern::EXACT,
            buckets: Buckets::new(),
            timeout: IdleTimeout::active(),
            timeout_any_source: IdleTimeout::default(),
            pass_budget: 0,
            split: 0,
            doublings: 0,
            ticks: 0,
        }
    }

    /// Returns true if the index may serve these keys without a source in addition to its own keys.
    pub(super) fn may_serve(&self, keys: Wildcards) -> bool {
        self.split == 0 && keys.any_source && self.keys == keys.with_source()
    }

    /// Notes a search with a key of exactly the kind `keys`.
    #[inline(always)]
    pub(super) fn note_use(&self) {
        self.timeout.note_use();
        self.timeout_any_source.note_use();
    }

    /// Sets the budget for a table of at most this many entries.
    pub(super) const fn set_pass_budget(&mut self, entries: usize) {
        self.pass_budget = (PASSES_PER_ENTRY * entries) as u32;
    }

    /// Returns true if searches passed more entries than the budget allows: the index should be
    /// split.
    #[inline(always)]
    pub(super) fn should_split(&self) -> bool {
        self.buckets.passed() > self.pass_budget
    }
}

#[cfg(test)]
#[path = "primary_tests.rs"]
mod tests;
