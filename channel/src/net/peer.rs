// SPDX-License-Identifier: BSD-2-Clause
//! A peer on the network.
//!
//! ```text
//! Greeting --- Hello came --> Open --- Bye came, all frames seen --> Closed
//!    |                          `----- connection gone -----------> Dead
//!    `--- refused, no answer --> Failed
//! ```
//! A connection is gone after the frames that came over it were handled.

use std::{net::SocketAddrV4, time::Instant};

use ffi::Errno;

use super::secret::{Claim, Secret};
use crate::{identity::Identity, shm::segment::Liveness};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Greeting,
    /// The reason, and the time of the failure.
    Failed(Errno, Instant),
    Open,
    Dead,
    Closed,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) address: SocketAddrV4,
    pub(super) who: Option<Identity>,
    /// Token that frames to the peer carry.
    pub(super) token: u64,
    /// Number of this endpoint at the peer.
    pub(super) number: u16,
    /// Token that frames from the peer carry.
    pub(super) token_here: u64,
    pub(super) state: State,
    /// Connections to the peer.
    pub(super) streams: Vec<usize>,
    /// The secret that is proved on these connections.
    pub(super) secret: Option<Secret>,
    /// The peer's claim to be at its address; `None` in a job with a secret.
    pub(super) claim: Option<Claim>,
    /// The secret that the claim was verified with.
    pub(super) verified: Option<Secret>,
    /// The connection for frames to the peer.
    pub(super) outgoing: Option<usize>,
    /// The connection for frames from the peer.
    pub(super) incoming: Option<usize>,
    /// Number of dials.
    pub(super) dials: u32,
    /// Time of the next dial: a busy peer may close a connection before it has handled it.
    pub(super) redial: Option<Instant>,
    /// Whether the endpoint has a link to it.
    pub(super) is_linked: bool,
    /// Frames sent to the peer.
    pub(super) sent: u64,
    /// Frames from the peer that were handled.
    pub(super) seen: u64,
    /// Number of frames in the peer's Bye.
    pub(super) bye: Option<u64>,
    /// Number of frames in the last Bye to the peer.
    pub(super) said_bye: Option<u64>,
    /// The peer has confirmed all frames.
    pub(super) is_seen: bool,
}

impl Peer {
    /// Creates a peer at an address, whose frames must carry this token.
    pub(super) fn new(address: SocketAddrV4, token_here: u64) -> Self {
        Self {
            address,
            who: None,
            token: 0,
            number: 0,
            token_here,
            state: State::Greeting,
            streams: Vec::new(),
            secret: None,
            claim: None,
            verified: None,
            outgoing: None,
            incoming: None,
            dials: 0,
            redial: None,
            is_linked: false,
            sent: 0,
            seen: 0,
            bye: None,
            said_bye: None,
            is_seen: false,
        }
    }

    /// Returns whether the peer's Hello has not come yet.
    pub(super) fn greets(&self) -> bool {
        self.state == State::Greeting
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Returns whether nothing more comes from the peer.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, State::Dead | State::Closed)
    }

    /// Notes that the connection is gone.
    pub(super) fn lose(&mut self) {
        if self.state == State::Open {
            self.state = State::Dead;
        }
    }

    /// See [`super::link::Link::liveness`].
    pub(super) fn liveness(&self) -> Liveness {
        match self.state {
            State::Closed => Liveness::Closed,
            State::Dead | State::Failed(..) => Liveness::Dead,
            State::Greeting | State::Open => Liveness::Alive,
        }
    }
}
