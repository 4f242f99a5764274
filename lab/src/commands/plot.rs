// SPDX-License-Identifier: BSD-2-Clause
//! `tcam plot`: draws the pictures of an experiment.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::error::Error;
use crate::experiment::{Experiment, Inputs, Keep, Material, figures, repeated};
use crate::file;
use crate::results::{EarlierFiles, output_directory};

/// Draws the pictures of an experiment.
///
/// The pictures show the length of the longest queues over time (lengths), the origin of their
/// elements (fill), and the part of them in the table (occupancy). Others are histograms of search
/// depths (depths), reasons why elements were not in the table (blocks), and maps of the entries
/// compared and traversed on each rank (map, traversals). From traces there is also the capacity
/// curve (curve). The pictures of several recordings are in directories DIR/1-NAME and so on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam plot reports
  tcam plot tcam-trace --out pictures --format svg")]
pub(crate) struct Plot {
    #[command(flatten)]
    from: Inputs,

    /// Directory for the pictures. Files of an earlier call that are not replaced stay; a message
    /// names them.
    #[arg(long, value_name = "DIR", default_value = "tcam-plot")]
    out: PathBuf,

    /// File formats of each picture.
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

/// Draws the pictures. Returns 0, or 3 if results are incomplete.
pub(crate) fn plot(arguments: &Plot) -> Result<u8, Error> {
    let expected = "there are several pictures: give a directory; --format says svg or png";
    file::check_kind(&arguments.out, &[], expected)?;
    output_directory::check(&arguments.out)?;
    repeated::write_each(&arguments.from, Keep::Shown, &arguments.out, |experiment, out| {
        draw(arguments, experiment, out)
    })
}

/// Draws the pictures of one experiment. Returns the exit code.
fn draw(arguments: &Plot, experiment: &Experiment, out: &Path) -> Result<u8, Error> {
    let earlier = EarlierFiles::of(out, &figures::NAMES, &["svg", "png"]);
    let material = Material::of(experiment)?;
    let code = experiment.code(arguments.from.take);
    let figures = figures::all(experiment, &material);
    let has_blocks = figures.iter().any(|figure| figure.name == "blocks");
    for figure in figures {
        let path = |ending: &str| out.join(figure.name).with_extension(ending);
        if arguments.format != Format::Png {
            let path = path("svg");
            file::write(&path, figure.picture.svg()?)?;
            println!("{}", path.display());
        }
        if arguments.format != Format::Svg {
            let path = path("png");
            figure.picture.png(&path)?;
            println!("{}", path.display());
        }
    }
    if !has_blocks {
        eprintln!("Nothing spilled: there is no picture of why elements were not in the table.");
    }
    earlier.note("pictures");
    Ok(code)
}
