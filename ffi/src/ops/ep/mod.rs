// SPDX-License-Identifier: BSD-2-Clause
//! `fi_endpoint(3)` and `fi_cm(3)`. The modules `messages`, [`rma`] and [`atomic`] contain the
//! tables of operations.

pub mod atomic;
mod endpoint;
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
    memory::Output,
    object::context,
    ops::{answer_bytes, array, entry_points, fid, table},
    sys,
};

pub use endpoint::Endpoint;
pub use op::{OpFlags, Recv, Send};

/// Size of an option's value in bytes. Every option of an endpoint is a `size_t`.
const OPTION_LEN: usize = size_of::<usize>();

entry_points! {
    ops<E: Endpoint> = sys::fi_ops_ep, ends at tx_size_left;
    ep = get(fid: *mut sys::fid);
    unsupported tx_ctx, rx_ctx, rx_size_left, tx_size_left;

    unsafe fn cancel(op_context: *mut c_void) -> isize {
        ep.cancel(context(op_context))
    }

    unsafe fn getopt(
        level: c_int, name: c_int, value: *mut c_void, len: *mut usize,
    ) -> c_int {
        if level.cast_unsigned() != sys::FI_OPT_ENDPOINT {
            return Err(Errno::ENOPROTOOPT);
        }
        let len = len.as_mut().ok_or(Errno::EINVAL)?;
        let option = ep.option(name.cast_unsigned())?;
        let room = std::mem::replace(len, OPTION_LEN);
        if room < OPTION_LEN {
            return Err(Errno::ETOOSMALL);
        }
        Output::new(value, room).write(&option.to_ne_bytes());
        Ok(())
    }

    unsafe fn setopt(level: c_int, name: c_int, value: *const c_void, len: usize) -> c_int {
        if level.cast_unsigned() != sys::FI_OPT_ENDPOINT {
            return Err(Errno::ENOPROTOOPT);
        }
        ep.option(name.cast_unsigned())?;
        if value.is_null() || len != OPTION_LEN {
            return Err(Errno::EINVAL);
        }
        ep.set_option(name.cast_unsigned(), value.cast::<usize>().read_unaligned())
    }
}

entry_points! {
    cm_ops<E: Endpoint> = sys::fi_ops_cm, ends at join;
    ep = get(fid: *mut sys::fid);
    unsupported getpeer, connect, listen, accept, reject, shutdown, join;

    unsafe fn setname(address: *mut c_void, len: usize) -> c_int {
        if address.is_null() {
            return Err(Errno::EINVAL);
        }
        ep.set_name(array(address.cast::<u8>(), len)?)
    }

    unsafe fn getname(to: *mut c_void, len: *mut usize) -> c_int {
        let name = ep.name()?;
        let room = answer_bytes(to, len, &name)?;
        if to.is_null() || room < name.len() { Err(Errno::ETOOSMALL) } else { Ok(()) }
    }
}

/// Creates the structure that C sees for an endpoint, or for another object with the tables of an
/// endpoint. `class` is its `FI_CLASS_*`.
pub(crate) fn create<E: Endpoint>(
    class: u32,
    ep: Arc<E>,
    context: *mut c_void,
) -> *mut sys::fid_ep {
    fid::create_as(class, raw::<E>(), ep, context)
}

fn raw<E: Endpoint>() -> sys::fid_ep {
    sys::fid_ep {
        ops: table!(ops::<E>()),
        cm: table!(cm_ops::<E>()),
        msg: table!(messages::msg_ops::<E>()),
        tagged: table!(messages::tagged_ops::<E>()),
        rma: table!(rma::ops::<E>()),
        atomic: table!(atomic::ops::<E>()),
        ..Default::default()
    }
}
