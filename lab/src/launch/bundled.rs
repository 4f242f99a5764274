// SPDX-License-Identifier: BSD-2-Clause
//! MPI programs that tcam has in source: compiled with the user's MPI, and run with their output in a log.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use super::signals::Signals;
use crate::error::Error;
use crate::file;

/// Lines of a failed program's output that are shown.
const TAIL: usize = 20;

/// How a command failed.
pub(crate) struct Failed {
    pub(crate) status: ExitStatus,
    /// The end of what it printed.
    pub(crate) tail: String,
}

/// Compiles a program in `directory`. `sources` are names and texts of its files, the C file first, whose
/// name is that of the program. Returns the program, or `None` if a signal asks tcam to end.
pub(crate) fn compile(
    sources: &[(&str, &str)],
    mpicc: &Path,
    directory: &Path,
    log: &Path,
    signals: &mut Signals,
) -> Result<Option<PathBuf>, Error> {
    for (name, text) in sources {
        file::write(&directory.join(name), text)?;
    }
    let source = directory.join(sources[0].0);
    let made = source.with_extension("");
    let mut command = Command::new(mpicc);
    command.arg("-O2").arg("-o").arg(&made).arg(source);
    let name = mpicc.display().to_string();
    match run(command, &name, log, signals)? {
        None => Ok(None),
        Some(Ok(_)) => Ok(Some(made)),
        Some(Err(failed)) => {
            let why = format!("{}\n{}", failed.status, failed.tail).trim_end().to_owned();
            Err(Error::Compile { mpicc: name, why })
        }
    }
}

/// Runs a command to its end with its output in `log`. Returns the output, or `None` if a signal asks tcam
/// to end.
pub(crate) fn run(
    mut command: Command,
    name: &str,
    log: &Path,
    signals: &mut Signals,
) -> Result<Option<Result<String, Failed>>, Error> {
    let output = file::begin(log)?;
    let errors = output.try_clone().map_err(Error::io(log))?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let ended = signals.wait(&mut command, name, None)?;
    if ended.caught.is_some() {
        return Ok(None);
    }
    let bytes = fs::read(log).map_err(Error::io(log))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if ended.status.success() {
        return Ok(Some(Ok(text)));
    }
    let lines: Vec<_> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n");
    Ok(Some(Err(Failed { status: ended.status, tail })))
}
