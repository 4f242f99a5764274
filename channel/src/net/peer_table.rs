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
//! Both ends may connect at the same time. The first Hello that comes opens the peer; the other
//! Hello repeats it.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddrV4,
    os::fd::{BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use ffi::{Buffer, Errno};

use super::{
    connections::{Connections, Happened},
    handshake::{Hello, Nonsense, Refusal, Said},
    input::Frame,
    secret::{Claim, Secret},
};
use crate::{
    contract::Liveness,
    identity::{Identity, random},
};

/// Maximum number of peers of an endpoint: each has a 16-bit number.
const MOST: usize = 1 << 16;
/// Maximum number of peers that one call of [`PeerTable::look_around`] handles.
const A_LOOK: usize = 1024;
/// Minimum time between log messages about refused connections.
const SAYING: Duration = Duration::from_secs(1);
/// Maximum number of dials of a peer that closes the connections before it sends Hello.
const DIALS: u32 = 50;
/// Time between the end of a connection and the next dial.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of endpoints in [`PeerTable::lost`], which is cleared when it is full.
const MOST_LOST: usize = 1 << 16;
/// Time for which the reason is kept that a peer cannot be reached.
const FORGET: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerState {
    Greeting,
    /// The peer cannot be reached: the reason, and the time of the failure.
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
    pub(super) token: u64,
    /// Number of this endpoint at the peer.
    pub(super) number: u16,
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
    pub(super) verified: Option<Secret>,
    /// The connection for frames to the peer; one of `streams`.
    pub(super) outgoing: Option<usize>,
    /// The connection for frames from the peer; one of `streams`.
    pub(super) incoming: Option<usize>,
    /// Number of dials.
    pub(super) dials: u32,
    /// Time of the next dial, if the peer closed a connection before it sent Hello, as a busy peer
    /// does.
    pub(super) redial: Option<Instant>,
    /// Whether a [`NetPeer`](super::peer::NetPeer) of this peer exists.
    pub(super) is_held: bool,
    /// True after a failed send: nothing more is sent to the peer.
    is_cut: bool,
    /// Frames sent to the peer.
    pub(super) sent: u64,
    /// Frames from the peer that were handled.
    pub(super) seen: u64,
    /// Number of frames in the peer's Bye.
    pub(super) bye: Option<u64>,
    /// Number of frames in the last Bye to the peer.
    pub(super) said_bye: Option<u64>,
    /// True if the peer has confirmed all frames.
    pub(super) is_seen: bool,
}

impl PeerEntry {
    /// Creates the entry of a peer at an address. Frames from the peer must carry this token.
    pub(super) fn new(address: SocketAddrV4, token_here: u64) -> Self {
        Self {
            address,
            who: None,
            token: 0,
            number: 0,
            token_here,
            state: PeerState::Greeting,
            streams: Vec::new(),
            secret: None,
            claim: None,
            verified: None,
            outgoing: None,
            incoming: None,
            dials: 0,
            redial: None,
            is_held: false,
            is_cut: false,
            sent: 0,
            seen: 0,
            bye: None,
            said_bye: None,
            is_seen: false,
        }
    }

    /// Returns whether the peer's Hello has not come yet.
    pub(super) fn greets(&self) -> bool {
        self.state == PeerState::Greeting
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == PeerState::Open
    }

    /// Returns whether frames from the peer are handled. A closed peer is included: it still
    /// answers requests that it receives after its Bye.
    fn is_heard(&self) -> bool {
        matches!(self.state, PeerState::Open | PeerState::Closed)
    }

    /// Returns whether the peer is closed or dead, so that nothing more is sent to it.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, PeerState::Dead | PeerState::Closed)
    }

    /// Notes that the connections to the peer have ended. Later connections may get their numbers.
    pub(super) fn lose(&mut self) {
        (self.outgoing, self.incoming) = (None, None);
        if self.state == PeerState::Open {
            // After its own Bye, this endpoint is the one that leaves.
            let leaves = self.said_bye.is_some();
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
}

/// The peers of an endpoint; see the module.
#[derive(Debug)]
pub(super) struct PeerTable {
    own: LocalEndpoint,
    pub(super) connections: Connections,
    all: Vec<Option<Box<PeerEntry>>>,
    /// Number of the last peer that was added at each address.
    at: HashMap<SocketAddrV4, u16>,
    /// Number of the peer of each connection.
    of: HashMap<usize, u16>,
    /// Endpoints whose connections broke: a message may be missing, so they are refused.
    lost: HashSet<Identity>,
    /// Number at which the search for a free one begins.
    next: usize,
    /// Time of the last log message about a refused or invalid connection. There is at most one per
    /// second.
    said: Option<Instant>,
    /// The last number that [`PeerTable::look_around`] handled.
    look: usize,
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
            said: None,
            all: Vec::new(),
            at: HashMap::new(),
            of: HashMap::new(),
            lost: HashSet::new(),
            next: 0,
            look: 0,
        })
    }

    /// Returns a descriptor that becomes readable when something happens on a connection.
    pub(super) fn doorbell(&self) -> BorrowedFd<'_> {
        self.connections.doorbell()
    }

    pub(super) fn get(&self, number: usize) -> Option<&PeerEntry> {
        self.all.get(number)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, number: u16) -> Option<&mut PeerEntry> {
        self.all.get_mut(usize::from(number))?.as_deref_mut()
    }

    /// Returns the open peer at an address, and its number.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn at(&self, address: SocketAddrV4) -> Option<(u16, &PeerEntry)> {
        let number = *self.at.get(&address)?;
        Some((number, self.get(number.into()).filter(|peer| peer.is_open())?))
    }

    /// Returns the number of open peers.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn open(&self) -> usize {
        self.all.iter().flatten().filter(|peer| peer.is_open()).count()
    }

    /// See [`super::Net::meet`].
    pub(super) fn meet(
        &mut self,
        address: SocketAddrV4,
        secret: Option<Secret>,
    ) -> Result<(u16, Identity), Errno> {
        if let Some(&number) = self.at.get(&address)
            && self.is_verified(number, || secret)
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
                "{address} was not named by its endpoint, so this process has no secret for it: set \
                 FI_TCAM_JOB_KEY to the same random text in all processes, or FI_TCAM_NET_OPEN=yes on a \
                 network where all users are trusted"
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
            None if len < MOST => len,
            None => return Err(Errno::ENOSPC),
        };
        if number == len {
            self.all.push(None);
        }
        self.next = number + 1;
        let peer = PeerEntry::new(address, u64::from_ne_bytes(random()?));
        self.all[number] = Some(Box::new(peer));
        self.at.insert(address, number as u16);
        Ok(number as u16)
    }

    fn attach(&mut self, number: u16, stream: usize) {
        self.of.insert(stream, number);
        self.connections.set_peer(stream, number);
        if let Some(peer) = self.get_mut(number) {
            peer.streams.push(stream);
        }
    }

    fn remove(&mut self, number: u16) {
        let Some(peer) = self.all[usize::from(number)].take() else { return };
        for stream in peer.streams {
            self.of.remove(&stream);
            self.connections.close(stream);
        }
        if self.at.get(&peer.address) == Some(&number) {
            self.at.remove(&peer.address);
        }
    }

    /// Sends Hello to a peer over a connection.
    fn greet(&mut self, number: u16, stream: usize) {
        let Some(peer) = self.get(number.into()) else { return };
        let LocalEndpoint { who, address, seals, secret, .. } = self.own;
        let hello = Hello {
            who,
            address,
            to: peer.address,
            masked_token: peer.token_here,
            number,
            seals,
            claim: Default::default(),
        };
        self.connections.greet(stream, hello, &secret);
    }

    /// Sends, receives, and handles the events of connections.
    pub(super) fn tend(&mut self) {
        self.connections.poll();
        while let Some((stream, happened)) = self.connections.next() {
            let number = self.of.get(&stream).copied();
            match happened {
                // The acceptor's nonce has come, so the dialer sends Hello.
                Happened::Started => number.into_iter().for_each(|it| self.greet(it, stream)),
                Happened::Proved(hello, claim) => self.greeted(stream, &hello, claim),
                Happened::Said(said) => {
                    number.into_iter().for_each(|it| self.told(it, &said));
                    if matches!(said, Said::Refused(_)) {
                        self.gone(stream, Errno::EACCES);
                    }
                }
                Happened::Unproved => self.refuse(stream, Refusal::Key),
                Happened::Nonsense(nonsense) => {
                    match nonsense {
                        _ if !self.may_say() => {}
                        Nonsense::Version => tracing::warn!(
                            "a connection of another version of tcam, or of another byte order"
                        ),
                        Nonsense::Garbage => {
                            tracing::warn!("a connection of a program that is no endpoint of tcam");
                        }
                        Nonsense::Forged => {
                            tracing::error!("a frame was changed, added or lost on its way");
                        }
                    }
                    self.gone(stream, Errno::EPROTO);
                }
                Happened::Gone(errno) => self.gone(stream, errno),
            }
        }
    }

    fn greeted(&mut self, stream: usize, hello: &Hello, claim: Claim) {
        let dialed = self.of.get(&stream).copied();
        // Both ends name the endpoint that they speak to: a handshake cannot be relayed to another
        // one.
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
        let known = dialed.or_else(|| self.at.get(&hello.address).copied());
        let fits = |peer: &PeerEntry| match peer.state {
            PeerState::Greeting => true,
            PeerState::Open => {
                let (number, token) = (peer.number, peer.token);
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
            Some(_) if dialed.is_some() => return self.gone(stream, Errno::ECONNABORTED),
            _ if self.knows(hello.who) => return self.refuse(stream, Refusal::Twice),
            // A new peer, possibly at the address of an earlier one. The earlier one stays until
            // its connections end.
            _ => match self.add(hello.address) {
                Ok(number) => number,
                Err(_) => return self.refuse(stream, Refusal::Full),
            },
        };
        let Some(peer) = self.get_mut(number) else { return };
        if peer.greets() {
            peer.claim = (!has_job).then_some(claim);
            peer.who = Some(hello.who);
            peer.token = hello.masked_token;
            peer.number = hello.number;
            peer.state = PeerState::Open;
            tracing::debug!("in touch with {} over the network", hello.address);
        }
        if dialed.is_none() {
            self.attach(number, stream);
            self.greet(number, stream);
        }
    }

    /// Returns whether another log message about refused connections is due. Their rate is limited,
    /// because strangers decide how many there are.
    fn may_say(&mut self) -> bool {
        let is_quiet = self.said.is_none_or(|said| said.elapsed() > SAYING);
        if is_quiet {
            self.said = Some(Instant::now());
        }
        is_quiet
    }

    fn refuse(&mut self, stream: usize, refusal: Refusal) {
        match refusal {
            _ if !self.may_say() => {}
            Refusal::Key => tracing::warn!(
                "a connection is refused whose other end does not know the secret of this one: is it of \
                 another job, or is FI_TCAM_JOB_KEY another there?"
            ),
            Refusal::Version => tracing::warn!("a peer of another version of tcam is refused"),
            Refusal::Seal => tracing::warn!(
                "a peer is refused: FI_TCAM_NET_SEAL is on in one of the two processes, off in the other"
            ),
            Refusal::Full => tracing::warn!("a peer is refused, there are too many"),
            Refusal::Twice => tracing::warn!("a second connection of a peer is refused"),
            Refusal::Lost => tracing::warn!("a peer is refused whose former connection broke"),
        }
        self.connections.say(stream, &Said::Refused(refusal));
        self.gone(stream, error_of(refusal));
    }

    fn told(&mut self, number: u16, said: &Said) {
        let Some(peer) = self.get_mut(number) else { return };
        match said {
            Said::Bye(frames) => {
                peer.bye = Some(*frames);
                self.close_if_seen(number);
            }
            Said::Seen(frames) => peer.is_seen = *frames >= peer.sent,
            Said::Refused(refusal) => {
                let why = match refusal {
                    Refusal::Key => "it has another secret (is FI_TCAM_JOB_KEY the same there?)",
                    Refusal::Version => "it has another version of tcam",
                    Refusal::Seal => "FI_TCAM_NET_SEAL is not the same there",
                    Refusal::Full => "it has too many peers",
                    Refusal::Twice => "it has a connection of this endpoint already",
                    Refusal::Lost => "the former connection broke, and messages may be missing",
                };
                tracing::error!("{} refuses this process: {why}", peer.address);
                self.fail(number, error_of(*refusal));
            }
            Said::Start(_) | Said::Hello(..) => {}
        }
    }

    fn fail(&mut self, number: u16, errno: Errno) {
        let Some(peer) = self.get_mut(number) else { return };
        if peer.greets() {
            peer.state = PeerState::Failed(errno, Instant::now());
        }
    }

    /// Closes a connection that has ended or is refused. If it was the last one of a peer that has
    /// not sent Hello, the peer is dialed again or fails; any other peer is lost. If another
    /// connection remains, but frames came over this one, all are closed; if frames went over it,
    /// sends stop.
    fn gone(&mut self, stream: usize, errno: Errno) {
        self.connections.close(stream);
        let Some(number) = self.of.remove(&stream) else { return };
        let Some(peer) = self.get_mut(number) else { return };
        peer.streams.retain(|&other| other != stream);
        if !peer.streams.is_empty() {
            if peer.incoming == Some(stream) {
                self.tear(number);
            } else if peer.outgoing == Some(stream) {
                self.cut(number, errno);
            }
            return;
        }
        self.lose(number);
        let Some(peer) = self.get_mut(number) else { return };
        let closed = matches!(errno, Errno::ECONNABORTED | Errno::ECONNRESET);
        if closed && peer.greets() && peer.dials < DIALS {
            peer.redial = Some(Instant::now() + PAUSE);
        } else {
            self.fail(number, errno);
        }
    }

    /// Notes that the connections to a peer have ended. If the peer was open, its endpoint may not
    /// connect again, since a message may be missing.
    fn lose(&mut self, number: u16) {
        let is_vouched_for = self.is_vouched_for(number);
        let Some(peer) = self.get_mut(number) else { return };
        // A process that only claims to be an endpoint must not exclude the real one.
        let lost = peer.who.filter(|_| is_vouched_for && peer.is_open());
        peer.lose();
        if let Some(who) = lost {
            if self.lost.len() == MOST_LOST {
                self.lost.clear();
            }
            self.lost.insert(who);
        }
    }

    /// Sends a frame: `front`, then the bytes of the buffers. Returns false if it was not sent:
    /// there is no room, no connection whose other end has proved the secret, or an error, after
    /// which nothing more is sent to the peer. Returns true for a peer that was removed: the frame
    /// is dropped.
    pub(super) fn send(&mut self, number: u16, front: &[u8], data: &[Buffer]) -> bool {
        if self.get(number.into()).is_none() {
            return true;
        }
        let Some(stream) = self.proved(number) else { return false };
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
                self.cut(number, errno);
                false
            }
        }
    }

    /// Returns whether the connection for frames to a peer has room. False after a failed send;
    /// true if no frame was sent yet, or if the peer was removed.
    pub(super) fn has_room(&self, number: u16) -> bool {
        let peer = self.get(number.into());
        if peer.is_some_and(|peer| peer.is_cut) {
            return false;
        }
        let outgoing = peer.and_then(|peer| peer.outgoing);
        outgoing.is_none_or(|stream| self.connections.has_room(stream))
    }

    /// Returns whether a peer is at the address that it claims: it knows `secret`, which is part of
    /// the name of the endpoint there. A peer that does not know it is disconnected. The result is
    /// also true if nothing can be checked: the peer has made no claim, as in a job with a secret,
    /// or `secret` returns `None`. It is false if the peer was removed.
    pub(super) fn is_verified(
        &mut self,
        number: u16,
        secret: impl FnOnce() -> Option<Secret>,
    ) -> bool {
        let own = self.own.secret;
        let Some(peer) = self.get_mut(number) else { return false };
        let Some(claim) = peer.claim else { return true };
        let Some(secret) = secret() else { return true };
        if peer.verified == Some(secret) {
            return true;
        }
        // A claim with the secret of this endpoint proves nothing: all peers know it.
        if claim.is_of(&secret) && secret != own {
            peer.verified = Some(secret);
            return true;
        }
        let address = peer.address;
        tracing::error!(
            "a process says that it is {address}, and does not know the secret in that name"
        );
        self.disown(number);
        false
    }

    /// Returns whether a peer has proved that it is at its address: it knows the secret of the job,
    /// or the secret in the name of the endpoint there.
    pub(super) fn is_vouched_for(&self, number: u16) -> bool {
        let peer = self.get(number.into());
        peer.is_some_and(|peer| peer.claim.is_none() || peer.verified.is_some())
    }

    /// Disconnects a peer, and frees the address that it claims for another endpoint.
    pub(super) fn disown(&mut self, number: u16) {
        if let Some(peer) = self.get(number.into()) {
            let address = peer.address;
            if self.at.get(&address) == Some(&number) {
                self.at.remove(&address);
            }
            self.tear(number);
        }
    }

    /// Returns whether an endpoint is an open peer.
    fn knows(&self, who: Identity) -> bool {
        self.all.iter().flatten().any(|peer| peer.is_open() && peer.who == Some(who))
    }

    /// Takes the next frame, with the numbers of its connection and of its sender. It is in use
    /// until [`Connections::done`]. If a frame has a wrong token or came over a second connection,
    /// the connections to its sender are closed.
    pub(super) fn take(&mut self) -> Option<(usize, u16, Frame)> {
        loop {
            let (stream, frame) = self.connections.take()?;
            if let Some(&number) = self.of.get(&stream)
                && let Some(peer) = self.get_mut(number)
            {
                let is_from = peer.is_heard() && peer.token_here == frame.head.token;
                if is_from && *peer.incoming.get_or_insert(stream) == stream {
                    return Some((stream, number, frame));
                }
                self.tear(number);
            }
            drop(frame);
            self.connections.done(stream);
        }
    }

    /// Closes all connections to a peer. The peer notices that they end.
    fn tear(&mut self, number: u16) {
        self.lose(number);
        let Some(peer) = self.get_mut(number) else { return };
        for stream in std::mem::take(&mut peer.streams) {
            self.of.remove(&stream);
            self.connections.close(stream);
        }
        self.fail(number, Errno::ECONNABORTED);
    }

    /// Notes that a frame of a peer was handled.
    pub(super) fn saw(&mut self, number: u16) {
        if let Some(peer) = self.get_mut(number) {
            peer.seen += 1;
            if peer.bye.is_some() {
                self.close_if_seen(number);
            }
        }
    }

    /// If the peer's Bye has come and all frames before it were handled, marks the peer as closed
    /// and confirms all handled frames.
    fn close_if_seen(&mut self, number: u16) {
        let Some(peer) = self.get_mut(number) else { return };
        if !peer.is_heard() || peer.bye.is_none_or(|bye| peer.seen < bye) {
            return;
        }
        peer.state = PeerState::Closed;
        let seen = peer.seen;
        if let Some(stream) = self.proved(number) {
            self.connections.say(stream, &Said::Seen(seen));
        }
    }

    /// Stops sending to an open peer after a failed send, because later messages must not arrive
    /// without the failed one. Frames from the peer are still handled. The peer closes its end of
    /// the connections when it sees that this end is shut.
    fn cut(&mut self, number: u16, errno: Errno) {
        let Some(peer) = self.get_mut(number).filter(|peer| peer.is_open()) else { return };
        tracing::warn!("{} cannot be sent to: {errno}", peer.address);
        (peer.outgoing, peer.is_cut) = (None, true);
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
    pub(super) fn let_go(&mut self, number: u16, who: Identity) {
        if let Some(peer) = self.get_mut(number)
            && peer.who == Some(who)
        {
            peer.is_held = false;
            if peer.is_gone() {
                self.remove(number);
            }
        }
    }

    /// Closes stale connections, redials, and removes peers that are closed, dead or failed. One
    /// call handles up to [`A_LOOK`] peers.
    pub(super) fn look_around(&mut self) {
        self.connections.look_around();
        for _ in 0..self.all.len().min(A_LOOK) {
            self.look = (self.look + 1) % self.all.len();
            let Some(peer) = self.all[self.look].as_deref_mut() else { continue };
            // A peer that has connected meanwhile is not dialed: a later endpoint may be at its
            // address by now.
            if peer.greets() && peer.redial.is_some_and(|at| Instant::now() >= at) {
                self.redial(self.look as u16);
                continue;
            }
            let is_over = match peer.state {
                PeerState::Failed(_, since) => since.elapsed() > FORGET,
                _ => peer.is_gone() && !peer.is_held,
            };
            if is_over {
                self.remove(self.look as u16);
            }
        }
    }

    /// See [`super::Net::say_bye`].
    pub(super) fn say_bye(&mut self) {
        for number in 0..self.all.len() as u32 {
            let number = number as u16;
            let Some(stream) = self.proved(number) else { continue };
            let Some(peer) = self.get_mut(number) else { continue };
            if peer.who.is_some() && peer.said_bye != Some(peer.sent) {
                peer.said_bye = Some(peer.sent);
                peer.is_seen = peer.sent == 0;
                let sent = peer.sent;
                self.connections.say(stream, &Said::Bye(sent));
            }
        }
    }

    /// Returns the connection for frames to a peer, whose other end has proved that it knows the
    /// secret. `None` if no connection is proved, or after a failed send.
    fn proved(&self, number: u16) -> Option<usize> {
        let peer = self.get(number.into()).filter(|peer| !peer.is_cut)?;
        let first = || peer.streams.iter().copied().find(|&it| self.connections.is_proved(it));
        peer.outgoing.or_else(first)
    }

    /// Returns whether a peer that got Bye has not confirmed all frames yet.
    pub(super) fn awaits_seen(&self) -> bool {
        self.all
            .iter()
            .flatten()
            .filter(|peer| peer.said_bye.is_some() && !peer.is_cut)
            .any(|peer| !peer.is_seen && !peer.streams.is_empty())
    }
}

/// Returns the error of an operation to a peer that is refused or that refuses this endpoint.
fn error_of(refusal: Refusal) -> Errno {
    match refusal {
        // `Twice`: a peer that closes still has the connection that this endpoint considers closed.
        Refusal::Lost | Refusal::Twice | Refusal::Full => Errno::ECONNREFUSED,
        Refusal::Key | Refusal::Version | Refusal::Seal => Errno::EACCES,
    }
}
