// SPDX-License-Identifier: BSD-2-Clause
//! The endpoint at each address: one at a time is known there.
//!
//! Matching compares addresses (*peer numbers*), because receives name addresses. All other state
//! belongs to one endpoint: a link, a number in the list of senders, operations in progress, and
//! long messages that wait in its memory. Its identity distinguishes the endpoint from earlier ones
//! at its address.
//!
//! ```text
//! send, no endpoint known        open the current endpoint
//! send, endpoint is gone         handle what it sent, forget it, open the current endpoint
//! a new endpoint sends           open only this one; the earlier endpoint at that address is gone, and
//!                                its slots come before this one in the ring: forget it first
//! ```
//!
//! So the next endpoint at an address never receives what an earlier one sent, held or was owed.
//! Unexpected messages outlive their sender here. They contain its epoch ([`Engine::epoch`]).
//!
//! Each context of a scalable endpoint has its own port and is a separate peer, which gets the
//! answers to what it sends. For matching, the sender is the peer at the port of context 0, which
//! is the address that receives name.
//!
//! If descriptors or memory are short, peers cannot be opened. Sends then return `FI_EAGAIN`, and a
//! slot stays in the ring until its sender can be opened. Nothing is lost.

use std::{
    net::SocketAddrV4,
    sync::atomic::{AtomicBool, Ordering},
};

use ffi::{Errno, Result};

use channel::{
    address::unpack, contract::is_short, identity::Identity, net::secret::Secret, peer::Peer,
    wire::Header,
};

use crate::{
    address, diagnosis,
    engine::{
        Engine,
        state::{CONTEXT, UNKNOWN},
    },
};

/// The reason why the sender of a slot is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// The number is not in the list.
    Unlisted,
    /// The sender cannot be opened now.
    Short,
}

/// Logs, once, what is short.
#[cold]
fn say_short(errno: Errno) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        tracing::error!(
            "peers cannot be opened ({}): their messages wait until they can; raise ulimit \
             -n, vm.max_map_count or the room in {}, whichever is short",
            std::io::Error::from_raw_os_error(errno.get()),
            host::directory::SHM
        );
    }
}

/// The sender of a slot whose source is known.
#[inline]
pub(crate) fn sender(sources: &[u32], header: &Header) -> u32 {
    sources.get(header.peer as usize).map_or(UNKNOWN, |peer| peer & !CONTEXT)
}

/// The epoch of a peer number, which distinguishes the endpoints that follow each other at its
/// address.
#[inline]
pub(crate) fn epoch(epochs: &[u32], peer: u32) -> u32 {
    epochs.get(peer as usize).copied().unwrap_or(0)
}

impl Engine {
    /// Returns whether there is a link to a peer.
    #[inline]
    pub(crate) fn is_linked(&self, peer: u32) -> bool {
        matches!(self.links.get(peer as usize), Some(Some(_)))
    }

    /// The link to a peer.
    ///
    /// # Errors
    /// `ECONNABORTED` if there is no link: the peer is gone.
    #[inline]
    pub(crate) fn link(&mut self, peer: u32) -> Result<&mut Peer> {
        match self.links.get_mut(peer as usize) {
            Some(Some(link)) => Ok(link),
            _ => Err(Errno::ECONNABORTED),
        }
    }

    /// Returns whether a peer is reached over the network.
    #[inline]
    pub(crate) fn is_net(&self, peer: u32) -> bool {
        matches!(self.links.get(peer as usize), Some(Some(link)) if link.is_net())
    }

    /// See [`epoch`].
    #[inline]
    pub(crate) fn epoch(&self, peer: u32) -> u32 {
        epoch(&self.epochs, peer)
    }

    /// Opens a link to the endpoint at a peer's address, unless it exists, for a new operation.
    #[inline]
    pub(crate) fn link_to(&mut self, peer: u32) -> Result<()> {
        if self.is_open(peer) && (!self.has_unnamed || self.is_verified(peer)) {
            return Ok(());
        }
        self.meet(peer)
    }

    /// The identity of the endpoint that is known at a peer's address.
    pub(crate) fn who_is_at(&self, peer: u32) -> Option<Identity> {
        let link = self.links.get(peer as usize).and_then(Option::as_deref);
        let number = self.numbers.get(peer as usize).copied().flatten();
        link.map(Peer::identity).or(number.map(|(_, who)| who))
    }

    /// Returns whether there is a link to a peer that has not closed.
    #[inline]
    fn is_open(&self, peer: u32) -> bool {
        matches!(self.links.get(peer as usize), Some(Some(link)) if link.is_open())
    }

    #[cold]
    fn meet(&mut self, peer: u32) -> Result<()> {
        let address = self.domain.peers.address(peer);
        let is_far = self.is_far(address);
        if is_far && !self.home.has_net() {
            tracing::warn!("{address} is on another host, and FI_TCAM_NET says of no network");
            return Err(Errno::ENETUNREACH);
        }
        // Messages of an earlier endpoint are handled before the new one is opened.
        let parted = match self.who_is_at(peer) {
            Some(gone) => self.part(peer, gone),
            None => self.has_received_all(),
        };
        if !parted {
            return Err(Errno::EAGAIN);
        }
        if self.is_linked(peer) {
            // A new endpoint has sent already, and may have closed since.
            return if self.is_open(peer) { Ok(()) } else { Err(Errno::EAGAIN) };
        }
        let opened = if is_far {
            self.home.open_far(address, self.secret_of(peer))
        } else {
            self.home.open(address.port())
        };
        match opened {
            Ok(link) => {
                self.take_link(peer, link);
                Ok(())
            }
            Err(Errno::ECONNREFUSED) if !is_far => {
                diagnosis::explain(address.port());
                Err(Errno::ECONNREFUSED)
            }
            // If memory for a mapping is short, it may stay short (mlockall).
            Err(Errno::ENOMEM) => Err(Errno::ENOMEM),
            Err(errno) if is_short(errno) => {
                say_short(errno);
                Err(Errno::EAGAIN)
            }
            Err(errno) => {
                if errno != Errno::EAGAIN {
                    tracing::warn!("{address} cannot be reached: {errno}");
                }
                Err(errno)
            }
        }
    }

    /// The secret in the name of a peer.
    fn secret_of(&self, peer: u32) -> Option<Secret> {
        let secret = self.domain.peers.secret(peer);
        (secret != 0).then(|| Secret::of_endpoint(secret))
    }

    /// Returns whether an endpoint is reached over the network: it is on another host, or its
    /// segment is not visible here.
    pub(crate) fn is_far(&self, address: SocketAddrV4) -> bool {
        let is_local = address::is_local(*address.ip());
        !is_local || self.home.has_net() && !self.home.is_there(address.port())
    }

    fn take_link(&mut self, peer: u32, link: Peer) {
        let index = peer as usize;
        if self.links.len() <= index {
            self.links.resize_with(index + 1, || None);
        }
        self.home.connect(peer, &link);
        self.links[index] = Some(Box::new(link));
        self.linked.push(peer);
        self.domain.peers.saw(peer);
    }

    /// Drops the link to a peer, and its number in the list of senders.
    pub(crate) fn drop_link(&mut self, peer: u32) {
        let index = peer as usize;
        if let Some(link) = self.links.get_mut(index)
            && link.take().is_some()
            && let Some(at) = self.linked.iter().position(|&other| other == peer)
        {
            self.linked.swap_remove(at);
            self.device.unwatch(peer);
        }
        if let Some(Some((number, who))) = self.numbers.get_mut(index).map(Option::take) {
            self.sources[number as usize] = UNKNOWN;
            self.home.strike(number, who);
        }
        if self.epochs.len() <= index {
            self.epochs.resize(index + 1, 0);
        }
        self.epochs[index] = self.epochs[index].wrapping_add(1);
    }

    /// The source of a slot, as receives name it.
    #[inline]
    pub(crate) fn source_of(&mut self, header: &Header) -> std::result::Result<u32, Unknown> {
        match self.sources.get(header.peer as usize) {
            Some(&peer) if peer < CONTEXT => Ok(peer),
            _ => self.learn_source(header.peer),
        }
    }

    /// The sender of a slot whose source is known. It gets the answers.
    #[inline]
    pub(crate) fn sender_of(&self, header: &Header) -> u32 {
        sender(&self.sources, header)
    }

    #[cold]
    fn learn_source(&mut self, number: u32) -> std::result::Result<u32, Unknown> {
        let index = number as usize;
        if self.sources.get(index).is_some_and(|&peer| peer != UNKNOWN) {
            return Ok(self.endpoints[index]);
        }
        let (who, address) = self.home.listed(number).ok_or(Unknown::Unlisted)?;
        let peer = match address {
            None => self.peer_at(who.port()),
            Some(address) => self.domain.peers.number(address),
        };
        let source = self.source_at(who, address);
        if address.is_some() && !self.may_be_at(number, who, peer, source) {
            self.home.disown(number);
            return Err(Unknown::Unlisted);
        }
        if self.who_is_at(peer) != Some(who) {
            let opened = self.home.open_sender(number, who);
            if let Err(errno) = opened
                && is_short(errno)
            {
                say_short(errno);
                return Err(Unknown::Short);
            }
            if opened.is_err() && self.is_open(peer) {
                // Earlier endpoints were opened before: the list of senders was overwritten.
                return Err(Unknown::Unlisted);
            }
            if self.who_is_at(peer).is_some() {
                self.forget(peer);
            }
            match opened {
                Ok(link) => self.take_link(peer, link),
                Err(errno) => {
                    tracing::debug!(
                        "port {}: gone before its messages were read: {errno}",
                        who.port()
                    );
                    self.domain.peers.saw(peer);
                    self.passing.push((peer, who));
                }
            }
        }
        if self.sources.len() <= index {
            self.sources.resize(index + 1, UNKNOWN);
        }
        let context = who.context() != 0;
        self.sources[index] = if context { CONTEXT + peer } else { peer };
        if self.numbers.len() <= peer as usize {
            self.numbers.resize(peer as usize + 1, None);
        }
        if let Some((old, _)) = self.numbers[peer as usize].replace((number, who))
            && old != number
        {
            self.sources[old as usize] = UNKNOWN;
        }
        if !context {
            return Ok(peer);
        }
        if self.endpoints.len() <= index {
            self.endpoints.resize(index + 1, UNKNOWN);
        }
        self.endpoints[index] = source;
        Ok(source)
    }

    /// The peer that receives name to receive from a sender. The sender may be one of its contexts.
    fn source_at(&self, who: Identity, address: Option<SocketAddrV4>) -> u32 {
        match address {
            None => self.peer_at(who.endpoint_port()),
            Some(mut address) => {
                address.set_port(who.endpoint_port());
                self.domain.peers.number(address)
            }
        }
    }

    /// Returns whether a peer is the one that it claims to be; see
    /// [`channel::tx::Tx::is_at_its_address`].
    pub(crate) fn is_verified(&self, peer: u32) -> bool {
        let Some(&Some((number, _))) = self.numbers.get(peer as usize) else { return true };
        let is_context = self.sources.get(number as usize).is_some_and(|&of| of == CONTEXT + peer);
        let source = if is_context { self.endpoints[number as usize] } else { peer };
        self.knows_secrets(number, peer, source)
    }

    /// Returns whether a sender over the network knows the secrets in the names at its address and,
    /// if it claims to be a context, at that of its endpoint. Names that were not inserted are not
    /// checked.
    fn knows_secrets(&self, number: u32, peer: u32, source: u32) -> bool {
        let knows = |of: u32| self.home.is_at_its_address(number, || self.secret_of(of));
        knows(peer) && (source == peer || knows(source))
    }

    /// Returns whether a sender over the network may be at the address that it claims.
    fn may_be_at(&mut self, number: u32, who: Identity, peer: u32, source: u32) -> bool {
        // An endpoint of this host sends over shared memory.
        let is_far = self.is_far(self.domain.peers.address(peer));
        if !is_far || !self.knows_secrets(number, peer, source) {
            return false;
        }
        let is_certain = self.home.is_vouched_for(number);
        self.has_unnamed |= !is_certain;
        // An endpoint that is connected keeps the address until its connection ends.
        is_certain || !self.is_open(peer) || self.who_is_at(peer) == Some(who)
    }

    /// The peer at a port of this host.
    fn peer_at(&self, port: u16) -> u32 {
        let mut address = unpack(self.address);
        address.set_port(port);
        self.domain.peers.number(address)
    }

    /// Frees numbers of senders in the list that are gone without having sent a message.
    pub(crate) fn strike_silent(&mut self, most: usize) {
        let page = self.next_page % self.home.list_parts();
        self.next_page = page + 1;
        let unknown = |sources: &[u32], number: u32| {
            sources.get(number as usize).is_none_or(|&peer| peer == UNKNOWN)
        };
        let silent = self.home.listed_in(page).into_iter();
        let silent = silent.filter(|&(number, _)| unknown(&self.sources, number));
        let gone = |&(_, who): &(u32, Identity)| {
            let opened = self.home.open_only(who);
            opened.err().is_some_and(|errno| !is_short(errno))
        };
        let gone: Vec<_> = silent.take(most).filter(gone).collect();
        // Messages that they sent before may still be in the ring.
        if !gone.is_empty() && self.has_received_all() {
            for (number, who) in gone.into_iter().filter(|&(n, _)| unknown(&self.sources, n)) {
                self.home.strike(number, who);
            }
        }
    }
}
