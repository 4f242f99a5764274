// SPDX-License-Identifier: BSD-2-Clause
//! `fi_tagged(3)`: every form becomes one [`Send`] or [`Recv`].

use std::ffi::c_void;

use super::{Endpoint, OpFlags, Recv, Send, Tables, on, vector};
use crate::{errno::Errno, flags, memory::Buffer, object::context, sys};

impl<E: Endpoint> Tables<E> {
    pub(super) const TAGGED: sys::fi_ops_tagged = sys::fi_ops_tagged {
        size: size_of::<sys::fi_ops_tagged>(),
        recv: Some(recv::<E>),
        recvv: Some(recvv::<E>),
        recvmsg: Some(recvmsg::<E>),
        send: Some(send::<E>),
        sendv: Some(sendv::<E>),
        sendmsg: Some(sendmsg::<E>),
        inject: Some(inject::<E>),
        senddata: Some(senddata::<E>),
        injectdata: Some(injectdata::<E>),
    };
}

unsafe extern "C" fn recv<E: Endpoint>(
    ep: *mut sys::fid_ep,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    source: u64,
    tag: u64,
    ignore: u64,
    op_context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &E| {
            ep.recv(&Recv {
                buffer: Buffer::contiguous(buf, len)?,
                source,
                tag: Some((tag, ignore)),
                context: context(op_context),
                flags: OpFlags::Default,
            })
        })
    }
}

unsafe extern "C" fn recvv<E: Endpoint>(
    ep: *mut sys::fid_ep,
    iov: *const sys::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    source: u64,
    tag: u64,
    ignore: u64,
    op_context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &E| {
            ep.recv(&Recv {
                buffer: vector(iov, count)?,
                source,
                tag: Some((tag, ignore)),
                context: context(op_context),
                flags: OpFlags::Default,
            })
        })
    }
}

unsafe extern "C" fn recvmsg<E: Endpoint>(
    ep: *mut sys::fid_ep,
    msg: *const sys::fi_msg_tagged,
    op_flags: u64,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &E| {
            let msg = msg.as_ref().ok_or(Errno::EINVAL)?;
            ep.recv(&Recv {
                buffer: vector(msg.msg_iov, msg.iov_count)?,
                source: msg.addr,
                tag: Some((msg.tag, msg.ignore)),
                context: context(msg.context),
                flags: OpFlags::Given(op_flags),
            })
        })
    }
}

unsafe extern "C" fn send<E: Endpoint>(
    ep: *mut sys::fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    dest: u64,
    tag: u64,
    op_context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &E| {
            ep.send(&Send {
                buffer: Buffer::contiguous(buf, len)?,
                dest,
                tag: Some(tag),
                data: None,
                context: context(op_context),
                flags: OpFlags::Default,
            })
        })
    }
}

unsafe extern "C" fn sendv<E: Endpoint>(
    ep: *mut sys::fid_ep,
    iov: *const sys::iovec,
    _desc: *mut *mut c_void,
    count: usize,
    dest: u64,
    tag: u64,
    op_context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &E| {
            ep.send(&Send {
                buffer: vector(iov, count)?,
                dest,
                tag: Some(tag),
                data: None,
                context: context(op_context),
                flags: OpFlags::Default,
            })
        })
    }
}

unsafe extern "C" fn sendmsg<E: Endpoint>(
    ep: *mut sys::fid_ep,
    msg: *const sys::fi_msg_tagged,
    op_flags: u64,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &E| {
            let msg = msg.as_ref().ok_or(Errno::EINVAL)?;
            ep.send(&Send {
                buffer: vector(msg.msg_iov, msg.iov_count)?,
                dest: msg.addr,
                tag: Some(msg.tag),
                data: (op_flags & flags::REMOTE_CQ_DATA != 0).then_some(msg.data),
                context: context(msg.context),
                flags: OpFlags::Given(op_flags),
            })
        })
    }
}

unsafe extern "C" fn inject<E: Endpoint>(
    ep: *mut sys::fid_ep,
    buf: *const c_void,
    len: usize,
    dest: u64,
    tag: u64,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &E| {
            ep.send(&Send {
                buffer: Buffer::contiguous(buf, len)?,
                dest,
                tag: Some(tag),
                data: None,
                context: context(std::ptr::null_mut()),
                flags: OpFlags::Inject,
            })
        })
    }
}

unsafe extern "C" fn senddata<E: Endpoint>(
    ep: *mut sys::fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    dest: u64,
    tag: u64,
    op_context: *mut c_void,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &E| {
            ep.send(&Send {
                buffer: Buffer::contiguous(buf, len)?,
                dest,
                tag: Some(tag),
                data: Some(data),
                context: context(op_context),
                flags: OpFlags::Default,
            })
        })
    }
}

unsafe extern "C" fn injectdata<E: Endpoint>(
    ep: *mut sys::fid_ep,
    buf: *const c_void,
    len: usize,
    data: u64,
    dest: u64,
    tag: u64,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &E| {
            ep.send(&Send {
                buffer: Buffer::contiguous(buf, len)?,
                dest,
                tag: Some(tag),
                data: Some(data),
                context: context(std::ptr::null_mut()),
                flags: OpFlags::Inject,
            })
        })
    }
}
