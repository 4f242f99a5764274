// SPDX-License-Identifier: BSD-2-Clause
//! The reports of a run's ranks, and their sum.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use matching::QueueCounters;
use matching::measured::MeasuredTime;
use nic::draft;
use nic::report::{ChannelCounters, ContextCounters, Report, ReportError, WrittenAt};

use crate::error::Error;
use crate::file;
use crate::fresh;
use crate::json;
use crate::numbers::{count, percent, total};
use crate::origin;
use crate::ranks::Ranks;

/// Files in a directory that have this ending, in order.
fn files(directory: &Path, ending: &str) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
        let path = entry.map_err(Error::io(directory))?.path();
        if path.extension() == Some(OsStr::new(ending)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn json_files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    files(directory, "json")
}

/// The drafts in a directory.
fn drafts(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut drafts = files(directory, draft::EXTENSION)?;
    drafts.retain(|path| {
        let mut head = [0; draft::MAGIC.len()];
        let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
        read.is_ok() && draft::is_draft(&head)
    });
    Ok(drafts)
}

/// Files of the reports of an earlier run; others are not ours.
///
/// # Errors
/// One of the others has the name of a report, in whose place one may come.
pub(crate) fn old(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = drafts(directory)?;
    for path in json_files(directory)? {
        let text = fs::read(&path).map_err(Error::io(&path))?;
        if is_report(&text) {
            let twin = path.with_extension("txt");
            files.extend(twin.is_file().then_some(twin));
            files.push(path);
        } else if !text.is_empty() && Report::writer(&text).is_none() && is_of_rank(&path) {
            return Err(Error::NoReportThere { path });
        }
    }
    Ok(files)
}

fn is_report(text: &[u8]) -> bool {
    let report = std::str::from_utf8(text).map(Report::from_json);
    matches!(report, Ok(Ok(_) | Err(ReportError::Counts(_))))
}

/// Whether its name is that of a report: `RANK.json`, or with more numbers behind.
fn is_of_rank(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str());
    name.is_some_and(|name| name.split('.').all(|word| word.parse::<u64>().is_ok()))
}

/// Makes a directory for reports and removes those of an earlier run; files
/// that are no reports of ours stay.
pub(crate) fn prepare(directory: &Path) -> Result<PathBuf, Error> {
    let directory = fresh::make(directory)?;
    for path in old(&directory)? {
        fs::remove_file(&path).map_err(Error::io(&path))?;
    }
    Ok(directory)
}

/// What ranks write their reports to in a run of ours, see `FI_TCAM_REPORT`: processes of
/// the same rank, as of a second program, must not write over each other.
pub(crate) const PATTERN: &str = "%r.%p";

/// Gives reports that are named by [`PATTERN`] the names of a run by hand, `RANK`; where
/// several processes were of that rank, the later ones keep `RANK.PID`. The run is over: drafts
/// become reports, where the disk has room for these.
pub(crate) fn settle(directory: &Path) -> Result<(), Error> {
    let drafts = drafts(directory)?;
    // A process may have been killed between its report and the end of its draft.
    let whole: Vec<_> = match drafts.as_slice() {
        [] => Vec::new(),
        _ => json_files(directory)?.iter().filter_map(|path| read_one(path).ok()).collect(),
    };
    let whole: BTreeSet<_> = whole.iter().map(endpoint).collect();
    for path in drafts {
        finish(directory, &path, &whole);
    }
    let mut firsts: BTreeMap<u64, u64> = BTreeMap::new();
    let files = json_files(directory)?;
    for (rank, pid) in files.iter().filter_map(|path| rank_and_pid(path)) {
        let first = firsts.entry(rank).or_insert(pid);
        *first = pid.min(*first);
    }
    for path in &files {
        let Some((rank, pid)) = rank_and_pid(path).filter(|(rank, pid)| firsts[rank] == *pid)
        else {
            continue;
        };
        for from in [path.clone(), path.with_extension("txt")] {
            let name = from.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let name = name.replacen(&format!("{rank}.{pid}"), &rank.to_string(), 1);
            match fs::rename(&from, directory.join(name)) {
                // The process ended between its two files.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                done => done.map_err(Error::io(&from))?,
            }
        }
    }
    Ok(())
}

/// Makes a report of a draft, unless there is one. What cannot be read or written stays as it is: it is read as it is,
/// and then it is told what is wrong.
fn finish(directory: &Path, draft: &Path, whole: &BTreeSet<Endpoint>) {
    let Ok(Some(report)) = read_draft(draft) else { return };
    if whole.contains(&endpoint(&report)) {
        let _ = fs::remove_file(draft);
        return;
    }
    let pid = u64::from(report.pid);
    let of_process = |path: &&PathBuf| rank_and_pid(path).is_some_and(|it| it.1 == pid);
    let taken = json_files(directory).unwrap_or_default();
    let number = match taken.iter().filter(of_process).count() {
        0 => String::new(),
        further => format!(".{further}"),
    };
    let rank = report.rank.unwrap_or(report.pid);
    let base = directory.join(format!("{rank}.{}{number}", report.pid));
    let at = |ending: &str| PathBuf::from(format!("{}.{ending}", base.display()));
    let Ok(json) = report.to_json() else { return };
    let (to_json, to_text) = (at("json"), at("txt"));
    if file::write_first(&to_json, json).is_ok() {
        if file::write_first(&to_text, report.to_string()).is_ok() {
            let _ = fs::remove_file(draft);
        } else {
            let _ = fs::remove_file(&to_json);
        }
    }
}

/// Rank and process in the name `RANK.PID.json` or, of a further endpoint, `RANK.PID.N.json`.
fn rank_and_pid(path: &Path) -> Option<(u64, u64)> {
    let mut words = path.file_stem()?.to_str()?.split('.').map(str::parse);
    Some((words.next()?.ok()?, words.next()?.ok()?))
}

/// Reads every report in a directory; each must be whole and add up. What is left of those that did
/// not come to be is in their drafts.
pub(crate) fn read(directory: &Path) -> Result<Vec<Report>, Error> {
    let mut reports = Vec::new();
    for path in json_files(directory)? {
        match read_one(&path) {
            // What `--json` wrote beside them.
            Err(Error::Report { .. })
                if fs::read_to_string(&path).is_ok_and(|text| json::is_ours(&text)) => {}
            report => reports.push(report?),
        }
    }
    let whole: BTreeSet<_> = reports.iter().map(endpoint).collect();
    for path in drafts(directory)? {
        // It goes when the report is there.
        match read_draft(&path) {
            Err(Error::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {}
            Ok(Some(report)) if !whole.contains(&endpoint(&report)) => reports.push(report),
            read => drop(read?),
        }
    }
    Ok(reports)
}

/// Reads a report, or a draft; it must be whole and add up.
pub(crate) fn read_one(path: &Path) -> Result<Report, Error> {
    if path.extension() == Some(OsStr::new(draft::EXTENSION)) {
        return read_draft(path)?.ok_or_else(|| Error::Neither(path.to_owned()));
    }
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    if text.trim().is_empty() {
        return Err(Error::EmptyReport { path: path.to_owned() });
    }
    Report::from_json(&text).map_err(|error| Error::Report { path: path.to_owned(), error })
}

/// What was put into a draft last; nothing if its process came to put nothing.
fn read_draft(path: &Path) -> Result<Option<Report>, Error> {
    let mut file = Vec::new();
    let most = draft::LENGTH as u64;
    let opened = fs::File::open(path).map_err(Error::io(path))?;
    opened.take(most).read_to_end(&mut file).map_err(Error::io(path))?;
    let report = draft::report(&file).transpose();
    report.map_err(|error| Error::Report { path: path.to_owned(), error })
}

/// What a report has in common with the traces of its endpoint: host, process and address.
pub(crate) type Endpoint = (String, u32, String);

/// The endpoint of a report.
pub(crate) fn endpoint(report: &Report) -> Endpoint {
    (report.host.clone(), report.pid, report.address.clone())
}

/// Most programs, or ranks without a report, that are named: a report may say anything.
pub(crate) const MISSING: usize = 16;

/// The most elements one queue ever held, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    /// Most elements at once.
    pub(crate) elements: u64,
    /// The rank, as far as it is known.
    pub(crate) rank: Option<u32>,
}

/// The version of libfabric in traces and reports of what `tcam workload` made.
pub(crate) const NO_LIBFABRIC: &str = "none";

/// The sum of a run's reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// Processes that wrote reports.
    pub(crate) processes: usize,
    /// Reports written when a process exited without closing its endpoint.
    pub(crate) at_exit: usize,
    /// Which ranks these are, and which there should be.
    pub(crate) ranks: Ranks,
    /// Ranks and processors of a host that has more of the former.
    pub(crate) crowd: Option<(u32, u32)>,
    /// What the ranks told of their run.
    pub(crate) origin: Vec<origin::Line>,
    /// All of it was replayed.
    pub(crate) replayed: bool,
    /// Why these may be reports of several runs.
    pub(crate) mixed: Option<String>,
    /// Version of libfabric.
    pub(crate) libfabric: String,
    /// Longest time an endpoint was open, in seconds.
    pub(crate) seconds: f64,
    /// Seconds that the timing model charged to all ranks together.
    pub(crate) modelled: f64,
    /// What matching took on all ranks together, if that was measured.
    pub(crate) measured: MeasuredTime,
    /// Tagged messages: those of MPI.
    pub(crate) tagged: ContextCounters,
    /// Untagged messages: those an MPI uses for itself.
    pub(crate) msg: ContextCounters,
    /// Traffic by channel.
    pub(crate) channels: BTreeMap<String, ChannelCounters>,
    /// Longest PRQ of tagged messages.
    pub(crate) prq_peak: Peak,
    /// Longest UMQ of tagged messages.
    pub(crate) umq_peak: Peak,
}

impl Summary {
    /// What the messages went over, and for how long.
    pub(crate) fn way(&self) -> String {
        match self.libfabric.as_str() {
            NO_LIBFABRIC => "generated".to_owned(),
            version => format!("over libfabric {version} in {:.2} s", self.seconds),
        }
    }

    /// Adds up what replays of traces counted; `None` of none.
    pub(crate) fn of_traces(reports: &[Report], ranks: &Ranks) -> Option<Self> {
        Self::of(reports).map(|sum| Self { replayed: true, ranks: ranks.clone(), ..sum })
    }

    /// What is missing, in a sentence; nothing where all ranks told all they counted.
    pub(crate) fn lack(&self) -> Option<String> {
        self.ranks.lack(if self.replayed { "trace" } else { "report" })
    }

    /// Why another run would have queues of other lengths, if it is crowded.
    pub(crate) fn turns(&self) -> Option<String> {
        let (ranks, cores) = self.crowd.filter(|_| self.tagged.umq.high_water > 0)?;
        Some(format!(
            "{} on {} take turns: how long the UMQ becomes depends on their scheduling, \
             `tcam sweep --repeat 3` tells how much",
            count(u64::from(ranks), "rank"),
            count(u64::from(cores), "processor")
        ))
    }

    /// `8 ranks`, `3 of 8 ranks` or `8 ranks, 1 cut short`.
    pub(crate) fn ranks(&self) -> String {
        match self.ranks.are_whole() {
            // Those of several programs as well.
            true => count(self.processes as u64, "rank"),
            false => self.ranks.count(),
        }
    }

    /// Adds reports up; `None` of none.
    pub(crate) fn of(reports: &[Report]) -> Option<Self> {
        let first = reports.first()?;
        let mut sum = Self { libfabric: first.libfabric.clone(), ..Self::default() };
        let mut processes = BTreeSet::new();
        for report in reports {
            if processes.insert((&report.host, report.pid)) {
                sum.ranks.note(report.rank, ranks_of(report));
            }
            if report.written_at == WrittenAt::Running {
                sum.ranks.note_cut(report.rank);
            }
            if report.libfabric == NO_LIBFABRIC {
                sum.ranks.note_generated();
            }
            sum.at_exit += usize::from(report.written_at == WrittenAt::Exit);
            sum.seconds = sum.seconds.max(report.elapsed_s);
            sum.modelled += report.modelled_s();
            sum.measured.merge(&report.measured());
            sum.tagged.merge(&report.tagged);
            sum.msg.merge(&report.msg);
            for (name, channel) in &report.channels {
                let all = sum.channels.entry(name.clone()).or_default();
                all.sent = total([all.sent, channel.sent]);
                all.sent_bytes = total([all.sent_bytes, channel.sent_bytes]);
                all.received = total([all.received, channel.received]);
                all.received_bytes = total([all.received_bytes, channel.received_bytes]);
            }
            sum.prq_peak.raise(report.tagged.prq.high_water, report.rank);
            sum.umq_peak.raise(report.tagged.umq.high_water, report.rank);
        }
        sum.processes = processes.len();
        sum.crowd = crowd(reports, &processes);
        sum.origin = origin::lines(reports);
        sum.mixed = mixed(reports.iter().map(source));
        Some(sum)
    }

    /// Share of the messages that a table matched, in per cent.
    pub(crate) fn in_table(&self) -> f64 {
        let (prq, umq) = (&self.tagged.prq, &self.tagged.umq);
        percent(total([prq.table_matches, umq.table_matches]), self.tagged.arrivals)
    }

    /// Share of the elements that fit their table at once, in per cent; all of none.
    pub(crate) fn at_once(&self) -> f64 {
        100.0 - self.spilled()
    }

    /// Share of the elements that went to the host and entered their table later, in per cent.
    pub(crate) fn promoted(&self) -> f64 {
        let (prq, umq) = (&self.tagged.prq, &self.tagged.umq);
        percent(total([prq.promotions, umq.promotions]), total([prq.inserts, umq.inserts]))
    }

    /// Share of the elements that did not fit their table, in per cent.
    pub(crate) fn spilled(&self) -> f64 {
        let (prq, umq) = (&self.tagged.prq, &self.tagged.umq);
        percent(total([prq.spills, umq.spills]), total([prq.inserts, umq.inserts]))
    }
}

/// Ranks and processors of the first host that has more of the former.
fn crowd(reports: &[Report], processes: &BTreeSet<(&String, u32)>) -> Option<(u32, u32)> {
    let mut hosts: BTreeMap<&String, u32> = BTreeMap::new();
    for (host, _) in processes {
        *hosts.entry(host).or_default() += 1;
    }
    reports.iter().find_map(|report| {
        let (ranks, cores) = (hosts.get(&report.host)?, report.origin.cores?);
        (*ranks > cores).then_some((*ranks, cores))
    })
}

/// How many ranks there were, as far as one of them knew: what its launcher said, or else the
/// addresses that its MPI gave it.
fn ranks_of(report: &Report) -> Option<u32> {
    let addresses = Some(report.processes).filter(|number| *number > 0);
    report.origin.ranks.or(report.rank.and(addresses))
}

/// Says that these are several programs, if they are.
fn several<'a>(programs: impl Iterator<Item = &'a str>) -> Option<String> {
    let programs: BTreeSet<&str> = programs.collect();
    (programs.len() > 1).then(|| {
        let programs: Vec<_> = programs.into_iter().take(MISSING).collect();
        format!(
            "These are several programs, whose counts tell nothing together: {}",
            programs.join(", ")
        )
    })
}

/// Who counted something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) program: &'a str,
    pub(crate) host: &'a str,
    pub(crate) pid: u32,
    pub(crate) rank: Option<u32>,
}

/// Why counts of these may be of several runs, which tell nothing together.
pub(crate) fn mixed<'a>(of: impl Iterator<Item = Source<'a>> + Clone) -> Option<String> {
    if let Some(several) = several(of.clone().map(|source| source.program)) {
        return Some(several);
    }
    let mut processes = BTreeMap::new();
    of.into_iter().find_map(|Source { host, pid, rank, .. }| {
        let (rank, process) = (rank?, (host, pid));
        let other = processes.insert(rank, process).filter(|other| *other != process)?;
        Some(format!("Rank {rank} was processes {} and {pid}: several runs?", other.1))
    })
}

fn source(report: &Report) -> Source<'_> {
    let Report { program, host, pid, rank, .. } = report;
    Source { program, host, pid: *pid, rank: *rank }
}

impl Peak {
    fn raise(&mut self, elements: u64, rank: Option<u32>) {
        if elements > self.elements {
            *self = Self { elements, rank };
        }
    }

    /// The higher of two peaks.
    pub(crate) fn highest(self, other: Self) -> Self {
        if other.elements > self.elements { other } else { self }
    }
}

/// Share of one queue's elements that did not fit its table, in per cent.
pub(crate) fn spilled(queue: &QueueCounters) -> f64 {
    percent(queue.spills, queue.inserts)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use matching::{BlockReasons, ByKind, KindCounters};
    use nic::report::{FORMAT, VERSION};

    /// A report whose counts add up: `posts` receives stood at once in a table
    /// of `entries`, and each got a message.
    pub(crate) fn sample(rank: u32, entries: u64, posts: u64) -> Report {
        let fit = posts.min(entries);
        let block_reasons = BlockReasons {
            table_full: if entries > 0 { posts - fit } else { 0 },
            disabled: if entries > 0 { 0 } else { posts },
            ..Default::default()
        };
        let of_prq = KindCounters {
            inserts: posts,
            searches: posts,
            table_matches: fit,
            host_matches: posts - fit,
            block_reasons: block_reasons.clone(),
            ..Default::default()
        };
        let of_umq = KindCounters { searches: posts, misses: posts, ..Default::default() };
        let kinds = |point_to_point| ByKind { point_to_point, ..Default::default() };
        let prq = QueueCounters {
            entries,
            inserts: posts,
            searches: posts,
            table_matches: fit,
            host_matches: posts - fit,
            spills: posts - fit,
            high_water: posts,
            table_high_water: fit,
            host_high_water: posts - fit,
            block_reasons,
            kinds: kinds(of_prq),
            ..QueueCounters::default()
        };
        let umq = QueueCounters {
            entries,
            searches: posts,
            misses: posts,
            kinds: kinds(of_umq),
            ..QueueCounters::default()
        };
        let kinds = ContextCounters::kinds_of(&prq, &umq);
        Report {
            format: FORMAT.to_owned(),
            version: VERSION,
            libfabric: "2.5".to_owned(),
            host: "node".to_owned(),
            pid: 100 + rank,
            rank: Some(rank),
            elapsed_s: 1.5 + f64::from(rank),
            tagged: ContextCounters {
                posts,
                arrivals: posts,
                prq,
                umq,
                kinds,
                ..Default::default()
            },
            ..Report::default()
        }
    }

    #[test]
    fn ranks_are_summed_and_the_worst_is_known() {
        let reports = [sample(0, 10, 25), sample(1, 10, 4), sample(3, 10, 7)];
        for report in &reports {
            report.check().unwrap();
        }
        let sum = Summary::of(&reports).unwrap();
        assert_eq!(sum.processes, 3);
        assert!(sum.lack().unwrap().contains("3 of 4 ranks: no report of rank 2;"));
        assert_eq!(sum.prq_peak, Peak { elements: 25, rank: Some(0) });
        assert_eq!(sum.umq_peak, Peak::default());
        assert_eq!(sum.tagged.prq.spills, 15);
        assert_eq!(sum.seconds, 4.5);
        assert!((sum.in_table() - 100.0 * 21.0 / 36.0).abs() < 1e-9);
        assert!((sum.spilled() - 100.0 * 15.0 / 36.0).abs() < 1e-9);
        sum.tagged.check().unwrap();
        assert!(Summary::of(&[]).is_none());
    }

    #[test]
    fn reports_of_several_runs_are_noticed() {
        let one = sample(0, 10, 25);
        let endpoint = Report { address: "127.0.0.1:2".to_owned(), ..one.clone() };
        let mixed = |other: &Report| Summary::of(&[one.clone(), other.clone()]).unwrap().mixed;
        assert_eq!(mixed(&endpoint), None);
        assert_eq!(mixed(&sample(1, 10, 25)), None);
        let again = Report { pid: 7, ..one.clone() };
        assert_eq!(mixed(&again).unwrap(), "Rank 0 was processes 100 and 7: several runs?");
        let other = Report { program: "ring".to_owned(), ..one.clone() };
        assert_eq!(
            mixed(&other).unwrap(),
            "These are several programs, whose counts tell nothing together: , ring"
        );
    }

    #[test]
    fn processes_of_the_same_rank_keep_a_report_each() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["0.12", "0.7", "0.7.1", "1.8", "1.8.1", "notes"] {
            fs::write(directory.path().join(format!("{name}.json")), name).unwrap();
            fs::write(directory.path().join(format!("{name}.txt")), name).unwrap();
        }
        fs::remove_file(directory.path().join("1.8.txt")).unwrap();
        settle(directory.path()).unwrap();
        let found = |name: &str| fs::read_to_string(directory.path().join(name)).ok();
        for (name, was) in [("0", "0.7"), ("0.1", "0.7.1"), ("0.12", "0.12"), ("1.1", "1.8.1")] {
            assert_eq!(found(&format!("{name}.json")).as_deref(), Some(was));
            assert_eq!(found(&format!("{name}.txt")).as_deref(), Some(was));
        }
        assert_eq!((found("1.json").as_deref(), found("1.txt")), (Some("1.8"), None));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 11);
    }

    #[test]
    fn drafts_become_reports_unless_these_are_there() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let put = |name: &str, report: &mut Report| {
            let mut file = draft::MAGIC.to_vec();
            file.resize(draft::LENGTH, 0);
            let mut slot = Vec::new();
            draft::put(report, 1, &mut slot).unwrap();
            file[draft::place(1)..][..slot.len()].copy_from_slice(&slot);
            fs::write(place(name), file).unwrap();
        };
        let cut = |rank| Report { written_at: WrittenAt::Running, ..sample(rank, 4, 5) };
        put("0.100.100.0.draft", &mut cut(0));
        put("1.101.101.0.draft", &mut cut(1));
        // Another endpoint of a process.
        let mut other = Report { address: "127.0.0.1:2".to_owned(), ..cut(1) };
        put("1.101.101.1.draft", &mut other);
        fs::write(place("0.100.json"), sample(0, 4, 9).to_json().unwrap()).unwrap();
        fs::write(place("x.draft"), "no draft of ours").unwrap();
        let read_all = || {
            let all = read(directory.path()).unwrap();
            all.iter().map(|it| (it.rank, it.tagged.posts)).collect::<Vec<_>>()
        };
        assert_eq!(read_all(), [(Some(0), 9), (Some(1), 5), (Some(1), 5)]);
        settle(directory.path()).unwrap();
        assert_eq!(read_all(), [(Some(0), 9), (Some(1), 5), (Some(1), 5)]);
        let ranks = Summary::of(&read(directory.path()).unwrap()).unwrap().ranks;
        assert_eq!((ranks.told(), ranks.cut_short()), (2, 1));
        for name in ["0.json", "1.json", "1.txt", "1.1.json", "1.1.txt", "x.draft"] {
            assert!(place(name).exists(), "{name}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 6);
        prepare(directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_has_the_name_of_a_report_and_is_none_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        put("0.json", "");
        put("1.json", "{\"format\": \"tcam-report\", \"pid\": 3, \"version\": 9}");
        put("package.json", "{}");
        prepare(directory.path()).unwrap();
        put("2.7.json", "{\"pid\": 3}");
        let error = prepare(directory.path()).unwrap_err().to_string();
        assert!(error.contains("2.7.json: is there and no report of tcam"), "{error}");
    }

    #[test]
    fn only_reports_are_read_and_only_old_reports_removed() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        put("0.json", &sample(0, 4, 2).to_json().unwrap());
        put("0.txt", "for people");
        put("notes.txt", "not ours");
        put("sum.json", "{\"format\": \"tcam-summary\", \"version\": 1}");
        assert_eq!(read(directory.path()).unwrap().len(), 1);
        put("other.json", "{\"a\": 1}");
        assert!(read(directory.path()).is_err());
        prepare(directory.path()).unwrap();
        let mut left: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["notes.txt", "other.json", "sum.json"]);
    }

    #[test]
    fn reports_of_before_lengths_levels_and_times_are_read() {
        let report = sample(0, 4, 9);
        let text = report.to_json().unwrap();
        let old: String = {
            let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
            value.as_object_mut().unwrap().remove("processes").unwrap();
            for context in ["tagged", "msg"] {
                value[context].as_object_mut().unwrap().remove("lengths").unwrap();
                for queue in ["prq", "umq"] {
                    let queue = value[context][queue].as_object_mut().unwrap();
                    queue.remove("measured").unwrap();
                    queue.remove("dedicated_levels").unwrap();
                }
            }
            value.to_string()
        };
        assert_eq!(Report::from_json(&old).unwrap(), report);
    }

    #[test]
    fn counts_that_do_not_add_up_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mut report = sample(0, 4, 9);
        report.tagged.prq.promotions += 1;
        let refused = |report: &Report| {
            fs::write(directory.path().join("0.json"), report.to_json().unwrap()).unwrap();
            read(directory.path()).unwrap_err().to_string()
        };
        let error = refused(&report);
        assert!(error.contains("0.json: the counts do not add up: tagged: prq"), "{error}");
        report = sample(0, 4, 9);
        report.tagged.prq.kinds.collective.block_reasons.table_full += 1;
        assert!(refused(&report).contains("prq: block reasons: collective + point-to-point"));
        report = sample(0, 4, 9);
        report.tagged.kinds.collective.arrivals += 1;
        assert!(refused(&report).contains("tagged: kinds = what prq and umq counted"));
    }
}
