// SPDX-License-Identifier: BSD-2-Clause
//! What an endpoint does.

use std::sync::Arc;

use super::op::{Atomic, Op, Recv, Rma, Send, Trigger};
use crate::{
    errno::{Errno, Result},
    memory::Context,
    object::Bindable,
    sys,
};

/// An endpoint. What only some of its kinds do is refused unless they do it.
pub trait Endpoint: Bindable<Raw = sys::fid_ep> {
    /// `fi_[t]send*`, `fi_[t]inject*`.
    ///
    /// # Errors
    /// `EAGAIN` when the operation must be tried again after progress.
    fn send(&self, _op: &Send) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `fi_[t]recv*`.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    fn recv(&self, _op: &Recv) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `fi_read*`, `fi_write*`, `fi_inject_write*`.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    fn rma(&self, _op: &Rma) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `fi_*atomic*`.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    fn atomic(&self, _op: &Atomic) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// An operation with `FI_TRIGGER`: starts it when the counter is there.
    ///
    /// # Errors
    /// `EINVAL` if the counter is none of this provider.
    fn trigger(self: &Arc<Self>, _trigger: &Trigger, _op: Op) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `fi_cancel`.
    ///
    /// # Errors
    /// `ENOENT` if nothing with that context can be cancelled.
    fn cancel(&self, context: Context) -> Result<()>;

    /// `fi_getname`.
    ///
    /// # Errors
    /// `EOPBADSTATE` if there is no address yet.
    fn name(&self) -> Result<Vec<u8>>;

    /// `fi_setname`.
    ///
    /// # Errors
    /// The address cannot be taken.
    fn set_name(&self, _address: &[u8]) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `fi_getopt` for an option of the endpoint level: its value as a `size_t`.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for options that are not known.
    fn option(&self, name: u32) -> Result<usize>;

    /// `fi_setopt` for an option of the endpoint level.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for options that are not known, `EINVAL` for values that are not possible.
    fn set_option(&self, name: u32, value: usize) -> Result<()>;
}

impl Op {
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
}
