// SPDX-License-Identifier: BSD-2-Clause
//! What the entry points of all tables share.

use std::sync::Arc;

use super::endpoint::Endpoint;
use super::op::Op;
use crate::{errno::Result, guard, memory::Buffer, object, sys};

/// The tables of an endpoint, each beside its entry points.
pub(super) struct Tables<E>(std::marker::PhantomData<E>);

/// Runs an operation on an endpoint.
///
/// # Safety
/// `ep` is the pointer C called the endpoint's table with.
#[inline]
pub(super) unsafe fn on<E: Endpoint>(
    ep: *mut sys::fid_ep,
    op: impl FnOnce(&Arc<E>) -> Result<()>,
) -> isize {
    // SAFETY: the caller vouches for the pointer.
    guard::call(|| op(unsafe { object::get::<_, E>(ep) }?).map(|()| 0))
}

/// Starts an operation of a `*msg` call, now or when its trigger says.
#[inline]
pub(super) fn submit<E: Endpoint>(ep: &Arc<E>, op: &Op) -> Result<()> {
    match op.triggered()? {
        None => op.start(&**ep),
        Some((trigger, op)) => ep.trigger(&trigger, op),
    }
}

/// Buffer of a `*msg` call.
///
/// # Safety
/// `iov` holds `count` entries as `fi_msg(3)` asks.
pub(crate) unsafe fn vector(iov: *const sys::iovec, count: usize) -> Result<Buffer> {
    // SAFETY: bindgen's iovec is the C library's; the caller vouches for the entries.
    unsafe { Buffer::vector(iov.cast(), count) }
}
