// SPDX-License-Identifier: BSD-2-Clause
//! Which traces are taken, and how much of them.

use clap::Args;

/// Which traces are taken, and how much of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub(crate) struct Take {
    /// Takes traces of killed ranks as far as they go, and leaves out those without a beginning.
    #[arg(long)]
    pub(crate) cut_off: bool,

    /// Fails a replay in which a queue has more than N elements. An element takes 150 to 250 bytes;
    /// as many traces are replayed at a time as there are cores.
    #[arg(long, value_name = "N", default_value_t = MAX_QUEUE)]
    pub(crate) max_queue: usize,

    /// Accepts results of a part of the ranks, or of ranks that were cut short: otherwise the exit code is 3.
    #[arg(long)]
    pub(crate) partial: bool,
}

impl Default for Take {
    fn default() -> Self {
        Self { cut_off: false, max_queue: MAX_QUEUE, partial: false }
    }
}

/// A gigabyte, or a file of 62 KB: records say how often they repeat.
pub(crate) const MAX_QUEUE: usize = 4_000_000;
