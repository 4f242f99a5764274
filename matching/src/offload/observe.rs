// SPDX-License-Identifier: BSD-2-Clause
//! Counters of a queue, statistics of searches, and measured times.

use ternary_cam::{Full, Handle};

use super::{Found, Location, Offload, Place};
use crate::counters::{ByKind, QueueCounters, Tallies};
use crate::engine::{Host, HostHandle};
use crate::measured::Watch;
use crate::sums::add;
use crate::{Element, Key};

/// Statistics of searches: their depth, and their cost on the modelled device.
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

    /// Like [`Offload::find`], but only for a table that is the index. Counts the search depth.
    #[inline(always)]
    pub(super) fn find_counted(&mut self, key: &Key) -> Option<Found> {
        let found = self.find_behind(self.table.index.first_match(key), key);
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

    /// Counts the traversals of a search with this result if it went to the host, and charges the
    /// search to the timing model. Each part is done only if it is enabled.
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

    /// Number of entries that a linear search on the host compares.
    fn compared(&self, key: &Key, found: Option<Found>) -> u64 {
        let hit = match found.map(|found| self.locations[found.token as usize]) {
            Some(Location::Host { handle, .. }) => Some(handle),
            None => None,
            Some(_) => self.host.first_match(key).map(|hit| hit.handle),
        };
        hit.map_or(self.host.len(), |handle| self.host.depth(handle)) as u64
    }

    /// Number of entries that a linear search of the table and then of the host compares to reach
    /// an element; `None` if no element has this token.
    #[inline]
    fn depth(&self, token: u32) -> Option<usize> {
        match *self.locations.get(token as usize)? {
            Location::Table { handle, .. } => Some(self.table.depth(handle)),
            Location::Host { handle, .. } => Some(self.table.len() + self.host.depth(handle)),
            Location::Nowhere => None,
        }
    }
}

/// Operations on the table and on the host, measured if there is a clock. Without one, the check
/// costs a predicted branch per operation; so does the check for the CAM.
impl Offload {
    /// Runs `work`. Returns its result and its time in nanoseconds (0 without a clock).
    fn measure<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, u64) {
        let start = self.watch.as_ref().map_or(0, Watch::now);
        let result = work(self);
        let ns = self.watch.as_ref().map_or(0, |watch| watch.between(start, watch.now()));
        (result, ns)
    }

    /// [`Offload::find`] for an operation, measured if there is a clock.
    pub(super) fn find_measured(&mut self, key: &Key) -> Option<Found> {
        if self.watch.is_some() {
            self.find_in_parts(key)
        } else {
            self.find_behind(self.table.first_match(key), key)
        }
    }

    #[cold]
    fn find_in_parts(&mut self, key: &Key) -> Option<Found> {
        let (hit, ns) = self.measure(|queue| queue.table.first_match(key));
        if self.table.capacity() > 0 {
            self.counters.measured.search.table.add(ns);
        }
        let (found, ns) = self.measure(|queue| queue.find_behind(hit, key));
        if self.searches_host(found) {
            self.counters.measured.search.host.add(ns);
        }
        found
    }

    #[inline]
    pub(super) fn insert_in_table(&mut self, element: Element) -> Result<Handle, Full> {
        if self.indirect_table {
            self.insert_indirect(element)
        } else {
            self.table.index.insert(element)
        }
    }

    #[cold]
    fn insert_indirect(&mut self, element: Element) -> Result<Handle, Full> {
        if self.watch.is_none() {
            return self.table.insert(element);
        }
        let (inserted, ns) = self.measure(|queue| queue.table.insert(element));
        if inserted.is_ok() {
            self.counters.measured.insert.table.add(ns);
        }
        inserted
    }

    #[inline]
    pub(super) fn remove_from_table(&mut self, handle: Handle) {
        if self.indirect_table {
            self.remove_indirect(handle);
        } else {
            self.table.index.remove(handle);
        }
    }

    #[cold]
    fn remove_indirect(&mut self, handle: Handle) {
        if self.watch.is_none() {
            return self.table.remove(handle);
        }
        let (_, ns) = self.measure(|queue| queue.table.remove(handle));
        self.counters.measured.remove.table.add(ns);
    }

    #[inline]
    pub(super) fn insert_on_host(&mut self, element: Element, age: u64) -> HostHandle {
        if matches!(self.host, Host::Unused) {
            self.host = self.plan.make();
        }
        if self.watch.is_none() {
            self.host.insert(element, age)
        } else {
            self.time_insert_on_host(element, age)
        }
    }

    #[cold]
    fn time_insert_on_host(&mut self, element: Element, age: u64) -> HostHandle {
        let queues = self.host.dedicated();
        let (handle, ns) = self.measure(|queue| queue.host.insert(element, age));
        self.counters.measured.insert.host.add(ns);
        if self.host.dedicated() != queues {
            self.counters.measured.dedicate.add(ns);
        }
        handle
    }

    #[inline]
    pub(super) fn remove_from_host(&mut self, handle: HostHandle) {
        if self.watch.is_none() {
            self.host.remove(handle);
        } else {
            self.time_remove_from_host(handle);
        }
    }

    #[cold]
    fn time_remove_from_host(&mut self, handle: HostHandle) {
        let ((), ns) = self.measure(|queue| queue.host.remove(handle));
        self.counters.measured.remove.host.add(ns);
    }
}

/// Counters and contents.
impl Offload {
    /// The counters of the queue, with its current occupancy.
    #[must_use]
    pub fn counters(&self) -> QueueCounters {
        let (collective, point_to_point) = self.host.dedicated();
        let [of_collective, of_point_to_point] = self.host.levels();
        let kept = |place| u64::from(self.matched.is_some_and(|found| found.place == place));
        QueueCounters {
            table_kept: self.counters.table_kept + kept(Place::Table),
            host_kept: self.counters.host_kept + kept(Place::Host),
            table_occupancy: self.table.len() as u64,
            host_occupancy: self.host.len() as u64,
            dedicated_collective: collective as u64,
            dedicated_point_to_point: point_to_point as u64,
            unclustered: self.host.unclustered(),
            added: self.sources.as_ref().map_or_else(Vec::new, |sources| sources.added()),
            dedicated_levels: ByKind {
                collective: of_collective,
                point_to_point: of_point_to_point,
            },
            ..self.counters.clone()
        }
        .with_sums_of_kinds()
    }

    /// Returns a few counters that can be read without allocating memory.
    #[must_use]
    pub fn tallies(&self) -> Tallies {
        let ByKind { collective, point_to_point } = &self.counters.kinds;
        Tallies {
            entries: self.counters.entries,
            table_matches: collective.table_matches + point_to_point.table_matches,
            host_matches: collective.host_matches + point_to_point.host_matches,
            spills: self.counters.spills,
            promotions: self.counters.promotions,
            table_occupancy: self.table.len() as u64,
            host_occupancy: self.host.len() as u64,
            high_water: self.counters.high_water,
        }
    }

    /// Tokens of all elements, oldest first.
    pub fn iter_tokens(&mut self) -> impl Iterator<Item = u32> + '_ {
        let locations = &self.locations;
        let mut host = self.host.iter().peekable();
        let mut table = self.table.iter().map(|(_, entry)| entry.token).peekable();
        std::iter::from_fn(move || {
            let table_age = table.peek().map(|&token| match locations[token as usize] {
                Location::Table { age, .. } => age,
                _ => unreachable!("the table's elements have a place in the table"),
            });
            match (table_age, host.peek()) {
                (Some(age), Some(&(_, other))) if other < age => {
                    host.next().map(|(token, _)| token)
                }
                (Some(_), _) => table.next(),
                (None, _) => host.next().map(|(token, _)| token),
            }
        })
    }
}
