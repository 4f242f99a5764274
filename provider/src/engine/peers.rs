// SPDX-License-Identifier: BSD-2-Clause
//! The peers of an endpoint: links to them, the numbers under which they send, and the answers that
//! wait for room at them. A *link* is this endpoint's [`Peer`] for the endpoint at an address. One
//! endpoint at a time is known at each address.
//!
//! Matching compares addresses (*peer numbers*), because receives name addresses. All other state
//! belongs to one endpoint: its link, its number in the list of senders
//! (`channel/src/shm/senders.rs`), operations in progress, and long messages that wait in its
//! memory. Its identity distinguishes the endpoint from earlier ones at its address.
//!
//! ```text
//! send, no endpoint known        open the current endpoint
//! send, known endpoint is gone   handle its slots, forget it, open the current endpoint
//! a new endpoint sends           forget the earlier endpoint at its address, which is gone and
//!                                whose slots were all handled; open exactly the new endpoint
//! ```
//!
//! So no endpoint gets messages or answers for an earlier endpoint at its address, or buffers that
//! the earlier one held. Unexpected messages stay here after their sender is gone. They contain the
//! epoch of the sender ([`Peers::epoch`]).
//!
//! Each context of a scalable endpoint has its own port and is a separate peer, which gets the
//! answers to what it sends. For matching, the sender is the peer at the port of context 0, because
//! receives name that address.
//!
//! If descriptors, memory or room in `/dev/shm` are short, peers cannot be opened. A send then
//! returns `FI_EAGAIN`, or `FI_ENOMEM` if the peer's segment cannot be mapped. A slot stays in the
//! ring until its sender can be opened. Nothing is lost.

use std::{
    collections::HashSet,
    net::SocketAddrV4,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use channel::{
    address::unpack,
    contract::{Liveness, Payload, Sent, is_short},
    identity::Identity,
    net::secret::{Claim, Secret},
    peer::Peer,
    shm::segment::Segment,
    tx::Tx,
    wire::{Header, Kind},
};
use ffi::{Errno, Result, flags};
use host::owner::Look;
use matching::Source;
use nic::report::{ChannelCounters, Report};

use super::{
    claims::{Claims, Unnamed},
    deferred::DeferredAnswers,
};
use crate::{address, av::AddressVector, diagnosis, peer_numbers::PeerNumbers, regions::Target};

/// Added to the peer number of a sender that is a context of a scalable endpoint, but not context
/// 0.
const CONTEXT: u32 = 1 << 31;
/// Stands for the peer number of a sender that is not known.
const UNKNOWN: u32 = u32::MAX;

/// The reason why the sender of a slot is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The number is not in the list of senders, or its sender is not the endpoint that it claims
    /// to be.
    Unlisted,
    /// The sender cannot be opened now, because descriptors or memory are short.
    Short,
}

/// A sender in the list of senders, or on the network, of which no slot was handled yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewSender {
    number: u32,
    pub(super) who: Identity,
    pub(super) peer: u32,
    /// The peer that receives name if they are to match messages of this sender.
    source: u32,
    /// The claim of a sender whose name was not inserted, so that it cannot be checked yet.
    claim: Option<Claim>,
}

/// Messages and bytes by channel.
#[derive(Debug, Default)]
pub(super) struct Channels {
    /// Messages in slots and buffers, except those that the tx fast path sent, which
    /// [`Peers::report`] adds. Messages that were sent whole over the network are included; [`Tx`]
    /// counts these as well, and [`Peers::report`] subtracts them.
    pub(super) shm: ChannelCounters,
    /// Messages over the network, except those that were sent whole; [`Peers::report`] adds these.
    pub(super) net: ChannelCounters,
    kernel_copy: ChannelCounters,
    copy_pipeline: ChannelCounters,
    /// Reads, writes and atomic operations on memory, over any channel.
    pub(super) rma: ChannelCounters,
}

impl Channels {
    /// Moves the counts of messages that were received since `before` from `shm` to `net`.
    pub(super) fn move_to_net(&mut self, before: ChannelCounters) {
        let Self { shm, net, .. } = self;
        net.received += shm.received - before.received;
        net.received_bytes += shm.received_bytes - before.received_bytes;
        (shm.received, shm.received_bytes) = (before.received, before.received_bytes);
    }
}

/// Logs why peers cannot be opened. Only the first call in the process logs.
#[cold]
fn log_shortage(errno: Errno) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        tracing::error!(
            "cannot connect to a peer ({}): its messages wait until this is possible. Raise the \
             limit that was reached: ulimit -n, vm.max_map_count or the size of {}",
            std::io::Error::from_raw_os_error(errno.get()),
            host::directory::SHM
        );
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Peers {
    /// The address vector, which maps `fi_addr_t` to peer numbers.
    pub(crate) av: Option<Arc<AddressVector>>,
    /// Whether completions name the source (`FI_SOURCE`).
    names_sources: bool,
    /// The addresses of all peers of the domain.
    addresses: Arc<PeerNumbers>,
    /// The address under which peers list the endpoint.
    address: u64,
    /// The endpoint's segment in shared memory: identity, doorbell, counters.
    own: Arc<Segment>,
    /// Opens peers and sends to them, over any transport.
    pub(crate) transports: Tx,
    /// By peer number: the link to the endpoint at the peer's address. `None` while the link is
    /// [taken](Peers::take).
    links: Vec<Option<Box<Peer>>>,
    /// The peers that have links.
    linked: Vec<u32>,
    /// By peer number: how many earlier endpoints at its address are gone.
    epochs: Vec<u32>,
    /// By a sender's number in the segment's list or, from [`FAR`](channel::wire::FAR) on, on the
    /// network: its peer number, [`CONTEXT`] + peer number, or [`UNKNOWN`].
    sources: Vec<u32>,
    /// By the same number, for a sender with [`CONTEXT`]: the peer that receives name, which is
    /// context 0.
    context_sources: Vec<u32>,
    /// By peer number: the number and the identity under which the endpoint at the peer's address
    /// sends, if it has sent.
    numbers: Vec<Option<(u32, Identity)>>,
    /// Senders that were gone before they could be opened, until their slots are handled.
    unopened: Vec<(u32, Identity)>,
    /// Number of pages of the list of senders that were checked, over all rounds.
    pages_checked: usize,
    /// Claims of senders over the network that could not yet be checked when they were first seen.
    claims: Claims,
    /// Answers that wait for room at their peers.
    deferred: DeferredAnswers,
    /// Whether the last transmit returned `EAGAIN`, and no room was found since. No message
    /// announces free room; see [`Self::look_for_room`].
    pub(crate) wants_room: bool,
    pub(super) channels: Channels,
}

impl Peers {
    pub(super) fn new(
        addresses: &Arc<PeerNumbers>,
        address: u64,
        own: &Arc<Segment>,
        transports: Tx,
        names_sources: bool,
    ) -> Self {
        Self {
            av: None,
            names_sources,
            addresses: Arc::clone(addresses),
            address,
            own: Arc::clone(own),
            transports,
            links: Vec::new(),
            linked: Vec::new(),
            epochs: Vec::new(),
            sources: Vec::new(),
            context_sources: Vec::new(),
            numbers: Vec::new(),
            unopened: Vec::new(),
            pages_checked: 0,
            claims: Claims::default(),
            deferred: DeferredAnswers::default(),
            wants_room: false,
            channels: Channels::default(),
        }
    }

    /// The endpoint's own segment.
    pub(super) fn own(&self) -> &Arc<Segment> {
        &self.own
    }

    /// The address under which peers list the endpoint.
    #[cfg(test)]
    pub(crate) fn own_address(&self) -> u64 {
        self.address
    }

    /// The address of a peer.
    pub(super) fn address_of(&self, peer: u32) -> SocketAddrV4 {
        self.addresses.address(peer)
    }

    /// Returns the `fi_addr_t` of a peer for completions; `FI_ADDR_UNSPEC` if the application did
    /// not request sources.
    #[inline]
    pub(super) fn source_address(&self, peer: u32) -> u64 {
        match &self.av {
            Some(av) if self.names_sources => av.address_of(peer),
            _ => flags::ADDR_UNSPEC,
        }
    }

    /// Returns the peer at a destination, which is an `fi_addr_t`.
    ///
    /// # Errors
    /// `ENOAV` without an address vector, `EINVAL` for an address that is not in it.
    #[inline]
    pub(super) fn peer_at(&self, destination: u64) -> Result<u32> {
        let av = self.av.as_ref().ok_or(Errno::ENOAV)?;
        match av.peer(destination) {
            Some(peer) => Ok(peer),
            None => self.at_context(destination),
        }
    }

    /// Returns the peer of an address that names a context of a scalable endpoint.
    ///
    /// # Errors
    /// `EINVAL` if the address names none.
    #[cold]
    fn at_context(&self, destination: u64) -> Result<u32> {
        let peer = self.av.as_ref().and_then(|av| av.peer_of_context(destination));
        peer.ok_or(Errno::EINVAL)
    }

    /// Returns the source for matching of a receive that names an address.
    ///
    /// # Errors
    /// `EINVAL` without an address vector, or for an address that is not in it.
    #[inline(always)]
    pub(crate) fn source_at(&self, address: u64) -> Result<Source> {
        let peer = self.av.as_ref().and_then(|av| av.source(address));
        peer.map(Source::new).ok_or(Errno::EINVAL)
    }
}

/// Links.
impl Peers {
    /// Returns whether there is a link to a peer.
    #[inline]
    pub(crate) fn is_linked(&self, peer: u32) -> bool {
        self.get(peer).is_some()
    }

    /// Returns the link to a peer; `None` if it does not exist, or while it is [taken](Self::take).
    #[inline]
    pub(super) fn get(&self, peer: u32) -> Option<&Peer> {
        self.links.get(peer as usize).and_then(Option::as_deref)
    }

    /// Returns the link to a peer, for use that changes it.
    ///
    /// # Errors
    /// `ECONNABORTED` if there is no link, because the peer is gone.
    #[inline]
    pub(super) fn link(&mut self, peer: u32) -> Result<&mut Peer> {
        match self.links.get_mut(peer as usize) {
            Some(Some(link)) => Ok(link),
            _ => Err(Errno::ECONNABORTED),
        }
    }

    /// Takes the link to a peer out of the table until [`Self::put_back`], so that a payload can be
    /// borrowed from it while the peers are used. Returns `None` if there is no link.
    #[inline]
    pub(super) fn take(&mut self, peer: u32) -> Option<Box<Peer>> {
        self.links.get_mut(peer as usize)?.take()
    }

    #[inline]
    pub(super) fn put_back(&mut self, peer: u32, link: Box<Peer>) {
        self.links[peer as usize] = Some(link);
    }

    /// Returns whether the link to a peer is over the network; false without a link.
    #[inline]
    pub(super) fn uses_net(&self, peer: u32) -> bool {
        self.get(peer).is_some_and(Peer::is_net)
    }

    /// Returns whether there is an open link to a peer. The link of a peer that died on this host
    /// stays open until the death is detected.
    #[inline]
    pub(super) fn is_open(&self, peer: u32) -> bool {
        self.get(peer).is_some_and(Peer::is_open)
    }

    /// Returns whether operations to a peer may start at once. This is so if its link is open, and
    /// it is not known to claim a wrong address. A peer that claims one is disconnected.
    #[inline]
    pub(super) fn is_ready(&self, peer: u32) -> bool {
        self.is_open(peer) && (self.claims.is_empty() || self.check_claim(peer))
    }

    /// Returns the epoch of a peer: how many earlier endpoints at its address are gone.
    #[inline]
    pub(super) fn epoch(&self, peer: u32) -> u32 {
        self.epochs.get(peer as usize).copied().unwrap_or(0)
    }

    /// Returns the identity of the endpoint that is known at a peer's address; `None` if none is
    /// known.
    pub(super) fn who_is_at(&self, peer: u32) -> Option<Identity> {
        let number = self.numbers.get(peer as usize).copied().flatten();
        self.get(peer).map(Peer::identity).or(number.map(|(_, who)| who))
    }

    /// Returns whether an address is reached over the network. This is so if it is on another host
    /// or, on an endpoint with a network, if this user has no segment for its port on this host.
    fn needs_net_at(&self, address: SocketAddrV4) -> bool {
        let is_local = address::is_local(*address.ip());
        !is_local || self.transports.has_net() && !self.transports.has_segment(address.port())
    }

    /// Returns whether a peer is to be reached over the network, with or without a link. See
    /// [`Self::needs_net_at`].
    pub(super) fn needs_net(&self, peer: u32) -> bool {
        self.needs_net_at(self.address_of(peer))
    }

    /// Returns whether an endpoint may be at a peer's address. This is so if there is a segment for
    /// its port on this host, or if the address is reached over the network, where only opening a
    /// link shows it.
    pub(super) fn is_there(&self, peer: u32) -> bool {
        self.needs_net(peer) || self.transports.has_segment(self.address_of(peer).port())
    }

    /// Checks that this endpoint has a transport to a peer.
    ///
    /// # Errors
    /// `ENETUNREACH` if it is on another host, and there is no network.
    pub(super) fn check_route(&self, peer: u32) -> Result<()> {
        if self.needs_net(peer) && !self.transports.has_net() {
            let address = self.address_of(peer);
            tracing::warn!(
                "{address} is on another host, and the network is off: set FI_TCAM_NET=tcp"
            );
            return Err(Errno::ENETUNREACH);
        }
        Ok(())
    }

    /// Opens a link to the endpoint at a peer's address.
    ///
    /// # Errors
    /// `EAGAIN` if descriptors or room in `/dev/shm` are short, or until the handshake over the
    /// network is complete; `ENOMEM` if memory is short; otherwise those of [`Tx::open`] and
    /// [`Tx::open_far`].
    pub(super) fn open(&mut self, peer: u32) -> Result<()> {
        let address = self.address_of(peer);
        let needs_net = self.needs_net_at(address);
        let opened = if needs_net {
            self.transports.open_far(address, self.secret_of(peer))
        } else {
            self.transports.open(address.port())
        };
        match opened {
            Ok(link) => {
                self.add(peer, link);
                Ok(())
            }
            Err(Errno::ECONNREFUSED) if !needs_net => {
                diagnosis::explain(address.port());
                Err(Errno::ECONNREFUSED)
            }
            // Not turned into `EAGAIN`: if memory for a mapping is short, it may stay short
            // (mlockall).
            Err(Errno::ENOMEM) => Err(Errno::ENOMEM),
            Err(errno) if is_short(errno) => {
                log_shortage(errno);
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

    /// Returns the secret in the name of a peer; `None` if it is not known.
    fn secret_of(&self, peer: u32) -> Option<Secret> {
        let secret = self.addresses.secret(peer);
        (secret != 0).then(|| Secret::of_endpoint(secret))
    }

    fn add(&mut self, peer: u32, link: Peer) {
        let index = peer as usize;
        if self.links.len() <= index {
            self.links.resize_with(index + 1, || None);
        }
        self.transports.connect(peer, &link);
        self.links[index] = Some(Box::new(link));
        self.linked.push(peer);
        self.addresses.saw_open(peer);
    }

    /// Stops sending to a peer that is gone. Drops the pending answers to it, and reclaims the
    /// buffers that it held.
    pub(super) fn disconnect(&mut self, peer: u32) {
        self.deferred.forget(peer);
        self.transports.shm().disconnect(peer);
    }

    /// Returns whether the endpoint that is linked to a peer number is alive, closed or dead;
    /// `None` without a link.
    pub(super) fn liveness(&self, peer: u32) -> Option<Liveness> {
        self.get(peer).map(|link| link.liveness(Look::Briefly))
    }

    /// Forgets the endpoint at a peer's address: drops the link to it, frees its number in the list
    /// of senders, and begins the next epoch. Returns whether there was a link.
    pub(super) fn drop_link(&mut self, peer: u32) -> bool {
        let index = peer as usize;
        let had_link = self.take(peer).is_some();
        if let Some(at) = self.linked.iter().position(|&other| other == peer) {
            self.linked.swap_remove(at);
        }
        if let Some(Some((number, who))) = self.numbers.get_mut(index).map(Option::take) {
            self.sources[number as usize] = UNKNOWN;
            self.transports.strike(number, who);
        }
        if self.epochs.len() <= index {
            self.epochs.resize(index + 1, 0);
        }
        self.epochs[index] = self.epochs[index].wrapping_add(1);
        had_link
    }

    /// Number of peers with a link.
    pub(super) fn count(&self) -> usize {
        self.linked.len()
    }

    /// Checks the peer at a place in the list of linked peers. Returns the peer, its identity and
    /// whether it is alive, closed or dead; `None` if the list has become shorter.
    pub(super) fn look_at(&self, at: usize, look: Look) -> Option<(u32, Identity, Liveness)> {
        let peer = *self.linked.get(at)?;
        let link = self.get(peer)?;
        Some((peer, link.identity(), link.liveness(look)))
    }

    /// Returns the peers at these places in the list of linked peers whose link is not open: their
    /// segment is closed or marked as dead, or their connection has ended. Unlike
    /// [`Self::look_at`], this does not check the peer's process.
    pub(super) fn closed(&self, places: std::ops::Range<usize>) -> Vec<(u32, Identity)> {
        let closed = |&peer: &u32| {
            let link = self.get(peer)?;
            (!link.is_open()).then(|| (peer, link.identity()))
        };
        self.linked[places].iter().filter_map(closed).collect()
    }

    /// Returns whether a living peer is copying from or to memory of this endpoint. No new copy
    /// begins after this endpoint has closed, or for operations that `Segment::void_before` has
    /// made void.
    pub(super) fn is_any_reaching(&self) -> bool {
        let reaches = |link: &Peer| {
            link.copies_our_memory() && link.liveness(Look::Closely) == Liveness::Alive
        };
        self.links.iter().flatten().any(|link| reaches(link))
    }
}

/// Slots to peers.
impl Peers {
    /// Sends a slot and its payload, if there is room; otherwise returns what is missing.
    ///
    /// # Errors
    /// `ECONNABORTED` if there is no link, because the peer is gone.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        peer: u32,
        header: &Header,
        payload: Payload<'_>,
    ) -> Result<Sent> {
        if let Some(sent) = self.transports.send_shm(peer, header, payload) {
            return Ok(sent);
        }
        match self.links.get_mut(peer as usize) {
            Some(Some(link)) => Ok(self.transports.send(link, header, payload)),
            _ => Err(Errno::ECONNABORTED),
        }
    }

    /// Sets the checksum of the next message to a peer.
    #[cold]
    pub(super) fn set_check(&mut self, peer: u32, check: u32) {
        if let Some(Some(link)) = self.links.get_mut(peer as usize) {
            self.transports.set_check(peer, link, check);
        }
    }

    /// Sends an answer about `op` to a peer, now or when there is room. `op` is an operation of the
    /// peer or, for [`Kind::Dropped`], a transfer of the peer. The meaning of `len` depends on the
    /// kind.
    pub(super) fn answer(&mut self, peer: u32, kind: Kind, op: u64, len: u64) {
        self.reply(peer, Header { len, ..Header::of(kind, op) });
    }

    /// Sends a control message without a payload, now or when there is room.
    #[inline(never)]
    pub(super) fn reply(&mut self, peer: u32, header: Header) {
        self.send_or_keep(peer, header, Payload::Nothing, Box::default);
    }

    /// Sends a control message with these bytes, now or when there is room.
    pub(super) fn reply_bytes(&mut self, peer: u32, header: Header, bytes: &[u8]) {
        self.send_or_keep(peer, header, Payload::Bytes(bytes), || bytes.into());
    }

    /// Sends a control message with the contents of local memory, now or when there is room.
    pub(super) fn reply_memory(&mut self, peer: u32, header: Header, memory: &Target) {
        self.send_or_keep(peer, header, Payload::PartsAndData(&[], memory.buffers()), || {
            let mut bytes = vec![0; header.len as usize];
            for (at, buffer) in memory.placed() {
                buffer.read_to(&mut bytes[at..]);
            }
            bytes.into()
        });
    }

    /// Sends a control message, or keeps it with `bytes` until there is room.
    #[inline]
    fn send_or_keep(
        &mut self,
        peer: u32,
        header: Header,
        payload: Payload<'_>,
        bytes: impl FnOnce() -> Box<[u8]>,
    ) {
        // Answers to a peer that is gone are dropped.
        let waits = self.deferred.has(peer)
            || self.push(peer, &header, payload).is_ok_and(|sent| sent != Sent::Yes);
        if waits {
            self.deferred.push(peer, header, bytes());
        }
    }

    /// Returns whether no answers are pending.
    #[inline]
    pub(crate) fn has_no_pending_answers(&self) -> bool {
        self.deferred.is_empty()
    }

    /// Returns the bytes that the pending answers to a peer need.
    pub(super) fn unanswered(&self, peer: u32) -> usize {
        self.deferred.size(peer)
    }

    /// Tries again to send pending answers. The answers to a peer keep their order, because the
    /// last part of an answer means to the peer that all parts have come.
    pub(super) fn flush(&mut self) {
        let mut deferred = std::mem::take(&mut self.deferred);
        deferred.flush(|peer, header, bytes| {
            // Answers to a peer that is gone are dropped.
            self.push(peer, header, Payload::Bytes(bytes)).unwrap_or(Sent::Yes) == Sent::Yes
        });
        self.deferred = deferred;
    }

    /// Resets [`Self::wants_room`] if every peer has room and a buffer is free.
    pub(super) fn look_for_room(&mut self) {
        if self.wants_room {
            let full = self.links.iter().flatten().any(|link| !link.has_room());
            self.wants_room = full || !self.transports.has_room();
        }
    }
}

/// Counters of the channels.
impl Peers {
    /// Returns the counters of messages to or from a peer that the receiver copies whole out of the
    /// sender's memory.
    pub(super) fn whole_counters(&mut self, peer: u32) -> &mut ChannelCounters {
        let uses_net = self.uses_net(peer);
        if uses_net { &mut self.channels.net } else { &mut self.channels.kernel_copy }
    }

    /// Returns the counters of messages to or from a peer that go in parts.
    pub(super) fn part_counters(&mut self, peer: u32) -> &mut ChannelCounters {
        let uses_net = self.uses_net(peer);
        if uses_net { &mut self.channels.net } else { &mut self.channels.copy_pipeline }
    }

    /// Writes the counters of the channels into a report.
    pub(super) fn report(&self, report: &mut Report) {
        let (mut shm, mut net) = (self.channels.shm, self.channels.net);
        let (fast, fast_bytes) = self.transports.shm().sent_to_open();
        (shm.sent, shm.sent_bytes) = (shm.sent + fast, shm.sent_bytes + fast_bytes);
        let (sent, bytes) = self.transports.sent_far();
        (shm.sent, shm.sent_bytes) = (shm.sent - sent, shm.sent_bytes - bytes);
        (net.sent, net.sent_bytes) = (net.sent + sent, net.sent_bytes + bytes);
        (shm.waited, net.waited) = (self.transports.shm().waited(), self.transports.waited_far());
        let polls = self.transports.schedule.counts();
        (net.polls, net.empty_polls) = (polls.all, polls.empty);
        net.discovery_ns = polls.discovery.as_nanos() as u64;
        let channels = [
            ("shm", Some(shm)),
            ("kernel-copy", Some(self.channels.kernel_copy)),
            ("copy-pipeline", Some(self.channels.copy_pipeline)),
            ("net", self.transports.has_net().then_some(net)),
            ("rma", Some(self.channels.rma)),
        ];
        let used = channels.into_iter().filter_map(|(name, counters)| Some((name, counters?)));
        report.channels = used.map(|(name, counters)| (name.to_owned(), counters)).collect();
    }
}

/// Senders.
impl Peers {
    /// Returns the source of a slot, as receives name it; `None` if its sender is unknown or is
    /// marked with [`CONTEXT`].
    #[inline]
    pub(super) fn source(&self, header: &Header) -> Option<u32> {
        match self.sources.get(header.peer as usize) {
            Some(&peer) if peer < CONTEXT => Some(peer),
            _ => None,
        }
    }

    /// Returns the peer that sent a slot, and that gets the answers. The source must be known.
    #[inline]
    pub(super) fn sender(&self, header: &Header) -> u32 {
        self.sources.get(header.peer as usize).map_or(UNKNOWN, |peer| peer & !CONTEXT)
    }

    /// Returns the source of slots with this sender's number, as receives name it; `None` unless
    /// the sender is a known context.
    pub(super) fn source_of_context(&self, number: u32) -> Option<u32> {
        let index = number as usize;
        self.sources
            .get(index)
            .filter(|&&peer| peer != UNKNOWN)
            .map(|_| self.context_sources[index])
    }

    /// Looks up a sender that is not known yet.
    ///
    /// # Errors
    /// [`Unknown::Unlisted`] if no sender has the number, or if the sender sends over the network
    /// and cannot be at the address that it claims. Such a sender is disconnected.
    pub(super) fn new_sender(&mut self, number: u32) -> std::result::Result<NewSender, Unknown> {
        let (who, address) = self.transports.sender(number).ok_or(Unknown::Unlisted)?;
        let at = |port: u16| {
            let mut address = address.unwrap_or_else(|| unpack(self.address));
            address.set_port(port);
            self.addresses.number(address)
        };
        let peer = at(address.map_or(who.port(), |address| address.port()));
        let source = at(who.endpoint_port());
        // Another thread may insert the name at any moment. So this precedes the check.
        let is_named = self.addresses.secret(source) != 0;
        let claim = self.transports.claim(number).filter(|_| !is_named);
        let sender = NewSender { number, who, peer, source, claim };
        if address.is_some() && !self.may_be_there(&sender) {
            self.transports.disown(number);
            return Err(Unknown::Unlisted);
        }
        Ok(sender)
    }

    /// Opens a new sender. Returns `None` if it is gone.
    ///
    /// # Errors
    /// [`Unknown::Short`] if descriptors or memory are short. [`Unknown::Unlisted`] if the sender
    /// cannot be opened and another endpoint at its address is open. Its entry in the list of
    /// senders is then invalid.
    pub(super) fn open_sender(
        &mut self,
        sender: &NewSender,
    ) -> std::result::Result<Option<Peer>, Unknown> {
        let opened = self.transports.open_sender(sender.number, sender.who);
        if let Err(errno) = opened
            && is_short(errno)
        {
            log_shortage(errno);
            return Err(Unknown::Short);
        }
        match opened {
            Ok(link) => Ok(Some(link)),
            // Another endpoint at this address is open. Any earlier one would have been opened
            // before it, so this entry in the list of senders was overwritten.
            Err(_) if self.is_open(sender.peer) => Err(Unknown::Unlisted),
            Err(errno) => {
                let port = sender.who.port();
                tracing::debug!(
                    "the endpoint at port {port} was gone before its messages were read: {errno}"
                );
                Ok(None)
            }
        }
    }

    /// Adds a sender, with the result of [`Self::open_sender`].
    pub(super) fn add_sender(&mut self, sender: &NewSender, opened: Option<Peer>) {
        match opened {
            Some(link) => self.add(sender.peer, link),
            None => {
                self.addresses.saw_open(sender.peer);
                self.unopened.push((sender.peer, sender.who));
            }
        }
    }

    /// Enters the number of a sender. Returns the source of its slots.
    pub(super) fn enter(&mut self, sender: &NewSender) -> u32 {
        let NewSender { number, who, peer, source, claim } = *sender;
        if let Some(claim) = claim {
            let epoch = self.epoch(peer);
            self.claims.add(Unnamed { number, peer, source, epoch, claim });
        }
        let (index, context) = (number as usize, who.context() != 0);
        if self.sources.len() <= index {
            self.sources.resize(index + 1, UNKNOWN);
        }
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
            return peer;
        }
        if self.context_sources.len() <= index {
            self.context_sources.resize(index + 1, UNKNOWN);
        }
        self.context_sources[index] = source;
        source
    }

    /// Checks that a peer is at the address that it claims. If it is proved not to be, disconnects
    /// it and returns false. Returns true if there is nothing to check, or if the secret for the
    /// check is not known. See [`channel::tx::Tx::is_at_its_address`].
    pub(super) fn check_claim(&self, peer: u32) -> bool {
        let Some(&Some((number, _))) = self.numbers.get(peer as usize) else { return true };
        let is_context = self.sources.get(number as usize).is_some_and(|&of| of == CONTEXT + peer);
        let source = if is_context { self.context_sources[number as usize] } else { peer };
        self.check_secrets(number, peer, source)
    }

    /// Returns whether a sender over the network knows the secrets in the names at its address and,
    /// if it claims to be a context, at the address of its endpoint; if it does not, disconnects
    /// it. A secret that is not known here is not checked.
    fn check_secrets(&self, number: u32, peer: u32, source: u32) -> bool {
        let knows = |of: u32| self.transports.is_at_its_address(number, || self.secret_of(of));
        knows(peer) && (source == peer || knows(source))
    }

    /// Returns whether a sender over the network may be at the address that it claims.
    fn may_be_there(&self, sender: &NewSender) -> bool {
        let NewSender { number, who, peer, source, claim } = *sender;
        // An endpoint of this host sends over shared memory.
        if !self.needs_net(peer) || !self.check_secrets(number, peer, source) {
            return false;
        }
        // An endpoint that is connected keeps the address until its connection ends.
        claim.is_none() || !self.is_open(peer) || self.who_is_at(peer) == Some(who)
    }

    /// Checks the senders whose names were inserted after they had sent. Disconnects the impostors
    /// among them, and returns the peer number and the epoch of each impostor.
    pub(super) fn take_impostors(&mut self) -> Vec<(u32, u32)> {
        let named = self.claims.take_named(|source| self.addresses.secret(source) != 0);
        let impostors = named.into_iter().filter(|it| !self.is_genuine(it));
        impostors.map(|it| (it.peer, it.epoch)).collect()
    }

    /// Returns whether a sender, which may be gone, has made its claim with the secret in the name
    /// that it claims. Disconnects it otherwise.
    fn is_genuine(&self, of: &Unnamed) -> bool {
        if of.epoch == self.epoch(of.peer) {
            self.check_secrets(of.number, of.peer, of.source);
        }
        let secret = self.secret_of(of.source);
        secret.is_none_or(|secret| self.transports.is_claim_of(&of.claim, &secret))
    }

    /// Returns whether there are so many claims that [`Self::forget_claims`] is due.
    pub(super) fn has_many_claims(&self) -> bool {
        self.claims.are_many()
    }

    /// Returns the number of claims that cannot be checked yet.
    #[cfg(test)]
    pub(crate) fn claim_count(&self) -> usize {
        self.claims.count()
    }

    /// Forgets the claims of senders that are gone and of which no message is kept. `kept` contains
    /// the peer number and the epoch of each sender of kept messages.
    pub(super) fn forget_claims(&mut self, kept: &HashSet<(u32, u32)>) {
        let mut claims = std::mem::take(&mut self.claims);
        claims.retain(|it| it.epoch == self.epoch(it.peer) || kept.contains(&(it.peer, it.epoch)));
        self.claims = claims;
    }

    /// Removes and returns the senders that were gone before they could be opened.
    pub(super) fn take_unopened(&mut self) -> Vec<(u32, Identity)> {
        std::mem::take(&mut self.unopened)
    }

    /// Keeps a sender that is gone and was not opened, until its slots are handled.
    pub(super) fn keep_unopened(&mut self, peer: u32, gone: Identity) {
        self.unopened.push((peer, gone));
    }

    /// Returns senders that are gone and of which no slot was handled, from the next page of the
    /// list of senders. Checks at most `most` senders of the page. The next round over all pages
    /// continues with the senders that follow these.
    pub(super) fn silent_and_gone(&mut self, most: usize) -> Vec<(u32, Identity)> {
        let parts = self.transports.list_parts();
        let (page, round) = (self.pages_checked % parts, self.pages_checked / parts);
        self.pages_checked = self.pages_checked.wrapping_add(1);
        let mut silent = self.transports.senders_in(page);
        silent.retain(|&(number, _)| self.is_unknown(number));
        let first = round.wrapping_mul(most) % silent.len().max(1);
        silent.rotate_left(first);
        silent.truncate(most);
        silent.retain(|&(_, who)| self.transports.is_gone(who));
        silent
    }

    fn is_unknown(&self, number: u32) -> bool {
        self.sources.get(number as usize).is_none_or(|&peer| peer == UNKNOWN)
    }

    /// Frees the numbers of senders that are gone, unless they have sent after all.
    pub(super) fn strike_unknown(&self, gone: Vec<(u32, Identity)>) {
        for (number, who) in gone.into_iter().filter(|&(number, _)| self.is_unknown(number)) {
            self.transports.strike(number, who);
        }
    }
}

#[cfg(test)]
#[path = "peers_tests.rs"]
mod tests;
