// SPDX-License-Identifier: BSD-2-Clause
//! Checks that the ranks of a host see the same /dev/shm. The launcher starts a shell instead of
//! the program, which prints the identity of /dev/shm as each rank sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::finding::Finding;
use super::program;
use crate::file;
use crate::launch::launcher;
use crate::launch::signals::Signals;
use crate::text::numbers::count;

/// First word of a rank's line; some launchers put a label before it.
const BEGINS: &str = "tcam-shm ";
/// Prints the boot id of the kernel, the network namespace, and the device and inode of /dev/shm.
/// Ranks with the same kernel and namespace must see the same /dev/shm.
const PROBE: &str = "echo tcam-shm $(cat /proc/sys/kernel/random/boot_id) \
                     $(readlink /proc/self/ns/net) $(stat -Lc %d:%i /dev/shm)";
/// Longest time that the launcher may take.
const LIMIT: Duration = Duration::from_secs(20);
/// Largest output that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// Starts the probe with the launcher and the ranks of a command whose program is linked to an MPI.
/// Returns none if fewer than two ranks answer.
pub(super) fn share_memory(command: &[OsString]) -> Option<Finding> {
    launcher::in_command(command)?;
    let at = program::position(command)?;
    let directory = tempfile::tempdir().ok()?;
    let output = directory.path().join("ranks");
    let mut start = Command::new(&command[0]);
    start.args(command[..at].iter().skip(1)).args(["sh", "-c", PROBE]);
    start.stdin(Stdio::null()).stdout(file::begin(&output).ok()?).stderr(Stdio::null());
    Signals::catch().ok()?.wait(&mut start, "the probe of /dev/shm", Some(LIMIT)).ok()?;
    judge(&host::regular::read_text(&output, LONGEST).ok()?)
}

/// Judges the lines of the ranks.
fn judge(text: &str) -> Option<Finding> {
    let mut hosts: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    let mut ranks = 0;
    for line in text.lines().filter_map(|line| Some(line.split_once(BEGINS)?.1)) {
        let [kernel, network, memory] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
        hosts.entry((kernel, network)).or_default().insert(memory);
        ranks += 1;
    }
    if ranks < 2 {
        return None;
    }
    let ranks = count(ranks, "rank");
    Some(match hosts.into_values().map(|memories| memories.len()).max() {
        Some(most @ 2..) => Finding::bad(
            format!("{ranks}: those of one host see {most} different /dev/shm"),
            "they cannot send to one another: have their containers share /dev/shm, docker run \
             --ipc=host, or -v /dev/shm:/dev/shm",
        ),
        _ => Finding::good(format!("{ranks}: those of one host see the same /dev/shm")),
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn ranks_of_one_host_must_see_the_same_memory() {
        for (lines, verdict) in [
            ("tcam-shm k n 1:1\n[1] tcam-shm k n 1:1\nother", Some(Verdict::Good)),
            ("tcam-shm k n 1:1\ntcam-shm k n 2:1", Some(Verdict::Bad)),
            // Other hosts, and containers with separate networks.
            ("tcam-shm k n 1:1\ntcam-shm l n 2:1\ntcam-shm k m 3:1", Some(Verdict::Good)),
            ("tcam-shm k n 1:1", None),
            ("tcam-shm k n\ntcam-shm k n", None),
            ("", None),
        ] {
            assert_eq!(judge(lines).map(|finding| finding.verdict), verdict, "{lines}");
        }
    }
}
