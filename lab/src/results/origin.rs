// SPDX-License-Identifier: BSD-2-Clause
//! Keeps the origin of numbers: the facts that a reader needs to repeat the run, and the head of
//! each report, which is the report without its counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use nic::origin::Origin;
use nic::report::Report;

use crate::text::whole;

/// A report without its counts. Values that several reports of a job have in common are kept once.
#[derive(Clone, Debug)]
pub(crate) struct ReportHead {
    pub(crate) libfabric: Arc<str>,
    pub(crate) tcam: Arc<str>,
    pub(crate) host: Arc<str>,
    pub(crate) pid: u32,
    pub(crate) rank: Option<u32>,
    /// See [`Report::start_ns`].
    pub(crate) start_ns: u64,
    pub(crate) address: Box<str>,
    pub(crate) program: Arc<str>,
    pub(crate) origin: Arc<Origin>,
    /// Number of processes whose addresses the MPI gave.
    pub(crate) processes: u32,
    pub(crate) config: Arc<BTreeMap<String, String>>,
    /// True if the report has operations on tagged messages.
    pub(crate) has_tagged: bool,
}

/// Values that several reports have in common, each kept once.
#[derive(Debug, Default)]
pub(super) struct Interned {
    texts: BTreeSet<Arc<str>>,
    origins: BTreeSet<Arc<Origin>>,
    configs: BTreeSet<Arc<BTreeMap<String, String>>>,
}

impl Interned {
    /// Returns the head of a report. Its values share memory with equal values of earlier reports.
    pub(super) fn head(&mut self, report: &Report) -> ReportHead {
        let mut text = |of: &str| share(&mut self.texts, of, |of| of.into());
        ReportHead {
            libfabric: text(&report.libfabric),
            tcam: text(&report.tcam),
            host: text(&report.host),
            pid: report.pid,
            rank: report.rank,
            start_ns: report.start_ns,
            address: report.address.as_str().into(),
            program: text(&report.program),
            origin: share(&mut self.origins, &report.origin, |of| Arc::new(of.clone())),
            processes: report.processes,
            config: share(&mut self.configs, &report.config, |of| Arc::new(of.clone())),
            has_tagged: report.tagged.has_operations(),
        }
    }
}

fn share<T: ?Sized + Ord>(all: &mut BTreeSet<Arc<T>>, of: &T, to: impl Fn(&T) -> Arc<T>) -> Arc<T> {
    if let Some(there) = all.get(of) {
        return Arc::clone(there);
    }
    let new = to(of);
    all.insert(Arc::clone(&new));
    new
}

/// Largest number of hosts that are named.
const HOSTS: usize = 8;

/// A fact about a run: its name and value.
pub(crate) type Line = (&'static str, String);

/// Returns the facts about a run from its reports. Facts that no report contains are left out.
pub(super) fn lines(heads: &[ReportHead]) -> Vec<Line> {
    let each = |of: &dyn Fn(&ReportHead) -> String| {
        let values: BTreeSet<_> = heads.iter().map(of).filter(|value| !value.is_empty()).collect();
        let values: Vec<_> = values.into_iter().collect();
        match values.len() {
            0..=HOSTS => values.join(", "),
            many => format!("{}, ... ({})", values[..HOSTS].join(", "), whole(many as u64)),
        }
    };
    let number = |of: Option<u32>| of.map_or_else(String::new, |number| number.to_string());
    let started = heads.iter().map(|head| head.origin.started_s).filter(|at| *at > 0).min();
    let processors = processors(heads);
    let mut lines = vec![
        ("program", each(&|head| head.program.to_string())),
        ("command", each(&|head| head.origin.command.to_string())),
        ("started", started.map_or_else(String::new, date)),
        ("ranks", each(&|head| number(head.origin.ranks))),
        ("hosts", each(&|head| head.host.to_string())),
        ("processors", each(&|head| number(processors.get(&*head.host).copied()))),
        ("MPI", each(&|head| head.origin.mpi.to_string())),
        ("libfabric", each(&|head| head.libfabric.to_string())),
        ("tcam", each(&|head| head.tcam.to_string())),
    ];
    lines.retain(|(_, value)| !value.is_empty());
    lines
}

/// Returns the number of processors on each host that its ranks could use together. If
/// that is unknown, returns the number of online processors.
pub(super) fn processors(heads: &[ReportHead]) -> BTreeMap<&str, u32> {
    let (mut usable, mut online) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
    for head in heads {
        online.extend(head.origin.cores.map(|cores| (&*head.host, cores)));
        usable.entry(&*head.host).or_default().extend(ranges(&head.origin.processors));
    }
    let usable = usable.into_iter().map(|(host, ranges)| (host, union(ranges)));
    online.extend(usable.filter(|(_, number)| *number > 0));
    online
}

/// Returns the first and the last number of each range of a list such as `0-3,8`. Invalid ranges
/// are left out.
fn ranges(list: &str) -> impl Iterator<Item = [u32; 2]> {
    list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let range = [first.parse().ok()?, last.parse().ok()?];
        (range[0] <= range[1]).then_some(range)
    })
}

/// Returns how many numbers are in at least one of these ranges.
fn union(mut ranges: Vec<[u32; 2]>) -> u32 {
    ranges.sort_unstable();
    ranges.dedup();
    let (mut all, mut next) = (0_u32, 0_u64);
    for [first, last] in ranges {
        let first = u64::from(first).max(next);
        next = next.max(u64::from(last) + 1);
        all = all.saturating_add(u32::try_from(next.saturating_sub(first)).unwrap_or(u32::MAX));
    }
    all
}

/// Interpreters, whose names do not identify the program that they run. A version may follow.
const INTERPRETERS: [&str; 8] =
    ["python", "pypy", "perl", "ruby", "julia", "Rscript", "R", "octave"];

/// Returns the name of a program for titles. For an interpreter, returns the name of the script or
/// module, if the command line has one.
pub(crate) fn name_of<'a>(program: &'a str, command: &'a str) -> &'a str {
    let last = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
    let name = last(program);
    let bare = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let script = || {
        let mut words = command.split_whitespace().skip(1);
        loop {
            match words.next()? {
                "-m" => return words.next(),
                "-c" | "-e" => return None,
                "-W" | "-X" => _ = words.next(),
                word if word.starts_with('-') => {}
                word => return Some(last(word)),
            }
        }
    };
    INTERPRETERS.contains(&bare).then(script).flatten().unwrap_or(name)
}

/// Returns date and time in UTC of a number of seconds since 1970; empty for a number that is too
/// large.
fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|at| Timestamp::from_second(at).ok());
    time.map_or_else(String::new, |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::reports::tests::sample;

    #[test]
    fn dates_are_written_as_iso_8601() {
        assert_eq!(date(1_795_417_329), "2026-11-23T07:02:09Z");
        assert_eq!(date(u64::MAX), "");
    }

    #[test]
    fn processors_are_those_that_the_ranks_of_a_host_could_use() {
        let of = |bound: &[(&str, &str)]| {
            let mut shared = Interned::default();
            let heads: Vec<_> = (bound.iter().zip(0..))
                .map(|((host, list), rank)| {
                    let mut report = sample(rank, 1, 1);
                    report.host = (*host).to_owned();
                    (report.origin.cores, report.origin.processors) = (Some(8), (*list).to_owned());
                    shared.head(&report)
                })
                .collect();
            processors(&heads).into_values().collect::<Vec<_>>()
        };
        assert_eq!(of(&[("a", "0"), ("a", "0")]), [1], "taskset -c 0");
        assert_eq!(of(&[("a", "0-1"), ("a", "2-3,5"), ("a", "3")]), [5], "each rank is bound");
        assert_eq!(
            of(&[("a", ""), ("b", "7"), ("b", "3-1,x,")]),
            [8, 1],
            "the number of online processors if the list is unknown"
        );
        assert_eq!(of(&[("a", "0-4294967295")]), [u32::MAX], "a report may contain anything");
    }

    #[test]
    fn a_script_is_named_and_not_its_interpreter() {
        for (program, command, name) in [
            ("/usr/bin/python3.11", "python3.11 -u -W ignore apps/farm.py --n 8", "farm.py"),
            ("python3", "python3 -m mpi4py.bench x", "mpi4py.bench"),
            ("/usr/bin/python3.11", "python3.11 -c pass", "python3.11"),
            ("/usr/bin/python3.11", "python3.11", "python3.11"),
            ("/usr/lib/R/bin/exec/R", "R --no-echo mean.R", "mean.R"),
            ("/opt/lulesh2.0", "lulesh2.0 -s 8", "lulesh2.0"),
            ("/opt/pythonic", "pythonic x.py", "pythonic"),
        ] {
            assert_eq!(name_of(program, command), name, "{command}");
        }
    }

    #[test]
    fn facts_of_several_ranks_occur_once() {
        let mut reports: Vec<_> = (0..20).map(|rank| sample(rank, 1, 1)).collect();
        for (at, report) in reports.iter_mut().enumerate() {
            report.host = format!("node{at:02}");
            report.origin.command = "app -x".to_owned();
        }
        let mut shared = Interned::default();
        let heads: Vec<_> = reports.iter().map(|report| shared.head(report)).collect();
        let lines = lines(&heads);
        let value = |name| lines.iter().find(|line| line.0 == name).map(|line| line.1.as_str());
        assert_eq!(value("command"), Some("app -x"));
        assert!(value("hosts").unwrap().ends_with("node07, ... (20)"));
        assert_eq!(value("MPI"), None);
    }
}
