// SPDX-License-Identifier: BSD-2-Clause
//! The interface of a competitor: keep entries, and find the oldest that matches a key.

use ternary_cam::{Entry, Key, Table};

/// A matching structure under test.
pub(crate) trait Matcher {
    /// Adds the youngest entry.
    fn insert(&mut self, entry: Entry);

    /// Removes the oldest entry that matches and returns its token; `None` if no entry matches.
    fn take(&mut self, key: &Key) -> Option<u32>;

    /// Returns the token of the oldest entry that matches; `None` if no entry matches.
    fn find(&self, key: &Key) -> Option<u32>;
}

impl Matcher for Table {
    #[inline(always)]
    fn insert(&mut self, entry: Entry) {
        Table::insert(self, entry).expect("streams never hold more than the capacity");
    }

    #[inline(always)]
    fn take(&mut self, key: &Key) -> Option<u32> {
        let hit = self.first_match(key)?;
        self.remove(hit.handle);
        Some(hit.token)
    }

    #[inline(always)]
    fn find(&self, key: &Key) -> Option<u32> {
        self.first_match(key).map(|hit| hit.token)
    }
}
