// SPDX-License-Identifier: BSD-2-Clause
//! `tcam reproduce`: a paper's tables and figures beside ours, from generated
//! workloads.

mod case;
mod colpnp;
mod figure;
mod hash;
mod judged;
mod kmeans;
mod measure;
mod number;
mod page;
mod paper;
mod polling;
mod polling_page;
mod reasons;
mod tail_queues;
mod through_mpi;
mod verdict;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::error::Error;
use crate::file::{self, NewFile};
use crate::launch::ending;
use crate::launch::signals::{self, Signals};
use crate::results::fresh;
use crate::results::lock::Lock;
use case::Cases;
use colpnp::Effort;
use figure::Figure;
use number::Numbers;

/// Prints the tables and figures of a paper beside ours, with verdicts.
///
/// The streams are those of `tcam workload`, replayed to a device without table
/// entries, so that the host engines match everything. The engines take turns in one
/// process; times are medians over seeds, and ratios tell more than they do. Verdicts on
/// the numbers in the paper's text are computed: reproduced is within 30 %. With a COMMAND
/// latencies and the runtime are measured through an MPI as well; polling of channels is
/// measured through an MPI alone, on two hosts; tail queues are measured by threads of this
/// process. What is printed is also written to DIR as
/// Markdown, with ranges, and every number as CSV.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam reproduce colpnp --out colpnp
takes two to three minutes.
  tcam reproduce colpnp --out colpnp -- mpiexec -n 64 target/apps/mpich/collectives
takes twice as long; tests/apps has the program.
  tcam reproduce kmeans --out kmeans
  tcam reproduce hash --out hash -- mpiexec -n 2 target/apps/mpich/hints
  tcam reproduce polling --out polling -- mpiexec -n 3 -hosts a:2,b:1 target/apps/mpich/polling
needs rank 0 and one more on a host, and one on another host. 16 there (-n 18 -hosts a:2,b:16)
tell what polls cost by peers. It takes five minutes.
  tcam reproduce tail-queues --out tail-queues
takes three to five minutes, and wants a quiet machine.
  tcam reproduce tail-queues --only both,linked,mcs,2, --seeds 15 --out two-threads
measures only two threads with MCS locks at both linked lists.")]
pub(crate) struct Reproduce {
    /// Which paper.
    #[arg(value_enum)]
    paper: Paper,

    /// Milliseconds for each engine, workload and seed, at least; otherwise 100, for tail-queues 5.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=600_000),
        allow_negative_numbers = true
    )]
    ms: Option<u64>,

    /// Orders of arrival: the first seed.
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,

    /// How many seeds, each measured apart, and how many runs through an MPI, or turns of each row
    /// of tail-queues; otherwise 5, for tail-queues 10.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1000),
        allow_negative_numbers = true
    )]
    seeds: Option<u32>,

    /// Measures only the rows of tail-queues that have this in their name
    /// LISTS,STORAGE,LOCK,THREADS,LENGTH, such as both,linked,mcs,2,32.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Where the page and the numbers go.
    #[arg(long, value_name = "DIR", default_value = "tcam-reproduce")]
    out: PathBuf,

    /// Makes the page of the numbers of an earlier run, and measures nothing.
    #[arg(long, value_name = "CSV", conflicts_with_all = ["ms", "seed", "seeds", "only", "command"])]
    from: Option<PathBuf>,

    /// The provider libtcam-fi.so, or the directory that holds it; otherwise the
    /// one installed or built with this program. For COMMAND only.
    #[arg(long, value_name = "PATH", requires = "command")]
    provider: Option<PathBuf>,

    /// The program tests/apps/collectives.c, for hash hints.c, for polling polling.c, with its
    /// launcher.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The papers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
enum Paper {
    /// COL+PNP: dedicated queues for collective operations and partners
    Colpnp,
    /// K-means: a queue for each cluster of sources
    Kmeans,
    /// Hint-driven matching: a hash table of receives without wildcards
    Hash,
    /// Polling of network and shared memory, and thresholds between channels
    Polling,
    /// Tail queues: threads that search both queues at a time
    TailQueues,
}

/// What was measured of a paper.
#[derive(Debug, PartialEq)]
enum Measured {
    Colpnp(Numbers),
    Kmeans(Cases),
    Hash(Cases),
    Polling(Cases),
    TailQueues(Cases),
}

impl Paper {
    /// Of its page and numbers.
    fn name(self) -> &'static str {
        self.into()
    }

    /// What is measured unless something else is asked for.
    fn effort(self, arguments: &Reproduce) -> Effort {
        let (ms, seeds) = match self {
            Self::TailQueues => (5, 10),
            _ => (100, 5),
        };
        Effort {
            time: Duration::from_millis(arguments.ms.unwrap_or(ms)),
            seed: arguments.seed,
            seeds: arguments.seeds.unwrap_or(seeds),
        }
    }

    /// Reads what an earlier run stored.
    fn read(self, path: &Path) -> Result<Measured, Error> {
        Ok(match self {
            Self::Colpnp => Measured::Colpnp(Numbers::read(path)?),
            Self::Kmeans => Measured::Kmeans(Cases::read(path)?),
            Self::Hash => Measured::Hash(Cases::read(path)?),
            Self::Polling => Measured::Polling(Cases::read(path)?),
            Self::TailQueues => Measured::TailQueues(Cases::read(path)?),
        })
    }
}

impl Measured {
    fn figures(&self) -> Vec<Figure> {
        match self {
            Self::Colpnp(numbers) => page::figures(numbers),
            Self::Kmeans(cases) => kmeans::figures(cases),
            Self::Hash(cases) => hash::figures(cases),
            Self::Polling(cases) => polling_page::figures(cases),
            Self::TailQueues(cases) => tail_queues::page::figures(cases),
        }
    }

    fn markdown(&self) -> String {
        let preface = match self {
            Self::Colpnp(numbers) => page::preface(numbers),
            Self::Kmeans(cases) => cases.preface("K-means", "kmeans"),
            Self::Hash(cases) => cases.preface("Hint-driven matching", "hash"),
            Self::Polling(cases) => polling_page::preface(cases),
            Self::TailQueues(cases) => tail_queues::page::preface(cases),
        };
        page::of(preface, &self.figures())
    }

    fn write(&self, path: &Path) -> Result<(), Error> {
        match self {
            Self::Colpnp(numbers) => write(&numbers.0, path),
            Self::Kmeans(cases)
            | Self::Hash(cases)
            | Self::Polling(cases)
            | Self::TailQueues(cases) => write(&cases.0, path),
        }
    }
}

/// Writes numbers as CSV.
fn write(numbers: &[impl Serialize], path: &Path) -> Result<(), Error> {
    let mut csv = csv::Writer::from_writer(NewFile::create(path)?);
    for number in numbers {
        csv.serialize(number).map_err(|error| Error::Csv { path: path.to_owned(), error })?;
    }
    csv.into_inner().map_err(|error| Error::io(path)(error.into_error()))?.keep()
}

/// Measures, prints and stores.
pub(crate) fn reproduce(arguments: &Reproduce) -> Result<u8, Error> {
    let paper = arguments.paper;
    let is_alone = matches!(paper, Paper::Kmeans | Paper::TailQueues);
    if is_alone && !arguments.command.is_empty() {
        return Err(Error::NothingThroughMpi { paper: paper.name() });
    }
    if paper != Paper::TailQueues && arguments.only.is_some() {
        return Err(Error::NothingToChoose { paper: paper.name() });
    }
    let measured = match &arguments.from {
        Some(path) => paper.read(path)?,
        None => {
            let mut signals = Signals::catch()?;
            let measured = measured(arguments, &mut signals);
            if let Some(signal) = signals.caught() {
                eprintln!("tcam: ended by {}; nothing is written", signals::name_of(signal));
                return Ok(ending::code_of(signal));
            }
            measured?
        }
    };
    let out = &arguments.out;
    let _lock = Lock::of(&fresh::make(out)?)?;
    for figure in measured.figures() {
        println!("{}", figure.terminal());
    }
    let markdown = out.join(paper.name()).with_extension("md");
    file::write(&markdown, measured.markdown())?;
    let path = markdown.with_extension("csv");
    measured.write(&path)?;
    println!("Page:    {}\nNumbers: {}", markdown.display(), path.display());
    Ok(0)
}

fn measured(arguments: &Reproduce, signals: &mut Signals) -> Result<Measured, Error> {
    let effort = arguments.paper.effort(arguments);
    let seeds = effort.seeds;
    let (words, provider) = (&arguments.command, arguments.provider.as_deref());
    // What is wrong with the command is said before anything is measured.
    Ok(match arguments.paper {
        Paper::Colpnp => {
            let mpi = through_mpi::job(words, provider, signals)?;
            let mut numbers = colpnp::measure(effort, signals)?;
            if let Some(mpi) = mpi {
                through_mpi::measure(&mpi, seeds, signals, &mut numbers)?;
            }
            Measured::Colpnp(numbers)
        }
        Paper::Kmeans => Measured::Kmeans(kmeans::measure(effort, signals)?),
        Paper::Hash => {
            let mpi = hash::job(words, provider, signals)?;
            let mut cases = hash::measure(effort, signals)?;
            if let Some(mpi) = mpi {
                hash::through_mpi(&mpi, seeds, signals, &mut cases)?;
            }
            Measured::Hash(cases)
        }
        Paper::Polling => {
            let mpi = polling::job(words, provider, signals)?;
            Measured::Polling(polling::measure(&mpi, seeds, signals)?)
        }
        Paper::TailQueues => {
            let only = arguments.only.as_deref();
            Measured::TailQueues(tail_queues::measure(effort, only, signals)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(name: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
        std::fs::read_to_string(path).unwrap()
    }

    fn stored(paper: Paper) -> Measured {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        paper.read(&docs.join(paper.name()).with_extension("csv")).unwrap()
    }

    fn numbers() -> Numbers {
        match stored(Paper::Colpnp) {
            Measured::Colpnp(numbers) => numbers,
            other => panic!("{other:?}"),
        }
    }

    /// `tcam reproduce PAPER --from docs/PAPER.csv --out docs` makes it so.
    #[test]
    fn pages_are_those_of_their_numbers() {
        for &paper in Paper::value_variants() {
            let page = paper.name().to_owned() + ".md";
            assert!(stored(paper).markdown() == doc(&page), "docs/{page} is out of date");
        }
    }

    /// The sections of docs/papers.md, as they are.
    #[test]
    fn the_verdicts_on_the_page_of_papers_are_computed() {
        let papers = doc("papers.md");
        for &paper in Paper::value_variants() {
            let computed = stored(paper).figures()[0].markdown();
            let (_, section) = computed.split_once("\n\n").unwrap();
            assert!(papers.contains(section), "docs/papers.md lacks these verdicts:\n{section}");
        }
    }

    #[test]
    fn what_differs_has_a_reason() {
        let numbers = numbers();
        for judged in judged::all(&numbers) {
            let reason = reasons::of(&judged);
            assert_ne!(reason, Some(reasons::UNKNOWN), "{:?}", judged.claim);
        }
        assert!(!stored(Paper::TailQueues).markdown().contains(reasons::UNKNOWN));
    }
}
