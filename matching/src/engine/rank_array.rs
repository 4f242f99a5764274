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
    queue::{Best, Lookup, Queues, Walked},
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

fn search(queues: &impl Lookup, key: &Key) -> Best {
    let probe = queues.probe(key);
    match queue_of(key.source) {
        ANY => queues.oldest_match_in(queues.count(), 0..queues.count(), &probe),
        queue => queues.older_match(ANY, &probe, queues.older_match(queue, &probe, Best::NONE)),
    }
}

impl<Q: Queues> Engine for RankArray<Q> {
    fn insert(&mut self, element: Element, age: u64) -> HostHandle {
        let queue = queue_of(element.source);
        self.0.ensure(queue + 1);
        self.0.insert(queue, element, age)
    }

    fn first_match(&self, key: &Key) -> Option<HostHit> {
        self.0.hit(search(&self.0, key))
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

    fn traversed(&self, key: &Key) -> u64 {
        let walked = Walked::new(&self.0);
        search(&walked, key);
        walked.elements()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.0.iter()
    }
}
