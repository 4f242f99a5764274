// SPDX-License-Identifier: BSD-2-Clause
//! An experiment: its reports, or its traces, which are replayed if there are no reports.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use nic::report::{Report, WrittenAt};
use nic::trace::TraceError;
use serde::Serialize;

use super::gathering::{Added, Gathered, Gathering, Keep, start_of};
use super::rank::{Queue, Rank};
use super::sources::Sources;
use crate::capacity::need::{Knob, Need};
use crate::error::Error;
use crate::results::documents::{Context, Sum};
use crate::results::head::Head;
use crate::results::origin;
use crate::results::ranks::Ended;
use crate::results::reports::{self, Endpoint};
use crate::results::run_record::RunRecord;
use crate::results::runs;
use crate::results::summary::Summary;
use crate::settings::Settings;
use crate::traces::files::{self, Found};
use crate::traces::play;
use crate::traces::take::Take;
use crate::traces::trace::Trace;

/// Reports, traces, and the counts of each rank.
#[derive(Debug)]
pub(crate) struct Experiment {
    /// At least one.
    pub(crate) heads: Vec<Head>,
    /// Empty unless [`Keep::Added`] was given.
    pub(crate) added: Vec<Added>,
    pub(crate) traces: Found,
    /// True if the counts are those of a replay.
    pub(crate) replayed: bool,
    /// Ranks by number.
    pub(crate) ranks: Vec<Rank>,
    pub(crate) sum: Summary,
    /// True if the times of lengths are since the run began. Otherwise they are since each rank
    /// began, because reports of earlier versions do not contain when that was.
    pub(crate) one_clock: bool,
    /// Number of the rank of each head.
    numbers: Vec<u32>,
}

/// The JSON of an experiment.
#[derive(Debug, Serialize)]
pub(crate) struct Counts<'a> {
    title: String,
    #[serde(flatten)]
    sum: Sum<'a>,
    by_rank: Vec<RankCounts<'a>>,
    /// The need of each rank and each NIC; none without traces.
    need: Option<&'a Need>,
}

/// Tagged messages of a rank.
#[derive(Debug, Serialize)]
struct RankCounts<'a> {
    rank: u32,
    tagged: Context<'a>,
}

impl Experiment {
    /// Prints which ranks are missing. Returns the exit code if nothing else fails.
    pub(crate) fn code(&self, take: Take) -> u8 {
        self.lack().iter().for_each(|lack| eprintln!("{lack}"));
        self.silent_code(take)
    }

    /// Returns a sentence on what the counts lack, or else the traces.
    pub(crate) fn lack(&self) -> Option<String> {
        match self.sum.ranks.are_whole() {
            true => self.lack_of_traces().or_else(|| self.sum.lack()),
            false => self.sum.lack(),
        }
    }

    /// Returns the exit code without printing the missing ranks.
    pub(crate) fn silent_code(&self, take: Take) -> u8 {
        let of_traces = match self.traces.is_empty() {
            true => 0,
            false => self.traces.ranks().code(take.partial),
        };
        self.sum.ranks.code(take.partial).max(of_traces)
    }

    /// Reads reports and traces. Without reports the traces are replayed.
    pub(crate) fn read(sources: &Sources, keep: Keep) -> Result<Self, Error> {
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
        // Traces may contain more than drafts, so drafts wait for them.
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
        let replayed = gathering.is_empty() && drafts.is_empty();
        let traces = match of_traces.as_slice() {
            [] => Found::default(),
            names => match files::find(names, sources.take) {
                // The reports in the same directory are enough.
                Err(Error::NoTraces(_)) if !replayed => Found::default(),
                Err(Error::Trace { path, error: TraceError::Foreign }) => {
                    return Err(Error::Neither(path));
                }
                traces => traces?,
            },
        };
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
            return Err(Error::OtherRun(trace.path.clone()));
        }
        let silent =
            play::add_unreported(|endpoint| gathering.has(endpoint), &mut drafts, &traces)?;
        silent.filter(|_| !replayed).iter().for_each(|silent| eprintln!("{silent}"));
        drafts.into_iter().for_each(|report| gathering.add(Path::new(""), report));
        gathering.sort();
        let experiment = Self::gathered(gathering, traces, replayed);
        let mut experiment = experiment.ok_or_else(|| nothing_in(&sources.names))?;
        let ended = ended(&sources.names, &experiment.heads);
        experiment.sum.ranks.note_ended(ended);
        if let Some(mixed) = &experiment.sum.mixed {
            eprintln!("{mixed}");
        }
        Ok(experiment)
    }

    fn gathered(gathering: Gathering, traces: Found, replayed: bool) -> Option<Self> {
        let Gathered { mut sum, heads, numbers, ranks, added } = gathering.sum()?;
        if replayed {
            (sum.replayed, sum.ranks) = (true, traces.ranks());
        }
        let one_clock = false;
        let mut of = Self { heads, added, traces, replayed, ranks, sum, one_clock, numbers };
        of.one_clock = of.has_set_clock();
        Some(of)
    }

    /// Makes all times count from the moment when the first rank of the run began. Returns true if
    /// it is known when each rank with lengths began.
    fn has_set_clock(&mut self) -> bool {
        let of_traces = self.traces.iter().map(|trace| trace.header.start_ns);
        let Some(began) = self.heads.iter().filter_map(start_of).chain(of_traces).min() else {
            return false;
        };
        self.traces.begin(began);
        let with_lengths = |rank: &&mut Rank| !rank.lengths.us.is_empty();
        for rank in self.ranks.iter_mut().filter(with_lengths) {
            let is_of = |trace: &&Trace| trace.header.rank == Some(rank.number);
            let of_trace = || self.traces.iter().find(is_of).map(|trace| trace.header.start_ns);
            rank.start_ns = rank.start_ns.or_else(of_trace);
        }
        if self.ranks.iter_mut().filter(with_lengths).any(|rank| rank.start_ns.is_none()) {
            return false;
        }
        for rank in &mut self.ranks {
            let since = rank.start_ns.map_or(0, |start| start.saturating_sub(began) / 1000);
            rank.lengths.us.iter_mut().for_each(|us| *us = us.saturating_add(since));
        }
        true
    }

    /// Returns the number of the rank of an endpoint.
    pub(crate) fn number_of(&self, (host, pid, address): &Endpoint) -> Option<u32> {
        let mut heads = self.heads.iter().zip(&self.numbers);
        let same = |head: &Head| (&*head.host, head.pid, &*head.address) == (host, *pid, address);
        heads.find(|(head, _)| same(head)).map(|(_, number)| *number)
    }

    /// Returns a sentence on what the traces lack. The reports may be complete although the traces
    /// are not.
    pub(crate) fn lack_of_traces(&self) -> Option<String> {
        if self.traces.is_empty() || self.traces.ranks().are_whole() {
            return None;
        }
        self.traces.ranks().lack("trace").map(|lack| format!("Traces: {lack}"))
    }

    /// Returns the program, its ranks, and a note on a replay.
    pub(crate) fn title(&self) -> String {
        let Head { program, origin, .. } = &self.heads[0];
        let name = match origin::name_of(program, &origin.command) {
            "" => "program",
            name => name,
        };
        let ranks = self.sum.ranks();
        let replayed = if self.replayed { ", replayed" } else { "" };
        format!("{name} on {ranks}{replayed}")
    }

    /// Returns the need that the traces show, if there are traces.
    pub(crate) fn need(&self) -> Result<Option<Need>, Error> {
        if self.traces.is_empty() {
            return Ok(None);
        }
        let bar = play::bar(&self.traces, 1);
        let need = Need::of(&self.traces, &Settings::default(), Knob::Pool, &bar)?;
        bar.finish_and_clear();
        Ok(Some(need))
    }

    /// Returns the JSON: the sum, and the counts of each rank.
    pub(crate) fn counts<'a>(&'a self, need: Option<&'a Need>) -> Counts<'a> {
        let by_rank = self.ranks.iter();
        let by_rank =
            by_rank.map(|rank| RankCounts { rank: rank.number, tagged: (&rank.tagged).into() });
        Counts { title: self.title(), sum: (&self.sum).into(), by_rank: by_rank.collect(), need }
    }

    /// Returns the rank whose queue became longest.
    pub(crate) fn worst(&self, queue: Queue) -> &Rank {
        let mark = |rank: &&Rank| queue.of(&rank.tagged).high_water;
        // The first of equals.
        self.ranks.iter().rev().max_by_key(mark).expect("an experiment has ranks")
    }

    /// Returns the ranks, those that need most first.
    pub(crate) fn worst_first(&self) -> Vec<&Rank> {
        let mut ranks: Vec<_> = self.ranks.iter().collect();
        ranks.sort_by_key(|rank| std::cmp::Reverse((rank.need(), rank.compared())));
        ranks
    }
}

/// Returns how the program ended, from the `run.tcam` in these directories, or in those of these
/// files.
fn ended(names: &[PathBuf], heads: &[Head]) -> Option<Ended> {
    let directory = |name: &PathBuf| match name.is_dir() {
        true => Some(name.clone()),
        false => name.parent().map(Path::to_owned),
    };
    let directories: BTreeSet<_> = names.iter().filter_map(directory).collect();
    let records = directories.iter().filter_map(|directory| RunRecord::beside(directory));
    let jobs = || heads.iter().map(|head| head.origin.job);
    records.filter(|record| record.is_of(jobs())).map(|record| record.ended()).max()
}

/// Returns the error for a name without reports and traces.
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

/// Largest number of directories that an error names.
const BELOW: usize = 3;

/// Returns directories in a directory that contain reports or traces.
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::results::reports::tests::sample;
    use crate::traces::take::Take;

    fn of(reports: impl IntoIterator<Item = Report>) -> Option<Experiment> {
        let mut gathering = Gathering::new(Keep::Lengths);
        reports.into_iter().for_each(|report| gathering.add(Path::new(""), report));
        Experiment::gathered(gathering, Found::default(), false)
    }

    /// Makes an experiment of ranks with lengths. The queues of some are longer than those of
    /// others.
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
                &Sources { names: vec![directory.path().to_owned()], take },
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
        let mut sources = Sources { names, take: Take::default() };
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
            let us: Vec<_> = experiment.ranks.iter().map(|rank| rank.lengths.us[0]).collect();
            (us, experiment.one_clock)
        };
        assert_eq!(us([900_000, 500_000]), (vec![407, 7], true));
        // A report of an earlier version does not have its start.
        assert_eq!(us([900_000, 0]), (vec![7, 7], false));
    }

    #[test]
    fn endpoints_of_a_rank_are_one_and_the_unknown_get_numbers() {
        let mut reports = vec![sample(3, 8, 5), sample(3, 8, 9), sample(0, 8, 1), sample(1, 8, 2)];
        reports[1].tagged.lengths.every = 7;
        for report in &mut reports[2..] {
            report.rank = None;
        }
        let experiment = of(reports).unwrap();
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
        let sources = Sources { names: vec![path], ..Sources::default() };
        let error = Experiment::read(&sources, Keep::Shown).unwrap_err().to_string();
        assert!(error.ends_with("0.txt: neither a report (*.json) nor a trace (*.trace) of tcam"));
    }
}
