// SPDX-License-Identifier: BSD-2-Clause
//! Checks of the library, the environment and the machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use host::directory;
use host::live::{PEERS, SEGMENT};
use host::names::{LEFT, SEGMENT_NAME};
use nic::params::{PREFIX, config};
use rustix::fs::FlockOperation;

use super::finding::Finding;
use crate::file;
use crate::launch::library::Library;
use crate::launch::{endpoints, launcher};
use crate::settings::{self, Settings};
use crate::text::numbers::{bytes, count, whole};

/// With less free shared memory than this, only a few ranks may start.
const LITTLE: u64 = 256 << 20;
/// With less than this, not even two ranks start.
const NOTHING: u64 = 16 << 20;

/// Checks that libfabric can load the library: it has the entry point, and the loader finds its
/// dependencies.
pub(super) fn loadable(library: &Library) -> Finding {
    let file = library.file.display();
    let content = match host::regular::read(&library.file, file::LONGEST) {
        Ok(content) => content,
        Err(error) => {
            return Finding::bad(
                format!("provider: {file}: {error}"),
                "the user who runs the program must be able to read it",
            );
        }
    };
    let entry = b"fi_prov_ini";
    if !content.windows(entry.len()).any(|window| window == entry) {
        return Finding::bad(
            format!("provider: {file} has no fi_prov_ini: it is no libfabric provider"),
            "build it again: cargo build --release -p tcam-provider",
        );
    }
    if let Ok(output) = Command::new("ldd").arg(&library.file).output() {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Some(line) = text.lines().find(|line| line.contains("not found")) {
            return Finding::bad(
                format!("provider: {file} cannot be loaded: {}", line.trim()),
                "install what is missing, or build the provider on this machine",
            );
        }
    }
    Finding::good(format!("provider: {file} can be loaded"))
}

/// Checks FI_PROVIDER_PATH, which matters for programs that are started without `tcam run`.
pub(super) fn provider_path(library: &Library) -> Finding {
    let wanted = library.directory.display();
    match std::env::var_os("FI_PROVIDER_PATH") {
        None => Finding::good(format!(
            "FI_PROVIDER_PATH is not set; `tcam run` sets it (by hand: FI_PROVIDER_PATH={wanted})"
        )),
        Some(list) => {
            let holds = std::env::split_paths(&list)
                .any(|place| place.canonicalize().is_ok_and(|place| place == library.directory));
            let shown = list.to_string_lossy();
            if holds {
                Finding::good(format!("FI_PROVIDER_PATH={shown} holds the provider"))
            } else {
                Finding::note(
                    format!("FI_PROVIDER_PATH={shown} does not hold this provider"),
                    format!("`tcam run` sets it; by hand: FI_PROVIDER_PATH={wanted}"),
                )
            }
        }
    }
}

/// Checks that FI_PROVIDER does not exclude tcam.
pub(super) fn filter() -> Finding {
    let value = std::env::var("FI_PROVIDER").ok();
    judge_filter(value.as_deref())
}

fn judge_filter(value: Option<&str>) -> Finding {
    let Some(value) = value else {
        return Finding::good("FI_PROVIDER is not set; `tcam run` sets it to tcam");
    };
    let (excludes, list) = match value.strip_prefix('^') {
        Some(list) => (true, list),
        None => (false, value),
    };
    let named = list.split([',', ';']).any(|name| name.trim() == "tcam");
    if named == excludes {
        Finding::note(
            format!("FI_PROVIDER={value} keeps libfabric from offering tcam"),
            "`tcam run` replaces it; without it: unset FI_PROVIDER, or FI_PROVIDER=tcam",
        )
    } else {
        Finding::good(format!("FI_PROVIDER={value} admits tcam"))
    }
}

/// Checks the names and values of FI_TCAM_* variables.
pub(super) fn parameters() -> Vec<Finding> {
    // Names and values in the environment need not be UTF-8.
    let set: Vec<_> = std::env::vars_os()
        .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
        .filter(|set| set.starts_with(PREFIX))
        .collect();
    match Settings::default().check() {
        Err(error) => vec![Finding::bad(
            error.to_string(),
            "tcam is not offered until it is corrected or unset; fi_tcam(7) explains every \
             parameter",
        )],
        Ok(_) if set.is_empty() => Vec::new(),
        Ok(params) => {
            let mut findings = vec![Finding::note(
                format!("set in the environment: {}", set.join(" ")),
                "options of `tcam run` and `tcam sweep` come before these",
            )];
            findings.extend(config(params.text(config::NAME)));
            findings.extend(report_place(params.text("report")));
            findings.extend(trace_place(params.text("trace")));
            findings
        }
    }
}

/// Reports the settings of the file of FI_TCAM_CONFIG, and those that the environment overrides.
fn config(file: &str) -> Option<Finding> {
    let config = settings::config(Path::new(file)).ok().filter(|_| !file.is_empty())?;
    let is_set =
        |name: &str| std::env::var_os(format!("{PREFIX}{}", name.to_uppercase())).is_some();
    let (over, ours): (Vec<_>, Vec<_>) = config.all().partition(|(name, _)| is_set(name));
    let told = |of: &[(&str, &str)]| {
        let words: Vec<_> = of.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(" ") }
    };
    let what = format!("FI_TCAM_CONFIG={file} sets {}", told(&ours));
    Some(match over.is_empty() {
        true => Finding::good(what),
        false => Finding::note(
            what,
            format!("the environment comes before what else it sets: {}", told(&over)),
        ),
    })
}

/// Checks that reports can be written to FI_TCAM_REPORT.
fn report_place(pattern: &str) -> Option<Finding> {
    let directory = Path::new(pattern).parent()?;
    let error = unwritable(directory)?;
    Some(Finding::note(
        format!("FI_TCAM_REPORT={pattern}: no report can be written there: {error}"),
        "`tcam run` replaces it; without it: give a place that the ranks may write to",
    ))
}

/// Checks that traces can be written to FI_TCAM_TRACE.
fn trace_place(directory: &str) -> Option<Finding> {
    let error = unwritable(Path::new(directory)).filter(|_| !directory.is_empty())?;
    Some(Finding::bad(
        format!("FI_TCAM_TRACE={directory}: nothing can be recorded there: {error}"),
        "give a directory that the ranks may write to, or unset it: `tcam record` has its own",
    ))
}

/// Returns the error of making a file in a directory, which may not exist yet. In a pattern, only
/// the part before the first `%` is checked, which all ranks share.
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
pub(super) fn shared_memory(command: &[OsString], hosts: usize) -> Finding {
    if let Some(error) = unwritable(Path::new("/dev/shm")) {
        return Finding::bad(
            format!("/dev/shm: {error}"),
            "endpoints share memory there: mount a tmpfs on /dev/shm that users may write to",
        );
    }
    match rustix::fs::statvfs("/dev/shm") {
        Err(error) => Finding::bad(
            format!("/dev/shm: {error}"),
            "endpoints share memory there: mount a tmpfs on /dev/shm",
        ),
        Ok(stat) => judge_shared_memory(
            stat.f_blocks.saturating_mul(stat.f_frsize),
            stat.f_bavail.saturating_mul(stat.f_frsize),
            here(command, hosts),
        ),
    }
}

fn judge_shared_memory(size: u64, free: u64, ranks: Option<usize>) -> Finding {
    let what = format!("/dev/shm has {} free of {}", bytes(free), bytes(size));
    let advice = "make it larger: mount -o remount,size=4G /dev/shm, or docker run --shm-size=4g";
    if let Some(ranks) = ranks.map(|ranks| ranks as u64) {
        let need = ranks.saturating_mul(SEGMENT as u64);
        if need > free {
            let ranks = count(ranks, "rank");
            let size = need.saturating_add(size.saturating_sub(free)).div_ceil(1 << 30);
            return Finding::bad(
                format!("{what}: {ranks} need {}", bytes(need)),
                format!("start fewer, or make it larger: mount -o remount,size={size}G /dev/shm"),
            );
        }
    }
    match free {
        ..NOTHING => Finding::bad(what, advice),
        NOTHING..LITTLE => Finding::note(format!("{what}: enough for a few ranks only"), advice),
        _ => Finding::good(what),
    }
}

/// Checks the directory of the segments of endpoints: another user may have taken its name.
pub(super) fn directory() -> Vec<Finding> {
    let shown = directory::path().display().to_string();
    match directory::obstacle() {
        Some(obstacle) => vec![Finding::bad(
            obstacle,
            format!("no endpoint can be opened before: ls -ld {shown}"),
        )],
        None => leftovers(),
    }
}

/// Counts segments. A living owner holds a lock on its segment; other segments are left over.
fn leftovers() -> Vec<Finding> {
    let Ok(Some(directory)) = endpoints::open() else { return Vec::new() };
    let (mut living, mut dead) = (0, 0);
    let segments = directory.names(SEGMENT_NAME).into_iter().flatten();
    for name in segments.chain(directory.names(LEFT).into_iter().flatten()) {
        let Ok(file) = directory.file(&name) else { continue };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => dead += 1,
            Err(_) => living += 1,
        }
    }
    let shown = directory::path().display().to_string();
    let mut findings = Vec::new();
    if living > 0 {
        findings.push(Finding::note(
            format!("{} of tcam open on this host now", count(living, "endpoint")),
            format!("if you started none, a program still runs or hangs: fuser -v {shown}/*"),
        ));
    }
    if dead > 0 {
        findings.push(Finding::note(
            format!("{shown} holds {} whose owner died", count(dead, "segment")),
            "the next start removes them",
        ));
    }
    findings
}

/// Checks that the kernel lets processes of a user copy from each other.
pub(super) fn kernel_copy() -> Finding {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    judge_ptrace(scope.ok().as_deref().map(str::trim))
}

fn judge_ptrace(scope: Option<&str>) -> Finding {
    match scope {
        None => Finding::good("copies between processes are not restricted (no ptrace scope)"),
        Some("0") => Finding::good("copies between processes are not restricted (ptrace scope 0)"),
        Some(scope) => Finding::note(
            format!("ptrace scope {scope}: the kernel may refuse copies between processes"),
            "long messages then go through shared buffers, more slowly; to allow the copies: \
             sysctl kernel.yama.ptrace_scope=0",
        ),
    }
}

/// Reports the compare kernel for this processor.
pub(super) fn processor() -> Finding {
    let kernel = matching::Kernel::best();
    Finding::good(format!("tables are searched with the {kernel} kernel here"))
}

/// Compares the number of ranks with the largest number of peers that can send to one rank.
pub(super) fn peers(command: &[OsString]) -> Option<Finding> {
    let ranks = launcher::ranks(command).filter(|ranks| *ranks > PEERS)?;
    Some(Finding::note(
        format!(
            "{}: at most {} can send to one of them",
            count(ranks as u64, "rank"),
            whole(PEERS as u64)
        ),
        "a host has no more ports; `tcam workload` makes traces of larger machines",
    ))
}

/// Returns the number of ranks on this host, if a command spreads them evenly over its hosts.
fn here(command: &[OsString], hosts: usize) -> Option<usize> {
    launcher::ranks(command).map(|ranks| ranks.div_ceil(hosts.max(1)))
}

/// Compares the ranks on a host with its cores.
pub(super) fn cores(command: &[OsString], hosts: usize) -> Option<Finding> {
    let ranks = here(command, hosts)?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let each = if hosts > 1 { " of each host" } else { "" };
    let (ranks_text, cores_text) = (count(ranks as u64, "rank"), count(cores as u64, "core"));
    let what = format!("{ranks_text}{each} on {cores_text}");
    Some(if ranks <= cores {
        Finding::good(what)
    } else {
        Finding::note(
            format!("{what}: ranks take turns"),
            "counts are exact for the run, but the length of the UMQ depends on scheduling, and times are not \
             those of a NIC; `tcam sweep --repeat 3` shows the spread, not the length with a processor for each",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn filters_are_read_as_libfabric_reads_them() {
        for (value, verdict) in [
            (None, Verdict::Good),
            (Some("tcam"), Verdict::Good),
            (Some("tcp,tcam"), Verdict::Good),
            (Some("tcp"), Verdict::Note),
            (Some("^tcp"), Verdict::Good),
            (Some("^tcam"), Verdict::Note),
            (Some("^shm,tcam"), Verdict::Note),
        ] {
            assert_eq!(judge_filter(value).verdict, verdict, "{value:?}");
        }
    }

    #[test]
    fn shared_memory_is_judged_by_its_free_space() {
        for (size, free, ranks, verdict) in [
            (8 << 30, 4 << 30, None, Verdict::Good),
            (64 << 20, 60 << 20, None, Verdict::Note),
            (64 << 20, 1 << 20, None, Verdict::Bad),
            (8 << 30, 4 << 30, Some(3000), Verdict::Good),
            (8 << 30, 4 << 30, Some(3300), Verdict::Bad),
            (64 << 20, 60 << 20, Some(40), Verdict::Note),
            (64 << 20, 60 << 20, Some(usize::MAX), Verdict::Bad),
        ] {
            let finding = judge_shared_memory(size, free, ranks);
            assert_eq!(finding.verdict, verdict, "{}", finding.what);
        }
    }

    #[test]
    fn more_ranks_than_can_send_to_one_are_noted() {
        let of = |ranks: &str| peers(&["mpiexec", "-n", ranks, "app"].map(OsString::from));
        assert!(of("65536").is_none());
        let finding = of("100000").unwrap();
        assert_eq!(finding.verdict, Verdict::Note);
        assert_eq!(finding.what, "100,000 ranks: at most 65,536 can send to one of them");
    }

    #[test]
    fn places_are_tried_and_nothing_is_left_there() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(at("file"), "").unwrap();
        for good in ["", "%r", "new/deep", "new/%h/%r"] {
            assert!(report_place(&at(good)).is_none(), "{good}");
        }
        for bad in ["file/%r", "file/%h/%r"] {
            assert_eq!(report_place(&at(bad)).unwrap().verdict, Verdict::Note, "{bad}");
        }
        assert!(report_place("").is_none() && report_place("%r").is_none());
        assert!(trace_place("").is_none() && trace_place(&at("new/deep")).is_none());
        assert_eq!(trace_place(&at("file")).unwrap().verdict, Verdict::Bad);
        assert_eq!(trace_place("/proc/none").unwrap().verdict, Verdict::Bad);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_ptrace_scope_slows_but_does_not_block() {
        assert_eq!(judge_ptrace(None).verdict, Verdict::Good);
        assert_eq!(judge_ptrace(Some("0")).verdict, Verdict::Good);
        assert_eq!(judge_ptrace(Some("1")).verdict, Verdict::Note);
    }

    #[test]
    fn a_file_without_the_entry_point_is_no_provider() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("libtcam-fi.so"), "not a library").unwrap();
        let library = Library::find(Some(directory.path())).unwrap();
        assert_eq!(loadable(&library).verdict, Verdict::Bad);
    }
}
