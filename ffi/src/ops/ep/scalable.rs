// SPDX-License-Identifier: BSD-2-Clause
//! `fi_scalable_ep`: an endpoint whose transmit and receive contexts do the operations.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use super::Endpoint;
use crate::{
    errno::{Errno, Result},
    info::{RxAttr, TxAttr},
    ops::{answer, entry_points, fid, table},
    sys,
};

/// A scalable endpoint.
pub trait ScalableEndpoint: Endpoint {
    /// A transmit or receive context.
    type Context: Endpoint;

    /// `fi_tx_context`. Returns the context and its attributes.
    ///
    /// # Errors
    /// `EINVAL` if the index is out of range or the provider cannot meet the attributes, `EBUSY` if
    /// the context is open.
    fn tx_context(
        self: &Arc<Self>,
        index: usize,
        attr: Option<&TxAttr>,
    ) -> Result<(Arc<Self::Context>, TxAttr)>;

    /// `fi_rx_context`. Returns the context and its attributes.
    ///
    /// # Errors
    /// Those of [`ScalableEndpoint::tx_context`].
    fn rx_context(
        self: &Arc<Self>,
        index: usize,
        attr: Option<&RxAttr>,
    ) -> Result<(Arc<Self::Context>, RxAttr)>;
}

entry_points! {
    context_ops<S: ScalableEndpoint> = sys::fi_ops_ep, ends at rx_ctx;
    sep = get(fid: *mut sys::fid_ep);
    others cancel, getopt, setopt;

    unsafe fn tx_ctx(
        index: c_int, attr: *mut sys::fi_tx_attr, to: *mut *mut sys::fid_ep, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let index = usize::try_from(index).map_err(|_| Errno::EINVAL)?;
            let wanted = attr.as_ref().map(TxAttr::read);
            let (tx, has) = sep.tx_context(index, wanted.as_ref())?;
            if let Some(attr) = attr.as_mut() {
                has.write(attr);
            }
            Ok(super::create(sys::FI_CLASS_TX_CTX, tx, context))
        })
    }

    unsafe fn rx_ctx(
        index: c_int, attr: *mut sys::fi_rx_attr, to: *mut *mut sys::fid_ep, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let index = usize::try_from(index).map_err(|_| Errno::EINVAL)?;
            let wanted = attr.as_ref().map(RxAttr::read);
            let (rx, has) = sep.rx_context(index, wanted.as_ref())?;
            if let Some(attr) = attr.as_mut() {
                has.write(attr);
            }
            Ok(super::create(sys::FI_CLASS_RX_CTX, rx, context))
        })
    }
}

const fn ops<S: ScalableEndpoint>() -> sys::fi_ops_ep {
    let own = context_ops::<S>();
    sys::fi_ops_ep { tx_ctx: own.tx_ctx, rx_ctx: own.rx_ctx, ..super::ops::<S>() }
}

pub(crate) fn create<S: ScalableEndpoint>(sep: Arc<S>, context: *mut c_void) -> *mut sys::fid_ep {
    let raw = sys::fid_ep { ops: table!(ops::<S>()), ..super::raw::<S>() };
    fid::create_as(sys::FI_CLASS_SEP, raw, sep, context)
}
