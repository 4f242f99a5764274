// SPDX-License-Identifier: BSD-2-Clause
//! Common part of the engines that select the queue of an element by its source: `rank_array` and
//! `kmeans`.
//!
//! ```text
//! insert:  any source -> queue 0; source s -> the queue of s
//! search:  from s     -> queue 0 and the queue of s, the older match wins
//!          any source -> every queue, the oldest match wins
//! ```
//!
//! Ages are the papers' sequence numbers: of the matches in several queues, the oldest wins.

use super::{
    contract::{Engine, key_of},
    hit::{HostHandle, HostHit},
    queue::{Best, CountingView, Lookup, Queues},
};
use crate::{Element, Key, Source};

/// Queue of elements without a source.
pub(super) const ANY: usize = 0;

/// Maps sources to queues.
pub trait SourceMap {
    /// The source of a pattern.
    fn source(&self, key: &Key) -> Source;

    /// The queue of a source; never [`ANY`].
    fn queue_of(&self, source: u32) -> usize;

    /// Counts an element of a source.
    fn note(&mut self, _source: u32) {}

    /// Number of dedicated queues; 0 if they are not counted.
    fn dedicated(&self) -> usize {
        0
    }

    /// Number of inserted elements whose source has no cluster (`kmeans`).
    fn unknown(&self) -> u64 {
        0
    }
}

/// An engine with queues by source; see the module.
pub struct BySource<Q, S> {
    queues: Q,
    pub(super) sources: S,
}

impl<Q: Queues, S: SourceMap> BySource<Q, S> {
    pub(super) fn with(mut queues: Q, sources: S) -> Self {
        queues.ensure(ANY + 1);
        Self { queues, sources }
    }

    fn queue_of(&self, key: &Key) -> usize {
        self.sources.source(key).get().map_or(ANY, |source| self.sources.queue_of(source))
    }

    fn search(&self, queues: &impl Lookup, key: &Key) -> Best {
        let probe = queues.probe(key);
        match self.queue_of(key) {
            ANY => queues.oldest_match_in(queues.count(), 0..queues.count(), &probe),
            queue => queues.older_match(ANY, &probe, queues.older_match(queue, &probe, Best::NONE)),
        }
    }
}

impl<Q: Queues, S: SourceMap> Engine for BySource<Q, S> {
    type Storage = Q;

    fn storage(&self) -> &Q {
        &self.queues
    }

    fn insert(&mut self, element: Element, age: u64) -> HostHandle {
        let key = key_of(&element);
        let queue = self.queue_of(&key);
        if let Some(source) = self.sources.source(&key).get() {
            self.sources.note(source);
        }
        self.queues.ensure(queue + 1);
        self.queues.insert(queue, element, age)
    }

    fn first_match(&self, key: &Key) -> Option<HostHit> {
        self.queues.hit(self.search(&self.queues, key))
    }

    fn remove(&mut self, handle: HostHandle) {
        self.queues.remove(handle, |_, _| {});
    }

    fn traversed(&self, key: &Key) -> u64 {
        let view = CountingView::new(&self.queues);
        self.search(&view, key);
        view.elements()
    }

    fn dedicated(&self) -> (usize, usize) {
        (0, self.sources.dedicated())
    }

    fn unclustered(&self) -> u64 {
        self.sources.unknown()
    }
}
