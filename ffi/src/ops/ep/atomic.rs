// SPDX-License-Identifier: BSD-2-Clause
//! `fi_atomic(3)`: the atomic calls of an endpoint. Ten calls become an [`Atomic`]. Three return
//! the maximum number of elements of an operation, or an error if it is not supported.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

pub use super::op::Atomic;
use super::{
    endpoint::Endpoint,
    op::{EndpointOp, OpFlags, remote_array},
};
use crate::{
    atomic::{Datatype, Form, Op, supports},
    errno::{Errno, Result},
    memory::{Buffer, RemotePart, RemoteParts},
    object::context,
    ops::{answer, entry_points},
    sys,
};
use Elements::{Address, Vector};

/// Maximum number of bytes that one atomic operation changes.
pub const MAX_BYTES: usize = 4096;

entry_points! {
    ops<E: Endpoint> = sys::fi_ops_atomic, ends at compwritevalid;
    ep = get(fid: *mut sys::fid_ep);

    unsafe fn write(
        buf: *const c_void, count: usize, _desc: *mut c_void, peer: u64, addr: u64, key: u64,
        datatype: u32, op: u32, context: *mut c_void,
    ) -> isize {
        let call = Call::new(Form::Base, datatype, op, Address(buf, count), context);
        ep.atomic(&call.on_part(peer, addr, key)?)
    }

    unsafe fn writev(
        ioc: *const sys::fi_ioc, _desc: *mut *mut c_void, count: usize, peer: u64, addr: u64,
        key: u64, datatype: u32, op: u32, context: *mut c_void,
    ) -> isize {
        let call = Call::new(Form::Base, datatype, op, Vector(ioc, count), context);
        ep.atomic(&call.on_part(peer, addr, key)?)
    }

    unsafe fn writemsg(msg: *const sys::fi_msg_atomic, flags: u64) -> isize {
        let msg = msg.as_ref().ok_or(Errno::EINVAL)?;
        of_msg(msg, Form::Base, Elements::None, Elements::None, flags)?.submit(ep)
    }

    unsafe fn inject(
        buf: *const c_void, count: usize, peer: u64, addr: u64, key: u64, datatype: u32, op: u32,
    ) -> isize {
        let call = Call::new(Form::Base, datatype, op, Address(buf, count), ptr::null_mut());
        ep.atomic(&Call { flags: OpFlags::Inject, ..call }.on_part(peer, addr, key)?)
    }

    unsafe fn readwrite(
        buf: *const c_void, count: usize, _desc: *mut c_void, result: *mut c_void,
        _result_desc: *mut c_void, peer: u64, addr: u64, key: u64, datatype: u32, op: u32,
        context: *mut c_void,
    ) -> isize {
        let call = Call::new(Form::Fetch, datatype, op, Address(buf, count), context);
        ep.atomic(&Call { result: Address(result, count), ..call }.on_part(peer, addr, key)?)
    }

    unsafe fn readwritev(
        ioc: *const sys::fi_ioc, _desc: *mut *mut c_void, count: usize, result: *mut sys::fi_ioc,
        _result_desc: *mut *mut c_void, result_count: usize, peer: u64, addr: u64, key: u64,
        datatype: u32, op: u32, context: *mut c_void,
    ) -> isize {
        let call = Call::new(Form::Fetch, datatype, op, Vector(ioc, count), context);
        ep.atomic(&Call { result: Vector(result, result_count), ..call }.on_part(peer, addr, key)?)
    }

    unsafe fn readwritemsg(
        msg: *const sys::fi_msg_atomic, result: *mut sys::fi_ioc, _result_desc: *mut *mut c_void,
        result_count: usize, flags: u64,
    ) -> isize {
        let msg = msg.as_ref().ok_or(Errno::EINVAL)?;
        let result = Vector(result, result_count);
        of_msg(msg, Form::Fetch, result, Elements::None, flags)?.submit(ep)
    }

    unsafe fn compwrite(
        buf: *const c_void, count: usize, _desc: *mut c_void, compare: *const c_void,
        _compare_desc: *mut c_void, result: *mut c_void, _result_desc: *mut c_void, peer: u64,
        addr: u64, key: u64, datatype: u32, op: u32, context: *mut c_void,
    ) -> isize {
        let call = Call::new(Form::Compare, datatype, op, Address(buf, count), context);
        let (result, compare) = (Address(result, count), Address(compare, count));
        ep.atomic(&Call { result, compare, ..call }.on_part(peer, addr, key)?)
    }

    unsafe fn compwritev(
        ioc: *const sys::fi_ioc, _desc: *mut *mut c_void, count: usize,
        compare: *const sys::fi_ioc, _compare_desc: *mut *mut c_void, compare_count: usize,
        result: *mut sys::fi_ioc, _result_desc: *mut *mut c_void, result_count: usize, peer: u64,
        addr: u64, key: u64, datatype: u32, op: u32, context: *mut c_void,
    ) -> isize {
        let call = Call::new(Form::Compare, datatype, op, Vector(ioc, count), context);
        let (result, compare) = (Vector(result, result_count), Vector(compare, compare_count));
        ep.atomic(&Call { result, compare, ..call }.on_part(peer, addr, key)?)
    }

    unsafe fn compwritemsg(
        msg: *const sys::fi_msg_atomic, compare: *const sys::fi_ioc,
        _compare_desc: *mut *mut c_void, compare_count: usize, result: *mut sys::fi_ioc,
        _result_desc: *mut *mut c_void, result_count: usize, flags: u64,
    ) -> isize {
        let msg = msg.as_ref().ok_or(Errno::EINVAL)?;
        let (result, compare) = (Vector(result, result_count), Vector(compare, compare_count));
        of_msg(msg, Form::Compare, result, compare, flags)?.submit(ep)
    }

    unsafe fn writevalid(datatype: u32, op: u32, count: *mut usize) -> c_int {
        answer(count, || limit(Form::Base, datatype, op).map(|(_, _, elements)| elements))
    }

    unsafe fn readwritevalid(datatype: u32, op: u32, count: *mut usize) -> c_int {
        answer(count, || limit(Form::Fetch, datatype, op).map(|(_, _, elements)| elements))
    }

    unsafe fn compwritevalid(datatype: u32, op: u32, count: *mut usize) -> c_int {
        answer(count, || limit(Form::Compare, datatype, op).map(|(_, _, elements)| elements))
    }
}

/// Returns the converted arguments, and the maximum number of elements of one operation.
///
/// # Errors
/// `EOPNOTSUPP` if calls of this form do not support the operation on elements of the datatype.
pub(crate) fn limit(form: Form, datatype: u32, op: u32) -> Result<(Datatype, Op, usize)> {
    let datatype = Datatype::from_raw(datatype).ok_or(Errno::EOPNOTSUPP)?;
    let op = Op::from_raw(op).ok_or(Errno::EOPNOTSUPP)?;
    if !supports(form, datatype, op) {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok((datatype, op, MAX_BYTES / datatype.size()))
}

/// A buffer of elements as C passes it: an address or a vector, and a count.
#[derive(Clone, Copy)]
pub(crate) enum Elements {
    None,
    Address(*const c_void, usize),
    Vector(*const sys::fi_ioc, usize),
}

impl Elements {
    /// # Safety
    /// The elements are as `fi_atomic(3)` describes them.
    unsafe fn buffer(self, size: usize) -> Result<Buffer> {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            match self {
                Self::None => Ok(Buffer::default()),
                Self::Address(addr, count) => {
                    Buffer::contiguous(addr, count.checked_mul(size).ok_or(Errno::EINVAL)?)
                }
                Self::Vector(ioc, count) => Buffer::elements(ioc, count, size),
            }
        }
    }
}

/// The arguments of one call, except the peer and its memory.
struct Call {
    form: Form,
    datatype: u32,
    op: u32,
    operand: Elements,
    compare: Elements,
    result: Elements,
    context: *mut c_void,
    flags: OpFlags,
}

impl Call {
    fn new(form: Form, datatype: u32, op: u32, operand: Elements, context: *mut c_void) -> Self {
        let (compare, result) = (Elements::None, Elements::None);
        Self { form, datatype, op, operand, compare, result, context, flags: OpFlags::Default }
    }

    /// Returns the operation on one part of the peer's memory. The part is as long as the operand,
    /// or for a read as long as the result.
    ///
    /// # Safety
    /// The elements are as `fi_atomic(3)` describes them.
    unsafe fn on_part(self, peer: u64, addr: u64, key: u64) -> Result<Atomic> {
        // SAFETY: the caller vouches for the elements.
        unsafe { self.on(peer, |_, len| RemoteParts::new([RemotePart { addr, len, key }])) }
    }

    /// Returns the operation on the parts of the peer's memory that `remote` returns. The arguments
    /// of `remote` are the size of an element, and the length of the operand (for a read, of the
    /// result), in bytes. Returns `EINVAL` if the buffers and the parts differ in length, and
    /// `EMSGSIZE` if they are longer than [`MAX_BYTES`].
    ///
    /// # Safety
    /// The elements are as `fi_atomic(3)` describes them.
    unsafe fn on(
        self,
        peer: u64,
        remote: impl FnOnce(usize, u64) -> Result<RemoteParts>,
    ) -> Result<Atomic> {
        let (form, flags) = (self.form, self.flags);
        let (datatype, op, _) = limit(form, self.datatype, self.op)?;
        let size = datatype.size();
        let reads = op == Op::Read;
        // SAFETY: the caller vouches for the elements.
        let (operand, compare, result) = unsafe {
            let operand = if reads { Elements::None } else { self.operand };
            (operand.buffer(size)?, self.compare.buffer(size)?, self.result.buffer(size)?)
        };
        let len = if reads { result.len() } else { operand.len() };
        let remote = remote(size, len as u64)?;
        let agree = remote.len() == len as u64
            && (form == Form::Base || result.len() == len)
            && (form != Form::Compare || compare.len() == len);
        if !agree {
            return Err(Errno::EINVAL);
        }
        if len > MAX_BYTES {
            return Err(Errno::EMSGSIZE);
        }
        let context = context(self.context);
        Ok(Atomic { form, datatype, op, operand, compare, result, peer, remote, context, flags })
    }
}

/// Returns the operation of a `*msg` call.
///
/// # Safety
/// `msg`, the memory that it points to, `result` and `compare` are as `fi_atomic(3)` describes
/// them.
pub(crate) unsafe fn of_msg(
    msg: &sys::fi_msg_atomic,
    form: Form,
    result: Elements,
    compare: Elements,
    flags: u64,
) -> Result<EndpointOp> {
    let operand = Vector(msg.msg_iov, msg.iov_count);
    let call = Call::new(form, msg.datatype, msg.op, operand, msg.context);
    let call = Call { result, compare, flags: OpFlags::Given(flags), ..call };
    // SAFETY: the caller vouches for the parts and the elements.
    unsafe {
        let parts = remote_array(msg.rma_iov, msg.rma_iov_count)?.iter();
        let op = call.on(msg.addr, |size, _| {
            RemoteParts::new(parts.map(|part| {
                let len = (part.count as u64).saturating_mul(size as u64);
                RemotePart { addr: part.addr, len, key: part.key }
            }))
        })?;
        Ok(EndpointOp::Atomic(op))
    }
}
