// SPDX-License-Identifier: BSD-2-Clause
//! `fi_fabric(3)`: fabrics, which open domains and event queues.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use crate::{
    errno::{Errno, Result},
    info::Info,
    object::{Bound, Object},
    ops::{
        answer, array,
        domain::{self, Domain},
        entry_points,
        eq::{self, EqAttr, EventQueue},
        fid, table,
    },
    sys,
};

/// A fabric object.
pub trait Fabric: Object<Raw = sys::fid_fabric> {
    /// Domains of the fabric.
    type Domain: Domain;
    /// Event queues of the fabric.
    type EventQueue: EventQueue;

    /// `fi_domain`.
    ///
    /// # Errors
    /// The provider cannot meet the attributes.
    fn domain(self: &Arc<Self>, info: &Info) -> Result<Arc<Self::Domain>>;

    /// `fi_eq_open`.
    ///
    /// # Errors
    /// The provider cannot meet the attributes.
    fn eq_open(self: &Arc<Self>, attr: &EqAttr) -> Result<Arc<Self::EventQueue>>;

    /// `fi_trywait` for one object.
    ///
    /// # Errors
    /// `EAGAIN` if the application must not sleep on the object now, `EINVAL` if the object has no
    /// file descriptor (`FI_WAIT_FD`).
    fn try_wait(&self, object: &Bound) -> Result<()>;
}

entry_points! {
    ops<F: Fabric> = sys::fi_ops_fabric, ends at domain2;
    fabric = get(fid: *mut sys::fid_fabric);
    unsupported passive_ep, wait_open;

    unsafe fn domain(
        info: *mut sys::fi_info, to: *mut *mut sys::fid_domain, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let info = Info::read(info.as_ref().ok_or(Errno::EINVAL)?);
            Ok(domain::create(fabric.domain(&info)?, context))
        })
    }

    unsafe fn domain2(
        info: *mut sys::fi_info, to: *mut *mut sys::fid_domain, flags: u64, context: *mut c_void,
    ) -> c_int {
        if flags != 0 {
            return Err(Errno::EBADFLAGS);
        }
        Errno::check(domain::<F>(fid, info, to, context))
    }

    unsafe fn eq_open(
        attr: *mut sys::fi_eq_attr, to: *mut *mut sys::fid_eq, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let attr = attr.as_ref().map(EqAttr::read).unwrap_or_default();
            Ok(eq::create(fabric.eq_open(&attr)?, context))
        })
    }

    unsafe fn trywait(fids: *mut *mut sys::fid, count: c_int) -> c_int {
        let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
        array(fids, count)?.iter().try_for_each(|&fid| fabric.try_wait(&Bound::read(fid)?))
    }
}

/// Creates the structure that C sees for a new fabric.
pub(crate) fn create<F: Fabric>(fabric: Arc<F>, context: *mut c_void) -> *mut sys::fid_fabric {
    let raw = sys::fid_fabric { ops: table!(ops::<F>()), ..Default::default() };
    fid::create(raw, fabric, context)
}
