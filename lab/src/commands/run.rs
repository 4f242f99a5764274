// SPDX-License-Identifier: BSD-2-Clause
//! `tcam run`: runs a program once and adds up its reports.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use nic::draft;

use crate::error::Error;
use crate::launch::{Leftovers, Plan, Signals, signals};
use crate::options::{Common, TableSizes};
use crate::results::{Json, StagingDirectory, reports};
use crate::settings::{self, Settings};
use crate::traces::Found;

/// Runs a program once and adds up the reports of its ranks.
///
/// Sets the environment that makes MPICH, Open MPI or Intel MPI load tcam, runs the command, and
/// prints the counts of the tables of its ranks. The exit code is that of the program, unless ranks
/// are missing or tcam failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam run -- mpiexec -n 4 ./app
  tcam run --prq 1024 --umq 512 --report reports -- mpiexec -n 16 ./app input
  tcam run --prq 0 --umq 0 --set kernel=scalar -- mpirun -np 2 ./app")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) tables: TableSizes,

    /// Keeps the reports of the ranks in this directory, as DIR/RANK.json for programs and
    /// DIR/RANK.txt for people. They replace those of an earlier run once a report of this run
    /// exists. If several processes had the same rank, as with spawned ranks, the later ones are
    /// DIR/RANK.PID.json.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,

    /// Writes the numbers of the summary to this file as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: Common,

    /// The program, with its launcher: mpiexec -n 4 ./app
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Runs the command and prints the summary. Returns the program's exit code, or 3 if results are
/// incomplete.
pub(crate) fn run(arguments: &Run) -> Result<u8, Error> {
    let mut settings = Settings::parse(&arguments.common.set)?;
    settings.give_sizes(arguments.tables)?;
    let json = Json::file(arguments.json.as_ref())?;
    settings::note_report("--report DIR");
    let plan = Plan::new(&arguments.common, &arguments.command, settings)?;
    let mut signals = Signals::catch()?;
    let Some(directory) = &arguments.report else {
        json.check()?;
        let scratch = tempfile::tempdir().map_err(Error::io(std::env::temp_dir()))?;
        let left = Leftovers::claim(scratch.path());
        let ended = plan.run(&mut signals, scratch.path())?;
        return plan.summarise(scratch.path(), &Found::default(), &left, ended, &json);
    };
    let staging = StagingDirectory::inside(directory, &[reports::old])?;
    // The file of `--json` may be in that directory, so it is checked after the directory is made.
    json.check()?;
    let left = Leftovers::claim(staging.path());
    let ended = plan.run(&mut signals, staging.path())?;
    reports::settle(staging.path())?;
    if !staging.keep(&["json", draft::EXTENSION])? {
        return plan.summarise(staging.path(), &Found::default(), &left, ended, &json);
    }
    plan.recorded(ended, staging.path()).write(staging.directory())?;
    if let Some(signal) = ended.caught {
        let name = signals::name_of(signal);
        eprintln!("tcam: ended by {name}; reports are in {}", directory.display());
    }
    plan.summarise(staging.directory(), &Found::default(), &left, ended, &json)
}
