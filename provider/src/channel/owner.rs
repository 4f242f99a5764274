// SPDX-License-Identifier: BSD-2-Clause
//! Names an endpoint for good, for who shares something else with it than messages.

use host::owner::{Look, lives, own_start};

use super::names::name_of;

/// Names an endpoint for good: its port, its segment's file, its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) port: u16,
    pub(crate) inode: u64,
    pub(crate) pid: u32,
    pub(crate) started: u64,
}

impl Owner {
    /// Names this process, without an endpoint.
    pub(crate) fn of_process() -> Self {
        let pid = std::process::id();
        Self { port: 0, inode: 0, pid, started: own_start() }
    }

    /// Whether it lives still.
    pub(crate) fn lives(&self) -> bool {
        lives(&name_of(self.port), self.inode, Some((self.pid, self.started)), Look::Closely)
    }
}
