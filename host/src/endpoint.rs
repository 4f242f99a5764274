// SPDX-License-Identifier: BSD-2-Clause
//! Endpoints: how many this process has, and one named for good, for whoever shares something else
//! with it than messages.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{
    names::name_of,
    owner::{Look, lives, own_start},
};

/// Names an endpoint for good: its port, its segment's file, its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its port; 0 without an endpoint.
    pub port: u16,
    /// Inode of its segment.
    pub inode: u64,
    /// Number of its process.
    pub pid: u32,
    /// When the process started, in clock ticks since boot.
    pub started: u64,
}

impl Owner {
    /// Names this process, without an endpoint.
    #[must_use]
    pub fn of_process() -> Self {
        let pid = std::process::id();
        Self { port: 0, inode: 0, pid, started: own_start() }
    }

    /// Whether it lives still.
    #[must_use]
    pub fn lives(&self) -> bool {
        lives(&name_of(self.port), self.inode, Some((self.pid, self.started)), Look::Closely)
    }
}

/// Endpoints that this process has.
static OWN: AtomicUsize = AtomicUsize::new(0);

/// How many endpoints this process has.
pub fn own_count() -> usize {
    OWN.load(Ordering::Relaxed)
}

/// An endpoint of this process, as long as this is kept.
#[derive(Debug)]
pub struct OwnEndpoint(());

impl OwnEndpoint {
    /// Counts an endpoint.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it counts")]
    pub fn new() -> Self {
        OWN.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for OwnEndpoint {
    fn drop(&mut self) {
        OWN.fetch_sub(1, Ordering::Relaxed);
    }
}
