// SPDX-License-Identifier: BSD-2-Clause
//! Names of what processes of this network namespace find each other by (see [`crate::directory`]).

use std::{
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::directory;
use nic::live::{BELL, SEGMENT_NAME};

static NAMESPACE: AtomicU64 = AtomicU64::new(0);

/// Number of the network namespace, in which ports are numbered: that in which this was
/// first asked for.
#[must_use]
pub fn namespace() -> u64 {
    let known = NAMESPACE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    #[cfg(test)]
    apart();
    let number = std::fs::metadata("/proc/self/ns/net").map_or(0, |meta| meta.ino());
    // Tests may have said another meanwhile.
    let known = NAMESPACE.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
    known.err().unwrap_or(number)
}

/// Has a process that a test starts find the segments of that test.
#[cfg(any(test, feature = "testing"))]
pub const SPACE: &str = "TCAM_TEST_SPACE";

/// Tests use ports of their choice: from here on those of other programs, and of the same tests run
/// at the same time, are elsewhere. A provider that is built with tests beside it is not apart.
#[cfg(any(test, feature = "testing"))]
pub fn apart() {
    let inherited = std::env::var(SPACE).ok().and_then(|space| space.parse().ok());
    let number = inherited.unwrap_or_else(|| std::process::id().into());
    NAMESPACE.store(number, Ordering::Relaxed);
}

/// What the names of the segments of this network namespace begin with.
#[must_use]
pub fn prefix() -> String {
    format!("{SEGMENT_NAME}{}.", namespace())
}

/// The name of the segment of a port (see [`crate::directory`]).
#[must_use]
pub fn name_of(port: u16) -> String {
    format!("{}{port}", prefix())
}

/// The place of the socket that the owner of a port sleeps on.
#[must_use]
pub fn bell_of(port: u16) -> PathBuf {
    directory::path().join(format!("{BELL}{}.{port}", namespace()))
}
