// SPDX-License-Identifier: BSD-2-Clause
//! A peer on the network.
//!
//! ```text
//! Greeting --- Hello came --> Open --- Bye came, all frames seen --> Closed
//!    |                          `----- connection gone, and QUIET --> Dead
//!    `--- refused, no answer --> Failed
//! ```
//! Of a peer whose connection is gone, what it sent before may still come over the provider below: it
//! is dead once nothing has in several looks. Looks are counted, and not only the time: whoever is
//! not scheduled for a second has not looked.

use std::{
    net::SocketAddrV4,
    time::{Duration, Instant},
};

use ffi::Errno;

use super::secret::Secret;
use crate::{identity::Identity, shm::segment::Liveness};

/// Looks in which nothing came, after which nothing more comes of a peer whose connection is gone,
/// and the time from one to the next at least.
const QUIET: u32 = 4;
const A_LOOK: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Greeting,
    /// Why, and since when.
    Failed(Errno, Instant),
    Open,
    Lost(Looks),
    Dead,
    Closed,
}

/// What the last looks at a peer found whose connection is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Looks {
    last: Instant,
    /// Its frames by then.
    seen: u64,
    /// Looks since one came.
    quiet: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Contact {
    pub(super) address: SocketAddrV4,
    pub(super) who: Option<Identity>,
    /// Where the provider below sends to it.
    pub(super) to: u64,
    /// What frames to it carry.
    pub(super) token: u32,
    pub(super) number: u16,
    /// What its frames carry.
    pub(super) token_here: u32,
    pub(super) state: State,
    /// Connections to it, and the secret by which they are made.
    pub(super) streams: Vec<usize>,
    pub(super) secret: Option<Secret>,
    /// The ones over which frames go to it and come from it; without a provider below.
    pub(super) outgoing: Option<usize>,
    pub(super) incoming: Option<usize>,
    /// How often it was dialed, and when it is dialed again: a busy peer may close a connection before it
    /// has looked at it.
    pub(super) dials: u32,
    pub(super) redial: Option<Instant>,
    /// Whether the endpoint has a link to it.
    pub(super) is_linked: bool,
    /// Frames to it, and frames from it that came, and that were handled.
    pub(super) sent: u64,
    pub(super) came: u64,
    pub(super) seen: u64,
    /// Whether a frame was lost, there or back: no other is sent or handled.
    pub(super) is_torn: bool,
    /// How many it said it had sent, and how many we said.
    pub(super) bye: Option<u64>,
    pub(super) said_bye: Option<u64>,
    pub(super) is_seen: bool,
    /// Blocks that the provider below has for it, and how many of them lend memory of the application.
    pub(super) under_way: u32,
    pub(super) lent: u32,
}

impl Contact {
    /// One at an address, whose frames are to carry this token.
    pub(super) fn new(address: SocketAddrV4, token_here: u32) -> Self {
        Self {
            address,
            who: None,
            to: ffi::flags::ADDR_UNSPEC,
            token: 0,
            number: 0,
            token_here,
            state: State::Greeting,
            streams: Vec::new(),
            secret: None,
            outgoing: None,
            incoming: None,
            dials: 0,
            redial: None,
            is_linked: false,
            sent: 0,
            came: 0,
            seen: 0,
            is_torn: false,
            bye: None,
            said_bye: None,
            is_seen: false,
            under_way: 0,
            lent: 0,
        }
    }

    /// Whether it has yet to say who it is.
    pub(super) fn greets(&self) -> bool {
        self.state == State::Greeting
    }

    /// Whether it is not known to be gone: one that is lost may have sent what is still on its way.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Lost(_))
    }

    /// Whether its connection is gone, or a frame: nothing more is sent to it, and it is dead soon.
    pub(super) fn is_lost(&self) -> bool {
        self.is_torn || matches!(self.state, State::Lost(_))
    }

    /// Whether it is known that nothing more comes of it.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, State::Dead | State::Closed)
    }

    /// Whether a frame with this token is from it; it may be before it is known who that is: its Hello,
    /// which it sent first, comes on another connection.
    pub(super) fn is_from(&self, token: u32) -> bool {
        self.token_here == token
    }

    /// Its connection is gone.
    pub(super) fn lose(&mut self) {
        if self.state == State::Open {
            self.state = State::Lost(Looks { last: Instant::now(), seen: self.seen, quiet: 0 });
        }
    }

    /// After a look at what has come: one that is lost is dead after some.
    pub(super) fn settle(&mut self) {
        let State::Lost(looks) = &mut self.state else { return };
        if looks.last.elapsed() < A_LOOK {
            return;
        }
        looks.last = Instant::now();
        looks.quiet = if looks.seen == self.seen { looks.quiet + 1 } else { 0 };
        looks.seen = self.seen;
        if looks.quiet == QUIET {
            self.state = State::Dead;
        }
    }

    /// See [`super::link::Link::liveness`].
    pub(super) fn liveness(&self) -> Liveness {
        match self.state {
            State::Closed => Liveness::Closed,
            State::Dead | State::Failed(..) => Liveness::Dead,
            State::Greeting | State::Open | State::Lost(_) => Liveness::Alive,
        }
    }
}
