// SPDX-License-Identifier: BSD-2-Clause
//! `fi_mr(3)`: memory regions. The calls that register memory are those of a domain.

use std::mem::offset_of;

use crate::{
    errno::{Errno, Result},
    memory::RegionMemory,
    object::Object,
    sys,
};

/// `struct fi_mr_attr`.
#[derive(Clone, Debug)]
pub struct MrAttr {
    /// The memory.
    pub window: RegionMemory,
    /// Allowed access: `FI_REMOTE_READ` and others.
    pub access: u64,
    /// Address of the first byte for peers. If peers use virtual addresses, the offset is added to
    /// the virtual address of the memory.
    pub offset: u64,
    /// Key that the application requests.
    pub requested_key: u64,
    /// Flags of the call.
    pub flags: u64,
}

impl MrAttr {
    /// # Safety
    /// The I/O vector in `raw` is as [`RegionMemory::new`] requires, and `raw` has the layout of
    /// the loaded libfabric.
    pub(crate) unsafe fn read(raw: &sys::fi_mr_attr, flags: u64) -> Result<Self> {
        // `iface` is not read: it has a meaning only with FI_HMEM, which is not offered (fi_mr(3)).
        if raw.auth_key_size != 0 {
            tracing::info!("memory regions with an authorization key are not supported");
            return Err(Errno::ENOSYS);
        }
        Ok(Self {
            // SAFETY: bindgen's iovec is the C library's; the caller vouches for it.
            window: unsafe { RegionMemory::new(raw.mr_iov.cast(), raw.iov_count) }?,
            access: raw.access,
            offset: raw.offset,
            requested_key: raw.requested_key,
            flags,
        })
    }
}

/// A memory region.
pub trait MemoryRegion: Object<Raw = sys::fid_mr> {
    /// Returns the key by which peers name the region.
    fn key(&self) -> u64;
}

// The oldest structure that callers pass has every field that `read` uses.
const _: () = assert!(offset_of!(sys::fi_mr_attr, auth_key_size) + size_of::<usize>() <= 80);
