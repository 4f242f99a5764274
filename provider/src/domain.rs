// SPDX-License-Identifier: BSD-2-Clause
//! `fi_domain(3)`: the state of a domain. [`crate::open`] opens objects on it.

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

/// A domain: the state that the objects opened on it share, such as the peer numbers.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) fabric: Arc<Fabric>,
    /// The `FI_TCAM_*` parameters.
    pub(crate) params: Params,
    /// Whether objects of the domain have locks: several threads may call at once, or the device
    /// thread makes progress.
    pub(crate) locked: bool,
    /// The numbers of all known addresses, those of address vectors and those of senders.
    pub(crate) peers: Arc<PeerNumbers>,
    pub(crate) av_type: u32,
    /// All started endpoints.
    pub(crate) endpoints: WaitSet,
    /// Endpoints inside of scalable endpoints. All their contexts have been closed, so no thread
    /// polls them. The other endpoints of the domain make progress on them.
    pub(crate) unpolled: Mutex<Vec<Arc<dyn Pollable>>>,
    /// Memory that peers may read and write.
    pub(crate) regions: Regions,
    /// Operations that wait for a counter.
    pub(crate) triggers: Arc<Triggers>,
    pub(crate) eq: Mutex<Option<Arc<EventQueue>>>,
    /// The thread that makes progress; `None` if progress is manual. See [`Domain::device_thread`].
    pub(crate) device: Option<Arc<DeviceThread>>,
}

impl Domain {
    /// Returns the version of the API that the application was written for.
    pub(crate) fn api_version(&self) -> u32 {
        self.fabric.api_version
    }

    /// Returns the object of this domain that a fid names.
    ///
    /// # Errors
    /// `EINVAL` if it is closed or not a `T` of this provider; `EDOMAIN` if it belongs to another
    /// domain, where peers have other numbers.
    pub(crate) fn own<T: OfDomain>(&self, other: &Bound) -> Result<Arc<T>> {
        other.get().and_then(|object| self.check_own(object))
    }

    /// Returns the object if it belongs to this domain, and `EDOMAIN` otherwise.
    pub(crate) fn check_own<T: OfDomain>(&self, object: Arc<T>) -> Result<Arc<T>> {
        if std::ptr::eq(&**object.domain(), self) { Ok(object) } else { Err(Errno::EDOMAIN) }
    }

    /// Returns the thread that makes progress; `None` if progress is manual. It is always `None` in
    /// a forked child of the process that opened the domain, because the child does not have the
    /// thread.
    pub(crate) fn device_thread(&self) -> Option<&Arc<DeviceThread>> {
        self.device.as_ref().filter(|device| device.is_here())
    }

    /// Returns the event queue that is bound to the domain. Address vectors report to it if no
    /// queue is bound to them.
    pub(crate) fn eq(&self) -> Option<Arc<EventQueue>> {
        self.eq.lock().clone()
    }
}
