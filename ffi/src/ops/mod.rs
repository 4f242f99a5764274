// SPDX-License-Identifier: BSD-2-Clause
//! The operation tables of libfabric, one file an object: a safe trait that the
//! provider implements, and the entry points C calls. What an object does not
//! do is `-FI_ENOSYS`, never a null pointer.

pub mod av;
pub mod cntr;
pub mod cq;
pub mod domain;
pub mod ep;
pub mod eq;
pub mod fabric;
pub(crate) mod fid;
pub mod mr;
pub mod poll;
pub mod profile;
pub mod work;

use crate::errno::{Errno, Result};

/// An entry point of the given type that answers `-FI_ENOSYS`.
macro_rules! enosys {
    (fn($($arg:ty),* $(,)?) -> $ret:ty) => {{
        unsafe extern "C" fn enosys($(_: $arg),*) -> $ret {
            -(libc::ENOSYS as $ret)
        }
        Some(enosys as unsafe extern "C" fn($($arg),*) -> $ret)
    }};
}
pub(crate) use enosys;

/// Pointer to an operation table: C's types are not const, but nobody writes to it.
macro_rules! table {
    ($table:expr) => {
        std::ptr::from_ref(const { &$table }).cast_mut()
    };
}
pub(crate) use table;

/// Wait objects (`enum fi_wait_obj`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitObj {
    /// `FI_WAIT_NONE`: the queue is only polled.
    #[default]
    None,
    /// `FI_WAIT_UNSPEC`: the provider chooses how to sleep.
    Unspec,
    /// `FI_WAIT_YIELD`: waiting calls yield the core.
    Yield,
    /// `FI_WAIT_FD`: a file descriptor, which `FI_GETWAIT` answers.
    Fd,
    /// Any other.
    Other(u32),
}

impl WaitObj {
    pub(crate) fn read(raw: u32) -> Self {
        match raw {
            crate::sys::FI_WAIT_NONE => Self::None,
            crate::sys::FI_WAIT_UNSPEC => Self::Unspec,
            crate::sys::FI_WAIT_YIELD => Self::Yield,
            crate::sys::FI_WAIT_FD => Self::Fd,
            other => Self::Other(other),
        }
    }

    /// The value of `enum fi_wait_obj`.
    #[must_use]
    pub fn raw(self) -> u32 {
        match self {
            Self::None => crate::sys::FI_WAIT_NONE,
            Self::Unspec => crate::sys::FI_WAIT_UNSPEC,
            Self::Yield => crate::sys::FI_WAIT_YIELD,
            Self::Fd => crate::sys::FI_WAIT_FD,
            Self::Other(raw) => raw,
        }
    }
}

/// Writes an answer where C wants it.
///
/// # Safety
/// `to` is null or valid for a write.
pub(crate) unsafe fn answer<T>(to: *mut T, value: T) -> Result<usize> {
    if to.is_null() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: checked for null, and the caller vouches for the rest.
    unsafe { to.write(value) };
    Ok(0)
}

/// A string argument that may be null.
///
/// # Safety
/// `text` is null or a C string that lives as long as the call.
pub(crate) unsafe fn text<'a>(text: *const libc::c_char) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the string.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_str().map(Some).map_err(|_| Errno::EINVAL)
}
