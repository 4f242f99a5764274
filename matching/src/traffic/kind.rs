// SPDX-License-Identifier: BSD-2-Clause
//! What a message belongs to.

/// Identifies a collective operation of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CollectiveId {
    /// Context id or communicator id.
    pub communicator: u32,
    /// Tag of the operation, without its sign; [`CollectiveId::NONBLOCKING`] for
    /// every nonblocking one, whose tags only count calls.
    pub operation: u32,
}

impl CollectiveId {
    /// The operation of nonblocking collectives.
    pub const NONBLOCKING: u32 = u32::MAX;
}

/// What a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// A send and a receive of the application, or something unknown.
    PointToPoint,
    /// A collective operation.
    Collective(CollectiveId),
}
