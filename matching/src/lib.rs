// SPDX-License-Identifier: BSD-2-Clause
//! Matches receives and messages in the order that MPI requires, with a bounded table as on a NIC
//! and a software engine on the host.
//!
//! [`Offload`] is one queue of a receive context: the posted receives or the unexpected messages.
//! It consists of a bounded [`ternary_cam::Table`] and, for elements that do not fit, a software
//! [`Engine`]. A search always finds the oldest element that matches, in the table or on the host.
//!
//! [`oracle::Oracle`] is the naive list against which every table kernel, engine and overflow
//! policy is tested.
#![forbid(unsafe_code)]

mod counters;
mod curve;
mod engine;
pub mod measured;
mod offload;
pub mod oracle;
mod overflow;
pub mod pool;
mod profile;
mod sources;
mod sums;
pub mod timing;
mod traffic;

pub use counters::{
    BUCKETS, Block, BlockReasons, ByKind, Histogram, KindCounters, NamedCounter, QueueCounters,
    SearchDepth, Tallies, Traversals,
};
pub use curve::Curve;
pub use engine::{
    Clusters, ColPnp, Engine, EngineConfig, Hash, HostEngine, HostHandle, HostHit, HostStorage,
    Kmeans, Linked, List, NewMadeleine, Packed, Queues, RankArray, Role, TooManyClusters,
    UnknownEngine, UnknownStorage,
};
pub use offload::{Found, Offload, OffloadConfig, Place, TableKind, UnknownTable};
pub use overflow::{Leave, Overflow, UnknownOverflow};
pub use profile::Profile;
pub use ternary_cam::{Entry as Element, Kernel, Key, Scanner, Source, TableError};
pub use traffic::{CollectiveId, DecodedBits, TagLayout, Traffic, UnknownLayout};
