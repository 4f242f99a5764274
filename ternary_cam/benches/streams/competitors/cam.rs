// SPDX-License-Identifier: BSD-2-Clause
//! The CAM of this crate, which compares every entry.

use crate::matcher::Matcher;
use ternary_cam::{Cam, Entry, Key};

impl Matcher for Cam {
    #[inline(always)]
    fn insert(&mut self, entry: Entry) {
        Self::insert(self, entry).expect("streams never hold more than the capacity");
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
