// SPDX-License-Identifier: BSD-2-Clause
//! Connections over TCP on which endpoints say who they are, and by which they notice that the other
//! is gone: the kernel of a host answers for a process that computes, and tells when it has died.

use std::{
    io,
    net::SocketAddrV4,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use ffi::Errno;
use host::children::Unshared;
use rustix::{
    event::epoll::{self, EventData, EventFlags},
    fs::Timespec,
    io::Errno as Io,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, connect,
        ipproto, listen, recv, send, socket_with, sockopt,
    },
};
use slab::Slab;

use super::hello::{self, Nonsense, Said};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 1024;
/// Who is accepted at a time.
const ACCEPTS: usize = 64;
/// Who has connected and not said who it is: so many, so long.
const STRANGERS: usize = 256;
const STRANGE: Duration = Duration::from_secs(10);
const LOOKS: u32 = 10;
/// The event of the socket that listens.
const LISTENER: u64 = u64::MAX;

/// What came of connections.
#[derive(Debug)]
pub(super) enum Happened {
    /// A message.
    Said(Said),
    /// It talks nonsense, and was closed.
    Nonsense(Nonsense),
    /// It is gone.
    Gone(Errno),
}

#[derive(Debug)]
struct Stream {
    socket: Unshared,
    /// Whether the peer has not accepted it yet.
    connects: bool,
    /// Whether it has not said who it is.
    is_strange: bool,
    since: Instant,
    /// Looks at it since.
    looks: u32,
    came: Vec<u8>,
    /// What did not go at once.
    rest: Vec<u8>,
}

/// All connections of an endpoint, by number.
#[derive(Debug)]
pub(super) struct Pulses {
    epoll: Unshared,
    listener: Unshared,
    streams: Slab<Stream>,
    timeout: Duration,
    strangers: usize,
}

impl Pulses {
    /// Those of an endpoint whose port this socket holds.
    ///
    /// # Errors
    /// It cannot listen, or there are no descriptors left.
    pub(super) fn new(socket: OwnedFd, timeout: Duration) -> Result<Self, Errno> {
        let make = || -> rustix::io::Result<Self> {
            listen(&socket, BACKLOG)?;
            rustix::io::ioctl_fionbio(&socket, true)?;
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            epoll::add(&epoll, &socket, EventData::new_u64(LISTENER), EventFlags::IN)?;
            let (epoll, listener) = (Unshared::new(epoll), Unshared::new(socket));
            Ok(Self { epoll, listener, streams: Slab::new(), timeout, strangers: 0 })
        };
        Ok(make().map_err(io::Error::from)?)
    }

    /// What becomes readable when something happens on one of them.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Connects to an address; the number of the connection.
    ///
    /// # Errors
    /// There are no descriptors left, or the host cannot be reached.
    pub(super) fn dial(&mut self, address: SocketAddrV4) -> Result<usize, Errno> {
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
        Ok(self.add(socket, connects, false).map_err(io::Error::from)?)
    }

    fn add(
        &mut self,
        socket: OwnedFd,
        connects: bool,
        is_strange: bool,
    ) -> rustix::io::Result<usize> {
        sockopt::set_tcp_nodelay(&socket, true)?;
        watch(&socket, self.timeout)?;
        let entry = self.streams.vacant_entry();
        let number = entry.key();
        let data = EventData::new_u64(number as u64);
        let out = if connects { EventFlags::OUT } else { EventFlags::empty() };
        epoll::add(&self.epoll, &socket, data, EventFlags::IN | EventFlags::RDHUP | out)?;
        entry.insert(Stream {
            socket: Unshared::new(socket),
            connects,
            is_strange,
            since: Instant::now(),
            looks: 0,
            came: Vec::new(),
            rest: Vec::new(),
        });
        self.strangers += usize::from(is_strange);
        Ok(number)
    }

    /// A connection is that of somebody known.
    pub(super) fn is_known(&mut self, number: usize) {
        if let Some(stream) = self.streams.get_mut(number)
            && std::mem::take(&mut stream.is_strange)
        {
            self.strangers -= 1;
        }
    }

    /// Says something, now or as soon as it goes.
    pub(super) fn say(&mut self, number: usize, said: &Said) {
        let Some(stream) = self.streams.get_mut(number) else { return };
        stream.rest.extend(said.to_bytes());
        if !stream.connects {
            stream.flush();
        }
        self.expect_room(number);
    }

    /// Asks to be told of room as long as something waits for it.
    fn expect_room(&self, number: usize) {
        let Some(stream) = self.streams.get(number) else { return };
        let waits = stream.connects || !stream.rest.is_empty();
        let out = if waits { EventFlags::OUT } else { EventFlags::empty() };
        let data = EventData::new_u64(number as u64);
        let flags = EventFlags::IN | EventFlags::RDHUP | out;
        let _ = epoll::modify(&self.epoll, &stream.socket, data, flags);
    }

    /// Closes a connection; what was said before arrives.
    pub(super) fn close(&mut self, number: usize) {
        if let Some(stream) = self.streams.try_remove(number) {
            self.strangers -= usize::from(stream.is_strange);
            let _ = epoll::delete(&self.epoll, &stream.socket);
        }
    }

    /// What happened on which connection. One that is gone, or talks nonsense, is to be closed: its
    /// number is its own until all that happened was looked at.
    pub(super) fn poll(&mut self) -> Vec<(usize, Happened)> {
        let mut events =
            [epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; 32];
        let now = Timespec::default();
        let count = epoll::wait(&self.epoll, &mut events[..], Some(&now)).unwrap_or(0);
        let mut happened = Vec::new();
        for event in &events[..count] {
            match event.data.u64() {
                LISTENER => self.accept(),
                number => self.hear(number as usize, &mut happened),
            }
        }
        happened
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(socket) = accept_with(&self.listener, flags) else { return };
            if self.strangers >= STRANGERS {
                tracing::warn!("too many connect and do not say who they are");
                continue;
            }
            if let Err(error) = self.add(socket, false, true) {
                tracing::warn!("a connection cannot be used: {error}");
            }
        }
    }

    fn hear(&mut self, number: usize, happened: &mut Vec<(usize, Happened)>) {
        let Some(stream) = self.streams.get_mut(number) else { return };
        let end = stream.advance();
        loop {
            match Said::of_bytes(&stream.came) {
                Ok(Some((said, len))) => {
                    stream.came.drain(..len);
                    happened.push((number, Happened::Said(said)));
                }
                Ok(None) => break,
                Err(nonsense) => {
                    happened.push((number, Happened::Nonsense(nonsense)));
                    return;
                }
            }
        }
        match end {
            None => self.expect_room(number),
            Some(errno) => happened.push((number, Happened::Gone(errno))),
        }
    }

    /// Closes connections of those who have not said who they are for long, in which somebody listened.
    pub(super) fn part_with_strangers(&mut self) {
        if self.strangers == 0 {
            return;
        }
        let mut old = Vec::new();
        for (number, stream) in self.streams.iter_mut().filter(|(_, stream)| stream.is_strange) {
            stream.looks += 1;
            if stream.looks > LOOKS && stream.since.elapsed() > STRANGE {
                old.push(number);
            }
        }
        old.into_iter().for_each(|number| self.close(number));
    }
}

impl Stream {
    /// Sends and receives what can be; how it ended, if it did.
    fn advance(&mut self) -> Option<Errno> {
        if self.connects {
            match sockopt::socket_error(&self.socket) {
                Ok(Ok(())) => self.connects = false,
                Ok(Err(error)) | Err(error) => return Some(io::Error::from(error).into()),
            }
        }
        self.flush();
        let mut bytes = [0_u8; hello::LONGEST];
        loop {
            // No more than one message is kept that is not whole.
            match recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Some(Errno::ECONNABORTED),
                Ok((len, _)) => {
                    self.came.extend(&bytes[..len]);
                    if self.came.len() > hello::LONGEST {
                        return None;
                    }
                }
                Err(Io::AGAIN) => return None,
                Err(Io::INTR) => {}
                Err(error) => return Some(io::Error::from(error).into()),
            }
        }
    }

    fn flush(&mut self) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while !self.rest.is_empty() {
            match send(&self.socket, &self.rest, flags) {
                Ok(len) => drop(self.rest.drain(..len)),
                Err(Io::INTR) => {}
                // Of one that is gone the next look tells.
                Err(_) => return,
            }
        }
    }
}

/// Has the kernel end a connection whose other end acknowledges nothing for so long.
fn watch(socket: &OwnedFd, timeout: Duration) -> rustix::io::Result<()> {
    if timeout.is_zero() {
        return Ok(());
    }
    let part = |parts: u32| (timeout / parts).max(Duration::from_secs(1));
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, part(3))?;
    sockopt::set_tcp_keepintvl(socket, part(5))?;
    sockopt::set_tcp_keepcnt(socket, 3)?;
    let timeout = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(socket, timeout)
}
