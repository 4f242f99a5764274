// SPDX-License-Identifier: BSD-2-Clause
//! `tcam replay`: replays traces on another table, engine or overflow model, or on several.

mod once;
mod time;
mod with;

use std::path::PathBuf;

use clap::Args;

use crate::error::Error;
use crate::options::TableSizes;
use crate::results::{Destination, Json};
use crate::settings;
use crate::traces::{Placed, Take};

/// Replays traces on another table, engine or overflow model, or on several.
///
/// Prints the counts that the tables would have had. Everything is as recorded, except for the
/// given settings. Time does not pass; the costs of the timing model are counted. With
/// overflow=flow-control no message is held back: elements that do not fit spill.
///
/// With --with replays the traces as they were recorded or set, and then on each of these devices.
/// Prints a line for each: the share that got an entry immediately, the share that spilled with the
/// main reason, and the number of entries that searches traverse on the host for a message. The
/// last lines have the need of the NIC of a node, and the devices without a spill. Of several runs
/// of one program the worst is printed.
///
/// With --time replays the traces on every host engine, with both storages of its queues, in up to
/// 15 rounds in which all engines take turns. Prints the processor time for each message, as the
/// median of the rounds and the range of 80 percent of them: with the recorded tables, if elements
/// spill from them, and without tables, where the engine matches everything. Times are those of
/// matching alone, one thread for each rank, on this machine, which should be quiet. An engine
/// counts as faster if it saves 5 percent or more, and is faster in nine of ten rounds. The engine
/// hash is not recommended if the traces have a wildcard. If tables draw from a pool, engines are
/// measured without tables only.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam replay tcam-trace
  tcam replay --prq 64 --umq 64 --set overflow=prefix tcam-trace
  tcam replay --set device=connectx --report connectx tcam-trace
  tcam replay --against tcam-trace tcam-trace
  tcam replay --with devices tcam-trace
  tcam replay --with devices --timing cpu-list tcam-trace
  tcam replay --with overflow=spill --with overflow=prefix --with overflow=sticky tcam-trace
  tcam replay --with device=alpu --with device=alpu,prq_entries=128,umq_entries=128 tcam-trace
  tcam replay --time tcam-trace
  tcam replay --time --set device=connectx run-1 run-2 run-3")]
pub(crate) struct Replay {
    /// Compares devices: prints a line for the recorded configuration, and one with these
    /// parameters, such as device=connectx or host_engine=list,host_storage=linked. The word
    /// devices stands for a line for every device. May be given several times.
    #[arg(long, value_name = "devices|NAME=VALUE,...", conflicts_with_all = ["time", "report", "against"])]
    with: Vec<String>,

    /// Measures the time that each host engine takes to match the recorded program.
    #[arg(long, conflicts_with_all = ["timing", "report", "against", "ppn", "placement"])]
    time: bool,

    #[command(flatten)]
    tables: TableSizes,

    /// Sets a parameter of the device, such as host_engine=list or device=connectx, for all lines
    /// of --with, which has priority. With a device, no part of the recorded configuration is kept.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Sets the costs of searches: cpu-list, cpu-hash or none; as --set timing=NAME does. They are
    /// costs of the recorded host engine, or of an MPI with one list with --set host_engine=list.
    /// With --with, the last number of a line is then the time in ns that elements on the host add
    /// to a message.
    #[arg(long, value_name = "NAME")]
    timing: Option<String>,

    /// With --time, measures the first N operations of all ranks together (default: 1000000).
    /// Counts are those of all operations.
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,

    /// Keeps a report for each rank in this directory, and run.tcam of the recorded run. The
    /// directory must not contain reports of a run.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,

    #[command(flatten)]
    json: Json,

    /// With --with, also writes the numbers to this file; - is standard output, instead of the
    /// table.
    #[arg(long, value_name = "FILE")]
    csv: Option<Destination>,

    /// Compares with the reports of a run; the exit code is 1 if a count differs. With pool=node
    /// counts may differ, because traces do not contain the order in which ranks used the pool.
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,

    #[command(flatten)]
    placed: Placed,

    #[command(flatten)]
    take: Take,

    /// Traces, or directories of traces.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
}

/// Replays the traces. Returns 3 if results are incomplete, otherwise 1 if counts differ from the
/// reports of `--against`, otherwise 0.
pub(crate) fn replay(arguments: &Replay) -> Result<u8, Error> {
    if arguments.operations.is_some() && !arguments.time {
        fail!("--operations: goes with --time only");
    }
    if arguments.csv.is_some() && arguments.with.is_empty() {
        fail!("--csv: goes with --with only");
    }
    settings::note_unused();
    if arguments.time {
        return time::engines(arguments);
    }
    if !arguments.with.is_empty() {
        return with::compare(arguments);
    }
    once::replay(arguments)
}
