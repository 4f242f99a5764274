// SPDX-License-Identifier: BSD-2-Clause
//! The peers of an endpoint on the network, each under a number.
//!
//! ```text
//! Greeting --- Hello came ----> Open --- Bye came, all frames before it handled ------> Closed
//!    |                            |----- connections ended after this end's Bye ------> Closed
//!    |                            `----- connections ended without this end's Bye ---> Dead
//!    `--- refused, no answer --> Failed
//! ```
//! The end of a connection takes effect after the frames that came over it were handled.
//!
//! Both ends may connect at the same time. The first Hello that comes opens the peer. The Hello
//! over the other connection must contain the same identity, number and token.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddrV4,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use ffi::{Buffer, Errno};
use host::clock;

use super::{
    connections::{ConnectionEvent, Connections},
    handshake::{DecodeError, HandshakeMessage, Hello, Refusal},
    input::Frame,
    peer_clock::PeerClock,
    secret::{Claim, Secret},
};
use crate::{
    contract::Liveness,
    identity::{Identity, random},
};

/// Maximum number of peers of an endpoint: each has a 16-bit number.
const MAX_PEERS: usize = 1 << 16;
/// Maximum number of peers that one call of [`PeerTable::look_around`] handles.
const PEERS_PER_LOOK: usize = 1024;
/// Minimum time between log messages about refused connections.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of dials of a peer that closes the connections before it sends Hello.
const MAX_DIALS: u32 = 50;
/// Time between the end of a connection and the next dial.
const REDIAL_DELAY: Duration = Duration::from_millis(50);
/// Maximum number of endpoints in [`PeerTable::lost`], which is cleared when it is full.
const MAX_LOST: usize = 1 << 16;
/// Time for which the reason is kept that a peer cannot be reached.
const KEEP_FAILURE: Duration = Duration::from_secs(10);

/// State of a peer; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerState {
    /// The peer's Hello has not come yet.
    Greeting,
    /// The peer cannot be reached. The fields are the reason and the time of the failure.
    Failed(Errno, Instant),
    Open,
    Dead,
    Closed,
}

/// A peer.
#[derive(Debug)]
pub(super) struct PeerEntry {
    pub(super) address: SocketAddrV4,
    /// `None` until the peer's Hello has come.
    pub(super) who: Option<Identity>,
    /// Token that frames to the peer carry.
    pub(super) token_there: u64,
    /// Number of this endpoint at the peer.
    pub(super) number_there: u16,
    /// Token that frames from the peer carry.
    pub(super) token_here: u64,
    pub(super) state: PeerState,
    /// Numbers of the connections to the peer.
    pub(super) streams: Vec<usize>,
    /// The secret that is proved when the peer is dialed; `None` if this endpoint did not dial it.
    pub(super) secret: Option<Secret>,
    /// The peer's claim to be at its address; `None` in a job with a secret.
    pub(super) claim: Option<Claim>,
    /// The secret with which the claim was verified; `None` until then.
    pub(super) verified_with: Option<Secret>,
    /// The peer's clock; `None` if frames have no times.
    pub(super) clock: Option<PeerClock>,
    /// The connection for frames to the peer; one of `streams`.
    pub(super) outgoing: Option<usize>,
    /// The connection for frames from the peer; one of `streams`.
    pub(super) incoming: Option<usize>,
    /// Number of dials.
    pub(super) dials: u32,
    /// Time of the next dial, if the peer closed a connection before it sent Hello, as a busy peer
    /// does.
    pub(super) redial: Option<Instant>,
    /// Whether a [`NetPeer`](super::peer::NetPeer) of this peer exists, so that the entry must
    /// stay.
    pub(super) is_held: bool,
    /// True after a failed send, or after the connection for frames to the peer has ended while
    /// another one remains. Nothing more is sent to the peer then.
    send_failed: bool,
    /// Frames sent to the peer.
    pub(super) sent: u64,
    /// Frames from the peer that were handled.
    pub(super) handled: u64,
    /// Number of frames in the peer's Bye.
    pub(super) bye_received: Option<u64>,
    /// Number of frames in the last Bye to the peer.
    pub(super) bye_sent: Option<u64>,
    /// True if the peer has confirmed all frames.
    pub(super) is_confirmed: bool,
}

impl PeerEntry {
    /// Creates the entry of a peer at an address. Frames from the peer must carry this token.
    pub(super) fn new(address: SocketAddrV4, token_here: u64) -> Self {
        Self {
            address,
            who: None,
            token_there: 0,
            number_there: 0,
            token_here,
            state: PeerState::Greeting,
            streams: Vec::new(),
            secret: None,
            claim: None,
            verified_with: None,
            clock: None,
            outgoing: None,
            incoming: None,
            dials: 0,
            redial: None,
            is_held: false,
            send_failed: false,
            sent: 0,
            handled: 0,
            bye_received: None,
            bye_sent: None,
            is_confirmed: false,
        }
    }

    /// Returns whether the peer's Hello has not come yet.
    pub(super) fn awaits_hello(&self) -> bool {
        self.state == PeerState::Greeting
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == PeerState::Open
    }

    /// Returns whether frames from the peer are handled. A closed peer is included: it still
    /// answers requests that it receives after its Bye.
    fn accepts_frames(&self) -> bool {
        matches!(self.state, PeerState::Open | PeerState::Closed)
    }

    /// Returns whether the peer is closed or dead, so that nothing more is sent to it.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, PeerState::Dead | PeerState::Closed)
    }

    /// Notes that the connections to the peer have ended. Forgets which of them carried frames,
    /// because later connections may get their numbers.
    pub(super) fn connections_ended(&mut self) {
        (self.outgoing, self.incoming) = (None, None);
        if self.state == PeerState::Open {
            // After its own Bye, this endpoint is the one that leaves.
            let leaves = self.bye_sent.is_some();
            self.state = if leaves { PeerState::Closed } else { PeerState::Dead };
        }
    }

    /// See [`super::peer::NetPeer::liveness`].
    pub(super) fn liveness(&self) -> Liveness {
        match self.state {
            PeerState::Closed => Liveness::Closed,
            PeerState::Dead | PeerState::Failed(..) => Liveness::Dead,
            PeerState::Greeting | PeerState::Open => Liveness::Alive,
        }
    }
}

/// The description of this endpoint for all peers.
#[derive(Debug)]
pub(super) struct LocalEndpoint {
    /// The secret of the job. If it is `None`, peers prove that they know `secret`.
    pub(super) job: Option<Secret>,
    pub(super) secret: Secret,
    pub(super) who: Identity,
    pub(super) address: SocketAddrV4,
    /// Whether its frames are sealed.
    pub(super) seals: bool,
    /// Whether it records times.
    pub(super) has_times: bool,
}

/// The peers of an endpoint; see the module.
#[derive(Debug)]
pub(super) struct PeerTable {
    own: LocalEndpoint,
    pub(super) connections: Connections,
    all: Vec<Option<Box<PeerEntry>>>,
    /// Number of the last peer that was added at each address.
    by_address: HashMap<SocketAddrV4, u16>,
    /// Number of the peer of each connection.
    by_stream: HashMap<usize, u16>,
    /// Endpoints whose connections broke. A message may be missing, so these endpoints are refused.
    lost: HashSet<Identity>,
    /// Number at which the search for a free one begins.
    next: usize,
    /// Time of the last log message about a refused or invalid connection. There is at most one per
    /// second.
    last_log: Option<Instant>,
    /// The last number that [`PeerTable::look_around`] handled.
    last_looked: usize,
}

impl PeerTable {
    /// Creates the table of an endpoint that holds its port with this socket.
    pub(super) fn new(
        own: LocalEndpoint,
        socket: OwnedFd,
        timeout: Duration,
    ) -> Result<Self, Errno> {
        let secret = own.job.unwrap_or(own.secret);
        Ok(Self {
            connections: Connections::new(socket, timeout, secret, own.seals)?,
            own,
            last_log: None,
            all: Vec::new(),
            by_address: HashMap::new(),
            by_stream: HashMap::new(),
            lost: HashSet::new(),
            next: 0,
            last_looked: 0,
        })
    }

    pub(super) fn get(&self, number: usize) -> Option<&PeerEntry> {
        self.all.get(number)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, number: u16) -> Option<&mut PeerEntry> {
        self.all.get_mut(usize::from(number))?.as_deref_mut()
    }

    /// Returns the open peer at an address, and its number.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn open_peer_at(&self, address: SocketAddrV4) -> Option<(u16, &PeerEntry)> {
        let number = *self.by_address.get(&address)?;
        Some((number, self.get(number.into()).filter(|peer| peer.is_open())?))
    }

    /// Returns the number of open peers.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn open_count(&self) -> usize {
        self.all.iter().flatten().filter(|peer| peer.is_open()).count()
    }

    /// See [`super::Net::meet`].
    pub(super) fn meet(
        &mut self,
        address: SocketAddrV4,
        secret: Option<Secret>,
    ) -> Result<(u16, Identity), Errno> {
        // The loop ends, because each check that fails disconnects an open peer at this address.
        while let Some(&number) = self.by_address.get(&address)
            && !self.check_claim(number, || secret)
        {}
        if let Some(&number) = self.by_address.get(&address)
            && let Some(peer) = self.get(number.into())
        {
            match (peer.state, peer.who) {
                (PeerState::Open, Some(who)) => return Ok((number, who)),
                (PeerState::Failed(errno, _), _) => {
                    self.remove(number);
                    return Err(errno);
                }
                (PeerState::Dead | PeerState::Closed, _) => {}
                _ => return Err(Errno::EAGAIN),
            }
        }
        let Some(secret) = self.own.job.or(secret) else {
            tracing::error!(
                "cannot connect to {address}: the address came without the secret that the name of \
                 an endpoint contains (fi_getname). Set FI_TCAM_JOB_KEY to the same random text in \
                 all processes, or FI_TCAM_NET_OPEN=yes on a network where all users are trusted"
            );
            return Err(Errno::EACCES);
        };
        let number = self.add(address)?;
        if let Some(peer) = self.get_mut(number) {
            peer.secret = Some(secret);
        }
        if let Err(errno) = self.dial(number) {
            self.remove(number);
            return Err(errno);
        }
        Err(Errno::EAGAIN)
    }

    fn dial(&mut self, number: u16) -> Result<(), Errno> {
        let peer = self.get(number.into()).ok_or(Errno::ECONNABORTED)?;
        let (address, secret) = (peer.address, peer.secret.ok_or(Errno::EACCES)?);
        let stream = self.connections.dial(address, secret)?;
        self.attach(number, stream);
        if let Some(peer) = self.get_mut(number) {
            peer.dials += 1;
        }
        Ok(())
    }

    /// Dials a peer again that closed the connection before it sent Hello.
    fn redial(&mut self, number: u16) {
        let Some(peer) = self.get_mut(number) else { return };
        peer.redial = None;
        if let Err(errno) = self.dial(number) {
            self.fail(number, errno);
        }
    }

    fn add(&mut self, address: SocketAddrV4) -> Result<u16, Errno> {
        let len = self.all.len();
        let free = |at: &usize| self.all[*at].is_none();
        let found = (self.next..len).find(free).or_else(|| (0..self.next.min(len)).find(free));
        // A number is not reused at once: the table first grows to 64 numbers.
        let number = match found {
            _ if len < 64 => len,
            Some(number) => number,
            None if len < MAX_PEERS => len,
            None => return Err(Errno::ENOSPC),
        };
        if number == len {
            self.all.push(None);
        }
        self.next = number + 1;
        let peer = PeerEntry::new(address, u64::from_ne_bytes(random()?));
        self.all[number] = Some(Box::new(peer));
        self.by_address.insert(address, number as u16);
        Ok(number as u16)
    }

    fn attach(&mut self, number: u16, stream: usize) {
        self.by_stream.insert(stream, number);
        self.connections.set_peer(stream, number);
        if let Some(peer) = self.get_mut(number) {
            peer.streams.push(stream);
        }
    }

    fn remove(&mut self, number: u16) {
        let Some(peer) = self.all[usize::from(number)].take() else { return };
        for stream in peer.streams {
            self.by_stream.remove(&stream);
            self.connections.close(stream);
        }
        if self.by_address.get(&peer.address) == Some(&number) {
            self.by_address.remove(&peer.address);
        }
    }

    /// Sends Hello to a peer over a connection.
    fn send_hello(&mut self, number: u16, stream: usize) {
        let Some(peer) = self.get(number.into()) else { return };
        let LocalEndpoint { who, address, seals, has_times, secret, .. } = self.own;
        let hello = Hello {
            who,
            address,
            to: peer.address,
            masked_token: peer.token_here,
            number,
            seals,
            has_times,
            clock: clock::now(),
            claim: Default::default(),
        };
        self.connections.send_hello(stream, hello, &secret);
    }

    /// Sends, receives, and handles the events of connections.
    pub(super) fn progress(&mut self) {
        self.connections.poll();
        while let Some((stream, event)) = self.connections.next() {
            let number = self.by_stream.get(&stream).copied();
            match event {
                // The acceptor's nonce has come, so the dialer sends Hello.
                ConnectionEvent::Started => {
                    number.into_iter().for_each(|it| self.send_hello(it, stream));
                }
                ConnectionEvent::Proved(hello, claim) => self.on_hello(stream, &hello, claim),
                ConnectionEvent::Message(message) => {
                    number.into_iter().for_each(|it| self.on_message(it, &message));
                    if matches!(message, HandshakeMessage::Refused(_)) {
                        self.close_connection(stream, Errno::EACCES);
                    }
                }
                ConnectionEvent::Unproved => self.refuse(stream, Refusal::Key),
                ConnectionEvent::Invalid(error) => {
                    match error {
                        _ if !self.claim_log_turn() => {}
                        DecodeError::Version => tracing::warn!(
                            "refused a connection of another version of tcam, or of a host with \
                             another byte order"
                        ),
                        DecodeError::Garbage => {
                            tracing::warn!("refused a connection of a program that is not tcam");
                        }
                        DecodeError::Forged => {
                            tracing::error!(
                                "closed a connection: a frame was changed, added or lost on its way"
                            );
                        }
                    }
                    self.close_connection(stream, Errno::EPROTO);
                }
                ConnectionEvent::Ended(errno) => self.close_connection(stream, errno),
            }
        }
    }

    fn on_hello(&mut self, stream: usize, hello: &Hello, claim: Claim) {
        let dialed = self.by_stream.get(&stream).copied();
        // Each end names the endpoint that it speaks to, so a handshake cannot be relayed to
        // another endpoint.
        let meant = match dialed.and_then(|number| self.get(number.into())) {
            Some(peer) => {
                hello.to == self.own.address && hello.address.port() == peer.address.port()
            }
            None => self.connections.local_address(stream) == Some(hello.to),
        };
        let has_job = self.own.job.is_some();
        let is_other = hello.address != self.own.address;
        if !meant || !is_other || hello.who.port() != hello.address.port() {
            return self.refuse(stream, Refusal::Key);
        }
        if hello.seals != self.own.seals {
            return self.refuse(stream, Refusal::Seal);
        }
        if self.lost.contains(&hello.who) {
            return self.refuse(stream, Refusal::Lost);
        }
        let known = dialed.or_else(|| self.by_address.get(&hello.address).copied());
        let fits = |peer: &PeerEntry| match peer.state {
            PeerState::Greeting => true,
            PeerState::Open => {
                let (number, token) = (peer.number_there, peer.token_there);
                peer.who == Some(hello.who) && (number, token) == (hello.number, hello.masked_token)
            }
            _ => false,
        };
        let number = match known {
            Some(number) if self.get(number.into()).is_some_and(fits) => {
                // The peer was dialed, or it connects while an entry for it exists. In the second
                // case, without a secret of the job, its claim must be by the secret with which
                // this endpoint dialed that address.
                let secret = self.get(number.into()).and_then(|peer| peer.secret);
                let is_it = dialed.is_some() || secret.is_some_and(|secret| claim.is_of(&secret));
                if !has_job && !is_it {
                    return self.refuse(stream, Refusal::Key);
                }
                number
            }
            // The entry of the dialed peer has ended, or is open for another endpoint at that
            // address.
            Some(_) if dialed.is_some() => {
                return self.close_connection(stream, Errno::ECONNABORTED);
            }
            _ if self.has_open_peer(hello.who) => return self.refuse(stream, Refusal::Twice),
            // A new peer, possibly at the address of an earlier one. The earlier one stays until
            // its connections end.
            _ => match self.add(hello.address) {
                Ok(number) => number,
                Err(_) => return self.refuse(stream, Refusal::Full),
            },
        };
        let has_times = self.own.has_times || hello.has_times;
        let Some(peer) = self.get_mut(number) else { return };
        if has_times {
            peer.clock.get_or_insert_default().note([0, hello.clock], clock::now());
        }
        if peer.awaits_hello() {
            peer.claim = (!has_job).then_some(claim);
            peer.who = Some(hello.who);
            peer.token_there = hello.masked_token;
            peer.number_there = hello.number;
            peer.state = PeerState::Open;
            tracing::debug!("connected to {} over the network", hello.address);
        }
        if dialed.is_none() {
            self.attach(number, stream);
            self.send_hello(number, stream);
        }
    }

    /// Returns whether another log message about refused connections is due, and if so, starts the
    /// next interval. The rate of these messages is limited, because strangers decide how many
    /// connections are refused.
    fn claim_log_turn(&mut self) -> bool {
        let is_quiet = self.last_log.is_none_or(|last| last.elapsed() > LOG_INTERVAL);
        if is_quiet {
            self.last_log = Some(Instant::now());
        }
        is_quiet
    }

    fn refuse(&mut self, stream: usize, refusal: Refusal) {
        match refusal {
            _ if !self.claim_log_turn() => {}
            Refusal::Key => tracing::warn!(
                "refused a connection: its other end does not know the secret, or is not at the \
                 address that it claims. Is it of another job, or does its FI_TCAM_JOB_KEY differ?"
            ),
            Refusal::Seal => tracing::warn!(
                "refused a peer: FI_TCAM_NET_SEAL is on in one of the two processes and off in the \
                 other"
            ),
            Refusal::Full => tracing::warn!(
                "refused a peer: this endpoint has no room for more than {MAX_PEERS}"
            ),
            Refusal::Twice => tracing::warn!("refused a second connection of a peer"),
            Refusal::Lost => tracing::warn!(
                "refused a peer: its last connection broke, so messages may be missing"
            ),
        }
        self.connections.send_message(stream, &HandshakeMessage::Refused(refusal));
        self.close_connection(stream, error_of(refusal));
    }

    fn on_message(&mut self, number: u16, message: &HandshakeMessage) {
        let Some(peer) = self.get_mut(number) else { return };
        match message {
            HandshakeMessage::Bye(frames) => {
                peer.bye_received = Some(*frames);
                self.close_if_all_handled(number);
            }
            HandshakeMessage::Seen(frames) => peer.is_confirmed = *frames >= peer.sent,
            HandshakeMessage::Refused(refusal) => {
                let why = match refusal {
                    Refusal::Key => "the secrets differ (is FI_TCAM_JOB_KEY the same in both?)",
                    Refusal::Seal => "FI_TCAM_NET_SEAL differs between the two processes",
                    Refusal::Full => "it has no room for another peer",
                    Refusal::Twice => "it already has a connection to this endpoint",
                    Refusal::Lost => "the last connection broke, so messages may be missing",
                };
                tracing::error!("{} refuses the connection of this process: {why}", peer.address);
                self.fail(number, error_of(*refusal));
            }
            HandshakeMessage::Start(_) | HandshakeMessage::Hello(..) => {}
        }
    }

    fn fail(&mut self, number: u16, errno: Errno) {
        let Some(peer) = self.get_mut(number) else { return };
        if peer.awaits_hello() {
            peer.state = PeerState::Failed(errno, Instant::now());
        }
    }

    /// Closes a connection that has ended or is refused. If no connection to the peer remains, a
    /// peer that has not sent Hello is dialed again or fails, and an open peer becomes closed or
    /// dead. If another connection remains and frames came over this one, all connections to the
    /// peer are closed. If frames only went over this one, nothing more is sent to the peer.
    fn close_connection(&mut self, stream: usize, errno: Errno) {
        self.connections.close(stream);
        let Some(number) = self.by_stream.remove(&stream) else { return };
        let Some(peer) = self.get_mut(number) else { return };
        peer.streams.retain(|&other| other != stream);
        if !peer.streams.is_empty() {
            if peer.incoming == Some(stream) {
                self.disconnect(number);
            } else if peer.outgoing == Some(stream) {
                self.stop_sending(number);
            }
            return;
        }
        self.connections_ended(number);
        let Some(peer) = self.get_mut(number) else { return };
        let closed = matches!(errno, Errno::ECONNABORTED | Errno::ECONNRESET);
        if closed && peer.awaits_hello() && peer.dials < MAX_DIALS {
            peer.redial = Some(Instant::now() + REDIAL_DELAY);
        } else {
            self.fail(number, errno);
        }
    }

    /// Notes that the connections to a peer have ended. If the peer was open and has proved that it
    /// is at its address, its endpoint may not connect again, since a message may be missing.
    fn connections_ended(&mut self, number: u16) {
        let is_vouched_for = self.is_vouched_for(number);
        let Some(peer) = self.get_mut(number) else { return };
        // A process that only claims to be an endpoint must not exclude the real one.
        let lost = peer.who.filter(|_| is_vouched_for && peer.is_open());
        peer.connections_ended();
        if let Some(who) = lost {
            if self.lost.len() == MAX_LOST {
                self.lost.clear();
            }
            self.lost.insert(who);
        }
    }

    /// Sends a frame, which consists of `front` and the bytes of the buffers. Returns false if the
    /// frame was not sent, because there is no room, because the peer has not proved the secret
    /// over any connection, or after an error. After an error, nothing more is sent to the peer. If
    /// the peer was removed, drops the frame and returns true.
    pub(super) fn send(&mut self, number: u16, front: &[u8], data: &[Buffer]) -> bool {
        if self.get(number.into()).is_none() {
            return true;
        }
        let Some(stream) = self.proved_stream(number) else { return false };
        let sent = self.connections.send(stream, front, data);
        let Some(peer) = self.get_mut(number) else { return true };
        match sent {
            Ok(true) => {
                peer.outgoing = Some(stream);
                peer.sent += 1;
                true
            }
            Ok(false) => false,
            Err(errno) => {
                if peer.is_open() {
                    let address = peer.address;
                    tracing::warn!(
                        "a send to {address} failed, nothing more is sent there: {errno}"
                    );
                }
                self.stop_sending(number);
                false
            }
        }
    }

    /// Returns whether the connection for frames to a peer has room. False after a failed send;
    /// true if no frame was sent yet, or if the peer was removed.
    pub(super) fn has_room(&self, number: u16) -> bool {
        let peer = self.get(number.into());
        if peer.is_some_and(|peer| peer.send_failed) {
            return false;
        }
        let outgoing = peer.and_then(|peer| peer.outgoing);
        outgoing.is_none_or(|stream| self.connections.has_room(stream))
    }

    /// Returns whether a peer is at the address that it claims, which means that it knows the
    /// result of `secret`, a part of the name of the endpoint there. A peer that does not know this
    /// secret is disconnected. The result is also true if nothing can be checked, because the peer
    /// has made no claim, as in a job with a secret, or because `secret` returns `None`. It is
    /// false if the peer was removed.
    pub(super) fn check_claim(
        &mut self,
        number: u16,
        secret: impl FnOnce() -> Option<Secret>,
    ) -> bool {
        let Some(peer) = self.get(number.into()) else { return false };
        let Some(claim) = peer.claim else { return true };
        let Some(secret) = secret() else { return true };
        if peer.verified_with == Some(secret) {
            return true;
        }
        let (address, is_it) = (peer.address, self.is_claim_of(&claim, &secret));
        if let Some(peer) = self.get_mut(number).filter(|_| is_it) {
            peer.verified_with = Some(secret);
            return true;
        }
        tracing::error!(
            "disconnected a process that claims the address {address}: it does not know the \
             secret of the endpoint there"
        );
        self.disown(number);
        false
    }

    /// Returns whether the endpoint with this secret made a claim. A claim with the secret of this
    /// endpoint proves nothing, because all peers know that secret.
    pub(super) fn is_claim_of(&self, claim: &Claim, secret: &Secret) -> bool {
        claim.is_of(secret) && *secret != self.own.secret
    }

    /// Returns whether a peer has proved that it is at its address, which means that it knows the
    /// secret of the job, or the secret in the name of the endpoint there.
    pub(super) fn is_vouched_for(&self, number: u16) -> bool {
        let peer = self.get(number.into());
        peer.is_some_and(|peer| peer.claim.is_none() || peer.verified_with.is_some())
    }

    /// Disconnects a peer. The address that it claims passes to another open peer at this address,
    /// or becomes free.
    pub(super) fn disown(&mut self, number: u16) {
        let Some(address) = self.get(number.into()).map(|peer| peer.address) else { return };
        self.disconnect(number);
        if self.by_address.get(&address) == Some(&number) {
            let is_there = |peer: &PeerEntry| peer.is_open() && peer.address == address;
            let other = self.all.iter().position(|peer| peer.as_deref().is_some_and(is_there));
            match other {
                Some(other) => self.by_address.insert(address, other as u16),
                None => self.by_address.remove(&address),
            };
        }
    }

    /// Returns whether an endpoint is an open peer.
    fn has_open_peer(&self, who: Identity) -> bool {
        self.all.iter().flatten().any(|peer| peer.is_open() && peer.who == Some(who))
    }

    /// Takes the next frame, with the numbers of its connection and of its sender. The frame is in
    /// use until [`Connections::done`]. If a frame has a wrong token or came over a second
    /// connection, the connections to its sender are closed, and the frame is dropped.
    pub(super) fn take(&mut self) -> Option<(usize, u16, Frame)> {
        loop {
            let (stream, frame) = self.connections.take()?;
            if let Some(&number) = self.by_stream.get(&stream)
                && let Some(peer) = self.get_mut(number)
            {
                let is_from = peer.accepts_frames() && peer.token_here == frame.head.token;
                if is_from && *peer.incoming.get_or_insert(stream) == stream {
                    return Some((stream, number, frame));
                }
                self.disconnect(number);
            }
            drop(frame);
            self.connections.done(stream);
        }
    }

    /// Closes all connections to a peer. The peer notices that they end.
    fn disconnect(&mut self, number: u16) {
        self.connections_ended(number);
        let Some(peer) = self.get_mut(number) else { return };
        for stream in std::mem::take(&mut peer.streams) {
            self.by_stream.remove(&stream);
            self.connections.close(stream);
        }
        self.fail(number, Errno::ECONNABORTED);
    }

    /// Notes that a frame of a peer was handled.
    pub(super) fn frame_handled(&mut self, number: u16) {
        if let Some(peer) = self.get_mut(number) {
            peer.handled += 1;
            if peer.bye_received.is_some() {
                self.close_if_all_handled(number);
            }
        }
    }

    /// If the peer's Bye has come and all frames before it were handled, marks the peer as closed
    /// and confirms all handled frames.
    fn close_if_all_handled(&mut self, number: u16) {
        let Some(peer) = self.get_mut(number) else { return };
        if !peer.accepts_frames() || peer.bye_received.is_none_or(|bye| peer.handled < bye) {
            return;
        }
        peer.state = PeerState::Closed;
        let handled = peer.handled;
        if let Some(stream) = self.proved_stream(number) {
            self.connections.send_message(stream, &HandshakeMessage::Seen(handled));
        }
    }

    /// Stops sending to an open peer after a failed send, or after the connection for frames to it
    /// has ended, because later messages must not arrive without the lost ones. Frames from the
    /// peer are still handled. The peer closes its end of the connections when it sees that this
    /// end is shut.
    fn stop_sending(&mut self, number: u16) {
        let Some(peer) = self.get_mut(number).filter(|peer| peer.is_open()) else { return };
        (peer.outgoing, peer.send_failed) = (None, true);
        for stream in peer.streams.clone() {
            self.connections.shut(stream);
        }
    }

    /// See [`super::peer::NetPeer::liveness`].
    pub(super) fn liveness(&self, number: u16, who: Identity) -> Liveness {
        let peer = self.get(number.into()).filter(|peer| peer.who == Some(who));
        peer.map_or(Liveness::Dead, PeerEntry::liveness)
    }

    /// Notes that the [`NetPeer`](super::peer::NetPeer) of a peer was dropped. Removes the peer if
    /// it is closed or dead.
    pub(super) fn release(&mut self, number: u16, who: Identity) {
        if let Some(peer) = self.get_mut(number)
            && peer.who == Some(who)
        {
            peer.is_held = false;
            if peer.is_gone() {
                self.remove(number);
            }
        }
    }

    /// Does the periodic work on connections; see [`Connections::look_around`]. Dials peers again,
    /// and removes peers that have failed, or that are closed or dead and not held. One call
    /// handles up to [`PEERS_PER_LOOK`] peers.
    pub(super) fn look_around(&mut self) {
        self.connections.look_around();
        for _ in 0..self.all.len().min(PEERS_PER_LOOK) {
            self.last_looked = (self.last_looked + 1) % self.all.len();
            let Some(peer) = self.all[self.last_looked].as_deref_mut() else { continue };
            // A peer that has connected meanwhile is not dialed: a later endpoint may be at its
            // address by now.
            if peer.awaits_hello() && peer.redial.is_some_and(|at| Instant::now() >= at) {
                self.redial(self.last_looked as u16);
                continue;
            }
            let is_over = match peer.state {
                PeerState::Failed(_, since) => since.elapsed() > KEEP_FAILURE,
                _ => peer.is_gone() && !peer.is_held,
            };
            if is_over {
                self.remove(self.last_looked as u16);
            }
        }
    }

    /// See [`super::Net::send_bye`].
    pub(super) fn send_bye(&mut self) {
        for number in 0..self.all.len() as u32 {
            let number = number as u16;
            let Some(stream) = self.proved_stream(number) else { continue };
            let Some(peer) = self.get_mut(number) else { continue };
            if peer.who.is_some() && peer.bye_sent != Some(peer.sent) {
                peer.bye_sent = Some(peer.sent);
                peer.is_confirmed = peer.sent == 0;
                let sent = peer.sent;
                self.connections.send_message(stream, &HandshakeMessage::Bye(sent));
            }
        }
    }

    /// Returns the connection for frames to a peer, whose other end has proved that it knows the
    /// secret. `None` if no connection is proved, or after a failed send.
    fn proved_stream(&self, number: u16) -> Option<usize> {
        let peer = self.get(number.into()).filter(|peer| !peer.send_failed)?;
        let first = || peer.streams.iter().copied().find(|&it| self.connections.is_proved(it));
        peer.outgoing.or_else(first)
    }

    /// Returns whether a peer that got Bye has not confirmed all frames yet.
    pub(super) fn awaits_confirmation(&self) -> bool {
        self.all
            .iter()
            .flatten()
            .filter(|peer| peer.bye_sent.is_some() && !peer.send_failed)
            .any(|peer| !peer.is_confirmed && !peer.streams.is_empty())
    }
}

/// Returns the error of an operation to a peer that is refused or that refuses this endpoint.
fn error_of(refusal: Refusal) -> Errno {
    match refusal {
        // `Twice`: a peer that closes still has the connection that this endpoint considers closed.
        Refusal::Lost | Refusal::Twice | Refusal::Full => Errno::ECONNREFUSED,
        Refusal::Key | Refusal::Seal => Errno::EACCES,
    }
}
