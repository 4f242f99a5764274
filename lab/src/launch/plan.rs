// SPDX-License-Identifier: BSD-2-Clause
//! Checks and starts a run of an MPI program over tcam, and prints the summary after it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use host::cores::{self, Cores};
use host::names::job_of;
use nic::draft;
use nic::params::PREFIX;
use nic::report::{ReportError, WrittenAt};
use rustix::fs::statvfs;

use super::{Ended, Environment, Leftovers, Library, Mpi, Signals, launcher, signals};
use crate::error::Error;
use crate::options::Common;
use crate::results::{Adding, Json, Kind, RunRecord, Sum, reports, summary_text};
use crate::settings::Settings;
use crate::text::{bytes, count};
use crate::traces::{Found, play};

/// Estimate of the bytes that the files of a rank take: its draft (the report while the rank runs,
/// see [`nic::draft`]), then its report, and the first parts of two traces.
const OF_A_RANK: u64 = 2 * draft::LENGTH as u64;

/// The checked plan of a run.
pub(crate) struct Plan<'a> {
    pub(crate) words: &'a [OsString],
    pub(crate) mpi: Option<Mpi>,
    pub(crate) library: Library,
    pub(crate) settings: Settings,
    partial: bool,
}

impl<'a> Plan<'a> {
    /// Makes a plan. Checks everything that can be checked without a run.
    pub(crate) fn new(
        common: &Common,
        command: &'a [OsString],
        settings: Settings,
    ) -> Result<Self, Error> {
        settings.check()?;
        let library = Library::find_whole(common.provider.as_deref())?;
        launcher::find_to_start(&command[0])?;
        let mpi = Mpi::chosen(common.mpi).or_else(|| launcher::detect(command));
        Ok(Self { words: command, mpi, library, settings, partial: common.partial })
    }

    /// Runs the command and waits for its end. Its ranks write their reports to `directory`.
    pub(crate) fn run(&self, signals: &mut Signals, directory: &Path) -> Result<Ended, Error> {
        signals.wait(&mut self.command(&self.settings, directory)?, &program(self.words), None)
    }

    /// Returns the command with these settings. Its ranks write their reports to `directory`.
    pub(crate) fn command(&self, settings: &Settings, directory: &Path) -> Result<Command, Error> {
        let environment = Environment::new(self.mpi, &self.library, settings, directory)?;
        Ok(environment.command(self.words))
    }

    /// Returns the record of a run whose ranks wrote to the directory `place`.
    pub(crate) fn recorded(&self, ended: Ended, place: &Path) -> RunRecord {
        let command = self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let mut job = job_of(&place.join(reports::PATTERN).to_string_lossy());
        let traces = self.settings.get("trace").map(str::to_owned);
        let traces = traces.or_else(|| std::env::var(format!("{PREFIX}TRACE")).ok());
        job ^= traces.map_or(0, |traces| job_of(&traces));
        let processors = Cores::of_thread().count().min(cores::quota());
        let mut record = RunRecord::new(command, ended.code(), processors, job);
        record.sites = self.settings.get("trace_sites").is_some_and(|callers| callers != "0");
        record
    }

    /// Prints the sum of the reports in a directory, and of the traces of ranks without a report.
    /// Writes the sum to `json`. If there are neither reports nor traces, prints the last counters
    /// of the ranks. Returns the exit code of the program, or 3 if results are incomplete. Fails if
    /// a program that ended with 0 left no results or damaged reports, and if the counts of a
    /// report contradict each other.
    pub(crate) fn summarise(
        &self,
        directory: &Path,
        traces: &Found,
        left: &Leftovers,
        ended: Ended,
        json: &Json,
    ) -> Result<u8, Error> {
        let code = ended.code();
        let (mut adding, mut whole, mut drafts) = (Adding::default(), BTreeSet::new(), Vec::new());
        let read = reports::each(directory, |_, report| match report.written_at {
            WrittenAt::Running if !traces.is_empty() => drafts.push(report),
            _ => {
                adding.add(&report);
                whole.insert(reports::endpoint(&report));
            }
        });
        let sum = read.and_then(|()| {
            if whole.is_empty() && drafts.is_empty() && !traces.is_empty() {
                let why = match code == 0 && self.shortage(directory).is_none() {
                    true => unfinished(),
                    false => self.no_reports(ended, directory),
                };
                eprintln!("tcam: {why}");
            }
            match play::add_unreported(|endpoint| whole.contains(endpoint), &mut drafts, traces) {
                Ok(silent) => silent.iter().for_each(|silent| eprintln!("{silent}")),
                Err(error) => eprintln!("tcam: {error}"),
            }
            drafts.iter().for_each(|report| adding.add(report));
            adding.sort();
            adding.sum().map(|(sum, _)| sum).ok_or_else(|| self.no_reports(ended, directory))
        });
        let sum = sum.map(|mut sum| {
            sum.ranks.note_ended(Some(code));
            sum
        });
        // The reports may be complete although the traces are not. If both lack the same, the
        // summary says so.
        let said = sum.as_ref().ok().and_then(|sum| sum.ranks.lack("trace"));
        let lack = traces.ranks().lack("trace").filter(|lack| Some(lack) != said.as_ref());
        lack.iter().for_each(|lack| eprintln!("Traces: {lack}"));
        match sum {
            Ok(sum) => {
                eprint!("{}", summary_text::of(&sum));
                json.write(Kind::Summary, Sum::from(&sum))?;
                let incomplete = sum.ranks.code(self.partial);
                if let Some(shortage) = shortage(directory, sum.ranks.job_size())
                    && !sum.ranks.are_whole()
                {
                    eprintln!("tcam: {shortage}");
                } else if sum.ranks.present() < sum.ranks.job_size()
                    && directory.starts_with(std::env::temp_dir())
                    && ended.status.success()
                {
                    eprintln!(
                        "tcam: if ranks ran on another host, their reports are in {} there: remove that, \
                         and give --report DIR, a directory that all hosts have",
                        directory.display()
                    );
                }
                // A user who ended tcam with a signal needs no such message, and gets the exit code
                // of the signal.
                if incomplete != 0 && ended.caught.is_none() {
                    if code != 0 {
                        eprintln!("{} ended with exit code {code}", program(self.words));
                    }
                    return Ok(incomplete);
                }
            }
            Err(error @ Error::NoReports { .. }) => match (code, left.counted()) {
                (0, left) => {
                    eprint!("{}", left.as_deref().unwrap_or_default());
                    return Err(match left {
                        Some(_) if self.shortage(directory).is_none() => unfinished(),
                        _ => error,
                    });
                }
                (_, left) => {
                    eprintln!("tcam: {error}");
                    eprint!("{}", left.unwrap_or_default());
                }
            },
            Err(error @ Error::Report { error: ReportError::Counts(_), .. }) => return Err(error),
            // Reports of a program that failed or was ended may be cut off anywhere.
            Err(error) if code != 0 => eprintln!("tcam: {error}"),
            Err(error) => return Err(error),
        }
        Ok(code)
    }

    /// Returns the error for a run without reports, with the likely reason. Its ranks wrote to
    /// `directory`.
    pub(crate) fn no_reports(&self, ended: Ended, directory: &Path) -> Error {
        let program = program(self.words);
        let why = match self.shortage(directory) {
            Some(shortage) if ended.code() == 0 => shortage,
            Some(shortage) => {
                format!("{program} ended with exit code {}; {shortage}", ended.code())
            }
            None => {
                let real = launcher::detect(self.words);
                let without = launcher::without_libfabric(self.words);
                silence(&program, ended, self.mpi, real, without)
            }
        };
        Error::NoReports { why }
    }

    /// Returns a note if a directory has no space for the files of the ranks of the command, see
    /// [`shortage`].
    fn shortage(&self, directory: &Path) -> Option<String> {
        let ranks = launcher::ranks(self.words).and_then(|ranks| u32::try_from(ranks).ok());
        shortage(directory, ranks.unwrap_or(1))
    }
}

/// Returns the error for a run that ended with 0, whose ranks left counters or traces but no
/// report.
fn unfinished() -> Error {
    let why = "ranks ended by _exit or the like, without MPI_Finalize";
    Error::NoReports { why: why.to_owned() }
}

/// Returns the reason why a program that ended like this wrote no report. `mpi` is the MPI of the
/// run and `real` that of the launcher. `without` is the reason why that MPI cannot use libfabric,
/// if there is one.
fn silence(
    program: &str,
    ended: Ended,
    mpi: Option<Mpi>,
    real: Option<Mpi>,
    without: Option<String>,
) -> String {
    let mut why = Vec::new();
    let mut doctor = "`tcam doctor -- COMMAND` checks the rest";
    let status = ended.status;
    match (ended.caught.or(status.signal()), status.code()) {
        (Some(signal), _) => {
            return format!("{program} was ended by {}", signals::name_of(signal));
        }
        (None, Some(code)) if code > 128 && signals::is_signal(code - 128) => {
            let name = signals::name_of(code - 128);
            return format!("{program} ended with exit code {code} ({name})");
        }
        (None, Some(code)) if code != 0 => {
            why.push(format!("{program} ended with exit code {code}"));
            doctor = "if MPI_Init failed, `tcam doctor -- COMMAND` says why";
        }
        _ => {}
    }
    if let (Some(mpi), Some(real)) = (mpi, real)
        && mpi != real
    {
        why.push(format!("--mpi says {mpi}, but the launcher is that of {real}"));
    }
    why.extend(without);
    if why.is_empty() {
        why.push(
            "it may be no MPI program, use another MPI than its launcher, be told to use another \
             network (`--mca pml`, `-genv FI_PROVIDER`), run on another host, which needs a \
             --report DIR that both hosts have, be linked with -static, or end before MPI_Init or \
             by _exit"
                .to_owned(),
        );
    }
    why.push(doctor.to_owned());
    why.join("; ")
}

/// Returns a note that the file system of a directory has no space for the files of this number of
/// ranks. Returns `None` if it has the space, or if its free space is unknown.
pub(crate) fn shortage(directory: &Path, ranks: u32) -> Option<String> {
    let about = statvfs(directory).ok()?;
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    let no_files = about.f_files > 0 && about.f_favail < u64::from(ranks);
    if free >= OF_A_RANK.saturating_mul(u64::from(ranks)) && !no_files {
        return None;
    }
    let left = match no_files {
        true => format!("room for {} is left", count(about.f_favail, "file")),
        false => format!("{} are left", bytes(free)),
    };
    Some(format!(
        "{}: no space left on the device for the reports of {} ({left})",
        directory.display(),
        count(u64::from(ranks), "rank")
    ))
}

/// Returns the first word of a command, for messages.
pub(crate) fn program(command: &[OsString]) -> String {
    command[0].to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn no_shortage_is_reported_if_there_is_space() {
        assert_eq!(shortage(&std::env::temp_dir(), 1), None);
        assert_eq!(shortage(Path::new("/nowhere/of/this/name"), 1), None);
        let told = shortage(&std::env::temp_dir(), u32::MAX).unwrap();
        assert!(told.contains("device for the reports of 4,294,967,295 ranks ("), "{told}");
    }

    #[test]
    fn the_exit_status_explains_missing_reports() {
        let mpi = (Some(Mpi::Open(5)), Some(Mpi::Mpich));
        for (raw, (mpi, real), why) in [
            (9, (None, None), "app was ended by SIGKILL"),
            (3 << 8, (None, None), "app ended with exit code 3; if MPI_Init failed, `tcam doctor"),
            (139 << 8, (None, None), "app ended with exit code 139 (SIGSEGV)"),
            (255 << 8, (None, None), "app ended with exit code 255"),
            (0, mpi, "--mpi says Open MPI 5, but the launcher is that of MPICH"),
            (1 << 8, mpi, "app ended with exit code 1; --mpi says Open MPI 5, but the"),
            (0, (mpi.1, mpi.1), "it may be no MPI program"),
        ] {
            let ended = Ended { status: ExitStatus::from_raw(raw), caught: None, late: false };
            let told = silence("app", ended, mpi, real, None);
            assert!(told.starts_with(why), "{told}");
        }
        let ended = Ended { status: ExitStatus::from_raw(2 << 8), caught: Some(2), late: false };
        assert_eq!(silence("app", ended, None, None, None), "app was ended by SIGINT");
        let ended = Ended { status: ExitStatus::from_raw(3 << 8), caught: None, late: false };
        let told = silence("app", ended, None, None, Some("no libfabric".to_owned()));
        assert!(
            told.starts_with("app ended with exit code 3; no libfabric; if MPI_Init"),
            "{told}"
        );
        let ended = Ended { status: ExitStatus::from_raw(139 << 8), caught: None, late: false };
        let told = silence("app", ended, None, None, None);
        assert!(!told.contains("doctor"), "what crashes was started: {told}");
    }
}
