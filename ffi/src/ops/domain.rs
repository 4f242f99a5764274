// SPDX-License-Identifier: BSD-2-Clause
//! `fi_domain(3)`: domains, which open most other objects.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use crate::{
    atomic::Form,
    errno::{Errno, Result},
    flags,
    info::{Info, RxAttr, TxAttr},
    memory::RegionMemory,
    object::Object,
    ops::{
        answer,
        av::{self, AddressVector, AvAttr},
        cntr::{self, CntrAttr, Counter},
        cq::{self, CompletionQueue, CqAttr},
        entry_points,
        ep::{
            self, Endpoint, atomic,
            scalable::{self, ScalableEndpoint},
        },
        fid,
        mr::{MemoryRegion, MrAttr},
        poll::{self, PollSet},
        table,
    },
    sys,
};

/// A domain.
pub trait Domain: Object<Raw = sys::fid_domain> {
    /// Address vectors of the domain.
    type AddressVector: AddressVector;
    /// Completion queues of the domain.
    type CompletionQueue: CompletionQueue;
    /// Counters of the domain.
    type Counter: Counter;
    /// Endpoints of the domain.
    type Endpoint: Endpoint;
    /// Memory regions of the domain.
    type MemoryRegion: MemoryRegion;
    /// Scalable endpoints of the domain.
    type ScalableEndpoint: ScalableEndpoint;
    /// Shared receive contexts of the domain.
    type SharedReceive: Endpoint;
    /// Shared transmit contexts of the domain.
    type SharedTransmit: Object<Raw = sys::fid_stx>;
    /// Poll sets of the domain.
    type PollSet: PollSet;

    /// `fi_av_open`. The entry point writes the type of the vector back to C.
    ///
    /// # Errors
    /// The provider cannot meet the attributes.
    fn av_open(self: &Arc<Self>, attr: &AvAttr) -> Result<Arc<Self::AddressVector>>;

    /// `fi_cq_open`.
    ///
    /// # Errors
    /// The provider cannot meet the attributes.
    fn cq_open(self: &Arc<Self>, attr: &CqAttr) -> Result<Arc<Self::CompletionQueue>>;

    /// `fi_cntr_open`.
    ///
    /// # Errors
    /// The provider cannot meet the attributes.
    fn cntr_open(self: &Arc<Self>, attr: &CntrAttr) -> Result<Arc<Self::Counter>>;

    /// `fi_endpoint`.
    ///
    /// # Errors
    /// The provider cannot meet the attributes, or the address is in use.
    fn endpoint(self: &Arc<Self>, info: &Info) -> Result<Arc<Self::Endpoint>>;

    /// `fi_scalable_ep`.
    ///
    /// # Errors
    /// The provider cannot meet the attributes, or the addresses of the contexts are in use.
    fn scalable_endpoint(self: &Arc<Self>, info: &Info) -> Result<Arc<Self::ScalableEndpoint>>;

    /// `fi_mr_reg` and its other forms.
    ///
    /// # Errors
    /// `ENOKEY` if the requested key is in use, `EINVAL` for invalid attributes.
    fn mr_register(self: &Arc<Self>, attr: &MrAttr) -> Result<Arc<Self::MemoryRegion>>;

    /// `fi_srx_context`.
    ///
    /// # Errors
    /// The provider cannot meet the attributes.
    fn shared_receive(self: &Arc<Self>, attr: &RxAttr) -> Result<Arc<Self::SharedReceive>>;

    /// `fi_stx_context`.
    ///
    /// # Errors
    /// The provider cannot meet the attributes.
    fn shared_transmit(self: &Arc<Self>, attr: &TxAttr) -> Result<Arc<Self::SharedTransmit>>;

    /// `fi_poll_open`.
    ///
    /// # Errors
    /// The flags are unknown.
    fn poll_open(self: &Arc<Self>, flags: u64) -> Result<Arc<Self::PollSet>>;
}

entry_points! {
    ops<D: Domain> = sys::fi_ops_domain, ends at endpoint2;
    domain = get(fid: *mut sys::fid_domain);
    unsupported query_collective;

    unsafe fn av_open(
        raw: *mut sys::fi_av_attr, to: *mut *mut sys::fid_av, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let raw = raw.as_mut().ok_or(Errno::EINVAL)?;
            let av = domain.av_open(&AvAttr::read(raw)?)?;
            raw.type_ = av.kind();
            if let Some(map) = av.map_addr() {
                raw.map_addr = map as *mut c_void;
            }
            Ok(av::create(av, context))
        })
    }

    unsafe fn cq_open(
        attr: *mut sys::fi_cq_attr, to: *mut *mut sys::fid_cq, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let attr = CqAttr::read(attr.as_ref().ok_or(Errno::EINVAL)?)?;
            Ok(cq::create(domain.cq_open(&attr)?, context))
        })
    }

    unsafe fn cntr_open(
        attr: *mut sys::fi_cntr_attr, to: *mut *mut sys::fid_cntr, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let attr = attr.as_ref().map(CntrAttr::read).unwrap_or_default();
            Ok(cntr::create(domain.cntr_open(&attr)?, context))
        })
    }

    unsafe fn endpoint(
        info: *mut sys::fi_info, to: *mut *mut sys::fid_ep, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let info = Info::read(info.as_ref().ok_or(Errno::EINVAL)?);
            Ok(ep::create(sys::FI_CLASS_EP, domain.endpoint(&info)?, context))
        })
    }

    unsafe fn endpoint2(
        info: *mut sys::fi_info, to: *mut *mut sys::fid_ep, flags: u64, context: *mut c_void,
    ) -> c_int {
        if flags != 0 {
            return Err(Errno::EBADFLAGS);
        }
        Errno::check(endpoint::<D>(fid, info, to, context))
    }

    unsafe fn scalable_ep(
        info: *mut sys::fi_info, to: *mut *mut sys::fid_ep, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let info = Info::read(info.as_ref().ok_or(Errno::EINVAL)?);
            Ok(scalable::create(domain.scalable_endpoint(&info)?, context))
        })
    }

    unsafe fn srx_ctx(
        attr: *mut sys::fi_rx_attr, to: *mut *mut sys::fid_ep, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let attr = attr.as_ref().map(RxAttr::read).unwrap_or_default();
            Ok(ep::create(sys::FI_CLASS_SRX_CTX, domain.shared_receive(&attr)?, context))
        })
    }

    unsafe fn stx_ctx(
        attr: *mut sys::fi_tx_attr, to: *mut *mut sys::fid_stx, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let attr = attr.as_ref().map(TxAttr::read).unwrap_or_default();
            // A shared transmit context has no operations, and only its endpoints have options.
            Ok(fid::create(sys::fid_stx::default(), domain.shared_transmit(&attr)?, context))
        })
    }

    unsafe fn poll_open(attr: *mut sys::fi_poll_attr, to: *mut *mut sys::fid_poll) -> c_int {
        answer(to, || {
            let flags = attr.as_ref().map_or(0, |attr| attr.flags);
            Ok(poll::create(domain.poll_open(flags)?))
        })
    }

    unsafe fn query_atomic(
        datatype: sys::fi_datatype, op: sys::fi_op, to: *mut sys::fi_atomic_attr, flags: u64,
    ) -> c_int {
        let form = match flags {
            0 => Form::Base,
            flags::FETCH_ATOMIC => Form::Fetch,
            flags::COMPARE_ATOMIC => Form::Compare,
            _ => return Err(Errno::EBADFLAGS),
        };
        let (datatype, _, count) = atomic::limit(form, datatype, op)?;
        answer(to, || Ok(sys::fi_atomic_attr { count, size: datatype.size() }))
    }
}

entry_points! {
    mr_ops<D: Domain> = sys::fi_ops_mr, ends at regattr;
    domain = find(fid: *mut sys::fid);

    unsafe fn reg(
        buf: *const c_void, len: usize, access: u64, offset: u64, requested_key: u64, flags: u64,
        to: *mut *mut sys::fid_mr, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let iov = libc::iovec { iov_base: buf.cast_mut(), iov_len: len };
            let window = RegionMemory::new(&raw const iov, 1)?;
            let attr = MrAttr { window, access, offset, requested_key, flags };
            Ok(create_region(domain.mr_register(&attr)?, context))
        })
    }

    unsafe fn regv(
        iov: *const sys::iovec, count: usize, access: u64, offset: u64, requested_key: u64,
        flags: u64, to: *mut *mut sys::fid_mr, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            let window = RegionMemory::new(iov.cast(), count)?;
            let attr = MrAttr { window, access, offset, requested_key, flags };
            Ok(create_region(domain.mr_register(&attr)?, context))
        })
    }

    unsafe fn regattr(
        attr: *const sys::fi_mr_attr, flags: u64, to: *mut *mut sys::fid_mr,
    ) -> c_int {
        answer(to, || {
            let raw = attr.as_ref().ok_or(Errno::EINVAL)?;
            Ok(create_region(domain.mr_register(&MrAttr::read(raw, flags)?)?, raw.context))
        })
    }
}

fn create_region<M: MemoryRegion>(region: Arc<M>, context: *mut c_void) -> *mut sys::fid_mr {
    let key = region.key();
    let raw = fid::create(sys::fid_mr { key, ..Default::default() }, region, context);
    // SAFETY: just created. C passes the descriptor to later calls, which ignore it.
    unsafe { (*raw).mem_desc = raw.cast() };
    raw
}

pub(crate) fn create<D: Domain>(domain: Arc<D>, context: *mut c_void) -> *mut sys::fid_domain {
    let raw = sys::fid_domain {
        ops: table!(ops::<D>()),
        mr: table!(mr_ops::<D>()),
        ..Default::default()
    };
    fid::create(raw, domain, context)
}
