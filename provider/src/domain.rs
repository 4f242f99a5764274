// SPDX-License-Identifier: BSD-2-Clause
//! `fi_domain(3)`.

use std::sync::Arc;

use ffi::{
    Errno, Result,
    object::{Bindable, Bound},
};
use nic::params::Params;
use parking_lot::Mutex;

use crate::{
    eq::EventQueue,
    fabric::Fabric,
    peers::Peers,
    regions::Regions,
    wait::{device_thread::DeviceThread, pollable::Pollable, set::WaitSet, triggers::Triggers},
};

/// Objects that were opened on a domain.
pub(crate) trait OfDomain: Bindable {
    /// The domain.
    fn domain(&self) -> &Arc<Domain>;
}

/// A domain: the peers of a process, and what its objects have in common.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) fabric: Arc<Fabric>,
    /// The `FI_TCAM_*` parameters in force.
    pub(crate) params: Params,
    /// Whether calls come from several threads at once.
    pub(crate) locked: bool,
    /// Every address ever named.
    pub(crate) peers: Arc<Peers>,
    pub(crate) av_type: u32,
    /// Every endpoint.
    pub(crate) endpoints: WaitSet,
    /// Contexts of scalable endpoints of which neither direction is open: other endpoints look after them.
    pub(crate) unpolled: Mutex<Vec<Arc<dyn Pollable>>>,
    /// Memory that peers may use.
    pub(crate) regions: Regions,
    /// Operations that wait for a counter.
    pub(crate) triggers: Arc<Triggers>,
    pub(crate) eq: Mutex<Option<Arc<EventQueue>>>,
    /// Makes progress, if that is to be automatic.
    pub(crate) device: Option<Arc<DeviceThread>>,
}

impl Domain {
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
