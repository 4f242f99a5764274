// SPDX-License-Identifier: BSD-2-Clause
//! `fi_domain(3)`.

use std::sync::Arc;

use ffi::{
    Errno, Result, flags,
    info::{Info, RxAttr, TxAttr},
    object::{Bindable, Bound, Control, Object},
    ops, sys,
};
use nic::params::Params;
use parking_lot::Mutex;

use crate::{
    av::AddressVector,
    channel::{census, node_pool, shared_av},
    cntr::Counter,
    cq::CompletionQueue,
    device_thread::DeviceThread,
    drivers::Drivers,
    ep::Endpoint,
    eq::EventQueue,
    fabric::Fabric,
    init,
    mr::{self, MemoryRegion, Regions},
    peers::Peers,
    poll::PollSet,
    report,
    srx::{SharedReceive, SharedTransmit},
    trigger::Triggers,
};

/// Objects that were opened on a domain.
pub(crate) trait OfDomain: Bindable {
    /// The domain.
    fn domain(&self) -> &Arc<Domain>;
}

/// A domain: the peers of a process, and what its objects have in common.
#[derive(Debug)]
pub(crate) struct Domain {
    fabric: Arc<Fabric>,
    /// The `FI_TCAM_*` parameters in force.
    pub(crate) params: Params,
    /// Whether calls come from several threads at once.
    pub(crate) locked: bool,
    /// Every address ever named.
    pub(crate) peers: Arc<Peers>,
    av_type: u32,
    /// Every endpoint.
    pub(crate) endpoints: Drivers,
    /// Memory that peers may use.
    pub(crate) regions: Regions,
    /// Operations that wait for a counter.
    pub(crate) triggers: Arc<Triggers>,
    eq: Mutex<Option<Arc<EventQueue>>>,
    /// Makes progress, if that is to be automatic.
    pub(crate) device: Option<Arc<DeviceThread>>,
}

impl Domain {
    pub(crate) fn open(fabric: &Arc<Fabric>, info: &Info) -> Result<Self> {
        let params = init::params()?;
        let attr = info.domain.as_ref();
        let living = census::clean_up();
        node_pool::clean_up();
        shared_av::clean_up();
        tracing::info!("{living} endpoints of this user live on this host");
        let auto = attr.is_some_and(|attr| attr.data_progress == sys::FI_PROGRESS_AUTO);
        let locked = auto || attr.is_none_or(|attr| init::needs_locks(attr.threading));
        let triggers = Arc::new(Triggers::default());
        Ok(Self {
            fabric: Arc::clone(fabric),
            params,
            locked,
            regions: Regions::new(attr.map_or(0, |attr| attr.mr_mode.cast_unsigned()), locked),
            device: auto.then(|| DeviceThread::start(&triggers)).transpose()?,
            triggers,
            endpoints: Drivers::new(locked),
            peers: Arc::new(Peers::new()),
            av_type: attr.map_or(sys::FI_AV_UNSPEC, |attr| attr.av_type),
            eq: Mutex::default(),
        })
    }

    /// Version of the API the application was written for.
    pub(crate) fn api_version(&self) -> u32 {
        self.fabric.api_version()
    }

    /// An object that is to work with others of this domain.
    ///
    /// # Errors
    /// `EDOMAIN` for those of another: peers have other numbers there.
    pub(crate) fn own<T: OfDomain>(&self, other: &Bound) -> Result<Arc<T>> {
        other.get().and_then(|object| self.check_own(object))
    }

    /// The same for an object that was found already.
    pub(crate) fn check_own<T: OfDomain>(&self, object: Arc<T>) -> Result<Arc<T>> {
        if std::ptr::eq(&**object.domain(), self) { Ok(object) } else { Err(Errno::EDOMAIN) }
    }

    /// The event queue that an address vector without one reports to.
    pub(crate) fn eq(&self) -> Option<Arc<EventQueue>> {
        self.eq.lock().clone()
    }
}

impl Object for Domain {
    fn bind(&self, other: &Bound, bind_flags: u64) -> Result<()> {
        // Memory is registered when the call returns: no event tells of it (FI_REG_MR).
        ffi::object::only(bind_flags, flags::EVENT)?;
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
            Control::QueueWork(work) => self.triggers.queue(self, &work),
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
    type SharedReceive = SharedReceive;
    type SharedTransmit = SharedTransmit;
    type PollSet = PollSet;

    fn av_open(self: &Arc<Self>, attr: &ops::av::Attr) -> Result<Arc<AddressVector>> {
        if attr.kind != sys::FI_AV_UNSPEC
            && self.av_type != sys::FI_AV_UNSPEC
            && attr.kind != self.av_type
        {
            tracing::info!("an address vector's type is not the one its domain was opened with");
            return Err(Errno::EINVAL);
        }
        AddressVector::open(self, attr, self.av_type).map(Arc::new)
    }

    fn cq_open(self: &Arc<Self>, attr: &ops::cq::Attr) -> Result<Arc<CompletionQueue>> {
        CompletionQueue::open(self, attr).map(Arc::new)
    }

    fn cntr_open(self: &Arc<Self>, attr: &ops::cntr::Attr) -> Result<Arc<Counter>> {
        Counter::open(self, attr).map(Arc::new)
    }

    fn endpoint(self: &Arc<Self>, info: &Info) -> Result<Arc<Endpoint>> {
        Endpoint::open(self, info).map(Arc::new)
    }

    fn mr_register(self: &Arc<Self>, attr: &ops::mr::Attr) -> Result<Arc<MemoryRegion>> {
        MemoryRegion::register(self, attr).map(Arc::new)
    }

    fn shared_receive(self: &Arc<Self>, attr: &RxAttr) -> Result<Arc<SharedReceive>> {
        let srx = SharedReceive::open(self, attr).map(Arc::new)?;
        report::register_shared(&srx);
        Ok(srx)
    }

    fn shared_transmit(self: &Arc<Self>, attr: &TxAttr) -> Result<Arc<SharedTransmit>> {
        SharedTransmit::open(self, attr).map(Arc::new)
    }

    fn poll_open(self: &Arc<Self>, flags: u64) -> Result<Arc<PollSet>> {
        PollSet::open(self, flags).map(Arc::new)
    }
}
