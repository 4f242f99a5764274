// SPDX-License-Identifier: BSD-2-Clause
//! Shared contexts (`fi_srx_context`, `fi_stx_context`; `fi_endpoint(3)`).
//!
//! The device of a shared receive context takes the messages of every endpoint that is
//! bound to it. What an endpoint's message needs (its bytes, an answer to its sender, a
//! completion) is that endpoint's business: a message that is kept says who holds it.
//!
//! ```text
//! arrival   engine locked: context locked: match or keep; engine delivers
//! post      context locked: match; unlocked: the holder's engine locked: it delivers
//! ```

use std::{
    collections::HashMap,
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use ffi::{
    Context, Errno, Result, flags,
    info::{RxAttr, TxAttr},
    object::{Bindable, Control, Object},
    ops::{
        self,
        ep::{OpFlags, Recv, Send, atomic::Atomic, rma::Rma},
        profile::{Variable, Variables},
        work::{Op, Trigger},
    },
    serial::{Serial, SerialGuard},
    sys,
};
use matching::Source;
use nic::{
    device::Device,
    message::{Envelope, Grant, Post},
    report::WrittenAt,
};
use parking_lot::Mutex;
use slab::Slab;

use crate::{
    attr,
    channel::{node_pool::NodePool, owner::Owner},
    domain::{Domain, OfDomain},
    engine::{self, Directed, Engine, Kept, MIN_MULTI_RECV, RecvOp},
    ep::Port,
    flow::Flow,
    msg::{RecvDefaults, receive_of},
    profile, report, tagged, trace,
};

/// Where an endpoint's messages are matched.
#[derive(Debug)]
pub(crate) struct Matching {
    pub(crate) own: Device<RecvOp, Kept>,
    pub(crate) shared: Option<Member>,
}

/// What an endpoint knows of the context it is bound to.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) srx: Arc<SharedReceive>,
    /// Its number there.
    pub(crate) holder: u32,
}

/// Exclusive use of the device.
pub(crate) enum Matcher<'a> {
    Own(&'a mut Device<RecvOp, Kept>),
    Shared(SerialGuard<'a, State>),
}

impl Deref for Matcher<'_> {
    type Target = Device<RecvOp, Kept>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Own(device) => device,
            Self::Shared(state) => &state.device,
        }
    }
}

impl DerefMut for Matcher<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Own(device) => device,
            Self::Shared(state) => &mut state.device,
        }
    }
}

impl Matcher<'_> {
    /// Something goes into a receive's buffer, or an error to its queue.
    #[inline]
    pub(crate) fn begin(&mut self, op: &RecvOp, last: bool) {
        if let Self::Shared(state) = self {
            state.begin(op, last);
        }
    }
}

impl Matching {
    pub(crate) fn new(own: Device<RecvOp, Kept>) -> Self {
        Self { own, shared: None }
    }

    #[inline]
    pub(crate) fn lock(&mut self) -> Matcher<'_> {
        match &self.shared {
            None => Matcher::Own(&mut self.own),
            Some(member) => Matcher::Shared(member.srx.state.lock()),
        }
    }

    /// Who holds what this endpoint keeps.
    #[inline]
    pub(crate) fn holder(&self) -> u32 {
        self.shared.as_ref().map_or(0, |member| member.holder)
    }

    /// Leaves the shared context, if there is one: what it held for the endpoint is lost.
    pub(crate) fn leave(&mut self) {
        let Some(Member { srx, holder }) = self.shared.take() else { return };
        let mut state = srx.state.lock();
        let contexts = state.device.contexts().into_iter();
        let lost: usize =
            contexts.map(|context| context.drop_unexpected(|_, kept| kept.holder == holder)).sum();
        drop(state);
        if lost > 0 {
            tracing::warn!("{lost} messages that nobody received are lost with their endpoint");
        }
        srx.members.lock().try_remove(holder as usize);
    }
}

/// A shared receive context.
#[derive(Debug)]
pub(crate) struct SharedReceive {
    pub(crate) domain: Arc<Domain>,
    /// Tells it from others of this process in reports and traces.
    pub(crate) name: String,
    pub(crate) opened: Instant,
    /// The process that opened it.
    pub(crate) pid: u32,
    pub(crate) processes: u32,
    pub(crate) node_pool: Option<Arc<NodePool>>,
    state: Serial<State>,
    /// The endpoints bound to it.
    members: Mutex<Slab<Arc<Port>>>,
    directed: Directed,
    tagged_multi: bool,
    op_flags: AtomicU64,
    min_multi_recv: AtomicUsize,
}

/// What one thread at a time uses.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) device: Device<RecvOp, Kept>,
    flow: Flow,
    /// Messages under way into multi-receive buffers, by the context and address of these:
    /// whichever endpoint has the last one gives the buffer back.
    parts: HashMap<(Context, usize), Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    under_way: u32,
    /// No further message goes into the buffer.
    ended: bool,
}

impl State {
    fn begin(&mut self, op: &RecvOp, last: bool) {
        if op.multi {
            let parts = self.parts.entry((op.context, op.buffer.addr())).or_default();
            parts.under_way += 1;
            parts.ended |= last;
        }
    }
}

impl State {
    /// Nothing goes into a receive's buffer after all: as if it had not begun.
    fn take_back(&mut self, op: &RecvOp, last: bool) {
        let key = (op.context, op.buffer.addr());
        if let Some(parts) = self.parts.get_mut(&key) {
            parts.under_way -= 1;
            parts.ended &= !last;
            if parts.under_way == 0 {
                self.parts.remove(&key);
            }
        }
    }
}

impl SharedReceive {
    pub(crate) fn open(domain: &Arc<Domain>, attr: &RxAttr) -> Result<Self> {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        if attr.caps & !(attr::caps_of(domain.api_version()) | attr::DOMAIN_CAPS) != 0
            || attr.op_flags & !attr::RX_OP_FLAGS != 0
        {
            return Err(Errno::EINVAL);
        }
        let params = &domain.params;
        let opened = Instant::now();
        let node_pool = engine::node_pool(params, &Owner::of_process())?;
        let directed = Directed::of(attr.caps);
        let (mut device, processes) = engine::device(params, directed, node_pool.as_ref(), opened)?;
        let name = format!("srx{}", OPENED.fetch_add(1, Ordering::Relaxed));
        trace::start(&mut device, params, &domain.peers, &name, &name)?;
        Ok(Self {
            domain: Arc::clone(domain),
            name,
            opened,
            pid: std::process::id(),
            processes,
            node_pool,
            state: Serial::new(
                State { device, flow: Flow::from_params(params), parts: HashMap::new() },
                domain.locked,
            ),
            members: Mutex::default(),
            directed,
            tagged_multi: attr.caps & flags::TAGGED_MULTI_RECV != 0,
            op_flags: AtomicU64::new(attr.op_flags),
            min_multi_recv: AtomicUsize::new(MIN_MULTI_RECV),
        })
    }

    /// What [`Matcher::begin`] began is told; whether the buffer is given back with it.
    pub(crate) fn end(&self, op: &RecvOp) -> bool {
        let mut state = self.state.lock();
        let key = (op.context, op.buffer.addr());
        let Some(parts) = state.parts.get_mut(&key) else { return false };
        parts.under_way -= 1;
        let (over, ended) = (parts.under_way == 0, parts.ended);
        if over {
            state.parts.remove(&key);
        }
        over && ended
    }

    /// Takes an endpoint in.
    pub(crate) fn join(self: &Arc<Self>, port: &Arc<Port>) -> Member {
        let holder = self.members.lock().insert(Arc::clone(port)) as u32;
        Member { srx: Arc::clone(self), holder }
    }

    /// The counts of the device, for a report.
    pub(crate) fn with_device<T>(&self, work: impl FnOnce(&Device<RecvOp, Kept>) -> T) -> T {
        work(&self.state.lock().device)
    }

    /// The same when the process exits, if nobody is in the middle of a call.
    pub(crate) fn with_device_at_exit<T>(
        &self,
        work: impl FnOnce(&Device<RecvOp, Kept>) -> T,
    ) -> Option<T> {
        self.state.lock_at_exit().map(|state| work(&state.device))
    }

    /// Has an endpoint do something, any one if none is named.
    fn with_member<T>(
        &self,
        holder: Option<u32>,
        work: impl FnOnce(&mut Engine, &Port) -> Result<T>,
    ) -> Result<T> {
        let port = {
            let members = self.members.lock();
            match holder {
                Some(holder) => members.get(holder as usize).cloned(),
                None => members.iter().next().map(|(_, port)| Arc::clone(port)),
            }
        };
        let port = port.ok_or(Errno::EOPBADSTATE)?;
        let mut engine = port.engine.lock();
        let engine = engine.as_mut().ok_or(Errno::EOPBADSTATE)?;
        let done = work(engine, &port);
        port.wake_device(engine);
        done
    }

    fn source_key(&self, address: u64, tagged: bool) -> Result<Source> {
        if !self.directed.is_named(address, tagged)? {
            return Ok(Source::ANY);
        }
        self.with_member(None, |engine, _| engine.source_of_address(address))
    }

    /// Has a member, if one is left, look at the peer that a posted receive names.
    fn watch(&self, source: Source) {
        if !source.is_any() {
            let _ = self.with_member(None, |engine, _| {
                engine.watch(source);
                Ok(())
            });
        }
    }

    /// Gives a message to its receive; false if the endpoint that holds it was just closed, and
    /// the message with it.
    fn deliver(&self, grant: Grant<RecvOp>, envelope: &Envelope, message: Kept) -> bool {
        let (op, last) = (grant.data.clone(), grant.last);
        let delivered = self.with_member(Some(message.holder), |engine, port| {
            engine.deliver_kept(&port.own, grant, envelope, message);
            Ok(())
        });
        if delivered.is_err() {
            tracing::warn!("a message is lost with its endpoint, which was just closed");
            self.state.lock().take_back(&op, last);
        }
        delivered.is_ok()
    }

    fn probe(&self, op: &Recv, given: u64) -> Result<()> {
        let probe = tagged::Probe::read(op, given)?;
        if probe == tagged::Probe::TakeClaimed {
            let claimed = self.state.lock().device.tagged.claimed(op.context.0 as u64);
            let (envelope, kept) = claimed.ok_or(Errno::ENOMSG)?;
            return self.with_member(Some(kept.holder), |engine, port| {
                engine.give_claimed(&port.own, op, given, envelope, kept);
                Ok(())
            });
        }
        // What lies in the rings has arrived, too.
        let ports: Vec<_> = self.members.lock().iter().map(|(_, port)| Arc::clone(port)).collect();
        for port in ports {
            port.progress();
        }
        let source = self.source_key(op.source, true)?;
        let found = probe.find(&mut self.state.lock().device, op, source)?;
        let holder = found.as_ref().map(|found| found.holder);
        self.with_member(holder, |engine, port| {
            engine.probed(&port.own, op, found);
            Ok(())
        })
    }
}

impl Variables for SharedReceive {
    fn list(&self) -> &'static [Variable] {
        &profile::VARIABLES
    }

    fn values(&self) -> Result<Vec<u64>> {
        Ok(self.with_device(profile::values))
    }
}

impl Object for SharedReceive {
    fn variables(self: &Arc<Self>) -> Result<Arc<dyn Variables>> {
        Ok(Arc::clone(self) as Arc<dyn Variables>)
    }

    fn close(&self) -> Result<()> {
        report::write_shared(self, WrittenAt::Close);
        Ok(())
    }

    fn control(&self, command: Control<'_>) -> Result<()> {
        match command {
            Control::Enable => Ok(()),
            Control::GetOpsFlag(value) => {
                *value = self.op_flags.load(Ordering::Relaxed);
                Ok(())
            }
            Control::SetOpsFlag(value) => {
                let op_flags = value & !flags::RECV;
                ffi::object::only(op_flags, attr::RX_OP_FLAGS)?;
                self.op_flags.store(op_flags, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(Errno::ENOSYS),
        }
    }
}

impl Bindable for SharedReceive {
    type Raw = sys::fid_ep;
}

impl OfDomain for SharedReceive {
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

impl ops::ep::Endpoint for SharedReceive {
    fn send(&self, _op: &Send) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn rma(&self, _op: &Rma) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn atomic(&self, _op: &Atomic) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn trigger(self: &Arc<Self>, _trigger: &Trigger, _op: Op) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn recv(&self, op: &Recv) -> Result<()> {
        if let OpFlags::Given(given) = op.flags
            && given & tagged::PROBE_FLAGS != 0
        {
            return self.probe(op, given);
        }
        let defaults = RecvDefaults {
            op_flags: self.op_flags.load(Ordering::Relaxed),
            min_multi_recv: self.min_multi_recv.load(Ordering::Relaxed),
            tagged_multi: self.tagged_multi,
            work: 0,
        };
        let tagged = op.tag.is_some();
        let source = self.source_key(op.source, tagged)?;
        let mut receive = receive_of(op, defaults, source)?;
        let mut state = self.state.lock();
        let mut posted = state.device.context(tagged).post(&mut receive);
        if let Post::Pending = posted {
            state.flow.posted(tagged);
        }
        loop {
            match posted {
                Post::Pending => {
                    drop(state);
                    self.watch(source);
                    return Ok(());
                }
                Post::HeldBack => state.flow.hold_post(tagged)?,
                Post::Matched { grant, envelope, message, again } => {
                    state.begin(&grant.data, grant.last);
                    drop(state);
                    let offset = grant.offset;
                    if self.deliver(grant, &envelope, message) {
                        if !again {
                            return Ok(());
                        }
                    } else if let Some(multi) = &mut receive.multi {
                        // The receive goes on as if the message had not been there.
                        multi.used = offset;
                    }
                    state = self.state.lock();
                }
            }
            posted = state.device.context(tagged).post_anyway(&mut receive);
        }
    }

    fn cancel(&self, context: Context) -> Result<()> {
        self.with_member(None, |engine, _| engine.cancel(context))
    }

    fn name(&self) -> Result<Vec<u8>> {
        Err(Errno::EOPNOTSUPP)
    }

    fn set_name(&self, _address: &[u8]) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    fn option(&self, name: u32) -> Result<usize> {
        match name {
            sys::FI_OPT_MIN_MULTI_RECV => Ok(self.min_multi_recv.load(Ordering::Relaxed)),
            _ => Err(Errno::ENOPROTOOPT),
        }
    }

    fn set_option(&self, name: u32, value: usize) -> Result<()> {
        match name {
            sys::FI_OPT_MIN_MULTI_RECV => {
                self.min_multi_recv.store(value, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(Errno::ENOPROTOOPT),
        }
    }
}

/// A shared transmit context. Every endpoint sends on its own: there is nothing to share.
#[derive(Debug)]
pub(crate) struct SharedTransmit {
    domain: Arc<Domain>,
}

impl SharedTransmit {
    pub(crate) fn open(domain: &Arc<Domain>, attr: &TxAttr) -> Result<Self> {
        if attr.caps & !(attr::caps_of(domain.api_version()) | attr::DOMAIN_CAPS) != 0
            || attr.op_flags & !attr::TX_OP_FLAGS != 0
        {
            return Err(Errno::EINVAL);
        }
        Ok(Self { domain: Arc::clone(domain) })
    }
}

impl Object for SharedTransmit {}

impl Bindable for SharedTransmit {
    type Raw = sys::fid_stx;
}

impl OfDomain for SharedTransmit {
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}
