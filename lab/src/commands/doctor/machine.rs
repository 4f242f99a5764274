// SPDX-License-Identifier: BSD-2-Clause
//! Checks the `FI_TCAM_*` variables, shared memory, and the processors of this host.

use std::path::{Path, PathBuf};

use host::directory;
use host::live::{PEERS, SEGMENT};
use host::names::{LEFT, SEGMENT_NAME};
use nic::params::PREFIX;
use rustix::fs::FlockOperation;

use super::findings::{Findings, Subject};
use super::hosts;
use crate::launch::{endpoints, launcher};
use crate::settings::{self, Settings};
use crate::text::{bytes, count, whole};

/// With less free shared memory than this (in bytes), only a few ranks may start.
const LITTLE: u64 = 256 << 20;
/// With less free shared memory than this (in bytes), not even two ranks start.
const NOTHING: u64 = 16 << 20;

/// Checks the names and values of FI_TCAM_* variables.
pub(super) fn parameters(_: &Subject<'_>, findings: &mut Findings) {
    // Names and values in the environment need not be UTF-8.
    let set: Vec<_> = std::env::vars_os()
        .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
        .filter(|set| set.starts_with(PREFIX))
        .collect();
    let params = match Settings::default().check() {
        Ok(params) => params,
        Err(error) => {
            return findings.bad(
                error.to_string(),
                "tcam is not offered until it is corrected or unset; fi_tcam(7) explains every \
                 parameter",
            );
        }
    };
    if set.is_empty() {
        return;
    }
    findings.note(
        format!("set in the environment: {}", set.join(" ")),
        "options of `tcam run` and `tcam sweep` come before these",
    );
    config(&params.config, findings);
    report_place(&params.report, findings);
    trace_place(&params.trace, findings);
}

/// Reports the settings of the file of FI_TCAM_CONFIG, and which of them the environment overrides.
fn config(file: &str, findings: &mut Findings) {
    let Some(config) = settings::config(Path::new(file)).ok().filter(|_| !file.is_empty()) else {
        return;
    };
    let is_set =
        |name: &str| std::env::var_os(format!("{PREFIX}{}", name.to_uppercase())).is_some();
    let (over, ours): (Vec<_>, Vec<_>) = config.all().partition(|(name, _)| is_set(name));
    let list = |of: &[(&str, &str)]| {
        let words: Vec<_> = of.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(" ") }
    };
    let what = format!("FI_TCAM_CONFIG={file} sets {}", list(&ours));
    match over.is_empty() {
        true => findings.good(what),
        false => findings
            .note(what, format!("the environment comes before what else it sets: {}", list(&over))),
    }
}

/// Checks that reports can be written to FI_TCAM_REPORT.
fn report_place(pattern: &str, findings: &mut Findings) {
    if let Some(error) = Path::new(pattern).parent().and_then(unwritable) {
        findings.note(
            format!("FI_TCAM_REPORT={pattern}: no report can be written there: {error}"),
            "`tcam run` replaces it; without it: give a place that the ranks may write to",
        );
    }
}

/// Checks that traces can be written to FI_TCAM_TRACE.
fn trace_place(directory: &str, findings: &mut Findings) {
    if let Some(error) = unwritable(Path::new(directory)).filter(|_| !directory.is_empty()) {
        findings.bad(
            format!("FI_TCAM_TRACE={directory}: nothing can be recorded there: {error}"),
            "give a directory that the ranks may write to, or unset it: `tcam run --trace` has its own",
        );
    }
}

/// Returns the error of making a file in a directory, or `None` if a file can be made. If the
/// directory does not exist yet, its nearest existing parent is checked. Of a pattern, only the
/// directories before the first `%` are checked, because all ranks share them.
fn unwritable(directory: &Path) -> Option<std::io::Error> {
    let shared: PathBuf = directory
        .components()
        .take_while(|part| !part.as_os_str().as_encoded_bytes().contains(&b'%'))
        .collect();
    let place = Path::new(".").join(shared);
    let there = place.ancestors().find(|place| place.symlink_metadata().is_ok())?;
    // A file without a name, so that nothing is left behind.
    tempfile::tempfile_in(there).err()
}

/// Checks the size of /dev/shm, which contains the segment of every endpoint.
pub(super) fn shared_memory(subject: &Subject<'_>, findings: &mut Findings) {
    if let Some(error) = unwritable(Path::new("/dev/shm")) {
        return findings.bad(
            format!("/dev/shm: {error}"),
            "endpoints share memory there: mount a tmpfs on /dev/shm that users may write to",
        );
    }
    match rustix::fs::statvfs("/dev/shm") {
        Err(error) => findings.bad(
            format!("/dev/shm: {error}"),
            "endpoints share memory there: mount a tmpfs on /dev/shm",
        ),
        Ok(stat) => judge_shared_memory(
            stat.f_blocks.saturating_mul(stat.f_frsize),
            stat.f_bavail.saturating_mul(stat.f_frsize),
            hosts::ranks_here(subject),
            findings,
        ),
    }
}

fn judge_shared_memory(size: u64, free: u64, ranks: Option<usize>, findings: &mut Findings) {
    let what = format!("/dev/shm has {} free of {}", bytes(free), bytes(size));
    let advice = "make it larger: mount -o remount,size=4G /dev/shm, or docker run --shm-size=4g";
    if let Some(ranks) = ranks.map(|ranks| ranks as u64) {
        let need = ranks.saturating_mul(SEGMENT as u64);
        if need > free {
            let ranks = count(ranks, "rank");
            let size = need.saturating_add(size.saturating_sub(free)).div_ceil(1 << 30);
            return findings.bad(
                format!("{what}: {ranks} need {}", bytes(need)),
                format!("start fewer, or make it larger: mount -o remount,size={size}G /dev/shm"),
            );
        }
    }
    match free {
        ..NOTHING => findings.bad(what, advice),
        NOTHING..LITTLE => findings.note(format!("{what}: enough for a few ranks only"), advice),
        _ => findings.good(what),
    }
}

/// Checks the directory of the segments (the shared memory of endpoints), because another user may
/// have taken its name. Counts the segments. A living endpoint holds a lock on its segment; a
/// segment without a lock is left over from a dead process.
pub(super) fn directory(_: &Subject<'_>, findings: &mut Findings) {
    let shown = directory::path().display().to_string();
    if let Some(obstacle) = directory::obstacle() {
        let advice = format!("no endpoint can be opened before: ls -ld {shown}");
        return findings.bad(obstacle, advice);
    }
    let Ok(Some(directory)) = endpoints::open() else { return };
    let (mut living, mut dead) = (0, 0);
    let segments = directory.names(SEGMENT_NAME).into_iter().flatten();
    for name in segments.chain(directory.names(LEFT).into_iter().flatten()) {
        let Ok(file) = directory.file(&name) else { continue };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => dead += 1,
            Err(_) => living += 1,
        }
    }
    if living > 0 {
        findings.note(
            format!("{} of tcam open on this host now", count(living, "endpoint")),
            format!("if you started none, a program still runs or hangs: fuser -v {shown}/*"),
        );
    }
    if dead > 0 {
        findings.note(
            format!("{shown} holds {} whose owner died", count(dead, "segment")),
            "the next start removes them",
        );
    }
}

/// Checks that the kernel lets processes of a user copy from each other.
pub(super) fn kernel_copy(_: &Subject<'_>, findings: &mut Findings) {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    judge_ptrace(scope.ok().as_deref().map(str::trim), findings);
}

fn judge_ptrace(scope: Option<&str>, findings: &mut Findings) {
    match scope {
        None => findings.good("copies between processes are not restricted (no ptrace scope)"),
        Some("0") => findings.good("copies between processes are not restricted (ptrace scope 0)"),
        Some(scope) => findings.note(
            format!("ptrace scope {scope}: the kernel may refuse copies between processes"),
            "long messages then go through shared buffers, more slowly; to allow the copies: \
             sysctl kernel.yama.ptrace_scope=0",
        ),
    }
}

/// Reports the comparison kernel (the SIMD code that compares table entries) for this processor.
pub(super) fn processor(_: &Subject<'_>, findings: &mut Findings) {
    let kernel = matching::Kernel::best();
    findings.good(format!("tables are searched with the {kernel} kernel here"));
}

/// Compares the number of ranks with the largest number of peers that can send to one rank.
pub(super) fn peers(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(ranks) =
        launcher::ranks(hosts::of_launcher(subject.command)).filter(|ranks| *ranks > PEERS)
    else {
        return;
    };
    let (ranks, peers) = (count(ranks as u64, "rank"), whole(PEERS as u64));
    findings.note(
        format!("{ranks}: at most {peers} can send to one of them"),
        "a host has no more ports; `tcam workload` makes traces of larger machines",
    );
}

/// Compares the ranks on a host with its cores.
pub(super) fn cores(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(ranks) = hosts::ranks_here(subject) else { return };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let each = if subject.hosts > 1 { " of each host" } else { "" };
    let (ranks_text, cores_text) = (count(ranks as u64, "rank"), count(cores as u64, "core"));
    let what = format!("{ranks_text}{each} on {cores_text}");
    if ranks <= cores {
        return findings.good(what);
    }
    findings.note(
        format!("{what}: ranks take turns"),
        "counts are exact for the run, but the length of the UMQ depends on scheduling, and times are not \
         those of a NIC; `tcam sweep --repeat 3` shows the spread, not the length with a processor for each",
    );
}

#[cfg(test)]
mod tests {
    use super::super::findings::Verdict;
    use super::super::findings::tests::{found, subject, verdict};
    use super::*;

    #[test]
    fn shared_memory_is_judged_by_its_free_space() {
        for (size, free, ranks, expected) in [
            (8 << 30, 4 << 30, None, Verdict::Good),
            (64 << 20, 60 << 20, None, Verdict::Note),
            (64 << 20, 1 << 20, None, Verdict::Bad),
            (8 << 30, 4 << 30, Some(3000), Verdict::Good),
            (8 << 30, 4 << 30, Some(3300), Verdict::Bad),
            (64 << 20, 60 << 20, Some(40), Verdict::Note),
            (64 << 20, 60 << 20, Some(usize::MAX), Verdict::Bad),
        ] {
            let judged = |findings: &mut Findings| judge_shared_memory(size, free, ranks, findings);
            assert_eq!(verdict(judged), Some(expected), "{size} {free} {ranks:?}");
        }
    }

    #[test]
    fn more_ranks_than_can_send_to_one_are_noted() {
        let of = |ranks: &str| {
            let command = ["mpiexec", "-n", ranks, "app"].map(std::ffi::OsString::from);
            found(|findings| peers(&subject(&command, 1), findings))
        };
        assert!(of("65536").is_empty());
        let finding = &of("100000")[0];
        assert_eq!(finding.verdict, Verdict::Note);
        assert_eq!(finding.what, "100,000 ranks: at most 65,536 can send to one of them");
    }

    #[test]
    fn places_are_tried_and_nothing_is_left_there() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(at("file"), "").unwrap();
        let report = |pattern: &str| verdict(|findings| report_place(pattern, findings));
        let trace = |directory: &str| verdict(|findings| trace_place(directory, findings));
        for good in ["", "%r", "new/deep", "new/%h/%r"] {
            assert_eq!(report(&at(good)), None, "{good}");
        }
        for bad in ["file/%r", "file/%h/%r"] {
            assert_eq!(report(&at(bad)), Some(Verdict::Note), "{bad}");
        }
        assert_eq!([report(""), report("%r")], [None; 2]);
        assert_eq!([trace(""), trace(&at("new/deep"))], [None; 2]);
        assert_eq!([trace(&at("file")), trace("/proc/none")], [Some(Verdict::Bad); 2]);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_ptrace_scope_slows_but_does_not_block() {
        for (scope, expected) in
            [(None, Verdict::Good), (Some("0"), Verdict::Good), (Some("1"), Verdict::Note)]
        {
            assert_eq!(verdict(|findings| judge_ptrace(scope, findings)), Some(expected));
        }
    }
}
