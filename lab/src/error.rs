// SPDX-License-Identifier: BSD-2-Clause
//! Errors, as messages for users.

use std::path::PathBuf;

use nic::clusters::ClustersError;
use nic::params::ParamError;
use nic::params::config::ConfigError;
use nic::report::ReportError;
use nic::trace::TraceError;

use crate::hint;

/// A failure of tcam, or of the program that it ran.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{}", hint::explained(.0))]
    Param(#[from] ParamError),

    /// A file or a directory that cannot be used.
    #[error("{path}: {why}")]
    File { path: PathBuf, why: String },

    #[error("{path}: {error}")]
    Clusters { path: PathBuf, error: ClustersError },

    #[error("FI_TCAM_CONFIG={path}: {}", hint::of_config(.error))]
    Config { path: PathBuf, error: ConfigError },

    #[error("--set {name}: use {option}")]
    OwnOption { name: String, option: &'static str },

    #[error(
        "{path}: the name of a report directory must be UTF-8; without --report that is TMPDIR's"
    )]
    NoText { path: PathBuf },

    #[error("{path}: is there and no report of tcam; it stays as it is: give another directory")]
    NoReportThere { path: PathBuf },

    #[error("{path}: {by} writes to it: wait until it has ended, or give another directory")]
    InUse { path: PathBuf, by: String },

    #[error("{path}: {expected}")]
    OtherFile { path: PathBuf, expected: &'static str },

    /// Reports were given, which have sums only.
    #[error("{option}: takes traces, of `tcam record`: reports do not have each operation")]
    NoOperations { option: &'static str },

    #[error("--from {from} and --to {to}: nothing is between them")]
    EmptyWindow { from: f64, to: f64 },

    #[error("no tagged message was recorded here: a sweep is about their tables")]
    NothingTagged,

    #[error("{path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },

    #[error("--json -: standard output is the program's; give a file")]
    OutputOfProgram,

    #[error("--csv - and --json -: only one of them can go to standard output")]
    OneOutput,

    #[error("no CSV can be made of this: {0}")]
    NoCsv(csv::Error),

    #[error("no JSON can be made of this: {0}")]
    Json(serde_json::Error),

    #[error("{path}: {error}{}", hint::of_trace(.path, .error))]
    Trace { path: PathBuf, error: TraceError },

    #[error("{path}: no trace (*.trace) there; `tcam record` makes them{}", hint::foreign(.0), path = .0.display())]
    NoTraces(PathBuf),

    #[error("{path}: every trace there was cut off before its first record", path = .0.display())]
    AllCut(PathBuf),

    #[error(
        "{path}: the {queue} of {of} has more than {limit} elements; if there is memory for more, \
         --max-queue says how many"
    )]
    QueueTooLong { path: PathBuf, queue: &'static str, of: String, limit: usize },

    #[error(
        "{path}: neither reports (*.json) nor traces (*.trace) there; `tcam run --report` and \
         `tcam record` make them{}", hint::foreign(.0), path = .0.display()
    )]
    NothingThere(PathBuf),

    #[error(
        "{path}: neither a report (*.json) nor a trace (*.trace) of tcam{}",
        hint::foreign(.0), path = .0.display()
    )]
    Neither(PathBuf),

    #[error(
        "{directory}: neither reports (*.json) nor traces (*.trace) there, but in {of}: give one"
    )]
    Below { directory: PathBuf, of: String },

    /// The directory of a sweep was given instead of one of its runs.
    #[error("{directory}: of `tcam sweep`; its runs have the reports: give one, such as {run}")]
    OfSweep { directory: PathBuf, run: PathBuf },

    /// Traces of several runs, or copies, were given.
    #[error("{first} and {second} are of the same endpoint: give the traces of one run", first = first.display(), second = second.display())]
    SameEndpoint { first: PathBuf, second: PathBuf },

    #[error("the replay went wrong: {0}")]
    Replay(String),

    #[error(
        "the pool has no room for all endpoints, or their reserved shares are more than it has"
    )]
    Pool,

    #[error("no report of process {pid} at {address} to compare with")]
    NoReportOf { pid: u32, address: String },

    #[error("--against {path}: {why}")]
    Against { path: PathBuf, why: &'static str },

    #[error("{program}: cannot be started: {error}")]
    Start { program: String, error: std::io::Error },

    #[error("signals cannot be waited for: {error}")]
    Signals { error: std::io::Error },

    #[error("Ctrl-C a second time: not waiting for the program")]
    Interrupted,

    #[error("{path}: {}", hint::of_report(.error))]
    Report { path: PathBuf, error: ReportError },

    #[error("--umq has {umq} sizes and --prq {prq}: give `same`, one size, or as many")]
    Lengths { prq: usize, umq: usize },

    #[error("no rank wrote a report: {why}")]
    NoReports { why: String },

    #[error("the program failed with\n{what}\nthe end of {log}:\n{tail}", log = log.display())]
    Program { what: String, code: u8, log: PathBuf, tail: String },

    #[error("the picture could not be drawn: {0}")]
    Draw(String),

    /// An error of one place, which no caller handles.
    #[error("{0}")]
    Message(String),

    #[error("{0}")]
    Device(#[from] nic::device::DeviceError),
}

impl Error {
    pub(crate) fn file(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::File { path: path.into(), why: why.into() }
    }

    /// An adapter for `map_err` on file operations.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |error| Self::Io { path, error }
    }
}
