// SPDX-License-Identifier: BSD-2-Clause
//! Host engines, which match the elements that do not fit into the table.

mod by_source;
mod col;
mod col_pnp;
mod config;
mod contract;
mod fifos;
mod hash;
mod hit;
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
pub use config::{EngineConfig, HostEngine, Role, UnknownEngine};
pub use contract::Engine;
pub use hash::Hash;
pub use hit::{HostHandle, HostHit};
pub(crate) use host::{Host, HostPlan};
pub use kmeans::{Clusters, Kmeans, TooManyClusters};
pub use list::List;
pub use newmadeleine::NewMadeleine;
pub use queue::{HostStorage, Linked, Packed, Queues, UnknownStorage};
pub use rank_array::RankArray;
