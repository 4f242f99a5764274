// SPDX-License-Identifier: BSD-2-Clause
//! The operations on table and host, measured where a clock was given. Without one each
//! costs a predicted branch.

use ternary_cam::{Full, Handle};

use super::{Found, Offload};
use crate::engine::{Engine, HostHandle};
use crate::measured::{MeasuredTime, Spent, Watch};
use crate::{Element, Key};

impl Offload {
    /// The time, if anybody measures.
    #[inline]
    fn start(&self) -> Option<u64> {
        self.watch.as_ref().map(Watch::now)
    }

    /// Ends what started then; how long it took.
    #[inline(never)]
    fn stop(&mut self, start: u64, what: fn(&mut MeasuredTime) -> &mut Spent) -> u64 {
        let Some(watch) = &self.watch else { return 0 };
        let ns = watch.between(start, watch.now());
        what(&mut self.counters.measured).add(ns);
        ns
    }

    /// [`Offload::find`], measured.
    #[inline]
    pub(super) fn find_measured(&mut self, key: &Key) -> Option<Found> {
        if self.watch.is_some() { self.find_in_parts(key) } else { self.find(key) }
    }

    #[inline(never)]
    fn find_in_parts(&mut self, key: &Key) -> Option<Found> {
        let start = self.start()?;
        let hit = self.table.first_match(key);
        if self.table.capacity() > 0 {
            self.stop(start, |time| &mut time.search.table);
        }
        let start = self.start()?;
        let found = self.find_behind(hit, key);
        if self.searches_host(found) {
            self.stop(start, |time| &mut time.search.host);
        }
        found
    }

    #[inline]
    pub(super) fn insert_in_table(&mut self, element: Element) -> Result<Handle, Full> {
        let start = self.start();
        let inserted = self.table.insert(element);
        if let (Some(start), Ok(_)) = (start, &inserted) {
            self.stop(start, |time| &mut time.insert.table);
        }
        inserted
    }

    #[inline]
    pub(super) fn remove_from_table(&mut self, handle: Handle) {
        let start = self.start();
        self.table.remove(handle);
        if let Some(start) = start {
            self.stop(start, |time| &mut time.remove.table);
        }
    }

    pub(super) fn insert_on_host(&mut self, element: Element, age: u64) -> HostHandle {
        let queues = self.watch.as_ref().map(|_| self.host.dedicated());
        let start = self.start();
        let handle = self.host.insert(element, age);
        if let Some(start) = start {
            let ns = self.stop(start, |time| &mut time.insert.host);
            if queues != Some(self.host.dedicated()) {
                self.counters.measured.dedicate.add(ns);
            }
        }
        handle
    }

    pub(super) fn remove_from_host(&mut self, handle: HostHandle) -> Element {
        let start = self.start();
        let element = self.host.remove(handle);
        if let Some(start) = start {
            self.stop(start, |time| &mut time.remove.host);
        }
        element
    }
}
