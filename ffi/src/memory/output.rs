// SPDX-License-Identifier: BSD-2-Clause
//! Memory of the application that a call writes its results to.

use std::{ptr, slice};

/// Memory for a result: `(void *buf, size_t len)`.
#[derive(Debug)]
pub struct Output {
    addr: *mut u8,
    len: usize,
}

impl Output {
    /// # Safety
    /// `addr` is null or valid for writes of `len` bytes during the call.
    pub(crate) unsafe fn new(addr: *mut libc::c_void, len: usize) -> Self {
        Self { addr: addr.cast(), len: if addr.is_null() { 0 } else { len } }
    }

    /// Returns the room in bytes; 0 for a null pointer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if no byte fits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes as many of the first bytes as fit. Returns their number.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let len = bytes.len().min(self.len);
        if len > 0 {
            // SAFETY: `new` was promised `self.len` writable bytes.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.addr, len) };
        }
        len
    }
}

/// Returns the bytes of a value without padding, for events that are written to an [`Output`].
pub(crate) fn bytes_of<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: a reference is valid for the size of its type; callers pass
    // structures of pointers and integers of 8 bytes, which have no padding.
    unsafe { slice::from_raw_parts(ptr::from_ref(value).cast(), size_of::<T>()) }
}
