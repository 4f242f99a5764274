// SPDX-License-Identifier: BSD-2-Clause
//! Which engine, and its parameters.

use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

use super::queue::Queue;
use crate::TagLayout;

/// The engine to use (`FI_TCAM_HOST_ENGINE`).
#[derive(Display, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownEngine, parse_err_fn = unknown)]
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
    #[strum(serialize = "newmadeleine")]
    NewMadeleine,
    /// One list, which a thread searches while another one searches the other queue. (Where one
    /// thread at a time uses a queue, that is `list`.)
    TailQueues,
    /// One of the others, chosen by what comes.
    Auto,
}

impl HostEngine {
    /// Every engine.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Their names.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Name, as in `FI_TCAM_HOST_ENGINE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
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
    /// How its queues are stored (`FI_TCAM_HOST_STORAGE`).
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
    /// Processes n; 0 takes the sources seen so far, until
    /// [`Engine::set_processes`](super::Engine::set_processes) tells.
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

/// Not the name of a [`HostEngine`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no host engine: there are {all}", all = HostEngine::NAMES.join(", "))]
pub struct UnknownEngine(String);

fn unknown(name: &str) -> UnknownEngine {
    UnknownEngine(name.to_owned())
}
