// SPDX-License-Identifier: BSD-2-Clause
//! The engine of an endpoint: the code behind its sends, receives, reads, writes and atomic
//! operations. An [`Engine`] consists of parts that own their state. A method that needs several
//! parts is a method of the engine. One thread at a time uses an engine (`ffi::serial`).
//!
//! Words in this folder:
//!
//! ```text
//! slot       a message, a request or an answer, as a transport delivers it (`channel::wire`);
//!            over the network, a frame
//! ring       the slots that have come to an endpoint over shared memory
//! peer       the address of an endpoint, as a number (`crate::peer_numbers`)
//! link       the open connection to the endpoint at a peer's address, over any transport (`peers`)
//! device     the emulated NIC, which matches messages and receives (`nic::device`)
//! transfer   a long message that its receiver gets in parts (`rx`)
//! ```
//!
//! Files:
//!
//! ```text
//! mod                        Engine: operations of the application
//! progress  liveness         arriving slots; opening peers, and noticing that they close or die
//!
//! rx  tagged                 receives, long messages; probes
//! tx  rma  atomic            messages; reads, writes and atomic operations at peers
//! rma_target                 requests of peers for local memory
//! copies                     copies that are made without the lock of the engine
//! completions                queues, counters and deferred work
//! peers  peer_checks         links and senders; when they are checked
//! inbound  publisher         receiving ends of the transports; when the counters are shown
//!
//! ops  outgoing  deferred    operations in progress, options of a message, pending answers
//! check  claims              checksums; claims of senders whose names were not inserted
//! ```

mod atomic;
mod check;
mod claims;
pub(crate) mod completions;
mod copies;
mod deferred;
mod inbound;
mod liveness;
pub(crate) mod ops;
pub(crate) mod outgoing;
mod peer_checks;
mod peers;
mod progress;
mod publisher;
pub(crate) mod rma;
mod rma_target;
mod rx;
pub(crate) mod tagged;
mod tx;

use std::{net::SocketAddrV4, sync::Arc, time::Instant};

use channel::{contract::Settings, net::Net, polling::NetworkSchedule, shm::segment::Segment};
use ffi::{
    Errno, OpContext, Result, flags,
    info::Info,
    ops::{
        ep::{OpFlags, Recv, Send, atomic::Atomic, rma::Rma},
        work::EndpointOp,
    },
};
use host::{node_pool::NodePool, poller_count::PollerCount};
use matching::Source;
use nic::{
    message::{Envelope, Grant},
    report::{Report, WrittenAt},
    trace::Sent,
};

use self::{
    completions::Completions,
    inbound::Inbound,
    outgoing::{Outgoing, TxSettings},
    peer_checks::PeerChecks,
    peers::Peers,
    publisher::Publisher,
    rma_target::RmaTarget,
    rx::Rx,
    tagged::{Probe, ProbeResult, probe_flags},
    tx::Tx,
};
use crate::{
    attr,
    device::{
        carried::{Kept, RecvOp},
        flow::Flow,
        make,
        receive::{Directed, RecvSettings},
    },
    domain::Domain,
    eq::EventQueue,
    record::trace,
    sizes::OpClass,
    wait::{idle::Idle, triggers::DeferredOp},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) domain: Arc<Domain>,
    pub(crate) peers: Peers,
    pub(crate) completions: Completions,
    pub(crate) tx: Tx,
    pub(crate) rx: Rx,
    target: RmaTarget,
    pub(crate) inbound: Inbound,
    publisher: Publisher,
    pub(crate) checks: PeerChecks,
    pub(crate) idle: Idle,
    poller_count: PollerCount,
    /// The pool of table entries that endpoints of this host share; `None` if each endpoint has its
    /// own entries.
    pub(crate) node_pool: Option<Arc<NodePool>>,
    pub(crate) eq: Option<Arc<EventQueue>>,
    pub(crate) enabled: bool,
    /// Whether messages arrive before the next operation on the device ([`progress`]).
    pub(crate) arrival_of_nic: bool,
    /// Whether the endpoint was opened for a shared transmit context, and none is bound yet.
    pub(crate) awaits_stx: bool,
    /// Number of processes of the job, also set in the device; 0 if it is not known yet.
    processes: u32,
    /// Whether sends are recorded in the trace (`FI_TCAM_TRACE_SENDS`).
    pub(crate) records_sends: bool,
    /// Whether the device thread sleeps, or is about to.
    pub(crate) device_sleeps: bool,
    /// Whether the endpoint is a context of a scalable endpoint.
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
        let (params, locked) = (&domain.params, domain.locked);
        let node_pool = make::node_pool(params, &own.owner())?;
        let directed = Directed::of(info.caps);
        let (device, processes) =
            make::matching(params, directed, node_pool.as_ref(), opened, locked)?;
        let (tx_size, tx_flags) = info.tx.as_ref().map_or((0, 0), |tx| (tx.size, tx.op_flags));
        let tx = Tx::new(TxSettings::new(params, tx_flags, net.is_some()), tx_size, locked);
        let rx_flags = info.rx.as_ref().map_or(0, |rx| rx.op_flags);
        let settings_of_rx = RecvSettings::new(info.caps, rx_flags);
        let settings = Settings { checks: tx.settings.checks, copies: params.kernel_copy.is_on() };
        let arrival_of_nic = params.has_arrival_of_nic();
        let is_timed = arrival_of_nic || !params.report.is_empty();
        let schedule = NetworkSchedule::new(params.poll, is_timed);
        if trace::is_wanted(params) {
            own.ask_for_times();
        }
        let transports = channel::tx::Tx::new(own, net, schedule, settings, locked);
        Ok(Self {
            inbound: Inbound::new(&transports),
            peers: Peers::new(
                &domain.peers,
                address,
                own,
                transports,
                info.caps & flags::SOURCE != 0,
            ),
            completions: Completions::default(),
            target: RmaTarget::new(domain, address, info.caps, tx.settings.eager.size),
            tx,
            rx: Rx::new(device, settings_of_rx, Flow::from_params(params), locked),
            domain: Arc::clone(domain),
            publisher: Publisher::new(params, opened),
            checks: PeerChecks::new(trace::records_sends(params)),
            idle: Idle::new(params.idle),
            poller_count: PollerCount::default(),
            node_pool,
            eq: None,
            enabled: false,
            arrival_of_nic,
            awaits_stx: info.ep.as_ref().is_some_and(|ep| ep.tx_ctx_cnt == attr::SHARED_CONTEXT),
            processes,
            records_sends: trace::records_sends(params),
            device_sleeps: false,
            is_context: false,
            context: None,
        })
    }

    /// Sets the number of processes, here and in the device, unless `FI_TCAM_NPROCS` is set.
    pub(crate) fn set_processes(&mut self, n: u32) {
        if self.domain.params.nprocs == 0 {
            self.processes = n;
            self.rx.device.lock().set_processes(n);
        }
    }

    fn check_enabled(&self) -> Result<()> {
        if self.enabled { Ok(()) } else { Err(Errno::EOPBADSTATE) }
    }
}

/// Operations of the application.
impl Engine {
    /// Any form of `fi_send` and `fi_tsend`.
    #[inline]
    pub(crate) fn send(&mut self, op: &Send) -> Result<()> {
        self.check_enabled()?;
        let outgoing = Outgoing::of(op, self.completions.tx.selective, &self.tx.settings)?;
        let peer = self.peers.peer_at(op.dest)?;
        self.link_to(peer)?;
        #[cfg(test)]
        crate::panic_tests::PanicAt::Send.reached();
        let Self { tx, peers, completions, .. } = self;
        let sent = tx.send(peers, completions, peer, op, outgoing);
        if self.records_sends && sent.is_ok() {
            self.record_send(peer, op);
        }
        sent
    }

    #[cold]
    fn record_send(&mut self, peer: u32, op: &Send) {
        let (bits, len) = (op.tag.unwrap_or(0), op.buffer.len() as u64);
        self.rx.device.lock_own().context(op.tag.is_some()).note_send(Sent { peer, bits, len });
    }

    /// Any form of `fi_recv` and `fi_trecv`. Inlined for the reason given at [`Rx::post`].
    #[inline(always)]
    pub(crate) fn recv(&mut self, op: &Recv) -> Result<()> {
        self.check_enabled()?;
        if let Some(given) = probe_flags(op) {
            return self.probe(op, given);
        }
        self.receive_before_operation();
        let source = self.source(op)?;
        self.watch(source);
        // Posts also show the counters, because many receives may be posted before the next poll.
        if self.publisher.is_due() {
            self.show_in_turn();
        }
        #[cfg(test)]
        crate::panic_tests::PanicAt::Post.reached();
        self.rx.post(&mut self.peers, &mut self.completions, op, source)
    }

    /// Handles a receive with `FI_PEEK`, `FI_CLAIM` or `FI_DISCARD`.
    fn probe(&mut self, op: &Recv, op_flags: u64) -> Result<()> {
        if self.rx.device.is_shared() {
            // The receives of this endpoint are posted to the shared context.
            return Err(Errno::EOPNOTSUPP);
        }
        let probe = Probe::read(op, op_flags)?;
        if probe == Probe::TakeClaimed {
            let claimed = self.rx.device.lock().tagged.take_claimed(op.context.0 as u64);
            self.give_claimed(op, op_flags, claimed.ok_or(Errno::ENOMSG)?);
            return Ok(());
        }
        // Handles messages that have come since the last poll, so that the probe can find them.
        if self.arrival_of_nic {
            self.receive_arrived();
        } else {
            self.receive();
        }
        // A program that only probes finds a completion with each poll. So no empty poll reads the
        // clock, and the probes do it instead.
        if self.publisher.is_due_after_probe() {
            self.show_and_look();
        }
        let source = self.source(op)?;
        let found = probe.find(&mut self.rx.device.lock(), op, source)?;
        self.probed(op, found);
        Ok(())
    }

    /// Returns the source that a receive names; [`Source::ANY`] if it names none, or if the
    /// endpoint does not have `FI_DIRECTED_RECV`.
    ///
    /// # Errors
    /// `EINVAL` if the source is not in the address vector, or is missing but required.
    #[inline(always)]
    fn source(&self, op: &Recv) -> Result<Source> {
        if self.rx.settings.names_source(op)? {
            self.peers.source_at(op.source)
        } else {
            Ok(Source::ANY)
        }
    }

    /// See [`Rx::give_claimed`].
    pub(crate) fn give_claimed(&mut self, op: &Recv, op_flags: u64, claimed: (Envelope, Kept)) {
        let Self { rx, peers, completions, .. } = self;
        rx.give_claimed(peers, completions, op, op_flags, claimed);
    }

    /// See [`Rx::probed`].
    pub(crate) fn probed(&mut self, op: &Recv, found: Option<ProbeResult>) {
        let Self { rx, peers, completions, .. } = self;
        rx.probed(peers, completions, op, found);
    }

    /// See [`Rx::deliver_kept`].
    pub(crate) fn deliver(&mut self, grant: Grant<RecvOp>, envelope: &Envelope, message: Kept) {
        let Self { rx, peers, completions, .. } = self;
        rx.deliver_kept(peers, completions, grant, envelope, message);
    }

    /// `fi_cancel`; see [`Rx::cancel`].
    pub(crate) fn cancel(&mut self, context: OpContext) -> Result<()> {
        self.receive_before_operation();
        self.rx.cancel(&mut self.completions, context)
    }

    /// Any form of `fi_read` and `fi_write`.
    pub(crate) fn rma(&mut self, op: &Rma) -> Result<()> {
        let len = op.buffer.len();
        if op.remote.len() != len as u64 {
            return Err(Errno::EINVAL);
        }
        let sent = if op.write { len } else { 0 };
        let (peer, options) = self.start_rma(op.peer, op.flags, (OpClass::Rma, len, sent))?;
        let work = self.completions.work();
        self.tx.rma(&mut self.peers, work, peer, op, options)
    }

    /// Any form of `fi_atomic`, `fi_fetch_atomic` and `fi_compare_atomic`.
    pub(crate) fn atomic(&mut self, op: &Atomic) -> Result<()> {
        let sizes = (OpClass::Atomic, op.remote.len() as usize, op.operand.len());
        let (peer, options) = self.start_rma(op.peer, op.flags, sizes)?;
        let work = self.completions.work();
        self.tx.atomic(&mut self.peers, work, peer, op, options)
    }

    /// Prepares an operation on a peer's memory. `sizes`: the class of the operation, its length in
    /// bytes, and how many bytes are sent to the peer. Returns the peer and the options.
    ///
    /// # Errors
    /// Those of [`Outgoing::read`], [`Peers::peer_at`] and [`Self::link_to`]. `EAGAIN` if too many
    /// operations are in progress, or if the operation must wait for earlier ones (`FI_FENCE`).
    #[inline]
    fn start_rma(
        &mut self,
        destination: u64,
        op_flags: OpFlags,
        sizes: (OpClass, usize, usize),
    ) -> Result<(u32, Outgoing)> {
        self.check_enabled()?;
        let selective = self.completions.tx.selective;
        let options = Outgoing::read(op_flags, rma::FLAGS, sizes, selective, &self.tx.settings)?;
        if self.tx.rma_under_way.get() >= self.tx.rma_limit {
            return Err(Errno::EAGAIN);
        }
        let peer = self.peers.peer_at(destination)?;
        self.link_to(peer)?;
        if options.fence && self.tx.has_under_way(peer) {
            return Err(Errno::EAGAIN);
        }
        Ok((peer, options))
    }

    /// Starts a triggered operation, which may be deferred work (`fi_trigger(3)`).
    ///
    /// # Errors
    /// Those of the operation. After `EAGAIN`, the caller starts it again later. Any other error
    /// was reported as the failure of the operation.
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
}

/// Transmit and receive contexts, which open and close while their endpoint stays open
/// ([`crate::context`]).
impl Engine {
    /// See [`Rx::drop_receives`].
    pub(crate) fn drop_receives(&mut self, at_once: bool) -> bool {
        self.rx.drop_receives(&mut self.peers, &mut self.completions, at_once)
    }

    /// See [`Tx::drop_all`].
    pub(crate) fn drop_transmits(&mut self) {
        self.tx.drop_all(&mut self.peers, &mut self.completions);
    }

    /// See [`Peers::is_any_reaching`].
    pub(crate) fn is_reached(&self) -> bool {
        self.peers.is_any_reaching()
    }

    /// If the endpoint is a member of a shared receive context, fails the context's receives whose
    /// long messages come over this endpoint, and ends the membership.
    pub(crate) fn leave(&mut self) {
        self.rx.end_receives(&mut self.completions);
        self.rx.device.leave();
    }

    /// Makes progress on the endpoints in [`Domain::unpolled`], unless another thread does. Does
    /// nothing for an endpoint without a completion queue.
    fn look_after_unpolled(&self) {
        // An endpoint without a queue may be in `unpolled` itself. Under FI_THREAD_DOMAIN, no lock
        // would prevent it from making progress on itself, without end.
        if self.completions.tx.cq.is_none() && self.completions.rx.cq.is_none() {
            return;
        }
        if let Some(unpolled) = self.domain.unpolled.try_lock() {
            unpolled.iter().for_each(|endpoint| endpoint.try_progress());
        }
    }
}

/// Records.
impl Engine {
    /// Starts the report and the trace, unless they have started.
    ///
    /// # Errors
    /// Those of [`trace::start`].
    pub(crate) fn start_records(&mut self, address: SocketAddrV4) -> Result<()> {
        if self.publisher.is_recorded() {
            return Ok(());
        }
        let (params, peers) = (&self.domain.params, &self.domain.peers);
        let (name, address) = (address.port().to_string(), address.to_string());
        trace::start(&mut self.rx.device.lock_own(), params, peers, &name, &address)?;
        self.publisher.begin(params, address);
        self.show();
        Ok(())
    }

    /// Writes the report and prints the summary, as far as requested.
    pub(crate) fn write_report(&mut self, address: SocketAddrV4, written_at: WrittenAt) {
        let domain = Arc::clone(&self.domain);
        if let Some(mut report) = self.publisher.end(&domain.params, address, written_at) {
            self.count(&mut report);
            self.publisher.finish(&domain.params, &mut report);
        }
    }

    /// Writes the counters of the endpoint into a report.
    fn count(&mut self, report: &mut Report) {
        report.processes = self.processes;
        report.context = self.context;
        // The report of a shared context contains the counters of all matches in it.
        if !self.rx.device.is_shared() {
            let device = self.rx.device.lock_own();
            (report.tagged, report.msg) = (device.tagged.counters(), device.msg.counters());
        }
        self.peers.report(report);
    }

    /// Shows the counters to `tcam show --live`. Updates the draft of the report (`host::draft`), if an
    /// update is due.
    #[cold]
    pub(crate) fn show(&mut self) {
        let live = self.publisher.live(&self.rx.device.lock());
        self.peers.own().show(&live);
        if let Some(mut draft) = self.publisher.take_draft() {
            let now = Instant::now();
            if draft.is_due(now) {
                draft.put(|report| self.count(report), &live, now);
            }
            self.publisher.put_back(draft);
        }
    }

    #[cold]
    fn show_in_turn(&mut self) {
        if self.publisher.shows_in_turn() {
            self.show();
        }
    }

    /// Does the periodic work while polls find messages: shows the counters and checks peers, if it
    /// is time.
    #[cold]
    fn show_and_look(&mut self) {
        self.show_in_turn();
        self.look_around();
        self.publisher.pace(self.checks.look_every());
    }
}

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod pairs;
#[cfg(test)]
mod transport_tests;
