// SPDX-License-Identifier: BSD-2-Clause
//! Counts the endpoints of this process, and names the owner of shared resources uniquely.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{
    names::name_of,
    owner::{Look, lives, own_start},
};

/// Identifies an endpoint or a process uniquely, also after its port and process id are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Port of the endpoint; 0 for a process without an endpoint.
    pub port: u16,
    /// Inode of the endpoint's segment.
    pub inode: u64,
    /// Process id.
    pub pid: u32,
    /// When the process started, in clock ticks since boot.
    pub started: u64,
}

impl Owner {
    /// Identifies this process, without an endpoint.
    #[must_use]
    pub fn of_process() -> Self {
        let pid = std::process::id();
        Self { port: 0, inode: 0, pid, started: own_start() }
    }

    /// Returns true if the owner is still alive.
    #[must_use]
    pub fn lives(&self) -> bool {
        lives(&name_of(self.port), self.inode, Some((self.pid, self.started)), Look::Closely)
    }
}

/// Number of endpoints of this process.
static OWN: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of endpoints of this process.
pub fn own_count() -> usize {
    OWN.load(Ordering::Relaxed)
}

/// Counts as an endpoint of this process until it is dropped.
#[derive(Debug)]
pub struct OwnEndpoint(());

impl OwnEndpoint {
    /// Counts one more endpoint.
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
