// SPDX-License-Identifier: BSD-2-Clause
//! Counters and statistics of a context.

use matching::{Curve, SearchDepth, Traversals};

use super::Context;
use crate::live::LiveContext;
use crate::report::ContextCounters;

impl<R: Clone, M> Context<R, M> {
    /// The capacity curves of PRQ and UMQ, if they are kept.
    #[must_use]
    pub fn curves(&self) -> Option<[&Curve; 2]> {
        Some([self.prq.curve()?, self.umq.curve()?])
    }

    /// The search depths of PRQ and UMQ.
    #[must_use]
    pub fn search_depths(&self) -> [&SearchDepth; 2] {
        [self.prq.search_depth(), self.umq.search_depth()]
    }

    /// Entries that searches of PRQ and UMQ traversed on the host.
    #[must_use]
    pub fn traversals(&self) -> [&Traversals; 2] {
        [self.prq.traversals(), self.umq.traversals()]
    }

    /// Number of elements in the table and on the host, for PRQ and UMQ.
    #[must_use]
    pub fn occupancy(&self) -> [(usize, usize); 2] {
        [self.prq.occupancy(), self.umq.occupancy()]
    }

    /// Number of receives that are posted and not matched.
    #[must_use]
    pub fn posted(&self) -> usize {
        self.prq.len()
    }

    /// Number of unexpected messages that are not matched.
    #[must_use]
    pub fn unexpected(&self) -> usize {
        self.umq.len()
    }

    /// The counters that are cheap to read.
    #[must_use]
    pub fn live(&self) -> LiveContext {
        let ContextCounters { posts, arrivals, unexpected, .. } = self.counters;
        let (prq, umq) = (self.prq.tallies(), self.umq.tallies());
        LiveContext { posts, arrivals, unexpected, prq, umq }
    }

    /// All counters of this context.
    #[must_use]
    pub fn counters(&self) -> ContextCounters {
        let (prq, umq) = (self.prq.counters(), self.umq.counters());
        let kinds = ContextCounters::kinds_of(&prq, &umq);
        let mut counters = ContextCounters { prq, umq, kinds, ..self.counters.clone() };
        // Includes the lengths since the last sample.
        counters.lengths.raise_last(self.prq.recent(), self.umq.recent());
        counters
    }
}
