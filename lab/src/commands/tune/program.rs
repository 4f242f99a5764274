// SPDX-License-Identifier: BSD-2-Clause
//! Runs the MPI program that measures channels (`tests/apps/channels.c`), and reads the lines that
//! it prints.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use nic::params::PREFIX;
use nic::report::Report;

use super::channels::{Channel, NETWORK, ONE_HOST, Pair};
use super::curves::Measurement;
use crate::error::Error;
use crate::launch::plan::program;
use crate::launch::signals::{ProgramInput, exit_code};
use crate::launch::{Environment, Leftovers, Library, Mpi, Signals, bundled, launcher, signals};
use crate::results::reports;
use crate::settings::Settings;

/// Name of the program, and first word of the lines that it prints.
const NAME: &str = "channels";
pub(super) const SOURCES: [(&str, &str); 3] = [
    ("channels.c", include_str!("../../../../tests/apps/channels.c")),
    ("check.h", include_str!("../../../../tests/apps/check.h")),
    ("compute.h", include_str!("../../../../tests/apps/compute.h")),
];

/// Sizes of messages to measure, and the time for each measurement.
#[derive(Clone, Copy)]
pub(super) struct MessageSizes {
    /// Milliseconds for each measurement of a size.
    pub(super) ms: u32,
    pub(super) bytes: &'static [usize],
}

/// The sizes of a normal measurement. They are closer together where thresholds may be.
pub(super) const ALL: MessageSizes = MessageSizes {
    ms: 20,
    bytes: &[
        8, 64, 256, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768,
        49_152, 65_536, 131_072, 262_144, 1_048_576,
    ],
};
/// Sizes of `--quick`.
pub(super) const QUICK: MessageSizes =
    MessageSizes { ms: 2, bytes: &[8, 512, 2048, 4096, 8192, 16_384, 65_536, 262_144] };
/// Sizes of the first run. The kernel copies the larger message, if it copies at all.
pub(super) const FIRST: MessageSizes = MessageSizes { ms: 2, bytes: &[8192, 131_072] };

/// The compiled program, with its launcher.
pub(super) struct Program<'a> {
    pub(super) launcher: &'a [OsString],
    pub(super) mpi: Option<Mpi>,
    pub(super) library: Library,
    pub(super) settings: Settings,
    /// Output of the last command.
    pub(super) log: PathBuf,
    /// The program, in a directory that all hosts have.
    pub(super) file: PathBuf,
}

impl Program<'_> {
    /// Runs the program with these settings, which have priority over the user's. Returns `None`
    /// after a signal. Ranks write reports only if `report` gives a directory, because reports slow
    /// the run.
    pub(super) fn run(
        &self,
        forced: &[(&str, &str)],
        sizes: MessageSizes,
        report: Option<&Path>,
        signals: &mut Signals,
    ) -> Result<Option<Vec<Measurement>>, Error> {
        let mut settings = self.settings.clone();
        for (name, value) in forced {
            settings.set(name, value);
        }
        let place = self.file.parent().unwrap_or(&self.file);
        let directory = report.unwrap_or(place);
        let environment = Environment::new(self.mpi, &self.library, &settings, directory)?;
        let mut all = self.launcher.to_vec();
        all.push(self.file.clone().into_os_string());
        all.extend(["--ms".into(), sizes.ms.to_string().into()]);
        all.extend(sizes.bytes.iter().map(|bytes| OsString::from(bytes.to_string())));
        let mut command = environment.command(&all);
        if report.is_none() {
            command.env(format!("{PREFIX}REPORT"), "");
        }
        let _left = Leftovers::claim(directory);
        let name = program(self.launcher);
        let ended =
            signals.wait_logged(&mut command, &name, &self.log, ProgramInput::None, None)?;
        if ended.caught.is_some() {
            return Ok(None);
        }
        if !ended.status.success() {
            return Err(Error::Program {
                what: format!("{NAME} failed: {name}: {}", ended.status),
                code: exit_code(ended.status),
                tail: signals::tail(&self.log)?,
                log: self.log.clone(),
            });
        }
        let text = fs::read(&self.log).map_err(Error::io(&self.log))?;
        let text = String::from_utf8_lossy(&text);
        let is_whole = text.lines().any(|line| line.starts_with("channels: ok "));
        let measured: Vec<_> = text.lines().filter_map(line).collect();
        match is_whole && !measured.is_empty() {
            true => Ok(Some(measured)),
            false => Err(message!(
                "{name} did not run the program of `tcam tune` to its end: give the launcher with \
                 its options for 2 ranks, and no program: `tcam tune -- mpiexec -n 2`; {} has what \
                 it printed",
                self.log.display()
            )),
        }
    }
}

/// Facts that the first run finds.
pub(super) struct FirstRun {
    pub(super) reports: Vec<Report>,
    pub(super) pair: &'static Pair,
    /// The channels of the pair that work. If the kernel lets no process copy from another, these
    /// are only the first channel.
    pub(super) channels: &'static [Channel],
}

impl FirstRun {
    pub(super) fn read(directory: &Path, run: &Program<'_>) -> Result<Self, Error> {
        reports::settle(directory)?;
        let reports = reports::read(directory)?;
        if reports.is_empty() {
            let name = program(run.launcher);
            let why =
                format!("{name} ran its ranks without tcam; `tcam doctor -- COMMAND` says why");
            return Err(Error::NoReports { why });
        }
        let received = |name: &str| {
            let counters = reports.iter().filter_map(|report| report.channels.get(name));
            counters.map(|counters| counters.received).sum::<u64>()
        };
        let is_far = received("net") > 0;
        let copies = is_far || received("kernel-copy") > 0;
        let pair = if is_far { &NETWORK } else { &ONE_HOST };
        let channels = if copies { &pair.channels[..] } else { &pair.channels[..1] };
        Ok(Self { reports, pair, channels })
    }
}

/// Returns the compiler of the MPI: the one in the directory of the launcher, or the one in `PATH`.
pub(super) fn compiler(launcher: &[OsString]) -> Result<PathBuf, Error> {
    let launched = launcher::in_command(launcher).and_then(|word| launcher::find(word).ok());
    let beside = launched.and_then(|launcher| bundled::compiler_beside(&launcher));
    let found = beside.or_else(bundled::compiler_in_path);
    found.ok_or_else(|| {
        message!(
            "{}: no mpicc beside it nor in PATH: `tcam tune` compiles an MPI program of its own; \
             install the compiler of this MPI, or give its place with --mpicc PATH",
            program(launcher)
        )
    })
}

/// Reads the line of a size. Returns `None` for other lines.
fn line(text: &str) -> Option<Measurement> {
    let words = text.strip_prefix("channels ")?;
    let of = |name: &str| {
        let mut values = words.split(' ').filter_map(|word| word.split_once('='));
        values.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let number = |name| of(name)?.parse::<f64>().ok().filter(|value| value.is_finite());
    let values = [number("half_round_trip_us")?, number("mb_per_s")?, number("overlap")?];
    Some(Measurement { size: of("size")?.parse().ok()?, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_program_are_read() {
        let text = "channels: hosts=a,b\nnoise\n\
                    channels size=64 half_round_trip_us=1.572 mb_per_s=70.2 communication_us=1.7 \
                    compute_us=1.8 total_us=2.9 overlap=0.3652 seconds=0.052\n\
                    channels size=128 half_round_trip_us=nan mb_per_s=1 overlap=0\n\
                    channels size=256 asked_us=10 overlap=0.1\nchannels: ok ranks=2 sizes=1\n";
        let read: Vec<_> = text.lines().filter_map(line).collect();
        assert_eq!(read, [Measurement { size: 64, values: [1.572, 70.2, 0.3652] }]);
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
