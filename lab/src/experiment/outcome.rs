// SPDX-License-Identifier: BSD-2-Clause
//! Reads an experiment: the reports and traces of a run. The counts are those of the reports. The
//! counts of an endpoint without a complete report are those of a replay of its traces. Reports are
//! added up as they are read. Only the counts of each rank and the lengths over time of a few ranks
//! are kept.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use nic::lengths::Lengths;
use nic::report::{ContextCounters, Report, WrittenAt};
use nic::trace::TraceError;
use serde::Serialize;

use super::rank::{QueueKind, Rank};
use crate::capacity::{Knob, Need};
use crate::error::Error;
use crate::hint;
use crate::results::{
    Adding, Endpoint, ReportHead, RunRecord, Sum, Summary, origin, reports, runs,
};
use crate::settings::Settings;
use crate::traces::{Found, Take, Trace, files, play};

/// The reports and traces that are named on the command line.
#[derive(Debug, Default, Args)]
pub(crate) struct Inputs {
    /// Reports or traces, or directories of them. If traces have reports in the same directory,
    /// only numbers that reports lack are taken from the traces. Traces without reports are
    /// replayed as they were recorded.
    #[arg(required = true, value_name = "DIR|FILE")]
    pub(crate) names: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) take: Take,
}

impl Inputs {
    pub(crate) fn one(name: &Path, take: Take) -> Self {
        Self { names: vec![name.to_owned()], take }
    }
}

/// Reports, traces, and the counts of each rank.
#[derive(Debug)]
pub(crate) struct Experiment {
    /// The heads of the reports, at least one. A head is a report without its counts.
    pub(crate) heads: Vec<ReportHead>,
    /// Empty unless [`Keep::Added`] was given.
    pub(crate) added: Vec<Added>,
    pub(crate) traces: Found,
    /// True if the counts are those of a replay.
    pub(crate) replayed: bool,
    /// Ranks, sorted by number.
    pub(crate) ranks: Vec<Rank>,
    pub(crate) sum: Summary,
    /// For each head, the number of its rank.
    numbers: Vec<u32>,
}

/// The JSON of an experiment.
#[derive(Debug, Serialize)]
pub(crate) struct Counts<'a> {
    title: String,
    #[serde(flatten)]
    sum: Sum<'a>,
    by_rank: Vec<RankCounts<'a>>,
    /// The need of each rank and each NIC; `None` without traces.
    need: Option<&'a Need>,
}

/// Tagged messages of a rank.
#[derive(Debug, Serialize)]
struct RankCounts<'a> {
    rank: u32,
    tagged: &'a ContextCounters,
}

impl Experiment {
    /// Prints the sentence of [`Self::lack`] to standard error, if there is one. Returns the exit
    /// code for the case that nothing else fails.
    pub(crate) fn code(&self, take: Take) -> u8 {
        self.lack().iter().for_each(|lack| eprintln!("{lack}"));
        self.silent_code(take)
    }

    /// Returns a sentence on ranks that are missing in the counts, or else in the traces, or on a
    /// failed program. Returns `None` if there is nothing to say.
    pub(crate) fn lack(&self) -> Option<String> {
        match self.sum.ranks.are_whole() {
            true => self.lack_of_traces().or_else(|| self.sum.lack()),
            false => self.sum.lack(),
        }
    }

    /// Returns the exit code for the case that nothing else fails: 0, or 3 for incomplete results
    /// without `--partial`.
    pub(crate) fn silent_code(&self, take: Take) -> u8 {
        let of_traces = match self.traces.is_empty() {
            true => 0,
            false => self.traces.ranks().code(take.partial),
        };
        self.sum.ranks.code(take.partial).max(of_traces)
    }

    /// Reads reports and traces. Replays the traces of endpoints without a complete report, and all
    /// traces if there are no reports. Fails if neither reports nor traces are found, or if the
    /// traces are of another run than the reports.
    pub(crate) fn read(sources: &Inputs, keep: Keep) -> Result<Self, Error> {
        let (mut of_reports, mut of_traces) = (Vec::new(), Vec::new());
        for name in &sources.names {
            let is_dir = name.is_dir();
            if is_dir || name.extension() == Some(OsStr::new("json")) {
                of_reports.push(name);
            }
            if is_dir && holds_traces(name)? || !is_dir && of_reports.last() != Some(&name) {
                of_traces.push(name.clone());
            }
        }
        let mut gathering = Gathering::new(keep);
        // A draft is the incomplete report of a process that was killed or still runs. The trace of
        // an endpoint may contain more than its draft, so drafts are added after the traces were
        // read.
        let mut drafts = Vec::new();
        let mut take = |path: &Path, report: Report| match report.written_at {
            WrittenAt::Running if !of_traces.is_empty() => drafts.push(report),
            _ => gathering.add(path, report),
        };
        for name in of_reports {
            match name.is_dir() {
                true => reports::each(name, &mut take)?,
                false => take(name, reports::read_one(name)?),
            }
        }
        // A directory may be named twice.
        drafts.sort_by_cached_key(reports::endpoint);
        drafts.dedup();
        let replayed = gathering.seen.is_empty() && drafts.is_empty();
        let traces = match of_traces.as_slice() {
            [] => Found::default(),
            names => match files::find(names, sources.take) {
                // The reports in the same directory are enough.
                Err(Error::NoTraces(_) | Error::AllCut(_)) if !replayed => Found::default(),
                Err(Error::Trace { path, error: TraceError::Foreign }) => {
                    return Err(Error::Neither(path));
                }
                traces => traces?,
            },
        };
        files::note_waits(&traces);
        if let Some(trace) = traces.first()
            && !replayed
            && !traces.iter().any(|trace| {
                let endpoint = trace.endpoint();
                gathering.has(&endpoint)
                    || drafts.iter().any(|draft| reports::endpoint(draft) == endpoint)
            })
            // If the disk was full, some ranks of a run may have only reports and others only
            // traces.
            && !gathering.has_job(trace.header.origin.job)
            && !drafts.iter().any(|draft| {
                draft.origin.job.is_some() && draft.origin.job == trace.header.origin.job
            })
        {
            let why = "a trace of another run than the reports there: give one or the other";
            return Err(Error::file(&trace.path, why));
        }
        let silent =
            play::add_unreported(|endpoint| gathering.has(endpoint), &mut drafts, &traces)?;
        silent.filter(|_| !replayed).iter().for_each(|silent| eprintln!("{silent}"));
        drafts.into_iter().for_each(|report| gathering.add(Path::new(""), report));
        gathering.adding.sort();
        let experiment = gathering.experiment(traces, replayed);
        let mut experiment = experiment.ok_or_else(|| nothing_in(&sources.names))?;
        let ended = ended(&sources.names, &experiment.heads);
        experiment.sum.ranks.note_ended(ended);
        if let [name] = sources.names.as_slice() {
            experiment.sum.ranks.none_missing |= !replayed && !name.is_dir();
        }
        if let Some(mixed) = &experiment.sum.mixed {
            eprintln!("{mixed}");
        }
        Ok(experiment)
    }

    /// Changes the times of lengths and traces so that they count from the start of the first rank.
    fn set_clock(&mut self) {
        let of_traces = self.traces.iter().map(Trace::start_ns);
        let starts = self.heads.iter().map(|head| head.start_ns).chain(of_traces);
        let began = starts.min().unwrap_or(0);
        self.traces.set_start(began);
        for rank in &mut self.ranks {
            let since = rank.start_ns.saturating_sub(began) / 1000;
            rank.lengths.us.iter_mut().for_each(|us| *us = us.saturating_add(since));
        }
    }

    /// Returns the number of the rank of an endpoint, or `None` without a report of the endpoint.
    pub(crate) fn number_of(&self, (host, pid, address): &Endpoint) -> Option<u32> {
        let mut heads = self.heads.iter().zip(&self.numbers);
        let same =
            |head: &ReportHead| (&*head.host, head.pid, &*head.address) == (host, *pid, address);
        heads.find(|(head, _)| same(head)).map(|(_, number)| *number)
    }

    /// Returns a sentence on ranks without a complete trace, or `None` if all are complete or there
    /// are no traces. The reports may be complete although the traces are not.
    pub(crate) fn lack_of_traces(&self) -> Option<String> {
        if self.traces.is_empty() || self.traces.ranks().are_whole() {
            return None;
        }
        self.traces.ranks().lack("trace").map(|lack| format!("Traces: {lack}"))
    }

    /// Returns the program, its ranks, and a note on a replay.
    pub(crate) fn title(&self) -> String {
        let ReportHead { program, origin, .. } = &self.heads[0];
        let name = match origin::name_of(program, &origin.command) {
            "" => "program",
            name => name,
        };
        let ranks = self.sum.ranks();
        let replayed = if self.replayed { ", replayed" } else { "" };
        format!("{name} on {ranks}{replayed}")
    }

    /// Replays the traces and returns their need, or `None` without traces.
    pub(crate) fn need(&self) -> Result<Option<Need>, Error> {
        if self.traces.is_empty() {
            return Ok(None);
        }
        let need = |bar: &_| Need::of(&self.traces, &Settings::default(), Knob::Pool, bar);
        play::with_bar(&self.traces, 1, need).map(Some)
    }

    /// Returns the JSON: the sum, and the counts of each rank.
    pub(crate) fn counts<'a>(&'a self, need: Option<&'a Need>) -> Counts<'a> {
        let by_rank = self.ranks.iter();
        let by_rank = by_rank.map(|rank| RankCounts { rank: rank.number, tagged: &rank.tagged });
        Counts { title: self.title(), sum: (&self.sum).into(), by_rank: by_rank.collect(), need }
    }

    /// Returns the reasons why elements were not in the table: the queue, the reason, and the
    /// numbers of elements of collective operations and of point-to-point messages.
    pub(crate) fn reasons(&self) -> Vec<(QueueKind, &'static str, [u64; 2])> {
        let mut reasons = Vec::new();
        for queue in QueueKind::BOTH {
            let kinds = &queue.of(&self.sum.tagged).kinds;
            let rest = kinds.point_to_point.block_reasons.iter();
            for ((reason, collective), (_, rest)) in kinds.collective.block_reasons.iter().zip(rest)
            {
                if collective + rest > 0 {
                    reasons.push((queue, reason, [collective, rest]));
                }
            }
        }
        reasons
    }

    /// Returns the rank whose queue became longest.
    pub(crate) fn worst(&self, queue: QueueKind) -> &Rank {
        let mark = |rank: &&Rank| queue.of(&rank.tagged).high_water;
        // Of equal marks, `rev` makes `max_by_key` return the first.
        self.ranks.iter().rev().max_by_key(mark).expect("an experiment has ranks")
    }

    /// Returns the ranks, those that need most first. Of equal needs, more compared entries come
    /// first.
    pub(crate) fn worst_first(&self) -> Vec<&Rank> {
        let mut ranks: Vec<_> = self.ranks.iter().collect();
        ranks.sort_by_key(|rank| std::cmp::Reverse((rank.need(), rank.compared())));
        ranks
    }
}

/// Returns how the program ended, from the `run.tcam` in the named directories and in the
/// directories of the named files. Returns the highest exit status, or `None` without a record of
/// this run.
fn ended(names: &[PathBuf], heads: &[ReportHead]) -> Option<u8> {
    let directory = |name: &PathBuf| match name.is_dir() {
        true => Some(name.clone()),
        false => name.parent().map(Path::to_owned),
    };
    let directories: BTreeSet<_> = names.iter().filter_map(directory).collect();
    let records = directories.iter().filter_map(|directory| RunRecord::beside(directory));
    let jobs = || heads.iter().map(|head| head.origin.job);
    records.filter(|record| record.is_of(jobs())).map(|record| record.exit_status).max()
}

/// Returns the error for files and directories that contain neither reports nor traces.
fn nothing_in(names: &[PathBuf]) -> Error {
    for name in names {
        let has_reports = |run: &PathBuf| reports::old(run).is_ok_and(|found| !found.is_empty());
        if let Some(run) = runs::runs_in(name).unwrap_or_default().into_iter().rfind(has_reports) {
            let (run, why) = (run.display(), "of `tcam sweep`; its runs have the reports");
            return Error::file(name, format!("{why}: give one, such as {run}"));
        }
    }
    let directory = names.first().cloned().unwrap_or_default();
    let why = "neither reports (*.json) nor traces (*.trace) there";
    let why = match below(&directory).as_slice() {
        [] => {
            let made = "`tcam run --report` and `tcam run --trace` make them";
            format!("{why}; {made}{}{}", hint::foreign(&directory), hint::unfinished(&directory))
        }
        found => format!("{why}, but in {}: give one", found.join(", ")),
    };
    Error::file(directory, why)
}

/// Largest number of directories that an error names.
const BELOW: usize = 3;

/// Returns the first [`BELOW`] subdirectories that contain reports or traces, sorted by name.
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
    files::trace_files(directory).map(|traces| !traces.is_empty())
}

/// Number of ranks that a picture shows in addition to the rank with the longest queue.
pub(super) const OTHERS: usize = 7;
/// If more ranks than this have lengths, the lengths that no picture shows are dropped.
const MANY: usize = 64;

/// Selects the data that are kept in addition to the counts of each rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The lengths that pictures show.
    #[default]
    Shown,
    /// The lengths of all ranks.
    Lengths,
    /// The lengths that pictures show, and the sources that added elements.
    Added,
}

/// The sources that added elements to the queues of an endpoint.
#[derive(Debug)]
pub(crate) struct Added {
    pub(crate) rank: Option<u32>,
    /// For PRQ and UMQ: the number of all elements, and the number of elements of each source.
    pub(crate) queues: [(u64, Vec<(u32, u64)>); 2],
}

/// Identifies a rank. If its number is known: false, the number and an empty text. Otherwise: true,
/// the process id and the host.
type RankKey = (bool, u32, Arc<str>);

/// Adds reports up.
#[derive(Debug, Default)]
struct Gathering {
    keep: Keep,
    adding: Adding,
    /// Ranks in the order in which they were read.
    ranks: Vec<Rank>,
    index: BTreeMap<RankKey, usize>,
    /// Ranks whose lengths are kept. Unused with [`Keep::Lengths`].
    with_lengths: BTreeSet<RankKey>,
    added: Vec<Added>,
    /// The file of each endpoint's report; empty for a report from a draft or a trace.
    seen: BTreeMap<Endpoint, PathBuf>,
    /// True if an endpoint has two reports that differ.
    differ: bool,
}

impl Gathering {
    fn new(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    fn has(&self, endpoint: &Endpoint) -> bool {
        self.seen.contains_key(endpoint)
    }

    fn has_job(&self, job: Option<u64>) -> bool {
        job.is_some() && self.adding.heads().iter().any(|head| head.origin.job == job)
    }

    /// Adds a report. If the same report was added before, because a directory and a file in it are
    /// both named, does nothing. If an endpoint has two different reports, adds both; the first
    /// time, prints a note.
    fn add(&mut self, path: &Path, mut report: Report) {
        match self.seen.entry(reports::endpoint(&report)) {
            Entry::Vacant(entry) => _ = entry.insert(path.to_owned()),
            Entry::Occupied(first) => {
                if reports::read_one(first.get()).is_ok_and(|first| first == report) {
                    return;
                }
                if !self.differ {
                    eprintln!(
                        "Process {} has two reports of one endpoint, which differ: of a run and \
                         its replay?",
                        report.pid
                    );
                }
                self.differ = true;
            }
        }
        self.adding.add(&report);
        let [prq, umq] = [&mut report.tagged.prq, &mut report.tagged.umq]
            .map(|queue| (queue.inserts, std::mem::take(&mut queue.added)));
        if self.keep == Keep::Added {
            self.added.push(Added { rank: report.rank, queues: [prq, umq] });
        }
        let head = self.adding.heads().last().expect("a head was added");
        let (who, start_ns) = (who(head), head.start_ns);
        let lengths = std::mem::take(&mut report.tagged.lengths);
        let marks = [&report.tagged.prq, &report.tagged.umq].map(|queue| queue.high_water);
        let need = marks[0].max(marks[1]);
        let marks = marks[0].saturating_add(marks[1]);
        let at = *self.index.entry(who.clone()).or_insert(self.ranks.len());
        match self.ranks.get_mut(at) {
            // A clone has no spare capacity, which saves much memory with many ranks.
            None => {
                let tagged = report.tagged.clone();
                self.ranks.push(Rank { number: 0, tagged, lengths, start_ns, marks });
            }
            Some(rank) => {
                if rank.lengths.every == 0 || need > rank.need() {
                    (rank.lengths, rank.start_ns) = (lengths, start_ns);
                }
                rank.tagged.merge(&report.tagged);
                rank.marks = rank.marks.saturating_add(marks);
            }
        }
        if self.keep != Keep::Lengths && !self.ranks[at].lengths.us.is_empty() {
            self.with_lengths.insert(who);
            if self.with_lengths.len() > MANY {
                self.drop_lengths();
            }
        }
    }

    /// Drops the lengths of ranks that no picture shows.
    fn drop_lengths(&mut self) {
        let mut shown = BTreeSet::new();
        for queue in QueueKind::BOTH {
            let mut all: Vec<_> = self.with_lengths.iter().collect();
            let rank = |who| &self.ranks[self.index[who]];
            all.sort_by_key(|who| std::cmp::Reverse(queue.of(&rank(who).tagged).high_water));
            shown.extend(all.into_iter().take(1 + OTHERS).cloned());
        }
        for who in self.with_lengths.difference(&shown) {
            self.ranks[self.index[who]].lengths = Lengths::default();
        }
        self.with_lengths = shown;
    }

    /// Returns the experiment, or `None` if no report was added. Ranks without a number from the
    /// launcher get numbers above the highest known rank.
    fn experiment(mut self, traces: Found, replayed: bool) -> Option<Experiment> {
        self.drop_lengths();
        let (mut sum, heads) = self.adding.sum()?;
        if replayed {
            (sum.replayed, sum.ranks) = (true, traces.ranks());
        } else if self.differ {
            sum.ranks.mixed = true;
        }
        let known = heads.iter().filter_map(|head| head.rank).max();
        let mut next = known.map_or(0, |most| most.saturating_add(1));
        let mut ranks = self.ranks;
        let mut unknown = BTreeMap::new();
        for ((is_unknown, number, host), at) in self.index {
            ranks[at].number = number;
            if is_unknown {
                ranks[at].number = next;
                unknown.insert((number, host), next);
                next = next.saturating_add(1);
            }
        }
        ranks.sort_unstable_by_key(|rank| rank.number);
        let number = |head: &ReportHead| {
            head.rank.unwrap_or_else(|| unknown[&(head.pid, Arc::clone(&head.host))])
        };
        let numbers = heads.iter().map(number).collect();
        let added = self.added;
        let mut experiment = Experiment { heads, added, traces, replayed, ranks, sum, numbers };
        experiment.set_clock();
        Some(experiment)
    }
}

fn who(head: &ReportHead) -> RankKey {
    match head.rank {
        Some(rank) => (false, rank, "".into()),
        None => (true, head.pid, Arc::clone(&head.host)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use nic::trace::Header;

    use super::*;
    use crate::results::reports::tests::{put_draft, sample};
    use crate::traces::Take;

    fn of(reports: impl IntoIterator<Item = Report>) -> Option<Experiment> {
        let mut gathering = Gathering::new(Keep::Lengths);
        reports.into_iter().for_each(|report| gathering.add(Path::new(""), report));
        gathering.experiment(Found::default(), false)
    }

    /// Makes an experiment of ranks with lengths. The ranks have queues of different lengths.
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
        of(reports).unwrap()
    }

    #[test]
    fn reports_are_enough_where_no_trace_beside_them_has_a_beginning() {
        let directory = tempfile::tempdir().unwrap();
        let report = sample(0, 8, 5);
        fs::write(directory.path().join("0.json"), report.to_json().unwrap()).unwrap();
        fs::write(directory.path().join("0.trace"), []).unwrap();
        let read = |cut_off| {
            let take = Take { cut_off, ..Take::default() };
            Experiment::read(
                &Inputs { names: vec![directory.path().to_owned()], take },
                Keep::Shown,
            )
        };
        assert!(matches!(read(false), Err(Error::Trace { .. })));
        let experiment = read(true).unwrap();
        assert_eq!((experiment.heads.len(), experiment.traces.len()), (1, 0));
        assert!(!experiment.replayed);
    }

    #[test]
    fn a_report_that_is_named_twice_counts_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.json");
        fs::write(&path, sample(0, 8, 5).to_json().unwrap()).unwrap();
        let names = vec![directory.path().to_owned(), path, directory.path().to_owned()];
        let mut sources = Inputs { names, take: Take::default() };
        let experiment = Experiment::read(&sources, Keep::Shown).unwrap();
        assert_eq!(experiment.sum.tagged.posts, 5);
        let other = sample(0, 8, 6).to_json().unwrap();
        fs::write(directory.path().join("other.json"), other).unwrap();
        sources.names.truncate(1);
        let experiment = Experiment::read(&sources, Keep::Shown).unwrap();
        assert_eq!((experiment.heads.len(), experiment.sum.tagged.posts), (2, 11));
        assert!(experiment.sum.lack().unwrap().contains("several runs"));
    }

    #[test]
    fn a_draft_whose_directory_is_named_twice_counts_once() {
        let directory = tempfile::tempdir().unwrap();
        let report = sample(0, 8, 5);
        let header = Header {
            context: "tagged".to_owned(),
            layout: "mpich".to_owned(),
            host: report.host.clone(),
            pid: report.pid,
            rank: report.rank,
            ..Header::default()
        };
        fs::write(directory.path().join("0.trace"), header.to_bytes()).unwrap();
        let mut draft = Report { written_at: WrittenAt::Running, ..report };
        put_draft(&directory.path().join("0.draft"), &mut draft);
        let names = vec![directory.path().to_owned(); 2];
        let sources = Inputs { names, take: Take::default() };
        let experiment = Experiment::read(&sources, Keep::Shown).unwrap();
        assert_eq!((experiment.heads.len(), experiment.sum.ranks.mixed), (1, false));
    }

    #[test]
    fn times_of_all_ranks_are_since_the_first_began() {
        let report = |rank, start_ns| {
            let mut report = Report { start_ns, ..sample(rank, 8, 5) };
            let lengths = &mut report.tagged.lengths;
            (lengths.every, lengths.us) = (10, vec![7]);
            for queue in [&mut lengths.prq_table, &mut lengths.umq_table] {
                queue.push(0);
            }
            report
        };
        let us = |starts: [u64; 2]| {
            let experiment = of([report(0, starts[0]), report(1, starts[1])]).unwrap();
            experiment.ranks.iter().map(|rank| rank.lengths.us[0]).collect::<Vec<_>>()
        };
        assert_eq!(us([900_000, 500_000]), [407, 7]);
    }

    #[test]
    fn endpoints_of_a_rank_are_one_and_the_unknown_get_numbers() {
        let mut reports = vec![sample(3, 8, 5), sample(3, 8, 9), sample(0, 8, 1), sample(1, 8, 2)];
        reports[0].tagged.lengths.every = 5;
        reports[1].tagged.lengths.every = 7;
        for report in &mut reports[2..] {
            report.rank = None;
        }
        let longest_first = of([reports[1].clone(), reports[0].clone()]).unwrap();
        assert_eq!(longest_first.ranks[0].lengths.every, 7);
        let experiment = of(reports).unwrap();
        let numbers: Vec<_> = experiment.ranks.iter().map(|rank| rank.number).collect();
        assert_eq!(numbers, [3, 4, 5]);
        assert_eq!(experiment.ranks[0].tagged.posts, 14);
        assert_eq!(experiment.ranks[0].lengths.every, 7);
        assert_eq!(experiment.worst(QueueKind::Prq).number, 3);
        assert_eq!(experiment.worst(QueueKind::Umq).number, 3, "the first of equals");
        assert_eq!(experiment.worst_first()[0].number, 3);
        assert_eq!(experiment.title(), "program on 3 of 4 ranks");
    }

    #[test]
    fn processes_without_a_rank_follow_the_highest_rank() {
        let mut reports = [sample(0, 8, 5), sample(1, 8, 1)];
        (reports[0].rank, reports[1].rank) = (Some(u32::MAX), None);
        let numbers = of(reports).unwrap().numbers;
        assert_eq!(numbers, [u32::MAX, u32::MAX]);
    }

    #[test]
    fn nothing_to_look_at_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let sources = Inputs { names: vec![directory.path().to_owned()], ..Inputs::default() };
        let error = Experiment::read(&sources, Keep::Shown).unwrap_err().to_string();
        assert!(error.contains("neither reports (*.json) nor traces (*.trace)"), "{error}");
        let run = directory.path().join("runs/prq64-umq64-1");
        fs::create_dir_all(&run).unwrap();
        fs::create_dir(directory.path().join("runs/prq8-umq8-1")).unwrap();
        fs::write(run.join("0.json"), sample(0, 64, 5).to_json().unwrap()).unwrap();
        let error = Experiment::read(&sources, Keep::Shown).unwrap_err().to_string();
        assert!(error.ends_with(&format!("such as {}", run.display())), "{error}");
    }

    #[test]
    fn a_file_that_is_neither_report_nor_trace_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.txt");
        fs::write(&path, "tcam 0.1 on libfabric 2.5").unwrap();
        let sources = Inputs { names: vec![path], ..Inputs::default() };
        let error = Experiment::read(&sources, Keep::Shown).unwrap_err().to_string();
        assert!(error.ends_with("0.txt: neither a report (*.json) nor a trace (*.trace) of tcam"));
    }

    #[test]
    fn lengths_are_kept_of_the_ranks_that_pictures_show() {
        let gathered = |keep| {
            let mut gathering = Gathering::new(keep);
            for rank in 0..200 {
                let mut report = sample(rank, 8, u64::from(1 + rank * 7 % 100));
                report.tagged.lengths = Lengths { every: 1, us: vec![0], ..Lengths::default() };
                gathering.add(Path::new(""), report);
            }
            gathering.experiment(Found::default(), false).unwrap()
        };
        let most = |of: &Rank| of.tagged.prq.high_water;
        let with = |keep| {
            let mut ranks = gathered(keep).ranks;
            ranks.retain(|rank| !rank.lengths.us.is_empty());
            ranks.iter().map(most).collect::<Vec<_>>()
        };
        assert_eq!(with(Keep::Lengths).len(), 200);
        let mut shown = with(Keep::Shown);
        shown.sort_unstable();
        assert!(shown.len() <= 2 * (1 + OTHERS), "{shown:?}");
        assert!(shown.ends_with(&[97, 97, 98, 98, 99, 99, 100, 100]), "{shown:?}");
    }
}
