// SPDX-License-Identifier: BSD-2-Clause
//! Operations of an endpoint.

use crate::{
    atomic::{self, Datatype, Form},
    errno::{Errno, Result},
    flags,
    memory::{Buffer, Context, IOV_LIMIT},
    object::Bound,
    sys,
};

/// Where the flags of an operation come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpFlags {
    /// The endpoint's `op_flags`: every form but `*msg` and inject.
    Default,
    /// The flags of a `*msg` call.
    Given(u64),
    /// An inject form: the buffer is free on return and nothing is reported.
    Inject,
}

/// A send in any of its forms.
#[derive(Clone, Debug)]
pub struct Send {
    /// What is sent.
    pub buffer: Buffer,
    /// Destination.
    pub dest: u64,
    /// Match bits; none for untagged messages.
    pub tag: Option<u64>,
    /// Remote CQ data.
    pub data: Option<u64>,
    /// Context of the operation.
    pub context: Context,
    /// Flags of the operation.
    pub flags: OpFlags,
}

/// A receive in any of its forms.
#[derive(Clone, Debug)]
pub struct Recv {
    /// Where the message goes.
    pub buffer: Buffer,
    /// Source, or `FI_ADDR_UNSPEC`.
    pub source: u64,
    /// Match bits and ignore bits; none for untagged messages.
    pub tag: Option<(u64, u64)>,
    /// Context of the operation.
    pub context: Context,
    /// Flags of the operation.
    pub flags: OpFlags,
}

/// Memory of a peer: a part of one of its regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RemotePart {
    /// Where, as the region counts.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// Key of the region.
    pub key: u64,
}

/// Parts of a peer's memory, in the order of the data.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteParts {
    parts: [RemotePart; IOV_LIMIT],
    count: usize,
}

impl RemoteParts {
    /// The parts.
    ///
    /// # Errors
    /// `EINVAL` for more than [`IOV_LIMIT`], or if their lengths exceed all memory.
    pub fn new(parts: impl IntoIterator<Item = RemotePart>) -> Result<Self> {
        let mut all = Self::default();
        let mut len = 0_u64;
        for part in parts {
            *all.parts.get_mut(all.count).ok_or(Errno::EINVAL)? = part;
            all.count += 1;
            len = len.checked_add(part.len).ok_or(Errno::EINVAL)?;
        }
        Ok(all)
    }

    /// Each part.
    #[must_use]
    pub fn as_slice(&self) -> &[RemotePart] {
        &self.parts[..self.count]
    }

    /// The part of `len` bytes from `offset` on, as far as there are so many.
    #[must_use]
    pub fn part(&self, mut offset: u64, mut len: u64) -> Self {
        let mut cut = Self::default();
        for part in self.as_slice() {
            let skip = offset.min(part.len);
            offset -= skip;
            let take = len.min(part.len - skip);
            if take > 0 {
                let addr = part.addr.wrapping_add(skip);
                cut.parts[cut.count] = RemotePart { addr, len: take, key: part.key };
                cut.count += 1;
                len -= take;
            }
        }
        cut
    }

    /// Length in bytes of all parts.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.as_slice().iter().map(|part| part.len).sum()
    }

    /// Whether there is no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A read or a write in any of its forms.
#[derive(Clone, Debug)]
pub struct Rma {
    /// Whether it is a write.
    pub write: bool,
    /// Memory here.
    pub buffer: Buffer,
    /// The peer.
    pub peer: u64,
    /// Memory there.
    pub remote: RemoteParts,
    /// Remote CQ data.
    pub data: Option<u64>,
    /// Context of the operation.
    pub context: Context,
    /// Flags of the operation.
    pub flags: OpFlags,
}

/// An atomic operation in any of its forms.
#[derive(Clone, Debug)]
pub struct Atomic {
    /// Whether the old elements come back, and whether a comparison decides.
    pub form: Form,
    /// What an element is.
    pub datatype: Datatype,
    /// What is done with it.
    pub op: atomic::Op,
    /// Elements here; none are read for `FI_ATOMIC_READ`.
    pub operand: Buffer,
    /// Elements that are compared.
    pub compare: Buffer,
    /// Where the old elements go.
    pub result: Buffer,
    /// The peer.
    pub peer: u64,
    /// Elements there, counted in bytes.
    pub remote: RemoteParts,
    /// Context of the operation.
    pub context: Context,
    /// Flags of the operation.
    pub flags: OpFlags,
}

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
