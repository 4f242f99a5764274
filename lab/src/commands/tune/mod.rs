// SPDX-License-Identifier: BSD-2-Clause
//! `tcam tune`: measures on the user's hosts from which message size one channel (such as kernel
//! copy) is better than another (such as shared buffers), and writes these thresholds as settings.
//! The method is that of "channel polling", section 4.
//!
//! ```text
//! once            a short run with a report: do the ranks share a host, does the kernel copy?
//! each round      one run for each channel, without a report; settings force the channel
//! then            find the sizes at which latency, bandwidth and overlap of both channels cross
//! ```
//!
//! In each round the channels take turns, so that a slow moment of the machine affects both.

mod channels;
mod curves;
mod program;
mod result;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use host::regular;

use self::channels::PARAMETERS;
use self::curves::{ChannelCurve, Measure};
use self::program::{ALL, FIRST, FirstRun, Program, QUICK, SOURCES, compiler};
use self::result::TuneResult;
use crate::error::Error;
use crate::file;
use crate::launch::{Library, Mpi, Signals, bundled, launcher, mpi_library, signals};
use crate::options::MpiChoice;
use crate::results::{Json, Kind, StagingDirectory, reports};
use crate::settings::Settings;
use crate::text::{count, progress};

/// Measures the channels between two ranks, and writes the thresholds between them.
///
/// Compiles an MPI program and runs it with the launcher, once in each round for each channel. On
/// one host the channels are shared buffers and kernel copy; between hosts, messages that are sent
/// at once and messages that the receiver asks for. By message size it measures half round trips,
/// bandwidth, and the overlap of communication with computation. The threshold is the size from
/// which one channel is better. A size is ignored if the middle halves of the values of both
/// channels overlap; at most half of the sizes above a threshold may be ignored. If the curves do
/// not cross beyond their spread, the default stays, with a message.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam tune -- mpiexec -n 2
  tcam tune --by bandwidth --out thresholds -- mpiexec -n 2 -hosts a,b
Then:
  tcam run --set config=tcam-tune/tcam.conf -- mpiexec -n 16 ./app
  export FI_TCAM_CONFIG=$PWD/tcam-tune/tcam.conf")]
pub(crate) struct Tune {
    /// Directory for tcam.conf (the settings), tune.csv (all numbers with their spread), tune.svg,
    /// tune.png and tune.log (the output of the last run). All hosts must have it, because the
    /// program is compiled there. Files of an earlier run, except tune.log, stay until everything
    /// is measured.
    #[arg(long, value_name = "DIR", default_value = "tcam-tune")]
    out: PathBuf,

    /// Runs of each channel, in turns; at least 3.
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(3..1000))]
    rounds: u32,

    /// Measure that decides the settings; all three are printed.
    #[arg(long, value_enum, default_value_t = Measure::Latency)]
    by: Measure,

    /// Measures fewer sizes for a shorter time. Its settings are not reliable.
    #[arg(long)]
    quick: bool,

    /// Compiler of the MPI. The default is the mpicc in the launcher's directory, or in PATH.
    #[arg(long, value_name = "PATH")]
    mpicc: Option<PathBuf>,

    /// Sets a parameter of the provider for the measurement, such as net_seal=on. eager_size,
    /// kernel_copy and net_eager_size are reserved for tune.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// The provider libtcam-fi.so, or the directory that holds it. By default tcam searches the
    /// directory of this program, ../lib/libfabric from there, and FI_PROVIDER_PATH.
    #[arg(long, value_name = "PATH")]
    provider: Option<PathBuf>,

    /// MPI of the program; auto asks the launcher.
    #[arg(long, value_enum, default_value_t = MpiChoice::Auto)]
    mpi: MpiChoice,

    #[command(flatten)]
    json: Json,

    /// The launcher with its options for 2 ranks, and no program: mpiexec -n 2
    #[arg(last = true, required = true, value_name = "LAUNCHER")]
    launcher: Vec<OsString>,
}

/// Measures, and writes the settings. Returns 0, or the exit code of a signal.
pub(crate) fn tune(arguments: &Tune) -> Result<u8, Error> {
    let settings = Settings::parse(&arguments.set)?;
    if let Some(name) = PARAMETERS.into_iter().find(|name| settings.get(name).is_some()) {
        fail!("--set {name}: `tcam tune` measures at values of its own; leave it out");
    }
    settings.check()?;
    let library = Library::find_whole(arguments.provider.as_deref())?;
    let words = &arguments.launcher;
    launcher::find_to_start(&words[0])?;
    let mpicc = match &arguments.mpicc {
        Some(path) => launcher::find_to_start(path.as_os_str())?,
        None => compiler(words)?,
    };
    let mpi = Mpi::chosen(arguments.mpi).or_else(|| launcher::detect(words));
    let mut signals = Signals::catch()?;
    let staging = StagingDirectory::inside(&arguments.out, &[])?;
    arguments.json.check()?;
    let log = staging.directory().join("tune.log");
    progress::step("compiling the program that measures");
    let file = bundled::compile(&SOURCES, &mpicc, staging.path(), &log, &mut signals)?;
    let measured = match file {
        None => None,
        Some(file) => {
            check_compiler(&mpicc, &file, mpi)?;
            let program = Program { launcher: words, mpi, library, settings, log, file };
            measure(arguments, &program, &staging.path().join("first"), &mut signals)?
        }
    };
    let Some((first, curves)) = measured else {
        let name = signals.caught().map_or_else(|| "a signal".to_owned(), signals::name_of);
        eprintln!("tcam: ended by {name}; no settings were written");
        return Ok(signals.caught().map_or(0, signals::code_of));
    };
    let launcher: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let mut how = format!(
        "{} of {}, {}",
        count(u64::from(arguments.rounds), "round"),
        if arguments.quick { "few sizes (--quick)" } else { "all sizes" },
        launcher.join(" ")
    );
    arguments.set.iter().for_each(|word| how += &format!(", --set {word}"));
    let mut result = TuneResult::of(how, arguments.by, &first, &curves);
    if arguments.quick {
        result.reading.push("--quick: measure without it before you use these settings".to_owned());
    }
    result.write(staging.directory())?;
    arguments.json.write(Kind::Tune, &result)?;
    if !arguments.json.takes_output() {
        println!("{}", result.terminal(&arguments.out));
    }
    Ok(0)
}

/// Fails if the compiler linked the program to another MPI than that of the launcher. Each rank
/// would then be a job of its own.
fn check_compiler(mpicc: &Path, program: &Path, mpi: Option<Mpi>) -> Result<(), Error> {
    let content = regular::read(program, file::LONGEST).map_err(Error::io(program))?;
    if let (Some(of), Some(mpi)) = (mpi_library::of_program(&content), mpi)
        && !mpi_library::fits(of, mpi)
    {
        fail!(
            "{} compiles for {of}, and the launcher is of {mpi}: give the mpicc of {mpi} with \
             --mpicc PATH",
            mpicc.display()
        );
    }
    Ok(())
}

/// Returns the facts of the first run and a curve for each channel, or `None` after a signal.
fn measure(
    arguments: &Tune,
    program: &Program<'_>,
    first_reports: &Path,
    signals: &mut Signals,
) -> Result<Option<(FirstRun, Vec<ChannelCurve>)>, Error> {
    progress::step("a first run: one host or two?");
    let directory = reports::prepare(first_reports)?;
    let forced = [("kernel_copy", "auto"), ("eager_size", "0")];
    if program.run(&forced, FIRST, Some(&directory), signals)?.is_none() {
        return Ok(None);
    }
    let first = FirstRun::read(&directory, program)?;
    let mut curves = vec![ChannelCurve::default(); first.channels.len()];
    let sizes = if arguments.quick { QUICK } else { ALL };
    let runs = u64::from(arguments.rounds) * curves.len() as u64;
    let bar = progress::bar(runs, "{bar:30} {pos}/{len} runs, {elapsed} passed, {left}, now {msg}");
    bar.enable_steady_tick(Duration::from_millis(500));
    for round in 1..=arguments.rounds {
        for (channel, curve) in first.channels.iter().zip(&mut curves) {
            bar.set_message(channel.name);
            progress::step(&format!("round {round} of {}: {}", arguments.rounds, channel.name));
            let Some(measured) = program.run(channel.forced, sizes, None, signals)? else {
                bar.finish_and_clear();
                return Ok(None);
            };
            measured.iter().for_each(|measured| curve.put(measured));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(Some((first, curves)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_must_be_of_the_mpi_of_the_launcher() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"\x7fELF..libmpi.so.40\0").unwrap();
        let check = |mpi| check_compiler(Path::new("/opt/mpicc"), file.path(), mpi);
        check(Some(Mpi::Open(5))).unwrap();
        check(None).unwrap();
        let error = check(Some(Mpi::Mpich)).unwrap_err().to_string();
        assert!(
            error.starts_with("/opt/mpicc compiles for Open MPI, and the launcher is of MPICH")
        );
    }
}
