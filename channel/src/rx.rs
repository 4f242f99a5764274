// SPDX-License-Identifier: BSD-2-Clause
//! The receiving end of an endpoint over one transport.
//!
//! ```text
//! Arrivals::peek               header of the next slot
//! Arrivals::payload            its payload; see Peer::body
//! Arrivals::release, publish   the slot is done; senders may use it
//! ```

#[cfg(any(test, feature = "testing"))]
use crate::testing::loopback::LoopbackRx;
use crate::{
    bytes::SharedBytes,
    contract::{Arrivals, Received},
    net::rx::NetRx,
    shm::ring::ShmRx,
};

/// Number of transports.
pub const TRANSPORTS: usize = if cfg!(any(test, feature = "testing")) { 3 } else { 2 };

/// Index of the network among the transports.
pub const NET: usize = 1;

/// The receiving end of each transport. It is taken out while it is polled.
pub type Receivers = [Option<Box<Rx>>; TRANSPORTS];

/// The slots that have come over one transport. A loop over slots takes a [`Arrivals`], so that it
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
    /// Returns whether there is no slot. On the network, this makes progress.
    #[inline]
    #[must_use]
    pub fn is_empty(&mut self) -> bool {
        on_transport!(self, rx => rx.is_empty())
    }

    /// Returns whether this is the network.
    #[inline]
    #[must_use]
    pub fn is_net(&self) -> bool {
        matches!(self, Self::Net(_))
    }

    /// The number of released slots.
    #[must_use]
    pub fn position(&self) -> u64 {
        on_transport!(self, rx => rx.position())
    }

    /// The number of slots that were sent or are being sent.
    #[must_use]
    pub fn end(&mut self) -> u64 {
        on_transport!(self, rx => rx.end())
    }

    /// Skips a slot that a dead sender claimed and did not fill. Returns whether it skipped one.
    /// Two calls in a row must find the ring at this slot.
    pub fn skip_stuck(&mut self) -> bool {
        match self {
            Self::Shm(rx) => rx.skip_stuck(),
            _ => false,
        }
    }
}
