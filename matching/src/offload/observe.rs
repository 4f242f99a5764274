// SPDX-License-Identifier: BSD-2-Clause
//! Statistics of searches: their depth, and their cost on the modelled device.

use super::{Found, Location, Offload, Place};
use crate::Key;
use crate::engine::Engine;
use crate::sums::add;

impl Offload {
    /// Returns the oldest element that matches. It is charged as a search, but not counted as one.
    pub fn peek(&mut self, key: &Key) -> Option<Found> {
        let found = self.find_measured(key);
        if self.curve.is_some() {
            let depth = found.and_then(|found| self.depth(found.token));
            let at = depth.unwrap_or(self.len());
            if let Some(curve) = &mut self.curve {
                curve.peeked(at);
            }
        }
        self.note_work(key, found);
        found
    }

    /// [`Offload::find`] in the index, and counts its depth.
    #[inline(always)]
    pub(super) fn find_counted(&mut self, key: &Key) -> Option<Found> {
        let found = self.find_in_index(key);
        if self.depths {
            self.note_depths(key, found);
        }
        found
    }

    /// Counts the depth of a search with this result, and its traversals on the host.
    #[inline]
    pub(super) fn note_depths(&mut self, key: &Key, found: Option<Found>) {
        self.note_depth(found);
        if self.on_host() > 0 {
            self.note_work(key, found);
        }
    }

    #[inline]
    fn note_depth(&mut self, found: Option<Found>) {
        match found.and_then(|found| self.depth(found.token)) {
            Some(depth) => {
                let depths = &mut self.counters.search_depth;
                depths.hit.record(depth as u64);
                depths.hit_entries += depth as u64;
            }
            None => {
                let len = self.len() as u64;
                let depths = &mut self.counters.search_depth;
                depths.miss.record(len);
                depths.miss_entries += len;
            }
        }
    }

    /// Counts the traversals on the host of a search with this result, if it went there, and
    /// charges the search. Does each only if it is enabled.
    #[cold]
    fn note_work(&mut self, key: &Key, found: Option<Found>) {
        if !self.depths && self.timing.is_none() {
            return;
        }
        let host = self.searches_host(found).then(|| self.host.traversed(key));
        if let (true, Some(entries)) = (self.depths, host) {
            let in_a_list = self.compared(key, found);
            let traversals = &mut self.counters.traversals;
            let (histogram, profile) = match found {
                Some(Found { place: Place::Host, .. }) => {
                    (&mut traversals.hit, &mut traversals.found)
                }
                _ => (&mut traversals.miss, &mut traversals.not_found),
            };
            histogram.record(entries);
            profile.record(entries);
            add(&mut traversals.entries, entries);
            add(&mut traversals.in_a_list, in_a_list);
        }
        if let Some(timing) = &self.timing {
            self.counters.modelled.charge(timing, self.table.capacity() > 0, host);
        }
    }

    /// [`Offload::find`] with all statistics.
    #[cold]
    pub(super) fn find_observed(&mut self, key: &Key) -> Option<Found> {
        let found = self.find_measured(key);
        if self.curve.is_some() {
            let depth = found.and_then(|found| self.depth(found.token));
            let len = self.len();
            let collective = self.classifier.is_collective(key.bits, key.ignore);
            if let Some(curve) = &mut self.curve {
                match depth {
                    Some(depth) => curve.matched(depth, collective),
                    None => curve.missed(len),
                }
            }
        }
        if self.depths {
            self.note_depth(found);
        }
        self.note_work(key, found);
        found
    }

    #[cold]
    pub(super) fn observe_insert(&mut self, collective: bool) {
        let len = self.len();
        if let Some(curve) = &mut self.curve {
            curve.insert(len, collective);
        }
    }

    #[cold]
    pub(super) fn observe_cancel(&mut self, token: u32) {
        if self.curve.is_some()
            && let (Some(depth), Some(curve)) = (self.depth(token), &mut self.curve)
        {
            curve.cancel(depth);
        }
    }

    #[cold]
    pub(super) fn observe_departure(&mut self, token: u32) {
        if self.curve.is_none() {
            return;
        }
        let (depth, len) = (self.depth(token), self.len());
        if let (Some(depth), Some(curve)) = (depth, &mut self.curve) {
            curve.leave(depth, len);
        }
    }

    /// Returns true if a search with this result went to the host: no element in the table matches,
    /// or an element on the host is older.
    pub(super) fn searches_host(&self, found: Option<Found>) -> bool {
        let Some(oldest) = self.host.oldest() else { return false };
        match found.map(|found| self.locations[found.token as usize]) {
            Some(Location::Table { age, .. }) => oldest.age < age,
            _ => true,
        }
    }

    /// Entries that a linear search on the host compares.
    fn compared(&self, key: &Key, found: Option<Found>) -> u64 {
        let hit = match found.map(|found| self.locations[found.token as usize]) {
            Some(Location::Host { handle, .. }) => Some(handle),
            None => None,
            Some(_) => self.host.first_match(key).map(|hit| hit.handle),
        };
        hit.map_or(self.host.len(), |handle| self.host.depth(handle)) as u64
    }

    /// Entries that a linear search of table and host compares to reach an element.
    #[inline]
    fn depth(&self, token: u32) -> Option<usize> {
        match *self.locations.get(token as usize)? {
            Location::Table { handle, .. } => Some(self.table.depth(handle)),
            Location::Host { handle, .. } => Some(self.table.len() + self.host.depth(handle)),
            Location::Nowhere => None,
        }
    }
}
