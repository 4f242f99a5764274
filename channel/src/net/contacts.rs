// SPDX-License-Identifier: BSD-2-Clause
//! The peers of an endpoint on the network.
//!
//! ```text
//! Greeting --- Hello came --> Open --- Bye came, all frames seen --> Closed
//!    |                          `----- connection gone -- GRACE --> Dead
//!    `--- refused, no answer --> Failed
//! ```
//! Both ends may connect at the same time: whichever Hello comes first opens the contact, the other
//! says the same again. Of a peer whose connection is gone what it sent before may still come over the
//! provider below: it is dead once nothing has for a while.

use std::{
    collections::HashMap,
    net::SocketAddrV4,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use ffi::{Errno, client::Client};
use rustix::rand::{GetRandomFlags, getrandom};

use super::{
    hello::{Hello, Nonsense, Refusal, Said},
    pulse::{Happened, Pulses},
};
use crate::{identity::Identity, shm::segment::Liveness};

/// Time without a frame after which nothing more comes of a peer whose connection is gone.
const GRACE: Duration = Duration::from_millis(200);
/// Peers that there are numbers for.
const MOST: usize = 1 << 16;

/// What an endpoint tells of itself to all.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) key: u64,
    pub(super) who: Identity,
    pub(super) address: SocketAddrV4,
    pub(super) provider: String,
    pub(super) name: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Greeting,
    Failed(Errno),
    Open,
    /// Since when nothing came, and how many frames had by then.
    Lost(Instant, u64),
    Dead,
    Closed,
}

/// A peer.
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
    token_here: u32,
    state: State,
    streams: Vec<usize>,
    /// Whether the endpoint has a link to it.
    pub(super) is_linked: bool,
    /// Frames to it and from it.
    pub(super) sent: u64,
    seen: u64,
    /// How many it said it had sent, and how many we said.
    bye: Option<u64>,
    said_bye: Option<u64>,
    is_seen: bool,
    /// Blocks that the provider below has for it, and how many of them lend memory of the application.
    pub(super) under_way: u32,
    pub(super) lent: u32,
}

impl Contact {
    /// Whether it has yet to say who it is.
    pub(super) fn greets(&self) -> bool {
        self.state == State::Greeting
    }

    /// Whether frames go to it.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::Lost(..))
    }

    /// Whether a frame with this token is from it; it may be before it is known who that is: its Hello,
    /// which it sent first, comes on another connection.
    pub(super) fn is_from(&self, token: u32) -> bool {
        self.token_here == token
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Contacts {
    own: Own,
    pulses: Pulses,
    all: Vec<Option<Box<Contact>>>,
    /// The one at each address, of those that are not gone.
    at: HashMap<SocketAddrV4, u16>,
    /// By connection.
    of: HashMap<usize, u16>,
    /// Number that is looked at first when one is given.
    next: usize,
    /// Those who have not said who they are.
    greetings: usize,
}

impl Contacts {
    pub(super) fn new(own: Own, socket: OwnedFd, timeout: Duration) -> Result<Self, Errno> {
        Ok(Self {
            own,
            pulses: Pulses::new(socket, timeout)?,
            all: Vec::new(),
            at: HashMap::new(),
            of: HashMap::new(),
            next: 0,
            greetings: 0,
        })
    }

    pub(super) fn get(&self, number: usize) -> Option<&Contact> {
        self.all.get(number)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, number: u16) -> Option<&mut Contact> {
        self.all.get_mut(usize::from(number))?.as_deref_mut()
    }

    /// Whether somebody has yet to say who it is.
    pub(super) fn greets(&self) -> bool {
        self.greetings > 0
    }

    /// See [`super::Net::meet`].
    pub(super) fn meet(&mut self, address: SocketAddrV4) -> Result<(u16, Identity), Errno> {
        if let Some(&number) = self.at.get(&address)
            && let Some(contact) = self.get(number.into())
        {
            match (contact.state, contact.who) {
                (State::Open, Some(who)) => return Ok((number, who)),
                (State::Lost(..), Some(who)) if contact.is_linked => return Ok((number, who)),
                (State::Failed(errno), _) => {
                    self.remove(number);
                    return Err(errno);
                }
                (State::Dead | State::Closed, _) => _ = self.at.remove(&address),
                _ => return Err(Errno::EAGAIN),
            }
        }
        let number = self.add(address)?;
        let stream = match self.pulses.dial(address) {
            Ok(stream) => stream,
            Err(errno) => {
                self.remove(number);
                return Err(errno);
            }
        };
        self.attach(number, stream);
        self.greet(number, stream);
        self.greetings += 1;
        Err(Errno::EAGAIN)
    }

    fn add(&mut self, address: SocketAddrV4) -> Result<u16, Errno> {
        let len = self.all.len();
        let free = |at: &usize| self.all[*at].is_none();
        let found = (self.next..len).find(free).or_else(|| (0..self.next.min(len)).find(free));
        // Numbers rest for a while before another has them.
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
        let mut token = [0; 4];
        getrandom(&mut token, GetRandomFlags::empty()).map_err(std::io::Error::from)?;
        self.all[number] = Some(Box::new(Contact {
            address,
            who: None,
            to: ffi::flags::ADDR_UNSPEC,
            token: 0,
            number: 0,
            token_here: u32::from_ne_bytes(token),
            state: State::Greeting,
            streams: Vec::new(),
            is_linked: false,
            sent: 0,
            seen: 0,
            bye: None,
            said_bye: None,
            is_seen: false,
            under_way: 0,
            lent: 0,
        }));
        self.at.insert(address, number as u16);
        Ok(number as u16)
    }

    fn attach(&mut self, number: u16, stream: usize) {
        self.of.insert(stream, number);
        if let Some(contact) = self.get_mut(number) {
            contact.streams.push(stream);
        }
    }

    fn remove(&mut self, number: u16) {
        let Some(contact) = self.all[usize::from(number)].take() else { return };
        for stream in contact.streams {
            self.of.remove(&stream);
            self.pulses.close(stream);
        }
        if self.at.get(&contact.address) == Some(&number) {
            self.at.remove(&contact.address);
        }
    }

    /// Says who we are.
    fn greet(&mut self, number: u16, stream: usize) {
        let Some(contact) = self.get(number.into()) else { return };
        let Own { key, who, address, provider, name } = &self.own;
        let hello = Hello {
            key: *key,
            who: *who,
            address: *address,
            token: contact.token_here,
            number,
            provider: provider.clone(),
            name: name.clone(),
        };
        self.pulses.say(stream, &Said::Hello(hello));
    }

    /// Sees to what happened on connections.
    pub(super) fn tend(&mut self, below: &mut Client) {
        for (stream, happened) in self.pulses.poll() {
            match happened {
                Happened::Said(Said::Hello(hello)) => self.greeted(stream, &hello, below),
                Happened::Said(said) => {
                    if let Some(&number) = self.of.get(&stream) {
                        self.told(number, &said);
                    }
                }
                Happened::Nonsense(nonsense) => {
                    match nonsense {
                        Nonsense::Version => tracing::warn!(
                            "somebody connects who has another version of tcam, or another byte order"
                        ),
                        Nonsense::Garbage => {
                            tracing::warn!("somebody connects who is no endpoint of tcam");
                        }
                    }
                    self.gone(stream, Errno::EPROTO);
                }
                Happened::Gone(errno) => self.gone(stream, errno),
            }
        }
    }

    fn greeted(&mut self, stream: usize, hello: &Hello, below: &mut Client) {
        let refusal = if hello.key != self.own.key {
            Some(Refusal::Key)
        } else if hello.provider != self.own.provider {
            Some(Refusal::Provider)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return self.refuse(stream, hello, refusal);
        }
        let dialed = self.of.get(&stream).copied();
        let known = dialed.or_else(|| self.at.get(&hello.address).copied());
        let fits = |contact: &Contact| {
            contact.who.is_none_or(|who| who == hello.who)
                && !matches!(contact.state, State::Failed(_) | State::Dead | State::Closed)
        };
        let number = match known {
            Some(number) if self.get(number.into()).is_some_and(fits) => number,
            // We are in touch with its successor already.
            Some(_) if dialed.is_some() => return self.gone_for_good(stream),
            other => {
                // It is another one than the one that was there.
                if let Some(before) = other
                    && let Some(contact) = self.get_mut(before)
                    && contact.is_open()
                {
                    contact.state = State::Lost(Instant::now(), contact.seen);
                }
                match self.add(hello.address) {
                    Ok(number) => number,
                    Err(_) => return self.refuse(stream, hello, Refusal::Full),
                }
            }
        };
        let greets = self.get(number.into()).is_some_and(|it| it.state == State::Greeting);
        if greets {
            let Ok(to) = below.insert(&hello.name) else {
                return self.refuse(stream, hello, Refusal::Provider);
            };
            if dialed.is_some() || self.get(number.into()).is_some_and(|it| !it.streams.is_empty())
            {
                self.greetings -= 1;
            }
            let Some(contact) = self.get_mut(number) else { return };
            contact.who = Some(hello.who);
            contact.to = to;
            contact.token = hello.token;
            contact.number = hello.number;
            contact.state = State::Open;
            tracing::debug!("in touch with {} over the network", hello.address);
        }
        if dialed.is_none() {
            self.pulses.is_known(stream);
            self.attach(number, stream);
            self.greet(number, stream);
        }
    }

    fn refuse(&mut self, stream: usize, hello: &Hello, refusal: Refusal) {
        let (address, key) = (hello.address, "FI_TCAM_JOB_KEY");
        match refusal {
            Refusal::Key => tracing::warn!("{address} is of another job ({key}), and is refused"),
            Refusal::Version => tracing::warn!("{address} has another version of tcam"),
            Refusal::Provider => tracing::warn!(
                "{address} uses FI_TCAM_NET={}, this process {}: it is refused",
                hello.provider,
                self.own.provider
            ),
            Refusal::Full => tracing::warn!("{address} is refused, there are too many peers"),
        }
        self.pulses.say(stream, &Said::Refused(refusal));
        self.gone(stream, Errno::EACCES);
        self.pulses.close(stream);
    }

    fn told(&mut self, number: u16, said: &Said) {
        let Some(contact) = self.get_mut(number) else { return };
        match said {
            Said::Bye(frames) => {
                contact.bye = Some(*frames);
                self.close_if_seen(number);
            }
            Said::Seen(frames) => contact.is_seen = *frames >= contact.sent,
            Said::Refused(refusal) => {
                let why = match refusal {
                    Refusal::Key => "it is of another job (FI_TCAM_JOB_KEY)",
                    Refusal::Version => "it has another version of tcam",
                    Refusal::Provider => "it uses another FI_TCAM_NET",
                    Refusal::Full => "it has too many peers",
                };
                tracing::error!("{} refuses this process: {why}", contact.address);
                self.fail(number, Errno::EACCES);
            }
            Said::Hello(_) => {}
        }
    }

    fn fail(&mut self, number: u16, errno: Errno) {
        let Some(contact) = self.get_mut(number) else { return };
        if contact.state == State::Greeting {
            contact.state = State::Failed(errno);
            self.greetings -= 1;
        }
    }

    fn gone_for_good(&mut self, stream: usize) {
        self.gone(stream, Errno::ECONNABORTED);
        self.pulses.close(stream);
    }

    /// A connection is gone.
    fn gone(&mut self, stream: usize, errno: Errno) {
        let Some(number) = self.of.remove(&stream) else { return };
        let Some(contact) = self.get_mut(number) else { return };
        contact.streams.retain(|&other| other != stream);
        if !contact.streams.is_empty() {
            return;
        }
        match contact.state {
            State::Greeting => self.fail(number, errno),
            State::Open => contact.state = State::Lost(Instant::now(), contact.seen),
            _ => {}
        }
    }

    /// A frame of a peer was handled.
    pub(super) fn saw(&mut self, number: u16) {
        if let Some(contact) = self.get_mut(number) {
            contact.seen += 1;
            if contact.bye.is_some() {
                self.close_if_seen(number);
            }
        }
    }

    fn close_if_seen(&mut self, number: u16) {
        let Some(contact) = self.get_mut(number) else { return };
        if !contact.is_open() || contact.bye.is_none_or(|bye| contact.seen < bye) {
            return;
        }
        contact.state = State::Closed;
        let (seen, stream) = (contact.seen, contact.streams.first().copied());
        if let Some(stream) = stream {
            self.pulses.say(stream, &Said::Seen(seen));
        }
    }

    /// The provider below could not send to a peer: what follows would not be what follows.
    pub(super) fn lost(&mut self, number: u16, errno: Errno) {
        let Some(contact) = self.get_mut(number) else { return };
        if contact.state == State::Open {
            tracing::warn!("{} cannot be sent to: {errno}", contact.address);
            contact.state = State::Lost(Instant::now(), contact.seen);
        }
    }

    /// See [`super::link::Link::liveness`].
    pub(super) fn liveness(&mut self, number: u16, who: Identity) -> Liveness {
        let Some(contact) = self.get_mut(number) else { return Liveness::Dead };
        if contact.who != Some(who) {
            return Liveness::Dead;
        }
        contact.settle();
        match contact.state {
            State::Closed => Liveness::Closed,
            State::Dead | State::Failed(_) => Liveness::Dead,
            State::Greeting | State::Open | State::Lost(..) => Liveness::Alive,
        }
    }

    /// The endpoint has no link to a peer any more.
    pub(super) fn unlink(&mut self, number: u16, who: Identity) {
        if let Some(contact) = self.get_mut(number)
            && contact.who == Some(who)
        {
            contact.is_linked = false;
            if matches!(contact.state, State::Dead | State::Closed) {
                self.remove(number);
            }
        }
    }

    /// Forgets those who are gone, and strangers.
    pub(super) fn look_around(&mut self) {
        self.pulses.part_with_strangers();
        for number in 0..self.all.len() {
            let Some(contact) = self.all[number].as_deref_mut() else { continue };
            contact.settle();
            let is_gone = matches!(contact.state, State::Dead | State::Closed);
            if is_gone && !contact.is_linked {
                self.remove(number as u16);
            }
        }
    }

    /// See [`super::Net::say_bye`].
    pub(super) fn say_bye(&mut self) {
        for contact in self.all.iter_mut().flatten() {
            let Some(&stream) = contact.streams.first() else { continue };
            if contact.who.is_some() && contact.said_bye != Some(contact.sent) {
                contact.said_bye = Some(contact.sent);
                contact.is_seen = contact.sent == 0;
                self.pulses.say(stream, &Said::Bye(contact.sent));
            }
        }
    }

    /// Whether somebody to whom Bye was said has yet to see all.
    pub(super) fn awaits_seen(&self) -> bool {
        self.all.iter().flatten().any(|contact| {
            contact.said_bye.is_some() && !contact.is_seen && !contact.streams.is_empty()
        })
    }
}

impl Contact {
    /// One that is lost is dead after a while.
    fn settle(&mut self) {
        if let State::Lost(since, seen) = &mut self.state {
            if *seen != self.seen {
                (*since, *seen) = (Instant::now(), self.seen);
            } else if since.elapsed() > GRACE {
                self.state = State::Dead;
            }
        }
    }
}
