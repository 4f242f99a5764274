// SPDX-License-Identifier: BSD-2-Clause
//! Searches for the oldest element that matches, in table and host.

use ternary_cam::Hit;

use super::{Found, Location, Offload, Place};
use crate::Key;
use crate::engine::Engine;

impl Offload {
    /// Returns the oldest element that matches, and counts a match. Before any other call that
    /// changes the queue, the caller must call [`Offload::remove_matched`] or
    /// [`Offload::keep_matched`]; otherwise the match counts as kept.
    #[inline(always)]
    pub fn search(&mut self, key: &Key) -> Option<Found> {
        self.settle();
        let found = if self.observed { self.find_observed(key) } else { self.find_counted(key) };
        self.count_search(key, found);
        self.matched = found;
        found
    }

    /// [`Offload::search`], but faster if the queue is empty, as that of unexpected messages mostly
    /// is.
    #[inline(always)]
    pub fn search_if_any(&mut self, key: &Key) -> Option<Found> {
        if !self.is_empty() || self.observed {
            return self.search(key);
        }
        self.settle();
        if self.depths {
            self.note_depths(key, None);
        }
        self.count_search(key, None);
        None
    }

    /// Repeats an [`Offload::search`] that found nothing, after elements were added of which one
    /// matches. Both count as one search; the entries that the first one compared stay counted.
    #[cold]
    pub fn search_on(&mut self, key: &Key) -> Option<Found> {
        let collective = self.classifier.is_collective(key.bits, key.ignore);
        let counters = self.counters.kinds.of_mut(collective);
        counters.searches -= 1;
        counters.misses -= 1;
        self.search(key)
    }

    #[inline(always)]
    fn count_search(&mut self, key: &Key, found: Option<Found>) {
        let collective = self.classifier.is_collective(key.bits, key.ignore);
        let counters = self.counters.kinds.of_mut(collective);
        counters.searches += 1;
        match found {
            Some(Found { place: Place::Table, .. }) => counters.table_matches += 1,
            Some(Found { place: Place::Host, .. }) => counters.host_matches += 1,
            None => counters.misses += 1,
        }
    }

    /// Returns the oldest element that matches, without counting or charging.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &Key) -> Option<Found> {
        self.find_behind(self.table.first_match(key), key)
    }

    /// [`Offload::find`] if the table is the index.
    #[inline(always)]
    pub(super) fn find_in_index(&self, key: &Key) -> Option<Found> {
        self.find_behind(self.table.index.first_match(key), key)
    }

    /// The oldest element that matches, given the result of the table.
    #[inline(always)]
    pub(super) fn find_behind(&self, hit: Option<Hit>, key: &Key) -> Option<Found> {
        let Some(hit) = hit else {
            if self.on_host() == 0 {
                return None;
            }
            self.note_host_search(key);
            let token = self.host.first_token(key)?;
            return Some(Found { token, place: Place::Host });
        };
        let found = Found { token: hit.token, place: Place::Table };
        if self.on_host() == 0 {
            return Some(found);
        }
        let Some(oldest) = self.host.oldest() else { return Some(found) };
        let Location::Table { age, .. } = self.locations[hit.token as usize] else {
            unreachable!("the table's elements have a place in the table");
        };
        if age < oldest.age {
            return Some(found);
        }
        self.note_host_search(key);
        match self.host.first_match(key) {
            Some(host) if host.age < age => Some(Found { token: host.token, place: Place::Host }),
            _ => Some(found),
        }
    }

    #[inline(always)]
    fn note_host_search(&self, key: &Key) {
        if let Some(chooser) = &self.chooser {
            chooser.note_search(key);
        }
    }
}
