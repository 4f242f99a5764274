// SPDX-License-Identifier: BSD-2-Clause
//! The engine behind a table: one of the engines, on one of the storages.

use std::sync::Arc;

use ternary_cam::Scanner;

use super::{
    col_pnp::ColPnp,
    config::{EngineConfig, HostEngine},
    contract::Engine,
    hash::Hash,
    hit::{HostHandle, HostHit},
    kmeans::{Clusters, Kmeans},
    list::List,
    newmadeleine::NewMadeleine,
    queue::{HostStorage, Linked, Packed, Queues},
    rank_array::RankArray,
};
use crate::{Element, Key};

/// The plan from which the engine of a queue is made.
pub(crate) struct HostPlan {
    /// The engine to make.
    pub(crate) engine: HostEngine,
    /// Parameters of the engines.
    pub(crate) config: EngineConfig,
    /// Searches packed queues.
    pub(crate) scanner: Scanner,
    /// Clusters of the `kmeans` engine.
    pub(crate) clusters: Arc<Clusters>,
}

/// The engine of a queue. It is made for the first element.
pub(crate) enum Host {
    Unused,
    Packed(HostOn<Packed>),
    Linked(HostOn<Linked>),
    Hash(Box<Hash>),
    NewMadeleine(Box<NewMadeleine>),
}

/// An engine on a storage.
pub(crate) enum HostOn<Q> {
    List(Box<List<Q>>),
    RankArray(Box<RankArray<Q>>),
    ColPnp(Box<ColPnp<Q>>),
    Kmeans(Box<Kmeans<Q>>),
}

impl HostPlan {
    /// Creates an empty engine.
    pub(crate) fn make(&self) -> Host {
        let Self { engine, config, scanner, .. } = self;
        match (engine, config.storage) {
            (HostEngine::Hash, _) => Host::Hash(Box::new(Hash::new(config.layout))),
            (HostEngine::NewMadeleine, _) => {
                Host::NewMadeleine(Box::new(NewMadeleine::new(config.layout, config.role)))
            }
            (_, HostStorage::Packed) => {
                Host::Packed(HostOn::new(self, Packed::new(config, *scanner)))
            }
            (_, HostStorage::Linked) => Host::Linked(HostOn::new(self, Linked::default())),
        }
    }
}

impl<Q: Queues> HostOn<Q> {
    fn new(plan: &HostPlan, queues: Q) -> Self {
        let HostPlan { engine, config, clusters, .. } = plan;
        let (k_collective, k_point_to_point) = match engine {
            HostEngine::List | HostEngine::TailQueues => {
                return Self::List(Box::new(List::new(queues)));
            }
            HostEngine::RankArray => return Self::RankArray(Box::new(RankArray::new(queues))),
            HostEngine::Kmeans => {
                let engine = Kmeans::new(config.layout, Arc::clone(clusters), queues);
                return Self::Kmeans(Box::new(engine));
            }
            HostEngine::Hash | HostEngine::NewMadeleine => unreachable!("made by HostPlan::make"),
            HostEngine::ColList => (config.k_collective, 0),
            HostEngine::ListPnp => (0, config.k_point_to_point),
            HostEngine::ColPnp => (config.k_collective, config.k_point_to_point),
        };
        let config = EngineConfig { k_collective, k_point_to_point, ..*config };
        Self::ColPnp(Box::new(ColPnp::new(&config, queues)))
    }
}

/// Calls the engine. If none is made yet, the value is `$empty`, the result of an empty engine.
macro_rules! each {
    ($host:expr, $engine:ident => $call:expr, $empty:expr) => {
        match $host {
            Host::Unused => $empty,
            Host::Packed(HostOn::List($engine)) => $call,
            Host::Packed(HostOn::RankArray($engine)) => $call,
            Host::Packed(HostOn::ColPnp($engine)) => $call,
            Host::Packed(HostOn::Kmeans($engine)) => $call,
            Host::Linked(HostOn::List($engine)) => $call,
            Host::Linked(HostOn::RankArray($engine)) => $call,
            Host::Linked(HostOn::ColPnp($engine)) => $call,
            Host::Linked(HostOn::Kmeans($engine)) => $call,
            Host::Hash($engine) => $call,
            Host::NewMadeleine($engine) => $call,
        }
    };
}

/// The operations of each engine, never inlined: in one function, every engine would save the
/// registers that any of them needs.
mod apart {
    use super::{Element, Engine, HostHandle, HostHit, Key};

    #[inline(never)]
    pub(super) fn insert(engine: &mut impl Engine, element: Element, age: u64) -> HostHandle {
        engine.insert(element, age)
    }

    #[inline(never)]
    pub(super) fn first_match(engine: &impl Engine, key: &Key) -> Option<HostHit> {
        engine.first_match(key)
    }

    #[inline(never)]
    pub(super) fn first_token(engine: &impl Engine, key: &Key) -> Option<u32> {
        engine.first_token(key)
    }

    #[inline(never)]
    pub(super) fn remove(engine: &mut impl Engine, handle: HostHandle) {
        engine.remove(handle);
    }
}

/// The operations of [`Engine`].
impl Host {
    #[inline]
    pub(crate) fn insert(&mut self, element: Element, age: u64) -> HostHandle {
        each!(
            self,
            engine => apart::insert(&mut **engine, element, age),
            unreachable!("the engine is made before the first element")
        )
    }

    #[inline]
    pub(crate) fn first_match(&self, key: &Key) -> Option<HostHit> {
        each!(self, engine => apart::first_match(&**engine, key), None)
    }

    #[inline]
    pub(crate) fn first_token(&self, key: &Key) -> Option<u32> {
        each!(self, engine => apart::first_token(&**engine, key), None)
    }

    pub(crate) fn element(&self, handle: HostHandle) -> Element {
        each!(self, engine => engine.element(handle), unreachable!("no element has a handle"))
    }

    #[inline]
    pub(crate) fn remove(&mut self, handle: HostHandle) {
        each!(self, engine => apart::remove(&mut **engine, handle), ());
    }

    pub(crate) fn oldest(&self) -> Option<HostHit> {
        each!(self, engine => engine.oldest(), None)
    }

    pub(crate) fn depth(&self, handle: HostHandle) -> usize {
        each!(self, engine => engine.depth(handle), 0)
    }

    pub(crate) fn traversed(&self, key: &Key) -> u64 {
        each!(self, engine => engine.traversed(key), 0)
    }

    pub(crate) fn len(&self) -> usize {
        each!(self, engine => engine.len(), 0)
    }

    pub(crate) fn dedicated(&self) -> (usize, usize) {
        each!(self, engine => engine.dedicated(), (0, 0))
    }

    pub(crate) fn levels(&self) -> [Vec<u64>; 2] {
        each!(self, engine => engine.levels(), Default::default())
    }

    pub(crate) fn unclustered(&self) -> u64 {
        each!(self, engine => engine.unclustered(), 0)
    }

    pub(crate) fn set_processes(&mut self, n: u32) {
        each!(self, engine => engine.set_processes(n), ());
    }

    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = (u32, u64)> + '_> {
        each!(self, engine => Box::new(engine.iter()), Box::new(std::iter::empty()))
    }
}
