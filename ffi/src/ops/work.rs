// SPDX-License-Identifier: BSD-2-Clause
//! Deferred work of `fi_trigger(3)`: operations that wait for a counter. `FI_QUEUE_WORK` passes a
//! structure that also names a counter for the completion.

use std::sync::Arc;

use crate::{
    atomic::Form,
    errno::{Errno, Result},
    object::find,
    ops::{
        cntr::Counter,
        ep::{
            Endpoint,
            atomic::{self, Elements},
            messages::{message, tagged},
            rma,
        },
    },
    sys,
};
pub use crate::{
    control::{RawWork, WorkName},
    ops::ep::op::{EndpointOp, Trigger},
};

/// The operation of deferred work.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "made in place, moved once")]
pub enum Work<E, C> {
    /// An operation of an endpoint.
    Op(Arc<E>, EndpointOp),
    /// Sets a counter.
    Set(Arc<C>, u64),
    /// Adds to a counter.
    Add(Arc<C>, u64),
}

/// Deferred work.
#[derive(Debug)]
pub struct Deferred<E, C> {
    /// Name of the work, for `FI_CANCEL_WORK`.
    pub name: WorkName,
    /// Counter that the work waits for.
    pub trigger: Arc<C>,
    /// Count that the counter must reach.
    pub threshold: u64,
    /// Counter that counts the completion, if there is one.
    pub completion: Option<Arc<C>>,
    /// The operation.
    pub work: Work<E, C>,
}

impl RawWork {
    /// Returns the work, for these types of endpoints and counters.
    ///
    /// # Errors
    /// `EINVAL` for objects of other providers, `ENOSYS` for unknown operations.
    pub fn read<E, C>(&self) -> Result<Deferred<E, C>>
    where
        E: Endpoint,
        C: Counter,
    {
        // SAFETY: `new` was promised a valid structure. The type of the operation says which
        // member of the union it has, and `find` checks every fid.
        unsafe {
            let raw = self.raw().as_ref().ok_or(Errno::EINVAL)?;
            let counter = |cntr: *mut sys::fid_cntr| find::<C>(cntr.cast());
            let endpoint = |ep: *mut sys::fid_ep, op| Ok(Work::Op(find::<E>(ep.cast())?, op));
            let work = match raw.op_type {
                sys::FI_OP_SEND | sys::FI_OP_RECV => {
                    let op = raw.op.msg.as_ref().ok_or(Errno::EINVAL)?;
                    let send = raw.op_type == sys::FI_OP_SEND;
                    endpoint(op.ep, message(&op.msg, op.flags, send)?)
                }
                sys::FI_OP_TSEND | sys::FI_OP_TRECV => {
                    let op = raw.op.tagged.as_ref().ok_or(Errno::EINVAL)?;
                    let send = raw.op_type == sys::FI_OP_TSEND;
                    endpoint(op.ep, tagged(&op.msg, op.flags, send)?)
                }
                sys::FI_OP_READ | sys::FI_OP_WRITE => {
                    let op = raw.op.rma.as_ref().ok_or(Errno::EINVAL)?;
                    let write = raw.op_type == sys::FI_OP_WRITE;
                    endpoint(op.ep, rma::of_msg(&op.msg, write, op.flags)?)
                }
                sys::FI_OP_ATOMIC => {
                    let op = raw.op.atomic.as_ref().ok_or(Errno::EINVAL)?;
                    let none = Elements::None;
                    endpoint(op.ep, atomic::of_msg(&op.msg, Form::Base, none, none, op.flags)?)
                }
                sys::FI_OP_FETCH_ATOMIC => {
                    let op = raw.op.fetch_atomic.as_ref().ok_or(Errno::EINVAL)?;
                    let result = Elements::Vector(op.fetch.msg_iov, op.fetch.iov_count);
                    let none = Elements::None;
                    endpoint(op.ep, atomic::of_msg(&op.msg, Form::Fetch, result, none, op.flags)?)
                }
                sys::FI_OP_COMPARE_ATOMIC => {
                    let op = raw.op.compare_atomic.as_ref().ok_or(Errno::EINVAL)?;
                    let result = Elements::Vector(op.fetch.msg_iov, op.fetch.iov_count);
                    let compare = Elements::Vector(op.compare.msg_iov, op.compare.iov_count);
                    let form = Form::Compare;
                    endpoint(op.ep, atomic::of_msg(&op.msg, form, result, compare, op.flags)?)
                }
                sys::FI_OP_CNTR_SET | sys::FI_OP_CNTR_ADD => {
                    let op = raw.op.cntr.as_ref().ok_or(Errno::EINVAL)?;
                    let set = raw.op_type == sys::FI_OP_CNTR_SET;
                    let work = if set { Work::Set } else { Work::Add };
                    Ok(work(counter(op.cntr)?, op.value))
                }
                _ => Err(Errno::ENOSYS),
            }?;
            let completion = raw.completion_cntr;
            Ok(Deferred {
                name: self.name(),
                trigger: counter(raw.triggering_cntr)?,
                threshold: raw.threshold,
                completion: (!completion.is_null()).then(|| counter(completion)).transpose()?,
                work,
            })
        }
    }
}
