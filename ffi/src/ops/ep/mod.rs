// SPDX-License-Identifier: BSD-2-Clause
//! `fi_endpoint(3)`: the endpoint, and its tables for messages (`forms`), [`rma`],
//! [`atomic`] and addresses (`cm`).

pub mod atomic;
mod cm;
mod endpoint;
mod entry;
mod forms;
pub(crate) mod messages;
pub(crate) mod op;
pub mod rma;
pub mod scalable;

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use crate::{
    errno::Errno,
    guard,
    memory::Output,
    object,
    ops::{enosys, fid, table},
    sys,
};

pub use endpoint::Endpoint;
use entry::{Tables, on};
pub use op::{OpFlags, Recv, Send};

impl<E: Endpoint> Tables<E> {
    const EP: sys::fi_ops_ep = {
        let mut ops = NULL;
        ops.size = std::mem::offset_of!(sys::fi_ops_ep, tx_size_left) + size_of::<usize>();
        ops.cancel = Some(cancel::<E>);
        ops.getopt = Some(getopt::<E>);
        ops.setopt = Some(setopt::<E>);
        ops.tx_ctx = enosys!(
            fn(
                *mut sys::fid_ep,
                c_int,
                *mut sys::fi_tx_attr,
                *mut *mut sys::fid_ep,
                *mut c_void,
            ) -> c_int
        );
        ops.rx_ctx = enosys!(
            fn(
                *mut sys::fid_ep,
                c_int,
                *mut sys::fi_rx_attr,
                *mut *mut sys::fid_ep,
                *mut c_void,
            ) -> c_int
        );
        ops.rx_size_left = enosys!(fn(*mut sys::fid_ep) -> isize);
        ops.tx_size_left = enosys!(fn(*mut sys::fid_ep) -> isize);
        ops
    };
}

// SAFETY: a table of `Option<fn>` and a size may be all zero.
const NULL: sys::fi_ops_ep = unsafe { std::mem::zeroed() };

pub(crate) fn create<E: Endpoint>(ep: Arc<E>, context: *mut c_void) -> *mut sys::fid_ep {
    fid::create(raw::<E>(), ep, context)
}

/// An endpoint of another class, such as a shared receive context (`FI_CLASS_SRX_CTX`).
pub(crate) fn create_as<E: Endpoint>(
    class: u32,
    ep: Arc<E>,
    context: *mut c_void,
) -> *mut sys::fid_ep {
    fid::create_as(class, raw::<E>(), ep, context)
}

fn raw<E: Endpoint>() -> sys::fid_ep {
    sys::fid_ep {
        ops: table!(Tables::<E>::EP),
        cm: table!(Tables::<E>::CM),
        msg: table!(Tables::<E>::MSG),
        tagged: table!(Tables::<E>::TAGGED),
        rma: table!(Tables::<E>::RMA),
        atomic: table!(Tables::<E>::ATOMIC),
        ..Default::default()
    }
}

unsafe extern "C" fn cancel<E: Endpoint>(fid: *mut sys::fid, context: *mut c_void) -> isize {
    // SAFETY: fi_cancel passes the fid an endpoint begins with.
    unsafe { on(fid.cast(), |ep: &Arc<E>| ep.cancel(object::context(context))) }
}

/// Size of an option's value: `bool` and `int` options are not known here.
const OPTION_LEN: usize = size_of::<usize>();

unsafe extern "C" fn getopt<E: Endpoint>(
    fid: *mut sys::fid,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut usize,
) -> c_int {
    guard::call(|| {
        if level.cast_unsigned() != sys::FI_OPT_ENDPOINT {
            return Err(Errno::ENOPROTOOPT);
        }
        // SAFETY: reached through the endpoint's table; `value` has room of `*len` bytes.
        unsafe {
            let ep = object::get::<sys::fid_ep, E>(fid.cast())?;
            let len = len.as_mut().ok_or(Errno::EINVAL)?;
            let option = ep.option(name.cast_unsigned())?;
            let room = std::mem::replace(len, OPTION_LEN);
            if room < OPTION_LEN {
                return Err(Errno::ETOOSMALL);
            }
            Output::new(value, room).write(&option.to_ne_bytes());
        }
        Ok(0)
    })
}

unsafe extern "C" fn setopt<E: Endpoint>(
    fid: *mut sys::fid,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: usize,
) -> c_int {
    guard::call(|| {
        if level.cast_unsigned() != sys::FI_OPT_ENDPOINT {
            return Err(Errno::ENOPROTOOPT);
        }
        // SAFETY: reached through the endpoint's table; `value` holds `len` bytes.
        unsafe {
            let ep = object::get::<sys::fid_ep, E>(fid.cast())?;
            ep.option(name.cast_unsigned())?;
            if value.is_null() || len != OPTION_LEN {
                return Err(Errno::EINVAL);
            }
            ep.set_option(name.cast_unsigned(), value.cast::<usize>().read_unaligned())?;
        }
        Ok(0)
    })
}
