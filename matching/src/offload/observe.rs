// SPDX-License-Identifier: BSD-2-Clause
//! What is looked at beside a search: how deep it went, and what it costs on the
//! modelled device.

use super::{Found, Location, Offload};
use crate::Key;
use crate::engine::Engine;

impl Offload {
    /// The oldest element that matches, not counted as a search but charged as one.
    pub fn peek(&mut self, key: &Key) -> Option<Found> {
        let found = self.find(key);
        self.charge(key, found);
        found
    }

    #[cold]
    pub(super) fn observe(&mut self, key: &Key, found: Option<Found>) {
        if self.depths {
            self.record_depth(found);
        }
        self.charge(key, found);
    }

    /// Charges the search that found this, if the timing model is on.
    fn charge(&mut self, key: &Key, found: Option<Found>) {
        let Some(timing) = &self.timing else { return };
        let counts = timing.costs.host_entry > 0;
        let host =
            self.searches_host(found).then(|| if counts { self.compared(key, found) } else { 0 });
        self.counters.modelled.charge(timing, self.table.capacity() > 0, host);
    }

    /// Whether the search that found this looked at the host: nothing in the table
    /// matches, or something on the host is older.
    fn searches_host(&self, found: Option<Found>) -> bool {
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

    fn record_depth(&mut self, found: Option<Found>) {
        let Some(found) = found else {
            let all = self.len() as u64;
            self.counters.search_depth.miss.record(all);
            return;
        };
        let depth = match self.locations[found.token as usize] {
            Location::Table { handle, .. } => self.table.depth(handle),
            Location::Host { handle, .. } => self.table.len() + self.host.depth(handle),
            Location::Nowhere => unreachable!("a live element has a place"),
        };
        self.counters.search_depth.hit.record(depth as u64);
    }
}
