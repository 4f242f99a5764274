// SPDX-License-Identifier: BSD-2-Clause
//! The sending end of an endpoint over all transports: it opens peers, sends to them, and lists the
//! endpoints that send to it.
//!
//! ```text
//! Tx::send_shm(number, header, payload)    Yes | NoRoom: later | NoBuffer: another payload
//!                                          None: the peer has no tx ring
//! Tx::send(peer, header, payload)          over the other transports
//! ```

use std::{net::SocketAddrV4, sync::Arc, time::Duration};

use ffi::Errno;
use host::owner;

#[cfg(any(test, feature = "testing"))]
use crate::testing::loopback::{LoopbackEnd, LoopbackRx};
use crate::{
    contract::{Payload, Sent, Settings, is_short},
    identity::Identity,
    net::{
        Net,
        peer::NetPeer,
        rx::NetRx,
        secret::{Claim, Secret},
    },
    peer::Peer,
    polling::NetworkSchedule,
    rx::{Receivers, Rx},
    shm::{peer::ShmPeer, ring::ShmRx, segment::Segment, tx::ShmTx},
    wire::{FAR, Header},
};

/// The sending end; see the module.
#[derive(Debug)]
pub struct Tx {
    /// The sending end over shared memory.
    shm: Arc<ShmTx>,
    settings: Settings,
    net: Option<Arc<Net>>,
    /// Decides which polls include the network.
    pub schedule: NetworkSchedule,
    /// Number of messages that were sent whole over the network, and of their bytes.
    sent_far: (u64, u64),
    /// Number of messages that had to wait for room on the network.
    waited_far: u64,
    #[cfg(any(test, feature = "testing"))]
    loopback: Option<Arc<LoopbackEnd>>,
}

impl Tx {
    /// Creates the sending end of the endpoint that owns the segment `own`; `net` is `None` for an
    /// endpoint without a network. `locked`: several threads may send.
    #[must_use]
    pub fn new(
        own: &Arc<Segment>,
        net: Option<Arc<Net>>,
        schedule: NetworkSchedule,
        settings: Settings,
        locked: bool,
    ) -> Self {
        Self {
            shm: Arc::new(ShmTx::new(own, settings.checks, locked)),
            settings,
            net,
            schedule,
            sent_far: (0, 0),
            waited_far: 0,
            #[cfg(any(test, feature = "testing"))]
            loopback: None,
        }
    }

    /// Creates the receiving ends, one for each transport.
    #[must_use]
    pub fn receivers(&self) -> Receivers {
        [
            Some(Box::new(Rx::Shm(ShmRx::new(&self.shm.own)))),
            self.net.as_ref().map(|net| Box::new(Rx::Net(NetRx::new(net)))),
            #[cfg(any(test, feature = "testing"))]
            self.loopback.as_ref().map(|end| Box::new(Rx::Loopback(LoopbackRx::new(end)))),
        ]
    }

    /// Returns whether the endpoint can reach peers of other hosts.
    #[must_use]
    pub fn has_net(&self) -> bool {
        self.net.is_some()
    }

    /// Opens the endpoint that is at an address of another host, or of this host if its segment is
    /// not visible here. In the handshake, this endpoint proves to the peer that it knows the
    /// secret of the job or, without one, `secret`.
    ///
    /// # Errors
    /// `EAGAIN` until the peer has answered the handshake, `ENETUNREACH` without a network,
    /// `EOPBADSTATE` in a forked child. `EACCES` if the handshake fails because secrets, addresses
    /// or the settings of sealing differ, or if no secret for the peer is known. Otherwise the
    /// reason why the peer cannot be reached.
    pub fn open_far(&self, address: SocketAddrV4, secret: Option<Secret>) -> Result<Peer, Errno> {
        let net = self.net.as_ref().ok_or(Errno::ENETUNREACH)?;
        let (number, who) = net.meet(address, secret)?;
        Ok(Peer::Net(NetPeer::new(net, number, who, self.settings)))
    }

    /// Returns whether the sender with this number is at the address that [`Tx::sender`] returns.
    /// Over the network, the sender must know the secret in the name of the endpoint at that
    /// address; if it does not, it is disconnected. The result is true for senders of this host, in
    /// a job with a secret, and if `secret` returns `None`; it is false for an unknown number.
    #[must_use]
    pub fn is_at_its_address(&self, number: u32, secret: impl FnOnce() -> Option<Secret>) -> bool {
        self.on_net(number).is_none_or(|(net, number)| net.is_at_its_address(number, secret))
    }

    /// Returns the claim of the sender with this number to be at its address. The result is `None`
    /// for senders of this host and in a job with a secret, which need no claim, and for an unknown
    /// number.
    #[must_use]
    pub fn claim(&self, number: u32) -> Option<Claim> {
        self.on_net(number).and_then(|(net, number)| net.claim(number))
    }

    /// Returns whether a claim was made by the endpoint whose name contains this secret.
    #[must_use]
    pub fn is_claim_of(&self, claim: &Claim, secret: &Secret) -> bool {
        self.net.as_ref().is_some_and(|net| net.is_claim_of(claim, secret))
    }

    /// Disconnects the sender with this number, if it is on the network.
    pub fn disown(&self, number: u32) {
        if let Some((net, number)) = self.on_net(number) {
            net.disown(number);
        }
    }

    /// Opens the endpoint that currently holds a port of this host.
    ///
    /// # Errors
    /// `ECONNREFUSED` if no endpoint holds the port, `EACCES` if a file of another user is in the
    /// way, `EPROTO` if the segment is damaged or of another version of tcam. If this endpoint
    /// cannot be entered as a sender: `ENOSPC` if `/dev/shm` is full, `EPROTO` if the list of
    /// senders is.
    pub fn open(&self, port: u16) -> Result<Peer, Errno> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.loopback {
            return end.open(port, self.settings).map(Peer::Loopback);
        }
        ShmPeer::enter(&self.shm.own, Segment::open(port)?, self.settings).map(Peer::Shm)
    }

    /// Opens one endpoint, and no later one at the same port.
    ///
    /// # Errors
    /// Those of [`Tx::open`]; `ECONNREFUSED` if the endpoint has closed or died.
    pub fn open_only(&self, peer: Identity) -> Result<Peer, Errno> {
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.loopback {
            return end.open_only(peer, self.settings).map(Peer::Loopback);
        }
        ShmPeer::enter(&self.shm.own, Segment::open_only(peer)?, self.settings).map(Peer::Shm)
    }

    /// Returns whether an endpoint of this host has closed, was marked as dead, or was removed. If
    /// a shortage prevents the check, the result is false. Unlike [`Tx::open_only`], this does not
    /// enter this endpoint into the list of senders there (except on the loopback of tests).
    #[must_use]
    pub fn is_gone(&self, who: Identity) -> bool {
        let is_gone = |errno| !is_short(errno);
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.loopback {
            return end.open_only(who, self.settings).is_err_and(is_gone);
        }
        Segment::open_only(who).is_err_and(is_gone)
    }

    /// Opens the endpoint `who`, which sends to this endpoint under a number.
    ///
    /// # Errors
    /// Those of [`Tx::open_only`]. `ECONNREFUSED` if the connection over the network has ended.
    pub fn open_sender(&self, number: u32, who: Identity) -> Result<Peer, Errno> {
        match self.on_net(number) {
            None => self.open_only(who),
            Some((net, number)) => {
                let peer = NetPeer::new(net, number, who, self.settings);
                if peer.is_open() { Ok(Peer::Net(peer)) } else { Err(Errno::ECONNREFUSED) }
            }
        }
    }

    /// Returns whether this user has a segment for a port on this host. Its endpoint may be dead.
    #[must_use]
    pub fn has_segment(&self, port: u16) -> bool {
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.loopback {
            return end.has_end(port);
        }
        owner::has_segment(port)
    }

    /// From now on, [`Tx::send_shm`] sends slots for `number` to this peer, if it is a peer over
    /// shared memory.
    pub fn connect(&self, number: u32, peer: &Peer) {
        if let Peer::Shm(peer) = peer {
            self.shm.connect(number, peer);
        }
    }

    /// Returns the sending end over shared memory, for threads that do not hold the engine.
    #[must_use]
    pub fn shm(&self) -> &Arc<ShmTx> {
        &self.shm
    }

    /// Sends a slot and its payload to a connected peer of this host. Returns `None` if the peer is
    /// not connected.
    #[inline(always)]
    #[must_use]
    pub fn send_shm(&self, number: u32, header: &Header, payload: Payload<'_>) -> Option<Sent> {
        self.shm.send(number, header, payload)
    }

    /// Sends a slot and its payload to a peer that [`Tx::send_shm`] does not reach. Returns
    /// [`Sent::NoRoom`] for a peer of this host that is not connected.
    #[inline(always)]
    pub fn send(&mut self, peer: &mut Peer, header: &Header, payload: Payload<'_>) -> Sent {
        match peer {
            // A peer of this host that is not connected.
            Peer::Shm(_) => Sent::NoRoom,
            Peer::Net(peer) => self.send_net(peer, header, payload),
            #[cfg(any(test, feature = "testing"))]
            Peer::Loopback(peer) => peer.send(*header, payload),
        }
    }

    /// Sets the checksum of the payload of the next slot to a peer.
    pub fn set_check(&self, number: u32, peer: &mut Peer, check: u32) {
        match peer {
            Peer::Shm(_) => self.shm.set_check(number, check),
            Peer::Net(peer) => peer.set_check(check),
            #[cfg(any(test, feature = "testing"))]
            Peer::Loopback(peer) => peer.set_check(check),
        }
    }

    /// Sends over the network. This is out of line: inline, a message over shared memory takes six
    /// more instructions.
    #[cold]
    #[inline(never)]
    fn send_net(&mut self, peer: &mut NetPeer, header: &Header, payload: Payload<'_>) -> Sent {
        let is_whole = matches!(payload, Payload::Message(_) | Payload::IfQuick(_));
        let sent = peer.send(*header, payload);
        self.schedule.note_far_send();
        if sent == Sent::Yes && is_whole {
            self.sent_far = (self.sent_far.0 + 1, self.sent_far.1 + header.len);
        }
        if is_whole || matches!(payload, Payload::Where(_)) {
            let waited = std::mem::replace(&mut peer.has_waiting, sent != Sent::Yes);
            self.waited_far += u64::from(peer.has_waiting && !waited);
        }
        sent
    }

    /// Returns the number of messages that were sent whole over the network, and of their bytes.
    #[must_use]
    pub fn sent_far(&self) -> (u64, u64) {
        self.sent_far
    }

    /// Returns the number of messages that had to wait for room on the network.
    #[must_use]
    pub fn waited_far(&self) -> u64 {
        self.waited_far
    }

    /// Returns whether a payload of `len` bytes fits a slot without a buffer.
    #[inline(always)]
    #[must_use]
    pub fn fits(&self, len: usize) -> bool {
        self.shm.fits(len)
    }

    /// Returns whether a buffer is free.
    pub fn has_room(&self) -> bool {
        self.shm.has_room()
    }

    /// Returns whether receivers still hold buffers, bytes wait to be sent over the network, or,
    /// after [`Tx::send_bye`], peers of other hosts have not confirmed all frames.
    pub fn has_unfinished_sends(&self) -> bool {
        self.shm.has_lent_buffers() || self.net.as_ref().is_some_and(|net| net.has_unsent())
    }

    /// Returns the time that a peer of another host may take to confirm the frames that it got;
    /// zero without a network or a timeout.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.net.as_ref().map_or(Duration::ZERO, |net| net.timeout)
    }

    /// Returns the sender with a number, and its address if it sends over the network. Returns
    /// `None` if no sender has the number.
    #[must_use]
    pub fn sender(&self, number: u32) -> Option<(Identity, Option<SocketAddrV4>)> {
        if let Some((net, number)) = self.on_net(number) {
            return net.peer(number).map(|(who, address)| (who, Some(address)));
        }
        let number = u16::try_from(number).ok()?;
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.loopback {
            return Some((end.sender(number)?, None));
        }
        Some((self.shm.own.sender(number)?, None))
    }

    /// Returns the network and the number of a sender in it; `None` for a sender of this host.
    fn on_net(&self, number: u32) -> Option<(&Arc<Net>, u16)> {
        let number = u16::try_from(number.checked_sub(FAR)?).ok()?;
        Some((self.net.as_ref()?, number))
    }

    /// Returns the senders in a part of the list of senders over shared memory, with their numbers.
    /// Part numbers wrap around at [`Tx::list_parts`].
    #[must_use]
    pub fn senders_in(&self, part: usize) -> Vec<(u32, Identity)> {
        self.shm.own.senders_in(part)
    }

    /// Returns the number of parts of the list that [`Tx::senders_in`] reads.
    #[must_use]
    pub fn list_parts(&self) -> usize {
        self.shm.own.list_pages()
    }

    /// Frees the number of a sender over shared memory that has closed or died, if it still belongs
    /// to `who`. All slots of the sender must have been handled.
    pub fn strike(&self, number: u32, who: Identity) {
        // Numbers of the network are freed with their peers.
        let Ok(number) = u16::try_from(number) else { return };
        #[cfg(any(test, feature = "testing"))]
        if let Some(end) = &self.loopback {
            return end.strike(number, who);
        }
        self.shm.own.strike(number, who);
    }

    /// Does the periodic work of the network.
    pub fn look_around(&self) {
        if let Some(net) = &self.net {
            net.look_around();
        }
    }

    /// Prepares for a sleep. Returns whether any event on the network will end the sleep: false if
    /// a frame has come already, or in a forked child; true without a network.
    pub fn arm_net(&self) -> bool {
        self.net.as_ref().is_none_or(|net| net.arm())
    }

    /// Sends Bye, with the number of frames that were sent, to peers of other hosts. If answers are
    /// sent afterwards, the next call sends another Bye.
    pub fn send_bye(&self) {
        if let Some(net) = &self.net {
            net.send_bye();
        }
    }

    /// From now on, messages go over the loopback.
    #[cfg(any(test, feature = "testing"))]
    pub fn join(&mut self, end: &Arc<LoopbackEnd>) {
        self.loopback = Some(Arc::clone(end));
    }

    /// Changes the settings of peers that are opened from now on. Disconnects all peers of this
    /// host.
    #[cfg(any(test, feature = "testing"))]
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
        self.shm = Arc::new(ShmTx::new(&self.shm.own, settings.checks, false));
    }

    /// Lends all free buffers to a peer.
    #[cfg(any(test, feature = "testing"))]
    pub fn take_all(&self, peer: u32) {
        self.shm.take_all(peer);
    }
}
