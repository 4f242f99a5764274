// SPDX-License-Identifier: BSD-2-Clause
//! Side indexes (secondary indexes): copies of the base entries for keys that the home index does
//! not serve.

use crate::deep::keep::Keep;
use crate::deep::pattern::Pattern;
use crate::deep::rings::Rings;
use crate::entry::Key;
use crate::slot::Slot;
use crate::wildcards::Wildcards;

/// Maximum number of side indexes; a power of two.
pub(super) const SIDE_INDEXES: usize = 4;

/// An index for one kind of keys.
pub(super) struct SideIndex {
    /// The keys that it serves; `None` while it is not kept up.
    pub(super) keys: Option<Wildcards>,
    pub(super) pattern: Pattern,
    pub(super) rings: Rings,
    pub(super) keep: Keep,
}

impl SideIndex {
    /// Creates an index that is not kept up.
    pub(super) fn new() -> Self {
        let (pattern, rings) = (Pattern::EXACT, Rings::new());
        Self { keys: None, pattern, rings, keep: Keep::default() }
    }

    /// The oldest match of one of its keys, if all entries are exact.
    #[inline(always)]
    pub(super) fn first<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        self.keep.note_use();
        self.rings.first_for(slots, &self.pattern, key)
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, slots: &[Slot], id: u16) {
        self.rings.insert(slots, &self.pattern, id);
    }
}
