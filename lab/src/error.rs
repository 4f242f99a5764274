// SPDX-License-Identifier: BSD-2-Clause
//! Errors, as messages for users.

use std::path::PathBuf;

use nic::clusters::ClustersError;
use nic::params::ParamError;
use nic::params::config::ConfigError;
use nic::report::ReportError;
use nic::trace::TraceError;

use crate::hint;

/// Makes an `Error::Message`: an error that one place makes and no caller handles.
macro_rules! message {
    ($($part:tt)*) => { $crate::error::Error::Message(format!($($part)*)) };
}

/// Returns from the function with an `Error::Message`.
macro_rules! fail {
    ($($part:tt)*) => { return Err(message!($($part)*)) };
}

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

    #[error("{path}: is there and no report of tcam; it stays as it is: give another directory")]
    NoReportThere { path: PathBuf },

    #[error("no tagged message was recorded here, and only these are in the tables")]
    NothingTagged,

    #[error("{path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },

    #[error("no JSON can be made of this: {0}")]
    Json(serde_json::Error),

    #[error("{path}: {error}{}", hint::of_trace(.path, .error))]
    Trace { path: PathBuf, error: TraceError },

    #[error(
        "{path}: no trace (*.trace) there; `tcam run --trace DIR` makes them{}{}",
        hint::foreign(.0), hint::unfinished(.0), path = .0.display()
    )]
    NoTraces(PathBuf),

    #[error("{path}: every trace there was cut off before its first record", path = .0.display())]
    AllCut(PathBuf),

    #[error(
        "{path}: the {queue} of {of} has more than {limit} elements; if there is memory for more, \
         --max-queue says how many"
    )]
    QueueTooLong { path: PathBuf, queue: &'static str, of: String, limit: usize },

    #[error(
        "{path}: neither a report (*.json) nor a trace (*.trace) of tcam{}",
        hint::foreign(.0), path = .0.display()
    )]
    Neither(PathBuf),

    /// Traces of several runs, or copies, were given.
    #[error("{first} and {second} are of the same endpoint: give the traces of one run", first = first.display(), second = second.display())]
    SameEndpoint { first: PathBuf, second: PathBuf },

    #[error("the replay went wrong: {0}")]
    Replay(String),

    #[error(
        "the pool has no room for all endpoints, or their reserved shares are more than it has"
    )]
    Pool,

    #[error("{program}: cannot be started: {error}")]
    Start { program: String, error: std::io::Error },

    #[error("Ctrl-C a second time: not waiting for the program")]
    Interrupted,

    #[error("{path}: {}", hint::of_report(.path, .error))]
    Report { path: PathBuf, error: ReportError },

    #[error("no rank wrote a report: {why}")]
    NoReports { why: String },

    #[error("the program failed with\n{what}\nthe end of {log}:\n{tail}", log = log.display())]
    Program { what: String, code: u8, log: PathBuf, tail: String },

    #[error("the picture could not be drawn: {0}")]
    Draw(String),

    /// An error that one place makes and no caller handles.
    #[error("{0}")]
    Message(String),

    #[error("{0}")]
    Device(#[from] nic::device::DeviceError),
}

impl Error {
    pub(crate) fn file(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::File { path: path.into(), why: why.into() }
    }

    /// Returns an adapter for `map_err` on operations with a file.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        |error| Self::Io { path, error }
    }
}
