// SPDX-License-Identifier: BSD-2-Clause
//! The reports and traces that are named on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::traces::take::Take;

/// The reports and traces that are named on the command line.
#[derive(Debug, Default, Args)]
pub(crate) struct Sources {
    /// Reports or traces, or directories of them. If traces have reports in the same directory,
    /// only numbers that reports lack are taken from the traces. Traces without reports are
    /// replayed as they were recorded.
    #[arg(required = true, value_name = "DIR|FILE")]
    pub(crate) names: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) take: Take,
}
