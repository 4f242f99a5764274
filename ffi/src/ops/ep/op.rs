// SPDX-License-Identifier: BSD-2-Clause
//! Operations of an endpoint: the arguments of a call, checked and typed.

use std::ffi::c_void;

use crate::{
    atomic::{self, Datatype, Form},
    errno::{Errno, Result},
    flags,
    memory::{Buffer, IOV_LIMIT, OpContext, RemoteParts},
    object::{Bound, context},
    ops::array,
    sys,
};

/// Source of the flags of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpFlags {
    /// The endpoint's `op_flags`, for every call except `*msg` and inject.
    Default,
    /// The flags of a `*msg` call.
    Given(u64),
    /// An inject: the buffer is free on return, and no completion is reported.
    Inject,
}

/// A send.
#[derive(Clone, Debug)]
pub struct Send {
    /// The message.
    pub buffer: Buffer,
    /// Destination.
    pub dest: u64,
    /// Match bits; `None` for untagged messages.
    pub tag: Option<u64>,
    /// Remote CQ data.
    pub data: Option<u64>,
    /// Context of the operation.
    pub context: OpContext,
    /// Flags of the operation.
    pub flags: OpFlags,
}

/// A receive.
#[derive(Clone, Debug)]
pub struct Recv {
    /// Memory for the message.
    pub buffer: Buffer,
    /// Source, or `FI_ADDR_UNSPEC`.
    pub source: u64,
    /// Match bits and ignore bits; `None` for untagged messages.
    pub tag: Option<(u64, u64)>,
    /// Context of the operation.
    pub context: OpContext,
    /// Flags of the operation.
    pub flags: OpFlags,
}

impl Send {
    /// Creates a send with the flags of the endpoint.
    #[inline(always)]
    pub(super) fn new(
        buffer: Buffer,
        dest: u64,
        tag: Option<u64>,
        data: Option<u64>,
        op_context: *mut c_void,
    ) -> Self {
        Self { buffer, dest, tag, data, context: context(op_context), flags: OpFlags::Default }
    }

    /// Creates an inject. It has no context, since it reports no completion.
    #[inline(always)]
    pub(super) fn inject(buffer: Buffer, dest: u64, tag: Option<u64>, data: Option<u64>) -> Self {
        Self { buffer, dest, tag, data, context: OpContext(0), flags: OpFlags::Inject }
    }
}

impl Recv {
    /// Creates a receive with the flags of the endpoint.
    #[inline(always)]
    pub(super) fn new(
        buffer: Buffer,
        source: u64,
        tag: Option<(u64, u64)>,
        op_context: *mut c_void,
    ) -> Self {
        Self { buffer, source, tag, context: context(op_context), flags: OpFlags::Default }
    }
}

/// A read or a write.
#[derive(Clone, Debug)]
pub struct Rma {
    /// True for a write.
    pub write: bool,
    /// Local memory.
    pub buffer: Buffer,
    /// The peer.
    pub peer: u64,
    /// Memory of the peer.
    pub remote: RemoteParts,
    /// Remote CQ data.
    pub data: Option<u64>,
    /// Context of the operation.
    pub context: OpContext,
    /// Flags of the operation.
    pub flags: OpFlags,
}

/// An atomic operation.
#[derive(Clone, Debug)]
pub struct Atomic {
    /// Base, fetch or compare.
    pub form: Form,
    /// Type of the elements.
    pub datatype: Datatype,
    /// The operation on each element.
    pub op: atomic::Op,
    /// Local elements; empty for `FI_ATOMIC_READ`.
    pub operand: Buffer,
    /// Elements to compare with.
    pub compare: Buffer,
    /// Memory for the old elements.
    pub result: Buffer,
    /// The peer.
    pub peer: u64,
    /// Elements of the peer; lengths are in bytes.
    pub remote: RemoteParts,
    /// Context of the operation.
    pub context: OpContext,
    /// Flags of the operation.
    pub flags: OpFlags,
}

/// An operation of an endpoint.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "made in place, moved once")]
pub enum EndpointOp {
    /// A send.
    Send(Send),
    /// A receive.
    Recv(Recv),
    /// A read or a write.
    Rma(Rma),
    /// An atomic operation.
    Atomic(Atomic),
}

impl EndpointOp {
    fn parts(&self) -> (OpContext, OpFlags) {
        match self {
            Self::Send(op) => (op.context, op.flags),
            Self::Recv(op) => (op.context, op.flags),
            Self::Rma(op) => (op.context, op.flags),
            Self::Atomic(op) => (op.context, op.flags),
        }
    }

    fn flags_mut(&mut self) -> &mut OpFlags {
        match self {
            Self::Send(op) => &mut op.flags,
            Self::Recv(op) => &mut op.flags,
            Self::Rma(op) => &mut op.flags,
            Self::Atomic(op) => &mut op.flags,
        }
    }

    /// Returns the flags of a `*msg` call; 0 for other calls.
    #[must_use]
    pub fn flags(&self) -> u64 {
        if let OpFlags::Given(given) = self.parts().1 { given } else { 0 }
    }

    /// Returns the context that the completion reports.
    #[must_use]
    pub fn context(&self) -> OpContext {
        self.parts().0
    }

    /// Returns the condition of an operation with `FI_TRIGGER`, and the operation without this
    /// flag; `None` if it has no such flag. The application vouches for the context, as
    /// `fi_trigger(3)` describes it.
    ///
    /// # Errors
    /// `EINVAL` if the context is null, `ENOSYS` if the condition is not a threshold.
    pub fn triggered(&self) -> Result<Option<(Trigger, Self)>> {
        if self.flags() & flags::TRIGGER == 0 {
            return Ok(None);
        }
        let raw = self.context().0 as *const sys::fi_triggered_context;
        // SAFETY: with FI_TRIGGER the context is such a structure, or null (`fi_trigger(3)`).
        let raw = unsafe { raw.as_ref() }.ok_or(Errno::EINVAL)?;
        if raw.event_type != sys::FI_TRIGGER_THRESHOLD {
            return Err(Errno::ENOSYS);
        }
        // SAFETY: the event type says which member it is.
        let threshold = unsafe { raw.trigger.threshold };
        let counter = Bound::of(threshold.cntr.cast(), sys::FI_CLASS_CNTR);
        let trigger = Trigger { counter, threshold: threshold.threshold as u64 };
        let mut op = self.clone();
        *op.flags_mut() = OpFlags::Given(self.flags() & !flags::TRIGGER);
        Ok(Some((trigger, op)))
    }
}

/// The condition of a triggered operation.
#[derive(Debug)]
pub struct Trigger {
    /// The counter.
    pub counter: Bound,
    /// The count that it must reach.
    pub threshold: u64,
}

/// Returns the buffer of a call with an I/O vector.
///
/// # Safety
/// `iov` holds `count` entries whose memory stays valid for the operation.
pub(super) unsafe fn vector(iov: *const sys::iovec, count: usize) -> Result<Buffer> {
    // SAFETY: bindgen's iovec is the C library's; the caller vouches for the entries.
    unsafe { Buffer::vector(iov.cast(), count) }
}

/// Returns the parts of the peer's memory that a `*msg` call names.
///
/// # Errors
/// `EINVAL` for no part or more than [`IOV_LIMIT`] parts, or if the pointer is null.
///
/// # Safety
/// `first` is null or valid for reads of `count` parts.
pub(super) unsafe fn remote_array<'a, T>(first: *const T, count: usize) -> Result<&'a [T]> {
    if count == 0 || count > IOV_LIMIT {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the caller vouches for the parts.
    unsafe { array(first, count) }
}
