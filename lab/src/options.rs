// SPDX-License-Identifier: BSD-2-Clause
//! Options that several commands share.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Largest table that the provider offers, in entries.
pub(crate) const LARGEST: usize = 65_536;

/// Parses one table size of the command line.
pub(crate) fn table_size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| *size <= LARGEST);
    size.ok_or_else(|| format!("a table has 0 to {LARGEST} entries"))
}

/// Returns a parser of numbers in a range. Its error is `expected`.
pub(crate) fn number(
    range: RangeInclusive<f64>,
    expected: &'static str,
) -> impl Fn(&str) -> Result<f64, &'static str> + Clone {
    move |text| text.parse().ok().filter(|number| range.contains(number)).ok_or(expected)
}

/// Sizes of both tables.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct TableSizes {
    /// Entries of the table of posted receives, 0 to 65536; with 0 the host matches all receives.
    #[arg(long, value_name = "N", value_parser = table_size, allow_hyphen_values = true)]
    pub(crate) prq: Option<usize>,

    /// Entries of the table of unexpected messages, 0 to 65536; with 0 all of them are on the host.
    #[arg(long, value_name = "N", value_parser = table_size, allow_hyphen_values = true)]
    pub(crate) umq: Option<usize>,
}

/// Options that run, record, answer and sweep share.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Sets a parameter of the provider, such as kernel=scalar (FI_TCAM_KERNEL); config=FILE reads
    /// a file of settings. `fi_info -e` and fi_tcam(7) list them. Names and values are checked
    /// before anything starts.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,

    /// The provider libtcam-fi.so, or the directory that holds it. By default tcam searches the
    /// directory of this program, ../lib/libfabric from there, and FI_PROVIDER_PATH.
    #[arg(long, value_name = "PATH")]
    pub(crate) provider: Option<PathBuf>,

    /// MPI of the program; auto asks the launcher.
    #[arg(long, value_enum, default_value_t = MpiChoice::Auto)]
    pub(crate) mpi: MpiChoice,

    /// Accepts incomplete results, if ranks are missing or were cut short (default: exit with
    /// status 3). Where --ppn is given, the traces of all ranks are needed nevertheless.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_their_range() {
        let seconds = number(0.05..=3600.0, "a number from 0.05 to 3600 is expected");
        assert_eq!(seconds("0.2"), Ok(0.2));
        for wrong in ["0", "-1", "4000", "NaN", "inf", "one"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        let any = number(0.0..=f64::MAX, "a number is expected");
        assert_eq!((any("0"), any("1e300")), (Ok(0.0), Ok(1e300)));
        assert!(any("inf").is_err() && any("NaN").is_err() && any("-1").is_err());
    }
}
