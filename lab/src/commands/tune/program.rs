// SPDX-License-Identifier: BSD-2-Clause
//! The MPI program that measures channels (`tests/apps/channels.c`): it is compiled with the user's
//! MPI and run by its launcher, and the lines that it prints are read.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use nic::params::PREFIX;

use super::curves::Measured;
use crate::error::Error;
use crate::launch::bundled::{self, Failed};
use crate::launch::ending::exit_code;
use crate::launch::environment::Environment;
use crate::launch::launcher::{self, Mpi};
use crate::launch::leftovers::Leftovers;
use crate::launch::library::Library;
use crate::launch::plan::program;
use crate::launch::signals::Signals;
use crate::settings::Settings;

/// Name of the program, and first word of its lines.
const NAME: &str = "channels";
const SOURCES: [(&str, &str); 3] = [
    ("channels.c", include_str!("../../../../tests/apps/channels.c")),
    ("check.h", include_str!("../../../../tests/apps/check.h")),
    ("compute.h", include_str!("../../../../tests/apps/compute.h")),
];

/// The program with its launcher.
pub(super) struct Program<'a> {
    pub(super) launcher: &'a [OsString],
    pub(super) mpi: Option<Mpi>,
    pub(super) library: Library,
    pub(super) settings: Settings,
    /// Output of the last command.
    log: PathBuf,
    file: PathBuf,
}

impl<'a> Program<'a> {
    /// Makes a program that is not compiled yet. Its log goes to the directory `out`.
    pub(super) fn new(
        launcher: &'a [OsString],
        mpi: Option<Mpi>,
        library: Library,
        settings: Settings,
        out: &Path,
    ) -> Self {
        let log = out.join("tune.log");
        Self { launcher, mpi, library, settings, log, file: PathBuf::new() }
    }

    /// Compiles the program into a directory that all hosts have. Returns none after a signal.
    pub(super) fn compile(
        &mut self,
        mpicc: &Path,
        directory: &Path,
        signals: &mut Signals,
    ) -> Result<Option<()>, Error> {
        let made = bundled::compile(&SOURCES, mpicc, directory, &self.log, signals)?;
        Ok(made.map(|made| self.file = made))
    }

    /// Runs the program with these settings, which have priority over the user's. Returns none
    /// after a signal. A report slows the run.
    pub(super) fn run(
        &self,
        forced: &[(&str, &str)],
        words: &[String],
        report: Option<&Path>,
        signals: &mut Signals,
    ) -> Result<Option<Vec<Measured>>, Error> {
        let mut settings = self.settings.clone();
        for (name, value) in forced {
            settings.set(name, value);
        }
        let place = self.file.parent().unwrap_or(&self.file);
        let directory = report.unwrap_or(place);
        let environment = Environment::new(self.mpi, &self.library, &settings, directory)?;
        let mut all = self.launcher.to_vec();
        all.push(self.file.clone().into_os_string());
        all.extend(words.iter().map(OsString::from));
        let mut command = environment.command(&all);
        if report.is_none() {
            command.env(format!("{PREFIX}REPORT"), "");
        }
        let _left = Leftovers::claim(directory);
        let name = program(self.launcher);
        let text = match bundled::run(command, &name, &self.log, signals)? {
            None => return Ok(None),
            Some(Ok(text)) => text,
            Some(Err(Failed { status, tail })) => {
                let what = format!("{NAME} failed: {name}: {status}");
                let log = self.log.clone();
                return Err(Error::Program { what, code: exit_code(status), log, tail });
            }
        };
        let is_whole = text.lines().any(|line| line.starts_with("channels: ok "));
        match sizes(&text) {
            measured if is_whole && !measured.is_empty() => Ok(Some(measured)),
            _ => Err(Error::NoChannels { program: name, log: self.log.clone() }),
        }
    }
}

/// Returns the compiler of the MPI: the one in the directory of the launcher, or the one in `PATH`.
pub(super) fn compiler(launcher: &[OsString]) -> Result<PathBuf, Error> {
    let mpicc = OsStr::new("mpicc");
    let beside = launcher::in_command(launcher)
        .and_then(|launcher| launcher::find(launcher).ok())
        .and_then(|launcher| launcher::find(launcher.with_file_name(mpicc).as_os_str()).ok());
    let found = beside.or_else(|| launcher::find(mpicc).ok());
    found.ok_or_else(|| Error::NoCompiler { program: program(launcher) })
}

/// Reads the lines of sizes.
fn sizes(text: &str) -> Vec<Measured> {
    text.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<Measured> {
    let words = text.strip_prefix("channels ")?;
    let of = |name: &str| {
        let mut values = words.split(' ').filter_map(|word| word.split_once('='));
        values.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let number = |name| of(name)?.parse::<f64>().ok().filter(|value| value.is_finite());
    let values = [number("half_round_trip_us")?, number("mb_per_s")?, number("overlap")?];
    Some(Measured { size: of("size")?.parse().ok()?, values })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_lines_of_the_program_are_read() {
        let text = "channels: hosts=a,b\nnoise\n\
                    channels size=64 half_round_trip_us=1.572 mb_per_s=70.2 communication_us=1.7 \
                    compute_us=1.8 total_us=2.9 overlap=0.3652 seconds=0.052\n\
                    channels size=128 half_round_trip_us=nan mb_per_s=1 overlap=0\n\
                    channels size=256 asked_us=10 overlap=0.1\nchannels: ok ranks=2 sizes=1\n";
        assert_eq!(sizes(text), [Measured { size: 64, values: [1.572, 70.2, 0.3652] }]);
    }

    #[test]
    fn the_compiler_stands_beside_the_launcher() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["mpiexec", "mpicc"] {
            fs::copy("/bin/true", at(name)).unwrap();
        }
        let words = ["timeout".into(), "60".into(), at("mpiexec").into_os_string()];
        assert_eq!(compiler(&words).unwrap(), at("mpicc"));
    }
}
