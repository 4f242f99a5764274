// SPDX-License-Identifier: BSD-2-Clause
//! `fi_msg(3)` and `fi_tagged(3)`: nine forms each, which differ in the match
//! bits only. Every form becomes one [`Send`] or [`Recv`].

use std::{ffi::c_void, sync::Arc};

use super::endpoint::Endpoint;
use super::entry::{Tables, on, submit, vector};
use super::messages;
use super::op::{OpFlags, Recv, Send};
use crate::{errno::Errno, memory::Buffer, memory::Context, object::context, sys};

/// No context: nothing is reported of an inject.
const NONE: Context = Context(0);

/// The table and the entry points of one kind of message. `recv` and `send` name
/// the match-bit arguments of the C functions and what they make; `msg` is what reads
/// the structure of the `*msg` forms.
macro_rules! forms {
    (
        $module:ident: $table:ident, $ops:ident, $raw:ident;
        recv($($ignore:ident),*) $recv_tag:expr;
        send($($tag:ident)?) $send_tag:expr;
        msg $made:path;
    ) => {
        mod $module {
            use super::*;

            impl<E: Endpoint> Tables<E> {
                pub(in crate::ops::ep) const $table: sys::$ops = sys::$ops {
                    size: size_of::<sys::$ops>(),
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

            forms!(@recv recv(buf: *mut c_void, len: usize, _desc: *mut c_void;
                $($ignore),*) Buffer::contiguous(buf, len), $recv_tag);
            forms!(@recv recvv(iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize;
                $($ignore),*) vector(iov, count), $recv_tag);
            forms!(@send send(buf: *const c_void, len: usize, _desc: *mut c_void;
                $($tag)?; op_context) Buffer::contiguous(buf, len), $send_tag, None,
                context(op_context), Default);
            forms!(@send sendv(iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize;
                $($tag)?; op_context) vector(iov, count), $send_tag, None,
                context(op_context), Default);
            forms!(@send senddata(buf: *const c_void, len: usize, _desc: *mut c_void, data: u64;
                $($tag)?; op_context) Buffer::contiguous(buf, len), $send_tag, Some(data),
                context(op_context), Default);
            forms!(@send inject(buf: *const c_void, len: usize; $($tag)?;)
                Buffer::contiguous(buf, len), $send_tag, None, NONE, Inject);
            forms!(@send injectdata(buf: *const c_void, len: usize, data: u64; $($tag)?;)
                Buffer::contiguous(buf, len), $send_tag, Some(data), NONE, Inject);

            unsafe extern "C" fn recvmsg<E: Endpoint>(
                ep: *mut sys::fid_ep,
                msg: *const sys::$raw,
                op_flags: u64,
            ) -> isize {
                // SAFETY: the arguments of the call itself, as the man page describes them.
                unsafe {
                    on(ep, |ep: &Arc<E>| {
                        submit(ep, &$made(msg.as_ref().ok_or(Errno::EINVAL)?, op_flags, false)?)
                    })
                }
            }

            unsafe extern "C" fn sendmsg<E: Endpoint>(
                ep: *mut sys::fid_ep,
                msg: *const sys::$raw,
                op_flags: u64,
            ) -> isize {
                // SAFETY: the arguments of the call itself, as the man page describes them.
                unsafe {
                    on(ep, |ep: &Arc<E>| {
                        submit(ep, &$made(msg.as_ref().ok_or(Errno::EINVAL)?, op_flags, true)?)
                    })
                }
            }
        }
    };
    (@recv $name:ident($($arg:ident: $type:ty),*; $($bits:ident),*) $buffer:expr, $tag:expr) => {
        unsafe extern "C" fn $name<E: Endpoint>(
            ep: *mut sys::fid_ep,
            $($arg: $type,)*
            source: u64,
            $($bits: u64,)*
            op_context: *mut c_void,
        ) -> isize {
            // SAFETY: the arguments of the call itself, as the man page describes them.
            unsafe {
                on(ep, |ep: &Arc<E>| {
                    ep.recv(&Recv {
                        buffer: $buffer?,
                        source,
                        tag: $tag,
                        context: context(op_context),
                        flags: OpFlags::Default,
                    })
                })
            }
        }
    };
    (
        @send $name:ident($($arg:ident: $type:ty),*; $($bits:ident)?; $($context:ident)?)
        $buffer:expr, $tag:expr, $data:expr, $made:expr, $flags:ident
    ) => {
        unsafe extern "C" fn $name<E: Endpoint>(
            ep: *mut sys::fid_ep,
            $($arg: $type,)*
            dest: u64,
            $($bits: u64,)?
            $($context: *mut c_void,)?
        ) -> isize {
            // SAFETY: the arguments of the call itself, as the man page describes them.
            unsafe {
                on(ep, |ep: &Arc<E>| {
                    ep.send(&Send {
                        buffer: $buffer?,
                        dest,
                        tag: $tag,
                        data: $data,
                        context: $made,
                        flags: OpFlags::$flags,
                    })
                })
            }
        }
    };
}

forms! {
    msg: MSG, fi_ops_msg, fi_msg;
    recv() None;
    send() None;
    msg messages::message;
}

forms! {
    tagged: TAGGED, fi_ops_tagged, fi_msg_tagged;
    recv(tag, ignore) Some((tag, ignore));
    send(tag) Some(tag);
    msg messages::tagged;
}
