// SPDX-License-Identifier: BSD-2-Clause
//! `tcam record`: runs a program once and keeps its traces.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::error::Error;
use crate::hint;
use crate::launch::plan::shortage;
use crate::launch::{Leftovers, Plan, Signals};
use crate::options::{Common, TableSizes};
use crate::results::{Json, StagingDirectory, reports};
use crate::settings::{self, Settings};
use crate::text::{count, numbers};
use crate::traces::{Found, Take, Trace, files};

/// Runs a program once and records all operations on the tables of its ranks.
///
/// Writes a trace for each matching context and a report for each rank to a directory. `tcam
/// replay` and `tcam sweep --trace` replay the traces.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam record -- mpiexec -n 4 ./app
  tcam record --out app.trace --max 4096 -- mpiexec -n 16 ./app input
  tcam record --prq 1024 --umq 512 -- mpiexec -n 16 ./app")]
pub(crate) struct Record {
    #[command(flatten)]
    pub(crate) tables: TableSizes,

    /// Directory for the traces and reports. They replace those of an earlier run once a trace of
    /// this run exists.
    #[arg(long, value_name = "DIR", default_value = "tcam-trace")]
    pub(crate) out: PathBuf,

    /// Largest size of a trace in MiB; the recording ends there and the program continues.
    #[arg(long, value_name = "MIB", default_value_t = 1024, allow_negative_numbers = true)]
    pub(crate) max: u32,

    /// Writes the numbers of the summary to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: Common,

    /// The program, with its launcher: mpiexec -n 4 ./app
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Runs the command and prints a summary. Returns the program's exit code, or 3 if results are
/// incomplete.
pub(crate) fn record(arguments: &Record) -> Result<u8, Error> {
    let mut settings = Settings::parse(&arguments.common.set)?;
    settings.refuse(&[("trace", "--out DIR"), ("trace_max", "--max MIB")])?;
    settings.give_sizes(arguments.tables)?;
    let json = Json::file(arguments.json.as_ref())?;
    settings.set("trace_max", &arguments.max);
    settings::note_report("--out DIR");
    let mut plan = Plan::new(&arguments.common, &arguments.command, settings)?;
    let mut signals = Signals::catch()?;
    let staging = StagingDirectory::inside(&arguments.out, &[reports::old, files::old])?;
    // The file of `--json` may be in that directory, so it is checked after the directory is made.
    json.check()?;
    plan.settings.set("trace", &staging.path().display());
    let left = Leftovers::claim(staging.path());
    let ended = plan.run(&mut signals, staging.path())?;
    reports::settle(staging.path())?;
    if !staging.keep(&["trace"])? {
        let code = plan.summarise(staging.path(), &Found::default(), &left, ended, &json)?;
        let out = arguments.out.display();
        let nothing = message!(
            "the program left no trace, so nothing of this run is kept; {out} is as it was"
        );
        if code == 0 {
            return Err(nothing);
        }
        eprintln!("tcam: {nothing}");
        return Ok(code);
    }
    let directory = staging.directory();
    plan.recorded(ended, staging.path()).write(directory)?;
    let found = match files::find(&[directory.to_owned()], Take::default()) {
        Ok(found) => found,
        // Traces of a program that failed or was ended may be cut off anywhere.
        Err(error) if ended.code() != 0 => {
            eprintln!("tcam: {error}");
            return plan.summarise(directory, &Found::default(), &left, ended, &json);
        }
        Err(error) => return Err(error),
    };
    let ranks = found.ranks();
    let mut code = plan.summarise(directory, &found, &left, ended, &json)?;
    if code == 0 && ranks.lack("trace").is_some() {
        match shortage(directory, ranks.job_size()) {
            Some(shortage) => eprintln!("tcam: {shortage}"),
            None if found.iter().any(Trace::found_no_room) => {
                eprintln!("tcam: there was no space left on the device");
            }
            None => {}
        }
        code = ranks.code(arguments.common.partial);
    }
    let bytes: u64 = found.iter().map(|trace| trace.bytes).sum();
    eprintln!(
        "{} recorded, {}; `tcam replay {dir}` and `tcam sweep --trace {dir}` \
         replay them with other settings",
        count(found.len() as u64, "trace"),
        numbers::bytes(bytes),
        dir = hint::quoted(&arguments.out)
    );
    Ok(code)
}
