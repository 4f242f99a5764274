// SPDX-License-Identifier: BSD-2-Clause
//! The working state of an endpoint: the device, the channels below it and the queues above it. One
//! thread at a time uses it (`ffi::serial`).
//!
//! Operations are in `msg` (send, receive) and `tagged` (peek, claim, discard), arrivals in
//! `progress`, long messages in `rendezvous`, and deaths of peers in `liveness`.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Instant,
};

use channel::{
    contract::{Payload, Sent, Settings},
    identity::Identity,
    net::Net,
    peer::Peer,
    polling::Turns,
    rx::Receivers,
    shm::segment::Segment,
    tx::Tx,
    wire::{Header, LONGEST},
};
use ffi::{Errno, Result, flags, info::Info};
use host::{names::job_of, node_pool::NodePool, poller_count::PollerCount};
use matching::Source;
use nic::report::ChannelCounters;
use slab::Slab;

use crate::{
    attr,
    av::AddressVector,
    device::{directed::Directed, flow::Flow, make, matcher::Matching, receive::MIN_MULTI_RECV},
    domain::Domain,
    engine::{
        cq_binding::{Counters, CqBinding},
        deferred::Deferred,
        ops::{Ops, UnderWay},
        transfers::{LongCopy, Stream, Transfer},
    },
    eq::EventQueue,
    job,
    record::{report, trace},
    sizes::Sizes,
    wait::{
        idle::{Idle, Policy},
        triggers::DeferredOp,
    },
};

/// Messages and bytes by channel.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    /// Includes messages that were sent whole over the network, which [`Tx`] counts separately.
    pub(crate) shm: ChannelCounters,
    /// Messages of all lengths, without those.
    pub(crate) net: ChannelCounters,
    pub(crate) kernel_copy: ChannelCounters,
    pub(crate) copy_pipeline: ChannelCounters,
    /// Reads, writes and atomic operations on memory, over any channel.
    pub(crate) rma: ChannelCounters,
}

impl Channels {
    /// Moves what was received since `before` from shared memory to the network.
    pub(crate) fn turn_far(&mut self, before: ChannelCounters) {
        let Self { shm, net, .. } = self;
        net.received += shm.received - before.received;
        net.received_bytes += shm.received_bytes - before.received_bytes;
        (shm.received, shm.received_bytes) = (before.received, before.received_bytes);
    }
}

/// The working state of an endpoint.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) domain: Arc<Domain>,
    pub(crate) av: Option<Arc<AddressVector>>,
    pub(crate) tx: CqBinding,
    pub(crate) rx: CqBinding,
    pub(crate) counters: Counters,
    pub(crate) enabled: bool,
    /// Its capabilities.
    pub(crate) caps: u64,
    pub(crate) directed: Directed,
    /// Whether tagged receives may take several messages (`FI_TAGGED_MULTI_RECV`).
    pub(crate) tagged_multi: bool,
    /// Whether completions name the source (`FI_SOURCE`).
    pub(crate) source: bool,
    pub(crate) min_multi_recv: usize,

    pub(crate) device: Matching,
    /// It was opened for a shared transmit context, and none is bound yet.
    pub(crate) awaits_stx: bool,
    pub(crate) eq: Option<Arc<EventQueue>>,
    /// The pool of table entries, if endpoints share one.
    pub(crate) node_pool: Option<Arc<NodePool>>,
    /// Number of processes that the device knows; 0 if none yet.
    pub(crate) processes: u32,

    /// The address under which peers list the endpoint.
    pub(crate) address: u64,
    /// Its segment in shared memory: identity, doorbell, counters.
    pub(crate) own: Arc<Segment>,
    pub(crate) home: Tx,
    pub(crate) inboxes: Receivers,
    /// By peer number, which stands for an address: the link to the endpoint there.
    pub(crate) links: Vec<Option<Box<Peer>>>,
    /// The peers that have links.
    pub(crate) linked: Vec<u32>,
    /// By peer number: how many earlier endpoints at its address are gone.
    pub(crate) epochs: Vec<u32>,
    /// Peers without a link that receives name.
    pub(crate) awaited: BTreeSet<u32>,
    /// The awaited peer with which the next check begins.
    pub(crate) awaited_next: u32,
    /// Peers that are gone, each with the time at which receives of a shared context that name it
    /// fail.
    pub(crate) leaving: Vec<(Instant, u32)>,
    /// By a sender's number in the segment's list: its peer number, [`CONTEXT`] + peer number, or
    /// [`UNKNOWN`].
    pub(crate) sources: Vec<u32>,
    /// By the same number, for a [`CONTEXT`]: the peer that receives name.
    pub(crate) endpoints: Vec<u32>,
    /// By peer number: the number and the identity under which the endpoint there sends, if it has
    /// sent.
    pub(crate) numbers: Vec<Option<(u32, Identity)>>,
    /// Peers that sent and are gone without a link, until their slots are handled.
    pub(crate) passing: Vec<(u32, Identity)>,
    /// The page of the list that is checked next.
    pub(crate) next_page: usize,
    /// A slot waits until descriptors or memory are available.
    pub(crate) is_short: bool,
    /// Whether a peer sent over the network whose name was not inserted yet.
    pub(crate) has_unnamed: bool,
    /// Answers that found no room.
    pub(crate) deferred: Deferred,
    pub(crate) sends: Arc<Ops>,
    /// The deferred work whose operation is being started: its index in `works` + 1, or 0. It is
    /// kept with the operation.
    pub(crate) work: u32,
    /// Deferred work in progress.
    pub(crate) works: Slab<DeferredOp>,
    /// Elements of the atomic operation that is being served.
    pub(crate) scratch: Vec<u8>,
    /// Number of operations on peers' memory in progress.
    pub(crate) rma_under_way: UnderWay,
    /// Most such operations: peers keep answers that find no room.
    pub(crate) rma_limit: usize,
    pub(crate) transfers: Slab<Transfer>,
    pub(crate) streams: VecDeque<Stream>,
    /// Copies to be made without the lock, if several threads may use the endpoint.
    pub(crate) copies: VecDeque<LongCopy>,
    /// Number of copies that are being made without the lock.
    pub(crate) copying: u32,
    /// A copy of local memory is due or in progress: slots that came after its request wait.
    pub(crate) holds_arrivals: bool,
    /// The endpoint is being closed.
    pub(crate) closes: bool,
    /// The device thread sleeps, or is about to.
    pub(crate) device_sleeps: bool,

    /// State of `FI_TCAM_OVERFLOW=flow-control`.
    pub(crate) flow: Flow,
    /// The last send found no room. No message announces when there is some.
    pub(crate) wants_room: bool,

    pub(crate) eager_size: usize,
    pub(crate) net_eager_size: usize,
    /// Longest message that is sent at once over any transport.
    pub(crate) at_once: usize,
    pub(crate) sizes: Arc<Sizes>,
    /// Whether sends are recorded.
    pub(crate) records_sends: bool,
    /// When recorders were last notified of idleness, if operations are recorded.
    pub(crate) idled: Option<Instant>,
    /// Whether slots have checksums.
    pub(crate) check: bool,
    /// Checksum of the payload of the slot, or of the kept message, that is being handled.
    pub(crate) slot_check: u32,
    pub(crate) idle: Idle,
    pub(crate) census: PollerCount,
    pub(crate) checked: Instant,
    /// Time of the last read of the clock.
    pub(crate) clocked: Instant,
    /// Empty polls between two reads of the clock.
    pub(crate) look_every: u32,
    /// Empty polls until the next read of the clock.
    pub(crate) until_look: u32,
    /// Position of the next check in the rounds over all links.
    pub(crate) check_next: usize,
    /// Position of the next check for closed peers.
    pub(crate) closed_next: usize,
    pub(crate) silent_checked: Instant,
    pub(crate) channels: Channels,
    /// For observers of the counters.
    pub(crate) rank: Option<u32>,
    /// See [`job_of`].
    pub(crate) job: u64,
    pub(crate) opened: Instant,
    /// Progress and posts until the clock is read again.
    pub(crate) until_shown: u32,
    /// Number of such reads.
    pub(crate) shows: u32,
    /// Whether it has a report and a trace: contexts that are never opened have none.
    pub(crate) recorded: bool,
    /// Whether it is a context of a scalable endpoint.
    pub(crate) is_context: bool,
    /// The index of the context, if the scalable endpoint has several.
    pub(crate) context: Option<u32>,
    /// The draft of the report, if a report is requested.
    pub(crate) draft: Option<Box<report::Growing>>,
}

/// Added to the peer number of a later context of a scalable endpoint.
pub(crate) const CONTEXT: u32 = 1 << 31;
/// A sender without a peer number.
pub(crate) const UNKNOWN: u32 = u32::MAX;

impl Engine {
    pub(crate) fn new(
        domain: &Arc<Domain>,
        info: &Info,
        address: u64,
        own: &Arc<Segment>,
        net: Option<Arc<Net>>,
        opened: Instant,
    ) -> Result<Self> {
        let params = &domain.params;
        let node_pool = make::node_pool(params, &own.owner())?;
        let directed = Directed::of(info.caps);
        let (device, processes) =
            make::matching(params, directed, node_pool.as_ref(), opened, domain.locked)?;
        let eager_size = params.number("eager_size");
        let net_eager_size = params.number("net_eager_size");
        let near = eager_size.min(LONGEST);
        let at_once = if net.is_some() { near.min(net_eager_size) } else { near };
        let check = params.text("check") == "on";
        let copies = params.text("kernel_copy") == "auto";
        let turns = Turns::new(params.polling(), !params.text("report").is_empty());
        let home = Tx::new(own, net, turns, Settings { checks: check, copies }, domain.locked);
        let reports = |op_flags| CqBinding { op_flags, ..Default::default() };
        Ok(Self {
            domain: Arc::clone(domain),
            av: None,
            tx: reports(info.tx.as_ref().map_or(0, |tx| tx.op_flags)),
            rx: reports(info.rx.as_ref().map_or(0, |rx| rx.op_flags)),
            counters: Counters::default(),
            enabled: false,
            caps: attr::capabilities(info.caps),
            directed,
            tagged_multi: info.caps & flags::TAGGED_MULTI_RECV != 0,
            source: info.caps & flags::SOURCE != 0,
            min_multi_recv: MIN_MULTI_RECV,
            device,
            awaits_stx: info.ep.as_ref().is_some_and(|ep| ep.tx_ctx_cnt == attr::SHARED_CONTEXT),
            eq: None,
            node_pool,
            processes,
            address,
            own: Arc::clone(own),
            inboxes: home.receivers(),
            home,
            links: Vec::new(),
            linked: Vec::new(),
            epochs: Vec::new(),
            awaited: BTreeSet::new(),
            awaited_next: 0,
            leaving: Vec::new(),
            sources: Vec::new(),
            endpoints: Vec::new(),
            numbers: Vec::new(),
            passing: Vec::new(),
            next_page: 0,
            is_short: false,
            has_unnamed: false,
            deferred: Deferred::default(),
            sends: Arc::new(Ops::new(domain.locked)),
            work: 0,
            works: Slab::new(),
            scratch: Vec::new(),
            rma_under_way: UnderWay::default(),
            rma_limit: match info.tx.as_ref().map_or(0, |tx| tx.size) {
                0 => attr::QUEUE_SIZE,
                size => size,
            },
            transfers: Slab::new(),
            streams: VecDeque::new(),
            copies: VecDeque::new(),
            copying: 0,
            holds_arrivals: false,
            closes: false,
            device_sleeps: false,
            flow: Flow::from_params(params),
            wants_room: false,
            eager_size,
            net_eager_size,
            at_once,
            sizes: Arc::new(Sizes::offered(eager_size)),
            records_sends: trace::records_sends(params),
            idled: trace::is_wanted(params).then(Instant::now),
            check,
            slot_check: 0,
            idle: Idle::new(match params.text("idle") {
                "spin" => Policy::Spin,
                "yield" => Policy::Yield,
                _ => Policy::Auto,
            }),
            census: PollerCount::default(),
            checked: Instant::now(),
            clocked: Instant::now(),
            look_every: 1,
            until_look: 0,
            check_next: 0,
            closed_next: 0,
            silent_checked: Instant::now(),
            channels: Channels::default(),
            rank: job::rank(),
            job: job_of(params.text("report")),
            opened,
            until_shown: 0,
            shows: 0,
            recorded: false,
            is_context: false,
            context: None,
            draft: None,
        })
    }

    /// Sets the number of processes in the device, unless `FI_TCAM_NPROCS` is set.
    pub(crate) fn set_processes(&mut self, n: u32) {
        if self.domain.params.text("nprocs") == "0" {
            self.processes = n;
            self.device.lock().set_processes(n);
        }
    }

    /// Returns whether there are slots to handle.
    #[inline]
    pub(crate) fn has_arrivals(&mut self) -> bool {
        self.inboxes.iter_mut().flatten().any(|inbox| !inbox.is_empty())
    }

    /// Returns whether there are slots of this host to handle, which is a quick check.
    #[inline]
    pub(crate) fn has_near_arrivals(&mut self) -> bool {
        let near = self.inboxes.iter_mut().flatten().filter(|inbox| !inbox.is_net());
        near.into_iter().any(|inbox| !inbox.is_empty())
    }

    /// Sends a slot and its payload, if there is room.
    ///
    /// # Errors
    /// `ECONNABORTED` if the peer is gone.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        peer: u32,
        header: &Header,
        payload: Payload<'_>,
    ) -> Result<Sent> {
        if let Some(sent) = self.home.send_shm(peer, header, payload) {
            return Ok(sent);
        }
        match self.links.get_mut(peer as usize) {
            Some(Some(link)) => Ok(self.home.send(link, header, payload)),
            _ => Err(Errno::ECONNABORTED),
        }
    }

    /// Sends a control message, now or when the peer's ring has room.
    #[inline(never)]
    pub(crate) fn reply(&mut self, peer: u32, header: Header) {
        let sent = !self.deferred.has(peer)
            && match self.push(peer, &header, Payload::Nothing) {
                Ok(sent) => sent == Sent::Yes,
                // The peer is gone.
                Err(_) => return,
            };
        if !sent {
            self.deferred.push(peer, header, Box::default());
        }
    }

    /// Tries again to send pending answers. None overtakes another one to the same peer: the last
    /// part of an answer means that all parts have come.
    pub(crate) fn flush_deferred(&mut self) {
        let mut deferred = std::mem::take(&mut self.deferred);
        deferred.flush(|peer, header, bytes| {
            // Answers to a peer that is gone are dropped.
            self.push(peer, header, Payload::Bytes(bytes)).unwrap_or(Sent::Yes) == Sent::Yes
        });
        self.deferred = deferred;
    }

    /// The address of a peer in completions, if the application requested sources.
    #[inline]
    pub(crate) fn address_of(&self, peer: u32) -> u64 {
        match &self.av {
            Some(av) if self.source => av.address_of(peer),
            _ => flags::ADDR_UNSPEC,
        }
    }

    /// The source that a receive names.
    #[inline(always)]
    pub(crate) fn source_key(&self, address: u64, tagged: bool) -> Result<Source> {
        if !self.directed.is_named(address, tagged)? {
            return Ok(Source::ANY);
        }
        self.source_of_address(address)
    }

    #[inline(always)]
    pub(crate) fn source_of_address(&self, address: u64) -> Result<Source> {
        let peer = self.av.as_ref().and_then(|av| av.source(address));
        peer.map(Source::new).ok_or(Errno::EINVAL)
    }

    /// The peer of an address that names a context.
    #[cold]
    pub(crate) fn peer_of_context(&self, address: u64) -> Result<u32> {
        let peer = self.av.as_ref().and_then(|av| av.peer_of_context(address));
        peer.ok_or(Errno::EINVAL)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
