// SPDX-License-Identifier: BSD-2-Clause
//! An endpoint's end of the network: whom it knows, and what goes to them and comes.

use std::{
    net::SocketAddrV4,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use ffi::{
    Errno,
    client::{Client, Wanted},
};
use host::children::{self, Unshared};
use parking_lot::Mutex;

#[cfg(any(test, feature = "testing"))]
use super::connections::front_of;
use super::{
    contacts::{Contacts, Own},
    frame,
    secret::Secret,
    traffic::{STAGING, Share, Traffic},
};
use crate::{identity::Identity, shm::segment::Liveness, wire::FAR};

/// What an endpoint without a provider below says of it.
const CONNECTIONS: &str = "tcp";

/// How the network is to be used.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The secret of the job (`FI_TCAM_JOB_KEY`), which all its endpoints prove that they know.
    pub job: Option<Secret>,
    /// Without one: the secret of this endpoint, which peers have with its name.
    pub own: Secret,
    /// After which time a host is gone that does not answer; zero: never.
    pub timeout: Duration,
}

/// An endpoint's end of the network.
#[derive(Debug)]
pub struct Net {
    pub(super) state: Mutex<State>,
    /// Copies of the descriptors of the provider below and of the connections.
    bells: Vec<Unshared>,
    timeout: Duration,
    /// The process that opened it.
    generation: u32,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) contacts: Contacts,
    /// What goes over a provider below; without one, frames go over the connections.
    pub(super) traffic: Option<Traffic>,
}

impl State {
    /// Sees to connections and makes progress.
    pub(super) fn progress(&mut self) {
        let Self { contacts, traffic } = self;
        contacts.tend(traffic.as_mut().map(|traffic| &mut traffic.below));
        if let Some(traffic) = traffic {
            traffic.read(contacts);
        }
    }

    /// Whether a message is to be handled.
    pub(super) fn has_some(&self) -> bool {
        self.contacts.connections.has_frame()
            || self.traffic.as_ref().is_some_and(Traffic::has_some)
    }
}

/// Opens an endpoint of a provider below.
///
/// # Errors
/// `ENODATA` if there is no such provider.
pub fn open_below(provider: &str, node: Option<&str>) -> Result<Client, Errno> {
    Client::open(&Wanted {
        provider,
        node,
        staging: (STAGING, frame::LONGEST_STAGED),
        receives: Share::of(provider).receives,
        longest: frame::LONGEST,
    })
}

impl Net {
    /// The end of an endpoint of this address, which holds its port with a socket. Messages go over the
    /// provider `below`, or over connections of its own.
    ///
    /// # Errors
    /// The socket does not listen, or there are no descriptors left.
    pub fn new(
        below: Option<Client>,
        settings: &Settings,
        socket: OwnedFd,
        who: Identity,
        address: SocketAddrV4,
    ) -> Result<Arc<Self>, Errno> {
        let own = Own {
            job: settings.job,
            who,
            address,
            provider: below.as_ref().map_or(CONNECTIONS, Client::provider).to_owned(),
            name: below.as_ref().map(Client::name).unwrap_or_default().to_vec(),
        };
        let contacts = Contacts::new(own, settings.own, socket, settings.timeout)?;
        let mut bells = vec![Unshared::copy(contacts.bell())?];
        match below.as_ref().map(Client::descriptor) {
            None => {}
            Some(Some(below)) => bells.push(Unshared::copy(below)?),
            Some(None) => bells.clear(),
        }
        let traffic = below.map(Traffic::new);
        let state = Mutex::new(State { contacts, traffic });
        let generation = children::generation();
        Ok(Arc::new(Self { state, bells, timeout: settings.timeout, generation }))
    }

    /// Whether this process opened it. A child that was forked has none of the connections, and the
    /// descriptors of a provider below are its parent's.
    pub(super) fn is_ours(&self) -> bool {
        self.generation == children::generation()
    }

    /// The number of whoever is at an address, to whom `secret` is proved unless the job has one.
    ///
    /// # Errors
    /// `EAGAIN` as long as it has not said who it is; why it cannot be reached, once.
    pub(crate) fn meet(
        &self,
        address: SocketAddrV4,
        secret: Option<Secret>,
    ) -> Result<(u16, Identity), Errno> {
        if !self.is_ours() {
            return Err(Errno::EOPBADSTATE);
        }
        let mut state = self.state.lock();
        state.progress();
        state.contacts.meet(address, secret)
    }

    /// Who sends here under a number, and the address there.
    pub(crate) fn listed(&self, number: u32) -> Option<(Identity, SocketAddrV4)> {
        let state = self.state.lock();
        let contact = state.contacts.get(number.checked_sub(FAR)? as usize)?;
        Some((contact.who?, contact.address))
    }

    /// What becomes readable when something happens, once it was armed; nothing where the provider
    /// below has no such thing, so that it must be asked again and again.
    pub fn bells(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.bells.iter().map(|bell| bell.as_fd())
    }

    /// Whether there are bells.
    #[must_use]
    pub fn rings(&self) -> bool {
        !self.bells.is_empty()
    }

    /// From here on the bells become readable. False if something has come, or if there are none.
    pub(crate) fn arm(&self) -> bool {
        if !self.is_ours() {
            return false;
        }
        let mut state = self.state.lock();
        // What was readable before and is not read stays so.
        state.progress();
        !state.has_some() && state.traffic.as_mut().is_none_or(|traffic| traffic.below.arm())
    }

    /// Sees to connections, as is to be done now and then.
    pub(crate) fn look_around(&self) {
        if !self.is_ours() {
            return;
        }
        let mut state = self.state.lock();
        state.progress();
        let has_read = !state.has_some();
        state.contacts.look_around(has_read);
    }

    /// After which time a peer is given up that does not answer; zero: never.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Makes progress; what comes stays until it is taken.
    #[cfg(any(test, feature = "testing"))]
    pub fn progress(&self) {
        self.state.lock().progress();
    }

    /// Takes what has come, and does nothing with it.
    #[cfg(any(test, feature = "testing"))]
    pub fn ignore_all(&self) {
        let mut state = self.state.lock();
        state.progress();
        while let Some((connection, number, _)) = state.contacts.take() {
            state.contacts.connections.done(connection);
            state.contacts.saw(number);
        }
        let Some(traffic) = &mut state.traffic else { return };
        while let Some(parcel) = traffic.next() {
            traffic.done(parcel);
        }
    }

    /// Whether whoever is at an address has said who it is.
    ///
    /// # Errors
    /// Why it does not.
    #[cfg(any(test, feature = "testing"))]
    pub fn has_met(&self, address: SocketAddrV4) -> Result<bool, Errno> {
        match self.meet(address, None) {
            Err(Errno::EAGAIN) => Ok(false),
            met => met.map(|_| true),
        }
    }

    /// Sends any words and any payload to whoever is at an address, in a head that is changed; whether
    /// there was room. No number is this one's.
    #[cfg(any(test, feature = "testing"))]
    pub fn push_words(
        &self,
        address: SocketAddrV4,
        mut words: [u64; 5],
        payload: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> bool {
        let State { contacts, traffic } = &mut *self.state.lock();
        let Some((number, contact)) = contacts.at(address) else { return true };
        if words[0] >> 16 & 0xffff == 0 {
            words[0] |= u64::from(contact.number) << 16;
        }
        let head = frame::Head {
            token: contact.token,
            sum: frame::Head::sum_of(&words, payload),
            check: 0,
            before: contact.sent as u32,
            words,
        };
        let mut bytes = head.to_bytes();
        change(&mut bytes);
        let Some(traffic) = traffic else {
            let front = [&front_of(payload.len())[..], &bytes, payload].concat();
            return contacts.send(number, &front, &[]);
        };
        let fill = |to: &mut [u8]| {
            to[..frame::HEAD].copy_from_slice(&bytes);
            to[frame::HEAD..][..payload.len()].copy_from_slice(payload);
            frame::HEAD + payload.len()
        };
        traffic.send(contacts, number, fill, None)
    }

    /// Tells peers that nothing more is sent to them.
    pub(crate) fn say_bye(&self) {
        if self.is_ours() {
            self.state.lock().contacts.say_bye();
        }
    }

    /// Whether the provider below has not sent all, or peers to whom Bye was said have not seen all.
    pub(crate) fn is_lent(&self) -> bool {
        if !self.is_ours() {
            return false;
        }
        let mut state = self.state.lock();
        state.progress();
        let State { contacts, traffic } = &*state;
        let has_staged = traffic.as_ref().is_some_and(|traffic| traffic.below.staged() > 0);
        has_staged || contacts.connections.is_lent() || contacts.awaits_seen()
    }

    /// See [`super::link::Link::liveness`].
    pub(super) fn liveness(&self, number: u16, who: Identity) -> Liveness {
        if !self.is_ours() {
            return Liveness::Dead;
        }
        let mut state = self.state.lock();
        if let State { contacts, traffic: Some(traffic) } = &mut *state {
            traffic.read(contacts);
        }
        let has_read = !state.has_some();
        state.contacts.liveness(number, who, has_read)
    }
}
