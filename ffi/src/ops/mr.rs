// SPDX-License-Identifier: BSD-2-Clause
//! `fi_mr(3)`: memory regions. The calls that make them are a domain's.

use std::mem::offset_of;

use crate::{
    errno::{Errno, Result},
    host::Host,
    memory::Window,
    object::Bindable,
    sys,
};

/// `struct fi_mr_attr`.
#[derive(Clone, Debug)]
pub struct Attr {
    /// The memory.
    pub window: Window,
    /// What it is for: `FI_REMOTE_READ` and others.
    pub access: u64,
    /// Address of the first byte for peers, where they do not use virtual addresses.
    pub offset: u64,
    /// Key the application wants.
    pub requested_key: u64,
    /// Flags of the call.
    pub flags: u64,
}

impl Attr {
    /// # Safety
    /// As [`Window::new`]; `raw` has the host's layout.
    pub(crate) unsafe fn read(raw: &sys::fi_mr_attr, flags: u64) -> Result<Self> {
        // Heterogeneous memory came with 1.10; older callers end before it.
        if Host::get().is_some() && raw.iface != sys::FI_HMEM_SYSTEM {
            tracing::info!("memory of devices cannot be registered");
            return Err(Errno::ENOSYS);
        }
        if raw.auth_key_size != 0 {
            tracing::info!("memory regions with an authorization key are not supported");
            return Err(Errno::ENOSYS);
        }
        Ok(Self {
            // SAFETY: bindgen's iovec is the C library's; the caller vouches for it.
            window: unsafe { Window::new(raw.mr_iov.cast(), raw.iov_count) }?,
            access: raw.access,
            offset: raw.offset,
            requested_key: raw.requested_key,
            flags,
        })
    }
}

/// A memory region.
pub trait MemoryRegion: Bindable<Raw = sys::fid_mr> {
    /// The key peers name it by.
    fn key(&self) -> u64;
}

// The oldest structure served has every field that is read.
const _: () = assert!(offset_of!(sys::fi_mr_attr, iface) + size_of::<u32>() <= 80);
