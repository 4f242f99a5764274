// SPDX-License-Identifier: BSD-2-Clause
//! Manages the directories of runs. A file `run.tcam` beside the reports and traces of a run
//! records its command and its exit status. A sweep has a directory for each of its runs.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use host::regular;
use serde::{Deserialize, Serialize};

use super::{Kind, reports};
use crate::error::Error;
use crate::file;

/// Name of the file with the program's output, in the directory of a run.
pub(crate) const LOG: &str = "output.log";

/// Returns the name of the directory of a run of a sweep: table sizes and number of the repeat.
pub(crate) fn name_of(prq: usize, umq: usize, repeat: u32) -> String {
    format!("prq{prq}-umq{umq}-{repeat}")
}

/// Returns true for a name that [`name_of`] returns.
fn is_run(name: &str) -> bool {
    let numbers = || {
        let (prq, rest) = name.strip_prefix("prq")?.split_once("-umq")?;
        let (umq, repeat) = rest.split_once('-')?;
        Some((prq.parse().ok()?, umq.parse().ok()?, repeat.parse().ok()?))
    };
    numbers().is_some_and(|(prq, umq, repeat)| name_of(prq, umq, repeat) == name)
}

/// Returns the directories of the runs of a sweep, sorted by name.
pub(crate) fn runs_in(out: &Path) -> Result<Vec<PathBuf>, Error> {
    let place = out.join("runs");
    let mut runs = Vec::new();
    for entry in fs::read_dir(&place).map_err(Error::io(&place))? {
        let entry = entry.map_err(Error::io(&place))?;
        if is_run(&entry.file_name().to_string_lossy()) {
            runs.push(entry.path());
        }
    }
    runs.sort();
    Ok(runs)
}

/// Checks before a sweep the directories of earlier runs. Fails if one contains a file of another
/// program that a report would replace.
pub(crate) fn check(out: &Path) -> Result<(), Error> {
    let earlier = if out.join("runs").is_dir() { runs_in(out)? } else { Vec::new() };
    earlier.iter().try_for_each(|run| reports::old(run).map(drop))
}

/// Removes the curve of an earlier sweep, and the runs of that sweep that the new sweep does not
/// repeat. Files that tcam did not write stay.
pub(crate) fn clear(out: &Path, pairs: &[(usize, usize)], repeats: u32) -> Result<(), Error> {
    for name in ["curve.svg", "curve.png"] {
        file::remove(&out.join(name))?;
    }
    let ours: Vec<_> = (1..=repeats)
        .flat_map(|repeat| pairs.iter().map(move |&(prq, umq)| name_of(prq, umq, repeat)))
        .collect();
    for path in runs_in(out)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if ours.iter().any(|run| *run == name) {
            continue;
        }
        for report in reports::old(&path)? {
            file::remove(&report)?;
        }
        file::remove(&path.join(LOG))?;
        file::remove(&path.join(RECORD))?;
        // The directory stays if it contains other files.
        let _ = fs::remove_dir(&path);
    }
    Ok(())
}

/// Name of the file with the record of a run. It contains JSON but does not end in `.json`, because
/// scripts read all `*.json` as reports.
const RECORD: &str = "run.tcam";
/// Version of the format of records.
const RECORD_VERSION: u32 = 1;
/// Largest size of a record that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// A run that tcam started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    format: Kind,
    version: u32,
    tcam: String,
    /// The launcher, its options and the program.
    pub(crate) command: Vec<String>,
    /// Exit status as a shell reports it: 128 + signal for a program that a signal ended.
    pub(crate) exit_status: u8,
    /// The host of the launcher.
    pub(crate) host: String,
    /// Number of processors of this host that the launcher could use, by affinity, cpuset and
    /// quota.
    pub(crate) processors: usize,
    /// The job of the ranks, see [`nic::origin::Origin::job`].
    pub(crate) job: u64,
    /// True if places in the program were recorded (`--sites`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) sites: bool,
    /// The placement for which `tcam answer` recorded the run.
    #[serde(flatten)]
    pub(crate) placed: RecordedPlacement,
}

/// A rule for the placement of ranks on nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedPlacement {
    /// Number of ranks on a node; `None` without a placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ppn: Option<NonZeroU32>,
    /// True if ranks are dealt out to all nodes in turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cyclic: bool,
}

impl RunRecord {
    /// Makes a record of a run that was started on this host.
    pub(crate) fn new(command: Vec<String>, exit_status: u8, processors: usize, job: u64) -> Self {
        Self {
            format: Kind::Run,
            version: RECORD_VERSION,
            tcam: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            exit_status,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            processors,
            job,
            sites: false,
            placed: RecordedPlacement::default(),
        }
    }

    /// Writes the record to a directory, and replaces an earlier one.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(self).map_err(Error::Json)?;
        text.push('\n');
        file::write(&directory.join(RECORD), text)
    }

    /// Reads the record of a directory of reports or traces. Returns `None` if there is no record,
    /// or a file of another kind or version.
    pub(crate) fn beside(directory: &Path) -> Option<Self> {
        let text = regular::read_text(&directory.join(RECORD), LONGEST).ok()?;
        let record: Self = serde_json::from_str(&text).ok()?;
        (matches!(record.format, Kind::Run) && record.version == RECORD_VERSION).then_some(record)
    }

    /// Returns true if one of these jobs is the job of the run.
    pub(crate) fn is_of(&self, jobs: impl IntoIterator<Item = Option<u64>>) -> bool {
        jobs.into_iter().any(|job| job == Some(self.job))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::results::reports;
    use crate::results::reports::tests::sample;

    #[test]
    fn clearing_a_sweep_keeps_foreign_files() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path();
        let put = |name: &str| {
            let path = out.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, sample(0, 4, 2).to_json().unwrap()).unwrap();
        };
        let gone = ["curve.svg", "curve.png", "runs/prq1-umq1-1/0.json", "runs/prq8-umq8-2/0.json"];
        let stay = [
            "notes.svg",
            "runs/prq8-umq8-1/0.json",
            "runs/prq08-umq8-1/0.json",
            "runs/mine/0.json",
            "runs/prq2-umq2-1/notes",
        ];
        gone.iter().chain(&stay).for_each(|name| put(name));
        put("runs/prq1-umq1-1/output.log");
        RunRecord::new(Vec::new(), 0, 1, 1).write(&out.join("runs/prq1-umq1-1")).unwrap();
        clear(out, &[(8, 8)], 1).unwrap();
        for name in gone {
            assert!(!out.join(name).exists(), "{name}");
        }
        for name in stay {
            assert!(out.join(name).exists(), "{name}");
        }
        assert!(!out.join("runs/prq1-umq1-1").exists());
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_is_no_report() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        assert_eq!(RunRecord::beside(place), None);
        let mut record = RunRecord::new(vec!["app".to_owned()], 3, 2, 7);
        record.placed = RecordedPlacement { ppn: NonZeroU32::new(4), cyclic: true };
        record.write(place).unwrap();
        assert_eq!(RunRecord::beside(place).as_ref(), Some(&record));
        fs::write(place.join("0.json"), sample(0, 4, 2).to_json().unwrap()).unwrap();
        assert_eq!(reports::read(place).unwrap().len(), 1);
        // Reports of another run may have been written there since.
        assert!(!record.is_of([None, Some(8)]) && record.is_of([Some(8), Some(7)]));
    }

    #[test]
    fn records_of_other_versions_are_ignored() {
        let directory = tempfile::tempdir().unwrap();
        for text in ["", "{}", "[1]", "{\"format\": \"tcam-summary\", \"version\": 1}"] {
            fs::write(directory.path().join(RECORD), text).unwrap();
            assert_eq!(RunRecord::beside(directory.path()), None, "{text}");
        }
        RunRecord { version: 2, ..RunRecord::new(Vec::new(), 0, 1, 1) }
            .write(directory.path())
            .unwrap();
        assert_eq!(RunRecord::beside(directory.path()), None);
    }
}
