// SPDX-License-Identifier: BSD-2-Clause
//! What a competitor can do: keep entries, find the oldest that matches a key.

use ternary_cam::{Cam, Entry, Key, Table};

/// A matching structure under test.
pub(crate) trait Matcher {
    /// Adds the youngest entry.
    fn insert(&mut self, entry: Entry);

    /// Takes the oldest entry that matches out and returns its token.
    fn take(&mut self, key: &Key) -> Option<u32>;

    /// Token of the oldest entry that matches.
    fn find(&self, key: &Key) -> Option<u32>;
}

/// Both tables have the same functions.
macro_rules! matcher {
    ($table:ty) => {
        impl Matcher for $table {
            #[inline(always)]
            fn insert(&mut self, entry: Entry) {
                <$table>::insert(self, entry).expect("streams never hold more than the capacity");
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
    };
}

matcher!(Table);
matcher!(Cam);
