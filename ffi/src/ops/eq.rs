// SPDX-License-Identifier: BSD-2-Clause
//! `fi_eq(3)`.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::Arc,
};

use crate::{
    errno::{Errno, Result},
    guard,
    memory::{Context, Output, bytes_of},
    object::{self, Bindable, FidName},
    ops::{WaitObj, fid, table},
    sys,
};

/// `struct fi_eq_attr`.
#[derive(Clone, Debug, Default)]
pub struct Attr {
    /// Entries hoped for; 0 for the default.
    pub size: usize,
    /// `FI_WRITE` and others.
    pub flags: u64,
    /// How `fi_eq_sread` waits.
    pub wait_obj: WaitObj,
}

impl Attr {
    pub(crate) fn read(raw: &sys::fi_eq_attr) -> Self {
        Self { size: raw.size, flags: raw.flags, wait_obj: WaitObj::read(raw.wait_obj) }
    }
}

/// An event: its number and its bytes (`struct fi_eq_entry` for ours).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `FI_AV_COMPLETE` and others.
    pub number: u32,
    /// What the application reads.
    pub bytes: Vec<u8>,
}

impl Event {
    /// `FI_AV_COMPLETE`: `inserted` addresses of one call were inserted.
    #[must_use]
    pub fn av_complete(av: FidName, context: Context, inserted: usize) -> Self {
        let entry = sys::fi_eq_entry {
            fid: av.0 as *mut sys::fid,
            context: context.0 as *mut c_void,
            data: inserted as u64,
        };
        Self { number: sys::FI_AV_COMPLETE, bytes: bytes_of(&entry).to_vec() }
    }
}

/// An error event (`struct fi_eq_err_entry`).
#[derive(Clone, Copy, Debug)]
pub struct ErrorEvent {
    /// Object it is about.
    pub fid: FidName,
    /// Context of the operation.
    pub context: Context,
    /// Depends on the operation: the index of the address for an AV insert.
    pub data: u64,
    /// What went wrong.
    pub errno: Errno,
}

/// An event queue.
pub trait EventQueue: Bindable<Raw = sys::fid_eq> {
    /// `fi_eq_read` and, with a timeout, `fi_eq_sread` (milliseconds, negative: for ever).
    ///
    /// # Errors
    /// `EAGAIN` nothing to read, `EAVAIL` an error is first, `ETOOSMALL` the
    /// event stays.
    fn read(&self, to: &mut Output, timeout: Option<c_int>, flags: u64) -> Result<(u32, usize)>;

    /// `fi_eq_readerr`.
    ///
    /// # Errors
    /// `EAGAIN` nothing to read.
    fn read_error(&self, flags: u64) -> Result<ErrorEvent>;

    /// `fi_eq_write`.
    ///
    /// # Errors
    /// `EINVAL` if the queue was not opened with `FI_WRITE`.
    fn write(&self, event: Event) -> Result<()>;
}

impl<E: EventQueue> Tables<E> {
    const OPS: sys::fi_ops_eq = sys::fi_ops_eq {
        size: size_of::<sys::fi_ops_eq>(),
        read: Some(read::<E>),
        readerr: Some(readerr::<E>),
        write: Some(write::<E>),
        sread: Some(sread::<E>),
        strerror: Some(strerror),
    };
}

struct Tables<E>(std::marker::PhantomData<E>);

pub(crate) fn create<E: EventQueue>(eq: Arc<E>, context: *mut c_void) -> *mut sys::fid_eq {
    fid::create(sys::fid_eq { ops: table!(Tables::<E>::OPS), ..Default::default() }, eq, context)
}

unsafe fn read_event<E: EventQueue>(
    eq: *mut sys::fid_eq,
    number: *mut u32,
    buf: *mut c_void,
    len: usize,
    timeout: Option<c_int>,
    read_flags: u64,
) -> isize {
    guard::call(|| {
        // SAFETY: reached through the queue's table; C gives room of `len` bytes.
        unsafe {
            let eq = object::get::<_, E>(eq)?;
            let number = number.as_mut().ok_or(Errno::EINVAL)?;
            let (event, len) = eq.read(&mut Output::new(buf, len), timeout, read_flags)?;
            *number = event;
            Ok(len)
        }
    })
}

unsafe extern "C" fn read<E: EventQueue>(
    eq: *mut sys::fid_eq,
    number: *mut u32,
    buf: *mut c_void,
    len: usize,
    read_flags: u64,
) -> isize {
    // SAFETY: the arguments of the call itself.
    unsafe { read_event::<E>(eq, number, buf, len, None, read_flags) }
}

unsafe extern "C" fn sread<E: EventQueue>(
    eq: *mut sys::fid_eq,
    number: *mut u32,
    buf: *mut c_void,
    len: usize,
    timeout: c_int,
    read_flags: u64,
) -> isize {
    // SAFETY: the arguments of the call itself.
    unsafe { read_event::<E>(eq, number, buf, len, Some(timeout), read_flags) }
}

unsafe extern "C" fn readerr<E: EventQueue>(
    eq: *mut sys::fid_eq,
    to: *mut sys::fi_eq_err_entry,
    read_flags: u64,
) -> isize {
    guard::call(|| {
        // SAFETY: reached through the queue's table; `to` is null or complete.
        unsafe {
            let eq = object::get::<_, E>(eq)?;
            let to = to.as_mut().ok_or(Errno::EINVAL)?;
            let error = eq.read_error(read_flags)?;
            to.fid = error.fid.0 as *mut sys::fid;
            to.context = error.context.0 as *mut c_void;
            to.data = error.data;
            to.err = error.errno.get();
            to.prov_errno = error.errno.get();
            to.err_data_size = 0;
            Ok(size_of::<sys::fi_eq_err_entry>())
        }
    })
}

unsafe extern "C" fn write<E: EventQueue>(
    eq: *mut sys::fid_eq,
    number: u32,
    buf: *const c_void,
    len: usize,
    write_flags: u64,
) -> isize {
    guard::call(|| {
        if (buf.is_null() && len > 0) || write_flags != 0 {
            return Err(Errno::EINVAL);
        }
        // SAFETY: reached through the queue's table; C gives `len` bytes.
        unsafe {
            let eq = object::get::<_, E>(eq)?;
            let bytes = if len == 0 {
                Vec::new()
            } else {
                std::slice::from_raw_parts(buf.cast::<u8>(), len).to_vec()
            };
            eq.write(Event { number, bytes })?;
        }
        Ok(len)
    })
}

/// Copies the text of an error into `buf`, if there is one, and returns a text in any case.
///
/// # Safety
/// `buf` is null or valid for `len` bytes.
pub(crate) unsafe fn error_text(prov_errno: c_int, buf: *mut c_char, len: usize) -> *const c_char {
    let text: &'static CStr = Errno::new(prov_errno).text();
    if buf.is_null() || len == 0 {
        return text.as_ptr();
    }
    // SAFETY: the caller gives room of `len` bytes; strncpy is followed by a NUL.
    unsafe {
        libc::strncpy(buf, text.as_ptr(), len - 1);
        *buf.add(len - 1) = 0;
    }
    buf
}

unsafe extern "C" fn strerror(
    _: *mut sys::fid_eq,
    prov_errno: c_int,
    _: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    // SAFETY: C gives room of `len` bytes.
    unsafe { error_text(prov_errno, buf, len) }
}
