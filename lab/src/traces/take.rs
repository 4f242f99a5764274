// SPDX-License-Identifier: BSD-2-Clause
//! The options of all commands that replay traces.

use clap::Args;

/// Options that select which traces are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub(crate) struct Take {
    /// Accepts traces that were cut off, for example by an incomplete copy, up to the cut. Leaves
    /// out traces with an incomplete header. Traces of a killed program do not count as cut off.
    #[arg(long)]
    pub(crate) cut_off: bool,

    /// Ends a replay with an error if a queue has more than N elements, because a forged trace of
    /// some KB could fill all memory. An element takes 150 to 250 bytes; as many traces are
    /// replayed at a time as there are cores.
    #[arg(long, value_name = "N", default_value_t = MAX_QUEUE)]
    pub(crate) max_queue: usize,

    /// Accepts incomplete results, if ranks are missing or were cut short (default: exit with
    /// status 3). Where --ppn is given, the traces of all ranks are needed nevertheless.
    #[arg(long)]
    pub(crate) partial: bool,
}

impl Default for Take {
    fn default() -> Self {
        Self { cut_off: false, max_queue: MAX_QUEUE, partial: false }
    }
}

/// Default of `--max-queue`. This number of elements takes up to a gigabyte. A trace of 62 KB can
/// make such a queue, because a record can repeat an operation many times.
pub(crate) const MAX_QUEUE: usize = 4_000_000;
