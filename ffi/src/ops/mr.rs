// SPDX-License-Identifier: BSD-2-Clause
//! `fi_mr(3)`: the three calls that register memory, and the regions they make.

use std::{ffi::c_int, ffi::c_void, mem::offset_of};

use crate::{
    errno::{Errno, Result},
    guard,
    host::Host,
    memory::Window,
    object::{self, Bindable},
    ops::domain::Domain,
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
    unsafe fn read(raw: &sys::fi_mr_attr, flags: u64) -> Result<Self> {
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

pub(crate) struct Tables<D>(std::marker::PhantomData<D>);

impl<D: Domain> Tables<D> {
    pub(crate) const MR: sys::fi_ops_mr = sys::fi_ops_mr {
        size: size_of::<sys::fi_ops_mr>(),
        reg: Some(reg::<D>),
        regv: Some(regv::<D>),
        regattr: Some(regattr::<D>),
    };
}

/// Registers memory and gives C the region.
///
/// # Safety
/// The pointers are those C called a domain's table with.
unsafe fn register<D: Domain>(
    fid: *mut sys::fid,
    to: *mut *mut sys::fid_mr,
    context: *mut c_void,
    attr: impl FnOnce() -> Result<Attr>,
) -> c_int {
    guard::call(|| {
        if to.is_null() {
            return Err(Errno::EINVAL);
        }
        // SAFETY: `find` checks the fid, and `to` is valid for a write.
        unsafe {
            let domain = object::find::<sys::fid_domain, D>(fid)?;
            let region = domain.mr_register(&attr()?)?;
            let key = region.key();
            let raw = object::create(sys::fid_mr::default(), region, context);
            (*raw).key = key;
            // A descriptor that is only ever handed back, and ignored then.
            (*raw).mem_desc = raw.cast();
            to.write(raw);
        }
        Ok(0)
    })
}

unsafe extern "C" fn reg<D: Domain>(
    fid: *mut sys::fid,
    buf: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    to: *mut *mut sys::fid_mr,
    context: *mut c_void,
) -> c_int {
    let iov = libc::iovec { iov_base: buf.cast_mut(), iov_len: len };
    // SAFETY: the arguments of the call itself; the application vouches for `buf`.
    unsafe {
        register::<D>(fid, to, context, || {
            let window = Window::new(&raw const iov, 1)?;
            Ok(Attr { window, access, offset, requested_key, flags })
        })
    }
}

unsafe extern "C" fn regv<D: Domain>(
    fid: *mut sys::fid,
    iov: *const sys::iovec,
    count: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    to: *mut *mut sys::fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as in `reg`.
    unsafe {
        register::<D>(fid, to, context, || {
            let window = Window::new(iov.cast(), count)?;
            Ok(Attr { window, access, offset, requested_key, flags })
        })
    }
}

unsafe extern "C" fn regattr<D: Domain>(
    fid: *mut sys::fid,
    attr: *const sys::fi_mr_attr,
    flags: u64,
    to: *mut *mut sys::fid_mr,
) -> c_int {
    // SAFETY: as in `reg`; the fields read are there in every version served.
    unsafe {
        let context = attr.as_ref().map_or(std::ptr::null_mut(), |attr| attr.context);
        register::<D>(fid, to, context, || Attr::read(attr.as_ref().ok_or(Errno::EINVAL)?, flags))
    }
}

// The oldest structure served has every field that is read.
const _: () = assert!(offset_of!(sys::fi_mr_attr, iface) + size_of::<u32>() <= 80);
