// SPDX-License-Identifier: BSD-2-Clause
//! Opens the objects of a fabric and of a domain, and handles the other calls of fabrics and
//! domains. It is the only file that names all types of objects.

use std::sync::{Arc, Weak};

use ffi::{
    Errno, Result, flags,
    info::{Info, RxAttr, TxAttr},
    object::{Bound, Control, Object},
    ops::{
        self,
        work::{Deferred, RawWork, Work},
    },
    sys,
};
use host::{node_pool, owner, shared_av};
use parking_lot::Mutex;

use crate::{
    av::AddressVector,
    cntr::Counter,
    context::EpContext,
    cq::CompletionQueue,
    domain::{Domain, OfDomain},
    ep::Endpoint,
    eq::EventQueue,
    fabric::Fabric,
    mr::{self, MemoryRegion},
    params,
    poll::PollSet,
    record::exit,
    regions::Regions,
    sep::ScalableEndpoint,
    srx::SharedReceive,
    stx::SharedTransmit,
    wait::{
        device_thread::DeviceThread,
        pollable::Count,
        set::WaitSet,
        triggers::{Action, Start, Triggers, Waiting},
    },
};

impl Domain {
    pub(crate) fn open(fabric: &Arc<Fabric>, info: &Info) -> Result<Self> {
        let params = params::params()?;
        let attr = info.domain.as_ref();
        let living = owner::clean_up();
        node_pool::clean_up();
        shared_av::clean_up();
        tracing::info!("{living} endpoints of this user are open on this host");
        let auto = attr.is_some_and(|attr| attr.data_progress == sys::FI_PROGRESS_AUTO);
        let locked = auto || attr.is_none_or(|attr| params::needs_locks(attr.threading));
        let triggers = Arc::new(Triggers::default());
        Ok(Self {
            fabric: Arc::clone(fabric),
            params,
            locked,
            regions: Regions::new(attr.map_or(0, |attr| attr.mr_mode.cast_unsigned()), locked),
            device: auto.then(|| DeviceThread::start(&triggers)).transpose()?,
            triggers,
            endpoints: WaitSet::new(locked),
            unpolled: Mutex::default(),
            peers: Arc::default(),
            av_type: attr.map_or(sys::FI_AV_UNSPEC, |attr| attr.av_type),
            eq: Mutex::default(),
        })
    }
}

impl Object for Domain {
    type Raw = sys::fid_domain;

    fn bind(&self, other: &Bound, bind_flags: u64) -> Result<()> {
        // FI_REG_MR requests events of registrations. It is refused, because memory is registered
        // when the call returns, and no event is written.
        ffi::object::check_flags(bind_flags, flags::EVENT)?;
        *self.eq.lock() = Some(other.get::<EventQueue>()?);
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.eq.lock().take();
        if let Some(device) = &self.device {
            device.stop();
        }
        Ok(())
    }

    fn control(&self, command: Control<'_>) -> Result<()> {
        match command {
            Control::QueueWork(work) => queue_work(self, &work),
            Control::CancelWork(work) => self.triggers.cancel(work.name()),
            Control::FlushWork => {
                self.triggers.flush();
                Ok(())
            }
            Control::MapRawKey(_, raw, key) => {
                *key = mr::map_raw_key(raw)?;
                Ok(())
            }
            Control::UnmapKey(_) => Ok(()),
            _ => Err(Errno::ENOSYS),
        }
    }
}

impl ops::domain::Domain for Domain {
    type AddressVector = AddressVector;
    type CompletionQueue = CompletionQueue;
    type Counter = Counter;
    type Endpoint = Endpoint;
    type MemoryRegion = MemoryRegion;
    type ScalableEndpoint = ScalableEndpoint;
    type SharedReceive = SharedReceive;
    type SharedTransmit = SharedTransmit;
    type PollSet = PollSet;

    fn av_open(self: &Arc<Self>, attr: &ops::av::AvAttr) -> Result<Arc<AddressVector>> {
        if attr.kind != sys::FI_AV_UNSPEC
            && self.av_type != sys::FI_AV_UNSPEC
            && attr.kind != self.av_type
        {
            tracing::info!("fi_av_open: the type differs from the av_type of the domain");
            return Err(Errno::EINVAL);
        }
        AddressVector::open(self, attr, self.av_type).map(Arc::new)
    }

    fn cq_open(self: &Arc<Self>, attr: &ops::cq::CqAttr) -> Result<Arc<CompletionQueue>> {
        CompletionQueue::open(self, attr).map(Arc::new)
    }

    fn cntr_open(self: &Arc<Self>, attr: &ops::cntr::CntrAttr) -> Result<Arc<Counter>> {
        Counter::open(self, attr).map(Arc::new)
    }

    fn endpoint(self: &Arc<Self>, info: &Info) -> Result<Arc<Endpoint>> {
        Endpoint::open(self, info).map(Arc::new)
    }

    fn scalable_endpoint(self: &Arc<Self>, info: &Info) -> Result<Arc<ScalableEndpoint>> {
        ScalableEndpoint::open(self, info).map(Arc::new)
    }

    fn mr_register(self: &Arc<Self>, attr: &ops::mr::MrAttr) -> Result<Arc<MemoryRegion>> {
        MemoryRegion::register(self, attr).map(Arc::new)
    }

    fn shared_receive(self: &Arc<Self>, attr: &RxAttr) -> Result<Arc<SharedReceive>> {
        let srx = SharedReceive::open(self, attr).map(Arc::new)?;
        exit::register(&srx, &exit::CONTEXTS);
        Ok(srx)
    }

    fn shared_transmit(self: &Arc<Self>, attr: &TxAttr) -> Result<Arc<SharedTransmit>> {
        SharedTransmit::open(self, attr).map(Arc::new)
    }

    fn poll_open(self: &Arc<Self>, flags: u64) -> Result<Arc<PollSet>> {
        PollSet::open(self, flags).map(Arc::new)
    }
}

/// Handles `FI_QUEUE_WORK`: adds deferred work to the triggers of the domain.
fn queue_work(domain: &Domain, raw: &RawWork) -> Result<()> {
    match raw.read::<Endpoint, Counter>() {
        // The fid in the work may be a context of a scalable endpoint instead of an endpoint.
        Err(Errno::EINVAL) => defer(domain, raw.read::<EpContext, Counter>()?),
        work => defer(domain, work?),
    }
}

fn defer<E: OfDomain + Start>(domain: &Domain, deferred: Deferred<E, Counter>) -> Result<()> {
    let Deferred { name, trigger, threshold, completion, work } = deferred;
    let trigger = domain.check_own(trigger)?;
    let completion = completion.map(|counter| domain.check_own(counter)).transpose()?;
    let counted = |counter: Arc<Counter>| {
        counter.expect_other_events();
        Arc::downgrade(&counter) as Weak<dyn Count>
    };
    let action = match work {
        Work::Op(endpoint, op) => {
            let endpoint = domain.check_own(endpoint)?;
            endpoint.check_op(&op)?;
            Action::Start(Arc::downgrade(&endpoint) as Weak<dyn Start>, op)
        }
        Work::Set(counter, value) => Action::Set(counted(domain.check_own(counter)?), value),
        Work::Add(counter, value) => Action::Add(counted(domain.check_own(counter)?), value),
    };
    domain.triggers.add(Waiting {
        name: Some(name),
        counter: Arc::downgrade(&trigger) as Weak<dyn Count>,
        threshold,
        completion: completion.map(counted),
        action,
    });
    Ok(())
}

impl ops::fabric::Fabric for Fabric {
    type Domain = Domain;
    type EventQueue = EventQueue;

    fn domain(self: &Arc<Self>, info: &Info) -> Result<Arc<Domain>> {
        Domain::open(self, info).map(Arc::new)
    }

    fn eq_open(self: &Arc<Self>, attr: &ops::eq::EqAttr) -> Result<Arc<EventQueue>> {
        EventQueue::open(self, attr).map(Arc::new)
    }

    fn try_wait(&self, object: &Bound) -> Result<()> {
        match object.class() {
            sys::FI_CLASS_CQ => object.get::<CompletionQueue>()?.try_wait(),
            sys::FI_CLASS_CNTR => object.get::<Counter>()?.try_wait(),
            sys::FI_CLASS_EQ => object.get::<EventQueue>()?.try_wait(),
            _ => Err(Errno::EINVAL),
        }
    }
}
