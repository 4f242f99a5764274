// SPDX-License-Identifier: BSD-2-Clause
//! The arguments of `tcam sweep`, of a program and of traces.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::capacity::{Sizes, UmqSizes};
use crate::options::{Common, number};
use crate::results::Json;
use crate::traces::Placed;
use crate::traces::take::MAX_QUEUE;

/// Runs a program, or replays its traces, once for each table size and draws the capacity curve.
///
/// Writes curve.svg, curve.png, sweep.csv and, for every run, the program's output and the reports
/// of its ranks to the output directory.
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
  tcam sweep --trace tcam-trace --ppn 8 --set pool=node
  tcam sweep --trace tcam-trace --set table_ns=20 --set host_ns=500 --set host_entry_ns=5.1
The time that the host adds is the cost of its searches, spills and promotions for each message, of
all ranks and of the worst rank. It is a sum without waiting; latencies in sweep.csv include
waiting, because a unit does one operation after the other. The model has no overlap, no caches and
no network, and the order of messages stays that of the recording. docs/devices.md has
the sources of costs.")]
pub(crate) struct Sweep {
    /// Entries of the table of posted receives, one run for each size. Without it the sizes are
    /// around the need of a first run, or of the traces.
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) prq: Option<Sizes>,

    /// Entries of the table of unexpected messages: `same` as the other table, one number for all
    /// runs, or a list as long as that of --prq. The default is `same`, or 0 with a device that has
    /// no such table.
    #[arg(long, value_name = "same|LIST", allow_hyphen_values = true)]
    pub(crate) umq: Option<UmqSizes>,

    /// Entries of the pool that the ranks of a node share, with --set pool=node or a device that
    /// has a pool. Without it the sizes are around the need of the traces. The tables stay as they
    /// are.
    #[arg(
        long,
        value_name = "LIST",
        allow_hyphen_values = true,
        requires = "trace",
        conflicts_with_all = ["prq", "umq"]
    )]
    pub(crate) pool: Option<Sizes>,

    /// Runs of every size; the curve shows their median.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..1000))]
    pub(crate) repeat: u32,

    /// Ends a run that takes longer; its size counts as failed.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true,
        value_parser = number(0.1..=1e6, "a number from 0.1 to 1000000 is expected"))]
    pub(crate) timeout: Option<f64>,

    /// Directory for the curve, the table and the logs.
    #[arg(long, value_name = "DIR", default_value = "tcam-sweep")]
    pub(crate) out: PathBuf,

    /// Replays traces, or those of directories, instead of running a program. With the overflow
    /// model `spill`, one pass answers for all sizes.
    #[arg(
        long,
        value_name = "TRACE",
        num_args = 1..,
        conflicts_with_all = ["command", "repeat", "timeout"]
    )]
    pub(crate) trace: Vec<PathBuf>,

    /// Accepts traces that were cut off, as by an incomplete copy, up to the cut; leaves out traces
    /// without a beginning.
    #[arg(long, requires = "trace")]
    pub(crate) cut_off: bool,

    /// Ends a replay with an error if a queue has more than N elements. Each element takes 150 to
    /// 250 bytes; as many traces are replayed at a time as there are cores.
    #[arg(long, value_name = "N", default_value_t = MAX_QUEUE, requires = "trace")]
    pub(crate) max_queue: usize,

    #[command(flatten)]
    pub(crate) placed: Placed,

    /// Costs of searches: cpu-list, cpu-hash or none. --set NAME=NS sets one cost: table_ns, up_ns,
    /// host_ns, host_entry_ns, down_ns, spill_ns or promote_ns. Adds the time of matching, and the
    /// time that the host adds to a message, for each size.
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
