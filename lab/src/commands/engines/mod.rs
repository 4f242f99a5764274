// SPDX-License-Identifier: BSD-2-Clause
//! `tcam engines`: the time that each host engine takes to match a recorded program.

mod contender;
mod facts;
mod measure;
mod page;
mod stream;

use std::path::PathBuf;

use clap::Args;

use self::facts::Facts;
use crate::error::Error;
use crate::options::TableSizes;
use crate::results::json::{Json, Kind};
use crate::settings::{self, Settings};
use crate::traces::files;
use crate::traces::node::Placed;
use crate::traces::repeats;
use crate::traces::take::Take;

/// Measures the time that each host engine takes to match a recorded program.
///
/// Replays the recordings on every engine, with both storages of its queues, several times in turn.
/// Prints the processor time for each message with its spread: with the recorded tables, if
/// elements spill from them, and without tables, where the engine matches everything.
/// Directories that have ranks in common are runs of one program.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam engines tcam-trace
  tcam engines --device connectx run-1 run-2 run-3
  tcam engines --prq 0 --umq 0 --json engines.json tcam-trace
Times are those of matching alone, one thread for each rank, on this machine: a program takes
more time. `tcam answer` has the sizes of tables.")]
pub(crate) struct Engines {
    /// Uses the tables of this device (see `tcam devices`) instead of those recorded.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    #[command(flatten)]
    tables: TableSizes,

    /// Sets a parameter of the device, such as overflow=prefix.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Measures the first N operations of all ranks together.
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
    let found = repeats::find(&arguments.traces, arguments.take, &Placed::default())?;
    for found in &found {
        files::params(found, &settings)?;
        if let Some(mixed) = files::mixed(found) {
            eprintln!("{mixed}");
        }
    }
    arguments.json.check()?;
    let facts = Facts::of(&found, &settings, arguments.operations)?;
    // Only the replay finds that a trace was cut off.
    let lacks: Vec<_> = found.iter().filter_map(|found| found.ranks().lack("trace")).collect();
    if arguments.json.takes_output() {
        lacks.iter().for_each(|lack| eprintln!("{lack}"));
    } else {
        lacks.iter().for_each(|lack| println!("{lack}"));
        page::print(&facts);
    }
    arguments.json.write(Kind::Engines, facts)?;
    let codes = found.iter().map(|found| found.ranks().code(arguments.take.partial));
    Ok(codes.max().unwrap_or(0))
}
