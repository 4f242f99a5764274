// SPDX-License-Identifier: BSD-2-Clause
//! Operations on the table and on the host, measured if there is a clock. Without one, the check
//! costs a predicted branch per operation; so does the check for the CAM.

use ternary_cam::{Full, Handle};

use super::{Found, Offload};
use crate::engine::{Engine, HostHandle};
use crate::measured::Watch;
use crate::{Element, Key};

impl Offload {
    /// Runs `work`. Returns its result and its time in nanoseconds.
    fn measure<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, u64) {
        let start = self.watch.as_ref().map_or(0, Watch::now);
        let result = work(self);
        let ns = self.watch.as_ref().map_or(0, |watch| watch.between(start, watch.now()));
        (result, ns)
    }

    /// [`Offload::find`], measured if there is a clock.
    pub(super) fn find_measured(&mut self, key: &Key) -> Option<Found> {
        if self.watch.is_some() { self.find_in_parts(key) } else { self.find(key) }
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
        if self.detour { self.insert_aside(element) } else { self.table.index.insert(element) }
    }

    #[cold]
    fn insert_aside(&mut self, element: Element) -> Result<Handle, Full> {
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
        if self.detour {
            self.remove_aside(handle);
        } else {
            self.table.index.remove(handle);
        }
    }

    #[cold]
    fn remove_aside(&mut self, handle: Handle) {
        if self.watch.is_none() {
            return self.table.remove(handle);
        }
        let (_, ns) = self.measure(|queue| queue.table.remove(handle));
        self.counters.measured.remove.table.add(ns);
    }

    #[inline]
    pub(super) fn insert_on_host(&mut self, element: Element, age: u64) -> HostHandle {
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
