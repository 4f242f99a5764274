// SPDX-License-Identifier: BSD-2-Clause
//! `tcam replay --time`: measures the time that each host engine takes to match a recorded program.

mod comparison;
mod measure;

use self::comparison::{Case, Comparison};
use self::measure::Contender;
use super::arguments::Replay;
use crate::error::Error;
use crate::results::Kind;
use crate::settings::Settings;
use crate::text::{Sheet, count, folded, whole};
use crate::traces::{Placed, files, repeats};

/// Number of operations that are measured if no other is given.
const MEASURED: u64 = 1_000_000;

/// Measures and prints. Returns 0, or 3 if results are incomplete.
pub(super) fn engines(arguments: &Replay) -> Result<u8, Error> {
    let mut settings = Settings::for_replay("--set", &arguments.set)?;
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
    let comparison = Comparison::of(&found, &settings, arguments.operations.unwrap_or(MEASURED))?;
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
