// SPDX-License-Identifier: BSD-2-Clause
//! The objects of the provider below.

use std::{
    ffi::{CStr, CString, c_int, c_void},
    mem,
    os::fd::RawFd,
    ptr,
    ptr::NonNull,
    sync::Arc,
};

use super::{area::Area, getinfo::Infos, lent::Lent};
use crate::{
    errno::{Errno, Result},
    flags,
    host::Host,
    sys,
};

/// What is asked of a provider below.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Its name, as `fi_info` lists it.
    pub provider: &'a str,
    /// The address of this host that it is to use; none: its own choice.
    pub node: Option<&'a str>,
    /// Blocks to send from, and bytes of each.
    pub staging: (usize, usize),
    /// Blocks to receive into, and bytes of each.
    pub receives: (usize, usize),
    /// Longest message.
    pub longest: usize,
}

/// Providers whose sends the kernel reads: an operation that ends in error does not wait for what it
/// lent, and others might read that memory when it is gone.
const KERNEL: [&str; 2] = ["tcp", "net"];

/// Whether the kernel reads what a provider sends, and fills what it receives into.
#[must_use]
pub fn is_kernel(provider: &str) -> bool {
    KERNEL.contains(&provider)
}

/// Whether the queue of a provider has a descriptor to sleep on. That of `net` in 1.17 stays readable
/// whatever is done; of others nobody knows whether a thread of theirs comes with it.
fn rings(provider: &str, version: u32) -> bool {
    provider == "tcp" && version >= 2 << 16
}

/// An object of libfabric, closed when it is dropped.
pub(super) struct Opened<T>(NonNull<T>);

impl<T> Opened<T> {
    /// What a call opens.
    fn by(open: impl FnOnce(*mut *mut T) -> c_int) -> Result<Self> {
        let mut object = ptr::null_mut();
        check(open(&raw mut object))?;
        NonNull::new(object).map(Self).ok_or(Errno::EOTHER)
    }

    pub(super) fn get(&self) -> *mut T {
        self.0.as_ptr()
    }

    pub(super) fn fid(&self) -> *mut sys::fid {
        self.0.as_ptr().cast()
    }

    fn ops(&self) -> &sys::fi_ops {
        // SAFETY: every object begins with its `fid`, which has its operations.
        unsafe { &*(*self.fid()).ops }
    }

    fn bind(&self, other: *mut sys::fid, bind_flags: u64) -> Result<()> {
        let bind = self.ops().bind.ok_or(Errno::ENOSYS)?;
        // SAFETY: two open objects.
        check(unsafe { bind(self.fid(), other, bind_flags) })
    }
}

impl<T> Drop for Opened<T> {
    fn drop(&mut self) {
        if let Some(close) = self.ops().close {
            // SAFETY: open, and nobody uses it any more.
            let status = unsafe { close(self.fid()) };
            if status != 0 {
                tracing::debug!("the provider below does not close: {}", Errno::new(status));
            }
        }
    }
}

pub(super) fn check(status: c_int) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(Errno::new(status)) }
}

/// The endpoint of a provider below, and what belongs to it. One thread at a time uses it.
pub struct Client {
    // Closed in this order.
    pub(super) ep: Opened<sys::fid_ep>,
    memory: Vec<Opened<sys::fid_mr>>,
    pub(super) cq: Opened<sys::fid_cq>,
    pub(super) av: Opened<sys::fid_av>,
    _domain: Opened<sys::fid_domain>,
    pub(super) fabric: Opened<sys::fid_fabric>,
    /// Of the queue.
    pub(super) descriptor: Option<RawFd>,
    name: Vec<u8>,
    provider: String,
    pub(super) inject_size: usize,
    pub(super) lends_memory: bool,
    pub(super) staging: Area,
    pub(super) receives: Arc<Area>,
    pub(super) lent: Lent,
}

// SAFETY: libfabric's objects belong to no thread, and `&mut` keeps two from using them at once
// (FI_THREAD_DOMAIN).
unsafe impl Send for Client {}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("provider", &self.provider).finish_non_exhaustive()
    }
}

impl Client {
    /// Opens an endpoint of another provider.
    ///
    /// # Errors
    /// `ENODATA` if there is no such provider, or it does not do what is needed; what it answers
    /// otherwise.
    pub fn open(wanted: &Wanted<'_>) -> Result<Self> {
        let host = Host::get().ok_or(Errno::ENOSYS)?;
        let text = |text: &str| CString::new(text).map_err(|_| Errno::EINVAL);
        let node = wanted.node.map(text).transpose()?;
        let infos = Infos::find(host, &text(wanted.provider)?, node.as_deref())?;
        let info = infos.first();
        // SAFETY: an answer of fi_getinfo has all its attributes.
        let attr = unsafe { Attr::read(&*info) }?;
        let fabric = Opened::<sys::fid_fabric>::by(|to| {
            // SAFETY: the attributes are those of the answer.
            unsafe { (host.client.fabric)((*info).fabric_attr, to, ptr::null_mut()) }
        })?;
        let domain = Opened::<sys::fid_domain>::by(|to| {
            // SAFETY: the fabric is open, and its operations are those of its provider.
            unsafe {
                let open = (*(*fabric.get()).ops).domain;
                open.map_or(-libc::ENOSYS, |open| open(fabric.get(), info, to, ptr::null_mut()))
            }
        })?;
        let mut av_attr = sys::fi_av_attr { type_: attr.av_type, ..Default::default() };
        // SAFETY: the domain is open as well, here and below.
        let domain_ops = unsafe { &*(*domain.get()).ops };
        let av = Opened::<sys::fid_av>::by(|to| {
            let open = domain_ops.av_open;
            // SAFETY: see above.
            open.map_or(-libc::ENOSYS, |open| unsafe {
                open(domain.get(), &raw mut av_attr, to, ptr::null_mut())
            })
        })?;
        let sleeps = rings(&attr.provider, host.version());
        let mut cq_attr = sys::fi_cq_attr {
            format: sys::FI_CQ_FORMAT_DATA,
            wait_obj: if sleeps { sys::FI_WAIT_FD } else { sys::FI_WAIT_NONE },
            ..Default::default()
        };
        let cq = Opened::<sys::fid_cq>::by(|to| {
            let open = domain_ops.cq_open;
            // SAFETY: see above.
            open.map_or(-libc::ENOSYS, |open| unsafe {
                open(domain.get(), &raw mut cq_attr, to, ptr::null_mut())
            })
        })?;
        let descriptor = if sleeps { descriptor_of(&cq)? } else { None };
        let staging = Area::new(wanted.staging.0, wanted.staging.1)?;
        let receives = Arc::new(Area::new(wanted.receives.0, wanted.receives.1)?);
        let mut memory = Vec::new();
        if attr.is_local {
            memory.push(register(&domain, &staging, flags::SEND, 1)?);
            memory.push(register(&domain, &receives, flags::RECV, 2)?);
        }
        let ep = Opened::<sys::fid_ep>::by(|to| {
            let open = domain_ops.endpoint;
            // SAFETY: see above.
            open.map_or(-libc::ENOSYS, |open| unsafe {
                open(domain.get(), info, to, ptr::null_mut())
            })
        })?;
        ep.bind(av.fid(), 0)?;
        ep.bind(cq.fid(), flags::TRANSMIT | flags::RECV)?;
        set_min_multi_recv(&ep, wanted.longest)?;
        let enable = ep.ops().control.ok_or(Errno::ENOSYS)?;
        // SAFETY: see above.
        check(unsafe { enable(ep.fid(), sys::FI_ENABLE as c_int, ptr::null_mut()) })?;
        let name = name_of(&ep)?;
        let lends_memory = !attr.is_local && attr.iov_limit > 1 && is_kernel(&attr.provider);
        let mut client = Self {
            lent: Lent::new(wanted.staging.0, wanted.receives.0),
            ep,
            memory,
            cq,
            av,
            _domain: domain,
            fabric,
            descriptor,
            name,
            provider: attr.provider,
            inject_size: attr.inject_size,
            lends_memory,
            staging,
            receives,
        };
        (0..wanted.receives.0).try_for_each(|block| client.post(block))?;
        Ok(client)
    }

    /// What its peers insert: the name of the endpoint.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// How the provider calls itself.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Where what comes is.
    #[must_use]
    pub fn receives(&self) -> &Arc<Area> {
        &self.receives
    }

    /// The description of an area, if the provider wants to know its memory.
    pub(super) fn description(&self, receives: bool) -> *mut c_void {
        let region = self.memory.get(usize::from(receives));
        // SAFETY: an open region.
        region.map_or(ptr::null_mut(), |region| unsafe { (*region.get()).mem_desc })
    }

    /// Learns to send to the endpoint of this name.
    ///
    /// # Errors
    /// `EINVAL` if it is no name of this provider.
    pub fn insert(&mut self, name: &[u8]) -> Result<u64> {
        if name.len() != self.name.len() {
            return Err(Errno::EINVAL);
        }
        let mut to = flags::ADDR_UNSPEC;
        // SAFETY: an open vector; the name is as long as all names of this provider.
        let inserted = unsafe {
            let insert = (*(*self.av.get()).ops).insert.ok_or(Errno::ENOSYS)?;
            let names = name.as_ptr().cast();
            insert(self.av.get(), names, 1, &raw mut to, 0, ptr::null_mut())
        };
        match inserted {
            1 => Ok(to),
            ..=-1 => Err(Errno::new(inserted)),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// What matters of an answer of `fi_getinfo`.
struct Attr {
    provider: String,
    av_type: u32,
    inject_size: usize,
    iov_limit: usize,
    /// Whether memory to send from is to be registered (`FI_MR_LOCAL`).
    is_local: bool,
}

impl Attr {
    /// # Safety
    /// The attributes are valid pointers or null, the name a C string.
    unsafe fn read(info: &sys::fi_info) -> Result<Self> {
        // SAFETY: the caller vouches for them.
        unsafe {
            let domain = info.domain_attr.as_ref().ok_or(Errno::ENODATA)?;
            let tx = info.tx_attr.as_ref().ok_or(Errno::ENODATA)?;
            let fabric = info.fabric_attr.as_ref().ok_or(Errno::ENODATA)?;
            let provider = if fabric.prov_name.is_null() {
                String::new()
            } else {
                CStr::from_ptr(fabric.prov_name).to_string_lossy().into_owned()
            };
            let table = domain.av_type == sys::FI_AV_UNSPEC;
            Ok(Self {
                provider,
                av_type: if table { sys::FI_AV_TABLE } else { domain.av_type },
                inject_size: tx.inject_size,
                iov_limit: tx.iov_limit,
                is_local: domain.mr_mode & sys::FI_MR_LOCAL as i32 != 0,
            })
        }
    }
}

fn register(
    domain: &Opened<sys::fid_domain>,
    area: &Area,
    access: u64,
    key: u64,
) -> Result<Opened<sys::fid_mr>> {
    let (start, len) = area.whole();
    Opened::by(|to| {
        // SAFETY: an open domain; the area is there as long as the region.
        unsafe {
            let register = (*(*domain.get()).mr).reg;
            register.map_or(-libc::ENOSYS, |register| {
                let start = start.cast_const().cast();
                register(domain.fid(), start, len, access, 0, key, 0, to, ptr::null_mut())
            })
        }
    })
}

fn set_min_multi_recv(ep: &Opened<sys::fid_ep>, longest: usize) -> Result<()> {
    // SAFETY: an open endpoint; the value is as long as is said.
    check(unsafe {
        let set = (*(*ep.get()).ops).setopt.ok_or(Errno::ENOSYS)?;
        set(
            ep.fid(),
            sys::FI_OPT_ENDPOINT as c_int,
            sys::FI_OPT_MIN_MULTI_RECV as c_int,
            (&raw const longest).cast(),
            mem::size_of::<usize>(),
        )
    })
}

/// What a queue of the provider shows when something comes; none where it has no descriptor.
///
/// # Errors
/// What the provider answers.
fn descriptor_of(cq: &Opened<sys::fid_cq>) -> Result<Option<RawFd>> {
    let control = cq.ops().control.ok_or(Errno::ENOSYS)?;
    let mut descriptor: RawFd = -1;
    // SAFETY: an open queue that was opened with a descriptor, of which there is one.
    check(unsafe { control(cq.fid(), sys::FI_GETWAIT as c_int, (&raw mut descriptor).cast()) })?;
    Ok((descriptor >= 0).then_some(descriptor))
}

/// Longest name of an endpoint.
const NAME: usize = 256;

fn name_of(ep: &Opened<sys::fid_ep>) -> Result<Vec<u8>> {
    let mut name = vec![0_u8; NAME];
    let mut len = name.len();
    // SAFETY: an open endpoint; there is room for as many bytes as is said.
    check(unsafe {
        let get = (*(*ep.get()).cm).getname.ok_or(Errno::ENOSYS)?;
        get(ep.fid(), name.as_mut_ptr().cast(), &raw mut len)
    })?;
    name.truncate(len);
    Ok(name)
}
