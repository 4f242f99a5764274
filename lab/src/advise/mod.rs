// SPDX-License-Identifier: BSD-2-Clause
//! `tcam advise`: which host engine, storage and table size a recorded program should have.
//!
//! ```text
//! program (counts of every engine) ---> advice ---> words, JSON
//! contender, stream, cost, features        ^
//!                                        models <--- train, validate <--- set
//! ```
//! After *Hint-driven matching*, section V: a profiler, micro-benchmarks, and classifiers that tell
//! which engine suits an application.

mod advice;
mod classifier;
mod contender;
mod cost;
mod features;
mod math;
mod models;
mod program;
mod set;
mod stream;
mod told;
mod train;
mod validate;
mod words;

use std::path::PathBuf;

use clap::Args;

use crate::error::Error;
use crate::file;
use crate::options::Tables;
use crate::results::json::{Json, Kind};
use crate::settings::{self, Settings};
use crate::traces::files::{self, Found, Ppn, Take};
use crate::traces::repeats;
use advice::Advice;
use contender::Contender;
use models::{MODELS, Models};
use program::Run;
use stream::Yardstick;
use told::Told;
use validate::VALIDATION;

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
    #[arg(long, conflicts_with_all = ["device", "prq", "umq", "set", "place", "ppn", "traces"])]
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
    ppn: Ppn,

    #[command(flatten)]
    take: Take,

    /// Traces, or directories of traces.
    #[arg(required_unless_present = "train", value_name = "TRACE")]
    traces: Vec<PathBuf>,
}

/// A program with some tables.
struct Case {
    entries: [u64; 2],
    current: Contender,
    runs: Vec<Run>,
    advice: Option<Advice>,
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
    let take = Take { ppn: arguments.ppn.ppn, ..arguments.take };
    let found = repeats::find(&arguments.traces, take)?;
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

impl Case {
    fn of(
        found: &[Found],
        settings: &Settings,
        yardstick: Option<&Yardstick>,
        models: &Models,
    ) -> Result<Self, Error> {
        let mut runs = Vec::with_capacity(found.len());
        for found in found {
            let mut run = Run::of(found, settings)?;
            if let Some(yardstick) = yardstick {
                run.measure(found, settings, yardstick)?;
            }
            runs.push(run);
        }
        let params = found[0][0].params(settings)?;
        let entries = ["prq_entries", "umq_entries"].map(|name| params.number(name) as u64);
        let current = program::current(&found[0], settings)?;
        let advice = Advice::of(&runs, current, models);
        Ok(Self { entries, current, runs, advice })
    }

    /// Longest PRQ and UMQ of all runs.
    fn marks(&self) -> [u64; 2] {
        [0, 1].map(|queue| self.runs.iter().map(|run| run.marks[queue]).max().unwrap_or(0))
    }

    /// A size of both tables that holds what was seen and as much more as it varied.
    fn recommended(&self) -> u64 {
        let of_queue = |queue: usize| {
            let marks = || self.runs.iter().map(|run| run.marks[queue]);
            let (least, most) = (marks().min().unwrap_or(0), marks().max().unwrap_or(0));
            most + (most - least)
        };
        of_queue(0).max(of_queue(1)).max(1).next_power_of_two()
    }
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
    for engine in Contender::left_out() {
        println!("{engine} is not judged: it needs clusters of an earlier run");
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

#[cfg(test)]
mod tests {
    use matching::{HostEngine, Queue};

    use super::*;
    use crate::commands::workload::tests::write_pattern;
    use crate::workload::pattern::Pattern;

    const SAMPLES: &str = include_str!("../../advisor/samples.csv");
    const COSTS: &str = include_str!("../../advisor/costs.csv");

    /// All of the models takes long without optimization: tests/advise.py compares that.
    #[test]
    fn costs_are_learned_again_to_the_bit() {
        let set = set::parse(SAMPLES, COSTS).unwrap();
        let models = Models::stored().unwrap();
        assert_eq!(models.streams, set.samples.len());
        let costs = |costs: &[models::CostOf]| serde_json::to_string(costs).unwrap();
        assert_eq!(costs(&train::costs(&set.samples)), costs(&models.costs));
    }

    #[test]
    fn the_page_has_what_was_found_in_validation() {
        let page = include_str!("../../../docs/papers.md");
        assert!(page.contains(include_str!("../../advisor/validation.md")));
    }

    fn case(pattern: Pattern, ranks: u32, settings: &[(&str, &str)]) -> Case {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("traces");
        write_pattern(pattern, ranks, 4, &out);
        let found = [files::find(&[out], Take::default()).unwrap()];
        let mut all = Settings::default();
        settings.iter().for_each(|(name, value)| all.set(name, value));
        Case::of(&found, &all, None, Models::stored().unwrap()).unwrap()
    }

    const NO_TABLES: [(&str, &str); 2] = [("prq_entries", "0"), ("umq_entries", "0")];

    #[test]
    fn no_engine_matters_where_nothing_leaves_the_tables() {
        let case = case(Pattern::Shuffle, 2, &[]);
        assert!(case.advice.is_none());
        assert_eq!((case.marks(), case.recommended()), ([1024, 0], 1024));
        let sentence = words::sentence(&case.runs, None);
        assert_eq!(sentence, "any engine: nothing leaves the tables");
    }

    #[test]
    fn a_long_list_is_left_for_a_faster_engine() {
        let list = [("host_engine", "list"), ("queue", "linked")];
        let case = case(Pattern::Shuffle, 2, &[NO_TABLES, list].concat());
        let advice = case.advice.unwrap();
        assert_eq!(case.current, Contender { engine: HostEngine::List, queue: Queue::Linked });
        assert!(!advice.keeps() && advice.saves[0] > 0.5, "{advice:?}");
        assert!(advice.confidence > 0.5, "{advice:?}");
        let sentence = words::sentence(&case.runs, Some(&advice));
        assert!(
            sentence.contains(": no wildcard in 1 run, 95th percentile of a list "),
            "{sentence}"
        );
        assert!(sentence.contains(" % less matching time than list, linked"), "{sentence}");
    }

    #[test]
    fn hash_is_not_for_programs_with_wildcards() {
        let list = [("host_engine", "list"), ("queue", "linked")];
        for ranks in [64, 512] {
            let case = case(Pattern::Manager, ranks, &[NO_TABLES, list].concat());
            let advice = case.advice.unwrap();
            assert_ne!(advice.advised.engine, HostEngine::Hash);
            let told = words::doubts(&case.runs, &advice).join("\n");
            assert_eq!(told.contains("hash is predicted to be faster"), advice.forbidden.is_some());
            let wildcards = words::wildcards(&case.runs);
            assert_eq!(wildcards, "100.0 % of the receives in 1 run have a wildcard");
        }
    }
}
