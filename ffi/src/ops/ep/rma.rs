// SPDX-License-Identifier: BSD-2-Clause
//! `fi_rma(3)`: nine calls that all become one [`Rma`].

use std::{ffi::c_void, sync::Arc};

use super::endpoint::Endpoint;
use super::entry::{Tables, on, submit, vector};
use super::op::{Op, OpFlags};
pub use super::op::{RemotePart, RemoteParts, Rma};
use crate::{
    errno::{Errno, Result},
    flags,
    memory::{Buffer, Context, IOV_LIMIT},
    object::context,
    sys,
};

impl<E: Endpoint> Tables<E> {
    pub(super) const RMA: sys::fi_ops_rma = sys::fi_ops_rma {
        size: size_of::<sys::fi_ops_rma>(),
        read: Some(read::<E>),
        readv: Some(readv::<E>),
        readmsg: Some(message::<E, false>),
        write: Some(write::<E>),
        writev: Some(writev::<E>),
        writemsg: Some(message::<E, true>),
        inject: Some(inject::<E>),
        writedata: Some(writedata::<E>),
        injectdata: Some(injectdata::<E>),
    };
}

/// The forms that name one part of the peer's memory, as long as the buffer.
macro_rules! forms {
    ($($name:ident($($arg:ident: $type:ty),*; $($data:ident)?; $($context:ident)?)
        $write:expr, $buffer:expr, $remote_data:expr, $made:expr, $flags:ident;)*) => {$(
        unsafe extern "C" fn $name<E: Endpoint>(
            ep: *mut sys::fid_ep,
            $($arg: $type,)*
            $($data: u64,)?
            peer: u64,
            addr: u64,
            key: u64,
            $($context: *mut c_void,)?
        ) -> isize {
            // SAFETY: the arguments of the call itself, as the man page describes them.
            unsafe {
                on(ep, |ep: &Arc<E>| {
                    let buffer = $buffer?;
                    let part = RemotePart { addr, len: buffer.len() as u64, key };
                    ep.rma(&Rma {
                        write: $write,
                        buffer,
                        peer,
                        remote: RemoteParts::new([part])?,
                        data: $remote_data,
                        context: $made,
                        flags: OpFlags::$flags,
                    })
                })
            }
        }
    )*};
}

/// No context: nothing is reported of an inject.
const NONE: Context = Context(0);

forms! {
    read(buf: *mut c_void, len: usize, _desc: *mut c_void;; op_context)
        false, Buffer::contiguous(buf, len), None, context(op_context), Default;
    readv(iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize;; op_context)
        false, vector(iov, count), None, context(op_context), Default;
    write(buf: *const c_void, len: usize, _desc: *mut c_void;; op_context)
        true, Buffer::contiguous(buf, len), None, context(op_context), Default;
    writev(iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize;; op_context)
        true, vector(iov, count), None, context(op_context), Default;
    writedata(buf: *const c_void, len: usize, _desc: *mut c_void; data; op_context)
        true, Buffer::contiguous(buf, len), Some(data), context(op_context), Default;
    inject(buf: *const c_void, len: usize;;)
        true, Buffer::contiguous(buf, len), None, NONE, Inject;
    injectdata(buf: *const c_void, len: usize; data;)
        true, Buffer::contiguous(buf, len), Some(data), NONE, Inject;
}

/// What a `*msg` call asks for.
///
/// # Safety
/// `msg` and what it points to are as `fi_rma(3)` describes them.
pub(crate) unsafe fn of_msg(msg: &sys::fi_msg_rma, write: bool, op_flags: u64) -> Result<Rma> {
    if msg.rma_iov_count > IOV_LIMIT || msg.rma_iov.is_null() && msg.rma_iov_count > 0 {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the caller vouches for the entries, whose pointer was checked.
    let (buffer, parts) = unsafe {
        let parts = (0..msg.rma_iov_count).map(|index| {
            let part = &*msg.rma_iov.add(index);
            RemotePart { addr: part.addr, len: part.len as u64, key: part.key }
        });
        (vector(msg.msg_iov, msg.iov_count)?, RemoteParts::new(parts)?)
    };
    Ok(Rma {
        write,
        buffer,
        peer: msg.addr,
        remote: parts,
        data: (write && op_flags & flags::REMOTE_CQ_DATA != 0).then_some(msg.data),
        context: context(msg.context),
        flags: OpFlags::Given(op_flags),
    })
}

/// `fi_readmsg` and `fi_writemsg`.
unsafe extern "C" fn message<E: Endpoint, const WRITE: bool>(
    ep: *mut sys::fid_ep,
    msg: *const sys::fi_msg_rma,
    op_flags: u64,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &Arc<E>| {
            let msg = msg.as_ref().ok_or(Errno::EINVAL)?;
            submit(ep, &Op::Rma(of_msg(msg, WRITE, op_flags)?))
        })
    }
}
