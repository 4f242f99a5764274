// SPDX-License-Identifier: BSD-2-Clause
//! The transport over TCP, to endpoints of other hosts, and to those of this host whose segments
//! are not visible here.
//!
//! - [`connections`]: a TCP connection to each peer. Both ends prove that they know the secret
//!   ([`secret`], [`handshake`]), and each notices if the other closes or dies.
//! - [`input`]: received bytes of a connection. [`frame`]: the head of a frame, which is the
//!   counterpart of a slot in shared memory.
//! - [`peer_table`]: known peers, by number. [`peer_clock`]: the clock of a peer.
//! - [`Net`]: the local end; [`peer`]: a peer, which frames are sent to; [`rx`]: the receiving end.
//!
//! The address of an endpoint is an address of its host with the port that it holds. Numbers of
//! peers and tokens of frames belong to one endpoint and not to later ones at its port, so that no
//! endpoint receives messages for an earlier one.
//!
//! Memory: each peer takes about 600 bytes and a descriptor. Its receive buffer is empty until data
//! comes. The buffer then has 4 KiB, grows up to 128 KiB under load, and is freed when the
//! connection is idle. For a peer that does not read, up to one frame of 256 KiB is kept.
//!
//! Rejected: docs/decisions/network.md.

mod connections;
pub mod frame;
mod handshake;
mod input;
pub mod peer;
mod peer_clock;
mod peer_table;
pub(crate) mod rx;
pub mod secret;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unproved;

use std::{
    net::SocketAddrV4,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use ffi::Errno;
use host::children::{self, Unshared};
use parking_lot::Mutex;

use self::{
    peer_table::{LocalEndpoint, PeerTable},
    secret::{Claim, Secret},
};
use crate::{contract::Liveness, identity::Identity};

/// Settings of the network.
#[derive(Clone, Debug)]
pub struct NetSettings {
    /// The secret of the job (`FI_TCAM_JOB_KEY`). All its endpoints prove that they know it.
    pub job: Option<Secret>,
    /// The secret of this endpoint, which peers know from its name. Without a job secret, peers
    /// prove that they know this one.
    pub own: Secret,
    /// Time after which the peers of a host that does not answer count as dead; zero: never.
    pub timeout: Duration,
    /// Whether each frame is authenticated (`FI_TCAM_NET_SEAL`).
    pub seals: bool,
    /// Whether this endpoint records times, so that peers send the times of their messages.
    pub has_times: bool,
}

/// The local end of the network.
#[derive(Debug)]
pub struct Net {
    peers: Mutex<PeerTable>,
    /// A duplicate of the epoll descriptor of the connections.
    doorbell: Unshared,
    pub(crate) seals: bool,
    /// Time after which a peer that does not answer counts as dead; zero: never.
    pub(crate) timeout: Duration,
    /// Fork generation of the process that created this end.
    generation: u32,
}

impl Net {
    /// Creates the end of an endpoint with this address, whose port the socket holds.
    ///
    /// # Errors
    /// The socket cannot listen, or there are no descriptors left.
    pub fn new(
        settings: &NetSettings,
        socket: OwnedFd,
        who: Identity,
        address: SocketAddrV4,
    ) -> Result<Arc<Self>, Errno> {
        let &NetSettings { job, own: secret, timeout, seals, has_times } = settings;
        let own = LocalEndpoint { job, secret, who, address, seals, has_times };
        let peers = PeerTable::new(own, socket, timeout)?;
        let doorbell = Unshared::copy(peers.connections.doorbell())?;
        let generation = children::generation();
        Ok(Arc::new(Self { peers: Mutex::new(peers), doorbell, seals, timeout, generation }))
    }

    /// Returns whether this process created this end. A forked child cannot use its connections.
    fn is_ours(&self) -> bool {
        self.generation == children::generation()
    }

    /// Returns the number and the identity of the endpoint at an address. The first call connects
    /// to the endpoint. In the handshake, this end proves that it knows the secret of the job or,
    /// without one, `secret`.
    ///
    /// # Errors
    /// `EAGAIN` until the endpoint's Hello has come, `EACCES` without any secret, `EOPBADSTATE` in
    /// a forked child. If the endpoint cannot be reached, the reason is returned once, and the next
    /// call tries again.
    pub(crate) fn meet(
        &self,
        address: SocketAddrV4,
        secret: Option<Secret>,
    ) -> Result<(u16, Identity), Errno> {
        if !self.is_ours() {
            return Err(Errno::EOPBADSTATE);
        }
        let mut peers = self.peers.lock();
        peers.progress();
        peers.meet(address, secret)
    }

    /// Returns the identity and the address of the peer with a number; `None` before its Hello, or
    /// if no peer has the number.
    pub(crate) fn peer(&self, number: u16) -> Option<(Identity, SocketAddrV4)> {
        let peers = self.peers.lock();
        let peer = peers.get(number.into())?;
        Some((peer.who?, peer.address))
    }

    /// Returns whether the peer with a number is at the address that it claims, which means that it
    /// knows the secret in the name of the endpoint at that address. A peer that does not know this
    /// secret is disconnected. If nothing can be checked, the result is true.
    pub(crate) fn is_at_its_address(
        &self,
        number: u16,
        secret: impl FnOnce() -> Option<Secret>,
    ) -> bool {
        self.peers.lock().check_claim(number, secret)
    }

    /// Returns the claim of the peer with a number to be at its address; `None` in a job with a
    /// secret, or if no peer has the number.
    pub(crate) fn claim(&self, number: u16) -> Option<Claim> {
        self.peers.lock().get(number.into())?.claim
    }

    /// Returns whether the endpoint with this secret made a claim.
    pub(crate) fn is_claim_of(&self, claim: &Claim, secret: &Secret) -> bool {
        self.peers.lock().is_claim_of(claim, secret)
    }

    /// Disconnects the peer with a number, because it is not at the address that it claims.
    pub(crate) fn disown(&self, number: u16) {
        self.peers.lock().disown(number);
    }

    /// Returns a descriptor that becomes readable when a connection has an event after
    /// [`Net::arm`].
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// Arms the doorbell, which then becomes readable at the next event of a connection. Returns
    /// false if a frame has come already, or in a forked child.
    pub(crate) fn arm(&self) -> bool {
        if !self.is_ours() {
            return false;
        }
        let mut peers = self.peers.lock();
        // A frame that was read before does not make the doorbell readable. Unread bytes would end
        // the sleep at once.
        peers.progress();
        !peers.connections.has_frame()
    }

    /// Does the periodic work on connections and peers.
    pub(crate) fn look_around(&self) {
        if self.is_ours() {
            let mut peers = self.peers.lock();
            peers.progress();
            peers.look_around();
        }
    }

    /// Sends Bye to all peers that have not got one since the last frame to them.
    pub(crate) fn send_bye(&self) {
        if self.is_ours() {
            self.peers.lock().send_bye();
        }
    }

    /// Returns whether bytes wait to be sent, or peers that got Bye have not confirmed all frames.
    pub(crate) fn has_unsent(&self) -> bool {
        if !self.is_ours() {
            return false;
        }
        let mut peers = self.peers.lock();
        peers.progress();
        peers.connections.has_unsent() || peers.awaits_confirmation()
    }

    /// See [`peer::NetPeer::liveness`].
    fn liveness(&self, number: u16, who: Identity) -> Liveness {
        if !self.is_ours() {
            return Liveness::Dead;
        }
        self.peers.lock().liveness(number, who)
    }
}
