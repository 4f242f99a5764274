// SPDX-License-Identifier: BSD-2-Clause
//! `fi_scalable_ep`: an endpoint that does nothing itself, and opens contexts that do.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use super::{Endpoint, create_as, entry::Tables, raw};
use crate::{
    errno::{Errno, Result},
    guard,
    info::{RxAttr, TxAttr},
    object::{self, Bindable},
    ops::{answer, fid, table},
    sys,
};

/// A scalable endpoint.
pub trait ScalableEndpoint: Endpoint {
    /// A transmit or receive context of it.
    type Context: Endpoint;

    /// `fi_tx_context`; also answers the attributes that the context has.
    ///
    /// # Errors
    /// `EINVAL` for an index that is out of range or attributes that cannot be met, `EBUSY` if the
    /// context is open.
    fn tx_context(
        self: &Arc<Self>,
        index: usize,
        attr: Option<&TxAttr>,
    ) -> Result<(Arc<Self::Context>, TxAttr)>;

    /// `fi_rx_context`, likewise.
    ///
    /// # Errors
    /// As [`ScalableEndpoint::tx_context`].
    fn rx_context(
        self: &Arc<Self>,
        index: usize,
        attr: Option<&RxAttr>,
    ) -> Result<(Arc<Self::Context>, RxAttr)>;
}

struct Scalable<S>(std::marker::PhantomData<S>);

impl<S: ScalableEndpoint> Scalable<S> {
    const EP: sys::fi_ops_ep = {
        let mut ops = Tables::<S>::EP;
        ops.tx_ctx = Some(tx_ctx::<S>);
        ops.rx_ctx = Some(rx_ctx::<S>);
        ops
    };
}

pub(crate) fn create<S: ScalableEndpoint>(sep: Arc<S>, context: *mut c_void) -> *mut sys::fid_ep {
    let raw = sys::fid_ep { ops: table!(Scalable::<S>::EP), ..raw::<S>() };
    fid::create_as(sys::FI_CLASS_SEP, raw, sep, context)
}

/// Opens a context: reads the attributes, asks the endpoint, answers C.
///
/// # Safety
/// The pointers are those C called the endpoint's table with.
unsafe fn open<S: ScalableEndpoint, A>(
    sep: *mut sys::fid_ep,
    index: c_int,
    attr: *mut A,
    to: *mut *mut sys::fid_ep,
    make: impl FnOnce(&Arc<S>, usize, Option<&mut A>) -> Result<*mut sys::fid_ep>,
) -> c_int {
    guard::call(|| {
        let index = usize::try_from(index).map_err(|_| Errno::EINVAL)?;
        // SAFETY: the caller vouches for the pointers, nulls are handled.
        unsafe {
            let sep = object::get::<<S as Bindable>::Raw, S>(sep)?;
            if to.is_null() {
                return Err(Errno::EINVAL);
            }
            answer(to, make(sep, index, attr.as_mut())?)
        }
    })
}

unsafe extern "C" fn tx_ctx<S: ScalableEndpoint>(
    sep: *mut sys::fid_ep,
    index: c_int,
    attr: *mut sys::fi_tx_attr,
    to: *mut *mut sys::fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: reached through the endpoint's table.
    unsafe {
        open(sep, index, attr, to, |sep: &Arc<S>, index, attr| {
            let wanted = attr.as_deref().map(TxAttr::read);
            let (made, has) = sep.tx_context(index, wanted.as_ref())?;
            if let Some(attr) = attr {
                has.write(attr);
            }
            Ok(create_as(sys::FI_CLASS_TX_CTX, made, context))
        })
    }
}

unsafe extern "C" fn rx_ctx<S: ScalableEndpoint>(
    sep: *mut sys::fid_ep,
    index: c_int,
    attr: *mut sys::fi_rx_attr,
    to: *mut *mut sys::fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: reached through the endpoint's table.
    unsafe {
        open(sep, index, attr, to, |sep: &Arc<S>, index, attr| {
            let wanted = attr.as_deref().map(RxAttr::read);
            let (made, has) = sep.rx_context(index, wanted.as_ref())?;
            if let Some(attr) = attr {
                has.write(attr);
            }
            Ok(create_as(sys::FI_CLASS_RX_CTX, made, context))
        })
    }
}
