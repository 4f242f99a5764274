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
    ops::{enosys, fid, table, text},
    sys,
};

/// `struct fi_av_attr`.
#[derive(Clone, Debug, Default)]
pub struct Attr {
    /// `FI_AV_UNSPEC`, `FI_AV_MAP` or `FI_AV_TABLE`.
    pub kind: u32,
    /// Addresses expected, 0 if not known.
    pub count: usize,
    /// Name of an AV that processes share.
    pub name: Option<String>,
    /// Bits of an address that name a receive context.
    pub rx_ctx_bits: c_int,
    /// `FI_EVENT` and others.
    pub flags: u64,
}

impl Attr {
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
    /// `sockaddr_in` after `sockaddr_in`.
    pub addresses: &'a [u8],
    /// Number of addresses.
    pub count: usize,
    /// Where the `fi_addr_t` go, if the application wants them. With `FI_AV_USER_ID` it
    /// has put there what completions are to say.
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

    /// Where a shared AV has the `fi_addr_t` of each address (`map_addr`).
    fn map_addr(&self) -> Option<usize>;

    /// `fi_av_set_user_id`: what completions say of an address.
    ///
    /// # Errors
    /// It is not in the vector.
    fn set_user_id(&self, address: u64, id: u64, flags: u64) -> Result<()>;

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
    const OPS: Ops = Ops {
        size: size_of::<Ops>(),
        insert: insert::<A>,
        insertsvc: insertsvc::<A>,
        insertsym: enosys!(
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
        ),
        remove: remove::<A>,
        lookup: lookup::<A>,
        straddr: straddr::<A>,
        av_set: enosys!(
            fn(
                *mut sys::fid_av,
                *mut sys::fi_av_set_attr,
                *mut *mut sys::fid_av_set,
                *mut c_void,
            ) -> c_int
        ),
        insert_auth_key: enosys!(
            fn(*mut sys::fid_av, *const c_void, usize, *mut u64, u64) -> c_int
        ),
        lookup_auth_key: enosys!(fn(*mut sys::fid_av, u64, *mut c_void, *mut usize) -> c_int),
        set_user_id: set_user_id::<A>,
    };
}

type Entry<T> = Option<T>;

/// `struct fi_ops_av` as of 1.20, whichever headers are installed: 1.17 ends with
/// `av_set`, and nobody looks behind what `size` says.
#[repr(C)]
struct Ops {
    size: usize,
    insert: unsafe extern "C" fn(
        *mut sys::fid_av,
        *const c_void,
        usize,
        *mut u64,
        u64,
        *mut c_void,
    ) -> c_int,
    insertsvc: unsafe extern "C" fn(
        *mut sys::fid_av,
        *const c_char,
        *const c_char,
        *mut u64,
        u64,
        *mut c_void,
    ) -> c_int,
    insertsym: Entry<
        unsafe extern "C" fn(
            *mut sys::fid_av,
            *const c_char,
            usize,
            *const c_char,
            usize,
            *mut u64,
            u64,
            *mut c_void,
        ) -> c_int,
    >,
    remove: unsafe extern "C" fn(*mut sys::fid_av, *mut u64, usize, u64) -> c_int,
    lookup: unsafe extern "C" fn(*mut sys::fid_av, u64, *mut c_void, *mut usize) -> c_int,
    straddr: unsafe extern "C" fn(
        *mut sys::fid_av,
        *const c_void,
        *mut c_char,
        *mut usize,
    ) -> *const c_char,
    av_set: Entry<
        unsafe extern "C" fn(
            *mut sys::fid_av,
            *mut sys::fi_av_set_attr,
            *mut *mut sys::fid_av_set,
            *mut c_void,
        ) -> c_int,
    >,
    insert_auth_key:
        Entry<unsafe extern "C" fn(*mut sys::fid_av, *const c_void, usize, *mut u64, u64) -> c_int>,
    lookup_auth_key:
        Entry<unsafe extern "C" fn(*mut sys::fid_av, u64, *mut c_void, *mut usize) -> c_int>,
    set_user_id: unsafe extern "C" fn(*mut sys::fid_av, u64, u64, u64) -> c_int,
}

/// As measured of 1.17 and of 1.20 to 2.5.
const _: () = assert!(size_of::<Ops>() == 88 && std::mem::offset_of!(Ops, insert_auth_key) == 64);

pub(crate) fn create<A: AddressVector>(av: Arc<A>, context: *mut c_void) -> *mut sys::fid_av {
    let ops: *mut Ops = table!(Tables::<A>::OPS);
    fid::create(sys::fid_av { ops: ops.cast(), ..Default::default() }, av, context)
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
        // None is an insert like others: one that is asynchronous has its event.
        let addresses = match count {
            0 => std::ptr::NonNull::dangling().as_ptr(),
            _ if addresses.is_null() => return Err(Errno::EINVAL),
            _ => addresses.cast::<u8>(),
        };
        let sync_errors = insert_flags & flags::SYNC_ERR != 0 && !context.is_null();
        // SAFETY: reached through the AV's table; C gives `count` addresses of
        // the AV's format, room for `count` results and, with FI_SYNC_ERR, errors.
        unsafe {
            let inner = object::get::<_, A>(av)?;
            inner.insert(Insert {
                addresses: slice::from_raw_parts(addresses, count * A::ADDRESS_LEN),
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

unsafe extern "C" fn set_user_id<A: AddressVector>(
    av: *mut sys::fid_av,
    address: u64,
    id: u64,
    id_flags: u64,
) -> c_int {
    guard::call(|| {
        // SAFETY: reached through the AV's table.
        unsafe { object::get::<_, A>(av) }?.set_user_id(address, id, id_flags).map(|()| 0)
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
