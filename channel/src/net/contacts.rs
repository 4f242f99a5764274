// SPDX-License-Identifier: BSD-2-Clause
//! The peers of an endpoint on the network, each under a number ([`super::contact`]).
//!
//! Both ends may connect at the same time: whichever Hello comes first opens the contact, the other
//! says the same again.

use std::{
    collections::HashMap,
    net::SocketAddrV4,
    os::fd::{BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use ffi::{Errno, client::Client};
use rustix::rand::{GetRandomFlags, getrandom};

use super::{
    contact::{Contact, State},
    hello::{Hello, Nonsense, Refusal, Said},
    pulse::{Happened, Pulses},
};
use crate::{identity::Identity, shm::segment::Liveness};

/// Peers that there are numbers for.
const MOST: usize = 1 << 16;
/// Peers that are looked at in one look.
const A_LOOK: usize = 1024;
/// After which time it is forgotten why somebody cannot be reached, if nobody asks.
const FORGET: Duration = Duration::from_secs(10);

/// What an endpoint tells of itself to all.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) key: u64,
    pub(super) who: Identity,
    pub(super) address: SocketAddrV4,
    pub(super) provider: String,
    pub(super) name: Vec<u8>,
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
    /// Number that is looked at next.
    look: usize,
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
            look: 0,
        })
    }

    /// What becomes readable when something happens on a connection.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.pulses.bell()
    }

    pub(super) fn get(&self, number: usize) -> Option<&Contact> {
        self.all.get(number)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, number: u16) -> Option<&mut Contact> {
        self.all.get_mut(usize::from(number))?.as_deref_mut()
    }

    /// Whoever is at an address and is open.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn at(&self, address: SocketAddrV4) -> Option<(u16, &Contact)> {
        let number = *self.at.get(&address)?;
        Some((number, self.get(number.into()).filter(|contact| contact.is_open())?))
    }

    /// Whether somebody has yet to say who it is.
    pub(super) fn greets(&self) -> bool {
        self.greetings > 0
    }

    /// See [`super::end::Net::meet`].
    pub(super) fn meet(&mut self, address: SocketAddrV4) -> Result<(u16, Identity), Errno> {
        if let Some(&number) = self.at.get(&address)
            && let Some(contact) = self.get(number.into())
        {
            match (contact.state, contact.who) {
                (State::Open, Some(who)) => return Ok((number, who)),
                (State::Lost(..), Some(who)) if contact.is_linked => return Ok((number, who)),
                (State::Failed(errno, _), _) => {
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
        let contact = Contact::new(address, u32::from_ne_bytes(token));
        self.all[number] = Some(Box::new(contact));
        self.greetings += 1;
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
        self.greetings -= usize::from(contact.greets());
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
        // One that was lost may come back under another number.
        let fits = |contact: &Contact| match contact.state {
            State::Greeting => true,
            State::Open => {
                let (number, token) = (contact.number, contact.token);
                contact.who == Some(hello.who) && (number, token) == (hello.number, hello.token)
            }
            _ => false,
        };
        let number = match known {
            Some(number) if self.get(number.into()).is_some_and(fits) => number,
            // We are in touch with its successor already.
            Some(_) if dialed.is_some() => return self.gone(stream, Errno::ECONNABORTED),
            // It is another one than the one that was there, if there was one: whose connections tell
            // when it is gone, and not what others say.
            _ => match self.add(hello.address) {
                Ok(number) => number,
                Err(_) => return self.refuse(stream, hello, Refusal::Full),
            },
        };
        if self.get(number.into()).is_some_and(Contact::greets) {
            let inserted = below.insert(&hello.name);
            let Some(contact) = self.get_mut(number) else { return };
            let Ok(to) = inserted else {
                if contact.streams.is_empty() {
                    self.remove(number);
                }
                return self.refuse(stream, hello, Refusal::Provider);
            };
            contact.who = Some(hello.who);
            contact.to = to;
            contact.token = hello.token;
            contact.number = hello.number;
            contact.state = State::Open;
            self.greetings -= 1;
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
        if contact.greets() {
            contact.state = State::Failed(errno, Instant::now());
            self.greetings -= 1;
        }
    }

    /// A connection is gone, or is to go.
    fn gone(&mut self, stream: usize, errno: Errno) {
        self.pulses.close(stream);
        let Some(number) = self.of.remove(&stream) else { return };
        let Some(contact) = self.get_mut(number) else { return };
        contact.streams.retain(|&other| other != stream);
        if contact.streams.is_empty() {
            contact.lose();
            self.fail(number, errno);
        }
    }

    /// Whether a frame is the next of a peer: each says how many went before it. If it is not, the
    /// provider below has lost some, and nothing that comes can be believed to be in order.
    pub(super) fn is_next(&mut self, number: u16, before: u32) -> bool {
        let Some(contact) = self.get_mut(number) else { return false };
        let is_over = contact.is_torn || contact.state == State::Dead;
        if contact.came as u32 == before && !is_over {
            contact.came += 1;
            return true;
        }
        if !is_over {
            let (address, came) = (contact.address, contact.came as u32);
            tracing::error!("{address}: message {before} came over the network in place of {came}");
            self.tear(number);
        }
        false
    }

    /// Ends all that is between a peer and this endpoint, at both.
    fn tear(&mut self, number: u16) {
        let Some(contact) = self.get_mut(number) else { return };
        contact.is_torn = true;
        for stream in contact.streams.clone() {
            self.gone(stream, Errno::ECONNABORTED);
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
        if !contact.is_torn && contact.is_open() {
            tracing::warn!("{} cannot be sent to: {errno}", contact.address);
            self.tear(number);
        }
    }

    /// See [`super::link::Link::liveness`]. Those who are lost are looked at, if all was read that has
    /// come.
    pub(super) fn liveness(&mut self, number: u16, who: Identity, has_read: bool) -> Liveness {
        let Some(contact) = self.get_mut(number) else { return Liveness::Dead };
        if contact.who != Some(who) {
            return Liveness::Dead;
        }
        if has_read {
            contact.settle();
        }
        contact.liveness()
    }

    /// The endpoint has no link to a peer any more.
    pub(super) fn unlink(&mut self, number: u16, who: Identity) {
        if let Some(contact) = self.get_mut(number)
            && contact.who == Some(who)
        {
            contact.is_linked = false;
            if contact.is_gone() {
                self.remove(number);
            }
        }
    }

    /// Forgets those who are gone, and strangers. Of many peers some at a time are looked at.
    pub(super) fn look_around(&mut self, has_read: bool) {
        self.pulses.part_with_strangers();
        for _ in 0..self.all.len().min(A_LOOK) {
            self.look = (self.look + 1) % self.all.len();
            let Some(contact) = self.all[self.look].as_deref_mut() else { continue };
            if has_read {
                contact.settle();
            }
            let is_over = match contact.state {
                State::Failed(_, since) => since.elapsed() > FORGET,
                _ => contact.is_gone() && !contact.is_linked,
            };
            if is_over {
                self.remove(self.look as u16);
            }
        }
    }

    /// See [`super::end::Net::say_bye`].
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
