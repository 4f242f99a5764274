// SPDX-License-Identifier: BSD-2-Clause
//! `fi_mr(3)`: memory regions, as objects of libfabric. [`crate::regions`] checks accesses to them.

use std::sync::Arc;

use ffi::{
    Errno, Result, flags,
    object::{Bound, Control, Object},
    ops::{self, mr::MrAttr},
    sys,
};

use crate::{
    cntr::Counter, context::EpContext, domain::Domain, ep::Endpoint, regions::Registered,
    sep::ScalableEndpoint, wait::pollable::Count,
};

/// Length in bytes of a key and of a raw key.
const KEY_SIZE: usize = 8;

/// A memory region.
#[derive(Debug)]
pub(crate) struct MemoryRegion {
    domain: Arc<Domain>,
    key: u64,
    registered: Arc<Registered>,
}

impl MemoryRegion {
    pub(crate) fn register(domain: &Arc<Domain>, attr: &MrAttr) -> Result<Self> {
        let (key, registered) = domain.regions.register(attr)?;
        Ok(Self { domain: Arc::clone(domain), key, registered })
    }
}

impl Object for MemoryRegion {
    type Raw = sys::fid_mr;

    fn close(&self) -> Result<()> {
        self.domain.regions.remove(self.key);
        // After this call, no thread uses the region that it found before the removal.
        self.domain.endpoints.finish_copies();
        self.registered.forget_counters();
        Ok(())
    }

    fn bind(&self, other: &Bound, bind_flags: u64) -> Result<()> {
        match other.class() {
            sys::FI_CLASS_CNTR => {
                ffi::object::check_flags(bind_flags, flags::REMOTE_READ | flags::REMOTE_WRITE)?;
                let counter = self.domain.own::<Counter>(other)?;
                counter.expect_other_events();
                let counter = counter as Arc<dyn Count>;
                let has = |access| bind_flags & access != 0;
                let (reads, writes) = (has(flags::REMOTE_READ), has(flags::REMOTE_WRITE));
                self.domain.regions.bind_counter(&self.registered, &counter, reads, writes);
                Ok(())
            }
            sys::FI_CLASS_EP => {
                let endpoint = self.domain.own::<Endpoint>(other)?.listed_address();
                self.registered.bind_endpoint(endpoint)
            }
            sys::FI_CLASS_SEP => {
                let endpoint = self.domain.own::<ScalableEndpoint>(other)?.listed_address();
                self.registered.bind_endpoint(endpoint)
            }
            // All contexts of a scalable endpoint have one listed address. A region that is bound
            // to one of them may be bound to others, and all of them serve it.
            sys::FI_CLASS_RX_CTX | sys::FI_CLASS_TX_CTX => {
                let endpoint = self.domain.own::<EpContext>(other)?.listed_address();
                match self.registered.bind_endpoint(endpoint) {
                    Err(_) if self.registered.is_of(endpoint) => Ok(()),
                    bound => bound,
                }
            }
            _ => Err(Errno::EINVAL),
        }
    }

    fn control(&self, command: Control<'_>) -> Result<()> {
        match command {
            Control::Enable => self.domain.regions.enable(&self.registered),
            // The provider keeps no mapping of the memory that could be out of date.
            Control::Refresh => Ok(()),
            Control::GetRawKey(base, mut key, size) => {
                let room = std::mem::replace(size, KEY_SIZE);
                if room < KEY_SIZE {
                    return Err(Errno::ETOOSMALL);
                }
                *base = self.registered.base();
                key.write(&self.key.to_ne_bytes());
                Ok(())
            }
            _ => Err(Errno::ENOSYS),
        }
    }
}

impl ops::mr::MemoryRegion for MemoryRegion {
    fn key(&self) -> u64 {
        self.key
    }
}

/// Returns the key in a raw key that a peer sent (`fi_mr_map_raw`).
///
/// # Errors
/// `EINVAL` if the raw key is not [`KEY_SIZE`] bytes long.
pub(crate) fn map_raw_key(raw: &[u8]) -> Result<u64> {
    raw.try_into().map(u64::from_ne_bytes).map_err(|_| Errno::EINVAL)
}
