// SPDX-License-Identifier: BSD-2-Clause
//! Finds the traces in given files and directories, and the ranks whose traces are missing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nic::origin::Origin;
use nic::params::Params;
use nic::report::Report;
use nic::trace::{Address, Header, TraceError};

use super::node::Nodes;
use super::trace::reader;
use super::{Placed, Take, Trace};
use crate::error::Error;
use crate::results::summary::NO_LIBFABRIC;
use crate::results::{Endpoint, ProcessOrigin, Ranks, RunRecord, reports, summary};
use crate::settings::Settings;
use crate::text::total;

/// Traces, and facts about their run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    traces: Vec<Trace>,
    /// Ranks, from the file names, of the traces that were left out because their header or window
    /// is incomplete. `None` for a file name without a rank.
    left_out: Vec<Option<u32>>,
    /// Ranks of endpoints that have only one trace, of tagged or of untagged messages, although
    /// their report has operations of both. `None` for an endpoint without a rank.
    halved: Vec<Option<u32>>,
    /// Endpoints without operations, from the reports of the same directories. They have no trace,
    /// so their traces are not missing.
    quiet: Vec<Reported>,
    /// Number of messages that waited for room at their receivers, from the same reports.
    pub(crate) waited: u64,
    /// The record of the run, if the directory of the traces has one. Of several records, the one
    /// with the highest exit status.
    pub(crate) run: Option<RunRecord>,
}

/// The facts of a report by which its traces are found.
#[derive(Clone, Debug)]
struct Reported {
    endpoint: Endpoint,
    rank: Option<u32>,
    origin: Origin,
    /// When the endpoint was opened, in nanoseconds since 1970.
    start_ns: u64,
    /// For tagged and for untagged messages: true if the report has operations on them.
    has_operations: [bool; 2],
    /// Number of messages that waited for room at their receivers.
    waited: u64,
}

/// Names of the two contexts of an endpoint in the headers and file names of their traces.
const CONTEXTS: [&str; 2] = ["tagged", "msg"];

impl Reported {
    fn of(report: Report) -> Self {
        Self {
            endpoint: reports::endpoint(&report),
            rank: report.rank,
            has_operations: [report.tagged.has_operations(), report.msg.has_operations()],
            waited: report.waited(),
            origin: report.origin,
            start_ns: report.start_ns,
        }
    }

    /// Returns the context whose trace is missing, if the endpoint has the trace of the other one.
    /// `has` returns true for a context with a trace. Without any trace, the rank is missing.
    fn lost_context(&self, has: impl Fn(&str) -> bool) -> Option<&'static str> {
        let traced = CONTEXTS.map(has);
        let lost = |&at: &usize| self.has_operations[at] && !traced[at] && traced[1 - at];
        [0, 1].iter().copied().find(lost).map(|at| CONTEXTS[at])
    }
}

impl Deref for Found {
    type Target = [Trace];

    fn deref(&self) -> &[Trace] {
        &self.traces
    }
}

impl Found {
    /// Returns the ranks that have traces, and those that are missing or were cut short. Only a
    /// replay finds that a trace was cut off, so the result may change after it.
    pub(crate) fn ranks(&self) -> Ranks {
        let mut ranks = Ranks::default();
        let (mut processes, mut cut) = (BTreeSet::new(), BTreeSet::new());
        for trace in &self.traces {
            let Header { host, pid, rank, origin, libfabric, .. } = &trace.header;
            if processes.insert((host, pid)) {
                ranks.note(*rank, origin.ranks);
            }
            if !trace.is_whole() && cut.insert((host, pid)) {
                ranks.note_cut(*rank);
            }
            if libfabric == NO_LIBFABRIC {
                ranks.none_missing = true;
            }
        }
        self.left_out.iter().chain(&self.halved).for_each(|rank| ranks.note_cut(*rank));
        ranks.note_ended(self.run.as_ref().map(|run| run.exit_status));
        let runs: BTreeSet<_> =
            self.traces.iter().filter_map(|trace| trace.header.origin.job).collect();
        if runs.len() > 1 {
            ranks.mixed = true;
        }
        for Reported { endpoint: (host, pid, _), rank, origin, .. } in &self.quiet {
            if processes.insert((host, pid)) {
                ranks.note(*rank, origin.ranks);
            }
        }
        ranks
    }

    /// Sets the time at which the first rank of the run began, in nanoseconds since 1970.
    pub(crate) fn set_start(&mut self, began_ns: u64) {
        self.traces.iter_mut().for_each(|trace| trace.began_ns = began_ns);
    }

    /// Returns the number of ranks of the job, as far as the traces know.
    fn ranks_of(&self) -> u32 {
        let known = self.traces.iter().filter_map(|trace| trace.header.origin.ranks).max();
        let highest = self.traces.iter().filter_map(|trace| trace.header.rank).max();
        known.unwrap_or(0).max(highest.map_or(0, |rank| rank.saturating_add(1)))
    }

    /// Returns the number of nodes that the ranks of the job were placed on, or `None` if they were
    /// not placed.
    pub(crate) fn placed_on(&self) -> Option<usize> {
        let nodes = self.traces.iter().find_map(|trace| trace.nodes.as_ref())?;
        Some(nodes.number(self.ranks_of()))
    }

    /// Places the ranks on nodes, if `placed` gives a placement. Fails if the placement is invalid,
    /// if a trace has no rank, or if a rank of a run that was recorded has no trace.
    pub(crate) fn placed(mut self, placed: &Placed) -> Result<Self, Error> {
        if let Some(rule) = placed.node_rule(self.ranks_of())? {
            let nodes = Arc::new(Nodes::new(rule, addresses(&self.traces)?));
            self.traces.iter_mut().for_each(|trace| trace.nodes = Some(Arc::clone(&nodes)));
        }
        Ok(self)
    }
}

/// Returns the files in a directory that end in `.trace`.
pub(crate) fn trace_files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = reports::files(directory, "trace")?;
    // A directory may have such a name, for example after `tcam run --trace app.trace`.
    files.retain(|path| !path.is_dir());
    Ok(files)
}

/// Returns the traces of an earlier run, including damaged ones. Fails if a `.trace` file is no
/// trace of tcam or cannot be read, so that the error comes before the run and not after it.
pub(crate) fn old(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let files = trace_files(directory)?;
    for path in &files {
        if let Err(error @ (Error::Trace { error: TraceError::Foreign, .. } | Error::Io { .. })) =
            reader(path)
        {
            return Err(error);
        }
    }
    Ok(files)
}

/// Finds the given traces, and those in the given directories. Returns them in the order of ranks,
/// in which a NIC gives its engines to them ([`NicEngines`](super::NicEngines)). With
/// `take.cut_off`, traces that were cut off are accepted, and those with an incomplete header or
/// window are left out with a message. Fails if no trace remains, or if two traces are of the same
/// context (tagged or untagged messages) of an endpoint. Also reads the reports in the directories,
/// to find endpoints without operations and endpoints that lack a trace.
pub(crate) fn find(names: &[PathBuf], take: Take) -> Result<Found, Error> {
    let (mut paths, mut reported) = (Vec::new(), Vec::new());
    for name in names {
        if name.is_dir() {
            paths.extend(trace_files(name)?);
            let known = reported.len();
            let read = reports::each(name, |_, report| reported.push(Reported::of(report)));
            if let Err(error) = read {
                eprintln!("{error}. No report of this directory is used.");
                reported.truncate(known);
            }
        } else {
            paths.push(name.clone());
        }
    }
    paths.sort();
    paths.dedup();
    let (mut traces, mut left_out) = (Vec::new(), Vec::new());
    for path in paths {
        match Trace::open(path, take) {
            Err(Error::Trace {
                path,
                error: error @ (TraceError::Empty | TraceError::Short(_)),
            }) if take.cut_off => {
                eprintln!("{}: {error}; left out", path.display());
                // The name is RANK.PID.PORT.CONTEXT.trace.
                let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
                left_out.push(name.split('.').next().and_then(|rank| rank.parse().ok()));
            }
            trace => traces.push(trace?),
        }
    }
    if traces.is_empty() {
        let name = names.first().cloned().unwrap_or_default();
        return Err(match left_out.is_empty() {
            true => Error::NoTraces(name),
            false => Error::AllCut(name),
        });
    }
    // The paths are sorted as text, so that 10 comes before 2. The sort is stable.
    traces.sort_by_key(|trace| trace.header.rank.map_or(u64::MAX, u64::from));
    let mut contexts = BTreeMap::new();
    for trace in &traces {
        let context = (trace.endpoint(), trace.header.context.clone());
        if let Some(first) = contexts.insert(context, trace) {
            let (first, second) = (first.path.clone(), trace.path.clone());
            return Err(Error::SameEndpoint { first, second });
        }
    }
    let halved = reported.iter().filter(|report| {
        let has =
            |context: &str| contexts.contains_key(&(report.endpoint.clone(), context.to_owned()));
        let lost = report.lost_context(has);
        if let Some(context) = lost {
            let rank = report.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
            eprintln!(
                "{rank}.{}.*.{context}.trace is missing: the report of this process counts its \
                 operations",
                report.endpoint.1
            );
        }
        lost.is_some()
    });
    let halved = halved.map(|report| report.rank).collect();
    // The start of a report is the time at which its endpoint was opened. A trace starts later,
    // with the first operation.
    let job = traces[0].header.origin.job;
    let waited = reported.iter().filter(|report| report.origin.job == job);
    let waited = waited.fold(0, |sum, report| total([sum, report.waited]));
    let opened = reported.iter().filter(|report| job.is_some() && report.origin.job == job);
    use_one_clock(&mut traces);
    let starts = traces.iter().map(Trace::start_ns);
    let start = starts.chain(opened.map(|report| report.start_ns)).min().unwrap_or(0);
    let quiet = reported.into_iter().filter(|report| report.has_operations == [false; 2]).collect();
    let run = run_of(&traces);
    let mut found = Found { traces, left_out, halved, quiet, waited, run };
    found.set_start(start);
    Ok(found)
}

/// Sets the starts of traces by the clock that all processes of a host have in common
/// (`CLOCK_MONOTONIC`), if the traces have it. The time of day may be adjusted between the starts
/// of two ranks, so it is taken from one trace of each host only.
fn use_one_clock(traces: &mut [Trace]) {
    let mut offsets: BTreeMap<String, u64> = BTreeMap::new();
    for Trace { header, start_ns, .. } in
        traces.iter_mut().filter(|of| of.header.start_clock_ns > 0)
    {
        let own = header.start_ns.saturating_sub(header.start_clock_ns);
        let offset = *offsets.entry(header.host.clone()).or_insert(own);
        *start_ns = header.start_clock_ns.saturating_add(offset);
    }
}

/// Returns the record of the run from the `run.tcam` in the directories of the traces. Of several
/// records, returns the one with the highest exit status. Returns `None` if no record is of a job
/// of the traces.
fn run_of(traces: &[Trace]) -> Option<RunRecord> {
    let directories: BTreeSet<_> = traces.iter().filter_map(|trace| trace.path.parent()).collect();
    let jobs = || traces.iter().map(|trace| trace.header.origin.job);
    let records = directories.into_iter().filter_map(RunRecord::beside);
    records.filter(|record| record.is_of(jobs())).max_by_key(|record| record.exit_status)
}

/// Returns the ranks by the addresses of their endpoints, because a trace gives the peers of its
/// messages by address. Fails if a trace has no rank. Unless all traces are generated, also fails
/// if a rank of the run has no trace.
fn addresses(traces: &[Trace]) -> Result<HashMap<Address, u32>, Error> {
    let mut ranks = HashMap::new();
    for trace in traces {
        let Some(rank) = trace.header.rank else {
            fail!(
                "{}: no rank is known, and a placement (--ppn, --placement) needs that of every \
                 trace; was the program started with mpiexec or srun?",
                trace.path.display()
            );
        };
        ranks.extend(trace.address().map(|at| (at, rank)));
    }
    let known: BTreeSet<_> = traces.iter().filter_map(|trace| trace.header.rank).collect();
    let of = traces.iter().filter_map(|trace| trace.header.origin.ranks).max().unwrap_or(0);
    if traces.iter().any(|trace| !trace.is_generated()) && (known.len() as u32) < of {
        fail!(
            "--ppn and --placement need the traces of all ranks, to know who is whose neighbour: \
             {} of {of} are there",
            known.len()
        );
    }
    Ok(ranks)
}

/// If these seem to be traces of several runs, prints the reason, because counts of different runs
/// should not be added up.
pub(crate) fn note_mixed(traces: &[Trace]) {
    let sources = traces.iter().map(|trace| {
        let Header { program, host, pid, rank, origin, .. } = &trace.header;
        ProcessOrigin { program, host, pid: *pid, rank: *rank, origin }
    });
    summary::mixed(&sources.collect::<Vec<_>>()).iter().for_each(|mixed| eprintln!("{mixed}"));
}

/// Prints a note if messages of the recorded run arrived when their receivers polled.
pub(crate) fn note_polled(found: &Found) {
    if found.iter().any(Trace::is_polled) {
        eprintln!("{}.", summary::POLLED);
    }
}

/// If senders of the recorded run waited for room at their receivers, prints that the UMQ is a lower
/// bound.
pub(crate) fn note_waits(found: &Found) {
    summary::waits_note(found.waited).iter().for_each(|note| eprintln!("{note}."));
}

/// Returns the parameters of each trace, see [`Trace::params`].
pub(crate) fn params(traces: &[Trace], settings: &Settings) -> Result<Vec<Params>, Error> {
    traces.iter().map(|trace| trace.params(settings)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn earlier_traces_are_found_whole_or_not_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).unwrap();
        let whole = Header::default().to_bytes();
        put("0.trace", &whole);
        put("1.trace", &whole[..100]);
        put("2.trace", b"");
        put("notes.txt", b"not ours");
        let mut found = old(directory.path()).unwrap();
        found.sort();
        assert_eq!(
            found,
            ["0.trace", "1.trace", "2.trace"].map(|name| directory.path().join(name))
        );
        put("other.trace", b"GPS");
        assert!(old(directory.path()).unwrap_err().to_string().contains("other.trace"));
    }

    #[test]
    fn traces_are_in_the_order_of_ranks() {
        let directory = tempfile::tempdir().unwrap();
        for rank in (0..12).map(Some).chain([None]) {
            let header = Header { rank, pid: rank.unwrap_or(12), ..Header::default() };
            let name = rank.map_or("-".to_owned(), |rank| rank.to_string());
            fs::write(directory.path().join(format!("{name}.trace")), header.to_bytes()).unwrap();
        }
        let found = find(&[directory.path().to_owned()], Take::default()).unwrap();
        assert!(found.iter().map(|trace| trace.header.rank).eq((0..12).map(Some).chain([None])));
    }

    #[test]
    fn a_killed_process_without_a_rank_is_one() {
        let directory = tempfile::tempdir().unwrap();
        for context in CONTEXTS {
            let header = Header { context: context.to_owned(), ..Header::default() };
            let path = directory.path().join(format!("{context}.trace"));
            fs::write(path, header.to_bytes()).unwrap();
        }
        let found = find(&[directory.path().to_owned()], Take::default()).unwrap();
        found.iter().for_each(|trace| trace.tell("it was cut off"));
        assert_eq!(found.ranks().count(), "1 rank, 1 cut short");
    }
}
