// SPDX-License-Identifier: BSD-2-Clause
//! `fi_endpoint(3)`: the endpoint, and its tables for messages (`forms`), [`rma`],
//! [`atomic`] and addresses (`cm`).

pub mod atomic;
mod cm;
mod forms;
pub mod rma;

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use crate::{
    errno::{Errno, Result},
    guard,
    memory::{Buffer, Context, Output},
    object::{self, Bindable},
    ops::{
        enosys, table,
        work::{Op, Trigger},
    },
    sys,
};
use atomic::Atomic;
use rma::Rma;

/// Where the flags of an operation come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpFlags {
    /// The endpoint's `op_flags`: every form but `*msg` and inject.
    Default,
    /// The flags of a `*msg` call.
    Given(u64),
    /// An inject form: the buffer is free on return and nothing is reported.
    Inject,
}

/// A send in any of its forms.
#[derive(Clone, Debug)]
pub struct Send {
    /// What is sent.
    pub buffer: Buffer,
    /// Destination.
    pub dest: u64,
    /// Match bits; none for untagged messages.
    pub tag: Option<u64>,
    /// Remote CQ data.
    pub data: Option<u64>,
    /// Context of the operation.
    pub context: Context,
    /// Flags of the operation.
    pub flags: OpFlags,
}

/// A receive in any of its forms.
#[derive(Clone, Debug)]
pub struct Recv {
    /// Where the message goes.
    pub buffer: Buffer,
    /// Source, or `FI_ADDR_UNSPEC`.
    pub source: u64,
    /// Match bits and ignore bits; none for untagged messages.
    pub tag: Option<(u64, u64)>,
    /// Context of the operation.
    pub context: Context,
    /// Flags of the operation.
    pub flags: OpFlags,
}

/// An endpoint.
pub trait Endpoint: Bindable<Raw = sys::fid_ep> {
    /// `fi_[t]send*`, `fi_[t]inject*`.
    ///
    /// # Errors
    /// `EAGAIN` when the operation must be tried again after progress.
    fn send(&self, op: &Send) -> Result<()>;

    /// `fi_[t]recv*`.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    fn recv(&self, op: &Recv) -> Result<()>;

    /// `fi_read*`, `fi_write*`, `fi_inject_write*`.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    fn rma(&self, op: &Rma) -> Result<()>;

    /// `fi_*atomic*`.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    fn atomic(&self, op: &Atomic) -> Result<()>;

    /// An operation with `FI_TRIGGER`: starts it when the counter is there.
    ///
    /// # Errors
    /// `EINVAL` if the counter is none of this provider.
    fn trigger(self: &Arc<Self>, trigger: &Trigger, op: Op) -> Result<()>;

    /// `fi_cancel`.
    ///
    /// # Errors
    /// `ENOENT` if nothing with that context can be cancelled.
    fn cancel(&self, context: Context) -> Result<()>;

    /// `fi_getname`.
    ///
    /// # Errors
    /// `EOPBADSTATE` if there is no address yet.
    fn name(&self) -> Result<Vec<u8>>;

    /// `fi_setname`.
    ///
    /// # Errors
    /// The address cannot be taken.
    fn set_name(&self, address: &[u8]) -> Result<()>;

    /// `fi_getopt` for an option of the endpoint level: its value as a `size_t`.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for options that are not known.
    fn option(&self, name: u32) -> Result<usize>;

    /// `fi_setopt` for an option of the endpoint level.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for options that are not known, `EINVAL` for values that are not possible.
    fn set_option(&self, name: u32, value: usize) -> Result<()>;
}

struct Tables<E>(std::marker::PhantomData<E>);

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
    object::create(raw::<E>(), ep, context)
}

/// A shared receive context (`fi_srx_context`): an endpoint that only receives.
pub(crate) fn create_shared<E: Endpoint>(srx: Arc<E>, context: *mut c_void) -> *mut sys::fid_ep {
    object::create_as(sys::FI_CLASS_SRX_CTX, raw::<E>(), srx, context)
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

/// Runs an operation on an endpoint.
///
/// # Safety
/// `ep` is the pointer C called the endpoint's table with.
#[inline]
unsafe fn on<E: Endpoint>(ep: *mut sys::fid_ep, op: impl FnOnce(&Arc<E>) -> Result<()>) -> isize {
    // SAFETY: the caller vouches for the pointer.
    guard::call(|| op(unsafe { object::get::<_, E>(ep) }?).map(|()| 0))
}

/// Starts an operation of a `*msg` call, now or when its trigger says.
#[inline]
fn submit<E: Endpoint>(ep: &Arc<E>, op: &Op) -> Result<()> {
    match op.triggered()? {
        None => op.start(&**ep),
        Some((trigger, op)) => ep.trigger(&trigger, op),
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

/// Buffer of a `*msg` call.
///
/// # Safety
/// `iov` holds `count` entries as `fi_msg(3)` asks.
pub(crate) unsafe fn vector(iov: *const sys::iovec, count: usize) -> Result<Buffer> {
    // SAFETY: bindgen's iovec is the C library's; the caller vouches for the entries.
    unsafe { Buffer::vector(iov.cast(), count) }
}
