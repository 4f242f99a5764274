// SPDX-License-Identifier: BSD-2-Clause
//! The configuration of a queue: its table, its host engine and its overflow model.

use crate::engine::{EngineConfig, HostEngine};
use crate::{Kernel, Leave, Overflow, TableKind};

/// Configuration of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadConfig {
    /// Capacity of the table, 0 to 65,536. With 0, all elements are on the host.
    pub entries: usize,
    /// Kind of the table.
    pub table: TableKind,
    /// Compare kernel of the table and of packed queues.
    pub kernel: Kernel,
    /// Engine behind the table.
    pub engine: HostEngine,
    /// Parameters of the engine.
    pub engine_config: EngineConfig,
    /// Behaviour if the table is full.
    pub overflow: Overflow,
    /// When and how the queue leaves the table, with [`Overflow::Sticky`].
    pub leave: Leave,
    /// Whether to count search depths, traversals on the host, and elements by source.
    pub depths: bool,
}

impl Default for OffloadConfig {
    fn default() -> Self {
        Self {
            entries: 4096,
            table: TableKind::default(),
            kernel: Kernel::best(),
            engine: HostEngine::default(),
            engine_config: EngineConfig::default(),
            overflow: Overflow::default(),
            leave: Leave::default(),
            depths: false,
        }
    }
}
