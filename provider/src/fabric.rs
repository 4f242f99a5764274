// SPDX-License-Identifier: BSD-2-Clause
//! `fi_fabric(3)`.

use std::sync::Arc;

use ffi::{
    Errno,
    info::Info,
    object::{Bound, Object},
    ops, sys,
};

use crate::{cntr::Counter, cq::CompletionQueue, domain::Domain, eq::EventQueue};

/// The fabric: this host.
#[derive(Debug)]
pub(crate) struct Fabric {
    api_version: u32,
}

impl Fabric {
    pub(crate) fn new(api_version: u32) -> Self {
        Self { api_version }
    }

    /// Version of the API the application was written for.
    pub(crate) fn api_version(&self) -> u32 {
        self.api_version
    }
}

impl Object for Fabric {}

impl ops::fabric::Fabric for Fabric {
    type Domain = Domain;
    type EventQueue = EventQueue;

    fn domain(self: &Arc<Self>, info: &Info) -> Result<Arc<Domain>, Errno> {
        Domain::open(self, info).map(Arc::new)
    }

    fn eq_open(self: &Arc<Self>, attr: &ops::eq::Attr) -> Result<Arc<EventQueue>, Errno> {
        EventQueue::open(self, attr).map(Arc::new)
    }

    fn try_wait(&self, object: &Bound) -> Result<(), Errno> {
        match object.class() {
            sys::FI_CLASS_CQ => object.get::<CompletionQueue>()?.try_wait(),
            sys::FI_CLASS_CNTR => object.get::<Counter>()?.try_wait(),
            sys::FI_CLASS_EQ => object.get::<EventQueue>()?.try_wait(),
            _ => Err(Errno::EINVAL),
        }
    }
}
