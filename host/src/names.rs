// SPDX-License-Identifier: BSD-2-Clause
//! Names of the files by which processes of this network namespace find each other (see
//! [`crate::directory`]).

use std::{
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::directory;

/// Prefix of the names of segments.
pub const SEGMENT_NAME: &str = "segment.";
/// Prefix of the names of segments that are being made.
pub const NEW: &str = "new.";
/// Prefix of the names of segments that dead endpoints left to the process that claims their job.
/// The rest of the former name and the inode follow.
pub const LEFT: &str = "left.";
/// Prefix of the names of the sockets on which endpoints sleep.
pub const DOORBELL: &str = "bell.";
/// Prefix of the names of claims; see [`claim_of`].
pub const CLAIM: &str = "claim.";

/// Returns the name of the file that a process locks to claim the segments of a job's dead
/// endpoints.
#[must_use]
pub fn claim_of(job: u64) -> String {
    format!("{CLAIM}{job:016x}")
}

/// Returns the hash (FNV-1a) of the report pattern, `FI_TCAM_REPORT`, which identifies the
/// processes of a job; zero if they write no reports. Two jobs can have the same hash.
#[must_use]
pub fn job_of(pattern: &str) -> u64 {
    if pattern.is_empty() {
        return 0;
    }
    pattern.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

static NAMESPACE: AtomicU64 = AtomicU64::new(0);

/// Returns the number of the network namespace in which this process called this function first; 0
/// if it is unknown. Port numbers are unique in a namespace.
#[must_use]
pub fn namespace() -> u64 {
    let known = NAMESPACE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    #[cfg(test)]
    apart();
    let number = std::fs::metadata("/proc/self/ns/net").map_or(0, |meta| meta.ino());
    // A test may have set another number meanwhile.
    let known = NAMESPACE.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
    known.err().unwrap_or(number)
}

/// Environment variable that makes a child process of a test find the segments of the test.
#[cfg(any(test, feature = "testing"))]
pub const SPACE: &str = "TCAM_TEST_SPACE";

/// Separates tests from other programs, and from the same tests that run at the same time. Tests
/// use fixed ports; after this call, they use a namespace number of their own. A provider that is
/// built with the `testing` feature does not call this function by itself.
#[cfg(any(test, feature = "testing"))]
pub fn apart() {
    let inherited = std::env::var(SPACE).ok().and_then(|space| space.parse().ok());
    let number = inherited.unwrap_or_else(|| std::process::id().into());
    NAMESPACE.store(number, Ordering::Relaxed);
}

/// Returns the prefix of the segment names of this network namespace.
#[must_use]
pub fn prefix() -> String {
    format!("{SEGMENT_NAME}{}.", namespace())
}

/// Returns the name of the segment of a port (see [`crate::directory`]).
#[must_use]
pub fn name_of(port: u16) -> String {
    format!("{}{port}", prefix())
}

/// Returns the path of the socket on which the endpoint that holds a port sleeps.
#[must_use]
pub fn doorbell_of(port: u16) -> PathBuf {
    directory::path().join(format!("{DOORBELL}{}.{port}", namespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_different_hashes() {
        assert_eq!(job_of(""), 0);
        assert_eq!(job_of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(job_of("/tmp/a/%r.%p"), job_of("/tmp/b/%r.%p"));
    }
}
