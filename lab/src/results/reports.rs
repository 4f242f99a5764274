// SPDX-License-Identifier: BSD-2-Clause
//! Reads and writes the reports of the ranks of a run. A draft is the incomplete report of a
//! process that still runs, or that ended without a report.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use host::regular;
use nic::draft;
use nic::report::{Report, ReportError};

use super::{json, output_directory};
use crate::error::Error;
use crate::file;

/// Largest size of a report in bytes: 1,048,576 sources, the most that a queue counts, in each of
/// four queues, with up to 32 bytes for each source.
const LONGEST: u64 = (4 * 32) << 20;

/// Returns the files in a directory with this ending, sorted by path.
pub(crate) fn files(directory: &Path, ending: &str) -> Result<Vec<PathBuf>, Error> {
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

/// Returns the drafts in a directory, without files that tcam did not write.
fn drafts(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut drafts = files(directory, draft::EXTENSION)?;
    drafts.retain(|path| {
        let mut head = [0; draft::MAGIC.len()];
        let read = regular::open(path).and_then(|mut file| file.read_exact(&mut head));
        read.is_ok() && draft::is_draft(&head)
    });
    Ok(drafts)
}

/// Returns the files of the reports and drafts of an earlier run, without files that tcam did not
/// write.
///
/// # Errors
/// If another file has the name of a report, which a new report would replace.
pub(crate) fn old(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = drafts(directory)?;
    for path in json_files(directory)? {
        let text = regular::read(&path, LONGEST).map_err(Error::io(&path))?;
        if is_report(&text) {
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

/// Returns true for the name of a report: `RANK.json`, or a name with further numbers, such as
/// `RANK.PID.json`.
fn is_of_rank(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str());
    name.is_some_and(|name| name.split('.').all(|word| word.parse::<u64>().is_ok()))
}

/// Makes a directory for reports and removes the reports and drafts of an earlier run. Other files
/// stay. Returns the full path of the directory.
pub(crate) fn prepare(directory: &Path) -> Result<PathBuf, Error> {
    let directory = output_directory::make(directory)?;
    for path in old(&directory)? {
        fs::remove_file(&path).map_err(Error::io(&path))?;
    }
    Ok(directory)
}

/// Pattern of `FI_TCAM_REPORT` in a run of tcam. Several processes may have the same rank, for
/// example those of a second program. They must not write to the same file.
pub(crate) const PATTERN: &str = "%r.%p";

/// Renames reports with names of [`PATTERN`] to `RANK.json`, or to `RANK.N.json` for further
/// endpoints of the process. If several processes had that rank, the process with the lowest id
/// gets these names, and the others keep `RANK.PID.json`. Also makes reports from drafts, if the
/// disk has space for them. Must be called after the run, because a draft of a running process
/// would become a report.
pub(crate) fn settle(directory: &Path) -> Result<(), Error> {
    let drafts = drafts(directory)?;
    // A process may be killed after it wrote its report and before it removed its draft.
    let whole: BTreeSet<_> = match drafts.as_slice() {
        [] => BTreeSet::new(),
        _ => {
            let of = |path: &PathBuf| read_one(path).map(|report| endpoint(&report)).ok();
            json_files(directory)?.iter().filter_map(of).collect()
        }
    };
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
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.replacen(&format!("{rank}.{pid}"), &rank.to_string(), 1);
        fs::rename(path, directory.join(name)).map_err(Error::io(path))?;
    }
    Ok(())
}

/// Makes a report from a draft and removes the draft. If the endpoint is in `whole`, the endpoints
/// that have a report, only removes the draft. A draft that cannot be read, or whose report cannot
/// be written, stays; a later read reports the error.
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
    if write(directory, &format!("{rank}.{pid}{number}"), &report).is_ok() {
        let _ = fs::remove_file(draft);
    }
}

/// Writes a report. Fails if a file of this name exists.
pub(crate) fn write(directory: &Path, name: &str, report: &Report) -> Result<(), Error> {
    let path = directory.join(format!("{name}.json"));
    let content = report.to_json().map_err(|error| Error::Report { path: path.clone(), error })?;
    file::write_first(&path, content)
}

/// Returns rank and process id from the name `RANK.PID.json` or, for a further endpoint,
/// `RANK.PID.N.json`. Returns `None` for another name.
fn rank_and_pid(path: &Path) -> Option<(u64, u64)> {
    let mut words = path.file_stem()?.to_str()?.split('.').map(str::parse);
    Some((words.next()?.ok()?, words.next()?.ok()?))
}

/// Reads every report in a directory, see [`each`].
pub(crate) fn read(directory: &Path) -> Result<Vec<Report>, Error> {
    let mut reports = Vec::new();
    each(directory, |_, report| reports.push(report))?;
    Ok(reports)
}

/// Reads every report in a directory and passes it to `take`, one after the other. Fails for a
/// report that is incomplete or does not add up. For endpoints without a report, reads their
/// drafts.
pub(crate) fn each(directory: &Path, mut take: impl FnMut(&Path, Report)) -> Result<(), Error> {
    // A process removes its draft after it has written its report. So the drafts are listed first.
    // If a draft no longer exists when it is read, its report exists.
    let drafts = drafts(directory)?;
    let mut known = BTreeSet::new();
    each_complete(directory, &mut known, &mut take)?;
    let mut is_one_gone = false;
    let mut taken = Vec::new();
    for path in drafts {
        match read_draft(&path) {
            Err(Error::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
                is_one_gone = true;
            }
            Ok(Some(report)) if !known.contains(&endpoint(&report)) => {
                taken.push(endpoint(&report));
                take(&path, report);
            }
            read => drop(read?),
        }
    }
    known.extend(taken);
    if is_one_gone { each_complete(directory, &mut known, &mut take) } else { Ok(()) }
}

/// Reads the complete reports in a directory and passes those of endpoints that are not in `known`
/// to `take`. Adds these endpoints to `known`.
fn each_complete(
    directory: &Path,
    known: &mut BTreeSet<Endpoint>,
    take: &mut impl FnMut(&Path, Report),
) -> Result<(), Error> {
    let mut found = Vec::new();
    for path in json_files(directory)? {
        match read_one(&path) {
            // A file that `--json` wrote to the same directory is no report.
            Err(Error::Report { .. })
                if regular::read_text(&path, LONGEST).is_ok_and(|text| json::is_ours(&text)) => {}
            report => {
                let report = report?;
                let endpoint = endpoint(&report);
                if !known.contains(&endpoint) {
                    found.push(endpoint);
                    take(&path, report);
                }
            }
        }
    }
    known.extend(found);
    Ok(())
}

/// Reads a report or a draft. Fails if it is incomplete or does not add up, and for a draft without
/// content.
pub(crate) fn read_one(path: &Path) -> Result<Report, Error> {
    if path.extension() == Some(OsStr::new(draft::EXTENSION)) {
        return read_draft(path)?.ok_or_else(|| Error::Neither(path.to_owned()));
    }
    let text = regular::read_text(path, LONGEST).map_err(Error::io(path))?;
    if text.trim().is_empty() {
        let why = "an empty file: its rank ended before it wrote its report";
        return Err(Error::file(path, why));
    }
    Report::from_json(&text).map_err(|error| Error::Report { path: path.to_owned(), error })
}

/// Reads the last state of a draft. Returns `None` if its process wrote no state.
fn read_draft(path: &Path) -> Result<Option<Report>, Error> {
    let mut file = Vec::new();
    let most = draft::LENGTH as u64;
    let opened = regular::open(path).map_err(Error::io(path))?;
    opened.take(most).read_to_end(&mut file).map_err(Error::io(path))?;
    let report = draft::report(&file).transpose();
    report.map_err(|error| Error::Report { path: path.to_owned(), error })
}

/// Identifies an endpoint in reports and traces: host, process id and address.
pub(crate) type Endpoint = (String, u32, String);

/// Returns the endpoint of a report.
pub(crate) fn endpoint(report: &Report) -> Endpoint {
    (report.host.clone(), report.pid, report.address.clone())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::results::{Peak, Summary};
    use matching::QueueCounters;
    use matching::{BlockReasons, ByKind, KindCounters};
    use nic::report::{ContextCounters, FORMAT, VERSION, WrittenAt};

    /// Makes a report whose counts add up: `posts` receives were at once in a table of `entries`
    /// entries, and each got a message.
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

    /// Writes a draft with this report.
    pub(crate) fn put_draft(path: &Path, report: &mut Report) {
        let mut file = draft::MAGIC.to_vec();
        file.resize(draft::LENGTH, 0);
        let mut slot = Vec::new();
        draft::put(report, 1, &mut slot).unwrap();
        file[draft::place(1)..][..slot.len()].copy_from_slice(&slot);
        fs::write(path, file).unwrap();
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
    fn ranks_that_a_job_has_spawned_are_no_other_run() {
        let of = |rank, pid, ranks, job| {
            let mut report = sample(rank, 10, 25);
            (report.pid, report.origin.ranks, report.origin.job) = (pid, Some(ranks), job);
            report
        };
        let summary = |job| {
            let parents = (0..2).map(|rank| of(rank, 100 + rank, 2, job));
            let spawned = (0..4).map(|rank| of(rank, 200 + rank, 4, job));
            Summary::of(&parents.chain(spawned).collect::<Vec<_>>()).unwrap()
        };
        let sum = summary(Some(7));
        assert_eq!((sum.mixed, sum.ranks.are_whole(), sum.ranks.present()), (None, true, 6));
        // Without a job they may be of another run.
        assert!(summary(None).mixed.is_some());
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
        }
        settle(directory.path()).unwrap();
        let found = |name: &str| fs::read_to_string(directory.path().join(name)).ok();
        for (name, was) in
            [("0", "0.7"), ("0.1", "0.7.1"), ("0.12", "0.12"), ("1", "1.8"), ("1.1", "1.8.1")]
        {
            assert_eq!(found(&format!("{name}.json")).as_deref(), Some(was));
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 6);
    }

    #[test]
    fn drafts_become_reports_unless_these_are_there() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let put = |name: &str, report: &mut Report| put_draft(&place(name), report);
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
        assert_eq!((ranks.present(), ranks.cut_short()), (2, 1));
        for name in ["0.json", "1.json", "1.1.json", "x.draft"] {
            assert!(place(name).exists(), "{name}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
        prepare(directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_process_that_ends_while_its_draft_is_read_counts_once() {
        let directory = tempfile::tempdir().unwrap();
        let draft = |rank: u32| directory.path().join(format!("{rank}.draft"));
        for rank in 0..2 {
            let written_at = WrittenAt::Running;
            put_draft(&draft(rank), &mut Report { written_at, ..sample(rank, 4, 5) });
        }
        let mut seen = Vec::new();
        let take = |_: &Path, report: Report| {
            // Both processes end when the first draft was read.
            for rank in (0..2).filter(|_| seen.is_empty()) {
                write(directory.path(), &rank.to_string(), &sample(rank, 4, 5)).unwrap();
                fs::remove_file(draft(rank)).unwrap();
            }
            seen.push(report.rank);
        };
        each(directory.path(), take).unwrap();
        assert_eq!(seen, [Some(0), Some(1)]);
    }

    #[test]
    fn a_foreign_file_with_the_name_of_a_report_is_an_error() {
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
        assert!(refused(&report).contains("tagged: kinds = prq by kind + umq by kind"));
    }
}
