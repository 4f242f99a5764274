// SPDX-License-Identifier: BSD-2-Clause
//! Kinds of messages.

/// Identifies a collective operation of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CollectiveId {
    /// Context id or communicator id.
    pub communicator: u32,
    /// Tag of the operation, without its sign; [`CollectiveId::NONBLOCKING`] for all nonblocking
    /// ones, whose tags only count calls.
    pub operation: u32,
}

impl CollectiveId {
    /// Stands for all nonblocking collectives.
    pub const NONBLOCKING: u32 = u32::MAX;
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// A message of the application, or an unknown one.
    PointToPoint,
    /// A message of a collective operation.
    Collective(CollectiveId),
}
