// SPDX-License-Identifier: BSD-2-Clause
//! `rank-array`: a queue for every source and one for any-source receives, as
//! Open MPI's ob1 (ompi/mca/pml/ob1; OMPI in Ghazimirsaeed, Grant, Afsahi 2019).
//!
//! ```text
//! insert:  any source -> queue 0; source s -> queue s + 1
//! search:  from s     -> queues 0 and s + 1, the older match wins
//!          any source -> every queue, the oldest match wins
//! ```
//!
//! Memory grows with the number of sources, which is what COL+PNP avoids.

use super::{
    Engine, HostHandle, HostHit,
    queue::{Best, Queues},
};
use crate::{Element, Key, Source};

/// Queue of elements that name no source.
const ANY: usize = 0;

/// See the module.
pub struct RankArray<Q>(Q);

impl<Q: Queues> RankArray<Q> {
    /// An engine on an empty storage.
    pub fn new(mut queues: Q) -> Self {
        queues.ensure(1);
        Self(queues)
    }

    pub(super) const fn queues(&self) -> &Q {
        &self.0
    }
}

fn queue_of(source: Source) -> usize {
    source.get().map_or(ANY, |source| source as usize + 1)
}

impl<Q: Queues> Engine for RankArray<Q> {
    fn insert(&mut self, element: Element, age: u64) -> HostHandle {
        let queue = queue_of(element.source);
        self.0.ensure(queue + 1);
        self.0.insert(queue, element, age)
    }

    fn first_match(&self, key: &Key) -> Option<HostHit> {
        let probe = self.0.probe(key);
        self.0.hit(match queue_of(key.source) {
            ANY => self.0.oldest_match_in(self.0.count(), 0..self.0.count(), &probe),
            queue => self.0.older_match(ANY, &probe, self.0.older_match(queue, &probe, Best::NONE)),
        })
    }

    fn element(&self, handle: HostHandle) -> Element {
        *self.0.element(handle)
    }

    fn remove(&mut self, handle: HostHandle) {
        self.0.remove(handle, |_, _| {});
    }

    fn oldest(&self) -> Option<HostHit> {
        self.0.oldest()
    }

    fn depth(&self, handle: HostHandle) -> usize {
        self.0.depth(handle)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.0.iter()
    }
}
