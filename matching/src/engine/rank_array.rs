// SPDX-License-Identifier: BSD-2-Clause
//! `rank-array`: one queue per source and one for any-source receives, as in Open MPI's ob1
//! (ompi/mca/pml/ob1; OMPI in Ghazimirsaeed, Grant, Afsahi 2019).
//!
//! Memory grows with the number of sources, which COL+PNP avoids.

use super::by_source::{ANY, BySource, SourceMap};
use super::queue::Queues;
use crate::{Key, Source};

/// The engine; see the module.
pub type RankArray<Q> = BySource<Q, EachSource>;

/// One queue per source.
pub struct EachSource;

impl SourceMap for EachSource {
    fn source(&self, key: &Key) -> Source {
        key.source
    }

    fn queue_of(&self, source: u32) -> usize {
        source as usize + ANY + 1
    }
}

impl<Q: Queues> RankArray<Q> {
    /// Creates an engine on an empty storage.
    pub fn new(queues: Q) -> Self {
        Self::with(queues, EachSource)
    }
}
