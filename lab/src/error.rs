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

    #[error("{option} {word}: NAME=VALUE is expected, {}", hint::of_setting(.word))]
    Setting { option: &'static str, word: String },

    #[error("--set {name}: use {option}")]
    OwnOption { name: String, option: &'static str },

    /// A parameter of a run was set for a replay.
    #[error("{option} {name}: {why}")]
    OfRuns { option: &'static str, name: String, why: &'static str },

    #[error("{option} {name}={first} and {name}={second}: give one of them")]
    SetTwice { option: &'static str, name: String, first: String, second: String },

    #[error("{option} and --set {name}: give one of them")]
    Twice { option: &'static str, name: &'static str },

    #[error("{option}: places the ranks of a recording, give it with --trace")]
    PlacesTraces { option: &'static str },

    #[error("--pool: the device has no pool; --set pool=node gives it one")]
    NoPool,

    #[error("--pool: a pool has 1 to 65536 entries")]
    EmptyPool,

    #[error("{option}: --trace replays what was recorded and runs nothing; leave it out")]
    NothingIsRun { option: &'static str },

    #[error(
        "the provider libtcam-fi.so was not found ({searched}); build it with \
         `cargo build --release -p tcam-provider`, or give its place with --provider"
    )]
    NoProvider { searched: String },

    #[error("{path}: no libtcam-fi.so there")]
    NoLibrary { path: PathBuf },

    #[error(
        "{path}: the name of a report directory must be UTF-8; without --report that is TMPDIR's"
    )]
    NoText { path: PathBuf },

    #[error("{path}: libfabric takes a `:` for the end of a directory: put the provider elsewhere")]
    Colon { path: PathBuf },

    /// The obstacle to the directory of the endpoints' segments.
    #[error("{0}")]
    Directory(String),

    #[error("{path}: is there and no report of tcam; it stays as it is: give another directory")]
    NoReportThere { path: PathBuf },

    #[error("{path}: {by} writes to it: wait until it has ended, or give another directory")]
    InUse { path: PathBuf, by: String },

    #[error("--out {path}: {expected}")]
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

    #[error("{path}: no trace (*.trace) there; `tcam record` makes them{}", hint::of_other_tool(.0), path = .0.display())]
    NoTraces(PathBuf),

    #[error(
        "{path}: the {queue} of {of} has more than {limit} elements; if there is memory for more, \
         --max-queue says how many"
    )]
    QueueTooLong { path: PathBuf, queue: &'static str, of: String, limit: usize },

    #[error("--placement {path} has the node of every rank: leave --ppn out")]
    PlacedTwice { path: PathBuf },

    #[error("--placement block and cyclic need --ppn P, the number of ranks on a node")]
    NoPpn,

    #[error("{path}: NODE or NODE:P is expected in a line, not `{line}`")]
    Placement { path: PathBuf, line: String },

    #[error("{path}: it places {listed} of {ranks} ranks")]
    ShortPlacement { path: PathBuf, ranks: u32, listed: usize },

    #[error(
        "{path}: no rank is known, and a placement (--ppn, --placement) needs that of every trace"
    )]
    NoRankForNode { path: PathBuf },

    #[error(
        "--ppn and --placement need the traces of all ranks, to know who is whose neighbour: {known} of {of} are there"
    )]
    RanksMissingForNode { known: usize, of: u32 },

    #[error(
        "{first} and {second} are of different programs, arguments or numbers of ranks: no repeats of \
         one measurement",
        first = first.display(), second = second.display()
    )]
    NoRepeats { first: PathBuf, second: PathBuf },

    #[error(
        "growth takes recordings of at least three numbers of ranks, each in a directory; these have \
         {sizes}. Record the program with further numbers of ranks"
    )]
    FewSizes { sizes: String },

    #[error(
        "{first} and {second} are of different programs or MPI libraries; give recordings of one \
         program",
        first = first.display(), second = second.display()
    )]
    OtherProgram { first: PathBuf, second: PathBuf },

    #[error(
        "{first} and {second} both have {ranks} ranks and are no repeats: their command lines differ. \
         Leave one of them out",
        first = first.display(), second = second.display()
    )]
    SameSize { first: PathBuf, second: PathBuf, ranks: u32 },

    #[error("--to {to}: a recording has {largest} ranks; give that number or a larger one")]
    SmallerThanRecorded { to: u32, largest: u32 },

    #[error("the program left no trace; {path} is as it was")]
    NothingRecorded { path: PathBuf },

    #[error(
        "{path}: neither reports (*.json) nor traces (*.trace) there; `tcam run --report` and \
         `tcam record` make them{}", hint::of_other_tool(.0), path = .0.display()
    )]
    NothingThere(PathBuf),

    #[error(
        "{path}: neither a report (*.json) nor a trace (*.trace) of tcam{}",
        hint::of_other_tool(.0), path = .0.display()
    )]
    Neither(PathBuf),

    #[error(
        "{directory}: neither reports (*.json) nor traces (*.trace) there, but in {of}: give one"
    )]
    Below { directory: PathBuf, of: String },

    #[error(
        "{path}: no provider of libfabric (no shared object with fi_prov_ini in it); `tcam doctor \
         --provider {path}` checks the rest"
    )]
    NoProviderThere { path: PathBuf },

    /// The directory of a sweep was given instead of one of its runs.
    #[error("{directory}: of `tcam sweep`; its runs have the reports: give one, such as {run}")]
    OfSweep { directory: PathBuf, run: PathBuf },

    #[error("{path}: recorded with the tag layout `{layout}`, which this tcam does not know")]
    Layout { path: PathBuf, layout: String },

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

    #[error("{mpicc} does not compile the program of tcam: {why}")]
    Compile { mpicc: String, why: String },

    #[error("the program failed with\n{what}\nthe end of {log}:\n{tail}", log = log.display())]
    Program { what: String, code: u8, log: PathBuf, tail: String },

    #[error(
        "{program}: no mpicc beside it nor in PATH: `tcam tune` compiles an MPI program of its own; \
         install the compiler of this MPI, or give its place with --mpicc PATH"
    )]
    NoCompiler { program: String },

    #[error(
        "{program} did not run the program of `tcam tune` to its end: give the launcher with its \
         options for 2 ranks, and no program: `tcam tune -- mpiexec -n 2`; {log} has what it printed",
        log = log.display()
    )]
    NoChannels { program: String, log: PathBuf },

    #[error(
        "no mpicc in PATH nor in the directory of tcam: `tcam demo` compiles an MPI program; \
         install an MPI, such as `pip install mpich`, or give its compiler with --mpicc PATH"
    )]
    NoMpi,

    #[error(
        "{why}\nthere is no C compiler in PATH: install one (package gcc), or, without root:\n  \
         pip install ziglang\n  export MPICH_CC=\"python3 -m ziglang cc\" OMPI_CC=\"python3 -m ziglang cc\""
    )]
    NoCCompiler { why: String },

    /// A command line that tcam made.
    #[error("{0}")]
    Words(clap::Error),

    #[error("--set {name}: `tcam tune` measures at values of its own; leave it out")]
    Tuned { name: &'static str },

    #[error("the picture could not be drawn: {0}")]
    Draw(String),

    #[error("{0}")]
    Workload(Box<dyn std::error::Error + Send + Sync>),

    #[error("{0}")]
    Device(#[from] nic::device::DeviceError),

    #[error("{0}: no operation is recorded there, so that no engine has anything to do")]
    NothingHappened(PathBuf),

    #[error("{path}: {error}; --from takes the CSV that an earlier run of the same paper wrote")]
    Csv { path: PathBuf, error: csv::Error },
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
