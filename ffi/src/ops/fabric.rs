// SPDX-License-Identifier: BSD-2-Clause
//! `fi_fabric(3)`.

use std::{ffi::c_int, sync::Arc};

use crate::{
    errno::{Errno, Result},
    guard,
    info::Info,
    object::{self, Bound, Object},
    ops::{answer, domain, domain::Domain, enosys, eq, eq::EventQueue, fid, table},
    sys,
};

/// A fabric object.
pub trait Fabric: Object {
    /// Domains opened on it.
    type Domain: Domain;
    /// Event queues opened on it.
    type EventQueue: EventQueue;

    /// `fi_domain`.
    ///
    /// # Errors
    /// Attributes that cannot be met.
    fn domain(self: &Arc<Self>, info: &Info) -> Result<Arc<Self::Domain>>;

    /// `fi_eq_open`.
    ///
    /// # Errors
    /// Attributes that cannot be met.
    fn eq_open(self: &Arc<Self>, attr: &eq::Attr) -> Result<Arc<Self::EventQueue>>;

    /// `fi_trywait` for one object.
    ///
    /// # Errors
    /// `EAGAIN` if it is not to be slept on now, `EINVAL` if it never is.
    fn try_wait(&self, object: &Bound) -> Result<()>;
}

pub(crate) struct Tables<F>(std::marker::PhantomData<F>);

impl<F: Fabric> Tables<F> {
    const OPS: sys::fi_ops_fabric = sys::fi_ops_fabric {
        size: size_of::<sys::fi_ops_fabric>(),
        domain: Some(open_domain::<F>),
        passive_ep: enosys!(
            fn(
                *mut sys::fid_fabric,
                *mut sys::fi_info,
                *mut *mut sys::fid_pep,
                *mut libc::c_void,
            ) -> c_int
        ),
        eq_open: Some(eq_open::<F>),
        wait_open: enosys!(
            fn(*mut sys::fid_fabric, *mut sys::fi_wait_attr, *mut *mut sys::fid_wait) -> c_int
        ),
        trywait: Some(trywait::<F>),
        domain2: Some(domain2::<F>),
    };
}

/// A new fabric for C.
pub(crate) fn create<F: Fabric>(
    fabric: Arc<F>,
    context: *mut libc::c_void,
) -> *mut sys::fid_fabric {
    let raw = sys::fid_fabric { ops: table!(Tables::<F>::OPS), ..Default::default() };
    fid::create(raw, fabric, context)
}

unsafe extern "C" fn open_domain<F: Fabric>(
    fabric: *mut sys::fid_fabric,
    info: *mut sys::fi_info,
    to: *mut *mut sys::fid_domain,
    context: *mut libc::c_void,
) -> c_int {
    guard::call(|| {
        // SAFETY: reached through the fabric's table; C passes a complete info.
        unsafe {
            let fabric = object::get::<_, F>(fabric)?;
            let info = Info::read(info.as_ref().ok_or(Errno::EINVAL)?);
            if to.is_null() {
                return Err(Errno::EINVAL);
            }
            answer(to, domain::create(fabric.domain(&info)?, context))
        }
    })
}

unsafe extern "C" fn domain2<F: Fabric>(
    fabric: *mut sys::fid_fabric,
    info: *mut sys::fi_info,
    to: *mut *mut sys::fid_domain,
    domain_flags: u64,
    context: *mut libc::c_void,
) -> c_int {
    if domain_flags != 0 {
        return -Errno::EBADFLAGS.get();
    }
    // SAFETY: the same arguments.
    unsafe { open_domain::<F>(fabric, info, to, context) }
}

unsafe extern "C" fn eq_open<F: Fabric>(
    fabric: *mut sys::fid_fabric,
    attr: *mut sys::fi_eq_attr,
    to: *mut *mut sys::fid_eq,
    context: *mut libc::c_void,
) -> c_int {
    guard::call(|| {
        // SAFETY: reached through the fabric's table; `attr` is null or complete.
        unsafe {
            let fabric = object::get::<_, F>(fabric)?;
            if to.is_null() {
                return Err(Errno::EINVAL);
            }
            let attr = attr.as_ref().map(eq::Attr::read).unwrap_or_default();
            answer(to, eq::create(fabric.eq_open(&attr)?, context))
        }
    })
}

unsafe extern "C" fn trywait<F: Fabric>(
    fabric: *mut sys::fid_fabric,
    fids: *mut *mut sys::fid,
    count: c_int,
) -> c_int {
    guard::call(|| {
        let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
        if fids.is_null() && count > 0 {
            return Err(Errno::EINVAL);
        }
        // SAFETY: reached through the fabric's table; C gives `count` fids.
        unsafe {
            let fabric = object::get::<_, F>(fabric)?;
            for index in 0..count {
                fabric.try_wait(&Bound::read(*fids.add(index))?)?;
            }
        }
        Ok(0)
    })
}
