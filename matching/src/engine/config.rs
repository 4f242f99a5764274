// SPDX-License-Identifier: BSD-2-Clause
//! The host engines and their parameters.

use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

use super::queue::HostStorage;
use crate::TagLayout;

/// The engine to use (`FI_TCAM_HOST_ENGINE`).
#[derive(Display, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownEngine, parse_err_fn = unknown)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostEngine {
    /// One linked list in age order, as in MPICH.
    List,
    /// A list per source, as in Open MPI.
    RankArray,
    /// Queues for collective elements, and a list for point-to-point elements.
    ColList,
    /// A list for collective elements, and queues for the partners: the sources with the most
    /// point-to-point elements.
    ListPnp,
    /// Queues for collective elements, and queues for the partners.
    #[default]
    ColPnp,
    /// A queue for each cluster of sources.
    Kmeans,
    /// A hash table of the elements without wildcards.
    Hash,
    /// A hash table for each combination of wildcards.
    #[strum(serialize = "newmadeleine")]
    NewMadeleine,
    /// Matches and counts as `List`. The paper's locks are in `papers/bench/src/tail_queues`.
    TailQueues,
}

impl HostEngine {
    /// Every engine.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Names of all engines.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Name, as in `FI_TCAM_HOST_ENGINE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The queue of a receive context that an engine serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Posted receives, which may have wildcards, searched by messages.
    #[default]
    Posted,
    /// Unexpected messages, searched by receives.
    Unexpected,
}

/// Parameters of an engine. `list`, `rank-array`, `kmeans` and `hash` use at most the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Storage of its queues (`FI_TCAM_HOST_STORAGE`).
    pub storage: HostStorage,
    /// The layout of match bits, which separates collective from point-to-point traffic
    /// (`FI_TCAM_TAG_LAYOUT`).
    pub layout: TagLayout,
    /// The queue that the engine serves.
    pub role: Role,
    /// Length of a shared queue at which the sources with the most elements get their own queues
    /// (`FI_TCAM_THETA`). The paper's 100 is best for linked queues. Packed queues are searched
    /// faster, so a larger value is best for them.
    pub theta: u32,
    /// At most `k_collective * sqrt(n)` queues for collectives (`FI_TCAM_K_COL`).
    pub k_collective: u32,
    /// At most `k_point_to_point * sqrt(n)` queues for partners (`FI_TCAM_K_PNP`).
    pub k_point_to_point: u32,
    /// Number of processes n. If 0, n is the number of sources seen so far, until
    /// [`Engine::set_processes`](super::Engine::set_processes) sets it.
    pub processes: u32,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            storage: HostStorage::default(),
            layout: TagLayout::default(),
            role: Role::default(),
            theta: 512,
            k_collective: 8,
            k_point_to_point: 8,
            processes: 0,
        }
    }
}

/// A text that is not the name of a [`HostEngine`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host engine: expected one of {all}", all = HostEngine::NAMES.join(", "))]
pub struct UnknownEngine(String);

fn unknown(name: &str) -> UnknownEngine {
    UnknownEngine(name.to_owned())
}
