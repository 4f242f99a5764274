// SPDX-License-Identifier: BSD-2-Clause
//! `tcam run`: one run, its reports summed.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::cli;
use crate::environment::{Environment, Settings};
use crate::error::Error;
use crate::fresh::Fresh;
use crate::launcher::{self, Mpi};
use crate::library::Library;
use crate::reports::{self, Summary};
use crate::signals::{self, Ended, Signals};
use crate::table;

/// Runs the command and prints the summary. Returns the program's exit code.
pub(crate) fn run(arguments: &cli::Run) -> Result<u8, Error> {
    let mut settings = Settings::parse(&arguments.common.set)?;
    for (name, entries) in [("prq_entries", arguments.prq), ("umq_entries", arguments.umq)] {
        if let Some(entries) = entries {
            settings.set(name, &entries);
        }
    }
    let plan = Plan::new(&arguments.common, &arguments.command, settings)?;
    let mut signals = Signals::catch()?;
    let Some(directory) = &arguments.report else {
        let scratch = tempfile::tempdir().map_err(Error::io(std::env::temp_dir()))?;
        let ended = plan.run(&mut signals, scratch.path())?;
        return plan.summarise(scratch.path(), ended);
    };
    let fresh = Fresh::inside(directory, &[reports::old])?;
    let ended = plan.run(&mut signals, fresh.path())?;
    if !fresh.keep("json")? {
        return plan.summarise(fresh.path(), ended);
    }
    if let Some(signal) = ended.caught {
        let name = signals::name_of(signal);
        eprintln!("tcam: ended by {name}; reports are in {}", directory.display());
    }
    plan.summarise(fresh.directory(), ended)
}

/// What is run, and how; all of it checked.
pub(crate) struct Plan<'a> {
    pub(crate) words: &'a [OsString],
    pub(crate) mpi: Option<Mpi>,
    pub(crate) library: Library,
    pub(crate) settings: Settings,
}

impl<'a> Plan<'a> {
    /// Checks everything that can be checked without a run.
    pub(crate) fn new(
        common: &cli::Common,
        command: &'a [OsString],
        settings: Settings,
    ) -> Result<Self, Error> {
        settings.check()?;
        let library = Library::find(common.provider.as_deref())?;
        launcher::startable(&command[0])
            .map_err(|error| Error::Start { program: program(command), error })?;
        let mpi = common.mpi.fixed().or_else(|| launcher::detect(command));
        Ok(Self { words: command, mpi, library, settings })
    }

    /// Runs the command with its reports in a directory.
    pub(crate) fn run(&self, signals: &mut Signals, directory: &Path) -> Result<Ended, Error> {
        signals.wait(&mut self.command(&self.settings, directory)?, &program(self.words))
    }

    /// The command with these settings and its reports in a directory.
    pub(crate) fn command(&self, settings: &Settings, directory: &Path) -> Result<Command, Error> {
        let environment = Environment::new(self.mpi, &self.library, settings, directory)?;
        Ok(environment.command(self.words))
    }

    /// Prints the sum of the reports in a directory. Returns the exit code.
    pub(crate) fn summarise(&self, directory: &Path, ended: Ended) -> Result<u8, Error> {
        let code = ended.code();
        let sum = reports::read(directory)
            .and_then(|reports| Summary::of(&reports).ok_or(Error::NoReports));
        match sum {
            Ok(sum) => eprint!("{}", table::summary(&sum)),
            // A program that failed has said why itself, and one that was ended leaves anything.
            Err(error @ Error::NoReports) if code != 0 => eprintln!("tcam: {error}"),
            Err(error) if ended.caught.is_some() => eprintln!("tcam: {error}"),
            Err(error) => return Err(error),
        }
        Ok(code)
    }
}

/// The first word of a command, for messages.
pub(crate) fn program(command: &[OsString]) -> String {
    command[0].to_string_lossy().into_owned()
}

/// Exit code as a shell tells it: 128 + signal for a program that was killed.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}
