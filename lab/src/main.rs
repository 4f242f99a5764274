// SPDX-License-Identifier: BSD-2-Clause
//! `tcam`: runs MPI programs over the tcam provider and reads what the
//! emulated match tables counted.
#![forbid(unsafe_code)]

#[macro_use]
mod output;

mod advise;
mod basis;
mod cli;
mod cluster;
mod compare;
mod completions;
mod curve;
mod devices;
mod doctor;
mod ending;
mod endpoints;
mod environment;
mod error;
mod file;
mod fresh;
mod hint;
mod json;
mod launcher;
mod left;
mod library;
mod look;
mod node;
mod numbers;
mod origin;
mod play;
mod plot;
mod progress;
mod ranks;
mod reading;
mod record;
mod remarks;
mod repeats;
mod replay;
mod reports;
mod reproduce;
mod room;
mod rows;
mod run;
mod sheet;
mod signals;
mod silent;
mod sizes;
mod smallest;
mod spread;
mod summary;
mod sweep;
mod table;
mod traces;
mod watch;
mod workload;

use std::process::ExitCode;

use clap::Parser;
use signal_hook::consts::SIGINT;

use crate::cli::{Cli, Task};
use crate::error::Error;

/// Exit code of tcam's own failures, once the command line is read; every other code is the
/// program's.
const OWN_FAILURE: u8 = 125;
/// Exit code of a command line that is none, as clap has it.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let task = match Cli::try_parse() {
        Ok(cli) => cli.task,
        Err(error) => return usage(&error),
    };
    let runs = matches!(task, Task::Run(_) | Task::Record(_));
    // `tcam stats DIR | head` ends when head does; a run of a program goes on to its end.
    if !runs && !matches!(&task, Task::Sweep(sweep) if sweep.trace.is_empty()) {
        sigpipe::reset();
    }
    let done = match task {
        Task::Run(arguments) => run::run(&arguments),
        Task::Record(arguments) => record::record(&arguments),
        Task::Replay(arguments) => replay::replay(&arguments),
        Task::Advise(arguments) => advise::advise(&arguments),
        Task::Compare(arguments) => compare::compare(&arguments),
        Task::Sweep(arguments) if arguments.trace.is_empty() => sweep::sweep(&arguments),
        Task::Sweep(arguments) => curve::sweep(&arguments),
        Task::Doctor(arguments) => Ok(doctor::doctor(&arguments)),
        Task::Devices(arguments) => devices::devices(&arguments),
        Task::Plot(arguments) => look::plot(&arguments),
        Task::Stats(arguments) => look::stats(&arguments),
        Task::Diff(arguments) => look::diff(&arguments),
        Task::Export(arguments) => look::export(&arguments),
        Task::Report(arguments) => look::report(&arguments),
        Task::Profile(arguments) => look::profile::profile(&arguments),
        Task::Cluster(arguments) => cluster::cluster(&arguments),
        Task::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Task::Watch(arguments) => watch::watch(&arguments),
        Task::Completions(arguments) => Ok(completions::completions(&arguments)),
        Task::Workload(arguments) => workload::workload(&arguments),
    };
    let code = done.unwrap_or_else(|error| {
        eprintln!("tcam: {error}");
        match error {
            Error::Program { code, .. } => code,
            Error::Interrupted => signals::code_of(SIGINT),
            _ => OWN_FAILURE,
        }
    });
    // The exit code of a run is the program's, which has its own way to tell of this.
    if !runs && let Some(error) = output::incomplete() {
        eprintln!("tcam: standard output: {error}");
        return ExitCode::from(OWN_FAILURE);
    }
    ExitCode::from(code)
}

/// Help, or what is wrong with the command line.
fn usage(error: &clap::Error) -> ExitCode {
    if let Some(option) = cli::without_size(std::env::args_os()) {
        eprintln!("tcam: {option}: a size is expected before `--`");
        return ExitCode::from(USAGE);
    }
    if let Some(word) = cli::command_without_dashes(error, std::env::args_os()) {
        eprintln!("tcam: `--` is missing before the command: tcam ... -- {word} ...");
        return ExitCode::from(USAGE);
    }
    if cli::lacks_what_to_sweep(error, std::env::args_os()) {
        eprintln!(
            "tcam: sweep needs a program, `tcam sweep -- mpiexec -n 4 ./app`, or what was recorded of \
             one, `tcam sweep --trace DIR`"
        );
        return ExitCode::from(USAGE);
    }
    if let Some(hint) = hint::of_option(error, std::env::args_os()) {
        eprintln!("tcam: {hint}");
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
