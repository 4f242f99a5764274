// SPDX-License-Identifier: BSD-2-Clause
//! The places in the program from which it called MPI, if `libtcam-sites.so` is preloaded (`tcam run
//! --sites`). The provider does not link to that library, and looks its functions up.

use std::ffi::{CStr, c_char};

type Word = unsafe extern "C" fn() -> u64;
type Function = unsafe extern "C" fn(u64) -> *const c_char;
type Callers = unsafe extern "C" fn(u64, *mut u64, usize) -> usize;

/// Largest number of callers of a place.
pub const MOST_CALLERS: usize = 16;

/// The functions of `libtcam-sites.so`.
#[derive(Clone, Copy, Debug)]
pub struct Sites {
    word: Word,
    function: Function,
    callers: Callers,
}

impl Sites {
    /// Looks the functions up. Returns `None` if the library is not loaded.
    #[must_use]
    pub fn find() -> Option<Self> {
        let [word, function, callers] = [c"tcam_site", c"tcam_site_function", c"tcam_site_callers"]
            .map(|name| {
                // SAFETY: the name is a C string; looking it up calls nothing.
                unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
            });
        if word.is_null() || function.is_null() || callers.is_null() {
            return None;
        }
        // SAFETY: `sites/src/provider.rs` defines the functions with these types.
        unsafe {
            Some(Self {
                word: std::mem::transmute::<*mut libc::c_void, Word>(word),
                function: std::mem::transmute::<*mut libc::c_void, Function>(function),
                callers: std::mem::transmute::<*mut libc::c_void, Callers>(callers),
            })
        }
    }

    /// Returns a number for the place from which the calling thread called MPI last; 0 if it has
    /// not called MPI.
    #[inline]
    #[must_use]
    pub fn word(&self) -> u64 {
        // SAFETY: the function only reads a variable of the thread.
        unsafe { (self.word)() }
    }

    /// Returns the function of MPI and the addresses to which it and its callers return, for a
    /// result of [`word`](Self::word).
    #[must_use]
    pub fn place(&self, word: u64) -> (String, Vec<u64>) {
        let mut callers = [0; MOST_CALLERS];
        // SAFETY: the function returns null or a static C string, and the buffer has this length.
        let (function, count) = unsafe {
            let name = (self.function)(word);
            let name = if name.is_null() { c"?" } else { CStr::from_ptr(name) };
            (name, (self.callers)(word, callers.as_mut_ptr(), callers.len()))
        };
        let callers = callers[..count.min(callers.len())].to_vec();
        (function.to_string_lossy().into_owned(), callers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_library_there_are_no_places() {
        assert!(Sites::find().is_none());
    }
}
