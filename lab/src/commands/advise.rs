// SPDX-License-Identifier: BSD-2-Clause
//! `tcam advise`: which host engine, storage and table size a recorded program should have.

use std::path::PathBuf;

use clap::Args;

use crate::advise::case::Case;
use crate::advise::contender::Contender;
use crate::advise::models::{MODELS, Models};
use crate::advise::stream::Yardstick;
use crate::advise::told::{self, Told};
use crate::advise::validate::{self, VALIDATION};
use crate::advise::{set, words};
use crate::capacity::need;
use crate::error::Error;
use crate::file;
use crate::options::Tables;
use crate::results::json::{Json, Kind};
use crate::settings::{self, Settings};
use crate::traces::files::{self, Found};
use crate::traces::node::Placed;
use crate::traces::repeats;
use crate::traces::take::Take;

/// Advises on the host engine and the size of the tables for a recorded program.
///
/// Plays the traces to every engine, predicts from what these count how long each would take, and
/// tells which one to take, what that saves, how sure it is, and how large the tables have to be:
/// for the tables as recorded or as --device has them, and without tables. Directories that have
/// ranks in common are runs of one program, whose spread is the range that is told.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam advise tcam-trace
  tcam advise --device connectx run-1 run-2 run-3
  tcam advise --measure tcam-trace
  tcam advise --json - tcam-trace
Times are of matching alone, on a machine like the one that the models were measured on; --measure
has those of this one. `tcam advise --train` learns again from the streams in lab/advisor, with
--measure after it measured them here.")]
pub(crate) struct Advise {
    /// Tables of a device (`tcam devices`), in place of those recorded.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    #[command(flatten)]
    tables: Tables,

    /// Sets a parameter of the device, such as overflow=prefix.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Measures replays on this machine and tells times beside those predicted; with --train, of
    /// the training set, in a quarter of an hour. Takes a quiet machine.
    #[arg(long)]
    measure: bool,

    /// Learns the models anew from samples.csv and costs.csv, and writes models.json and
    /// validation.md.
    #[arg(long, conflicts_with_all = ["device", "prq", "umq", "set", "place", "ppn", "placement", "traces"])]
    train: bool,

    /// With --train: where these files are.
    #[arg(long, value_name = "DIR", default_value = "lab/advisor", requires = "train")]
    out: PathBuf,

    /// Measures the training set and learns nothing.
    #[arg(long, hide = true, requires_all = ["train", "measure"])]
    in_one_process: bool,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    placed: Placed,

    #[command(flatten)]
    take: Take,

    /// Traces, or directories of traces.
    #[arg(required_unless_present = "train", value_name = "TRACE")]
    traces: Vec<PathBuf>,
}

/// Prints the advice. Returns 0, or 3 of a part of the ranks.
pub(crate) fn advise(arguments: &Advise) -> Result<u8, Error> {
    if arguments.train {
        return train(arguments);
    }
    settings::note_unused();
    let mut settings = Settings::for_replay("--set", &arguments.set)?;
    settings.give("device", "--device", arguments.device.as_ref())?;
    settings.give_sizes(arguments.tables)?;
    let found = repeats::find(&arguments.traces, arguments.take, &arguments.placed)?;
    for found in &found {
        files::params(found, &settings)?;
        if let Some(mixed) = files::mixed(found) {
            eprintln!("{mixed}");
        }
    }
    arguments.json.check()?;
    let models = Models::stored()?;
    let yardstick = arguments.measure.then(Yardstick::new).transpose()?;
    let as_set = Case::of(&found, &settings, yardstick.as_ref(), models)?;
    if as_set.runs.iter().all(|run| run.operations == 0) {
        return Err(Error::NothingHappened(arguments.traces[0].clone()));
    }
    let mut cases = vec![as_set];
    if cases[0].entries != [0, 0] {
        let mut none = settings.clone();
        none.set("prq_entries", &0);
        none.set("umq_entries", &0);
        cases.push(Case::of(&found, &none, yardstick.as_ref(), models)?);
    }
    // What was cut off is known now.
    let lacks: Vec<_> = found.iter().filter_map(|found| found.ranks().lack("trace")).collect();
    if !arguments.json.takes_output() {
        lacks.iter().for_each(|lack| println!("{lack}"));
        print(&found, &cases, models);
    } else {
        lacks.iter().for_each(|lack| eprintln!("{lack}"));
    }
    arguments.json.write(Kind::Advise, Told::of(&found, &cases, models))?;
    let codes = found.iter().map(|found| found.ranks().code(arguments.take.partial));
    Ok(codes.max().unwrap_or(0))
}

fn print(found: &[Found], cases: &[Case], models: &Models) {
    println!("{}", told::title(found));
    for case in cases {
        let Case { entries, current, runs, advice } = case;
        let spilled = runs.iter().map(|run| 100.0 * run.spilled).fold(0.0, f64::max);
        println!(
            "\nAdvice {}: {}",
            words::tables(*entries),
            words::sentence(runs, advice.as_ref())
        );
        if let Some(advice) = advice {
            words::doubts(runs, advice).iter().for_each(|line| println!("  {line}"));
            if *entries != [0, 0] {
                println!("  {} of the elements spill", crate::text::numbers::share(spilled));
            }
            println!("{}", words::sheet(runs, *current, models).table());
        }
    }
    println!("\n{}", words::size(cases[0].recommended(), cases[0].marks()));
    let needs = cases[0].runs.iter().map(|run| &run.need);
    need::told_of_nic(needs).iter().for_each(|line| println!("{line}"));
    for (engine, why) in Contender::left_out() {
        println!("{engine} is not judged: {why}");
    }
}

/// Learns, after measuring if that is wanted. Returns 0.
fn train(arguments: &Advise) -> Result<u8, Error> {
    let out = &arguments.out;
    if arguments.in_one_process {
        set::write(out, &set::measure_here()?)?;
        return Ok(0);
    }
    if arguments.measure {
        set::write(out, &set::measure()?)?;
    }
    let (models, page) = validate::validate(&set::read(out)?);
    file::write(&out.join(MODELS), models.to_json()?)?;
    file::write(&out.join(VALIDATION), page)?;
    println!("{}", out.join(MODELS).display());
    println!("{}", out.join(VALIDATION).display());
    Ok(0)
}
