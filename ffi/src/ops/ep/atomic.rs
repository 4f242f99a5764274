// SPDX-License-Identifier: BSD-2-Clause
//! `fi_atomic(3)`: ten calls that all become one [`Atomic`], and three that ask
//! what there is.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use super::endpoint::Endpoint;
use super::entry::{Tables, on, submit};
pub use super::op::Atomic;
use super::op::{self, OpFlags, RemotePart, RemoteParts};
use crate::{
    atomic::{Datatype, Form, Op, supports},
    errno::{Errno, Result},
    guard,
    memory::{Buffer, IOV_LIMIT},
    object::context,
    sys,
};

/// Most bytes that one atomic operation changes.
pub const MAX_BYTES: usize = 4096;

impl<E: Endpoint> Tables<E> {
    pub(super) const ATOMIC: sys::fi_ops_atomic = sys::fi_ops_atomic {
        size: size_of::<sys::fi_ops_atomic>(),
        write: Some(write::<E>),
        writev: Some(writev::<E>),
        writemsg: Some(writemsg::<E>),
        inject: Some(inject::<E>),
        readwrite: Some(readwrite::<E>),
        readwritev: Some(readwritev::<E>),
        readwritemsg: Some(readwritemsg::<E>),
        compwrite: Some(compwrite::<E>),
        compwritev: Some(compwritev::<E>),
        compwritemsg: Some(compwritemsg::<E>),
        writevalid: Some(writevalid),
        readwritevalid: Some(readwritevalid),
        compwritevalid: Some(compwritevalid),
    };
}

/// Most elements of one operation.
///
/// # Errors
/// `EOPNOTSUPP` if the operation does not exist for the datatype.
pub(crate) fn limit(form: Form, datatype: u32, op: u32) -> Result<(Datatype, Op, usize)> {
    let datatype = Datatype::from_raw(datatype).ok_or(Errno::EOPNOTSUPP)?;
    let op = Op::from_raw(op).ok_or(Errno::EOPNOTSUPP)?;
    if !supports(form, datatype, op) {
        return Err(Errno::EOPNOTSUPP);
    }
    Ok((datatype, op, MAX_BYTES / datatype.size()))
}

/// Buffers of one call as C passes them: an address or a vector, and a count.
#[derive(Clone, Copy)]
enum Elements {
    None,
    At(*const c_void, usize),
    Vector(*const sys::fi_ioc, usize),
}

impl Elements {
    /// # Safety
    /// What C passed, as the man page describes it.
    unsafe fn buffer(self, size: usize) -> Result<Buffer> {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            match self {
                Self::None => Ok(Buffer::default()),
                Self::At(addr, count) => {
                    Buffer::contiguous(addr, count.checked_mul(size).ok_or(Errno::EINVAL)?)
                }
                Self::Vector(ioc, count) => Buffer::elements(ioc, count, size),
            }
        }
    }
}

/// The buffers of a call, and whether there is a place for results.
struct Call {
    form: Form,
    operand: Elements,
    compare: Elements,
    result: Elements,
    datatype: u32,
    op: u32,
}

impl Call {
    /// # Safety
    /// What C passed, as the man page describes it.
    unsafe fn read(
        &self,
        peer: u64,
        remote: impl FnOnce(usize, u64) -> Result<RemoteParts>,
        op_context: *mut c_void,
        flags: OpFlags,
    ) -> Result<Atomic> {
        let (datatype, op, _) = limit(self.form, self.datatype, self.op)?;
        let size = datatype.size();
        let reads = op == Op::Read;
        // SAFETY: the caller vouches for the buffers.
        let (operand, compare, result) = unsafe {
            let operand = if reads { Elements::None } else { self.operand };
            (operand.buffer(size)?, self.compare.buffer(size)?, self.result.buffer(size)?)
        };
        let len = if reads { result.len() } else { operand.len() };
        let remote = remote(size, len as u64)?;
        let agree = remote.len() == len as u64
            && (self.form == Form::Base || result.len() == len)
            && (self.form != Form::Compare || compare.len() == len);
        if !agree {
            return Err(Errno::EINVAL);
        }
        if len > MAX_BYTES {
            return Err(Errno::EMSGSIZE);
        }
        let context = context(op_context);
        Ok(Atomic {
            form: self.form,
            datatype,
            op,
            operand,
            compare,
            result,
            peer,
            remote,
            context,
            flags,
        })
    }
}

/// One part of the peer's memory, as long as the operand.
fn one(addr: u64, key: u64) -> impl FnOnce(usize, u64) -> Result<RemoteParts> {
    move |_, len| RemoteParts::new([RemotePart { addr, len, key }])
}

/// What a `*msg` call asks for.
///
/// # Safety
/// `msg` and what it points to are as `fi_atomic(3)` describes them, as are the
/// vectors of results and of what is compared, each with its count.
pub(crate) unsafe fn of_msg(
    msg: &sys::fi_msg_atomic,
    form: Form,
    (result, result_count): (*const sys::fi_ioc, usize),
    (compare, compare_count): (*const sys::fi_ioc, usize),
    op_flags: u64,
) -> Result<Atomic> {
    if msg.rma_iov_count > IOV_LIMIT || msg.rma_iov.is_null() && msg.rma_iov_count > 0 {
        return Err(Errno::EINVAL);
    }
    let call = Call {
        form,
        operand: Elements::Vector(msg.msg_iov, msg.iov_count),
        compare: Elements::Vector(compare, compare_count),
        result: Elements::Vector(result, result_count),
        datatype: msg.datatype,
        op: msg.op,
    };
    let remote = |size: usize, _| {
        let parts = (0..msg.rma_iov_count).map(|index| {
            // SAFETY: the caller vouches for the entries, whose pointer was checked.
            let part = unsafe { &*msg.rma_iov.add(index) };
            let len = (part.count as u64).saturating_mul(size as u64);
            RemotePart { addr: part.addr, len, key: part.key }
        });
        RemoteParts::new(parts)
    };
    // SAFETY: the caller vouches for the rest.
    unsafe { call.read(msg.addr, remote, msg.context, OpFlags::Given(op_flags)) }
}

/// The forms that name one part of the peer's memory.
macro_rules! forms {
    ($($name:ident($($arg:ident: $type:ty),*; $($context:ident)?)
        $form:ident, $operand:expr, $compare:expr, $result:expr, $made:expr, $flags:ident;)*) => {$(
        unsafe extern "C" fn $name<E: Endpoint>(
            ep: *mut sys::fid_ep,
            $($arg: $type,)*
            peer: u64,
            addr: u64,
            key: u64,
            datatype: sys::fi_datatype,
            op: sys::fi_op,
            $($context: *mut c_void,)?
        ) -> isize {
            // SAFETY: the arguments of the call itself, as the man page describes them.
            unsafe {
                on(ep, |ep: &Arc<E>| {
                    let call = Call {
                        form: Form::$form,
                        operand: $operand,
                        compare: $compare,
                        result: $result,
                        datatype,
                        op,
                    };
                    ep.atomic(&call.read(peer, one(addr, key), $made, OpFlags::$flags)?)
                })
            }
        }
    )*};
}

forms! {
    write(buf: *const c_void, count: usize, _desc: *mut c_void; op_context)
        Base, Elements::At(buf, count), Elements::None, Elements::None, op_context, Default;
    writev(iov: *const sys::fi_ioc, _desc: *mut *mut c_void, count: usize; op_context)
        Base, Elements::Vector(iov, count), Elements::None, Elements::None, op_context, Default;
    inject(buf: *const c_void, count: usize;)
        Base, Elements::At(buf, count), Elements::None, Elements::None, std::ptr::null_mut(), Inject;
    readwrite(buf: *const c_void, count: usize, _desc: *mut c_void, result: *mut c_void,
        _result_desc: *mut c_void; op_context)
        Fetch, Elements::At(buf, count), Elements::None, Elements::At(result, count), op_context, Default;
    readwritev(iov: *const sys::fi_ioc, _desc: *mut *mut c_void, count: usize,
        result: *mut sys::fi_ioc, _result_desc: *mut *mut c_void, result_count: usize; op_context)
        Fetch, Elements::Vector(iov, count), Elements::None,
        Elements::Vector(result, result_count), op_context, Default;
    compwrite(buf: *const c_void, count: usize, _desc: *mut c_void, compare: *const c_void,
        _compare_desc: *mut c_void, result: *mut c_void, _result_desc: *mut c_void; op_context)
        Compare, Elements::At(buf, count), Elements::At(compare, count),
        Elements::At(result, count), op_context, Default;
    compwritev(iov: *const sys::fi_ioc, _desc: *mut *mut c_void, count: usize,
        compare: *const sys::fi_ioc, _compare_desc: *mut *mut c_void, compare_count: usize,
        result: *mut sys::fi_ioc, _result_desc: *mut *mut c_void, result_count: usize; op_context)
        Compare, Elements::Vector(iov, count), Elements::Vector(compare, compare_count),
        Elements::Vector(result, result_count), op_context, Default;
}

const NOTHING: (*const sys::fi_ioc, usize) = (std::ptr::null(), 0);

unsafe extern "C" fn writemsg<E: Endpoint>(
    ep: *mut sys::fid_ep,
    msg: *const sys::fi_msg_atomic,
    op_flags: u64,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &Arc<E>| {
            let msg = msg.as_ref().ok_or(Errno::EINVAL)?;
            submit(ep, &op::Op::Atomic(of_msg(msg, Form::Base, NOTHING, NOTHING, op_flags)?))
        })
    }
}

unsafe extern "C" fn readwritemsg<E: Endpoint>(
    ep: *mut sys::fid_ep,
    msg: *const sys::fi_msg_atomic,
    result: *mut sys::fi_ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    op_flags: u64,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &Arc<E>| {
            let msg = msg.as_ref().ok_or(Errno::EINVAL)?;
            let result = (result.cast_const(), result_count);
            submit(ep, &op::Op::Atomic(of_msg(msg, Form::Fetch, result, NOTHING, op_flags)?))
        })
    }
}

unsafe extern "C" fn compwritemsg<E: Endpoint>(
    ep: *mut sys::fid_ep,
    msg: *const sys::fi_msg_atomic,
    compare: *const sys::fi_ioc,
    _compare_desc: *mut *mut c_void,
    compare_count: usize,
    result: *mut sys::fi_ioc,
    _result_desc: *mut *mut c_void,
    result_count: usize,
    op_flags: u64,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &Arc<E>| {
            let msg = msg.as_ref().ok_or(Errno::EINVAL)?;
            let compare = (compare, compare_count);
            let result = (result.cast_const(), result_count);
            submit(ep, &op::Op::Atomic(of_msg(msg, Form::Compare, result, compare, op_flags)?))
        })
    }
}

macro_rules! valid {
    ($($name:ident = $form:ident),*) => {$(
        unsafe extern "C" fn $name(
            _ep: *mut sys::fid_ep,
            datatype: sys::fi_datatype,
            op: sys::fi_op,
            count: *mut usize,
        ) -> c_int {
            guard::call(|| {
                let (_, _, elements) = limit(Form::$form, datatype, op)?;
                // SAFETY: null, or a place for the answer.
                unsafe { crate::ops::answer(count, elements) }
            })
        }
    )*};
}

valid!(writevalid = Base, readwritevalid = Fetch, compwritevalid = Compare);
