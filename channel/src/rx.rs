// SPDX-License-Identifier: BSD-2-Clause
//! The receiving end of an endpoint over one transport.
//!
//! ```text
//! Arrivals::peek               header of the next slot
//! Arrivals::payload            its payload; see Peer::body
//! Arrivals::release, publish   the slot was handled; senders may use it again
//! ```

#[cfg(any(test, feature = "testing"))]
use crate::testing::loopback::LoopbackRx;
use crate::{
    bytes::SharedBytes,
    contract::{Arrivals, Came, Received},
    net::rx::NetRx,
    shm::ring::ShmRx,
};

/// Number of transports.
pub const TRANSPORTS: usize = if cfg!(any(test, feature = "testing")) { 3 } else { 2 };

/// Index of the network among the transports.
pub const NET: usize = 1;

/// The receiving end of each transport. `None` while it is polled, or if the endpoint does not have
/// the transport.
pub type Receivers = [Option<Box<Rx>>; TRANSPORTS];

/// The receiving end over one transport. A loop over slots is generic over [`Arrivals`], so that it
/// is compiled for shared memory without dispatch.
#[derive(Debug)]
pub enum Rx {
    /// Over shared memory.
    Shm(ShmRx),
    /// Over the network.
    Net(NetRx),
    /// Within this process.
    #[cfg(any(test, feature = "testing"))]
    Loopback(LoopbackRx),
}

/// Calls a method on the transport.
macro_rules! on_transport {
    ($self:expr, $rx:ident => $call:expr) => {
        match $self {
            Self::Shm($rx) => $call,
            Self::Net($rx) => $call,
            #[cfg(any(test, feature = "testing"))]
            Self::Loopback($rx) => $call,
        }
    };
}

impl Arrivals for Rx {
    #[inline]
    fn peek(&mut self) -> Option<Received> {
        on_transport!(self, rx => rx.peek())
    }

    #[inline]
    fn payload(&self) -> SharedBytes<'_> {
        on_transport!(self, rx => rx.payload())
    }

    #[cold]
    fn time(&self) -> Option<Came> {
        on_transport!(self, rx => rx.time())
    }

    #[cold]
    fn check(&self) -> Option<u32> {
        on_transport!(self, rx => rx.check())
    }

    #[inline]
    fn expect_more(&self) {
        on_transport!(self, rx => rx.expect_more());
    }

    #[inline]
    fn release(&mut self) {
        on_transport!(self, rx => rx.release());
    }

    #[inline]
    fn publish(&mut self) {
        on_transport!(self, rx => rx.publish());
    }
}

impl Rx {
    /// Returns whether no slot has arrived. On the network, this makes progress if no frame waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&mut self) -> bool {
        on_transport!(self, rx => rx.is_empty())
    }

    /// Returns whether this is the receiving end over the network.
    #[inline]
    #[must_use]
    pub fn is_net(&self) -> bool {
        matches!(self, Self::Net(_))
    }

    /// Returns the number of released slots.
    #[must_use]
    pub fn position(&self) -> u64 {
        on_transport!(self, rx => rx.position())
    }

    /// Returns the number of slots that were sent to this end or are being sent. On the network, it
    /// is the number of released slots, plus one if another slot has arrived.
    #[must_use]
    pub fn end(&mut self) -> u64 {
        on_transport!(self, rx => rx.end())
    }

    /// Skips a slot of shared memory that a dead sender claimed and did not fill, if the previous
    /// call found the ring at the same slot. Returns whether it skipped one.
    pub fn skip_stuck(&mut self) -> bool {
        match self {
            Self::Shm(rx) => rx.skip_stuck(),
            _ => false,
        }
    }
}
