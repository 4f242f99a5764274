// SPDX-License-Identifier: BSD-2-Clause
//! Options that several commands have.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Largest table the provider offers.
pub(crate) const LARGEST: usize = 65_536;

/// One table size as given on the command line.
pub(crate) fn table_size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| *size <= LARGEST);
    size.ok_or_else(|| format!("a table has 0 to {LARGEST} entries"))
}

/// Sizes of both tables, for what has one of each.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Tables {
    /// Entries of the table of posted receives; 0 matches all on the host.
    #[arg(long, value_name = "N", value_parser = table_size, allow_hyphen_values = true)]
    pub(crate) prq: Option<usize>,

    /// Entries of the table of unexpected messages; 0 keeps all on the host.
    #[arg(long, value_name = "N", value_parser = table_size, allow_hyphen_values = true)]
    pub(crate) umq: Option<usize>,
}

/// What run, record and sweep have in common.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Sets a parameter of the provider, such as kernel=scalar (FI_TCAM_KERNEL);
    /// `fi_info -e` and fi_tcam(7) list them.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,

    /// The provider libtcam-fi.so, or the directory that holds it; otherwise the
    /// one installed or built with this program.
    #[arg(long, value_name = "PATH")]
    pub(crate) provider: Option<PathBuf>,

    /// Which MPI the program uses; auto asks the launcher.
    #[arg(long, value_enum, default_value_t = MpiChoice::Auto)]
    pub(crate) mpi: MpiChoice,

    /// Accepts results of a part of the ranks, or of ranks that were cut short: otherwise the exit code is 3.
    #[arg(long)]
    pub(crate) partial: bool,
}

/// Value of `--mpi`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MpiChoice {
    Auto,
    Mpich,
    Openmpi4,
    Openmpi5,
    Intel,
}
