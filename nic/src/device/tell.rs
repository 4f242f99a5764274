// SPDX-License-Identifier: BSD-2-Clause
//! What a context tells of itself.

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

    /// How deep searches of PRQ and UMQ went so far.
    #[must_use]
    pub fn search_depths(&self) -> [&SearchDepth; 2] {
        [self.prq.search_depth(), self.umq.search_depth()]
    }

    /// What searches of PRQ and UMQ traversed on the host so far.
    #[must_use]
    pub fn traversals(&self) -> [&Traversals; 2] {
        [self.prq.traversals(), self.umq.traversals()]
    }

    /// Elements of PRQ and UMQ, each in the table and on the host.
    #[must_use]
    pub fn occupancy(&self) -> [(usize, usize); 2] {
        [self.prq.occupancy(), self.umq.occupancy()]
    }

    /// Receives posted and not matched.
    #[must_use]
    pub fn posted(&self) -> usize {
        self.prq.len()
    }

    /// Messages that nothing has matched.
    #[must_use]
    pub fn unexpected(&self) -> usize {
        self.umq.len()
    }

    /// A part of what this context counted so far, which costs little to tell.
    #[must_use]
    pub fn live(&self) -> LiveContext {
        let ContextCounters { posts, arrivals, unexpected, .. } = self.counters;
        let (prq, umq) = (self.prq.tallies(), self.umq.tallies());
        LiveContext { posts, arrivals, unexpected, prq, umq }
    }

    /// What this context counted so far.
    #[must_use]
    pub fn counters(&self) -> ContextCounters {
        let (prq, umq) = (self.prq.counters(), self.umq.counters());
        let kinds = ContextCounters::kinds_of(&prq, &umq);
        let mut counters = ContextCounters { prq, umq, kinds, ..self.counters.clone() };
        // What came after the last sample.
        counters.lengths.raise_last(self.prq.recent(), self.umq.recent());
        counters
    }
}
