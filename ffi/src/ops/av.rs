// SPDX-License-Identifier: BSD-2-Clause
//! `fi_av(3)`: address vectors.

use std::{
    ffi::{c_char, c_int, c_void},
    mem::offset_of,
    slice,
    sync::Arc,
};

use crate::{
    errno::{Errno, Result},
    flags,
    memory::OpContext,
    object::{self, FidName, Object},
    ops::{answer_bytes, array, entry_points, fid, operation_table, table, text},
    sys,
};

/// `struct fi_av_attr`.
#[derive(Clone, Debug, Default)]
pub struct AvAttr {
    /// `FI_AV_UNSPEC`, `FI_AV_MAP` or `FI_AV_TABLE`.
    pub kind: u32,
    /// Expected number of addresses, 0 if unknown.
    pub count: usize,
    /// Name, if processes share the AV.
    pub name: Option<String>,
    /// Number of address bits that name a receive context.
    pub rx_ctx_bits: c_int,
    /// `FI_EVENT` and others.
    pub flags: u64,
}

impl AvAttr {
    /// # Safety
    /// The name is a C string or null.
    pub(crate) unsafe fn read(raw: &sys::fi_av_attr) -> Result<Self> {
        Ok(Self {
            kind: raw.type_,
            count: raw.count,
            // SAFETY: the caller vouches for the string.
            name: unsafe { text(raw.name) }?.map(str::to_owned),
            rx_ctx_bits: raw.rx_ctx_bits,
            flags: raw.flags,
        })
    }
}

/// One call of `fi_av_insert`.
#[derive(Debug)]
pub struct Insert<'a> {
    /// The addresses, an array of `sockaddr_in`.
    pub addresses: &'a [u8],
    /// Number of addresses.
    pub count: usize,
    /// Receives the `fi_addr_t` of each address, if the application wants them. With
    /// `FI_AV_USER_ID`, it first contains the user IDs that completions are to report.
    pub to: Option<&'a mut [u64]>,
    /// Receives the error of each address, or 0 (`FI_SYNC_ERR`).
    pub errors: Option<&'a mut [c_int]>,
    /// Flags of the call.
    pub flags: u64,
    /// Context of the call.
    pub context: OpContext,
    /// The AV as events report it.
    pub av: FidName,
}

/// An address vector.
pub trait AddressVector: Object<Raw = sys::fid_av> {
    /// Length in bytes of one address.
    const ADDRESS_LEN: usize;

    /// `FI_AV_MAP` or `FI_AV_TABLE`.
    fn kind(&self) -> u32;

    /// Returns the address of the `fi_addr_t` array of a shared AV (`map_addr`); `None` if the AV
    /// is not shared.
    fn map_addr(&self) -> Option<usize>;

    /// `fi_av_set_user_id`: sets the ID that completions report for an address.
    ///
    /// # Errors
    /// The address is not in the vector.
    fn set_user_id(&self, address: u64, id: u64, flags: u64) -> Result<()>;

    /// Inserts addresses. Returns the number of inserted addresses, or 0 if an event will report
    /// it.
    ///
    /// # Errors
    /// The arguments are invalid, and no address was inserted.
    fn insert(&self, call: Insert<'_>) -> Result<usize>;

    /// Resolves a node and a service to an address. Returns its bytes.
    ///
    /// # Errors
    /// The names do not resolve.
    fn resolve(&self, node: Option<&str>, service: Option<&str>) -> Result<Vec<u8>>;

    /// Removes addresses.
    ///
    /// # Errors
    /// An address is not in the vector. The addresses before it are removed.
    fn remove(&self, addresses: &[u64]) -> Result<()>;

    /// Returns the bytes of an address.
    ///
    /// # Errors
    /// The address is not in the vector.
    fn lookup(&self, address: u64) -> Result<Vec<u8>>;

    /// Formats an address as text.
    fn format(&self, address: &[u8]) -> String;
}

entry_points! {
    ops<A: AddressVector> = AvOps, ends at set_user_id;
    av = get(fid: *mut sys::fid_av);
    unsupported insertsym, av_set, insert_auth_key, lookup_auth_key;

    unsafe fn insert(
        addresses: *const c_void, count: usize, to: *mut u64, flags: u64, context: *mut c_void,
    ) -> c_int {
        let wants_errors = flags & flags::SYNC_ERR != 0 && !context.is_null();
        av.insert(Insert {
            addresses: array(addresses.cast(), count * A::ADDRESS_LEN)?,
            count,
            to: (!to.is_null()).then(|| slice::from_raw_parts_mut(to, count)),
            errors: wants_errors.then(|| slice::from_raw_parts_mut(context.cast(), count)),
            flags,
            context: object::context(context),
            av: FidName::of(fid),
        })
    }

    unsafe fn insertsvc(
        node: *const c_char, service: *const c_char, to: *mut u64, flags: u64,
        context: *mut c_void,
    ) -> c_int {
        let address = av.resolve(text(node)?, text(service)?)?;
        Errno::check(insert::<A>(fid, address.as_ptr().cast(), 1, to, flags, context))
    }

    unsafe fn remove(addresses: *mut u64, count: usize, _flags: u64) -> c_int {
        match array(addresses, count)? {
            [] => Ok(()),
            addresses => av.remove(addresses),
        }
    }

    unsafe fn lookup(address: u64, to: *mut c_void, len: *mut usize) -> c_int {
        answer_bytes(to, len, &av.lookup(address)?).map(|_| ())
    }

    unsafe fn straddr(
        address: *const c_void, to: *mut c_char, len: *mut usize,
    ) -> *const c_char {
        if address.is_null() || to.is_null() {
            return Err(Errno::EINVAL);
        }
        let mut text = av.format(array(address.cast(), A::ADDRESS_LEN)?).into_bytes();
        text.push(0);
        let room = answer_bytes(to.cast(), len, &text)?;
        if room > 0 {
            to.add(room - 1).write(0);
        }
        Ok(to.cast_const())
    }

    unsafe fn set_user_id(address: u64, id: u64, flags: u64) -> c_int {
        av.set_user_id(address, id, flags)
    }
}

operation_table! {
    /// `struct fi_ops_av` of 1.20, whichever headers are installed. In 1.17 it ends with `av_set`,
    /// and libfabric reads no field behind `size`.
    AvOps of sys::fid_av:
    insert(*const c_void, usize, *mut u64, u64, *mut c_void) -> c_int;
    insertsvc(*const c_char, *const c_char, *mut u64, u64, *mut c_void) -> c_int;
    insertsym(
        *const c_char, usize, *const c_char, usize, *mut u64, u64, *mut c_void
    ) -> c_int;
    remove(*mut u64, usize, u64) -> c_int;
    lookup(u64, *mut c_void, *mut usize) -> c_int;
    straddr(*const c_void, *mut c_char, *mut usize) -> *const c_char;
    av_set(*mut sys::fi_av_set_attr, *mut *mut sys::fid_av_set, *mut c_void) -> c_int;
    insert_auth_key(*const c_void, usize, *mut u64, u64) -> c_int;
    lookup_auth_key(u64, *mut c_void, *mut usize) -> c_int;
    set_user_id(u64, u64, u64) -> c_int;
}

// As measured with 1.17 and with 1.20 to 2.5.
const _: () = assert!(size_of::<AvOps>() == 88 && offset_of!(AvOps, insert_auth_key) == 64);

pub(crate) fn create<A: AddressVector>(av: Arc<A>, context: *mut c_void) -> *mut sys::fid_av {
    let raw = sys::fid_av { ops: table!(ops::<A>()).cast(), ..Default::default() };
    fid::create(raw, av, context)
}
