// SPDX-License-Identifier: BSD-2-Clause
//! What an experiment left: reports, or traces that are replayed for them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use matching::SearchDepth;
use nic::lengths::Lengths;
use nic::report::{ContextCounters, Report};
use nic::trace::TraceError;
use serde::Serialize;

use super::sources::Sources;
use crate::error::Error;
use crate::results::documents::{Context, Sum};
use crate::results::reports::{self, Endpoint};
use crate::results::runs;
use crate::results::summary::Summary;
use crate::traces::files::{self, Found};
use crate::traces::take::Take;
use crate::traces::unreported;

/// Reports, traces, and what they say of each rank.
#[derive(Debug)]
pub(crate) struct Experiment {
    pub(crate) reports: Vec<Report>,
    pub(crate) traces: Found,
    /// The reports are of a replay.
    pub(crate) replayed: bool,
    /// By number.
    pub(crate) ranks: Vec<Rank>,
    pub(crate) sum: Summary,
    /// Number of the rank of each report.
    numbers: Vec<u32>,
}

/// One rank and its tagged messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rank {
    /// As the launcher told it; otherwise a number that no other has.
    pub(crate) number: u32,
    pub(crate) tagged: ContextCounters,
    /// Lengths of its queues; with several endpoints, those of the one whose queues
    /// became longest.
    pub(crate) lengths: Lengths,
}

impl Rank {
    /// Most elements of either queue at once.
    pub(crate) fn need(&self) -> u64 {
        self.tagged.prq.high_water.max(self.tagged.umq.high_water)
    }

    /// Entries that its searches compared.
    pub(crate) fn compared(&self) -> u64 {
        Queue::BOTH.iter().map(|queue| queue.compared(self)).sum()
    }

    /// The same where it was counted: a search that finds something compares that.
    pub(crate) fn counted_compared(&self) -> Option<u64> {
        let depths = Queue::BOTH.map(|queue| &queue.of(&self.tagged).search_depth);
        let counted = |depth: &&SearchDepth| depth.hit.total() == 0 || depth.hit_entries > 0;
        depths.iter().all(counted).then(|| self.compared())
    }
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Prq,
    Umq,
}

impl Queue {
    pub(crate) const BOTH: [Self; 2] = [Self::Prq, Self::Umq];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Prq => "PRQ",
            Self::Umq => "UMQ",
        }
    }

    pub(crate) fn long_name(self) -> &'static str {
        match self {
            Self::Prq => "posted receives (PRQ)",
            Self::Umq => "unexpected messages (UMQ)",
        }
    }

    pub(crate) fn of(self, counters: &ContextCounters) -> &matching::QueueCounters {
        match self {
            Self::Prq => &counters.prq,
            Self::Umq => &counters.umq,
        }
    }

    /// Lengths over time: in the table, and on the host.
    pub(crate) fn lengths(self, lengths: &Lengths) -> [&[u64]; 2] {
        match self {
            Self::Prq => [&lengths.prq_table, &lengths.prq_host],
            Self::Umq => [&lengths.umq_table, &lengths.umq_host],
        }
    }

    /// Elements that the searches of a rank traversed on the host.
    pub(crate) fn traversed(self, rank: &Rank) -> u64 {
        self.of(&rank.tagged).traversals.entries
    }

    /// Entries that the searches of a rank compared.
    pub(crate) fn compared(self, rank: &Rank) -> u64 {
        let depth = &self.of(&rank.tagged).search_depth;
        depth.hit_entries + depth.miss_entries
    }
}

/// See [`Experiment::counts`].
#[derive(Debug, Serialize)]
pub(crate) struct Counts<'a> {
    title: String,
    #[serde(flatten)]
    sum: Sum<'a>,
    by_rank: Vec<RankCounts<'a>>,
}

/// Tagged messages of a rank.
#[derive(Debug, Serialize)]
struct RankCounts<'a> {
    rank: u32,
    tagged: Context<'a>,
}

impl Experiment {
    /// Says what is missing; what to exit with where nothing went wrong.
    pub(crate) fn code(&self, take: Take) -> u8 {
        let lack = self.sum.lack().or_else(|| self.lack_of_traces());
        lack.iter().for_each(|lack| eprintln!("{lack}"));
        self.silent_code(take)
    }

    /// The same, where what is missing was said.
    pub(crate) fn silent_code(&self, take: Take) -> u8 {
        let of_traces = match self.traces.is_empty() {
            true => 0,
            false => self.traces.ranks().code(take.partial),
        };
        self.sum.ranks.code(take.partial).max(of_traces)
    }

    /// Reads reports and traces. Without reports the traces are replayed.
    pub(crate) fn read(sources: &Sources) -> Result<Self, Error> {
        let names = &sources.names;
        let mut found = Vec::new();
        let mut trace_names = Vec::new();
        for name in names {
            if name.is_dir() {
                found.extend(reports::read(name)?);
                if holds_traces(name)? {
                    trace_names.push(name.clone());
                }
            } else if name.extension() == Some(OsStr::new("json")) {
                found.push(reports::read_one(name)?);
            } else {
                trace_names.push(name.clone());
            }
        }
        let traces = match trace_names.as_slice() {
            [] => Found::default(),
            names => match files::find(names, sources.take) {
                // The reports beside them are enough.
                Err(Error::NoTraces(_)) if !found.is_empty() => Found::default(),
                Err(Error::Trace { path, error: TraceError::Foreign }) => {
                    return Err(Error::Neither(path));
                }
                traces => traces?,
            },
        };
        let (mut found, differ) = each_once(found);
        let replayed = found.is_empty();
        let ours: BTreeSet<_> = found.iter().map(reports::endpoint).collect();
        if let Some(trace) = traces.first()
            && !replayed
            && !traces.iter().any(|trace| ours.contains(&trace.endpoint()))
            // Some ranks of one run may have had room for one of them only.
            && !found.iter().any(|report| {
                report.origin.job.is_some() && report.origin.job == trace.header.origin.job
            })
        {
            return Err(Error::OtherRun(trace.path.clone()));
        }
        let silent = unreported::add(&mut found, &traces)?.filter(|_| !replayed);
        silent.iter().for_each(|silent| eprintln!("{silent}"));
        let mut experiment = Self::of(found, traces, replayed).ok_or_else(|| nothing_in(names))?;
        if differ {
            experiment.sum.ranks.note_mixed();
        }
        if let Some(mixed) = &experiment.sum.mixed {
            eprintln!("{mixed}");
        }
        Ok(experiment)
    }

    /// Of reports and traces that were read; `None` without reports.
    pub(crate) fn of(reports: Vec<Report>, traces: Found, replayed: bool) -> Option<Self> {
        let sum = match replayed {
            true => Summary::of_traces(&reports, &traces.ranks()),
            false => Summary::of(&reports),
        }?;
        let numbers = numbers(&reports);
        let ranks = ranks(&reports, &numbers);
        Some(Self { reports, traces, replayed, ranks, sum, numbers })
    }

    /// The number of the rank of an endpoint.
    pub(crate) fn number_of(&self, (host, pid, address): &Endpoint) -> Option<u32> {
        let mut reports = self.reports.iter().zip(&self.numbers);
        let same =
            |report: &Report| (&report.host, report.pid, &report.address) == (host, *pid, address);
        reports.find(|(report, _)| same(report)).map(|(_, number)| *number)
    }

    /// What is missing of what its traces are used for: reports may be whole where these are not.
    pub(crate) fn lack_of_traces(&self) -> Option<String> {
        if self.traces.is_empty() {
            return None;
        }
        self.traces.ranks().lack("trace").map(|lack| format!("Traces: {lack}"))
    }

    /// The program, its ranks, and whether that is a replay.
    pub(crate) fn title(&self) -> String {
        let program = &self.reports[0].program;
        let name = match program.rsplit('/').next() {
            None | Some("") => "program",
            Some(name) => name,
        };
        let ranks = self.sum.ranks();
        let replayed = if self.replayed { ", replayed" } else { "" };
        format!("{name} on {ranks}{replayed}")
    }

    /// What `--json` tells: the sum, and each rank.
    pub(crate) fn counts(&self) -> Counts<'_> {
        let by_rank = self.ranks.iter();
        let by_rank =
            by_rank.map(|rank| RankCounts { rank: rank.number, tagged: (&rank.tagged).into() });
        Counts { title: self.title(), sum: (&self.sum).into(), by_rank: by_rank.collect() }
    }

    /// The rank whose queue became longest.
    pub(crate) fn worst(&self, queue: Queue) -> &Rank {
        let mark = |rank: &&Rank| queue.of(&rank.tagged).high_water;
        // The first of equals.
        self.ranks.iter().rev().max_by_key(mark).expect("an experiment has ranks")
    }

    /// The ranks that need most first.
    pub(crate) fn worst_first(&self) -> Vec<&Rank> {
        let mut ranks: Vec<_> = self.ranks.iter().collect();
        ranks.sort_by_key(|rank| std::cmp::Reverse((rank.need(), rank.compared())));
        ranks
    }
}

/// Reports of endpoints, each once: a directory and a file in it may both be named.
///
/// Also whether some differ though they are of one endpoint.
fn each_once(reports: Vec<Report>) -> (Vec<Report>, bool) {
    let mut once: BTreeMap<Endpoint, Report> = BTreeMap::new();
    let mut more = Vec::new();
    for report in reports {
        match once.entry(reports::endpoint(&report)) {
            Entry::Vacant(entry) => {
                entry.insert(report);
            }
            Entry::Occupied(entry) if *entry.get() == report => {}
            Entry::Occupied(_) => more.push(report),
        }
    }
    if let Some(report) = more.first() {
        eprintln!(
            "Process {} has two reports of one endpoint, which differ: of a run and its replay?",
            report.pid
        );
    }
    let differ = !more.is_empty();
    let mut reports: Vec<_> = once.into_values().chain(more).collect();
    reports.sort_by_key(|report| (report.rank, report.pid));
    (reports, differ)
}

/// Why there is nothing to look at.
fn nothing_in(names: &[PathBuf]) -> Error {
    let of_sweep = names.iter().find_map(|directory| {
        let has_reports = |run: &PathBuf| reports::old(run).is_ok_and(|found| !found.is_empty());
        let run = runs::runs_in(directory).ok()?.into_iter().rfind(has_reports)?;
        Some(Error::OfSweep { directory: directory.clone(), run })
    });
    let directory = names.first().cloned().unwrap_or_default();
    of_sweep.unwrap_or_else(|| match below(&directory).as_slice() {
        [] => Error::NothingThere(directory),
        found => Error::Below { directory, of: found.join(", ") },
    })
}

/// Most directories that are named.
const BELOW: usize = 3;

/// Directories in a directory that have what is looked for.
fn below(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .filter(|path| {
            holds_traces(path).unwrap_or(false)
                || reports::old(path).is_ok_and(|reports| !reports.is_empty())
        })
        .map(|path| path.display().to_string())
        .collect();
    found.sort();
    found.truncate(BELOW);
    found
}

fn holds_traces(directory: &Path) -> Result<bool, Error> {
    for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
        let path = entry.map_err(Error::io(directory))?.path();
        if path.extension() == Some(OsStr::new("trace")) && !path.is_dir() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The rank of each report; processes whose rank is not known have numbers above.
fn numbers(reports: &[Report]) -> Vec<u32> {
    let known = reports.iter().filter_map(|report| report.rank).max();
    let mut unknown: BTreeMap<(&str, u32), u32> = BTreeMap::new();
    let mut numbers = Vec::with_capacity(reports.len());
    for report in reports {
        let next = known.map_or(0, |most| most + 1) + unknown.len() as u32;
        let process = (&*report.host, report.pid);
        let number = || *unknown.entry(process).or_insert(next);
        numbers.push(report.rank.unwrap_or_else(number));
    }
    numbers
}

/// What the endpoints of each rank counted together.
fn ranks(reports: &[Report], numbers: &[u32]) -> Vec<Rank> {
    let mut ranks: BTreeMap<u32, Rank> = BTreeMap::new();
    for (report, &number) in reports.iter().zip(numbers) {
        let rank = ranks.entry(number).or_insert_with(|| Rank { number, ..Rank::default() });
        let need = report.tagged.prq.high_water.max(report.tagged.umq.high_water);
        if rank.lengths.every == 0 || need > rank.need() {
            rank.lengths.clone_from(&report.tagged.lengths);
        }
        rank.tagged.merge(&report.tagged);
    }
    ranks.into_values().collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::results::reports::tests::sample;
    use crate::traces::take::Take;

    /// So many ranks, of which some have longer queues than others, with lengths.
    pub(crate) fn experiment(ranks: u32, entries: u64) -> Experiment {
        let reports = (0..ranks).map(|rank| {
            let posts = 100 + u64::from(rank * 37 % 101) + if rank == 0 { 1500 } else { 0 };
            let mut report = sample(rank, entries, posts);
            let depth = &mut report.tagged.prq.search_depth;
            for at in 1..=posts {
                depth.hit.record(at);
                depth.hit_entries += at;
            }
            let lengths = &mut report.tagged.lengths;
            lengths.every = 2;
            // Posts, then arrivals.
            for at in (0..2 * posts).step_by(2) {
                let len = at.min(2 * posts - at);
                lengths.us.push(at * 3);
                lengths.prq_table.push(len.min(entries));
                lengths.prq_host.push(len.saturating_sub(entries));
                lengths.umq_table.push(0);
                lengths.umq_host.push(0);
            }
            report.check().unwrap();
            report
        });
        Experiment::of(reports.collect(), Found::default(), false).unwrap()
    }

    #[test]
    fn reports_are_enough_where_no_trace_beside_them_has_a_beginning() {
        let directory = tempfile::tempdir().unwrap();
        let report = sample(0, 8, 5);
        fs::write(directory.path().join("0.json"), report.to_json().unwrap()).unwrap();
        fs::write(directory.path().join("0.trace"), []).unwrap();
        let read = |cut_off| {
            let take = Take { cut_off, ..Take::default() };
            Experiment::read(&Sources { names: vec![directory.path().to_owned()], take })
        };
        assert!(matches!(read(false), Err(Error::Trace { .. })));
        let experiment = read(true).unwrap();
        assert_eq!((experiment.reports, experiment.traces.len()), (vec![report], 0));
        assert!(!experiment.replayed);
    }

    #[test]
    fn a_report_that_is_named_twice_counts_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.json");
        fs::write(&path, sample(0, 8, 5).to_json().unwrap()).unwrap();
        let names = vec![directory.path().to_owned(), path, directory.path().to_owned()];
        let experiment = Experiment::read(&Sources { names, take: Take::default() }).unwrap();
        assert_eq!(experiment.sum.tagged.posts, 5);
        let reports = vec![sample(0, 8, 5), sample(0, 8, 6), sample(0, 8, 5)];
        let (once, differ) = each_once(reports);
        assert_eq!((once.len(), differ), (2, true));
    }

    #[test]
    fn endpoints_of_a_rank_are_one_and_the_unknown_get_numbers() {
        let mut reports = vec![sample(3, 8, 5), sample(3, 8, 9), sample(0, 8, 1), sample(1, 8, 2)];
        reports[1].tagged.lengths.every = 7;
        for report in &mut reports[2..] {
            report.rank = None;
        }
        let experiment = Experiment::of(reports, Found::default(), false).unwrap();
        let numbers: Vec<_> = experiment.ranks.iter().map(|rank| rank.number).collect();
        assert_eq!(numbers, [3, 4, 5]);
        assert_eq!(experiment.ranks[0].tagged.posts, 14);
        assert_eq!(experiment.ranks[0].lengths.every, 7);
        assert_eq!(experiment.worst(Queue::Prq).number, 3);
        assert_eq!(experiment.worst(Queue::Umq).number, 3, "the first of equals");
        assert_eq!(experiment.worst_first()[0].number, 3);
        assert_eq!(experiment.title(), "program on 3 of 4 ranks");
    }

    #[test]
    fn nothing_to_look_at_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let sources = Sources { names: vec![directory.path().to_owned()], ..Sources::default() };
        let error = Experiment::read(&sources).unwrap_err().to_string();
        assert!(error.contains("neither reports (*.json) nor traces (*.trace)"), "{error}");
        let run = directory.path().join("runs/prq64-umq64-1");
        fs::create_dir_all(&run).unwrap();
        fs::create_dir(directory.path().join("runs/prq8-umq8-1")).unwrap();
        fs::write(run.join("0.json"), sample(0, 64, 5).to_json().unwrap()).unwrap();
        let error = Experiment::read(&sources).unwrap_err().to_string();
        assert!(error.ends_with(&format!("such as {}", run.display())), "{error}");
    }

    #[test]
    fn what_is_neither_report_nor_trace_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.txt");
        fs::write(&path, "tcam 0.1 on libfabric 2.5").unwrap();
        let sources = Sources { names: vec![path], ..Sources::default() };
        let error = Experiment::read(&sources).unwrap_err().to_string();
        assert!(error.ends_with("0.txt: neither a report (*.json) nor a trace (*.trace) of tcam"));
    }
}
