// SPDX-License-Identifier: BSD-2-Clause
//! The arguments of `tcam replay`.

use std::path::PathBuf;

use clap::Args;

use crate::options::TableSizes;
use crate::results::{Destination, Json};
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
    #[arg(long, value_name = "devices|NAME=VALUE,...",
        conflicts_with_all = ["time", "report", "against"])]
    pub(super) with: Vec<String>,

    /// Measures the time that each host engine takes to match the recorded program.
    #[arg(long, conflicts_with_all = ["timing", "report", "against", "ppn", "placement"])]
    pub(super) time: bool,

    #[command(flatten)]
    pub(super) tables: TableSizes,

    /// Sets a parameter of the device, such as host_engine=list or device=connectx, for all lines
    /// of --with, which has priority. With a device, no part of the recorded configuration is kept.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,

    /// Sets the costs of searches: cpu-list, cpu-hash or none; as --set timing=NAME does. They are
    /// costs of the recorded host engine, or of an MPI with one list with --set host_engine=list.
    /// With --with, the last number of a line is then the time in ns that elements on the host add
    /// to a message.
    #[arg(long, value_name = "NAME")]
    pub(super) timing: Option<String>,

    /// With --time, measures the first N operations of all ranks together (default: 1000000).
    /// Counts are those of all operations.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) operations: Option<u64>,

    /// Keeps a report for each rank in this directory, and run.tcam of the recorded run. The
    /// directory must not contain reports of a run.
    #[arg(long, value_name = "DIR")]
    pub(super) report: Option<PathBuf>,

    #[command(flatten)]
    pub(super) json: Json,

    /// With --with, also writes the numbers to this file; - is standard output, instead of the
    /// table.
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<Destination>,

    /// Compares with the reports of a run; the exit code is 1 if a count differs. With pool=node
    /// counts may differ, because traces do not contain the order in which ranks used the pool.
    #[arg(long, value_name = "DIR")]
    pub(super) against: Option<PathBuf>,

    #[command(flatten)]
    pub(super) placed: Placed,

    #[command(flatten)]
    pub(super) take: Take,

    /// Traces, or directories of traces.
    #[arg(required = true, value_name = "TRACE")]
    pub(super) traces: Vec<PathBuf>,
}
