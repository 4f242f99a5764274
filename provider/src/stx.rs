// SPDX-License-Identifier: BSD-2-Clause
//! `fi_stx_context`: shared transmit contexts.

use std::sync::Arc;

use ffi::{Errno, Result, info::TxAttr, object::Object, sys};

use crate::{
    attr,
    domain::{Domain, OfDomain},
};

/// A shared transmit context. It has no queue: endpoints that are bound to it send as other
/// endpoints do. They keep no reference to the context, because Sandia OpenSHMEM closes it before
/// its endpoints.
#[derive(Debug)]
pub(crate) struct SharedTransmit {
    domain: Arc<Domain>,
}

impl SharedTransmit {
    pub(crate) fn open(domain: &Arc<Domain>, attr: &TxAttr) -> Result<Self> {
        if attr.caps & !(attr::caps_of(domain.api_version()) | attr::DOMAIN_CAPS) != 0
            || attr.op_flags & !attr::TX_OP_FLAGS != 0
        {
            return Err(Errno::EINVAL);
        }
        Ok(Self { domain: Arc::clone(domain) })
    }
}

impl Object for SharedTransmit {
    type Raw = sys::fid_stx;
}

impl OfDomain for SharedTransmit {
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}
