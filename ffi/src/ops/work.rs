// SPDX-License-Identifier: BSD-2-Clause
//! `fi_trigger(3)`: operations that wait for a counter. `FI_TRIGGER` has the
//! condition in the operation's context; deferred work (`FI_QUEUE_WORK`) is a
//! structure of its own, which also names a counter for the completion.

use std::sync::Arc;

use crate::{
    atomic::Form,
    errno::{Errno, Result},
    object::{self, Bindable},
    ops::{
        cntr::Counter,
        ep::{
            Endpoint, atomic,
            messages::{message, tagged},
            rma,
        },
    },
    sys,
};
pub use crate::{
    control::{RawWork, WorkName},
    ops::ep::op::{Op, Trigger},
};

/// What deferred work does.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "made in place, moved once")]
pub enum Work<E, C> {
    /// An operation of an endpoint.
    Op(Arc<E>, Op),
    /// Sets a counter.
    Set(Arc<C>, u64),
    /// Adds to a counter.
    Add(Arc<C>, u64),
}

/// Deferred work.
#[derive(Debug)]
pub struct Deferred<E, C> {
    /// Names it, for `FI_CANCEL_WORK`.
    pub name: WorkName,
    /// Counter it waits for.
    pub trigger: Arc<C>,
    /// Count that counter must reach.
    pub threshold: u64,
    /// Counter that counts its completion.
    pub completion: Option<Arc<C>>,
    /// What is done.
    pub work: Work<E, C>,
}

impl RawWork {
    /// The work, for these types of endpoints and counters.
    ///
    /// # Errors
    /// `EINVAL` for objects that are none of ours, `ENOSYS` for unknown operations.
    pub fn read<E, C>(&self) -> Result<Deferred<E, C>>
    where
        E: Endpoint,
        C: Counter,
    {
        // SAFETY: `new` was promised a valid structure; each kind of work has the member
        // of the union that its number says, and `find` checks every fid.
        unsafe {
            let raw = self.raw().as_ref().ok_or(Errno::EINVAL)?;
            let endpoint = |ep: *mut sys::fid_ep| find::<E>(ep.cast());
            let counter = |cntr: *mut sys::fid_cntr| find::<C>(cntr.cast());
            let work = match raw.op_type {
                sys::FI_OP_SEND | sys::FI_OP_RECV => {
                    let op = raw.op.msg.as_ref().ok_or(Errno::EINVAL)?;
                    let made = message(&op.msg, op.flags, raw.op_type == sys::FI_OP_SEND)?;
                    Work::Op(endpoint(op.ep)?, made)
                }
                sys::FI_OP_TSEND | sys::FI_OP_TRECV => {
                    let op = raw.op.tagged.as_ref().ok_or(Errno::EINVAL)?;
                    let made = tagged(&op.msg, op.flags, raw.op_type == sys::FI_OP_TSEND)?;
                    Work::Op(endpoint(op.ep)?, made)
                }
                sys::FI_OP_READ | sys::FI_OP_WRITE => {
                    let op = raw.op.rma.as_ref().ok_or(Errno::EINVAL)?;
                    let write = raw.op_type == sys::FI_OP_WRITE;
                    Work::Op(endpoint(op.ep)?, Op::Rma(rma::of_msg(&op.msg, write, op.flags)?))
                }
                sys::FI_OP_ATOMIC => {
                    let op = raw.op.atomic.as_ref().ok_or(Errno::EINVAL)?;
                    let none = (std::ptr::null(), 0);
                    let made = atomic::of_msg(&op.msg, Form::Base, none, none, op.flags)?;
                    Work::Op(endpoint(op.ep)?, Op::Atomic(made))
                }
                sys::FI_OP_FETCH_ATOMIC => {
                    let op = raw.op.fetch_atomic.as_ref().ok_or(Errno::EINVAL)?;
                    let result = (op.fetch.msg_iov.cast_const(), op.fetch.iov_count);
                    let none = (std::ptr::null(), 0);
                    let made = atomic::of_msg(&op.msg, Form::Fetch, result, none, op.flags)?;
                    Work::Op(endpoint(op.ep)?, Op::Atomic(made))
                }
                sys::FI_OP_COMPARE_ATOMIC => {
                    let op = raw.op.compare_atomic.as_ref().ok_or(Errno::EINVAL)?;
                    let result = (op.fetch.msg_iov.cast_const(), op.fetch.iov_count);
                    let compare = (op.compare.msg_iov, op.compare.iov_count);
                    let made = atomic::of_msg(&op.msg, Form::Compare, result, compare, op.flags)?;
                    Work::Op(endpoint(op.ep)?, Op::Atomic(made))
                }
                sys::FI_OP_CNTR_SET | sys::FI_OP_CNTR_ADD => {
                    let op = raw.op.cntr.as_ref().ok_or(Errno::EINVAL)?;
                    let cntr = counter(op.cntr)?;
                    if raw.op_type == sys::FI_OP_CNTR_SET {
                        Work::Set(cntr, op.value)
                    } else {
                        Work::Add(cntr, op.value)
                    }
                }
                _ => return Err(Errno::ENOSYS),
            };
            let completion = raw.completion_cntr;
            Ok(Deferred {
                name: self.name(),
                trigger: counter(raw.triggering_cntr)?,
                threshold: raw.threshold,
                completion: if completion.is_null() { None } else { Some(counter(completion)?) },
                work,
            })
        }
    }
}

/// An object of ours that the work names.
///
/// # Safety
/// As [`object::find`].
unsafe fn find<T: Bindable>(fid: *mut sys::fid) -> Result<Arc<T>> {
    // SAFETY: the caller vouches for the pointer.
    unsafe { object::find::<T::Raw, T>(fid) }
}
