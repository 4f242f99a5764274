// SPDX-License-Identifier: BSD-2-Clause
//! What looks at an experiment: `tcam plot`, `tcam stats`, `tcam export`,
//! `tcam report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::error::Error;
use crate::experiment::by::{self, By, Groups};
use crate::experiment::fill::{self, Window};
use crate::experiment::material::Material;
use crate::experiment::outcome::Experiment;
use crate::experiment::repeated::{self, Repeated};
use crate::experiment::sources::Sources;
use crate::experiment::{export, figures, operations, page, sheets};
use crate::file;
use crate::results::fresh::{self, Earlier};
use crate::results::json::{Json, Kind};
use crate::results::ranks::Completeness;
use crate::traces::play;

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

/// Prints what the tables of an experiment did.
///
/// Tables of the ranks, the worst first, of kinds of traffic, of search depths, of
/// high-water marks, and why elements were not in the table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam stats reports
  tcam stats --all tcam-trace
  tcam stats --by tag tcam-trace
  tcam stats --by peer --from 2.5 tcam-trace
  tcam stats --json - reports
  tcam stats run-1 run-2 run-3
Directories that have ranks in common are runs of one program: it tells what each of them needed.
With --json there are always all ranks. Phases end with each collective operation of
MPI_COMM_WORLD that all ranks took part in; times are seconds since the first trace began.")]
pub(crate) struct Stats {
    #[command(flatten)]
    sources: Sources,

    /// All ranks, not only the worst.
    #[arg(long)]
    all: bool,

    /// Who fills the queues: their elements by communicator, tag, peer, kind or phase, when each
    /// queue was longest and over the run. Takes traces.
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<By>,

    /// With --by: leaves out what was before so many seconds of the recording.
    #[arg(long, value_name = "SECONDS", requires = "by", value_parser = seconds)]
    from: Option<f64>,

    /// With --by: leaves out what was after so many seconds.
    #[arg(long, value_name = "SECONDS", requires = "by", value_parser = seconds)]
    to: Option<f64>,

    #[command(flatten)]
    json: Json,
}

/// Writes what an experiment counted as CSV or Parquet, for pandas and others.
///
/// queues.csv has a line for each rank and queue, kinds.csv one for each kind of
/// traffic too; depths.csv has the histograms and lengths.csv the lengths over time,
/// a line a value; origin.csv says where all of that comes from. From traces there are also operations.csv and the queue statistics
/// of LogGOPSim (`--qstat`). With `--parquet` the same columns are in queues.parquet and
/// so on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam export reports
  tcam export tcam-trace --out csv
  tcam export tcam-trace --out frames --parquet
LogGOPSim's files are PREFIX-rq-hit.data, -rq-miss.data, -uq-hit.data and -uq-miss.data, with
`depth,time` of each search, time in ns, a line a rank; and -rq-max.data and -uq-max.data.")]
pub(crate) struct Export {
    #[command(flatten)]
    from: Sources,

    /// Where the files go; those of other names stay as they are.
    #[arg(long, value_name = "DIR", default_value = "tcam-export")]
    out: PathBuf,

    /// Parquet instead of CSV: typed columns, and much smaller for operations.
    #[arg(long)]
    parquet: bool,

    /// Prefix of the names of LogGOPSim's files.
    #[arg(long, value_name = "PREFIX", default_value = "qstat", value_parser = name)]
    qstat: String,
}

fn seconds(text: &str) -> Result<f64, &'static str> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    seconds.ok_or("a number of seconds is expected")
}

/// A part of the name of a file; the files go where --out says.
fn name(text: &str) -> Result<String, &'static str> {
    if text.contains('/') {
        return Err("a name without a path is expected; --out is where the files go");
    }
    Ok(text.to_owned())
}

/// Writes an experiment as one page of HTML.
///
/// The pictures of `tcam plot`, the tables of `tcam stats`, the configuration and how to
/// read them, in one file that needs no other, on the screen and in print.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam report reports
  tcam report tcam-trace --out report.html")]
pub(crate) struct ReportPage {
    #[command(flatten)]
    from: Sources,

    /// The page; - is standard output.
    #[arg(long, value_name = "FILE", default_value = "tcam-report.html")]
    out: PathBuf,
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
    let experiment = Experiment::read(&arguments.from)?;
    fresh::make(&arguments.out)?;
    let earlier = Earlier::of(&arguments.out, &figures::NAMES, &["svg", "png"]);
    let material = Material::of(&experiment)?;
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
    Ok(experiment.code(arguments.from.take))
}

/// Prints the tables. Returns the same.
pub(crate) fn stats(arguments: &Stats) -> Result<u8, Error> {
    arguments.json.check()?;
    if arguments.by.is_none()
        && let Some(experiments) = repeated::find(&arguments.sources)?
    {
        return stats_of_runs(arguments, &experiments);
    }
    let experiment = Experiment::read(&arguments.sources)?;
    if let Some(by) = arguments.by {
        return stats_by(arguments, &experiment, by);
    }
    arguments.json.write(Kind::Stats, experiment.counts())?;
    if arguments.json.takes_output() {
        return Ok(experiment.code(arguments.sources.take));
    }
    if let Some(lack) = experiment.sum.lack() {
        println!("{lack}");
    }
    println!("{}", experiment.title());
    experiment.sum.remarks.iter().for_each(|remark| println!("{remark}"));
    for sheet in sheets::all(&experiment, (!arguments.all).then_some(sheets::WORST)) {
        println!("\n{}", sheet.terminal());
    }
    Ok(experiment.sum.ranks.code(arguments.sources.take.partial))
}

/// Prints what several runs needed.
fn stats_of_runs(arguments: &Stats, experiments: &[Experiment]) -> Result<u8, Error> {
    let repeated = Repeated::of(&arguments.sources, experiments);
    for (name, experiment) in arguments.sources.names.iter().zip(experiments) {
        let lack = experiment.sum.lack();
        lack.iter().for_each(|lack| eprintln!("{}: {lack}", name.display()));
    }
    if !arguments.json.takes_output() {
        repeated.print();
    }
    arguments.json.write(Kind::Stats, repeated)?;
    let code = |of: &Experiment| of.sum.ranks.code(arguments.sources.take.partial);
    Ok(experiments.iter().map(code).max().unwrap_or(0))
}

/// What `--by --json` tells.
#[derive(Debug, Serialize)]
struct ToldBy<'a> {
    title: String,
    #[serde(flatten)]
    completeness: Completeness,
    #[serde(flatten)]
    groups: &'a Groups,
}

/// What `--by phase --json` tells.
#[derive(Debug, Serialize)]
struct ToldPhases<'a> {
    title: String,
    #[serde(flatten)]
    completeness: Completeness,
    phases: &'a [by::Phase],
}

/// Prints who fills the queues.
fn stats_by(arguments: &Stats, experiment: &Experiment, by: By) -> Result<u8, Error> {
    if experiment.traces.is_empty() {
        return Err(Error::NoOperations { option: "--by" });
    }
    let window = Window {
        from: arguments.from.unwrap_or(Window::ALL.from),
        to: arguments.to.unwrap_or(Window::ALL.to),
    };
    if window.from >= window.to {
        return Err(Error::EmptyWindow { from: window.from, to: window.to });
    }
    let completeness = experiment.traces.ranks().completeness();
    let (sheet, readings): (_, Vec<_>) = if by == By::Phase {
        let phases = by::phases(&experiment.traces)?;
        let told = ToldPhases { title: experiment.title(), completeness, phases: &phases };
        arguments.json.write(Kind::Stats, told)?;
        (by::sheet_of(&phases), by::note_of(&phases).into_iter().collect())
    } else {
        let bar = play::bar(&experiment.traces, 1);
        let makeups = fill::of(&experiment.traces, window, &bar)?;
        bar.finish_and_clear();
        let groups = Groups::of(&makeups, by);
        let told = ToldBy { title: experiment.title(), completeness, groups: &groups };
        arguments.json.write(Kind::Stats, told)?;
        (groups.sheet(), groups.readings().iter().cloned().chain(groups.note()).collect())
    };
    if arguments.json.takes_output() {
        return Ok(experiment.code(arguments.sources.take));
    }
    let lack = experiment.lack_of_traces().or_else(|| experiment.sum.lack());
    lack.iter().for_each(|lack| println!("{lack}"));
    println!("{}", experiment.title());
    by::window_note(window).iter().for_each(|note| println!("{note}"));
    println!("\n{}", sheet.terminal());
    readings.iter().for_each(|reading| println!("{reading}"));
    Ok(experiment.silent_code(arguments.sources.take))
}

/// Writes the files. Returns the same.
pub(crate) fn export(arguments: &Export) -> Result<u8, Error> {
    let expected = "there are several files: give a directory; --parquet says of which kind";
    file::check_kind(&arguments.out, &[], expected)?;
    let experiment = Experiment::read(&arguments.from)?;
    fresh::make(&arguments.out)?;
    let earlier = Earlier::of(&arguments.out, &export::NAMES, &["csv", "parquet"]);
    export::write(&experiment, &arguments.out, arguments.parquet)?;
    if !experiment.traces.is_empty() {
        operations::write(&experiment, &arguments.out, &arguments.qstat, arguments.parquet)?;
    }
    earlier.note("files");
    Ok(experiment.code(arguments.from.take))
}

/// Writes the page. Returns the same.
pub(crate) fn report(arguments: &ReportPage) -> Result<u8, Error> {
    file::check_kind(
        &arguments.out,
        &["html"],
        "a page of HTML is written: give a name such as x.html",
    )?;
    let experiment = Experiment::read(&arguments.from)?;
    let page = page::of(&experiment)?;
    if arguments.out.as_os_str() == "-" {
        print!("{page}");
        return Ok(experiment.code(arguments.from.take));
    }
    file::write(&arguments.out, page)?;
    println!("{}", arguments.out.display());
    Ok(experiment.code(arguments.from.take))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_no_paths() {
        assert_eq!(name("qstat").as_deref(), Ok("qstat"));
        for path in ["../evil", "/tmp/evil", "evil/"] {
            assert!(name(path).is_err(), "{path}");
        }
    }
}
