// SPDX-License-Identifier: BSD-2-Clause
//! `tcam show`: prints the tables of an experiment, by rank, by origin of the elements, or by
//! thread.

use std::path::{Path, PathBuf};

use clap::Args;
use nic::plain::plain;
use serde::Serialize;

use crate::capacity::{Need, need};
use crate::error::Error;
use crate::experiment::{
    By, CallSites, Counts, Experiment, Groups, Inputs, Keep, Repeated, Threads, TimeWindow, by,
    fill, phases, repeated, sheets,
};
use crate::options::number;
use crate::results::{Completeness, Json, Kind, summary_text};
use crate::text::Sheet;
use crate::traces::{Take, play};

/// The content of the tables.
#[derive(Debug, Args)]
pub(crate) struct Tables {
    /// Prints all ranks, not only the worst; --json always has all.
    #[arg(long)]
    pub(super) all: bool,

    /// Groups the elements of the queues by communicator, tag, peer, kind, line of the program or
    /// phase, at the moment when each queue was longest and over the run; or prints the operations
    /// of each thread. Needs traces.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) by: Option<By>,

    /// With --by, except phase: leaves out operations before this time since the run began.
    /// Elements that are in the queues at that time count.
    #[arg(long, value_name = "SECONDS", requires = "by",
        value_parser = number(0.0..=f64::MAX, "a number of seconds is expected"))]
    from: Option<f64>,

    /// With --by, except phase: leaves out operations after this time since the run began.
    #[arg(long, value_name = "SECONDS", requires = "by",
        value_parser = number(0.0..=f64::MAX, "a number of seconds is expected"))]
    to: Option<f64>,
}

/// Error if no recording has places.
pub(super) const NO_PLACES: &str =
    "--by site: these traces have no places; `tcam run --sites --trace DIR` records them";

/// Message on one of several recordings.
pub(super) const WITHOUT_PLACES: &str = "left out, because it was recorded without --sites";

impl Tables {
    /// Returns false if places are wanted that were not recorded.
    pub(super) fn has_groups(&self, experiment: &Experiment) -> bool {
        self.by != Some(By::Site) || CallSites::are_recorded(&experiment.traces)
    }
}

/// Prints the tables, or their numbers as JSON. Returns 0, or 3 if results are incomplete.
pub(super) fn show(sources: &Inputs, tables: &Tables, json: &Json) -> Result<u8, Error> {
    json.check()?;
    let window = window(tables)?;
    let (names, experiments) = match repeated::apart(sources, Keep::Shown)? {
        Some(experiments) if tables.by.is_none() && repeated::are_repeats(&experiments) => {
            return show_runs(sources, &experiments, json);
        }
        Some(experiments) => {
            let name = |name: &PathBuf| Some(plain(&name.display().to_string()).into_owned());
            (sources.names.iter().map(name).collect(), experiments)
        }
        None => (vec![None], vec![Experiment::read(sources, Keep::Shown)?]),
    };
    let needs = match tables.by {
        Some(_) => experiments.iter().map(|_| None).collect(),
        None => experiments.iter().map(Experiment::need).collect::<Result<Vec<_>, _>>()?,
    };
    let (mut recordings, mut code) = (Vec::new(), 0);
    let leaves_out = experiments.iter().any(|experiment| tables.has_groups(experiment));
    for ((name, experiment), need) in names.into_iter().zip(&experiments).zip(&needs) {
        if leaves_out && !tables.has_groups(experiment) {
            eprintln!("{}: {WITHOUT_PLACES}", name.unwrap_or_default());
            continue;
        }
        if let Some(name) = name.as_ref().filter(|_| !json.takes_output()) {
            println!("{}{name}:", if recordings.is_empty() { "" } else { "\n" });
        }
        let (numbers, of) = match tables.by {
            Some(by) => {
                let by = print_by(json, experiment, by, window)?;
                (Numbers::By(by), experiment.silent_code(sources.take))
            }
            None => {
                let code = print(sources.take, tables, experiment, need.as_ref(), json);
                (Numbers::Counts(Box::new(experiment.counts(need.as_ref()))), code)
            }
        };
        code = code.max(of);
        recordings.push(Recording { name, numbers });
    }
    json.write_each(Kind::Show, &recordings)?;
    Ok(code)
}

/// Returns the part of the run that `--from` and `--to` select.
fn window(tables: &Tables) -> Result<TimeWindow, Error> {
    let window = TimeWindow {
        from: tables.from.unwrap_or(TimeWindow::ALL.from),
        to: tables.to.unwrap_or(TimeWindow::ALL.to),
    };
    if window.from >= window.to {
        fail!("--from {} and --to {}: nothing is between them", window.from, window.to);
    }
    if tables.by == Some(By::Phase) && window != TimeWindow::ALL {
        fail!("--by phase: phases are those of the whole run; leave out --from and --to");
    }
    Ok(window)
}

/// The JSON of a recording.
#[derive(Debug, Serialize)]
struct Recording<'a> {
    /// Name of the directory, if several recordings were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(flatten)]
    numbers: Numbers<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Numbers<'a> {
    Counts(Box<Counts<'a>>),
    By(NumbersBy),
}

/// Prints the tables of one experiment. Returns the exit code.
fn print(
    take: Take,
    tables: &Tables,
    experiment: &Experiment,
    need: Option<&Need>,
    json: &Json,
) -> u8 {
    if json.takes_output() {
        return experiment.code(take);
    }
    if let Some(lack) = experiment.sum.lack() {
        println!("{lack}");
    }
    println!("{}", experiment.title());
    experiment.sum.remarks.iter().for_each(|remark| println!("{remark}"));
    for sheet in sheets::all(experiment, (!tables.all).then_some(sheets::WORST)) {
        println!("\n{}", sheet.terminal());
    }
    summary_text::facts(&experiment.sum).iter().for_each(|fact| println!("{fact}"));
    if let Some(needed) = need::nic_sentence(need, experiment.lack().is_some()) {
        // The tables are computed from reports. The need of a NIC is computed from traces, and the
        // traces of some ranks may be missing.
        experiment.lack_of_traces().iter().for_each(|lack| println!("{lack}"));
        println!("{needed}");
    }
    experiment.silent_code(take)
}

/// Prints the needs of several runs. Returns the exit code.
fn show_runs(sources: &Inputs, experiments: &[Experiment], json: &Json) -> Result<u8, Error> {
    let repeated = Repeated::of(sources, experiments);
    for (name, experiment) in sources.names.iter().zip(experiments) {
        let lack = experiment.sum.lack();
        lack.iter().for_each(|lack| eprintln!("{}: {lack}", name.display()));
    }
    if !json.takes_output() {
        repeated.print();
    }
    json.write(Kind::Show, repeated)?;
    let code = |of: &Experiment| of.sum.ranks.code(sources.take.partial);
    Ok(experiments.iter().map(code).max().unwrap_or(0))
}

/// The JSON of `--by` for one recording.
#[derive(Debug, Serialize)]
struct NumbersBy {
    title: String,
    #[serde(flatten)]
    completeness: Completeness,
    #[serde(flatten)]
    groups: GroupsBy,
}

/// Numbers by group, phase or thread.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum GroupsBy {
    Groups(Groups),
    Phases {
        phases: Vec<by::PhaseNeed>,
        /// Names collective operations whose calls could not be distinguished.
        warnings: Vec<String>,
    },
    Threads(Threads),
}

impl GroupsBy {
    fn of(experiment: &Experiment, by: By, window: TimeWindow) -> Result<Self, Error> {
        let traces = &experiment.traces;
        play::with_bar(traces, 1, |bar| match by {
            By::Phase => {
                let found = phases::of(traces)?;
                let phases = by::needed_in(traces, &found)?;
                Ok(Self::Phases { phases, warnings: found.warnings })
            }
            By::Thread => Threads::of(traces, window, bar).map(Self::Threads),
            By::Communicator | By::Tag | By::Peer | By::Kind | By::Site => {
                Ok(Self::Groups(Groups::of(&fill::of(traces, window, bar)?, by)))
            }
        })
    }

    /// Returns the tables for the terminal, and sentences about them.
    fn sheets(&self) -> (Vec<Sheet>, Vec<String>) {
        match self {
            Self::Groups(groups) => (vec![groups.sheet()], groups.readings.clone()),
            Self::Phases { phases, warnings } => {
                let notes = warnings.iter().cloned().chain(by::notes_of(phases));
                (vec![by::sheet_of(phases)], notes.collect())
            }
            Self::Threads(threads) => (threads.sheets(), threads.readings.clone()),
        }
    }
}

/// Fails if the recording does not have what `--by` needs.
fn check_by(experiment: &Experiment, by: By) -> Result<(), Error> {
    if experiment.traces.is_empty() {
        fail!("--by: takes traces, of `tcam run --trace`: reports do not have each operation");
    }
    if by == By::Site && !CallSites::are_recorded(&experiment.traces) {
        fail!("{NO_PLACES}");
    }
    Ok(())
}

/// Writes the groups of one recording to a directory, as CSV or Parquet.
pub(super) fn write_groups(
    experiment: &Experiment,
    tables: &Tables,
    out: &Path,
    parquet: bool,
) -> Result<(), Error> {
    let Some(by) = tables.by else { return Ok(()) };
    let window = window(tables)?;
    check_by(experiment, by)?;
    let GroupsBy::Groups(groups) = GroupsBy::of(experiment, by, window)? else {
        fail!("--by phase and --by thread: go only without --format; --json FILE has the numbers");
    };
    groups.readings.iter().for_each(|reading| eprintln!("{reading}"));
    groups.write(out, parquet)
}

/// Prints the groups or threads of one recording. Returns its JSON.
fn print_by(
    json: &Json,
    experiment: &Experiment,
    by: By,
    window: TimeWindow,
) -> Result<NumbersBy, Error> {
    check_by(experiment, by)?;
    let groups = GroupsBy::of(experiment, by, window)?;
    let lack = experiment.lack_of_traces().or_else(|| experiment.sum.lack());
    let (sheets, readings) = groups.sheets();
    json.tell(lack);
    if json.takes_output() {
        let warnings = readings.iter().filter(|_| by == By::Phase);
        warnings.for_each(|warning| eprintln!("{warning}"));
    } else {
        println!("{}", experiment.title());
        by::window_note(window).iter().for_each(|note| println!("{note}"));
        sheets.iter().for_each(|sheet| println!("\n{}", sheet.terminal()));
        readings.iter().for_each(|reading| println!("{reading}"));
    }
    let completeness = experiment.traces.ranks().completeness();
    Ok(NumbersBy { title: experiment.title(), completeness, groups })
}
