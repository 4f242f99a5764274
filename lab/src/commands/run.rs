// SPDX-License-Identifier: BSD-2-Clause
//! `tcam run`: runs a program once, adds up its reports, and keeps its traces with `--trace`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use nic::draft;

use crate::error::Error;
use crate::experiment::CallSites;
use crate::hint;
use crate::launch::plan::shortage;
use crate::launch::{Leftovers, Plan, Signals, signals};
use crate::options::{Common, TableSizes};
use crate::results::{Json, StagingDirectory, reports};
use crate::settings::{self, Settings, SiteOption};
use crate::text::{count, numbers};
use crate::traces::{Found, Take, Trace, files};

/// Runs a program once and adds up the reports of its ranks.
///
/// Sets the environment that makes MPICH, Open MPI or Intel MPI load tcam, runs the command, and
/// prints the counts of the tables of its ranks. With --trace also records all operations on these
/// tables: `tcam answer`, `tcam replay`, `tcam sweep --trace` and `tcam show` read the traces. The
/// exit code is that of the program, unless ranks are missing or tcam failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam run -- mpiexec -n 4 ./app
  tcam run --trace tcam-trace -- mpiexec -n 4 ./app
  tcam run --trace app.trace --max 4096 -- mpiexec -n 16 ./app input
  tcam run --sites --trace app.trace -- mpiexec -n 16 ./app input
  tcam run --prq 1024 --umq 512 --report reports -- mpiexec -n 16 ./app input
  tcam run --prq 0 --umq 0 --set kernel=scalar -- mpirun -np 2 ./app")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) tables: TableSizes,

    /// Keeps the reports of the ranks in this directory, as DIR/RANK.json; `tcam show FILE` prints
    /// one. They replace those of an earlier run once a report of this run exists. If several
    /// processes had the same rank, as with spawned ranks, the later ones are DIR/RANK.PID.json.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,

    /// Records the program: writes a trace for each matching context and a report for each rank to
    /// this directory. They replace those of an earlier run once a trace of this run exists.
    #[arg(long, value_name = "DIR", conflicts_with = "report")]
    pub(crate) trace: Option<PathBuf>,

    /// With --trace, largest size of a trace in MiB (default: 1024); the recording ends there and the
    /// program continues.
    #[arg(long, value_name = "MIB", allow_negative_numbers = true)]
    pub(crate) max: Option<u32>,

    #[command(flatten)]
    pub(crate) sites: SiteOption,

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
pub(crate) fn run(arguments: &Run) -> Result<u8, Error> {
    if arguments.max.is_some() && arguments.trace.is_none() {
        fail!("--max: goes only with --trace");
    }
    if arguments.sites.is_given() && arguments.trace.is_none() {
        fail!("--sites: goes only with --trace");
    }
    let mut settings = Settings::parse(&arguments.common.set)?;
    settings.give_sizes(arguments.tables)?;
    let json = Json::file(arguments.json.as_ref())?;
    if arguments.trace.is_some() {
        settings.refuse(&[("trace", "--trace DIR"), ("trace_max", "--max MIB")])?;
        arguments.sites.set(&mut settings)?;
        if let Some(max) = arguments.max {
            settings.set("trace_max", &max);
        }
    }
    settings::note_report(if arguments.trace.is_some() { "--trace DIR" } else { "--report DIR" });
    let plan = Plan::new(&arguments.common, &arguments.command, settings)?;
    let mut signals = Signals::catch()?;
    match (&arguments.trace, &arguments.report) {
        (Some(directory), _) => record(arguments, directory, plan, signals, &json),
        (None, Some(directory)) => report(directory, &plan, signals, &json),
        (None, None) => {
            json.check()?;
            let scratch = tempfile::tempdir().map_err(Error::io(std::env::temp_dir()))?;
            let left = Leftovers::claim(scratch.path());
            let ended = plan.run(&mut signals, scratch.path())?;
            plan.summarise(scratch.path(), &Found::default(), &left, ended, &json)
        }
    }
}

/// Runs the command and keeps its reports in a directory.
fn report(
    directory: &Path,
    plan: &Plan<'_>,
    mut signals: Signals,
    json: &Json,
) -> Result<u8, Error> {
    let staging = StagingDirectory::inside(directory, &[reports::old])?;
    // The file of `--json` may be in that directory, so it is checked after the directory is made.
    json.check()?;
    let left = Leftovers::claim(staging.path());
    let ended = plan.run(&mut signals, staging.path())?;
    reports::settle(staging.path())?;
    if !staging.keep(&["json", draft::EXTENSION])? {
        return plan.summarise(staging.path(), &Found::default(), &left, ended, json);
    }
    plan.recorded(ended, staging.path()).write(staging.directory())?;
    if let Some(signal) = ended.caught {
        let name = signals::name_of(signal);
        eprintln!("tcam: ended by {name}; reports are in {}", directory.display());
    }
    plan.summarise(staging.directory(), &Found::default(), &left, ended, json)
}

/// Runs the command and keeps its traces and reports in a directory.
fn record(
    arguments: &Run,
    directory: &Path,
    mut plan: Plan<'_>,
    mut signals: Signals,
    json: &Json,
) -> Result<u8, Error> {
    let staging = StagingDirectory::inside(directory, &[reports::old, files::old])?;
    // The file of `--json` may be in that directory, so it is checked after the directory is made.
    json.check()?;
    plan.settings.set("trace", &staging.path().display());
    let left = Leftovers::claim(staging.path());
    let ended = plan.run(&mut signals, staging.path())?;
    reports::settle(staging.path())?;
    if !staging.keep(&["trace"])? {
        let code = plan.summarise(staging.path(), &Found::default(), &left, ended, json)?;
        let out = directory.display();
        let nothing = message!(
            "the program left no trace, so nothing of this run is kept; {out} is as it was"
        );
        if code == 0 {
            return Err(nothing);
        }
        eprintln!("tcam: {nothing}");
        return Ok(code);
    }
    let (given, directory) = (directory, staging.directory());
    plan.recorded(ended, staging.path()).write(directory)?;
    let found = match files::find(&[directory.to_owned()], Take::default()) {
        Ok(found) => found,
        // Traces of a program that failed or was ended may be cut off anywhere.
        Err(error) if ended.code() != 0 => {
            eprintln!("tcam: {error}");
            return plan.summarise(directory, &Found::default(), &left, ended, json);
        }
        Err(error) => return Err(error),
    };
    let lacking = CallSites::write(&found, directory)?;
    let ranks = found.ranks();
    let mut code = plan.summarise(directory, &found, &left, ended, json)?;
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
    lacking.iter().for_each(|lacking| eprintln!("tcam: {lacking}"));
    let bytes: u64 = found.iter().map(|trace| trace.bytes).sum();
    eprintln!(
        "{} recorded, {}; `tcam answer {dir}` has their need, and `tcam replay {dir}` replays them \
         with other settings",
        count(found.len() as u64, "trace"),
        numbers::bytes(bytes),
        dir = hint::quoted(given)
    );
    Ok(code)
}
