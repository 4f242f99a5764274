// SPDX-License-Identifier: BSD-2-Clause
//! `tcam record`: one run, its traces kept.

use crate::cli;
use crate::environment::Settings;
use crate::error::Error;
use crate::library::Library;
use crate::numbers::{self, count};
use crate::reports;
use crate::run;
use crate::traces;

/// Runs the command and says what was recorded. Returns the program's exit code.
pub(crate) fn record(arguments: &cli::Record) -> Result<u8, Error> {
    let common = &arguments.common;
    let mut settings = Settings::parse(&common.set)?;
    let library = Library::find(common.provider.as_deref())?;
    let directory = reports::prepare(&arguments.out)?;
    traces::prepare(&directory)?;
    settings.set("trace", &directory.display());
    settings.set("trace_max", &arguments.max);
    settings.check()?;
    let code = run::start(common, &arguments.command, &library, &settings, &directory)?;
    let found = traces::find(std::slice::from_ref(&directory))?;
    let bytes: u64 = found.iter().map(|trace| trace.bytes).sum();
    eprintln!(
        "{} recorded, {}; `tcam replay {dir}` and `tcam sweep --trace {dir}` \
         ask again",
        count(found.len() as u64, "trace"),
        numbers::bytes(bytes),
        dir = arguments.out.display()
    );
    Ok(code)
}
