// SPDX-License-Identifier: BSD-2-Clause
//! How many threads poll in vain.

use std::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Threads that have polled in vain for a while.
static POLLERS: AtomicUsize = AtomicUsize::new(0);

/// How many threads of the application poll endpoints. One that has ended still counts:
/// there are never taken to be more of them than endpoints.
pub(crate) fn pollers() -> usize {
    POLLERS.load(Ordering::Relaxed)
}

/// Counts this thread, once.
pub(crate) fn note_poller() {
    thread_local!(static COUNTED: Cell<bool> = const { Cell::new(false) });
    if !COUNTED.replace(true) {
        POLLERS.fetch_add(1, Ordering::Relaxed);
    }
}
