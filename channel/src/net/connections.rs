// SPDX-License-Identifier: BSD-2-Clause
//! TCP connections between endpoints. Each end proves that it knows the secret ([`super::secret`]);
//! then frames go both ways.
//!
//! ```text
//! dialer                       acceptor
//!   Start (nonce) ----------->
//!   <------------ Start (nonce)
//!   Hello, proof ------------>   wrong: Refused, and closed
//!   <------------ Hello, proof
//!   <======== frames ========>   see super::frame
//! ```
//! Connections share no buffers: a peer that does not read, or that sends half a message, delays
//! only its connection. An accepted connection whose dialer has proved nothing for [`UNPROVED`] is
//! closed. If there are [`MOST_UNPROVED`] of these, one from the address that has the most is closed
//! before another is accepted ([`super::unproved`]).
//!
//! The kernel acknowledges data for a process that computes, and closes the connections of a
//! process that dies. A host that is down acknowledges nothing. On an idle connection, keep-alives
//! notice such a host; on a busy one, [`Connections::look_around`] does. Rejected:
//! `TCP_USER_TIMEOUT`, which would also end connections to processes that compute with a full
//! window.

use std::{
    collections::VecDeque,
    io,
    mem::MaybeUninit,
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use ffi::{Buffer, Errno, memory::socket};
use host::children::Unshared;
use rustix::{
    event::epoll::{self, EventData, EventFlags},
    fs::Timespec,
    io::Errno as Io,
    net::{
        AddressFamily, SendFlags, SocketFlags, SocketType, acceptfrom_with, connect, getsockname,
        ipproto, listen, send, socket_with, sockopt,
    },
};
use slab::Slab;

use super::{
    handshake::{DecodeError, HandshakeMessage, Hello},
    input::{FRONT, Frame, Input, Landings, Next, Read},
    secret::{Claim, HandshakeRole, Nonce, PROOF, Seal, Secret, Session},
    unproved::Unproved,
};
use crate::{address::BACKLOG, identity::random};

/// Maximum time for which one poll accepts connections. In this time, a process that has computed
/// accepts all connections that the kernel has kept, at up to 60 us each.
const ACCEPTING: Duration = Duration::from_millis(250);
/// Minimum time for which a poll accepts connections; otherwise it accepts none.
const LEAST_ACCEPTING: Duration = Duration::from_micros(20);
/// A poll accepts connections for at most this part of the time since an earlier poll did.
const ACCEPTING_PART: u32 = 4;
/// Maximum number of accepted connections whose dialer has proved nothing.
const MOST_UNPROVED: usize = 1024;
/// Such connections take at most one in this number of the descriptors of the process.
const UNPROVED_PART: usize = 8;
/// Time after which an accepted connection is closed if its dialer has proved nothing. It is long,
/// because a peer that computes polls rarely.
const UNPROVED: Duration = Duration::from_secs(30);
/// Minimum age of a connection that is closed to make room for another one, unless the other one
/// comes from an address with fewer connections. After a pause of this process, all unproved
/// connections are young, also those of peers.
const YOUNG: Duration = Duration::from_millis(200);
/// Maximum number of handshake messages from an end that has proved nothing.
const MAX_MESSAGES_UNPROVED: u32 = 4;
/// Maximum number of handshake messages from an end that has proved that it knows the secret.
const MAX_MESSAGES: u32 = 4096;
/// Maximum number of reads of one connection before others have a turn.
const READS: u32 = 16;
/// Minimum number of calls of [`Connections::look_around`] before a connection is too old. An
/// endpoint that has not polled could not receive a proof.
const MIN_LOOKS: u32 = 10;
/// Maximum number of connections that one poll handles.
const EVENTS: usize = 32;
/// The event number of the listening socket.
const LISTENER: u64 = u64::MAX;

/// An event on a connection.
#[derive(Debug)]
pub(super) enum ConnectionEvent {
    /// The peer's nonce has come, so this end may send Hello.
    Started,
    /// The peer has proved that it knows the secret, and claims to be at its address.
    Proved(Hello, Claim),
    Message(HandshakeMessage),
    Invalid(DecodeError),
    /// The peer does not know the secret.
    Unproved,
    /// The connection is closed or broken.
    Ended(Errno),
}

/// State of the handshake of a connection.
#[derive(Debug)]
enum Handshake {
    /// The peer's Start has not come yet.
    Starting {
        secret: Secret,
        nonce: Nonce,
    },
    /// The peer's Hello has not come yet.
    Started(Session),
    Proved(Session),
}

#[derive(Debug)]
struct Connection {
    socket: Unshared,
    role: HandshakeRole,
    handshake: Handshake,
    /// True until the kernel has connected the socket.
    connects: bool,
    /// The number of the peer, once it is known.
    peer: Option<u16>,
    /// Time at which the connection was accepted or dialed.
    since: Instant,
    /// Calls of [`Connections::look_around`] since `since`.
    looks: u32,
    input: Input,
    /// Seals what this end sends after its Hello, if messages are sealed.
    seal: Option<Seal>,
    has_sent_hello: bool,
    /// Bytes that the kernel has not accepted yet, from `flushed` on.
    output: Vec<u8>,
    flushed: usize,
    /// True after the kernel had no room for a whole frame.
    wants_room: bool,
    /// The error that ended the connection. Frames that came before may not be handled yet.
    ended: Option<Errno>,
    /// True if the connection must be closed, regardless of what else has come.
    must_close: bool,
    /// Handshake messages that the other end has sent.
    messages: u32,
    /// Time since which the other end owes an acknowledgement.
    owes_since: Option<Instant>,
}

/// All connections of an endpoint, by number.
#[derive(Debug)]
pub(super) struct Connections {
    epoll: Unshared,
    listener: Unshared,
    /// False while no connection is accepted, because descriptors or memory were short.
    accepts: bool,
    /// Time at which a poll last accepted connections.
    accepted: Option<Instant>,
    all: Slab<Connection>,
    events: VecDeque<(usize, ConnectionEvent)>,
    /// Connections whose next frame has yet to be handled.
    ready: VecDeque<usize>,
    pub(super) landings: Landings,
    timeout: Duration,
    unproved: Unproved,
    /// The secret for accepted connections.
    secret: Secret,
    /// Whether frames are sealed.
    seals: bool,
}

impl Connections {
    /// Creates the connections of an endpoint whose port this socket holds.
    ///
    /// # Errors
    /// The socket cannot listen, or there are no descriptors left.
    pub(super) fn new(
        socket: OwnedFd,
        timeout: Duration,
        secret: Secret,
        seals: bool,
    ) -> Result<Self, Errno> {
        let make = || -> rustix::io::Result<(OwnedFd, OwnedFd)> {
            listen(&socket, BACKLOG)?;
            rustix::io::ioctl_fionbio(&socket, true)?;
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            epoll::add(&epoll, &socket, EventData::new_u64(LISTENER), EventFlags::IN)?;
            Ok((epoll, socket))
        };
        let (epoll, listener) = make().map_err(io::Error::from)?;
        Ok(Self {
            epoll: Unshared::new(epoll),
            listener: Unshared::new(listener),
            accepts: true,
            accepted: None,
            all: Slab::new(),
            events: VecDeque::new(),
            ready: VecDeque::new(),
            landings: Landings::new(),
            timeout,
            unproved: Unproved::default(),
            secret,
            seals,
        })
    }

    /// Returns a descriptor that becomes readable when something happens on a connection.
    pub(super) fn doorbell(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Connects to an address; returns the number of the connection.
    ///
    /// # Errors
    /// There are no descriptors left, or the host cannot be reached.
    pub(super) fn dial(&mut self, address: SocketAddrV4, secret: Secret) -> Result<usize, Errno> {
        let dial = || -> rustix::io::Result<(OwnedFd, bool)> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let tcp = Some(ipproto::TCP);
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, tcp)?;
            match connect(&socket, &address) {
                Ok(()) => Ok((socket, false)),
                Err(Io::INPROGRESS) => Ok((socket, true)),
                Err(error) => Err(error),
            }
        };
        let (socket, connects) = dial().map_err(io::Error::from)?;
        self.add(socket, connects, HandshakeRole::Dialer, secret)
    }

    fn add(
        &mut self,
        socket: OwnedFd,
        connects: bool,
        role: HandshakeRole,
        secret: Secret,
    ) -> Result<usize, Errno> {
        let nonce = random()?;
        let entry = self.all.vacant_entry();
        let number = entry.key();
        let watched = || -> rustix::io::Result<()> {
            // For an accepted connection, this waits for the proof: strangers open many.
            if role == HandshakeRole::Dialer {
                set_options(socket.as_fd(), self.timeout)?;
            }
            epoll::add(&self.epoll, &socket, EventData::new_u64(number as u64), interest(connects))
        };
        watched().map_err(io::Error::from)?;
        entry.insert(Connection {
            socket: Unshared::new(socket),
            role,
            handshake: Handshake::Starting { secret, nonce },
            connects,
            peer: None,
            since: Instant::now(),
            looks: 0,
            input: Input::default(),
            seal: None,
            has_sent_hello: false,
            output: Vec::new(),
            flushed: 0,
            wants_room: false,
            ended: None,
            must_close: false,
            messages: 0,
            owes_since: None,
        });
        self.send_message(number, &HandshakeMessage::Start(nonce));
        Ok(number)
    }

    /// Sets the number of the peer at the other end.
    pub(super) fn set_peer(&mut self, number: usize, peer: u16) {
        if let Some(connection) = self.all.get_mut(number) {
            connection.peer = Some(peer);
        }
    }

    /// Returns the local address of a connection. At the acceptor, it is the address that the
    /// dialer connected to.
    pub(super) fn local_address(&self, number: usize) -> Option<SocketAddrV4> {
        let name = getsockname(&self.all.get(number)?.socket).ok()?;
        SocketAddrV4::try_from(name).ok()
    }

    /// Returns whether the other end of a connection has proved that it knows the secret, so that
    /// frames may be sent.
    pub(super) fn is_proved(&self, number: usize) -> bool {
        let connection = self.all.get(number);
        connection.is_some_and(|it| matches!(it.handshake, Handshake::Proved(_)))
    }

    /// Sends Hello, with a masked token, the proof of this end, and a claim by the secret `own`.
    /// Does nothing before the peer's nonce has come.
    pub(super) fn send_hello(&mut self, number: usize, mut hello: Hello, own: &Secret) {
        let Some(connection) = self.all.get(number) else { return };
        let (Handshake::Started(session) | Handshake::Proved(session)) = &connection.handshake
        else {
            return;
        };
        let role = connection.role;
        hello.masked_token ^= session.mask(role);
        hello.claim = session.claim(role, &hello.unclaimed(), own);
        let proof = session.prove(role, &hello.to_bytes());
        self.send_message(number, &HandshakeMessage::Hello(hello, proof));
        // If messages are sealed, the other end expects a tag after each message behind this Hello.
        if let Some(connection) = self.all.get_mut(number) {
            connection.has_sent_hello = true;
        }
    }

    /// Sends a handshake message, now or when there is room.
    pub(super) fn send_message(&mut self, number: usize, message: &HandshakeMessage) {
        let Some(connection) = self.all.get_mut(number) else { return };
        match connection.seal.as_mut().filter(|_| connection.has_sent_hello) {
            Some(seal) => {
                connection.output.extend(seal.sealed(&message.to_bytes(), &[]));
                seal.count_frame();
            }
            None => connection.output.extend(message.to_bytes()),
        }
        if !connection.connects {
            connection.flush();
        }
        self.expect_room(number);
    }

    /// Sends a frame, which consists of `front` and the bytes of the buffers. Returns false if
    /// there is no room. If the kernel accepts a part of the frame, the rest is copied and sent
    /// later.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) fn send(
        &mut self,
        number: usize,
        front: &[u8],
        data: &[Buffer],
    ) -> Result<bool, Errno> {
        let connection = self.all.get_mut(number).ok_or(Errno::ECONNABORTED)?;
        if !connection.output.is_empty() {
            connection.flush();
            if !connection.output.is_empty() {
                return Ok(false);
            }
        }
        let sealed = connection.seal.as_ref().map(|seal| seal.sealed(front, data));
        let (front, data) = sealed.as_ref().map_or((front, data), |sealed| (&sealed[..], &[][..]));
        let whole = front.len() + data.iter().map(Buffer::len).sum::<usize>();
        let accepted = match socket::send(connection.socket.as_fd(), front, data) {
            Ok(accepted) => accepted,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error.into()),
        };
        if accepted > 0 {
            connection.seal.as_mut().into_iter().for_each(Seal::count_frame);
        }
        if accepted == whole {
            return Ok(true);
        }
        if accepted > 0 {
            connection.keep(front, data, accepted, whole);
        }
        connection.wants_room = true;
        self.expect_room(number);
        Ok(accepted > 0)
    }

    /// Closes the sending direction of a connection. Frames that arrive are still handled.
    pub(super) fn shut(&self, number: usize) {
        if let Some(connection) = self.all.get(number) {
            // A connection that broke is shut already.
            let _ = rustix::net::shutdown(&connection.socket, rustix::net::Shutdown::Write);
        }
    }

    /// Returns whether a frame can be sent, because no earlier bytes wait for the kernel.
    pub(super) fn has_room(&self, number: usize) -> bool {
        self.all.get(number).is_none_or(|connection| connection.output.is_empty())
    }

    /// Returns whether bytes of any connection wait for the kernel to take them. Connections that
    /// the kernel has not established yet, or that have ended, do not count.
    pub(super) fn has_unsent(&self) -> bool {
        let waits = |it: &Connection| !it.output.is_empty() && !it.connects && it.ended.is_none();
        self.all.iter().any(|(_, connection)| waits(connection))
    }

    /// Requests an event for room in the socket, if the kernel is still connecting it, or if bytes
    /// or a frame wait for room. Otherwise, withdraws the request.
    fn expect_room(&self, number: usize) {
        let Some(connection) = self.all.get(number).filter(|it| it.ended.is_none()) else { return };
        let waits = connection.connects || !connection.output.is_empty() || connection.wants_room;
        let data = EventData::new_u64(number as u64);
        let _ = epoll::modify(&self.epoll, &connection.socket, data, interest(waits));
    }

    /// Closes a connection, and drops its events and frames. Bytes that the kernel has accepted
    /// still arrive at the other end.
    pub(super) fn close(&mut self, number: usize) {
        if let Some(connection) = self.all.try_remove(number) {
            self.unproved.remove(number);
            let _ = epoll::delete(&self.epoll, &connection.socket);
            self.events.retain(|(other, _)| *other != number);
            self.ready.retain(|other| *other != number);
        }
    }

    /// Sends and receives without blocking. If strangers have connections, each of these has its
    /// turn, so that they do not delay the listener and new peers.
    pub(super) fn poll(&mut self) {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        let now = Timespec::default();
        let (unproved, mut handled) = (self.unproved.len(), 0);
        loop {
            // An error has no effect: the next poll tries again.
            let wait = epoll::wait(&self.epoll, &mut events[..], Some(&now));
            let Ok((ready, _)) = wait else { return };
            for event in &*ready {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    number => self.on_socket_event(number as usize),
                }
            }
            handled += ready.len();
            if ready.len() < EVENTS || handled > unproved {
                return;
            }
        }
    }

    /// Takes the next event, with the number of its connection.
    pub(super) fn next(&mut self) -> Option<(usize, ConnectionEvent)> {
        self.events.pop_front()
    }

    /// Returns whether a frame waits to be taken.
    pub(super) fn has_frame(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the next frame, with the number of its connection. Connections take turns. The frame
    /// is in use until [`Connections::done`].
    pub(super) fn take(&mut self) -> Option<(usize, Frame)> {
        let number = self.ready.pop_front()?;
        Some((number, self.all.get_mut(number)?.input.take()?))
    }

    /// Notes that the frame of a connection was handled. Looks for its next frame.
    pub(super) fn done(&mut self, number: usize) {
        if let Some(connection) = self.all.get_mut(number) {
            connection.input.done();
            self.advance(number);
        }
    }

    /// Stops writing into the memory of a transfer, named by peer and transfer number.
    pub(super) fn give_up(&mut self, key: (u16, u64)) {
        if self.landings.remove(&key).is_some() {
            self.all.iter_mut().for_each(|(_, connection)| connection.input.give_up(key));
        }
    }

    /// Accepts the connections that wait, as far as the time for it permits. A stranger may open
    /// connections faster than this process can accept them.
    fn accept(&mut self) {
        let start = Instant::now();
        let since = self.accepted.map_or(ACCEPTING * ACCEPTING_PART, |last| start - last);
        let most = (since / ACCEPTING_PART).min(ACCEPTING);
        if most < LEAST_ACCEPTING {
            return;
        }
        while start.elapsed() < most && self.accept_one() {}
        self.accepted = Some(Instant::now());
    }

    /// Accepts the next connection, or closes it at once if there is no room for it. Returns false
    /// if none waits, or if none can be accepted now.
    fn accept_one(&mut self) -> bool {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (socket, from) = match acceptfrom_with(&self.listener, flags) {
            Ok((socket, from)) => (socket, from.and_then(|it| SocketAddrV4::try_from(it).ok())),
            Err(Io::MFILE | Io::NFILE) if self.make_room(None) => return true,
            // A connection that waits keeps the listener readable, which would wake this process
            // all the time.
            Err(Io::MFILE | Io::NFILE | Io::NOBUFS | Io::NOMEM) => {
                self.set_accepts(false);
                return false;
            }
            Err(_) => return false,
        };
        let from = from.map_or(Ipv4Addr::UNSPECIFIED, |from| *from.ip());
        let most = MOST_UNPROVED.min(descriptors() / UNPROVED_PART).max(1);
        if self.unproved.len() >= most && !self.make_room(Some(from)) {
            // A peer dials again.
            return true;
        }
        match self.add(socket, false, HandshakeRole::Acceptor, self.secret) {
            Ok(number) => self.unproved.add(number, from),
            Err(error) => {
                tracing::warn!("closed a new connection, which cannot be used: {error}");
            }
        }
        true
    }

    /// Begins or stops accepting connections.
    fn set_accepts(&mut self, accepts: bool) {
        if self.accepts != accepts {
            self.accepts = accepts;
            let events = if accepts { EventFlags::IN } else { EventFlags::empty() };
            let data = EventData::new_u64(LISTENER);
            let _ = epoll::modify(&self.epoll, &self.listener, data, events);
        }
    }

    /// Makes room for a connection from an address. Closes an unproved connection, from the address
    /// that has the most, unless its proof has come meanwhile. Returns false if it may not be
    /// closed.
    fn make_room(&mut self, from: Option<Ipv4Addr>) -> bool {
        let Some((number, address)) = self.unproved.oldest_of_most() else { return false };
        let before = self.unproved.len();
        self.on_socket_event(number);
        if self.unproved.len() < before {
            return true;
        }
        let Some(connection) = self.all.get(number) else { return false };
        let is_over = connection.ended.is_some() || connection.since.elapsed() > YOUNG;
        let has_fewer = |from| self.unproved.count(from) < self.unproved.count(address);
        let may_close = is_over || from.is_some_and(has_fewer);
        if may_close {
            self.close(number);
        }
        may_close
    }

    /// Handles an event of a connection.
    fn on_socket_event(&mut self, number: usize) {
        let Some(connection) = self.all.get_mut(number).filter(|it| it.ended.is_none()) else {
            return;
        };
        if connection.connects {
            match sockopt::socket_error(&connection.socket) {
                Ok(Ok(())) => connection.connects = false,
                Ok(Err(error)) | Err(error) => {
                    return self.end(number, io::Error::from(error).into());
                }
            }
        }
        if connection.wants_room || !connection.output.is_empty() {
            connection.flush();
            connection.wants_room = false;
            self.expect_room(number);
        }
        self.receive(number);
    }

    /// Reads what has come over a connection.
    fn receive(&mut self, number: usize) {
        for _ in 0..READS {
            let Some(connection) = self.all.get_mut(number) else { return };
            let read = connection.input.read(connection.socket.as_fd());
            if read != Ok(Read::Nothing) {
                self.advance(number);
            }
            let Some(connection) = self.all.get(number).filter(|it| !it.must_close) else { return };
            match read {
                Ok(Read::More) if !connection.input.has_frame() => {}
                Ok(_) => return,
                Err(errno) => return self.end(number, errno),
            }
        }
    }

    /// Marks a connection for closing, and queues `event`. Nothing more is read, and bytes that
    /// were read are dropped.
    fn mark_for_closing(&mut self, number: usize, event: ConnectionEvent) {
        let Some(connection) = self.all.get_mut(number).filter(|it| !it.must_close) else { return };
        connection.must_close = true;
        if connection.ended.is_none() {
            connection.ended = Some(Errno::EPROTO);
            let _ = epoll::delete(&self.epoll, &connection.socket);
        }
        self.events.push_back((number, event));
    }

    /// Ends a connection. The frames that came before are handled first.
    fn end(&mut self, number: usize, errno: Errno) {
        let Some(connection) = self.all.get_mut(number).filter(|it| it.ended.is_none()) else {
            return;
        };
        connection.ended = Some(errno);
        let _ = epoll::delete(&self.epoll, &connection.socket);
        self.advance(number);
    }

    /// Handles received bytes, up to the next frame.
    fn advance(&mut self, number: usize) {
        loop {
            let Some(connection) = self.all.get_mut(number).filter(|it| !it.must_close) else {
                return;
            };
            // Without a peer number, `Input::next` refuses frames.
            let is_proved = matches!(connection.handshake, Handshake::Proved(_));
            let peer = connection.peer.filter(|_| is_proved);
            match connection.input.next(peer, &self.landings) {
                Ok(Next::Frame) => return self.ready.push_back(number),
                Ok(Next::Message(message)) => self.on_message(number, message),
                Ok(Next::Nothing) => {
                    if let Some(errno) = connection.ended
                        && !connection.input.has_frame()
                    {
                        self.events.push_back((number, ConnectionEvent::Ended(errno)));
                    }
                    return;
                }
                Err(error) => {
                    return self.mark_for_closing(number, ConnectionEvent::Invalid(error));
                }
            }
        }
    }

    /// Handles a handshake message of the peer.
    fn on_message(&mut self, number: usize, message: HandshakeMessage) {
        let Some(connection) = self.all.get_mut(number) else { return };
        connection.messages += 1;
        let is_proved = matches!(connection.handshake, Handshake::Proved(_));
        let event = match message {
            _ if connection.messages
                > if is_proved { MAX_MESSAGES } else { MAX_MESSAGES_UNPROVED } =>
            {
                ConnectionEvent::Invalid(DecodeError::Garbage)
            }
            HandshakeMessage::Start(theirs) => match &connection.handshake {
                Handshake::Starting { secret, nonce } => {
                    let session = match connection.role {
                        HandshakeRole::Dialer => Session::new(secret, nonce, &theirs),
                        HandshakeRole::Acceptor => Session::new(secret, &theirs, nonce),
                    };
                    connection.handshake = Handshake::Started(session);
                    ConnectionEvent::Started
                }
                _ => ConnectionEvent::Invalid(DecodeError::Garbage),
            },
            HandshakeMessage::Hello(hello, proof) => connection.prove(hello, &proof, self.seals),
            // A peer that was dialed may refuse this endpoint without a proof.
            HandshakeMessage::Refused(_)
                if is_proved || connection.role == HandshakeRole::Dialer =>
            {
                ConnectionEvent::Message(message)
            }
            message if is_proved => ConnectionEvent::Message(message),
            _ => ConnectionEvent::Invalid(DecodeError::Garbage),
        };
        if matches!(event, ConnectionEvent::Proved(..))
            && connection.role == HandshakeRole::Acceptor
        {
            self.unproved.remove(number);
            // This fails only if the connection has ended, which the next read reports.
            let _ = set_options(connection.socket.as_fd(), self.timeout);
        }
        match event {
            ConnectionEvent::Invalid(_)
            | ConnectionEvent::Unproved
            | ConnectionEvent::Message(HandshakeMessage::Refused(_)) => {
                self.mark_for_closing(number, event);
            }
            event => self.events.push_back((number, event)),
        }
    }

    /// Closes accepted connections whose dialer has proved nothing for too long, ends connections
    /// to hosts that do not answer, and frees idle receive buffers. Accepts connections again after
    /// a shortage.
    pub(super) fn look_around(&mut self) {
        self.set_accepts(true);
        let mut old = Vec::new();
        let mut silent = Vec::new();
        for (number, connection) in &mut self.all {
            connection.input.shrink();
            connection.looks = connection.looks.saturating_add(1);
            let is_old = connection.looks > MIN_LOOKS && connection.since.elapsed() > UNPROVED;
            if connection.is_unproved() && is_old {
                old.push(number);
                continue;
            }
            if !self.timeout.is_zero() && connection.is_silent(self.timeout) {
                silent.push(number);
            }
        }
        old.into_iter().for_each(|number| self.close(number));
        silent.into_iter().for_each(|number| self.end(number, Errno::ETIMEDOUT));
    }
}

impl Connection {
    /// Returns whether the connection was accepted and its dialer has proved nothing.
    fn is_unproved(&self) -> bool {
        self.role == HandshakeRole::Acceptor && !matches!(self.handshake, Handshake::Proved(_))
    }

    /// Checks the proof in the peer's Hello, and returns the resulting event. If the proof is
    /// right, unmasks the token, and seals what follows if `seals` is true.
    fn prove(&mut self, mut hello: Hello, proof: &[u8; PROOF], seals: bool) -> ConnectionEvent {
        let Handshake::Started(session) = &self.handshake else {
            return ConnectionEvent::Invalid(DecodeError::Garbage);
        };
        let theirs = match self.role {
            HandshakeRole::Dialer => HandshakeRole::Acceptor,
            HandshakeRole::Acceptor => HandshakeRole::Dialer,
        };
        if !session.is_proved(theirs, &hello.to_bytes(), proof) {
            return ConnectionEvent::Unproved;
        }
        let claim = session.claimed(theirs, &hello.unclaimed(), hello.claim);
        hello.masked_token ^= session.mask(theirs);
        if seals {
            self.seal = Some(session.seal(self.role));
            self.input.expect_sealed(session.seal(theirs));
        }
        self.handshake = Handshake::Proved(session.clone());
        ConnectionEvent::Proved(hello, claim)
    }

    /// Copies the rest of a frame of `whole` bytes, of which `accepted` were sent, to be sent
    /// later.
    fn keep(&mut self, front: &[u8], data: &[Buffer], accepted: usize, whole: usize) {
        self.flushed = 0;
        self.output.clear();
        self.output.extend(front.get(accepted..).unwrap_or_default());
        let mut skip = accepted.saturating_sub(front.len());
        for buffer in data {
            let at = skip.min(buffer.len());
            skip -= at;
            let start = self.output.len();
            self.output.resize(start + buffer.len() - at, 0);
            buffer.part(at, buffer.len() - at).read_to(&mut self.output[start..]);
        }
        debug_assert_eq!(self.output.len(), whole - accepted, "a frame is kept whole");
    }

    fn flush(&mut self) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while self.flushed < self.output.len() {
            match send(&self.socket, &self.output[self.flushed..], flags) {
                Ok(count) => self.flushed += count,
                Err(Io::INTR) => {}
                // The next read reports a broken connection.
                Err(_) => return,
            }
        }
        self.output.clear();
        self.flushed = 0;
    }

    /// Returns whether the other end's host does not answer. This is so if the host has owed an
    /// acknowledgement, or the kernel has tried to connect to it, for longer than `timeout`.
    fn is_silent(&mut self, timeout: Duration) -> bool {
        if self.ended.is_some() {
            return false;
        }
        if self.connects {
            // This process may have been stopped meanwhile, so a few calls of `look_around` must
            // have come first.
            return self.looks > MIN_LOOKS && self.since.elapsed() > timeout;
        }
        let Ok(Some(silent)) = socket::unacknowledged_for(self.socket.as_fd()) else {
            self.owes_since = None;
            return false;
        };
        let since = *self.owes_since.get_or_insert_with(Instant::now);
        silent.min(since.elapsed()) > timeout
    }
}

/// Returns the maximum number of descriptors that this process may have.
fn descriptors() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Returns the events that a connection waits for. `room`: also the event that bytes can be sent.
fn interest(room: bool) -> EventFlags {
    if room { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN }
}

/// Lets the kernel send each frame at once, and end an idle connection whose other end does not
/// answer for `timeout`.
fn set_options(socket: BorrowedFd<'_>, timeout: Duration) -> rustix::io::Result<()> {
    sockopt::set_tcp_nodelay(socket, true)?;
    if timeout.is_zero() {
        return Ok(());
    }
    let part = |parts: u32| (timeout / parts).max(Duration::from_secs(1));
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, part(3))?;
    sockopt::set_tcp_keepintvl(socket, part(5))?;
    sockopt::set_tcp_keepcnt(socket, 3)
}

/// Returns the bytes before the head of a frame with a payload of this length.
pub(super) fn front_of(payload: usize) -> [u8; FRONT - super::frame::HEAD] {
    let mut front = [0; FRONT - super::frame::HEAD];
    front[4..].copy_from_slice(&(payload as u32).to_ne_bytes());
    front
}
