// SPDX-License-Identifier: BSD-2-Clause
//! `tcam engines`: measures the time that each host engine takes to match a recorded program.

mod comparison;
mod measure;

use std::path::PathBuf;

use clap::Args;

use self::comparison::{Case, Comparison};
use self::measure::Contender;
use crate::error::Error;
use crate::options::TableSizes;
use crate::results::{Json, Kind};
use crate::settings::{self, Settings};
use crate::text::{Sheet, count, folded, whole};
use crate::traces::{Placed, Take, files, repeats};

/// Measures the time that each host engine takes to match a recorded program.
///
/// Replays the recordings on every engine, with both storages of its queues, in up to 15 rounds in
/// which all engines take turns. Prints the processor time for each message, as the median of the
/// rounds and the range of 80 percent of them: with the recorded tables, if elements spill from
/// them, and without tables, where the engine matches everything. Times are those of matching
/// alone, one thread for each rank, on this machine, which should be quiet.
///
/// An engine counts as faster if it saves 5 percent or more, and is faster in nine of ten rounds.
/// The engine hash is not recommended if the traces have a wildcard. If tables draw from a pool,
/// engines are measured without tables only.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam engines tcam-trace
  tcam engines --device connectx run-1 run-2 run-3
  tcam engines --prq 0 --umq 0 --json engines.json tcam-trace")]
pub(crate) struct Engines {
    /// Uses the tables of this device (see `tcam devices`) instead of those recorded.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    #[command(flatten)]
    tables: TableSizes,

    /// Sets a parameter of the device, such as overflow=prefix.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Measures the first N operations of all ranks together. Counts are those of all operations.
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    take: Take,

    /// Traces, or directories of traces.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
}

/// Measures and prints. Returns 0, or 3 if results are incomplete.
pub(crate) fn engines(arguments: &Engines) -> Result<u8, Error> {
    settings::note_unused();
    let mut settings = Settings::for_replay("--set", &arguments.set)?;
    settings.give("device", "--device", arguments.device.as_ref())?;
    settings.give_sizes(arguments.tables)?;
    let mut groups =
        repeats::groups(&arguments.traces, arguments.take, &Placed::default())?.into_iter();
    let found = groups.next().unwrap_or_default();
    if let (Some(first), Some(other)) =
        (&found[0].name, groups.next().and_then(|other| other[0].name.clone()))
    {
        fail!(
            "{} and {} are of different programs, arguments or numbers of ranks: no repeats of one \
             measurement",
            first.display(),
            other.display()
        );
    }
    let found: Vec<_> = found.into_iter().map(|of| of.found).collect();
    for found in &found {
        files::params(found, &settings)?;
        files::note_mixed(found);
    }
    arguments.json.check()?;
    let comparison = Comparison::of(&found, &settings, arguments.operations)?;
    // Only the replay finds that a trace was cut off.
    let lacks = found.iter().filter_map(|found| found.ranks().lack("trace"));
    arguments.json.tell(lacks);
    if !arguments.json.takes_output() {
        print(&comparison);
    }
    arguments.json.write(Kind::Engines, comparison)?;
    let codes = found.iter().map(|found| found.ranks().code(arguments.take.partial));
    Ok(codes.max().unwrap_or(0))
}

/// Prints the page.
fn print(comparison: &Comparison) {
    let mut title = format!("{}: {}", comparison.title, count(comparison.runs.len() as u64, "run"));
    title += &format!(", {} measured", count(comparison.messages, "message"));
    if comparison.measured_operations < comparison.operations {
        title += &format!(
            "; the first {} of {} (--operations has more)",
            count(comparison.measured_operations, "operation"),
            whole(comparison.operations)
        );
    }
    lines(&title);
    for case in &comparison.cases {
        println!("");
        lines(&case.reading);
        if case.uses_host() {
            println!("{}", sheet(case).table());
        }
    }
    println!("");
    for (engine, why) in Contender::left_out() {
        lines(&format!("{engine} is not measured: {why}."));
    }
}

fn lines(text: &str) {
    folded(text, 2).iter().for_each(|line| println!("{line}"));
}

fn sheet(case: &Case) -> Sheet {
    let header = [
        "host engine, storage",
        "ns a message",
        "80 % of rounds",
        "beside now",
        "80 % of rounds",
        "entries a search",
    ];
    let mut sheet = Sheet::new("", header);
    for engine in &case.engines {
        let (ns, beside) = (engine.ns_a_message, engine.beside_now);
        let now = if engine.is_now { " (now)" } else { "" };
        sheet.row([
            format!("{}{now}", engine.of),
            format!("{:.1}", ns.median),
            format!("{:.1} to {:.1}", ns.low, ns.high),
            format!("{:.2}", beside.median),
            if engine.is_now {
                "-".to_owned()
            } else {
                format!("{:.2} to {:.2}", beside.low, beside.high)
            },
            engine.traversed_a_search.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}")),
        ]);
    }
    sheet
}
