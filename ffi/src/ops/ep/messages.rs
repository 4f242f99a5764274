// SPDX-License-Identifier: BSD-2-Clause
//! `fi_msg(3)` and `fi_tagged(3)`: the message calls of an endpoint. Every call becomes a [`Send`]
//! or a [`Recv`]. Those of `fi_tagged` have match bits.

use std::ffi::c_void;

use super::{
    endpoint::Endpoint,
    op::{EndpointOp, OpFlags, Recv, Send, vector},
};
use crate::{
    errno::{Errno, Result},
    flags,
    memory::Buffer,
    ops::entry_points,
    sys,
};

entry_points! {
    msg_ops<E: Endpoint> = sys::fi_ops_msg, ends at injectdata;
    ep = get(fid: *mut sys::fid_ep);

    unsafe fn recv(
        buf: *mut c_void, len: usize, _desc: *mut c_void, source: u64, context: *mut c_void,
    ) -> isize {
        ep.recv(&Recv::new(Buffer::contiguous(buf, len)?, source, None, context))
    }

    unsafe fn recvv(
        iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize, source: u64,
        context: *mut c_void,
    ) -> isize {
        ep.recv(&Recv::new(vector(iov, count)?, source, None, context))
    }

    unsafe fn recvmsg(msg: *const sys::fi_msg, flags: u64) -> isize {
        message(msg.as_ref().ok_or(Errno::EINVAL)?, flags, false)?.submit(ep)
    }

    unsafe fn send(
        buf: *const c_void, len: usize, _desc: *mut c_void, dest: u64, context: *mut c_void,
    ) -> isize {
        ep.send(&Send::new(Buffer::contiguous(buf, len)?, dest, None, None, context))
    }

    unsafe fn sendv(
        iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize, dest: u64,
        context: *mut c_void,
    ) -> isize {
        ep.send(&Send::new(vector(iov, count)?, dest, None, None, context))
    }

    unsafe fn sendmsg(msg: *const sys::fi_msg, flags: u64) -> isize {
        message(msg.as_ref().ok_or(Errno::EINVAL)?, flags, true)?.submit(ep)
    }

    unsafe fn inject(buf: *const c_void, len: usize, dest: u64) -> isize {
        ep.send(&Send::inject(Buffer::contiguous(buf, len)?, dest, None, None))
    }

    unsafe fn senddata(
        buf: *const c_void, len: usize, _desc: *mut c_void, data: u64, dest: u64,
        context: *mut c_void,
    ) -> isize {
        ep.send(&Send::new(Buffer::contiguous(buf, len)?, dest, None, Some(data), context))
    }

    unsafe fn injectdata(buf: *const c_void, len: usize, data: u64, dest: u64) -> isize {
        ep.send(&Send::inject(Buffer::contiguous(buf, len)?, dest, None, Some(data)))
    }
}

/// `fi_tagged(3)`. It has a separate module, since its entry points have the names of those of
/// `fi_msg`.
mod tagged_calls {
    use super::*;

    entry_points! {
        tagged_ops<E: Endpoint> = sys::fi_ops_tagged, ends at injectdata;
        ep = get(fid: *mut sys::fid_ep);

        unsafe fn recv(
            buf: *mut c_void, len: usize, _desc: *mut c_void, source: u64, tag: u64, ignore: u64,
            context: *mut c_void,
        ) -> isize {
            let bits = Some((tag, ignore));
            ep.recv(&Recv::new(Buffer::contiguous(buf, len)?, source, bits, context))
        }

        unsafe fn recvv(
            iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize, source: u64, tag: u64,
            ignore: u64, context: *mut c_void,
        ) -> isize {
            ep.recv(&Recv::new(vector(iov, count)?, source, Some((tag, ignore)), context))
        }

        unsafe fn recvmsg(msg: *const sys::fi_msg_tagged, flags: u64) -> isize {
            tagged(msg.as_ref().ok_or(Errno::EINVAL)?, flags, false)?.submit(ep)
        }

        unsafe fn send(
            buf: *const c_void, len: usize, _desc: *mut c_void, dest: u64, tag: u64,
            context: *mut c_void,
        ) -> isize {
            ep.send(&Send::new(Buffer::contiguous(buf, len)?, dest, Some(tag), None, context))
        }

        unsafe fn sendv(
            iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize, dest: u64, tag: u64,
            context: *mut c_void,
        ) -> isize {
            ep.send(&Send::new(vector(iov, count)?, dest, Some(tag), None, context))
        }

        unsafe fn sendmsg(msg: *const sys::fi_msg_tagged, flags: u64) -> isize {
            tagged(msg.as_ref().ok_or(Errno::EINVAL)?, flags, true)?.submit(ep)
        }

        unsafe fn inject(buf: *const c_void, len: usize, dest: u64, tag: u64) -> isize {
            ep.send(&Send::inject(Buffer::contiguous(buf, len)?, dest, Some(tag), None))
        }

        unsafe fn senddata(
            buf: *const c_void, len: usize, _desc: *mut c_void, data: u64, dest: u64, tag: u64,
            context: *mut c_void,
        ) -> isize {
            let buffer = Buffer::contiguous(buf, len)?;
            ep.send(&Send::new(buffer, dest, Some(tag), Some(data), context))
        }

        unsafe fn injectdata(
            buf: *const c_void, len: usize, data: u64, dest: u64, tag: u64,
        ) -> isize {
            ep.send(&Send::inject(Buffer::contiguous(buf, len)?, dest, Some(tag), Some(data)))
        }
    }
}
pub(super) use tagged_calls::tagged_ops;

/// # Safety
/// The message is as `fi_msg(3)` describes it.
pub(crate) unsafe fn message(msg: &sys::fi_msg, flags: u64, send: bool) -> Result<EndpointOp> {
    // SAFETY: the caller vouches for the vector.
    let buffer = unsafe { vector(msg.msg_iov, msg.iov_count) }?;
    Ok(operation(buffer, msg.addr, (None, None), msg.data, msg.context, flags, send))
}

/// # Safety
/// The message is as `fi_tagged(3)` describes it.
pub(crate) unsafe fn tagged(
    msg: &sys::fi_msg_tagged,
    flags: u64,
    send: bool,
) -> Result<EndpointOp> {
    // SAFETY: the caller vouches for the vector.
    let buffer = unsafe { vector(msg.msg_iov, msg.iov_count) }?;
    let bits = (Some(msg.tag), Some((msg.tag, msg.ignore)));
    Ok(operation(buffer, msg.addr, bits, msg.data, msg.context, flags, send))
}

/// Returns a send or a receive. `bits` are the match bits for a send and those for a receive.
fn operation(
    buffer: Buffer,
    peer: u64,
    bits: (Option<u64>, Option<(u64, u64)>),
    data: u64,
    context: *mut c_void,
    flags: u64,
    send: bool,
) -> EndpointOp {
    let op_flags = OpFlags::Given(flags);
    if send {
        let data = (flags & flags::REMOTE_CQ_DATA != 0).then_some(data);
        let op = Send::new(buffer, peer, bits.0, data, context);
        EndpointOp::Send(Send { flags: op_flags, ..op })
    } else {
        EndpointOp::Recv(Recv { flags: op_flags, ..Recv::new(buffer, peer, bits.1, context) })
    }
}
