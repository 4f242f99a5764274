// SPDX-License-Identifier: BSD-2-Clause
//! Finding the provider below with `fi_getinfo(3)`.

use std::{ffi::CStr, ptr, ptr::NonNull};

use crate::{
    errno::{Errno, Result},
    flags,
    host::Host,
    sys,
};

/// The interface that calls to the provider below are of: the oldest host's.
pub(super) const API: u32 = 1 << 16 | 17;

/// `fi_getinfo` for use by libfabric itself: whatever `FI_PROVIDER` says.
const INTERNAL: u64 = 1 << 60;

/// A list that `fi_getinfo` answered.
pub(super) struct Infos {
    first: NonNull<sys::fi_info>,
    host: &'static Host,
}

impl Infos {
    /// What offers messages between endpoints that need no connection, in the order sent, with
    /// receives that take several, and is called so.
    ///
    /// # Errors
    /// `ENODATA` if no provider does.
    pub(super) fn find(host: &'static Host, provider: &CStr, node: Option<&CStr>) -> Result<Self> {
        let hints = Self::hints(host, provider)?;
        // Layered providers are no core providers, and are found by their own names only.
        let is_layered = provider.to_bytes().contains(&b';');
        let core = if is_layered { 0 } else { flags::OFI_CORE_PROV_ONLY };
        let source = if node.is_some() { flags::SOURCE } else { 0 };
        let mut first = ptr::null_mut();
        // SAFETY: the hints are whole, and the answer is ours.
        let status = unsafe {
            (host.client.get_info)(
                API,
                node.map_or(ptr::null(), CStr::as_ptr),
                ptr::null(),
                INTERNAL | core | source,
                hints.first.as_ptr(),
                &raw mut first,
            )
        };
        if status != 0 {
            return Err(Errno::new(status));
        }
        let first = NonNull::new(first).ok_or(Errno::ENODATA)?;
        Ok(Self { first, host })
    }

    fn hints(host: &'static Host, provider: &CStr) -> Result<Self> {
        let first = NonNull::new(host.allocate_info()?).ok_or(Errno::ENOMEM)?;
        let hints = Self { first, host };
        // SAFETY: freshly allocated by libfabric, with every attribute.
        unsafe {
            let info = &mut *first.as_ptr();
            info.caps = flags::MSG | flags::MULTI_RECV | flags::SEND | flags::RECV;
            info.mode = flags::CONTEXT | flags::CONTEXT2;
            let ep = info.ep_attr.as_mut().ok_or(Errno::ENOMEM)?;
            ep.type_ = sys::FI_EP_RDM;
            let tx = info.tx_attr.as_mut().ok_or(Errno::ENOMEM)?;
            tx.msg_order = flags::ORDER_SAS;
            let rx = info.rx_attr.as_mut().ok_or(Errno::ENOMEM)?;
            rx.msg_order = flags::ORDER_SAS;
            let domain = info.domain_attr.as_mut().ok_or(Errno::ENOMEM)?;
            domain.threading = sys::FI_THREAD_DOMAIN;
            domain.control_progress = sys::FI_PROGRESS_MANUAL;
            domain.data_progress = sys::FI_PROGRESS_MANUAL;
            domain.resource_mgmt = sys::FI_RM_ENABLED;
            domain.mr_mode = sys::FI_MR_LOCAL as i32;
            let fabric = info.fabric_attr.as_mut().ok_or(Errno::ENOMEM)?;
            fabric.prov_name = libc::strdup(provider.as_ptr());
            if fabric.prov_name.is_null() {
                return Err(Errno::ENOMEM);
            }
        }
        Ok(hints)
    }

    /// The first, which is the one that the provider prefers.
    pub(super) fn first(&self) -> *mut sys::fi_info {
        self.first.as_ptr()
    }
}

impl Drop for Infos {
    fn drop(&mut self) {
        // SAFETY: the list is ours, and goes as a whole.
        unsafe { (self.host.client.free_info)(self.first.as_ptr()) };
    }
}
