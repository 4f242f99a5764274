// SPDX-License-Identifier: BSD-2-Clause
//! What `*msg` calls of messages ask for.

use super::entry::vector;
use super::op::{Op, OpFlags, Recv, Send};
use crate::{errno::Result, flags, object::context, sys};

/// # Safety
/// The message is as `fi_msg(3)` describes it.
pub(crate) unsafe fn message(msg: &sys::fi_msg, op_flags: u64, send: bool) -> Result<Op> {
    // SAFETY: the caller vouches for the vector.
    let buffer = unsafe { vector(msg.msg_iov, msg.iov_count) }?;
    Ok(made(buffer, msg.addr, (msg.context, msg.data), (None, None), op_flags, send))
}

/// # Safety
/// The message is as `fi_tagged(3)` describes it.
pub(crate) unsafe fn tagged(msg: &sys::fi_msg_tagged, op_flags: u64, send: bool) -> Result<Op> {
    // SAFETY: the caller vouches for the vector.
    let buffer = unsafe { vector(msg.msg_iov, msg.iov_count) }?;
    let tags = (Some(msg.tag), Some((msg.tag, msg.ignore)));
    Ok(made(buffer, msg.addr, (msg.context, msg.data), tags, op_flags, send))
}

fn made(
    buffer: crate::Buffer,
    peer: u64,
    (op_context, data): (*mut libc::c_void, u64),
    (send_tag, recv_tag): (Option<u64>, Option<(u64, u64)>),
    op_flags: u64,
    send: bool,
) -> Op {
    let flags = OpFlags::Given(op_flags);
    let context = context(op_context);
    if send {
        let data = (op_flags & flags::REMOTE_CQ_DATA != 0).then_some(data);
        Op::Send(Send { buffer, dest: peer, tag: send_tag, data, context, flags })
    } else {
        Op::Recv(Recv { buffer, source: peer, tag: recv_tag, context, flags })
    }
}
