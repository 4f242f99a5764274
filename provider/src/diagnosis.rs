// SPDX-License-Identifier: BSD-2-Clause
//! Explains in the log why a peer cannot be found.

use std::collections::BTreeSet;

use host::directory;
use parking_lot::Mutex;

use crate::address;

/// Most ports that are explained: a job that asks for thousands of ports has one reason.
const MOST: usize = 16;

/// Logs, once per port, the likely reason why it has no segment.
///
/// It does not wait for a peer that is about to open or close: where 128 ranks share a core, that
/// takes longer than any wait.
#[cold]
pub(crate) fn explain(port: u16) {
    static SAID: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock();
    if said.len() < MOST && said.insert(port) {
        let place = directory::path();
        let place = place.display();
        let others = directory::other_users();
        if address::is_held(port) {
            let whose =
                if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
            tracing::error!(
                "{place} has no endpoint at port {port}, although a process holds this port: the \
                 endpoint is just being opened or closed, or it is not in this {} (containers must \
                 share one: docker run --ipc), or its files there were removed, or it is in \
                 another network namespace or of another user{whose}",
                directory::SHM
            );
        } else {
            tracing::warn!("no endpoint on this host has port {port}");
        }
    }
}
