// SPDX-License-Identifier: BSD-2-Clause
//! `fi_trigger(3)`: operations that wait for a counter. `FI_TRIGGER` has the
//! condition in the operation's context; deferred work (`FI_QUEUE_WORK`) is a
//! structure of its own, which also names a counter for the completion.

use std::sync::Arc;

use crate::{
    atomic::Form,
    errno::{Errno, Result},
    flags,
    memory::Context,
    object::{self, Bindable, Bound, context},
    ops::{
        cntr::Counter,
        ep::{Endpoint, OpFlags, Recv, Send, atomic, atomic::Atomic, rma, rma::Rma, vector},
    },
    sys,
};

/// An operation of an endpoint.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "made in place, moved once")]
pub enum Op {
    /// `fi_[t]sendmsg`.
    Send(Send),
    /// `fi_[t]recvmsg`.
    Recv(Recv),
    /// `fi_readmsg`, `fi_writemsg`.
    Rma(Rma),
    /// `fi_atomicmsg`, `fi_fetch_atomicmsg`, `fi_compare_atomicmsg`.
    Atomic(Atomic),
}

impl Op {
    /// Its own flags.
    #[must_use]
    pub fn flags(&self) -> u64 {
        let op_flags = match self {
            Self::Send(op) => op.flags,
            Self::Recv(op) => op.flags,
            Self::Rma(op) => op.flags,
            Self::Atomic(op) => op.flags,
        };
        match op_flags {
            OpFlags::Given(given) => given,
            OpFlags::Default | OpFlags::Inject => 0,
        }
    }

    /// What its completion says.
    #[must_use]
    pub fn context(&self) -> Context {
        match self {
            Self::Send(op) => op.context,
            Self::Recv(op) => op.context,
            Self::Rma(op) => op.context,
            Self::Atomic(op) => op.context,
        }
    }

    /// The operation without `FI_TRIGGER`: its time has come.
    #[must_use]
    fn now(mut self) -> Self {
        let op_flags = match &mut self {
            Self::Send(op) => &mut op.flags,
            Self::Recv(op) => &mut op.flags,
            Self::Rma(op) => &mut op.flags,
            Self::Atomic(op) => &mut op.flags,
        };
        if let OpFlags::Given(given) = op_flags {
            *given &= !flags::TRIGGER;
        }
        self
    }

    /// Starts the operation.
    ///
    /// # Errors
    /// Those of the call it stands for.
    #[inline]
    pub fn start<E: Endpoint>(&self, ep: &E) -> Result<()> {
        match self {
            Self::Send(op) => ep.send(op),
            Self::Recv(op) => ep.recv(op),
            Self::Rma(op) => ep.rma(op),
            Self::Atomic(op) => ep.atomic(op),
        }
    }

    /// The condition of an operation with `FI_TRIGGER`, and the operation without it.
    ///
    /// # Errors
    /// `EINVAL` if the context holds none, `ENOSYS` if it is no threshold.
    ///
    /// The application vouches for the context, as `fi_trigger(3)` describes it.
    pub fn triggered(&self) -> Result<Option<(Trigger, Self)>> {
        if self.flags() & flags::TRIGGER == 0 {
            return Ok(None);
        }
        let raw = self.context().0 as *const sys::fi_triggered_context;
        // SAFETY: with FI_TRIGGER the context is such a structure (`fi_trigger(3)`); null is handled.
        let raw = unsafe { raw.as_ref() }.ok_or(Errno::EINVAL)?;
        if raw.event_type != sys::FI_TRIGGER_THRESHOLD {
            return Err(Errno::ENOSYS);
        }
        // SAFETY: the event type says which member it is.
        let threshold = unsafe { raw.trigger.threshold };
        let counter = Bound::of(threshold.cntr.cast(), sys::FI_CLASS_CNTR);
        Ok(Some((Trigger { counter, threshold: threshold.threshold as u64 }, self.clone().now())))
    }
}

/// What a triggered operation waits for.
#[derive(Debug)]
pub struct Trigger {
    /// The counter.
    pub counter: Bound,
    /// The count it must reach.
    pub threshold: u64,
}

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

/// Address of a `struct fi_deferred_work`. Never followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkName(usize);

/// A `struct fi_deferred_work` as C passes it.
#[derive(Debug)]
pub struct RawWork(*const sys::fi_deferred_work);

impl RawWork {
    /// # Safety
    /// `raw` is null or such a structure, valid as long as self.
    pub(crate) unsafe fn new(raw: *const sys::fi_deferred_work) -> Self {
        Self(raw)
    }

    /// Names the work.
    #[must_use]
    pub fn name(&self) -> WorkName {
        WorkName(self.0 as usize)
    }

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
            let raw = self.0.as_ref().ok_or(Errno::EINVAL)?;
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
