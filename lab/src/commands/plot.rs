// SPDX-License-Identifier: BSD-2-Clause
//! `tcam plot`: the pictures of an experiment.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::error::Error;
use crate::experiment::figures;
use crate::experiment::gathering::Keep;
use crate::experiment::material::Material;
use crate::experiment::outcome::Experiment;
use crate::experiment::sources::Sources;
use crate::file;
use crate::results::fresh::{self, Earlier};
use crate::results::lock::Lock;

/// Draws what the tables of an experiment did.
///
/// Writes the length of the longest queues over time, whose elements they had, what of them was in the table,
/// histograms of search depths, why elements were not in the table, a map of the
/// entries compared on each rank and, from traces, the capacity curve.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam plot reports
  tcam plot tcam-trace --out pictures --format svg")]
pub(crate) struct Plot {
    #[command(flatten)]
    from: Sources,

    /// Where the pictures go; files of other names stay as they are.
    #[arg(long, value_name = "DIR", default_value = "tcam-plot")]
    out: PathBuf,

    /// What is written of each picture.
    #[arg(long, value_enum, default_value_t = Format::Both)]
    format: Format,
}

/// Value of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Svg,
    Png,
    Both,
}

/// Draws the pictures. Returns 0, or 3 of a part of the ranks.
pub(crate) fn plot(arguments: &Plot) -> Result<u8, Error> {
    let expected = "there are several pictures: give a directory; --format says svg or png";
    file::check_kind(&arguments.out, &[], expected)?;
    let experiment = Experiment::read(&arguments.from, Keep::Shown)?;
    let _lock = Lock::of(&fresh::make(&arguments.out)?)?;
    let earlier = Earlier::of(&arguments.out, &figures::NAMES, &["svg", "png"]);
    let material = Material::of(&experiment)?;
    let code = experiment.code(arguments.from.take);
    for figure in figures::all(&experiment, &material) {
        let path = |ending: &str| arguments.out.join(figure.name).with_extension(ending);
        if arguments.format != Format::Png {
            let path = path("svg");
            file::write(&path, figure.svg()?)?;
            println!("{}", path.display());
        }
        if arguments.format != Format::Svg {
            let path = path("png");
            figure.png(&path)?;
            println!("{}", path.display());
        }
    }
    if !figures::has_blocks(&experiment) {
        eprintln!("Nothing spilled: there is no picture of why elements were not in the table.");
    }
    earlier.note("pictures");
    Ok(code)
}
