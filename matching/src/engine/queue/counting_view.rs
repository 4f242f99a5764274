// SPDX-License-Identifier: BSD-2-Clause
//! A view of the queues that counts the elements that searches traverse. The papers measure engines
//! by this (COL+PNP, section 4.1: "the average number of traversals").
//!
//! To count a search, the engine repeats it on this view. So searches that are not counted pay
//! nothing.
//! Linked queues are traversed up to the match, or up to the first element that is younger than the
//! match of another queue. Packed queues are traversed up to the match or, without one, completely.

use std::cell::Cell;

use super::contract::{Best, Lookup, Queues};
use crate::Key;

/// A view of queues that counts traversals and changes nothing.
pub(crate) struct CountingView<'q, Q> {
    queues: &'q Q,
    elements: Cell<u64>,
}

impl<'q, Q> CountingView<'q, Q> {
    pub(crate) const fn new(queues: &'q Q) -> Self {
        Self { queues, elements: Cell::new(0) }
    }

    /// Number of elements traversed.
    pub(crate) const fn elements(&self) -> u64 {
        self.elements.get()
    }

    fn add(&self, elements: u64) {
        self.elements.set(self.elements.get() + elements);
    }
}

impl<Q: Queues> Lookup for CountingView<'_, Q> {
    type Probe<'k> = Q::Probe<'k>;

    fn probe<'k>(&self, key: &'k Key) -> Q::Probe<'k> {
        self.queues.probe(key)
    }

    fn count(&self) -> usize {
        self.queues.count()
    }

    fn older_match(&self, queue: usize, probe: &Q::Probe<'_>, best: Best) -> Best {
        let found = self.queues.older_match(queue, probe, best);
        if queue < self.queues.count() {
            self.add(self.queues.compared(queue, found));
        }
        found
    }

    fn profiled(&self, _: usize, _: Best) -> u64 {
        0
    }

    fn oldest_match(&self, probe: &Q::Probe<'_>) -> Best {
        let found = self.queues.oldest_match(probe);
        self.add(self.queues.traversed_of_all(found));
        found
    }

    fn oldest_match_in(
        &self,
        count: usize,
        queues: impl Iterator<Item = usize> + Clone,
        probe: &Q::Probe<'_>,
    ) -> Best {
        let found = self.queues.oldest_match_in(count, queues.clone(), probe);
        self.add(self.queues.traversed_in(count, queues, probe, found));
        found
    }

    fn prefers_list(&self, short: usize, split: bool) -> bool {
        self.queues.prefers_list(short, split)
    }
}
