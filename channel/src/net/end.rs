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
use host::children::Unshared;
use parking_lot::Mutex;

use super::{
    contacts::{Contacts, Own},
    frame,
    traffic::{STAGING, Share, Traffic},
};
use crate::{identity::Identity, shm::segment::Liveness, wire::FAR};

/// How the network is to be used.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What both ends of a job know (`FI_TCAM_JOB_KEY`).
    pub key: u64,
    /// After which time a host is gone that does not answer; zero: never.
    pub timeout: Duration,
}

/// An endpoint's end of the network.
#[derive(Debug)]
pub struct Net {
    pub(super) state: Mutex<State>,
    /// Copies of the descriptors of the provider below and of the connections.
    bells: Option<[Unshared; 2]>,
    timeout: Duration,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) contacts: Contacts,
    pub(super) traffic: Traffic,
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
    /// The end of an endpoint of this address, which holds its port with a socket.
    ///
    /// # Errors
    /// The socket does not listen, or there are no descriptors left.
    pub fn new(
        below: Client,
        settings: &Settings,
        socket: OwnedFd,
        who: Identity,
        address: SocketAddrV4,
    ) -> Result<Arc<Self>, Errno> {
        let own = Own {
            key: settings.key,
            who,
            address,
            provider: below.provider().to_owned(),
            name: below.name().to_vec(),
        };
        let contacts = Contacts::new(own, socket, settings.timeout)?;
        let bells = match below.descriptor() {
            Some(below) => Some([Unshared::copy(below)?, Unshared::copy(contacts.bell())?]),
            None => None,
        };
        let traffic = Traffic::new(below);
        let state = Mutex::new(State { contacts, traffic });
        Ok(Arc::new(Self { state, bells, timeout: settings.timeout }))
    }

    /// The number of whoever is at an address.
    ///
    /// # Errors
    /// `EAGAIN` as long as it has not said who it is; why it cannot be reached, once.
    pub(crate) fn meet(&self, address: SocketAddrV4) -> Result<(u16, Identity), Errno> {
        let State { contacts, traffic } = &mut *self.state.lock();
        contacts.tend(&mut traffic.below);
        contacts.meet(address)
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
        self.bells.iter().flatten().map(|bell| bell.as_fd())
    }

    /// Whether there are bells.
    #[must_use]
    pub fn rings(&self) -> bool {
        self.bells.is_some()
    }

    /// From here on the bells become readable. False if something has come, or if there are none.
    pub(crate) fn arm(&self) -> bool {
        let State { contacts, traffic } = &mut *self.state.lock();
        // What was readable before and is not read stays so.
        contacts.tend(&mut traffic.below);
        traffic.read(contacts);
        !traffic.has_some() && traffic.below.arm()
    }

    /// Sees to connections, as is to be done now and then.
    pub(crate) fn look_around(&self) {
        let State { contacts, traffic } = &mut *self.state.lock();
        contacts.tend(&mut traffic.below);
        traffic.read(contacts);
        contacts.look_around(!traffic.has_some());
    }

    /// After which time a peer is given up that does not answer; zero: never.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Makes progress; what comes stays until it is taken.
    #[cfg(any(test, feature = "testing"))]
    pub fn progress(&self) {
        let State { contacts, traffic } = &mut *self.state.lock();
        contacts.tend(&mut traffic.below);
        traffic.read(contacts);
    }

    /// Takes what has come, and does nothing with it.
    #[cfg(any(test, feature = "testing"))]
    pub fn ignore_all(&self) {
        self.progress();
        let traffic = &mut self.state.lock().traffic;
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
        match self.meet(address) {
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
        let fill = |to: &mut [u8]| {
            to[..frame::HEAD].copy_from_slice(&head.to_bytes());
            to[frame::HEAD..][..payload.len()].copy_from_slice(payload);
            change(&mut to[..frame::HEAD]);
            frame::HEAD + payload.len()
        };
        traffic.send(contacts, number, fill, None)
    }

    /// Tells peers that nothing more is sent to them.
    pub(crate) fn say_bye(&self) {
        self.state.lock().contacts.say_bye();
    }

    /// Whether the provider below has not sent all, or peers to whom Bye was said have not seen all.
    pub(crate) fn is_lent(&self) -> bool {
        let State { contacts, traffic } = &mut *self.state.lock();
        contacts.tend(&mut traffic.below);
        traffic.read(contacts);
        traffic.below.staged() > 0 || contacts.awaits_seen()
    }

    /// See [`super::link::Link::liveness`].
    pub(super) fn liveness(&self, number: u16, who: Identity) -> Liveness {
        let State { contacts, traffic } = &mut *self.state.lock();
        traffic.read(contacts);
        contacts.liveness(number, who, !traffic.has_some())
    }
}
