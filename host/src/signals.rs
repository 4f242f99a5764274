// SPDX-License-Identifier: BSD-2-Clause
//! Keeps the application's signals away from our threads.
#![allow(unsafe_code, reason = "system calls")]

/// Runs `work`, which starts a thread, with all signals blocked. The new thread inherits this
/// mask, so the application's signal handlers run only on the application's threads.
pub fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are initialised by the calls that fill them, and live as long.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        let masked = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) == 0;
        let result = work();
        if masked {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
        result
    }
}
