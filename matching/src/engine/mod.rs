// SPDX-License-Identifier: BSD-2-Clause
//! Host engines: what matches the elements that do not fit the table.

mod by_source;
mod col;
mod col_pnp;
mod fifos;
mod hash;
mod host;
mod kmeans;
mod list;
mod names;
mod newmadeleine;
mod peers;
mod pnp;
mod queue;
mod rank_array;

pub use col_pnp::ColPnp;
pub use hash::Hash;
pub(crate) use host::{Host, HostPlan};
pub use kmeans::{Clusters, Kmeans, TooManyClusters};
pub use list::List;
pub use newmadeleine::NewMadeleine;
pub use queue::{Linked, Packed, Queue, Queues, UnknownQueue};
pub use rank_array::RankArray;

use crate::{Element, Key, TagLayout};

/// Names an element of an [`Engine`] from its insertion to its removal. What a search gives may
/// be another name of it, good until the next insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHandle(pub(crate) u64);

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

    /// The token of the oldest element that matches, where that is enough: it comes in a
    /// register.
    #[inline(always)]
    fn first_token(&self, key: &Key) -> Option<u32> {
        self.first_match(key).map(|hit| hit.token)
    }

    /// An element. The handle must be live.
    fn element(&self, handle: HostHandle) -> Element;

    /// Takes an element out. The handle must be live.
    fn remove(&mut self, handle: HostHandle);

    /// The oldest element of all: a match in the table that is older needs no
    /// search here, and this is the one to promote.
    fn oldest(&self) -> Option<HostHit>;

    /// Elements a list in age order would have compared to reach this one, itself
    /// counted.
    fn depth(&self, handle: HostHandle) -> usize;

    /// Elements that a search for the key traverses in the queues of this engine, the found
    /// one counted.
    fn traversed(&self, key: &Key) -> u64;

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

    /// The same by level, first level first.
    fn levels(&self) -> [Vec<u64>; 2] {
        Default::default()
    }

    /// Elements whose source no cluster names (`kmeans`).
    fn unclustered(&self) -> u64 {
        0
    }

    /// Tells how many processes there are: n of the caps on dedicated queues.
    fn set_processes(&mut self, _n: u32) {}

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
    /// A queue for each cluster of sources.
    Kmeans,
    /// A hash table of those without wildcards.
    Hash,
    /// A hash table for each combination of wildcards.
    NewMadeleine,
    /// One of the others, chosen by what comes.
    Auto,
}

/// Which queue of a receive context an engine is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Posted receives, which may have wildcards, searched by messages.
    #[default]
    Posted,
    /// Unexpected messages, searched by receives.
    Unexpected,
}

/// Parameters of an engine. Those that have one queue, or one a source, use the
/// first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// How its queues are stored (`FI_TCAM_QUEUE`).
    pub queue: Queue,
    /// How match bits tell collective from point-to-point (`FI_TCAM_TAG_LAYOUT`).
    pub layout: TagLayout,
    /// Which queue it is.
    pub role: Role,
    /// Length of a shared queue at which partners get their own (`FI_TCAM_THETA`). The
    /// paper's 100 is best for linked queues; packed ones are searched faster.
    pub theta: u32,
    /// At most `k_collective * sqrt(n)` queues for collectives (`FI_TCAM_K_COL`).
    pub k_collective: u32,
    /// At most `k_point_to_point * sqrt(n)` queues for partners (`FI_TCAM_K_PNP`).
    pub k_point_to_point: u32,
    /// Processes n; 0 takes the sources seen so far, until [`Engine::set_processes`]
    /// tells.
    pub processes: u32,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            queue: Queue::default(),
            layout: TagLayout::default(),
            role: Role::default(),
            theta: 512,
            k_collective: 8,
            k_point_to_point: 8,
            processes: 0,
        }
    }
}

impl HostEngine {
    /// Every engine.
    pub const ALL: [Self; 9] = [
        Self::List,
        Self::RankArray,
        Self::ColList,
        Self::ListPnp,
        Self::ColPnp,
        Self::Kmeans,
        Self::Hash,
        Self::NewMadeleine,
        Self::Auto,
    ];

    /// Name, as in `FI_TCAM_HOST_ENGINE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::RankArray => "rank-array",
            Self::ColList => "col-list",
            Self::ListPnp => "list-pnp",
            Self::ColPnp => "col-pnp",
            Self::Kmeans => "kmeans",
            Self::Hash => "hash",
            Self::NewMadeleine => "newmadeleine",
            Self::Auto => "auto",
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

/// The key that matches what the element matches.
fn key_of(element: &Element) -> Key {
    Key { bits: element.bits, ignore: element.ignore, source: element.source }
}
