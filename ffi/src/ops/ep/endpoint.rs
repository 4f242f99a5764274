// SPDX-License-Identifier: BSD-2-Clause
//! The trait of an endpoint, with one method for each kind of operation.

use std::sync::Arc;

use super::op::{Atomic, EndpointOp, Recv, Rma, Send, Trigger};
use crate::{
    errno::{Errno, Result},
    memory::OpContext,
    object::Object,
    sys,
};

/// An endpoint. By default, the calls that only some kinds of endpoints support return
/// `EOPNOTSUPP`.
pub trait Endpoint: Object<Raw = sys::fid_ep> {
    /// `fi_[t]send*`, `fi_[t]inject*`.
    ///
    /// # Errors
    /// `EAGAIN` if the application must try again after progress.
    fn send(&self, _op: &Send) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `fi_[t]recv*`.
    ///
    /// # Errors
    /// Those of [`Endpoint::send`].
    fn recv(&self, _op: &Recv) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `fi_read*`, `fi_write*`, `fi_inject_write*`.
    ///
    /// # Errors
    /// Those of [`Endpoint::send`].
    fn rma(&self, _op: &Rma) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `fi_*atomic*`.
    ///
    /// # Errors
    /// Those of [`Endpoint::send`].
    fn atomic(&self, _op: &Atomic) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Starts an operation with `FI_TRIGGER` when the counter of `trigger` reaches the threshold.
    ///
    /// # Errors
    /// `EINVAL` if the counter belongs to another provider, `EDOMAIN` if it belongs to another
    /// domain.
    fn trigger(self: &Arc<Self>, _trigger: &Trigger, _op: EndpointOp) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `fi_cancel`.
    ///
    /// # Errors
    /// `ENOENT` if no operation with that context can be cancelled.
    fn cancel(&self, context: OpContext) -> Result<()>;

    /// `fi_getname`: returns the bytes of the address.
    ///
    /// # Errors
    /// `EOPBADSTATE` if the endpoint has no address yet.
    fn name(&self) -> Result<Vec<u8>>;

    /// `fi_setname`.
    ///
    /// # Errors
    /// The address is in use or invalid.
    fn set_name(&self, _address: &[u8]) -> Result<()> {
        Err(Errno::EOPNOTSUPP)
    }

    /// `fi_getopt` at the level `FI_OPT_ENDPOINT`. Returns the value of a `size_t` option.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for unknown options.
    fn option(&self, name: u32) -> Result<usize>;

    /// `fi_setopt` at the level `FI_OPT_ENDPOINT`.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for unknown options, `EINVAL` for invalid values.
    fn set_option(&self, name: u32, value: usize) -> Result<()>;
}

impl EndpointOp {
    /// Starts the operation.
    ///
    /// # Errors
    /// Those of the call.
    #[inline]
    pub fn start<E: Endpoint>(&self, ep: &E) -> Result<()> {
        match self {
            Self::Send(op) => ep.send(op),
            Self::Recv(op) => ep.recv(op),
            Self::Rma(op) => ep.rma(op),
            Self::Atomic(op) => ep.atomic(op),
        }
    }

    /// Starts the operation now, or when its trigger fires if it has `FI_TRIGGER`.
    ///
    /// # Errors
    /// Those of the call, or of an invalid trigger.
    #[inline]
    pub fn submit<E: Endpoint>(&self, ep: &Arc<E>) -> Result<()> {
        match self.triggered()? {
            None => self.start(&**ep),
            Some((trigger, op)) => ep.trigger(&trigger, op),
        }
    }
}
