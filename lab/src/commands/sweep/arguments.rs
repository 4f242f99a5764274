// SPDX-License-Identifier: BSD-2-Clause
//! The arguments of `tcam sweep`, which runs a program or replays traces.

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
/// The curve has the shares that fit immediately and that are promoted first, spills, high-water marks
/// and time over the table size. It ends with the spread of the need from run to run, and a
/// recommended size: the next power of two above the largest need plus its spread. The output
/// directory gets curve.svg, curve.png, sweep.csv and runs/, with the program's output and the
/// reports of each run; those of an earlier sweep are removed once the first run has succeeded. A
/// size at which the program fails is left out and named at the end.
///
/// With --trace the smallest tables with which 0, 1, 5 and 10 percent of the elements spill are
/// printed first. They are printed for the worst rank, for all ranks, for each kind of traffic, and
/// for the ranks that need most. For repeats the need has a median, a range, and the highest
/// probability that another run needs more. The last column has the entries that a linear search on
/// the host compares for a message, or with --set host_engine or host_storage the entries that this
/// engine traverses.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam sweep --prq 0,64,...,8192 -- mpiexec -n 32 ./app
  tcam sweep --prq 256,...,4096 --umq 1024 --repeat 3 --out curve -- mpiexec -n 8 ./app
  tcam sweep --timeout 300 -- mpiexec -n 32 ./app
  tcam sweep --trace tcam-trace --prq 0,16,...,65536
  tcam sweep --trace tcam-trace --timing cpu-list
  tcam sweep --trace tcam-trace --ppn 8 --set pool=node
  tcam sweep --trace tcam-trace --set table_ns=20 --set host_ns=500 --set host_entry_ns=5.1")]
pub(crate) struct Sweep {
    /// Entries of the table of posted receives, one run for each size: numbers separated by commas;
    /// `A,...,B` doubles from A up to B. Without --prq the sizes are around the need of the traces,
    /// or of a first run, which is not part of the curve.
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) prq: Option<Sizes>,

    /// Entries of the table of unexpected messages: `same` as the other table, one number for all
    /// runs, or a list as long as that of --prq. The default is `same`, or 0 with a device that has
    /// no such table.
    #[arg(long, value_name = "same|LIST", allow_hyphen_values = true)]
    pub(crate) umq: Option<UmqSizes>,

    /// Entries of the pool that the ranks of a node share, with --set pool=node or a device that
    /// has a pool. Needs --trace. By default the sizes are around the need of the traces. The
    /// tables are not changed.
    #[arg(
        long,
        value_name = "LIST",
        allow_hyphen_values = true,
        requires = "trace",
        conflicts_with_all = ["prq", "umq"]
    )]
    pub(crate) pool: Option<Sizes>,

    /// Runs of every size; the curve shows their median. If standard input is a file, each run
    /// reads it from its beginning; otherwise the program has no input, and a pipe with input is
    /// refused.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..1000))]
    pub(crate) repeat: u32,

    /// Ends a run that takes longer, by SIGTERM to the launcher, and five seconds later by SIGKILL
    /// to it and to its processes. The size counts as failed.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true,
        value_parser = number(0.1..=1e6, "a number from 0.1 to 1000000 is expected"))]
    pub(crate) timeout: Option<f64>,

    /// Directory for the curve, the table and the runs.
    #[arg(long, value_name = "DIR", default_value = "tcam-sweep")]
    pub(crate) out: PathBuf,

    /// Replays traces, or those of directories, instead of running a program. With the overflow
    /// model `spill`, one pass computes the results for all sizes.
    #[arg(
        long,
        value_name = "TRACE",
        num_args = 1..,
        conflicts_with_all = ["command", "repeat", "timeout"]
    )]
    pub(crate) trace: Vec<PathBuf>,

    /// Accepts traces that were cut off, for example by an incomplete copy, up to the cut. Leaves
    /// out traces with an incomplete header. Traces of a killed program do not count as cut off.
    #[arg(long, requires = "trace")]
    pub(crate) cut_off: bool,

    /// Ends a replay with an error if a queue has more than N elements, because a forged trace of
    /// some KB could fill all memory. An element takes 150 to 250 bytes; as many traces are
    /// replayed at a time as there are cores.
    #[arg(long, value_name = "N", default_value_t = MAX_QUEUE, requires = "trace")]
    pub(crate) max_queue: usize,

    #[command(flatten)]
    pub(crate) placed: Placed,

    /// Costs of searches: cpu-list, cpu-hash or none. They apply to the recorded host engine; --set
    /// host_engine=list gives those of an MPI with one list. --set NAME=NS sets one cost: table_ns,
    /// up_ns, host_ns, host_entry_ns, down_ns, spill_ns or promote_ns. The curve then also has, for
    /// each size, the time of matching, and the time in ns that elements on the host add to a
    /// message, of all ranks and of the worst rank. These times do not include waiting. sweep.csv
    /// also has latencies. They include waiting, because a matching unit does one operation after
    /// the other. Latencies may grow with the tables, because a promotion takes time.
    /// docs/devices.md has the sources and limits of the model.
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
