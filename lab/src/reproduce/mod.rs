// SPDX-License-Identifier: BSD-2-Clause
//! `tcam reproduce`: a paper's tables and figures beside ours, from generated
//! workloads.

mod colpnp;
mod figure;
mod measure;
mod number;
mod page;
mod paper;
mod reasons;
mod through_mpi;
mod verdict;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::error::Error;
use crate::file::{self, NewFile};
use crate::fresh;
use crate::signals::{self, Signals};
use colpnp::Effort;
use number::Numbers;

/// Prints the tables and figures of a paper beside ours, with verdicts.
///
/// The streams are those of `tcam workload`, replayed to a device without table
/// entries, so that the host engines match everything. The engines take turns in one
/// process; times are medians over seeds, and ratios tell more than they do. Verdicts on
/// the numbers in the paper's text are computed: reproduced is within 30 %. With a COMMAND
/// latencies and the runtime are measured through an MPI as well. What is printed is
/// also written to DIR as Markdown, with ranges, and every number as CSV.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam reproduce colpnp --out colpnp
takes two to three minutes.
  tcam reproduce colpnp --out colpnp -- mpiexec -n 64 target/apps/mpich/collectives
takes twice as long; tests/apps has the program.")]
pub(crate) struct Reproduce {
    /// Which paper.
    #[arg(value_enum)]
    paper: Paper,

    /// Milliseconds for each engine, workload and seed, at least.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(1..=600_000),
        allow_negative_numbers = true
    )]
    ms: u64,

    /// Orders of arrival: the first seed.
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,

    /// How many seeds, each measured apart, and how many runs through an MPI.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=1000),
        allow_negative_numbers = true
    )]
    seeds: u32,

    /// Where the page and the numbers go.
    #[arg(long, value_name = "DIR", default_value = "tcam-reproduce")]
    out: PathBuf,

    /// Makes the page of the numbers of an earlier run, and measures nothing.
    #[arg(long, value_name = "CSV", conflicts_with_all = ["ms", "seed", "seeds", "command"])]
    from: Option<PathBuf>,

    /// The provider libtcam-fi.so, or the directory that holds it; otherwise the
    /// one installed or built with this program. For COMMAND only.
    #[arg(long, value_name = "PATH", requires = "command")]
    provider: Option<PathBuf>,

    /// The program tests/apps/collectives.c, with its launcher.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The papers there are.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Paper {
    /// COL+PNP: dedicated queues for collective operations and partners
    Colpnp,
}

/// Measures, prints and stores.
pub(crate) fn reproduce(arguments: &Reproduce) -> Result<u8, Error> {
    let Paper::Colpnp = arguments.paper;
    let numbers = match &arguments.from {
        Some(path) => Numbers::read(path)?,
        None => {
            let mut signals = Signals::catch()?;
            let measured = measured(arguments, &mut signals);
            if let Some(signal) = signals.caught() {
                eprintln!("tcam: ended by {}; nothing is written", signals::name_of(signal));
                return Ok(signals::code_of(signal));
            }
            measured?
        }
    };
    let out = &arguments.out;
    fresh::make(out)?;
    for figure in page::figures(&numbers) {
        println!("{}", figure.terminal());
    }
    let markdown = out.join("colpnp.md");
    file::write(&markdown, page::markdown(&numbers))?;
    let path = out.join("colpnp.csv");
    let csv_error = |error| Error::Csv { path: path.clone(), error };
    let mut csv = csv::Writer::from_writer(NewFile::create(&path)?);
    for number in &numbers.0 {
        csv.serialize(number).map_err(csv_error)?;
    }
    csv.into_inner().map_err(|error| Error::io(&path)(error.into_error()))?.keep()?;
    println!("Page:    {}\nNumbers: {}", markdown.display(), path.display());
    Ok(0)
}

fn measured(arguments: &Reproduce, signals: &mut Signals) -> Result<Numbers, Error> {
    let Reproduce { ms, seed, seeds, .. } = *arguments;
    // What is wrong with the command is said before anything is measured.
    let mpi = through_mpi::Job::new(&arguments.command, arguments.provider.as_deref(), signals)?;
    let effort = Effort { time: Duration::from_millis(ms), seed, seeds };
    let mut numbers = colpnp::measure(effort, signals)?;
    if let Some(mpi) = mpi {
        mpi.measure(seeds, signals, &mut numbers)?;
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn doc(name: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
        std::fs::read_to_string(path).unwrap()
    }

    fn stored() -> Numbers {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        Numbers::read(&docs.join("colpnp.csv")).unwrap()
    }

    /// `tcam reproduce colpnp --from docs/colpnp.csv --out docs` makes it so.
    #[test]
    fn the_page_is_that_of_its_numbers() {
        assert!(page::markdown(&stored()) == doc("colpnp.md"), "docs/colpnp.md is out of date");
    }

    /// The section of docs/colpnp.md, as it is.
    #[test]
    fn the_verdicts_on_the_page_of_papers_are_computed() {
        let computed = verdict::figure(&stored()).markdown();
        let (_, section) = computed.split_once("\n\n").unwrap();
        let papers = doc("papers.md");
        assert!(papers.contains(section), "docs/papers.md lacks these verdicts:\n{section}");
    }

    #[test]
    fn what_differs_has_a_reason() {
        let numbers = stored();
        for judged in verdict::all(&numbers) {
            let reason = reasons::of(&judged);
            assert_ne!(reason, Some(reasons::UNKNOWN), "{:?}", judged.claim);
        }
    }
}
