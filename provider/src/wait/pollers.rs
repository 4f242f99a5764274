// SPDX-License-Identifier: BSD-2-Clause
//! The number of threads with empty polls.

use std::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Threads that have had empty polls for a while.
static POLLERS: AtomicUsize = AtomicUsize::new(0);

/// Number of threads of the application that poll endpoints. A thread that has ended still counts,
/// but callers never assume more pollers than endpoints.
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
