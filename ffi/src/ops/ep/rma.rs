// SPDX-License-Identifier: BSD-2-Clause
//! `fi_rma(3)`: the reads and writes of an endpoint. Every call becomes an [`Rma`].

use std::ffi::c_void;

pub use super::op::Rma;
use super::{
    endpoint::Endpoint,
    op::{EndpointOp, OpFlags, remote_array, vector},
};
pub use crate::memory::{RemotePart, RemoteParts};
use crate::{
    errno::{Errno, Result},
    flags,
    memory::Buffer,
    object::context,
    ops::entry_points,
    sys,
};

entry_points! {
    ops<E: Endpoint> = sys::fi_ops_rma, ends at injectdata;
    ep = get(fid: *mut sys::fid_ep);

    unsafe fn read(
        buf: *mut c_void, len: usize, _desc: *mut c_void, peer: u64, addr: u64, key: u64,
        context: *mut c_void,
    ) -> isize {
        ep.rma(&Rma::read(Buffer::contiguous(buf, len)?, peer, addr, key, context)?)
    }

    unsafe fn readv(
        iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize, peer: u64, addr: u64,
        key: u64, context: *mut c_void,
    ) -> isize {
        ep.rma(&Rma::read(vector(iov, count)?, peer, addr, key, context)?)
    }

    unsafe fn readmsg(msg: *const sys::fi_msg_rma, flags: u64) -> isize {
        of_msg(msg.as_ref().ok_or(Errno::EINVAL)?, false, flags)?.submit(ep)
    }

    unsafe fn write(
        buf: *const c_void, len: usize, _desc: *mut c_void, peer: u64, addr: u64, key: u64,
        context: *mut c_void,
    ) -> isize {
        ep.rma(&Rma::write(Buffer::contiguous(buf, len)?, None, peer, addr, key, context)?)
    }

    unsafe fn writev(
        iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize, peer: u64, addr: u64,
        key: u64, context: *mut c_void,
    ) -> isize {
        ep.rma(&Rma::write(vector(iov, count)?, None, peer, addr, key, context)?)
    }

    unsafe fn writemsg(msg: *const sys::fi_msg_rma, flags: u64) -> isize {
        of_msg(msg.as_ref().ok_or(Errno::EINVAL)?, true, flags)?.submit(ep)
    }

    unsafe fn inject(buf: *const c_void, len: usize, peer: u64, addr: u64, key: u64) -> isize {
        ep.rma(&Rma::inject(Buffer::contiguous(buf, len)?, None, peer, addr, key)?)
    }

    unsafe fn writedata(
        buf: *const c_void, len: usize, _desc: *mut c_void, data: u64, peer: u64, addr: u64,
        key: u64, context: *mut c_void,
    ) -> isize {
        ep.rma(&Rma::write(Buffer::contiguous(buf, len)?, Some(data), peer, addr, key, context)?)
    }

    unsafe fn injectdata(
        buf: *const c_void, len: usize, data: u64, peer: u64, addr: u64, key: u64,
    ) -> isize {
        ep.rma(&Rma::inject(Buffer::contiguous(buf, len)?, Some(data), peer, addr, key)?)
    }
}

impl Rma {
    /// Creates a read of one part of the peer's memory, which is as long as the buffer.
    #[inline]
    fn read(buffer: Buffer, peer: u64, addr: u64, key: u64, raw: *mut c_void) -> Result<Self> {
        Ok(Self { write: false, ..Self::write(buffer, None, peer, addr, key, raw)? })
    }

    /// Creates a write to one part of the peer's memory, which is as long as the buffer.
    #[inline]
    fn write(
        buffer: Buffer,
        data: Option<u64>,
        peer: u64,
        addr: u64,
        key: u64,
        op_context: *mut c_void,
    ) -> Result<Self> {
        let remote = RemoteParts::new([RemotePart { addr, len: buffer.len() as u64, key }])?;
        let (context, flags) = (context(op_context), OpFlags::Default);
        Ok(Self { write: true, buffer, peer, remote, data, context, flags })
    }

    /// Creates an inject. It has no context, since it reports no completion.
    #[inline]
    fn inject(buffer: Buffer, data: Option<u64>, peer: u64, addr: u64, key: u64) -> Result<Self> {
        let op = Self::write(buffer, data, peer, addr, key, std::ptr::null_mut())?;
        Ok(Self { flags: OpFlags::Inject, ..op })
    }
}

/// Returns the operation of a `*msg` call.
///
/// # Safety
/// `msg` and the memory that it points to are as `fi_rma(3)` describes them.
pub(crate) unsafe fn of_msg(msg: &sys::fi_msg_rma, write: bool, flags: u64) -> Result<EndpointOp> {
    let part = |part: &sys::fi_rma_iov| {
        let len = part.len as u64;
        RemotePart { addr: part.addr, len, key: part.key }
    };
    // SAFETY: the caller vouches for the entries.
    let (buffer, remote) = unsafe {
        let parts = remote_array(msg.rma_iov, msg.rma_iov_count)?;
        (vector(msg.msg_iov, msg.iov_count)?, RemoteParts::new(parts.iter().map(part))?)
    };
    Ok(EndpointOp::Rma(Rma {
        write,
        buffer,
        peer: msg.addr,
        remote,
        data: (write && flags & flags::REMOTE_CQ_DATA != 0).then_some(msg.data),
        context: context(msg.context),
        flags: OpFlags::Given(flags),
    }))
}
