// SPDX-License-Identifier: BSD-2-Clause
//! A peer on the network.
//!
//! ```text
//! Greeting --- Hello came --> Open --- Bye came, all frames seen --> Closed
//!    |                          `----- connection gone -----------> Dead
//!    `--- refused, no answer --> Failed
//! ```
//! A connection is gone once the frames that came over it were handled.

use std::{net::SocketAddrV4, time::Instant};

use ffi::Errno;

use super::secret::{Claim, Secret};
use crate::{identity::Identity, shm::segment::Liveness};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Greeting,
    /// Why, and since when.
    Failed(Errno, Instant),
    Open,
    Dead,
    Closed,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Contact {
    pub(super) address: SocketAddrV4,
    pub(super) who: Option<Identity>,
    /// What frames to it carry.
    pub(super) token: u64,
    pub(super) number: u16,
    /// What its frames carry.
    pub(super) token_here: u64,
    pub(super) state: State,
    /// Connections to it, and the secret by which they are made.
    pub(super) streams: Vec<usize>,
    pub(super) secret: Option<Secret>,
    /// Its claim to be at its address, and the secret that it was verified with; none in a job with a secret.
    pub(super) claim: Option<Claim>,
    pub(super) verified: Option<Secret>,
    /// The ones over which frames go to it and come from it.
    pub(super) outgoing: Option<usize>,
    pub(super) incoming: Option<usize>,
    /// How often it was dialed, and when it is dialed again: a busy peer may close a connection before it
    /// has looked at it.
    pub(super) dials: u32,
    pub(super) redial: Option<Instant>,
    /// Whether the endpoint has a link to it.
    pub(super) is_linked: bool,
    /// Frames to it, and frames from it that were handled.
    pub(super) sent: u64,
    pub(super) seen: u64,
    /// How many it said it had sent, and how many we said.
    pub(super) bye: Option<u64>,
    pub(super) said_bye: Option<u64>,
    pub(super) is_seen: bool,
}

impl Contact {
    /// One at an address, whose frames are to carry this token.
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

    /// Whether its Hello has not come yet.
    pub(super) fn greets(&self) -> bool {
        self.state == State::Greeting
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether nothing more comes of it.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, State::Dead | State::Closed)
    }

    /// Its connection is gone.
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
