// SPDX-License-Identifier: BSD-2-Clause
//! Compiles MPI programs, whose sources are a part of tcam, with the compiler of the user's MPI.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::signals::ProgramInput;
use super::{Signals, launcher, signals};
use crate::error::Error;
use crate::file;

/// Compiles a program in `directory`. `sources` are the names and texts of its files. The first is
/// the C file, which gives the program its name. The output of the compiler goes to `log`. Returns
/// the path of the program, or `None` if a signal asked tcam to end. Fails if the compiler fails.
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
    let ended = signals.wait_logged(&mut command, &name, log, ProgramInput::None, None)?;
    if ended.caught.is_some() {
        return Ok(None);
    }
    if !ended.status.success() {
        let why = format!("{}\n{}", ended.status, signals::tail(log)?);
        let why = format!("{name} does not compile the program of tcam: {}", why.trim_end());
        return Err(Error::Message(why));
    }
    Ok(Some(made))
}

/// Returns the `mpicc` in the directory of a program, or `None` if it does not exist.
pub(crate) fn compiler_beside(program: &Path) -> Option<PathBuf> {
    launcher::find(program.with_file_name("mpicc").as_os_str()).ok()
}

/// Returns the `mpicc` in PATH, or `None` if it does not exist.
pub(crate) fn compiler_in_path() -> Option<PathBuf> {
    launcher::find(OsStr::new("mpicc")).ok()
}
