// SPDX-License-Identifier: BSD-2-Clause
//! Secondary indexes: further hash tables of the base entries, for keys that the primary index does
//! not serve.

use crate::entry::Key;
use crate::index::bucket_lists::BucketLists;
use crate::index::idle_timeout::IdleTimeout;
use crate::index::pattern::Pattern;
use crate::slot::Slot;
use crate::wildcards::Wildcards;

/// Maximum number of secondary indexes; a power of two.
pub(super) const SECONDARY_INDEXES: usize = 4;

/// An index for one kind of keys.
pub(super) struct SecondaryIndex {
    /// The keys that the index serves; `None` while it is not maintained.
    pub(super) keys: Option<Wildcards>,
    pub(super) pattern: Pattern,
    pub(super) lists: BucketLists,
    pub(super) timeout: IdleTimeout,
}

impl SecondaryIndex {
    /// Creates an index that is not maintained.
    pub(super) fn new() -> Self {
        let (pattern, lists) = (Pattern::EXACT, BucketLists::new());
        Self { keys: None, pattern, lists, timeout: IdleTimeout::default() }
    }

    /// Returns the oldest entry that matches a key of the kind `keys`; `None` if no entry matches.
    /// All entries must be exact.
    #[inline(always)]
    pub(super) fn first<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        self.timeout.note_use();
        self.lists.first_for(slots, &self.pattern, key)
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, slots: &[Slot], id: u16) {
        self.lists.insert(slots, &self.pattern, id);
    }
}
