// SPDX-License-Identifier: BSD-2-Clause
//! The MPI that this process uses, if it does.

use std::ffi::{CStr, c_char, c_int};

/// Bytes of the longest version there is (`MPI_MAX_LIBRARY_VERSION_STRING` of MPICH).
const LONGEST: usize = 8192;

/// What `MPI_Get_library_version` says; nothing where no MPI is in the global scope.
///
/// It may be called at any time and from any thread, before `MPI_Init` and inside of it
/// (MPI 4.1, 11.4.1). The name with P is the library's own: no tool sees the call.
#[must_use]
pub fn library_version() -> Option<String> {
    type Get = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    // SAFETY: the name is a C string; looking it up calls nothing.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"PMPI_Get_library_version".as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: every MPI declares the function of this name so.
    let get: Get = unsafe { std::mem::transmute(found) };
    let mut text = vec![0_u8; LONGEST + 1];
    let mut length = 0;
    // SAFETY: the text is as long as any MPI may write, and both pointers are valid for the call.
    let error = unsafe { get(text.as_mut_ptr().cast(), &raw mut length) };
    let text = CStr::from_bytes_until_nul(&text).ok()?;
    (error == 0).then(|| text.to_string_lossy().into_owned())
}
