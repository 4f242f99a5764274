// SPDX-License-Identifier: BSD-2-Clause
//! `tcam run`: one run, its reports summed.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;

use crate::cli;
use crate::environment::{Environment, Settings};
use crate::error::Error;
use crate::launcher;
use crate::library::Library;
use crate::reports::{self, Summary};
use crate::table;

/// Runs the command and prints the summary. Returns the program's exit code.
pub(crate) fn run(arguments: &cli::Run) -> Result<u8, Error> {
    let common = &arguments.common;
    let mut settings = Settings::parse(&common.set)?;
    if let Some(entries) = arguments.prq {
        settings.set("prq_entries", &entries);
    }
    if let Some(entries) = arguments.umq {
        settings.set("umq_entries", &entries);
    }
    settings.check()?;
    let library = Library::find(common.provider.as_deref())?;
    let scratch;
    let directory = match &arguments.report {
        Some(directory) => directory.as_path(),
        None => {
            scratch = tempfile::tempdir().map_err(Error::io(std::env::temp_dir()))?;
            scratch.path()
        }
    };
    let directory = reports::prepare(directory)?;
    start(common, &arguments.command, &library, &settings, &directory)
}

/// Runs a command with its reports in a directory and prints their summary. Returns
/// the program's exit code.
pub(crate) fn start(
    common: &cli::Common,
    command: &[OsString],
    library: &Library,
    settings: &Settings,
    directory: &Path,
) -> Result<u8, Error> {
    let mpi = common.mpi.fixed().or_else(|| launcher::detect(command));
    let environment = Environment::new(mpi, library, settings, directory)?;
    let status = environment
        .command(command)
        .status()
        .map_err(|error| Error::Start { program: program(command), error })?;
    let code = exit_code(status);
    match Summary::of(&reports::read(directory)?) {
        Some(sum) => eprint!("{}", table::summary(&sum)),
        // A program that failed has said why itself.
        None if code != 0 => eprintln!("tcam: {}", Error::NoReports),
        None => return Err(Error::NoReports),
    }
    Ok(code)
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
