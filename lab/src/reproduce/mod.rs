// SPDX-License-Identifier: BSD-2-Clause
//! `tcam reproduce`: a paper's tables and figures beside ours, from generated
//! workloads.

mod colpnp;
mod figure;
mod measure;
mod paper;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::error::Error;
use crate::file::{self, NewFile};
use crate::fresh;

/// Prints the tables and figures of a paper beside ours.
///
/// The streams are those of `tcam workload`, replayed to a device without table
/// entries, so that the host engines match everything. The engines take turns in one
/// process; times are medians, and ratios tell more than they do. What is printed is
/// also written to DIR as Markdown, and every number as CSV.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  tcam reproduce colpnp --out colpnp
takes about a minute.")]
pub(crate) struct Reproduce {
    /// Which paper.
    #[arg(value_enum)]
    paper: Paper,

    /// Milliseconds for each engine and workload, at least.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200,
        value_parser = clap::value_parser!(u64).range(1..=600_000),
        allow_negative_numbers = true
    )]
    ms: u64,

    /// Orders of arrival.
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,

    /// Where the page and the numbers go.
    #[arg(long, value_name = "DIR", default_value = "tcam-reproduce")]
    out: PathBuf,
}

/// The papers there are.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Paper {
    /// COL+PNP: dedicated queues for collective operations and partners
    Colpnp,
}

/// What a measurement of a paper needs.
#[derive(Clone, Copy, Debug)]
struct Effort {
    time: Duration,
    seed: u64,
}

/// Measures, prints and stores.
pub(crate) fn reproduce(arguments: &Reproduce) -> Result<u8, Error> {
    let out = &arguments.out;
    fresh::make(out)?;
    let effort = Effort { time: Duration::from_millis(arguments.ms), seed: arguments.seed };
    let Paper::Colpnp = arguments.paper;
    let made = colpnp::reproduce(effort)?;

    let mut page = colpnp::PREFACE.to_owned();
    for figure in &made.figures {
        println!("{}", figure.terminal());
        page += &figure.markdown();
    }
    let markdown = out.join("colpnp.md");
    file::write(&markdown, page.trim_end().to_owned() + "\n")?;
    let path = out.join("colpnp.csv");
    let csv_error = |error| Error::Csv { path: path.clone(), error };
    let mut csv = csv::Writer::from_writer(NewFile::create(&path)?);
    for number in &made.numbers {
        csv.serialize(number).map_err(csv_error)?;
    }
    csv.into_inner().map_err(|error| Error::io(&path)(error.into_error()))?.keep()?;
    println!("Page:    {}\nNumbers: {}", markdown.display(), path.display());
    Ok(0)
}
