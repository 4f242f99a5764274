// SPDX-License-Identifier: BSD-2-Clause
//! `fi_endpoint(3)`: the endpoint as an object of libfabric. [`crate::engine`] does its work.

use std::{
    net::SocketAddrV4,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use channel::address::pack;
use ffi::{
    Errno, OpContext, Result, flags,
    info::Info,
    object::{Bound, Control, Object, direction},
    ops::{
        self,
        ep::{OpFlags, Recv, Send, atomic::Atomic, rma::Rma},
        profile::{Variable, Variables},
        work::{EndpointOp, Trigger},
    },
    sys,
};
use matching::Source;
use nic::report::WrittenAt;

use crate::{
    address, attr,
    cntr::Counter,
    domain::{Domain, OfDomain},
    engine::{Engine, rma::wait_for_copies, tagged},
    ep_shared::{self, EpShared, Held},
    record::{exit, profile},
    rx_fast_path::RxFastPath,
    tx_fast_path::TxFastPath,
    wait::{
        pollable::{Count, Pollable as _},
        triggers::{Action, DeferredOp, Start, Waiting},
    },
};

/// Maximum time that `fi_close` waits for threads that slept on a queue of the endpoint.
const WAKING: Duration = Duration::from_secs(1);

/// An endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) domain: Arc<Domain>,
    pub(crate) shared: Arc<EpShared>,
    alias: Option<Alias>,
}

/// The attributes of an alias of an endpoint (`fi_ep_alias`).
#[derive(Debug)]
struct Alias {
    /// The endpoint. It is open as long as the alias is.
    of: Arc<Endpoint>,
    /// Default flags of transmits through the alias; `None` if they are those of the endpoint.
    tx: Option<u64>,
    /// Default flags of receives through the alias; `None` if they are those of the endpoint.
    rx: Option<u64>,
    /// As `rx`, for tagged receives. It lacks `FI_MULTI_RECV` if the endpoint supports this flag
    /// only for untagged receives.
    tagged_rx: Option<u64>,
}

/// Maximum time for which a close waits until peers have taken all messages. With a network, it is
/// `FI_TCAM_NET_TIMEOUT` if that is longer.
const LINGER: Duration = Duration::from_secs(2);

impl Endpoint {
    pub(crate) fn open(domain: &Arc<Domain>, info: &Info) -> Result<Self> {
        let wanted = Self::address_for(domain, info)?;
        let (tx, rx) = attr::context_counts(info).map_err(|_| Errno::EINVAL)?;
        if [tx, rx].iter().any(|count| (2..=attr::MAX_CONTEXTS).contains(count)) {
            tracing::warn!("an endpoint with several contexts must be opened with fi_scalable_ep");
            return Err(Errno::EINVAL);
        }
        let held = ep_shared::hold(wanted, 0, None, &domain.params)?;
        let address = held.address;
        let endpoint = Self::from_held(domain, info, held, address)?;
        endpoint.start()?;
        Ok(endpoint)
    }

    /// Returns the requested address, or else the address of this host with port 0.
    ///
    /// # Errors
    /// `EINVAL` for an invalid address, or for an endpoint type or capabilities that `fi_getinfo`
    /// does not offer.
    pub(crate) fn address_for(domain: &Domain, info: &Info) -> Result<SocketAddrV4> {
        let kind = info.ep.as_ref().map_or(sys::FI_EP_UNSPEC, |ep| ep.kind);
        if kind != sys::FI_EP_UNSPEC && !attr::EP_TYPES.contains(&kind) {
            return Err(Errno::EINVAL);
        }
        if info.caps & !attr::caps_of(domain.api_version()) != 0 {
            tracing::warn!(
                "fi_endpoint: the capabilities include some that fi_getinfo did not offer"
            );
            return Err(Errno::EINVAL);
        }
        match &info.src_addr {
            Some(bytes) => address::from_bytes(bytes).ok_or(Errno::EINVAL),
            None => Ok(SocketAddrV4::new(address::of_this_host(), 0)),
        }
    }

    /// Creates the endpoint at a held port. `listed` is its *listed address*: peers have this
    /// address of the endpoint, or of the scalable endpoint that it belongs to, in their address
    /// vectors.
    pub(crate) fn from_held(
        domain: &Arc<Domain>,
        info: &Info,
        held: Held,
        listed: SocketAddrV4,
    ) -> Result<Self> {
        let opened = Instant::now();
        let engine = Engine::new(domain, info, pack(listed), &held.own, held.net.clone(), opened)?;
        tracing::info!("endpoint {}", held.address);
        let auto = domain.device_thread().is_some();
        if !auto && domain.device.is_some() {
            tracing::warn!(
                "{}: progress is manual, because its domain was opened by the parent of this process",
                held.address
            );
        }
        let shared = Arc::new(EpShared::new(held, engine, domain.locked, auto));
        exit::register(&shared, &exit::ENDPOINTS);
        Ok(Self { domain: Arc::clone(domain), shared, alias: None })
    }

    /// Starts the report and the trace, and adds the endpoint to its domain. A second call has no
    /// effect.
    pub(crate) fn start(&self) -> Result<()> {
        let Self { domain, shared, .. } = self;
        self.with(|engine| engine.start_records(shared.address))?;
        domain.endpoints.add(shared)
    }

    /// Calls `work` with the engine, under its lock.
    ///
    /// # Errors
    /// Those of `work` and of [`EpShared::why_unusable`].
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Engine) -> Result<T>) -> Result<T> {
        work(self.shared.lock().as_mut().ok_or_else(|| self.shared.why_unusable())?)
    }

    /// Starts an operation to a peer with `work`. If it returns `EAGAIN`, notes that the endpoint
    /// waits for room, and makes progress for programs that only call again.
    ///
    /// # Errors
    /// Those of `work` and of [`EpShared::why_unusable`].
    #[inline]
    fn transmit(&self, work: impl FnOnce(&mut Engine) -> Result<()>) -> Result<()> {
        let sent = match &mut *self.shared.lock() {
            Some(engine) => {
                engine.idle.note_call();
                let sent = work(engine);
                engine.peers.wants_room = sent == Err(Errno::EAGAIN);
                if sent.is_ok() {
                    engine.idle.note_operation();
                }
                self.shared.wake(engine);
                sent
            }
            None => Err(self.shared.why_unusable()),
        };
        if sent == Err(Errno::EAGAIN) {
            self.shared.try_progress();
        }
        sent
    }

    /// Removes the engine of an endpoint that closes, once no thread makes a copy for it. Returns
    /// `None` if it was removed before.
    fn take_engine(&self) -> Option<Box<Engine>> {
        loop {
            let mut guard = self.shared.lock();
            if guard.as_mut().is_none_or(|engine| engine.rx.copies.close()) {
                return guard.take().map(Box::new).or_else(|| self.shared.take_failed());
            }
            drop(guard);
            std::thread::yield_now();
        }
    }

    /// Posts a receive, concurrently with threads that use the engine. It takes the lock of the
    /// engine only for a probe, to handle messages that have come before, to deliver an unexpected
    /// message that matches, and to watch the peer that the receive names.
    fn recv_on_fast_path(&self, posts: &RxFastPath, op: &Recv) -> Result<()> {
        if self.shared.has_failed() {
            return Err(Errno::EOTHER);
        }
        if tagged::probe_flags(op).is_some() {
            return self.shared.with_engine(|engine| {
                engine.idle.note_call();
                engine.recv(op)
            });
        }
        if posts.arrival_of_nic && self.shared.may_have_arrivals() {
            self.shared.receive_arrived()?;
        }
        let deliver = |grant, envelope: &_, message| {
            let delivered = self.shared.with_engine(|engine| {
                engine.deliver(grant, envelope, message);
                Ok(())
            });
            delivered.is_ok()
        };
        let named = self.shared.without_engine(|| posts.recv(op, deliver))?;
        match named {
            None => Ok(()),
            Some(peer) => self.with(|engine| {
                engine.watch(Source::new(peer));
                Ok(())
            }),
        }
    }

    /// Starts the tx fast path, if sends of the endpoint may use it. A stopped fast path is never
    /// started again, because a transmit context that is opened again may have another queue.
    pub(crate) fn start_sends(&self, engine: &Engine) {
        if self.shared.tx_fast_path.get().is_none()
            && let Some(sends) = TxFastPath::of(engine)
        {
            let _ = self.shared.tx_fast_path.set(sends);
        }
    }

    /// Stops the tx fast path, because the queue or the counter of sends changes.
    pub(crate) fn stop_sends(&self) {
        if let Some(sends) = self.shared.tx_fast_path.get() {
            sends.stop();
        }
    }

    /// Returns the packed address under which peers list this endpoint.
    pub(crate) fn listed_address(&self) -> u64 {
        pack(self.shared.address)
    }

    /// Makes progress. Returns true if peers have taken all that was sent, or if the endpoint is
    /// closed. `is_all`: the endpoint sends nothing more, so peers on other hosts get a Bye (the
    /// last frame to them) once all answers are sent.
    fn try_settle(&self, is_all: bool) -> bool {
        self.shared.progress_as_device();
        let mut engine = self.shared.lock();
        let Some(engine) = &mut *engine else { return true };
        engine.look_around();
        if !engine.peers.has_no_pending_answers() || engine.tx.has_copies() {
            return false;
        }
        if is_all {
            engine.peers.transports.send_bye();
        }
        !engine.peers.transports.has_unfinished_sends()
    }

    /// Waits until peers have taken what was sent: buffers that they still hold, copies that they
    /// have not read, answers for which they had no room, and bytes for the network. Logs a warning
    /// if they take too long. Also makes progress on the other endpoints of the domain, because
    /// these may be the peers, and perhaps no other thread polls them. `is_all`: the endpoint
    /// closes, and not only a context of it. The wait then includes confirmations of peers on other
    /// hosts.
    pub(crate) fn linger(&self, is_all: bool) {
        let patience =
            self.shared.lock().as_ref().map_or(LINGER, |it| it.peers.transports.patience());
        let end = Instant::now() + patience.max(LINGER);
        while Instant::now() < end {
            if self.try_settle(is_all) {
                return;
            }
            self.domain.endpoints.progress_others(&self.shared);
            std::thread::yield_now();
        }
        tracing::warn!(
            "closing {}, although peers have not taken all messages from it",
            self.shared.address
        );
    }
}

impl Object for Endpoint {
    type Raw = sys::fid_ep;

    fn finish_uses(&self) {
        self.domain.triggers.finish_turn();
    }

    fn close(&self) -> Result<()> {
        if self.alias.is_some() {
            return Ok(());
        }
        // A forked child has neither the segment nor the threads, and another thread may have held
        // the lock at the fork.
        if !self.shared.own.is_ours() {
            return Ok(());
        }
        self.linger(true);
        if let Some(engine) = &mut *self.shared.lock() {
            // Messages that have come count, even if the program never asked for them.
            engine.receive_before_operation();
            engine.write_report(self.shared.address, WrittenAt::Close);
        }
        let engine = self.take_engine();
        // `fi_close` of a region waits for the copies of the endpoints of the domain. So this
        // endpoint remains there until it makes no more copies.
        self.domain.endpoints.remove(&self.shared);
        if let Some(sends) = self.shared.tx_fast_path.get() {
            sends.close();
        }
        if let Some(device) = &self.domain.device {
            device.remove(&self.shared);
        }
        self.shared.release_port();
        self.shared.own.close();
        if let Some(mut engine) = engine {
            wait_for_copies(self.shared.address, || engine.is_reached());
            engine.leave();
            if let Some(av) = &engine.peers.av {
                av.endpoints.remove(&self.shared);
            }
            for binding in [&engine.completions.tx, &engine.completions.rx] {
                if let Some(cq) = &binding.cq {
                    cq.endpoints.remove(&self.shared);
                }
            }
            for (_, cntr) in engine.completions.counters.all() {
                if let Some(cntr) = cntr {
                    cntr.endpoints.remove(&self.shared);
                }
            }
        }
        // A thread that slept on a queue of this endpoint refers to the endpoint until the thread
        // has woken up. Until then, the address vector and the segment are in use.
        let end = Instant::now() + WAKING;
        while Arc::strong_count(&self.shared) > 1 && Instant::now() < end {
            std::thread::yield_now();
        }
        Ok(())
    }

    fn bind(&self, other: &Bound, bind_flags: u64) -> Result<()> {
        self.bind_object(other, bind_flags)
    }

    fn variables(self: &Arc<Self>) -> Result<Arc<dyn Variables>> {
        Ok(Arc::clone(self) as Arc<dyn Variables>)
    }

    fn alias(self: &Arc<Self>, alias_flags: u64) -> Result<Arc<Self>> {
        let (tx, rx) = match direction(alias_flags) {
            (true, false) => (Some(alias_flags & !flags::TRANSMIT), None),
            (false, true) => (None, Some(alias_flags & !flags::RECV)),
            _ => return Err(Errno::EINVAL),
        };
        ffi::object::check_flags(tx.unwrap_or(0), attr::TX_OP_FLAGS | flags::TRIGGER)?;
        ffi::object::check_flags(rx.unwrap_or(0), attr::RX_OP_FLAGS | flags::TRIGGER)?;
        let tagged_multi = self.with(|engine| Ok(engine.rx.settings.has_tagged_multi()))?;
        let ignored = if tagged_multi { 0 } else { flags::MULTI_RECV };
        let tagged_rx = rx.map(|rx| rx & !ignored);
        Ok(Arc::new(Self {
            domain: Arc::clone(&self.domain),
            shared: Arc::clone(&self.shared),
            alias: Some(Alias { of: Arc::clone(self), tx, rx, tagged_rx }),
        }))
    }

    fn control(&self, command: Control<'_>) -> Result<()> {
        self.with(|engine| match command {
            Control::Enable => {
                let Some(av) = &engine.peers.av else { return Err(Errno::ENOAV) };
                let addresses = av.count();
                if engine.completions.tx.cq.is_none() && engine.completions.rx.cq.is_none() {
                    return Err(Errno::ENOCQ);
                }
                engine.enabled = true;
                engine.set_processes(addresses);
                engine.update_population();
                engine.show();
                if let Some(posts) = RxFastPath::of(engine) {
                    let _ = self.shared.rx_fast_path.set(posts);
                }
                if !engine.is_context {
                    self.start_sends(engine);
                }
                self.domain.device_thread().map_or(Ok(()), |device| device.add(&self.shared))
            }
            Control::GetOpsFlag(value) => {
                let alias = self.alias.as_ref();
                *value = match direction(*value) {
                    (true, false) => {
                        alias.and_then(|it| it.tx).unwrap_or(engine.tx.settings.op_flags())
                    }
                    (false, true) => {
                        alias.and_then(|it| it.rx).unwrap_or(engine.rx.settings.op_flags())
                    }
                    _ => return Err(Errno::EINVAL),
                };
                Ok(())
            }
            Control::SetOpsFlag(_) if self.alias.is_some() => Err(Errno::EOPNOTSUPP),
            Control::SetOpsFlag(value) => match direction(value) {
                (true, false) => engine.tx.settings.set_op_flags(value),
                (false, true) => engine.rx.settings.set_op_flags(value),
                _ => Err(Errno::EINVAL),
            },
            _ => Err(Errno::ENOSYS),
        })
    }
}

impl Alias {
    /// Returns the flags of an operation through an alias. Those of the alias (`own`), if there are
    /// any, replace the default flags.
    fn flags(flags: OpFlags, own: Option<u64>) -> OpFlags {
        match (own, flags) {
            (Some(own), OpFlags::Default) => OpFlags::Given(own),
            _ => flags,
        }
    }
}

/// Starts an operation of an endpoint, or of a context of one, when its trigger fires.
pub(crate) fn start_later<E>(of: &Arc<E>, trigger: &Trigger, op: EndpointOp) -> Result<()>
where
    E: OfDomain + Start + 'static,
{
    of.check_op(&op)?;
    let counter = of.domain().own::<Counter>(&trigger.counter)?;
    of.domain().triggers.add(Waiting {
        name: None,
        counter: Arc::downgrade(&counter) as Weak<dyn Count>,
        threshold: trigger.threshold,
        completion: None,
        action: Action::Start(Arc::downgrade(of) as Weak<dyn Start>, op),
    });
    Ok(())
}

impl Variables for Endpoint {
    fn list(&self) -> &'static [Variable] {
        &profile::VARIABLES
    }

    fn values(&self) -> Result<Vec<u64>> {
        self.with(|engine| Ok(profile::values(&engine.rx.device.lock())))
    }
}

impl OfDomain for Endpoint {
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

impl ops::ep::Endpoint for Endpoint {
    #[inline]
    fn send(&self, op: &Send) -> Result<()> {
        if let Some(alias) = &self.alias {
            let flags = Alias::flags(op.flags, alias.tx);
            return EndpointOp::Send(Send { flags, ..op.clone() }).submit(&alias.of);
        }
        if let Some(sends) = self.shared.tx_fast_path.get()
            && self.shared.without_engine(|| sends.send(op))
        {
            return Ok(());
        }
        self.transmit(|engine| engine.send(op))
    }

    #[inline(always)]
    fn recv(&self, op: &Recv) -> Result<()> {
        if let Some(alias) = &self.alias {
            let own = if op.tag.is_some() { alias.tagged_rx } else { alias.rx };
            let flags = Alias::flags(op.flags, own);
            return EndpointOp::Recv(Recv { flags, ..op.clone() }).submit(&alias.of);
        }
        if let Some(posts) = self.shared.rx_fast_path.get() {
            // `Rx::post` explains why the receive is copied.
            return self.recv_on_fast_path(posts, &op.clone());
        }
        match &mut *self.shared.lock() {
            Some(engine) => {
                engine.idle.note_call();
                let posted = engine.recv(op);
                self.shared.wake(engine);
                posted
            }
            None => Err(self.shared.why_unusable()),
        }
    }

    fn rma(&self, op: &Rma) -> Result<()> {
        if let Some(alias) = &self.alias {
            let flags = Alias::flags(op.flags, alias.tx);
            return EndpointOp::Rma(Rma { flags, ..op.clone() }).submit(&alias.of);
        }
        self.transmit(|engine| engine.rma(op))
    }

    fn atomic(&self, op: &Atomic) -> Result<()> {
        if let Some(alias) = &self.alias {
            let flags = Alias::flags(op.flags, alias.tx);
            return EndpointOp::Atomic(Atomic { flags, ..op.clone() }).submit(&alias.of);
        }
        self.transmit(|engine| engine.atomic(op))
    }

    fn trigger(self: &Arc<Self>, trigger: &Trigger, op: EndpointOp) -> Result<()> {
        start_later(self, trigger, op)
    }

    fn cancel(&self, context: OpContext) -> Result<()> {
        self.with(|engine| engine.cancel(context))
    }

    fn name(&self) -> Result<Vec<u8>> {
        Ok(self.shared.name_at(self.shared.address))
    }

    fn option(&self, name: u32) -> Result<usize> {
        self.with(|engine| match name {
            sys::FI_OPT_MIN_MULTI_RECV => Ok(engine.rx.settings.min_multi_recv()),
            _ => engine.tx.settings.sizes.option(name),
        })
    }

    fn set_option(&self, name: u32, value: usize) -> Result<()> {
        self.with(|engine| match name {
            sys::FI_OPT_MIN_MULTI_RECV => {
                engine.rx.settings.set_min_multi_recv(value);
                Ok(())
            }
            _ => engine.tx.settings.sizes.set_option(name, value),
        })
    }
}

impl Start for Endpoint {
    fn start_op(&self, op: &EndpointOp, deferred: Option<DeferredOp>) -> Result<()> {
        self.with(|engine| {
            let started = engine.start(op, deferred);
            self.shared.wake(engine);
            started
        })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.alias.is_some() {
            return;
        }
        tracing::debug!(
            "endpoint {} of {} peers closed",
            self.shared.address,
            self.domain.peers.len()
        );
    }
}
