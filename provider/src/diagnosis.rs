// SPDX-License-Identifier: BSD-2-Clause
//! Explains in the log why a peer on this host cannot be found: the port in its address has no
//! segment, which is the file in `/dev/shm` that an endpoint shares with its peers.

use std::collections::BTreeSet;

use host::directory;
use parking_lot::Mutex;

use crate::address;

/// Maximum number of ports that are explained. If thousands of ports have no segment, the reason is
/// the same for all.
const MOST: usize = 16;

/// Logs the likely reason why a port has no segment: once per port, and for up to [`MOST`] ports.
///
/// It does not wait for a peer that is just opening or closing its endpoint. If 128 ranks share a
/// core, opening an endpoint may take longer than any reasonable wait.
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
