// SPDX-License-Identifier: BSD-2-Clause
//! `tcam`: runs MPI programs over the tcam provider and reads what the
//! emulated match tables counted.
#![forbid(unsafe_code)]

mod cli;
mod curve;
mod doctor;
mod environment;
mod error;
mod fresh;
mod launcher;
mod library;
mod look;
mod numbers;
mod plot;
mod progress;
mod reading;
mod record;
mod replay;
mod reports;
mod reproduce;
mod run;
mod sheet;
mod sizes;
mod sweep;
mod table;
mod traces;
mod watch;
mod workload;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Task};
use crate::error::Error;

/// Exit code of tcam's own failures; every other code is the program's.
const OWN_FAILURE: u8 = 125;

fn main() -> ExitCode {
    let task = Cli::parse().task;
    // `tcam stats DIR | head` ends when head does; a run of a program goes on to its end.
    if !matches!(task, Task::Run(_) | Task::Record(_) | Task::Sweep(_)) {
        sigpipe::reset();
    }
    let done = match task {
        Task::Run(arguments) => run::run(&arguments),
        Task::Record(arguments) => record::record(&arguments),
        Task::Replay(arguments) => replay::replay(&arguments),
        Task::Sweep(arguments) if arguments.trace.is_empty() => sweep::sweep(&arguments),
        Task::Sweep(arguments) => curve::sweep(&arguments),
        Task::Doctor(arguments) => Ok(doctor::doctor(&arguments)),
        Task::Plot(arguments) => look::plot(&arguments),
        Task::Stats(arguments) => look::stats(&arguments),
        Task::Export(arguments) => look::export(&arguments),
        Task::Report(arguments) => look::report(&arguments),
        Task::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Task::Watch(arguments) => watch::watch(&arguments),
        Task::Workload(arguments) => workload::workload(&arguments),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("tcam: {error}");
            match error {
                Error::Program { code, .. } => ExitCode::from(code),
                _ => ExitCode::from(OWN_FAILURE),
            }
        }
    }
}
