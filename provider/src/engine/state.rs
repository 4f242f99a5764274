// SPDX-License-Identifier: BSD-2-Clause
//! The working state of an endpoint: the device, the channels below it and the queues above it. One
//! thread at a time uses it (`ffi::serial`).
//!
//! Operations are in `msg` (send, receive) and `tagged` (peek, claim, discard), arrivals in
//! `progress`, long messages in `rendezvous`, and deaths of peers in `liveness`.

use std::{collections::VecDeque, net::SocketAddrV4, sync::Arc, time::Instant};

use channel::{
    contract::Settings,
    home::{Home, Inboxes},
    net::end::Net,
    polling::Turns,
    shm::segment::Segment,
    wire::LONGEST,
};
use ffi::{Errno, Result, flags, info::Info, ops::work::EndpointOp};
use host::{census::Census, node_pool::NodePool};
use matching::Source;
use nic::report::WrittenAt;
use slab::Slab;

use crate::{
    attr,
    device::{directed::Directed, flow::Flow, make, matcher::Matching, receive::MIN_MULTI_RECV},
    domain::Domain,
    engine::{
        completions::Completions,
        ops::{Ops, UnderWay},
        peer_checks::PeerChecks,
        peers::Peers,
        publisher::Publisher,
        transfers::{LongCopy, Stream, Transfer},
    },
    eq::EventQueue,
    record::trace,
    sizes::Sizes,
    wait::{
        idle::{Idle, Policy},
        triggers::DeferredOp,
    },
};

/// The working state of an endpoint.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) domain: Arc<Domain>,
    pub(crate) peers: Peers,
    pub(crate) completions: Completions,
    pub(super) publisher: Publisher,
    pub(crate) checks: PeerChecks,
    pub(crate) enabled: bool,
    /// Its capabilities.
    pub(crate) caps: u64,
    pub(crate) directed: Directed,
    /// Whether tagged receives may take several messages (`FI_TAGGED_MULTI_RECV`).
    pub(crate) tagged_multi: bool,
    pub(crate) min_multi_recv: usize,

    pub(crate) device: Matching,
    /// It was opened for a shared transmit context, and none is bound yet.
    pub(crate) awaits_stx: bool,
    pub(crate) eq: Option<Arc<EventQueue>>,
    /// The pool of table entries, if endpoints share one.
    pub(crate) node_pool: Option<Arc<NodePool>>,
    /// Number of processes that the device knows; 0 if none yet.
    pub(crate) processes: u32,

    pub(crate) inboxes: Inboxes,
    /// A slot waits until descriptors or memory are available.
    pub(crate) is_short: bool,
    pub(crate) sends: Arc<Ops>,
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
    pub(crate) eager_size: usize,
    pub(crate) net_eager_size: usize,
    /// Longest message that is sent at once over any transport.
    pub(crate) at_once: usize,
    pub(crate) sizes: Arc<Sizes>,
    /// Whether sends are recorded.
    pub(crate) records_sends: bool,
    /// Whether slots have checksums.
    pub(crate) check: bool,
    /// Checksum of the payload of the slot, or of the kept message, that is being handled.
    pub(crate) slot_check: u32,
    pub(crate) idle: Idle,
    pub(crate) census: Census,
    /// Whether it is a context of a scalable endpoint.
    pub(crate) is_context: bool,
    /// The index of the context, if the scalable endpoint has several.
    pub(crate) context: Option<u32>,
}

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
        let home = Home::new(own, net, turns, Settings { checks: check, copies }, domain.locked);
        let inboxes = home.inboxes();
        let source = info.caps & flags::SOURCE != 0;
        Ok(Self {
            domain: Arc::clone(domain),
            completions: Completions::new(
                info.tx.as_ref().map_or(0, |tx| tx.op_flags),
                info.rx.as_ref().map_or(0, |rx| rx.op_flags),
            ),
            publisher: Publisher::new(params, opened),
            checks: PeerChecks::new(trace::is_wanted(params)),
            enabled: false,
            caps: attr::capabilities(info.caps),
            directed,
            tagged_multi: info.caps & flags::TAGGED_MULTI_RECV != 0,
            min_multi_recv: MIN_MULTI_RECV,
            device,
            awaits_stx: info.ep.as_ref().is_some_and(|ep| ep.tx_ctx_cnt == attr::SHARED_CONTEXT),
            eq: None,
            node_pool,
            processes,
            inboxes,
            peers: Peers::new(&domain.peers, address, own, home, source),
            is_short: false,
            sends: Arc::new(Ops::new(domain.locked)),
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
            eager_size,
            net_eager_size,
            at_once,
            sizes: Arc::new(Sizes::offered(eager_size)),
            records_sends: trace::records_sends(params),
            check,
            slot_check: 0,
            idle: Idle::new(match params.text("idle") {
                "spin" => Policy::Spin,
                "yield" => Policy::Yield,
                _ => Policy::Auto,
            }),
            census: Census::default(),
            is_context: false,
            context: None,
        })
    }

    /// Starts a triggered operation, which may be deferred work.
    pub(crate) fn start(&mut self, op: &EndpointOp, deferred: Option<DeferredOp>) -> Result<()> {
        let selective = self.completions.begin_start(deferred);
        let started = match op {
            EndpointOp::Send(op) => self.send(op),
            EndpointOp::Recv(op) => self.recv(op),
            EndpointOp::Rma(op) => self.rma(op),
            EndpointOp::Atomic(op) => self.atomic(op),
        };
        self.peers.wants_room |= started == Err(Errno::EAGAIN);
        self.completions.end_start(op, selective, started);
        started
    }

    /// Starts the report and the trace, unless they have started.
    pub(crate) fn start_records(&mut self, address: SocketAddrV4) -> Result<()> {
        if self.publisher.is_recorded() {
            return Ok(());
        }
        let (params, peers) = (&self.domain.params, &self.domain.peers);
        let (name, address) = (address.port().to_string(), address.to_string());
        trace::start(&mut self.device.lock_own(), params, peers, &name, &address)?;
        self.publisher.begin(params, address);
        self.show();
        Ok(())
    }

    /// Writes the report, if one is requested.
    pub(crate) fn write_report(&mut self, address: SocketAddrV4, written_at: WrittenAt) {
        let domain = Arc::clone(&self.domain);
        if let Some(mut report) = self.publisher.end(&domain.params, address, written_at) {
            self.count(&mut report);
            self.publisher.finish(&domain.params, &mut report);
        }
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

    /// The source that a receive names.
    #[inline(always)]
    pub(crate) fn source_key(&self, address: u64, tagged: bool) -> Result<Source> {
        if !self.directed.is_named(address, tagged)? {
            return Ok(Source::ANY);
        }
        self.peers.source_at(address)
    }
}
