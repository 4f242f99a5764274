// SPDX-License-Identifier: BSD-2-Clause
//! Conversion of `struct fi_info`: hints are read from C, answers are allocated for C.
//!
//! Hints become owned Rust values. `fi_dupinfo` of the host ([`crate::host`]) allocates the answers
//! in the host's layout. Fields that libfabric 1.17 did not have keep the values that the host gave
//! them.

use std::ffi::{CStr, CString};

use crate::{
    errno::{Errno, Result},
    host::Host,
    sys,
};

/// `struct fi_info` without its list pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "names and meanings are those of fi_getinfo(3)")]
pub struct Info {
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addr: Option<Vec<u8>>,
    pub dest_addr: Option<Vec<u8>>,
    pub tx: Option<TxAttr>,
    pub rx: Option<RxAttr>,
    pub ep: Option<EpAttr>,
    pub domain: Option<DomainAttr>,
    pub fabric: Option<FabricAttr>,
    /// True if `handle` is set: a connection request, or a passive endpoint.
    pub handle: bool,
}

/// `struct fi_tx_attr`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "names and meanings are those of fi_endpoint(3)")]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: usize,
    pub size: usize,
    pub iov_limit: usize,
    pub rma_iov_limit: usize,
    pub tclass: u32,
}

/// `struct fi_rx_attr`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "names and meanings are those of fi_endpoint(3)")]
pub struct RxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: usize,
    pub size: usize,
    pub iov_limit: usize,
}

/// `struct fi_ep_attr`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "names and meanings are those of fi_endpoint(3)")]
pub struct EpAttr {
    pub kind: u32,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: usize,
    pub msg_prefix_size: usize,
    pub max_order_raw_size: usize,
    pub max_order_war_size: usize,
    pub max_order_waw_size: usize,
    pub mem_tag_format: u64,
    pub tx_ctx_cnt: usize,
    pub rx_ctx_cnt: usize,
    pub auth_key_size: usize,
}

/// `struct fi_domain_attr` with the fields of 1.17.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "names and meanings are those of fi_domain(3)")]
pub struct DomainAttr {
    pub name: Option<String>,
    pub threading: u32,
    pub control_progress: u32,
    pub data_progress: u32,
    pub resource_mgmt: u32,
    pub av_type: u32,
    pub mr_mode: i32,
    pub mr_key_size: usize,
    pub cq_data_size: usize,
    pub cq_cnt: usize,
    pub ep_cnt: usize,
    pub tx_ctx_cnt: usize,
    pub rx_ctx_cnt: usize,
    pub max_ep_tx_ctx: usize,
    pub max_ep_rx_ctx: usize,
    pub max_ep_stx_ctx: usize,
    pub max_ep_srx_ctx: usize,
    pub cntr_cnt: usize,
    pub mr_iov_limit: usize,
    pub caps: u64,
    pub mode: u64,
    pub auth_key_size: usize,
    pub max_err_data: usize,
    pub mr_cnt: usize,
    pub tclass: u32,
}

/// `struct fi_fabric_attr`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "names and meanings are those of fi_fabric(3)")]
pub struct FabricAttr {
    pub name: Option<String>,
    pub prov_name: Option<String>,
    pub prov_version: u32,
    pub api_version: u32,
}

/// Calls a macro with the fields that have the same name and type in Rust and C.
macro_rules! fields {
    (tx $with:ident $($args:tt)*) => { $with!($($args)*; caps, mode, op_flags, msg_order, comp_order,
        inject_size, size, iov_limit, rma_iov_limit, tclass) };
    (rx $with:ident $($args:tt)*) => { $with!($($args)*; caps, mode, op_flags, msg_order, comp_order,
        total_buffered_recv, size, iov_limit) };
    (ep $with:ident $($args:tt)*) => { $with!($($args)*; protocol, protocol_version, max_msg_size,
        msg_prefix_size, max_order_raw_size, max_order_war_size, max_order_waw_size,
        mem_tag_format, tx_ctx_cnt, rx_ctx_cnt, auth_key_size) };
    (domain $with:ident $($args:tt)*) => { $with!($($args)*; threading, control_progress,
        data_progress, resource_mgmt, av_type, mr_mode, mr_key_size, cq_data_size, cq_cnt, ep_cnt,
        tx_ctx_cnt, rx_ctx_cnt, max_ep_tx_ctx, max_ep_rx_ctx, max_ep_stx_ctx, max_ep_srx_ctx,
        cntr_cnt, mr_iov_limit, caps, mode, auth_key_size, max_err_data, mr_cnt, tclass) };
}

macro_rules! read {
    ($raw:expr, $owned:ident { $($extra:tt)* }; $($field:ident),*) => {
        $owned { $($field: $raw.$field,)* $($extra)* }
    };
}

macro_rules! write {
    ($raw:expr, $owned:expr; $($field:ident),*) => {
        $( $raw.$field = $owned.$field; )*
    };
}

/// # Safety
/// `text` is null or a C string.
unsafe fn owned_text(text: *const libc::c_char) -> Option<String> {
    // SAFETY: the caller vouches for the string.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// # Safety
/// `addr` is null or valid for `len` bytes.
unsafe fn owned_bytes(addr: *const libc::c_void, len: usize) -> Option<Vec<u8>> {
    if addr.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for the bytes.
    Some(unsafe { std::slice::from_raw_parts(addr.cast::<u8>(), len) }.to_vec())
}

impl Info {
    /// Copies a `struct fi_info` of C.
    ///
    /// # Safety
    /// `raw` is a complete `fi_info` with valid attribute pointers or nulls.
    pub(crate) unsafe fn read(raw: &sys::fi_info) -> Self {
        // SAFETY: the caller vouches for every pointer in the structure.
        unsafe {
            Self {
                caps: raw.caps,
                mode: raw.mode,
                addr_format: raw.addr_format,
                src_addr: owned_bytes(raw.src_addr, raw.src_addrlen),
                dest_addr: owned_bytes(raw.dest_addr, raw.dest_addrlen),
                tx: raw.tx_attr.as_ref().map(TxAttr::read),
                rx: raw.rx_attr.as_ref().map(RxAttr::read),
                ep: raw.ep_attr.as_ref().map(|ep| fields!(ep read ep, EpAttr { kind: ep.type_, })),
                domain: raw.domain_attr.as_ref().map(
                    |domain| fields!(domain read domain, DomainAttr { name: owned_text(domain.name), }),
                ),
                fabric: raw.fabric_attr.as_ref().map(|fabric| FabricAttr::read(fabric)),
                handle: !raw.handle.is_null(),
            }
        }
    }

    /// Writes the fields into a structure for C.
    ///
    /// # Safety
    /// [`Host::allocate_info`] has allocated the structure.
    unsafe fn write(self, info: &mut sys::fi_info) -> Result<()> {
        // SAFETY: libfabric allocates the structure with every attribute. Strings and addresses
        // come from malloc, as fi_freeinfo expects.
        unsafe {
            info.caps = self.caps;
            info.mode = self.mode;
            info.addr_format = self.addr_format;
            (info.src_addr, info.src_addrlen) = malloc_bytes(self.src_addr.as_deref())?;
            (info.dest_addr, info.dest_addrlen) = malloc_bytes(self.dest_addr.as_deref())?;
            if let (Some(tx), Some(to)) = (self.tx, info.tx_attr.as_mut()) {
                fields!(tx write to, tx);
            }
            if let (Some(rx), Some(to)) = (self.rx, info.rx_attr.as_mut()) {
                fields!(rx write to, rx);
            }
            if let (Some(ep), Some(to)) = (self.ep, info.ep_attr.as_mut()) {
                to.type_ = ep.kind;
                fields!(ep write to, ep);
            }
            if let (Some(domain), Some(to)) = (self.domain, info.domain_attr.as_mut()) {
                fields!(domain write to, domain);
                to.name = malloc_text(domain.name.as_deref())?;
            }
            if let (Some(fabric), Some(to)) = (self.fabric, info.fabric_attr.as_mut()) {
                to.name = malloc_text(fabric.name.as_deref())?;
                to.prov_name = malloc_text(fabric.prov_name.as_deref())?;
                to.prov_version = fabric.prov_version;
                to.api_version = fabric.api_version;
            }
        }
        Ok(())
    }
}

/// A list of structures for C, which is freed if C does not get it.
pub(crate) struct RawInfos<'a> {
    first: *mut sys::fi_info,
    host: &'a Host,
}

impl<'a> RawInfos<'a> {
    /// Creates an empty list.
    pub(crate) fn new(host: &'a Host) -> Self {
        Self { first: std::ptr::null_mut(), host }
    }

    /// Adds a structure at the front.
    pub(crate) fn push_front(&mut self, info: Info) -> Result<()> {
        let raw = self.host.allocate_info()?;
        // SAFETY: the host has just allocated it.
        unsafe {
            (*raw).next = self.first;
            self.first = raw;
            info.write(&mut *raw)
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Returns the list, which `fi_freeinfo` frees; null if it is empty.
    pub(crate) fn into_raw(mut self) -> *mut sys::fi_info {
        std::mem::replace(&mut self.first, std::ptr::null_mut())
    }
}

impl Drop for RawInfos<'_> {
    fn drop(&mut self) {
        // SAFETY: the structures come from the host, and C does not have them.
        unsafe { self.host.free_infos(self.first) };
    }
}

impl TxAttr {
    pub(crate) fn read(raw: &sys::fi_tx_attr) -> Self {
        fields!(tx read raw, TxAttr {})
    }

    pub(crate) fn write(&self, raw: &mut sys::fi_tx_attr) {
        fields!(tx write raw, self);
    }
}

impl RxAttr {
    pub(crate) fn read(raw: &sys::fi_rx_attr) -> Self {
        fields!(rx read raw, RxAttr {})
    }

    pub(crate) fn write(&self, raw: &mut sys::fi_rx_attr) {
        fields!(rx write raw, self);
    }
}

impl FabricAttr {
    /// Copies a `struct fi_fabric_attr` of C.
    ///
    /// # Safety
    /// The strings are C strings or null.
    pub(crate) unsafe fn read(raw: &sys::fi_fabric_attr) -> Self {
        // SAFETY: the caller vouches for the strings.
        unsafe {
            Self {
                name: owned_text(raw.name),
                prov_name: owned_text(raw.prov_name),
                prov_version: raw.prov_version,
                api_version: raw.api_version,
            }
        }
    }
}

fn malloc_text(text: Option<&str>) -> Result<*mut libc::c_char> {
    let Some(text) = text else { return Ok(std::ptr::null_mut()) };
    let text = CString::new(text).map_err(|_| Errno::EINVAL)?;
    let (copy, _) = malloc_bytes(Some(text.as_bytes_with_nul()))?;
    Ok(copy.cast())
}

fn malloc_bytes(bytes: Option<&[u8]>) -> Result<(*mut libc::c_void, usize)> {
    let Some(bytes) = bytes else { return Ok((std::ptr::null_mut(), 0)) };
    // SAFETY: malloc of at least one byte, then a copy of `len` bytes into it.
    unsafe {
        let copy = libc::malloc(bytes.len().max(1));
        if copy.is_null() {
            return Err(Errno::ENOMEM);
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy.cast(), bytes.len());
        Ok((copy, bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C" fn allocate(_: *const sys::fi_info) -> *mut sys::fi_info {
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
        let fabric_attr = Box::into_raw(Box::default());
        Box::into_raw(Box::new(sys::fi_info { fabric_attr, ..Default::default() }))
    }

    unsafe extern "C" fn free(mut first: *mut sys::fi_info) {
        while !first.is_null() {
            ALLOCATED.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: `allocate` allocated both. The names come from malloc or are null.
            unsafe {
                let info = Box::from_raw(first);
                let fabric = Box::from_raw(info.fabric_attr);
                libc::free(fabric.name.cast());
                libc::free(fabric.prov_name.cast());
                first = info.next;
            }
        }
    }

    #[test]
    fn an_error_frees_the_structures_for_c() {
        let host = Host::with_infos(allocate, free);
        let info = |name: &str| {
            let fabric = FabricAttr { name: Some(name.to_owned()), ..FabricAttr::default() };
            Info { fabric: Some(fabric), ..Info::default() }
        };
        let mut list = RawInfos::new(&host);
        assert_eq!(list.push_front(info("right")), Ok(()));
        assert_eq!(list.push_front(info("no C\0string")), Err(Errno::EINVAL));
        assert_eq!(ALLOCATED.load(Ordering::Relaxed), 2);
        drop(list);
        assert_eq!(ALLOCATED.load(Ordering::Relaxed), 0);
    }

    /// Sizes as measured with each version of the headers.
    #[test]
    fn layouts_are_those_measured() {
        let version = (sys::FI_MAJOR_VERSION, sys::FI_MINOR_VERSION);
        let expected = |sizes: [usize; 4]| match version {
            (1, 17..=19) => sizes[0],
            (1, _) => sizes[1],
            (2, 0..=4) => sizes[2],
            _ => sizes[3],
        };
        assert_eq!(size_of::<sys::fi_domain_attr>(), expected([192, 200, 208, 224]));
        assert_eq!(size_of::<sys::fi_mr_attr>(), expected([80, 88, 112, 112]));
        assert_eq!(size_of::<sys::fi_cq_err_entry>(), expected([80, 88, 88, 88]));
        assert_eq!(size_of::<sys::fi_ops_av>(), expected([64, 88, 88, 88]));
        for (size, measured) in [
            (size_of::<sys::fid>(), 24),
            (size_of::<sys::fid_ep>(), 80),
            (size_of::<sys::fi_tx_attr>(), 80),
            (size_of::<sys::fi_rx_attr>(), 64),
            (size_of::<sys::fi_cq_tagged_entry>(), 48),
            (size_of::<sys::fi_msg>(), 48),
            (size_of::<sys::fi_msg_tagged>(), 64),
        ] {
            assert_eq!(size, measured);
        }
    }
}
