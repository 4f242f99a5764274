// SPDX-License-Identifier: BSD-2-Clause
//! The functions that the provider looks up (`ffi/src/sites.rs`).
#![allow(unsafe_code, reason = "names are exported, and a caller's buffer is filled")]

use std::ffi::{CStr, c_char};

use crate::callers;
use crate::names::{FUNCTIONS, function_of};
use crate::word::word;

/// Returns the word of the calling thread; 0 if it has not called MPI.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn tcam_site() -> u64 {
    word()
}

/// Returns the function of MPI in a word, such as `MPI_Irecv`; null if there is no such name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn tcam_site_function(word: u64) -> *const c_char {
    let function = FUNCTIONS.get(function_of((word >> 48) as usize));
    function.map_or(std::ptr::null(), |name: &&CStr| name.as_ptr())
}

/// Writes the return addresses of a word, the innermost first, to a buffer of `most` addresses.
/// Returns their number.
///
/// # Safety
/// The buffer is valid for writes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tcam_site_callers(
    word: u64,
    buffer: *mut u64,
    most: usize,
) -> usize {
    let callers = callers::of(word);
    let count = callers.len().min(most);
    // SAFETY: the caller vouches for the buffer, which does not overlap the new vector.
    unsafe {
        std::ptr::copy_nonoverlapping(callers.as_ptr(), buffer, count);
    }
    count
}
