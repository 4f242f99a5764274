// SPDX-License-Identifier: BSD-2-Clause
//! The home index, and which keys it serves.
//!
//! ```text
//! keys of one kind                         an index under their pattern
//! those that name a source and those       an index that does not compare sources, unless keys
//!     that do not, with the same bits      with a source pass too many entries of others there
//! of other kinds                           the most used ones; the others have side indexes
//! ```

mod serve;

use crate::deep::index::Index;
use crate::deep::keep::Keep;
use crate::deep::pattern::Pattern;
use crate::wildcards::Wildcards;

/// Entries that searches may pass in the home index for each insert: to serve some of the keys
/// in a side index costs as much.
const WALK_PER_INSERT: usize = 2;

/// And beyond that, for each entry: many may be searched for between two inserts.
const WALK_PER_ENTRY: usize = 8;

/// The home index: base entries under the pattern of its keys, others under that of their class.
/// What every operation loads comes first, in one line of the cache.
#[repr(C, align(64))]
pub(super) struct Home {
    pub(super) keys: Wildcards,
    /// Of base entries under these keys.
    pub(super) pattern: Pattern,
    pub(super) index: Index,
    pub(super) keep: Keep,
    /// For keys that name no source.
    keep_any_source: Keep,
    /// Entries that searches may pass.
    walk_budget: u32,
    /// Ticks for which it is still split: does not serve keys without a source beside its own.
    split: u32,
    /// How often that was doubled.
    doublings: u32,
    /// Ticks there were.
    ticks: u32,
}

impl Home {
    /// For exact keys.
    pub(super) fn new() -> Self {
        Self {
            keys: Wildcards::NONE,
            pattern: Pattern::EXACT,
            index: Index::new(),
            keep: Keep::awake(),
            keep_any_source: Keep::default(),
            walk_budget: 0,
            split: 0,
            doublings: 0,
            ticks: 0,
        }
    }

    /// Whether it may serve these keys, which name no source, beside its own.
    pub(super) fn may_serve(&self, keys: Wildcards) -> bool {
        self.split == 0 && keys.any_source && self.keys == keys.with_source()
    }

    /// Notes a search with its own keys, not those with a source beside them.
    #[inline(always)]
    pub(super) fn note_use(&self) {
        self.keep.note_use();
        self.keep_any_source.note_use();
    }

    /// Sets the budget for a table of at most so many entries.
    const fn set_walk_budget(&mut self, entries: usize) {
        self.walk_budget = (WALK_PER_ENTRY * entries) as u32;
    }

    /// Whether searches passed so many entries that it should be split.
    #[inline(always)]
    pub(super) fn is_walked_too_far(&self) -> bool {
        self.index.walked() > self.walk_budget
    }
}
