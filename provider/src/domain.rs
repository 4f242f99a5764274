// SPDX-License-Identifier: BSD-2-Clause
//! `fi_domain(3)`.

use std::sync::Arc;

use ffi::{
    Errno, Result,
    object::{Bound, Object},
};
use nic::params::Params;
use parking_lot::Mutex;

use crate::{
    eq::EventQueue,
    fabric::Fabric,
    peer_numbers::PeerNumbers,
    regions::Regions,
    wait::{device_thread::DeviceThread, pollable::Pollable, set::WaitSet, triggers::Triggers},
};

/// Objects that were opened on a domain.
pub(crate) trait OfDomain: Object {
    /// The domain.
    fn domain(&self) -> &Arc<Domain>;
}

/// A domain: the peers of a process, and the state that its objects share.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) fabric: Arc<Fabric>,
    /// The `FI_TCAM_*` parameters.
    pub(crate) params: Params,
    /// Whether calls come from several threads at once.
    pub(crate) locked: bool,
    /// All addresses that were ever named.
    pub(crate) peers: Arc<PeerNumbers>,
    pub(crate) av_type: u32,
    /// All endpoints.
    pub(crate) endpoints: WaitSet,
    /// Contexts of scalable endpoints of which neither direction is open. Other endpoints make
    /// progress on them.
    pub(crate) unpolled: Mutex<Vec<Arc<dyn Pollable>>>,
    /// Memory that peers may use.
    pub(crate) regions: Regions,
    /// Operations that wait for a counter.
    pub(crate) triggers: Arc<Triggers>,
    pub(crate) eq: Mutex<Option<Arc<EventQueue>>>,
    /// Makes progress, if progress is automatic.
    pub(crate) device: Option<Arc<DeviceThread>>,
}

impl Domain {
    /// Version of the API the application was written for.
    pub(crate) fn api_version(&self) -> u32 {
        self.fabric.api_version()
    }

    /// Returns an object of this domain, to be used with others of the domain.
    ///
    /// # Errors
    /// `EDOMAIN` for an object of another domain, where peers have other numbers.
    pub(crate) fn own<T: OfDomain>(&self, other: &Bound) -> Result<Arc<T>> {
        other.get().and_then(|object| self.check_own(object))
    }

    /// Returns an object if it belongs to this domain.
    pub(crate) fn check_own<T: OfDomain>(&self, object: Arc<T>) -> Result<Arc<T>> {
        if std::ptr::eq(&**object.domain(), self) { Ok(object) } else { Err(Errno::EDOMAIN) }
    }

    /// The default event queue of address vectors.
    pub(crate) fn eq(&self) -> Option<Arc<EventQueue>> {
        self.eq.lock().clone()
    }
}
