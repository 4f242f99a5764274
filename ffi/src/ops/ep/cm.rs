// SPDX-License-Identifier: BSD-2-Clause
//! `fi_cm(3)`: an endpoint's own address. There are no connections.

use std::ffi::{c_int, c_void};

use super::endpoint::Endpoint;
use super::entry::Tables;
use crate::{errno::Errno, guard, memory::Output, object, ops::enosys, sys};

impl<E: Endpoint> Tables<E> {
    pub(super) const CM: sys::fi_ops_cm = sys::fi_ops_cm {
        size: size_of::<sys::fi_ops_cm>(),
        setname: Some(setname::<E>),
        getname: Some(getname::<E>),
        getpeer: enosys!(fn(*mut sys::fid_ep, *mut c_void, *mut usize) -> c_int),
        connect: enosys!(fn(*mut sys::fid_ep, *const c_void, *const c_void, usize) -> c_int),
        listen: enosys!(fn(*mut sys::fid_pep) -> c_int),
        accept: enosys!(fn(*mut sys::fid_ep, *const c_void, usize) -> c_int),
        reject: enosys!(fn(*mut sys::fid_pep, *mut sys::fid, *const c_void, usize) -> c_int),
        shutdown: enosys!(fn(*mut sys::fid_ep, u64) -> c_int),
        join: enosys!(
            fn(*mut sys::fid_ep, *const c_void, u64, *mut *mut sys::fid_mc, *mut c_void) -> c_int
        ),
    };
}

unsafe extern "C" fn getname<E: Endpoint>(
    fid: *mut sys::fid,
    to: *mut c_void,
    len: *mut usize,
) -> c_int {
    guard::call(|| {
        // SAFETY: reached through the endpoint's table; `to` has room of `*len` bytes.
        unsafe {
            let name = object::get::<sys::fid_ep, E>(fid.cast())?.name()?;
            let len = len.as_mut().ok_or(Errno::EINVAL)?;
            let room = std::mem::replace(len, name.len());
            let written = Output::new(to, room).write(&name);
            if written < name.len() { Err(Errno::ETOOSMALL) } else { Ok(0) }
        }
    })
}

unsafe extern "C" fn setname<E: Endpoint>(
    fid: *mut sys::fid,
    address: *mut c_void,
    len: usize,
) -> c_int {
    guard::call(|| {
        if address.is_null() {
            return Err(Errno::EINVAL);
        }
        // SAFETY: reached through the endpoint's table; `address` holds `len` bytes.
        unsafe {
            let address = std::slice::from_raw_parts(address.cast::<u8>(), len);
            object::get::<sys::fid_ep, E>(fid.cast())?.set_name(address)?;
        }
        Ok(0)
    })
}
