// SPDX-License-Identifier: BSD-2-Clause
//! Properties of this process and its job, for reports, traces and the names of their files.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use host::cores::Cores;
use nic::{
    origin::Origin,
    params::{ParamError, Params},
    report::Report,
};

/// Environment variables with the rank of this process. That of Open MPI comes first, because Open
/// MPI passes on the variables of other launchers. For example, those of Slurm exist if the shell
/// that calls `mpiexec` is itself a task of a job.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

/// Environment variables with the number of ranks.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// Files with a list of processors. The first that exists is read: that of the container, or else
/// that of the host.
const CORES: [&str; 2] = ["/sys/fs/cgroup/cpuset.cpus.effective", "/sys/devices/system/cpu/online"];

/// Environment variables with the number of ranks of the job on this host.
const LOCAL_SIZES: [&str; 2] = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];

/// Environment variable of Slurm with the number of hosts of the ranks that Slurm itself started.
const HOSTS: &str = "SLURM_STEP_NUM_NODES";

/// Returns the name of this host.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the rank of this process; `None` if no launcher sets it.
pub(crate) fn rank() -> Option<u32> {
    first_number(RANKS)
}

/// Returns the number of ranks of the job; `None` if no launcher sets it.
pub(crate) fn ranks() -> Option<u32> {
    first_number(SIZES)
}

/// Returns whether, according to the launcher, the job has ranks on other hosts.
pub(crate) fn has_several_hosts() -> bool {
    match (first_number(LOCAL_SIZES), ranks()) {
        (Some(here), Some(all)) => here < all,
        _ => first_number([HOSTS]).is_some_and(|hosts| hosts > 1),
    }
}

/// Returns the number for [`Origin::job`]; `None` if the process writes neither reports nor traces.
fn job() -> Option<u64> {
    let places = ["FI_TCAM_REPORT", "FI_TCAM_TRACE"].map(|name| std::env::var(name).ok());
    let mut paths = places.into_iter().flatten().filter(|place| !place.is_empty()).peekable();
    paths.peek()?;
    Some(paths.fold(0, |job, path| job ^ host::names::job_of(&path)))
}

/// Returns the number in the first of these environment variables that contains one.
fn first_number<const N: usize>(names: [&str; N]) -> Option<u32> {
    names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Returns the origin of an object that was opened at `opened`.
pub(crate) fn origin(opened: Instant) -> Origin {
    // The origin is read once, because the MPI library may be unloaded at exit.
    static ORIGIN: OnceLock<Origin> = OnceLock::new();
    let origin = ORIGIN.get_or_init(|| {
        let mut origin = Origin {
            command: String::new(),
            mpi: ffi::mpi::library_version().map(|text| short(&text)).unwrap_or_default(),
            ranks: ranks(),
            job: job(),
            cores: CORES.iter().find_map(|path| count(&std::fs::read_to_string(path).ok()?)),
            processors: list(Cores::of_thread().numbers()),
            started_s: 0,
        };
        origin.set_command(&command());
        origin
    });
    Origin { started_s: since_1970(opened).as_secs(), ..origin.clone() }
}

/// Returns the time from the beginning of 1970 until `opened`.
pub(crate) fn since_1970(opened: Instant) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(opened.elapsed())
}

/// Returns the command line, without the directories of the program.
fn command() -> String {
    let mut words = std::env::args_os();
    let first = words.next().unwrap_or_default();
    let first = Path::new(&first).file_name().map(ToOwned::to_owned).unwrap_or_default();
    let words = std::iter::once(first).chain(words);
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Returns the short name of an MPI: the first line of its version, without the build.
fn short(version: &str) -> String {
    let line = version.lines().next().unwrap_or_default();
    let line = line.split(", ").next().unwrap_or_default();
    line.replace("Version:", "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the number of processors in a list such as `0-3,8`; `None` if the list is invalid.
fn count(list: &str) -> Option<u32> {
    let mut all = 0;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        all += last.checked_sub(first)?.checked_add(1)?;
    }
    Some(all)
}

/// Formats ascending numbers as a list such as `0-3,8`.
fn list(numbers: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<[usize; 2]> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == number => *last = number,
            _ => ranges.push([number, number]),
        }
    }
    let text = |[first, last]: &[usize; 2]| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Returns the parameters, or an error if all ranks would write their reports to the same file.
pub(crate) fn check_report_pattern(params: Params) -> Result<Params, ParamError> {
    let pattern = &params.report;
    let of = |pid| expand(pattern, &Report { pid, rank: Some(pid), ..Report::default() });
    let are_several = ranks().is_some_and(|ranks| ranks > 1);
    if are_several && !pattern.is_empty() && of(1) == of(2) {
        return Err(ParamError::Value {
            name: "REPORT".to_owned(),
            value: pattern.clone(),
            allowed: "a pattern with %r or %p, since there are several ranks".to_owned(),
        });
    }
    Ok(params)
}

/// Returns the path for a pattern: replaces `%r` by the rank (or by the process id if there is no
/// rank), `%p` by the process id, `%h` by the host and `%%` by `%`.
pub(crate) fn expand(pattern: &str, report: &Report) -> PathBuf {
    let mut path = String::new();
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match (char, if char == '%' { chars.clone().next() } else { None }) {
            ('%', Some('r')) => path += &report.rank.unwrap_or(report.pid).to_string(),
            ('%', Some('p')) => path += &report.pid.to_string(),
            ('%', Some('h')) => path += &report.host,
            ('%', Some('%')) => path.push('%'),
            (char, _) => {
                path.push(char);
                continue;
            }
        }
        chars.next();
    }
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_filled_in() {
        let report =
            Report { pid: 42, rank: Some(3), host: "node".to_owned(), ..Default::default() };
        let expand = |pattern| expand(pattern, &report).display().to_string();
        assert_eq!(expand("dir/%h-%r"), "dir/node-3");
        assert_eq!(expand("%p%%"), "42%");
        assert_eq!(expand("%%r"), "%r");
        let without = Report { rank: None, ..report.clone() };
        assert_eq!(super::expand("%r", &without), Path::new("42"));
    }

    #[test]
    fn processors_are_counted() {
        for (list, all) in [("0-1\n", Some(2)), ("0", Some(1)), ("0-3,8,10-11", Some(7))] {
            assert_eq!(count(list), all, "{list}");
        }
        for (numbers, text) in [(&[0, 1, 2, 3, 8][..], "0-3,8"), (&[5], "5"), (&[], "")] {
            assert_eq!(list(numbers.iter().copied()), text);
        }
        for odd in ["", "3-1", "a", "1-"] {
            assert_eq!(count(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_name_of_an_mpi_is_short() {
        for (version, name) in [
            ("MPICH Version:      5.0.2\nMPICH Release date: x", "MPICH 5.0.2"),
            ("Open MPI v5.0.11, package: Open MPI x Distribution, ident: 5", "Open MPI v5.0.11"),
            (
                "Intel(R) MPI Library 2021.17 for Linux* OS\n",
                "Intel(R) MPI Library 2021.17 for Linux* OS",
            ),
            ("", ""),
        ] {
            assert_eq!(short(version), name);
        }
    }
}
