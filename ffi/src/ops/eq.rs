// SPDX-License-Identifier: BSD-2-Clause
//! `fi_eq(3)`: event queues.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::Arc,
};

use crate::{
    errno::{Errno, Result},
    memory::{OpContext, Output, bytes_of},
    object::{FidName, Object},
    ops::{WaitObj, array, entry_points, fid, table},
    sys,
};

/// `struct fi_eq_attr`, without the requested size: the queue grows.
#[derive(Clone, Debug, Default)]
pub struct EqAttr {
    /// `FI_WRITE` and others.
    pub flags: u64,
    /// How `fi_eq_sread` waits.
    pub wait_obj: WaitObj,
}

impl EqAttr {
    pub(crate) fn read(raw: &sys::fi_eq_attr) -> Self {
        Self { flags: raw.flags, wait_obj: WaitObj::read(raw.wait_obj) }
    }
}

/// An event: its number and its bytes. Events of the provider have the bytes of a `fi_eq_entry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `FI_AV_COMPLETE` and others.
    pub number: u32,
    /// The bytes that the application reads.
    pub bytes: Vec<u8>,
}

impl Event {
    /// `FI_AV_COMPLETE`: one call inserted `inserted` addresses.
    #[must_use]
    pub fn av_complete(av: FidName, context: OpContext, inserted: usize) -> Self {
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
    /// Object that the error is about.
    pub fid: FidName,
    /// Context of the operation.
    pub context: OpContext,
    /// For an AV insert, the index of the address in the call.
    pub data: u64,
    /// The error.
    pub errno: Errno,
}

/// An event queue.
pub trait EventQueue: Object<Raw = sys::fid_eq> {
    /// `fi_eq_read` and, with a timeout (milliseconds, negative: no limit), `fi_eq_sread`. Writes
    /// the bytes of the first event to `to`. Returns the number of the event and its length in
    /// bytes. With `FI_PEEK`, the event stays in the queue.
    ///
    /// # Errors
    /// `EAGAIN` if there is no event, `EAVAIL` if there is an error, `ETOOSMALL` if the event does
    /// not fit. An event that does not fit stays in the queue.
    fn read(&self, to: &mut Output, timeout: Option<c_int>, flags: u64) -> Result<(u32, usize)>;

    /// `fi_eq_readerr`: returns the first error, and removes it unless the flags contain `FI_PEEK`.
    ///
    /// # Errors
    /// `EAGAIN` if there is no error.
    fn read_error(&self, flags: u64) -> Result<ErrorEvent>;

    /// `fi_eq_write`.
    ///
    /// # Errors
    /// `EINVAL` if the queue was not opened with `FI_WRITE`.
    fn write(&self, event: Event) -> Result<()>;
}

entry_points! {
    ops<E: EventQueue> = sys::fi_ops_eq, ends at strerror;
    eq = get(fid: *mut sys::fid_eq);

    unsafe fn read(number: *mut u32, buf: *mut c_void, len: usize, flags: u64) -> isize {
        let number = number.as_mut().ok_or(Errno::EINVAL)?;
        let (event, len) = eq.read(&mut Output::new(buf, len), None, flags)?;
        *number = event;
        Ok(len)
    }

    unsafe fn sread(
        number: *mut u32, buf: *mut c_void, len: usize, timeout: c_int, flags: u64,
    ) -> isize {
        let number = number.as_mut().ok_or(Errno::EINVAL)?;
        let (event, len) = eq.read(&mut Output::new(buf, len), Some(timeout), flags)?;
        *number = event;
        Ok(len)
    }

    unsafe fn readerr(to: *mut sys::fi_eq_err_entry, flags: u64) -> isize {
        let to = to.as_mut().ok_or(Errno::EINVAL)?;
        let error = eq.read_error(flags)?;
        to.fid = error.fid.0 as *mut sys::fid;
        to.context = error.context.0 as *mut c_void;
        to.data = error.data;
        to.err = error.errno.get();
        to.prov_errno = error.errno.get();
        to.err_data_size = 0;
        Ok(size_of::<sys::fi_eq_err_entry>())
    }

    unsafe fn write(number: u32, buf: *const c_void, len: usize, flags: u64) -> isize {
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        let bytes = array(buf.cast::<u8>(), len)?.to_vec();
        eq.write(Event { number, bytes }).map(|()| len)
    }

    unsafe fn strerror(
        prov_errno: c_int, _err_data: *const c_void, buf: *mut c_char, len: usize,
    ) -> *const c_char {
        Ok(error_text(prov_errno, buf, len))
    }
}

pub(crate) fn create<E: EventQueue>(eq: Arc<E>, context: *mut c_void) -> *mut sys::fid_eq {
    fid::create(sys::fid_eq { ops: table!(ops::<E>()), ..Default::default() }, eq, context)
}

/// Returns the text of an error: in `buf` as far as it fits, or a constant if `buf` is null or
/// empty.
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
