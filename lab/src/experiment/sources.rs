// SPDX-License-Identifier: BSD-2-Clause
//! What is looked at, as it is named on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::traces::take::Take;

/// What is looked at.
#[derive(Debug, Default, Args)]
pub(crate) struct Sources {
    /// Reports or traces, or directories of them. Traces with reports beside them tell
    /// what only they know; without, they are replayed as they were recorded.
    #[arg(required = true, value_name = "DIR|FILE")]
    pub(crate) names: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) take: Take,
}
