// SPDX-License-Identifier: BSD-2-Clause
//! `fi_domain(3)`.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use crate::{
    atomic::Form,
    errno::{Errno, Result},
    flags, guard,
    info::{Info, RxAttr, TxAttr},
    memory::Window,
    object::{self, Bindable, Object},
    ops::{
        answer, av,
        av::AddressVector,
        cntr,
        cntr::Counter,
        cq,
        cq::CompletionQueue,
        enosys, ep,
        ep::Endpoint,
        ep::scalable::{self, ScalableEndpoint},
        fid, mr,
        mr::MemoryRegion,
        poll,
        poll::PollSet,
        table,
    },
    sys,
};

/// A domain.
pub trait Domain: Object {
    /// Address vectors opened on it.
    type AddressVector: AddressVector;
    /// Completion queues opened on it.
    type CompletionQueue: CompletionQueue;
    /// Counters opened on it.
    type Counter: Counter;
    /// Endpoints opened on it.
    type Endpoint: Endpoint;
    /// Memory registered with it.
    type MemoryRegion: MemoryRegion;
    /// Scalable endpoints opened on it.
    type ScalableEndpoint: ScalableEndpoint;
    /// Shared receive contexts opened on it.
    type SharedReceive: Endpoint;
    /// Shared transmit contexts opened on it.
    type SharedTransmit: Bindable<Raw = sys::fid_stx>;
    /// Poll sets opened on it.
    type PollSet: PollSet;

    /// `fi_av_open`; the type found is written back by the caller.
    ///
    /// # Errors
    /// Attributes that cannot be met.
    fn av_open(self: &Arc<Self>, attr: &av::Attr) -> Result<Arc<Self::AddressVector>>;

    /// `fi_cq_open`.
    ///
    /// # Errors
    /// Attributes that cannot be met.
    fn cq_open(self: &Arc<Self>, attr: &cq::Attr) -> Result<Arc<Self::CompletionQueue>>;

    /// `fi_cntr_open`.
    ///
    /// # Errors
    /// Attributes that cannot be met.
    fn cntr_open(self: &Arc<Self>, attr: &cntr::Attr) -> Result<Arc<Self::Counter>>;

    /// `fi_endpoint`.
    ///
    /// # Errors
    /// Attributes that cannot be met, or no address.
    fn endpoint(self: &Arc<Self>, info: &Info) -> Result<Arc<Self::Endpoint>>;

    /// `fi_scalable_ep`.
    ///
    /// # Errors
    /// Attributes that cannot be met, or no addresses.
    fn scalable_endpoint(self: &Arc<Self>, info: &Info) -> Result<Arc<Self::ScalableEndpoint>>;

    /// `fi_mr_reg` and its other forms.
    ///
    /// # Errors
    /// `ENOKEY` if the key asked for is taken, `EINVAL` for impossible attributes.
    fn mr_register(self: &Arc<Self>, attr: &mr::Attr) -> Result<Arc<Self::MemoryRegion>>;

    /// `fi_srx_context`.
    ///
    /// # Errors
    /// Attributes that cannot be met.
    fn shared_receive(self: &Arc<Self>, attr: &RxAttr) -> Result<Arc<Self::SharedReceive>>;

    /// `fi_stx_context`.
    ///
    /// # Errors
    /// Attributes that cannot be met.
    fn shared_transmit(self: &Arc<Self>, attr: &TxAttr) -> Result<Arc<Self::SharedTransmit>>;

    /// `fi_poll_open`.
    ///
    /// # Errors
    /// Flags that are not known.
    fn poll_open(self: &Arc<Self>, flags: u64) -> Result<Arc<Self::PollSet>>;
}

struct Tables<D>(std::marker::PhantomData<D>);

impl<D: Domain> Tables<D> {
    const OPS: sys::fi_ops_domain = sys::fi_ops_domain {
        av_open: Some(av_open::<D>),
        cq_open: Some(cq_open::<D>),
        endpoint: Some(endpoint::<D>),
        scalable_ep: Some(scalable_ep::<D>),
        cntr_open: Some(cntr_open::<D>),
        endpoint2: Some(endpoint2::<D>),
        srx_ctx: Some(srx_ctx::<D>),
        stx_ctx: Some(stx_ctx::<D>),
        poll_open: Some(poll_open::<D>),
        ..NONE
    };

    const MR: sys::fi_ops_mr = sys::fi_ops_mr {
        size: size_of::<sys::fi_ops_mr>(),
        reg: Some(reg::<D>),
        regv: Some(regv::<D>),
        regattr: Some(regattr::<D>),
    };
}

/// What no domain of this provider does.
const NONE: sys::fi_ops_domain = sys::fi_ops_domain {
    size: size_of::<sys::fi_ops_domain>(),
    av_open: None,
    cq_open: None,
    endpoint: None,
    scalable_ep: None,
    cntr_open: None,
    poll_open: None,
    stx_ctx: None,
    srx_ctx: None,
    query_atomic: Some(query_atomic),
    query_collective: enosys!(
        fn(*mut sys::fid_domain, sys::fi_collective_op, *mut sys::fi_collective_attr, u64) -> c_int
    ),
    endpoint2: None,
};

pub(crate) fn create<D: Domain>(domain: Arc<D>, context: *mut c_void) -> *mut sys::fid_domain {
    let raw = sys::fid_domain {
        ops: table!(Tables::<D>::OPS),
        mr: table!(Tables::<D>::MR),
        ..Default::default()
    };
    fid::create(raw, domain, context)
}

/// Opens a child of a domain: reads the attributes, asks the domain, answers C.
///
/// # Safety
/// The pointers are those C called the domain's table with.
unsafe fn open<D: Domain, A, R>(
    domain: *mut sys::fid_domain,
    attr: *mut A,
    to: *mut *mut R,
    make: impl FnOnce(&Arc<D>, Option<&mut A>) -> Result<*mut R>,
) -> c_int {
    guard::call(|| {
        // SAFETY: the caller vouches for the pointers, nulls are handled.
        unsafe {
            let domain = object::get::<_, D>(domain)?;
            if to.is_null() {
                return Err(Errno::EINVAL);
            }
            answer(to, make(domain, attr.as_mut())?)
        }
    })
}

unsafe extern "C" fn av_open<D: Domain>(
    domain: *mut sys::fid_domain,
    attr: *mut sys::fi_av_attr,
    to: *mut *mut sys::fid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: reached through the domain's table.
    unsafe {
        open(domain, attr, to, |domain: &Arc<D>, attr| {
            let raw = attr.ok_or(Errno::EINVAL)?;
            let attr = av::Attr::read(raw)?;
            let av = domain.av_open(&attr)?;
            raw.type_ = av.kind();
            if let Some(map) = av.map_addr() {
                raw.map_addr = map as *mut c_void;
            }
            Ok(av::create(av, context))
        })
    }
}

unsafe extern "C" fn cq_open<D: Domain>(
    domain: *mut sys::fid_domain,
    attr: *mut sys::fi_cq_attr,
    to: *mut *mut sys::fid_cq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: reached through the domain's table.
    unsafe {
        open(domain, attr, to, |domain: &Arc<D>, attr| {
            let attr = cq::Attr::read(attr.ok_or(Errno::EINVAL)?)?;
            Ok(cq::create(domain.cq_open(&attr)?, context))
        })
    }
}

unsafe extern "C" fn cntr_open<D: Domain>(
    domain: *mut sys::fid_domain,
    attr: *mut sys::fi_cntr_attr,
    to: *mut *mut sys::fid_cntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: reached through the domain's table.
    unsafe {
        open(domain, attr, to, |domain: &Arc<D>, attr| {
            let attr = attr.map(|raw| cntr::Attr::read(raw)).unwrap_or_default();
            Ok(cntr::create(domain.cntr_open(&attr)?, context))
        })
    }
}

unsafe extern "C" fn endpoint<D: Domain>(
    domain: *mut sys::fid_domain,
    info: *mut sys::fi_info,
    to: *mut *mut sys::fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: reached through the domain's table; the info is complete.
    unsafe {
        open(domain, info, to, |domain: &Arc<D>, info| {
            let info = Info::read(info.ok_or(Errno::EINVAL)?);
            Ok(ep::create(domain.endpoint(&info)?, context))
        })
    }
}

unsafe extern "C" fn scalable_ep<D: Domain>(
    domain: *mut sys::fid_domain,
    info: *mut sys::fi_info,
    to: *mut *mut sys::fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: reached through the domain's table; the info is complete.
    unsafe {
        open(domain, info, to, |domain: &Arc<D>, info| {
            let info = Info::read(info.ok_or(Errno::EINVAL)?);
            Ok(scalable::create(domain.scalable_endpoint(&info)?, context))
        })
    }
}

unsafe extern "C" fn endpoint2<D: Domain>(
    domain: *mut sys::fid_domain,
    info: *mut sys::fi_info,
    to: *mut *mut sys::fid_ep,
    ep_flags: u64,
    context: *mut c_void,
) -> c_int {
    if ep_flags != 0 {
        return -Errno::EBADFLAGS.get();
    }
    // SAFETY: the same arguments.
    unsafe { endpoint::<D>(domain, info, to, context) }
}

/// The same for every domain: what memory takes does not depend on it.
unsafe extern "C" fn query_atomic(
    _domain: *mut sys::fid_domain,
    datatype: sys::fi_datatype,
    op: sys::fi_op,
    to: *mut sys::fi_atomic_attr,
    query_flags: u64,
) -> c_int {
    guard::call(|| {
        let form = match query_flags {
            0 => Form::Base,
            flags::FETCH_ATOMIC => Form::Fetch,
            flags::COMPARE_ATOMIC => Form::Compare,
            _ => return Err(Errno::EBADFLAGS),
        };
        let (datatype, _, count) = ep::atomic::limit(form, datatype, op)?;
        // SAFETY: null, or a place for the answer.
        unsafe { answer(to, sys::fi_atomic_attr { count, size: datatype.size() }) }
    })
}

unsafe extern "C" fn srx_ctx<D: Domain>(
    domain: *mut sys::fid_domain,
    attr: *mut sys::fi_rx_attr,
    to: *mut *mut sys::fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: reached through the domain's table.
    unsafe {
        open(domain, attr, to, |domain: &Arc<D>, attr| {
            let attr = attr.map(|raw| RxAttr::read(raw)).unwrap_or_default();
            Ok(ep::create_as(sys::FI_CLASS_SRX_CTX, domain.shared_receive(&attr)?, context))
        })
    }
}

unsafe extern "C" fn stx_ctx<D: Domain>(
    domain: *mut sys::fid_domain,
    attr: *mut sys::fi_tx_attr,
    to: *mut *mut sys::fid_stx,
    context: *mut c_void,
) -> c_int {
    // SAFETY: reached through the domain's table.
    unsafe {
        open(domain, attr, to, |domain: &Arc<D>, attr| {
            let attr = attr.map(|raw| TxAttr::read(raw)).unwrap_or_default();
            // It has no operations of its own; its options are those of its endpoints.
            Ok(fid::create(sys::fid_stx::default(), domain.shared_transmit(&attr)?, context))
        })
    }
}

unsafe extern "C" fn poll_open<D: Domain>(
    domain: *mut sys::fid_domain,
    attr: *mut sys::fi_poll_attr,
    to: *mut *mut sys::fid_poll,
) -> c_int {
    // SAFETY: reached through the domain's table.
    unsafe {
        open(domain, attr, to, |domain: &Arc<D>, attr| {
            Ok(poll::create(domain.poll_open(attr.map_or(0, |attr| attr.flags))?))
        })
    }
}

/// Registers memory and gives C the region.
///
/// # Safety
/// The pointers are those C called a domain's table with.
unsafe fn register<D: Domain>(
    fid: *mut sys::fid,
    to: *mut *mut sys::fid_mr,
    context: *mut c_void,
    attr: impl FnOnce() -> Result<mr::Attr>,
) -> c_int {
    guard::call(|| {
        if to.is_null() {
            return Err(Errno::EINVAL);
        }
        // SAFETY: `find` checks the fid, and `to` is valid for a write.
        unsafe {
            let domain = object::find::<sys::fid_domain, D>(fid)?;
            let region = domain.mr_register(&attr()?)?;
            let key = region.key();
            let raw = fid::create(sys::fid_mr::default(), region, context);
            (*raw).key = key;
            // A descriptor that is only ever handed back, and ignored then.
            (*raw).mem_desc = raw.cast();
            to.write(raw);
        }
        Ok(0)
    })
}

unsafe extern "C" fn reg<D: Domain>(
    fid: *mut sys::fid,
    buf: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    to: *mut *mut sys::fid_mr,
    context: *mut c_void,
) -> c_int {
    let iov = libc::iovec { iov_base: buf.cast_mut(), iov_len: len };
    // SAFETY: the arguments of the call itself; the application vouches for `buf`.
    unsafe {
        register::<D>(fid, to, context, || {
            let window = Window::new(&raw const iov, 1)?;
            Ok(mr::Attr { window, access, offset, requested_key, flags })
        })
    }
}

unsafe extern "C" fn regv<D: Domain>(
    fid: *mut sys::fid,
    iov: *const sys::iovec,
    count: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    to: *mut *mut sys::fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as in `reg`.
    unsafe {
        register::<D>(fid, to, context, || {
            let window = Window::new(iov.cast(), count)?;
            Ok(mr::Attr { window, access, offset, requested_key, flags })
        })
    }
}

unsafe extern "C" fn regattr<D: Domain>(
    fid: *mut sys::fid,
    attr: *const sys::fi_mr_attr,
    flags: u64,
    to: *mut *mut sys::fid_mr,
) -> c_int {
    // SAFETY: as in `reg`; the fields read are there in every version served.
    unsafe {
        let context = attr.as_ref().map_or(std::ptr::null_mut(), |attr| attr.context);
        register::<D>(fid, to, context, || {
            mr::Attr::read(attr.as_ref().ok_or(Errno::EINVAL)?, flags)
        })
    }
}
