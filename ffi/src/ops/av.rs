// SPDX-License-Identifier: BSD-2-Clause
//! `fi_av(3)`.

use std::{
    ffi::{c_char, c_int, c_void},
    slice,
    sync::Arc,
};

use crate::{
    errno::{Errno, Result},
    flags, guard,
    memory::{Context, Output},
    object::{self, Bindable, FidName},
    ops::{enosys, table, text},
    sys,
};

/// `struct fi_av_attr`.
#[derive(Clone, Debug, Default)]
pub struct Attr {
    /// `FI_AV_UNSPEC`, `FI_AV_MAP` or `FI_AV_TABLE`.
    pub kind: u32,
    /// Addresses expected, 0 if not known.
    pub count: usize,
    /// Whether a name was given (an AV shared between processes).
    pub named: bool,
    /// Bits of an address that name a receive context.
    pub rx_ctx_bits: c_int,
    /// `FI_EVENT` and others.
    pub flags: u64,
}

impl Attr {
    pub(crate) fn read(raw: &sys::fi_av_attr) -> Self {
        Self {
            kind: raw.type_,
            count: raw.count,
            named: !raw.name.is_null(),
            rx_ctx_bits: raw.rx_ctx_bits,
            flags: raw.flags,
        }
    }
}

/// One call of `fi_av_insert`.
#[derive(Debug)]
pub struct Insert<'a> {
    /// `sockaddr_in` after `sockaddr_in`.
    pub addresses: &'a [u8],
    /// Number of addresses.
    pub count: usize,
    /// Where the `fi_addr_t` go, if the application wants them.
    pub to: Option<&'a mut [u64]>,
    /// Where the error of each address goes (`FI_SYNC_ERR`).
    pub errors: Option<&'a mut [c_int]>,
    /// Flags of the call.
    pub flags: u64,
    /// Context of the call.
    pub context: Context,
    /// The AV as events name it.
    pub av: FidName,
}

/// An address vector.
pub trait AddressVector: Bindable<Raw = sys::fid_av> {
    /// Length in bytes of one address.
    const ADDRESS_LEN: usize;

    /// `FI_AV_MAP` or `FI_AV_TABLE`.
    fn kind(&self) -> u32;

    /// Inserts addresses; answers how many were.
    ///
    /// # Errors
    /// The call as a whole is wrong.
    fn insert(&self, call: Insert<'_>) -> Result<usize>;

    /// The address of a node and a service.
    ///
    /// # Errors
    /// The names cannot be resolved.
    fn resolve(&self, node: Option<&str>, service: Option<&str>) -> Result<Vec<u8>>;

    /// Removes addresses.
    ///
    /// # Errors
    /// One of them is not in the vector.
    fn remove(&self, addresses: &[u64]) -> Result<()>;

    /// The bytes of an address.
    ///
    /// # Errors
    /// It is not in the vector.
    fn lookup(&self, address: u64) -> Result<Vec<u8>>;

    /// An address for people.
    fn format(&self, address: &[u8]) -> String;
}

struct Tables<A>(std::marker::PhantomData<A>);

impl<A: AddressVector> Tables<A> {
    const OPS: sys::fi_ops_av = {
        // Newer headers have more entries; those stay null and are beyond `size`.
        let mut ops = NULL;
        // Only up to av_set: what 1.17 knows.
        ops.size = std::mem::offset_of!(sys::fi_ops_av, av_set) + size_of::<usize>();
        ops.insert = Some(insert::<A>);
        ops.insertsvc = Some(insertsvc::<A>);
        ops.insertsym = enosys!(
            fn(
                *mut sys::fid_av,
                *const c_char,
                usize,
                *const c_char,
                usize,
                *mut u64,
                u64,
                *mut c_void,
            ) -> c_int
        );
        ops.remove = Some(remove::<A>);
        ops.lookup = Some(lookup::<A>);
        ops.straddr = Some(straddr::<A>);
        ops.av_set = enosys!(
            fn(
                *mut sys::fid_av,
                *mut sys::fi_av_set_attr,
                *mut *mut sys::fid_av_set,
                *mut c_void,
            ) -> c_int
        );
        ops
    };
}

// SAFETY: a table of `Option<fn>` and a size may be all zero.
const NULL: sys::fi_ops_av = unsafe { std::mem::zeroed() };

pub(crate) fn create<A: AddressVector>(av: Arc<A>, context: *mut c_void) -> *mut sys::fid_av {
    object::create(sys::fid_av { ops: table!(Tables::<A>::OPS), ..Default::default() }, av, context)
}

unsafe extern "C" fn insert<A: AddressVector>(
    av: *mut sys::fid_av,
    addresses: *const c_void,
    count: usize,
    to: *mut u64,
    insert_flags: u64,
    context: *mut c_void,
) -> c_int {
    guard::call(|| {
        if count == 0 {
            return Ok(0);
        }
        if addresses.is_null() {
            return Err(Errno::EINVAL);
        }
        let sync_errors = insert_flags & flags::SYNC_ERR != 0 && !context.is_null();
        // SAFETY: reached through the AV's table; C gives `count` addresses of
        // the AV's format, room for `count` results and, with FI_SYNC_ERR, errors.
        unsafe {
            let inner = object::get::<_, A>(av)?;
            inner.insert(Insert {
                addresses: slice::from_raw_parts(addresses.cast(), count * A::ADDRESS_LEN),
                count,
                to: (!to.is_null()).then(|| slice::from_raw_parts_mut(to, count)),
                errors: sync_errors.then(|| slice::from_raw_parts_mut(context.cast(), count)),
                flags: insert_flags,
                context: object::context(context),
                av: FidName::of(av),
            })
        }
    })
}

unsafe extern "C" fn insertsvc<A: AddressVector>(
    av: *mut sys::fid_av,
    node: *const c_char,
    service: *const c_char,
    to: *mut u64,
    insert_flags: u64,
    context: *mut c_void,
) -> c_int {
    guard::call(|| {
        // SAFETY: reached through the AV's table; the names are C strings or null.
        let address = unsafe { object::get::<_, A>(av)?.resolve(text(node)?, text(service)?) }?;
        // SAFETY: one address and room for one result.
        let status =
            unsafe { insert::<A>(av, address.as_ptr().cast(), 1, to, insert_flags, context) };
        usize::try_from(status).map_err(|_| Errno::new(status))
    })
}

unsafe extern "C" fn remove<A: AddressVector>(
    av: *mut sys::fid_av,
    addresses: *mut u64,
    count: usize,
    _remove_flags: u64,
) -> c_int {
    guard::call(|| {
        if count == 0 {
            return Ok(0);
        }
        if addresses.is_null() {
            return Err(Errno::EINVAL);
        }
        // SAFETY: reached through the AV's table; C gives `count` addresses.
        unsafe { object::get::<_, A>(av)?.remove(slice::from_raw_parts(addresses, count)) }
            .map(|()| 0)
    })
}

unsafe extern "C" fn lookup<A: AddressVector>(
    av: *mut sys::fid_av,
    address: u64,
    to: *mut c_void,
    len: *mut usize,
) -> c_int {
    guard::call(|| {
        // SAFETY: reached through the AV's table; `to` has room of `*len` bytes.
        unsafe {
            let bytes = object::get::<_, A>(av)?.lookup(address)?;
            let len = len.as_mut().ok_or(Errno::EINVAL)?;
            let room = std::mem::replace(len, bytes.len());
            Output::new(to, room).write(&bytes);
        }
        Ok(0)
    })
}

unsafe extern "C" fn straddr<A: AddressVector>(
    av: *mut sys::fid_av,
    address: *const c_void,
    to: *mut c_char,
    len: *mut usize,
) -> *const c_char {
    guard::call_or(std::ptr::null(), || {
        if address.is_null() || to.is_null() {
            return Err(Errno::EINVAL);
        }
        // SAFETY: reached through the AV's table; C gives one address and room
        // of `*len` bytes.
        unsafe {
            let address = slice::from_raw_parts(address.cast::<u8>(), A::ADDRESS_LEN);
            let mut bytes = object::get::<_, A>(av)?.format(address).into_bytes();
            bytes.push(0);
            let len = len.as_mut().ok_or(Errno::EINVAL)?;
            let room = std::mem::replace(len, bytes.len());
            if room > 0 {
                Output::new(to.cast(), room).write(&bytes);
                *to.add(room - 1) = 0;
            }
        }
        Ok(to.cast_const())
    })
}
