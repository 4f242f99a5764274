// SPDX-License-Identifier: BSD-2-Clause
//! Checks of the library, the environment and the machine.

use std::ffi::OsString;
use std::process::Command;

use rustix::fs::FlockOperation;

use super::Finding;
use crate::environment::Settings;
use crate::launcher;
use crate::library::Library;
use crate::numbers::{bytes, count};

/// Below this much free shared memory a few ranks may not start.
const LITTLE: u64 = 256 << 20;
/// Below this much not even two will.
const NOTHING: u64 = 16 << 20;

/// Whether the library is one libfabric can open: it has the entry point and
/// the loader finds all it needs.
pub(super) fn loadable(library: &Library) -> Finding {
    let file = library.file.display();
    let content = match std::fs::read(&library.file) {
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
            "build it again: cargo build --release -p provider",
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

/// FI_PROVIDER_PATH, for those who run without `tcam run`.
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

/// FI_PROVIDER may exclude us.
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

/// FI_TCAM_* variables: names and values.
pub(super) fn parameters() -> Vec<Finding> {
    let set: Vec<_> = std::env::vars()
        .filter(|(name, _)| name.starts_with(nic::params::PREFIX))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    match Settings::default().check() {
        Err(error) => vec![Finding::bad(
            error.to_string(),
            "correct it or unset it; fi_tcam(7) explains every parameter",
        )],
        Ok(_) if set.is_empty() => Vec::new(),
        Ok(_) => vec![Finding::note(
            format!("set in the environment: {}", set.join(" ")),
            "options of `tcam run` and `tcam sweep` come before these",
        )],
    }
}

/// Size of /dev/shm, where every endpoint has its segment.
pub(super) fn shared_memory() -> Finding {
    match rustix::fs::statvfs("/dev/shm") {
        Err(error) => Finding::bad(
            format!("/dev/shm: {error}"),
            "endpoints share memory there: mount a tmpfs on /dev/shm",
        ),
        Ok(stat) => judge_shared_memory(
            stat.f_blocks.saturating_mul(stat.f_frsize),
            stat.f_bavail.saturating_mul(stat.f_frsize),
        ),
    }
}

fn judge_shared_memory(size: u64, free: u64) -> Finding {
    let what = format!("/dev/shm has {} free of {}", bytes(free), bytes(size));
    let advice = "make it larger: mount -o remount,size=4G /dev/shm, or docker run --shm-size=4g";
    match free {
        ..NOTHING => Finding::bad(what, advice),
        NOTHING..LITTLE => Finding::note(format!("{what}: enough for a few ranks only"), advice),
        _ => Finding::good(what),
    }
}

/// Segments in /dev/shm: an owner that lives holds a lock on its own.
pub(super) fn leftovers() -> Vec<Finding> {
    let Ok(entries) = std::fs::read_dir("/dev/shm") else { return Vec::new() };
    let (mut living, mut dead) = (0, 0);
    for entry in entries.filter_map(Result::ok) {
        if !entry.file_name().to_string_lossy().starts_with("tcam.") {
            continue;
        }
        let Ok(file) = std::fs::File::open(entry.path()) else { continue };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => dead += 1,
            Err(_) => living += 1,
        }
    }
    let mut findings = Vec::new();
    if living > 0 {
        findings.push(Finding::note(
            format!("{} of tcam open on this host now", count(living, "endpoint")),
            "if you started none, a program still runs or hangs: fuser -v /dev/shm/tcam.*",
        ));
    }
    if dead > 0 {
        findings.push(Finding::note(
            format!("/dev/shm holds {} of tcam whose owner died", count(dead, "segment")),
            "the next start removes them",
        ));
    }
    findings
}

/// Whether the kernel lets processes of a user copy from one another.
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

/// The compare kernel this processor gets.
pub(super) fn processor() -> Finding {
    let kernel = matching::Kernel::best();
    Finding::good(format!("tables are searched with the {kernel} kernel here"))
}

/// Ranks against cores.
pub(super) fn cores(command: &[OsString]) -> Option<Finding> {
    let ranks = launcher::ranks(command)?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let what = format!("{ranks} ranks on {}", count(cores as u64, "core"));
    Some(if ranks <= cores {
        Finding::good(what)
    } else {
        Finding::note(
            format!("{what}: ranks take turns"),
            "counts stay exact, times do not tell what a NIC would do",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
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
    fn shared_memory_is_judged_by_what_is_free() {
        assert_eq!(judge_shared_memory(8 << 30, 4 << 30).verdict, Verdict::Good);
        assert_eq!(judge_shared_memory(64 << 20, 60 << 20).verdict, Verdict::Note);
        assert_eq!(judge_shared_memory(64 << 20, 1 << 20).verdict, Verdict::Bad);
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
