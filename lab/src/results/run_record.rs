// SPDX-License-Identifier: BSD-2-Clause
//! `run.tcam`: the command and the end of a run, in the directory of its reports and traces.

use std::path::Path;

use host::regular;
use serde::{Deserialize, Serialize};

use super::json::Kind;
use super::ranks::Ended;
use crate::error::Error;
use crate::file;

/// Name of the file. It contains JSON, but has no such ending, because scripts read all `*.json` as
/// reports.
pub(crate) const NAME: &str = "run.tcam";
/// Version of its format.
const VERSION: u32 = 1;
/// Largest size of the file, in bytes.
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
    /// Processors that the launcher could use there, by affinity, cpuset and quota.
    pub(crate) processors: usize,
    /// The job of the ranks, see [`nic::origin::Origin::job`].
    pub(crate) job: u64,
}

impl RunRecord {
    /// Makes a record of a run on this host.
    pub(crate) fn new(command: Vec<String>, exit_status: u8, processors: usize, job: u64) -> Self {
        Self {
            format: Kind::Run,
            version: VERSION,
            tcam: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            exit_status,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            processors,
            job,
        }
    }

    /// Writes the record to a directory, and replaces an earlier one.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(self).map_err(Error::Json)?;
        text.push('\n');
        file::write(&directory.join(NAME), text)
    }

    /// Reads the record of a directory of reports or traces. Returns none for a recording of an
    /// earlier version, and for a file of another kind or of a later version.
    pub(crate) fn beside(directory: &Path) -> Option<Self> {
        let text = regular::read_text(&directory.join(NAME), LONGEST).ok()?;
        let record: Self = serde_json::from_str(&text).ok()?;
        (matches!(record.format, Kind::Run) && record.version == VERSION).then_some(record)
    }

    /// Returns true if one of these jobs is that of the run.
    pub(crate) fn is_of(&self, jobs: impl IntoIterator<Item = Option<u64>>) -> bool {
        jobs.into_iter().any(|job| job == Some(self.job))
    }

    /// Returns how the program ended.
    pub(crate) fn ended(&self) -> Ended {
        Ended { status: self.exit_status }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::results::reports;
    use crate::results::reports::tests::sample;

    #[test]
    fn a_record_is_read_as_it_was_written_and_is_no_report() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        assert_eq!(RunRecord::beside(place), None);
        let record = RunRecord::new(vec!["app".to_owned()], 3, 2, 7);
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
            fs::write(directory.path().join(NAME), text).unwrap();
            assert_eq!(RunRecord::beside(directory.path()), None, "{text}");
        }
        RunRecord { version: 2, ..RunRecord::new(Vec::new(), 0, 1, 1) }
            .write(directory.path())
            .unwrap();
        assert_eq!(RunRecord::beside(directory.path()), None);
    }
}
