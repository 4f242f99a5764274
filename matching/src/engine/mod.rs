// SPDX-License-Identifier: BSD-2-Clause
//! Host engines: what matches the elements that do not fit the table.

mod col;
mod col_pnp;
mod list;
mod peers;
mod pnp;
mod queues;
mod rank_array;

pub use col_pnp::ColPnp;
pub use list::List;
pub use rank_array::RankArray;

use crate::{Element, Key, TagLayout};

/// Names an element of an [`Engine`] from its insertion to its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHandle(pub(crate) u32);

/// An element of an [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHit {
    /// The element.
    pub handle: HostHandle,
    /// Its token.
    pub token: u32,
    /// Its age as given to [`Engine::insert`].
    pub age: u64,
}

/// A software matching engine.
///
/// Elements come in age order, oldest first, each with an age larger than all
/// before; a search must return the oldest that matches.
pub trait Engine {
    /// Adds an element, the youngest.
    fn insert(&mut self, element: Element, age: u64) -> HostHandle;

    /// The oldest element that matches.
    fn first_match(&self, key: &Key) -> Option<HostHit>;

    /// Takes an element out. The handle must be live.
    fn remove(&mut self, handle: HostHandle) -> Element;

    /// The oldest element of all: a match in the table that is older needs no
    /// search here, and this is the one to promote.
    fn oldest(&self) -> Option<HostHit>;

    /// Elements a list in age order would have compared to reach this one, itself
    /// counted.
    fn depth(&self, handle: HostHandle) -> usize;

    /// Elements held.
    fn len(&self) -> usize;

    /// Whether it holds nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queues made for one operation or source, of collective and of
    /// point-to-point elements.
    fn dedicated(&self) -> (usize, usize) {
        (0, 0)
    }

    /// Tokens and ages, oldest first.
    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_;
}

/// The engine to use (`FI_TCAM_HOST_ENGINE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostEngine {
    /// One linked list in age order, as MPICH's.
    List,
    /// A list a source, as Open MPI's.
    RankArray,
    /// Queues for collective elements, a list for the others.
    ColList,
    /// A list for collective elements, queues for partners.
    ListPnp,
    /// Queues for both.
    #[default]
    ColPnp,
}

/// Parameters of an engine. Those that have one queue, or one a source, use none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// How match bits tell collective from point-to-point (`FI_TCAM_TAG_LAYOUT`).
    pub layout: TagLayout,
    /// Length of a shared queue at which partners get their own (`FI_TCAM_THETA`).
    pub theta: u32,
    /// At most `k_collective * sqrt(n)` queues for collectives (`FI_TCAM_K_COL`).
    pub k_collective: u32,
    /// At most `k_point_to_point * sqrt(n)` queues for partners (`FI_TCAM_K_PNP`).
    pub k_point_to_point: u32,
    /// Processes n (`FI_TCAM_NPROCS`); 0 takes the sources seen so far.
    pub processes: u32,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            layout: TagLayout::default(),
            theta: 100,
            k_collective: 8,
            k_point_to_point: 8,
            processes: 0,
        }
    }
}

impl HostEngine {
    /// Every engine.
    pub const ALL: [Self; 5] =
        [Self::List, Self::RankArray, Self::ColList, Self::ListPnp, Self::ColPnp];

    /// Name, as in `FI_TCAM_HOST_ENGINE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::RankArray => "rank-array",
            Self::ColList => "col-list",
            Self::ListPnp => "list-pnp",
            Self::ColPnp => "col-pnp",
        }
    }
}

impl std::fmt::Display for HostEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Not the name of a [`HostEngine`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no host engine: there are {all}", all = HostEngine::ALL.map(HostEngine::name).join(", "))]
pub struct UnknownEngine(String);

impl std::str::FromStr for HostEngine {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == name);
        found.ok_or_else(|| UnknownEngine(name.to_owned()))
    }
}

/// The engine of a queue, chosen when it is made.
pub(crate) enum Host {
    List(List),
    RankArray(RankArray),
    ColPnp(Box<ColPnp>),
}

impl Host {
    pub(crate) fn new(engine: HostEngine, config: &EngineConfig) -> Self {
        let col_pnp = |k_collective, k_point_to_point| {
            let config = EngineConfig { k_collective, k_point_to_point, ..*config };
            Self::ColPnp(Box::new(ColPnp::new(&config)))
        };
        match engine {
            HostEngine::List => Self::List(List::default()),
            HostEngine::RankArray => Self::RankArray(RankArray::default()),
            HostEngine::ColList => col_pnp(config.k_collective, 0),
            HostEngine::ListPnp => col_pnp(0, config.k_point_to_point),
            HostEngine::ColPnp => col_pnp(config.k_collective, config.k_point_to_point),
        }
    }
}

/// Calls the engine that is there.
macro_rules! each {
    ($host:expr, $engine:ident => $call:expr) => {
        match $host {
            Host::List($engine) => $call,
            Host::RankArray($engine) => $call,
            Host::ColPnp($engine) => $call,
        }
    };
}

impl Engine for Host {
    fn insert(&mut self, element: Element, age: u64) -> HostHandle {
        each!(self, engine => engine.insert(element, age))
    }

    fn first_match(&self, key: &Key) -> Option<HostHit> {
        each!(self, engine => engine.first_match(key))
    }

    fn remove(&mut self, handle: HostHandle) -> Element {
        each!(self, engine => engine.remove(handle))
    }

    fn oldest(&self) -> Option<HostHit> {
        each!(self, engine => engine.oldest())
    }

    fn depth(&self, handle: HostHandle) -> usize {
        each!(self, engine => engine.depth(handle))
    }

    fn len(&self) -> usize {
        each!(self, engine => engine.len())
    }

    fn dedicated(&self) -> (usize, usize) {
        each!(self, engine => engine.dedicated())
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let (list, ranks, col_pnp) = match self {
            Self::List(engine) => (Some(engine.iter()), None, None),
            Self::RankArray(engine) => (None, Some(engine.iter()), None),
            Self::ColPnp(engine) => (None, None, Some(engine.iter())),
        };
        let list = list.into_iter().flatten();
        list.chain(ranks.into_iter().flatten()).chain(col_pnp.into_iter().flatten())
    }
}
