// SPDX-License-Identifier: BSD-2-Clause
//! The command line.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};

use crate::capacity::sizes::{Sizes, UmqSizes};
use crate::commands::{self, look};
use crate::options::Common;
use crate::options::Tables;
use crate::results::json::Json;
use crate::traces::files::{MAX_QUEUE, Ppn, Take};

/// How large must the match table of a NIC be for this MPI program?
///
/// tcam runs unmodified MPI programs over a libfabric provider that emulates
/// the tag-matching unit of a NIC: a bounded table of posted receives (PRQ) and
/// one of unexpected messages (UMQ); what does not fit spills to the host.
#[derive(Debug, Parser)]
#[command(name = "tcam", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    Run(Run),
    Record(Record),
    Replay(Replay),
    Compare(crate::commands::compare::Compare),
    Advise(crate::advise::Advise),
    Sweep(Sweep),
    Plot(look::Plot),
    Stats(look::Stats),
    Diff(commands::diff::Diff),
    Export(look::Export),
    Report(look::ReportPage),
    Profile(commands::profile::MakeProfile),
    Cluster(crate::commands::cluster::MakeClusters),
    Doctor(Doctor),
    Devices(crate::commands::devices::Devices),
    Watch(crate::commands::watch::Watch),
    Workload(crate::workload::Workload),
    Reproduce(crate::commands::reproduce::Reproduce),
    Completions(crate::commands::completions::Completions),
}

/// Runs a program once and sums the reports of its ranks.
///
/// Sets the environment that makes MPICH, Open MPI or Intel MPI load tcam, runs
/// the command, and prints what the tables of its ranks did. The exit code is
/// the program's; 3 stands for ranks that are missing or were cut short, unless --partial says that
/// they may, 125 for a failure of tcam itself, 2 for a command line that cannot be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam run -- mpiexec -n 4 ./app
  tcam run --prq 1024 --umq 512 --report reports -- mpiexec -n 16 ./app input
  tcam run --prq 0 --umq 0 --set kernel=scalar -- mpirun -np 2 ./app
Reports are written as DIR/RANK.json (for programs) and DIR/RANK.txt (for people).")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) tables: Tables,

    /// Keeps the reports of the ranks in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,

    /// Writes the numbers of the summary to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: Common,

    /// The program, with its launcher: mpiexec -n 4 ./app
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Runs a program once and records what is asked of the tables of its ranks.
///
/// Writes a trace for each matching context and the report of each rank to a
/// directory; `tcam replay` and `tcam sweep --trace` ask the traces again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam record -- mpiexec -n 4 ./app
  tcam record --out app.trace --max 4096 -- mpiexec -n 16 ./app input
  tcam record --prq 1024 --umq 512 -- mpiexec -n 16 ./app")]
pub(crate) struct Record {
    #[command(flatten)]
    pub(crate) tables: Tables,

    /// Where the traces and reports go; they replace those of an earlier run.
    #[arg(long, value_name = "DIR", default_value = "tcam-trace")]
    pub(crate) out: PathBuf,

    /// Largest trace in MiB; the recording ends there, the program goes on.
    #[arg(long, value_name = "MIB", default_value_t = 1024, allow_negative_numbers = true)]
    pub(crate) max: u32,

    /// Writes the numbers of the summary to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: Common,

    /// The program, with its launcher: mpiexec -n 4 ./app
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Plays traces to another table, engine or overflow model.
///
/// Prints what the tables would have counted. Everything is as recorded but for
/// what is set here; time does not pass, and the costs of the timing model are
/// counted.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam replay tcam-trace
  tcam replay --prq 64 --umq 64 --set overflow=prefix tcam-trace
  tcam replay --set device=connectx --report connectx tcam-trace
  tcam replay --against tcam-trace tcam-trace")]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) tables: Tables,

    /// Sets a parameter of the device, such as host_engine=list.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,

    /// Costs of searches: cpu-list, cpu-hash or none; the same as --set timing=NAME.
    #[arg(long, value_name = "NAME")]
    pub(crate) timing: Option<String>,

    /// Keeps a report for each rank in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) json: Json,

    /// Compares with the reports of a run; the exit code is 1 if they differ.
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) ppn: Ppn,

    #[command(flatten)]
    pub(crate) take: Take,

    /// Traces, or directories of traces.
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
}

/// Runs a program, or replays its traces, once a table size and draws the capacity
/// curve.
///
/// Writes curve.svg, curve.png, sweep.csv and, for every run, the program's
/// output and the reports of its ranks to the output directory.
#[derive(Debug, Args)]
#[command(after_help = "Sizes are a list of numbers; `A,...,B` doubles from A up to B:
  --prq 0,64,...,8192    0 64 128 256 512 1024 2048 4096 8192
  --prq 100,200,400      these three
Examples:
  tcam sweep --prq 0,64,...,8192 -- mpiexec -n 32 ./app
  tcam sweep --prq 256,...,4096 --umq 1024 --repeat 3 --out curve -- mpiexec -n 8 ./app
  tcam sweep --timeout 300 -- mpiexec -n 32 ./app
  tcam sweep --trace tcam-trace --prq 0,16,...,65536
  tcam sweep --trace tcam-trace --timing cpu-list
  tcam sweep --trace tcam-trace --set table_ns=20 --set host_ns=500 --set host_entry_ns=5.1
Latency that the host adds is what its searches cost, over all messages and over those of
the rank that suffers most. The model adds up costs: it has no time to insert and remove, no
queueing of one search behind another, no overlap, no caches, nothing of the network, and
the order of messages stays that of the recording. docs/devices.md has the sources of costs.")]
pub(crate) struct Sweep {
    /// Entries of the table of posted receives, one run each; otherwise sizes around what a first
    /// run, or the traces, need.
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) prq: Option<Sizes>,

    /// Entries of the table of unexpected messages: `same` as the other table, one number for
    /// all runs, or a list as long as that of --prq; otherwise the same, or none with a device
    /// that has no such table.
    #[arg(long, value_name = "same|LIST", allow_hyphen_values = true)]
    pub(crate) umq: Option<UmqSizes>,

    /// Runs of every size; the curve shows their median.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..1000)
    )]
    pub(crate) repeat: u32,

    /// Longest time of a run; one that takes longer is ended and counts as failed.
    #[arg(long, value_name = "SECONDS", value_parser = timeout, allow_negative_numbers = true)]
    pub(crate) timeout: Option<f64>,

    /// Where the curve, the table and the logs go.
    #[arg(long, value_name = "DIR", default_value = "tcam-sweep")]
    pub(crate) out: PathBuf,

    /// Traces, or directories of traces, to replay instead of running a program. With
    /// the overflow model `spill` one pass answers for all sizes.
    #[arg(
        long,
        value_name = "TRACE",
        num_args = 1..,
        conflicts_with_all = ["command", "repeat", "timeout"]
    )]
    pub(crate) trace: Vec<PathBuf>,

    /// Takes traces that were cut off, up to there, and leaves out those without a beginning.
    #[arg(long, requires = "trace")]
    pub(crate) cut_off: bool,

    /// Ends a replay, with an error, in which a queue has more elements. Each takes 150 to 250
    /// bytes; as many traces are replayed at a time as there are cores.
    #[arg(long, value_name = "N", default_value_t = MAX_QUEUE, requires = "trace")]
    pub(crate) max_queue: usize,

    /// Plays what a NIC would see with so many ranks on a node: messages between these, and the
    /// receives that name them, are left out, and a pool is theirs. Receives from any source stay until
    /// they are answered. Ranks of a node are consecutive.
    #[arg(long, value_name = "P", allow_negative_numbers = true, requires = "trace")]
    pub(crate) ppn: Option<NonZeroU32>,

    /// Costs of searches, for the time that matching takes and the latency that the host
    /// adds to a message at each size: cpu-list, cpu-hash or none, or --set table_ns=NS,
    /// host_ns=NS and host_entry_ns=NS.
    #[arg(long, value_name = "NAME", requires = "trace")]
    pub(crate) timing: Option<String>,

    #[command(flatten)]
    pub(crate) json: Json,

    #[command(flatten)]
    pub(crate) common: Common,

    /// The program, with its launcher: mpiexec -n 4 ./app
    #[arg(last = true, required_unless_present = "trace", value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

fn timeout(text: &str) -> Result<f64, &'static str> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=1e6).contains(seconds));
    seconds.ok_or("a number from 0.1 to 1000000 is expected")
}

/// Says why the provider is not found or not chosen, and what to do.
///
/// Checks the library, libfabric, the MPI of the launcher given and its program, /dev/shm, the
/// kernel's copy between processes and the environment. Nothing is changed.
/// The exit code is 1 when something keeps tcam from working.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam doctor
  tcam doctor -- mpiexec -n 4 ./app")]
pub(crate) struct Doctor {
    /// The provider to check, or the directory that holds it.
    #[arg(long, value_name = "PATH")]
    pub(crate) provider: Option<PathBuf>,

    /// The command you want to run, with its launcher.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// The first word of a command that no `--` stands before, if that is what is wrong.
pub(crate) fn command_without_dashes(
    error: &clap::Error,
    words: impl IntoIterator<Item = OsString>,
) -> Option<String> {
    let (Some(ContextValue::String(word)), ErrorKind::UnknownArgument) =
        (error.get(ContextKind::InvalidArg), error.kind())
    else {
        return None;
    };
    let words: Vec<_> = words.into_iter().skip(1).collect();
    let takes_command = ["run", "record", "sweep", "doctor"].iter().any(|task| words[0] == *task);
    let dashes = words.iter().any(|word| word == "--");
    (takes_command && !dashes && !word.starts_with('-')).then(|| word.clone())
}

/// Whether a sweep has neither a program nor traces.
pub(crate) fn lacks_what_to_sweep(
    error: &clap::Error,
    words: impl IntoIterator<Item = OsString>,
) -> bool {
    error.kind() == ErrorKind::MissingRequiredArgument
        && words.into_iter().nth(1).is_some_and(|task| task == "sweep")
}

/// The option of a size that `--` stands in place of: it would be taken for the value, and what
/// follows for nothing that is known.
pub(crate) fn without_size(words: impl IntoIterator<Item = OsString>) -> Option<&'static str> {
    let words: Vec<_> = words.into_iter().collect();
    let end = words.iter().position(|word| word == "--")?;
    let before = words.get(end.checked_sub(1)?)?;
    ["--prq", "--umq"].into_iter().find(|option| before == option)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_the_dashes_is_the_command() {
        let cli = Cli::parse_from(["tcam", "run", "--prq", "7", "--", "mpiexec", "--prq", "8"]);
        let Task::Run(run) = cli.task else { panic!("not run: {cli:?}") };
        assert_eq!(run.tables.prq, Some(7));
        assert_eq!(run.command, ["mpiexec", "--prq", "8"]);
    }

    #[test]
    fn sizes_that_cannot_be_get_the_range() {
        for line in [
            "tcam run --prq -1 -- app",
            "tcam run --umq 1k -- app",
            "tcam replay --prq 65537 traces",
            "tcam replay --umq=-1 traces",
            "tcam record --prq 65537 -- app",
            "tcam compare --umq -1 traces",
            "tcam replay --prq -1,3 traces",
            "tcam run --prq -x -- app",
            "tcam sweep --prq -1,3 -- app",
            "tcam sweep --umq -64,...,8 -- app",
            "tcam sweep --prq -1 -- app",
            "tcam sweep --prq 64,1k -- app",
            "tcam sweep --umq -1 -- app",
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{line}: {error}");
            assert!(error.to_string().contains("0 to 65536"), "{line}: {error}");
        }
        assert!(Cli::try_parse_from(["tcam", "run", "--prq", "65536", "--", "app"]).is_ok());
    }

    #[test]
    fn numbers_that_cannot_be_are_told_as_values() {
        for line in [
            "tcam sweep --repeat -1 -- app",
            "tcam sweep --timeout -1 -- app",
            "tcam sweep --timeout 0 -- app",
            "tcam sweep --timeout NaN -- app",
            "tcam record --max -1 -- app",
            "tcam watch --interval -1",
            "tcam watch --count -1",
            "tcam workload fds --out x --ranks -1",
            "tcam workload fds --out x --rank -1,3",
            "tcam workload fds --out x --seed -1",
            "tcam workload fds --out x --steps -1",
            "tcam workload fds --out x --messages -1",
            "tcam reproduce colpnp --ms -1",
            "tcam reproduce colpnp --seed -1",
            "tcam reproduce colpnp --seeds -1",
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{line}: {error}");
        }
    }

    #[test]
    fn a_size_that_is_forgotten_is_told() {
        for (line, option) in [
            ("tcam run --prq -- app", Some("--prq")),
            ("tcam sweep --prq 1 --umq -- app", Some("--umq")),
            ("tcam run --prq 1 -- app --prq --", None),
            ("tcam run", None),
            ("--", None),
        ] {
            assert_eq!(without_size(line.split(' ').map(OsString::from)), option, "{line}");
        }
    }

    #[test]
    fn missing_dashes_are_told_from_other_mistakes() {
        for (line, word) in [
            ("tcam run mpiexec -n 2 app", Some("mpiexec")),
            ("tcam record --out x ./app", Some("./app")),
            ("tcam sweep --prq 1 mpiexec app", Some("mpiexec")),
            ("tcam doctor mpiexec", Some("mpiexec")),
            ("tcam run --prk 1 -- app", None),
            ("tcam run x -- app", None),
            ("tcam run", None),
            ("tcam watch x", None),
            ("tcam", None),
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            let words = line.split(' ').map(OsString::from);
            assert_eq!(command_without_dashes(&error, words).as_deref(), word, "{line}");
        }
    }
}
