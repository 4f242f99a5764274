// SPDX-License-Identifier: BSD-2-Clause
//! `tcam`: runs MPI programs over the tcam provider and reads what the emulated match tables
//! counted.
#![forbid(unsafe_code)]

#[macro_use]
mod text;
#[macro_use]
mod error;

mod answer;
mod capacity;
mod cli;
mod commands;
#[cfg(test)]
mod counters_tests;
mod experiment;
mod file;
mod hint;
mod launch;
#[cfg(test)]
mod man_pages_tests;
mod options;
mod plot;
mod results;
mod settings;
mod stats;
mod symbols;
mod traces;
mod workload;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use signal_hook::consts::{SIGINT, SIGXFSZ};

use crate::cli::{Cli, Task};
use crate::error::Error;
use crate::launch::signals;
use crate::launch::signals::OWN_FAILURE;
use crate::text::output;

/// Exit code for a command line that cannot be read, as in clap.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let task = match Cli::try_parse() {
        Ok(cli) => cli.task,
        Err(error) => return usage(&error),
    };
    // A write beyond `ulimit -f` then fails instead of ending tcam. Programs that tcam starts have
    // the default action.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let runs = matches!(task, Task::Run(_));
    // `tcam show DIR | head` ends by SIGPIPE when head ends. A command that runs the user's
    // program ignores SIGPIPE, and continues to the end of that program.
    let measures = matches!(&task, Task::Sweep(sweep) if sweep.trace.is_empty())
        || matches!(&task, Task::Answer(answer) if answer.runs_a_program())
        || matches!(task, Task::Demo(_));
    if !runs && !measures && !writes_files() {
        sigpipe::reset();
    }
    let done = match task {
        Task::Demo(arguments) => commands::demo::demo(&arguments),
        Task::Run(arguments) => commands::run::run(&arguments),
        Task::Replay(arguments) => commands::replay::replay(&arguments),
        Task::Answer(arguments) => commands::answer::answer(&arguments),
        Task::Show(arguments) => commands::show::show(&arguments),
        Task::Scale(arguments) => commands::scale::scale(&arguments),
        Task::Sweep(arguments) => commands::sweep::sweep(&arguments),
        Task::Doctor(arguments) => Ok(commands::doctor::doctor(&arguments)),
        Task::Settings(arguments) => commands::settings::settings(&arguments),
        Task::Devices(arguments) => commands::devices::devices(&arguments),
        Task::Cluster(arguments) => commands::cluster::cluster(&arguments),
        Task::Completions(arguments) => {
            Ok(commands::completions::completions(&arguments, &mut Cli::command()))
        }
        Task::Workload(arguments) => commands::workload::workload(&arguments),
    };
    let code = done.unwrap_or_else(|error| {
        eprintln!("tcam: {error}");
        match error {
            Error::Program { code, .. } => code,
            Error::Interrupted => signals::code_of(SIGINT),
            _ => OWN_FAILURE,
        }
    });
    // `run` prints nothing to standard output, and exits with the code of the program.
    if !runs && let Some(error) = output::incomplete() {
        eprintln!("tcam: standard output: {error}");
        return ExitCode::from(OWN_FAILURE);
    }
    ExitCode::from(code)
}

/// Returns true if an option names a file or directory to write to. The command then continues after
/// its output was closed, because it may not have written these files yet.
fn writes_files() -> bool {
    let options = ["--csv", "--format", "--html", "--json", "--out", "--plot", "--report"];
    let mut words = std::env::args_os().filter_map(|word| word.into_string().ok());
    words.any(|word| options.contains(&word.split('=').next().unwrap_or_default()))
}

/// Prints help, or the error in the command line. Returns the exit code.
fn usage(error: &clap::Error) -> ExitCode {
    if let Some(explained) = cli::explained(error, &std::env::args_os().collect::<Vec<_>>()) {
        eprintln!("tcam: {explained}");
        return ExitCode::from(USAGE);
    }
    match error.print() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            eprintln!("tcam: standard output: {error}");
            ExitCode::from(OWN_FAILURE)
        }
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(OWN_FAILURE)),
    }
}
