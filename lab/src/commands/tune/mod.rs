// SPDX-License-Identifier: BSD-2-Clause
//! `tcam tune`: thresholds between channels, measured on the user's hosts ("channel polling",
//! section 4).
//!
//! ```text
//! once            a short run with a report: do the ranks share a host, does the kernel copy?
//! each round      one run for each channel, which settings force; no report
//! then            sizes at which latency, bandwidth and overlap of the two cross
//! ```
//!
//! Channels take turns, so that a slow moment of the machine affects both.

mod crossing;
mod curves;
mod program;
mod told;
mod ways;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use nic::report::Report;

use self::crossing::crossing;
use self::curves::{Curve, Measure};
use self::program::{Program, compiler};
use self::told::Told;
use self::ways::{KERNEL_COPY_OFF, NETWORK, ONE_HOST, PARAMETERS, Pair};
use crate::error::Error;
use crate::launch::ending;
use crate::launch::launcher::{self, Mpi};
use crate::launch::library::Library;
use crate::launch::plan::program;
use crate::launch::signals::{self, Signals};
use crate::options::MpiChoice;
use crate::results::fresh::Fresh;
use crate::results::json::{Json, Kind};
use crate::results::reports;
use crate::settings::Settings;
use crate::text::numbers::count;
use crate::text::progress;

/// Measures the channels between two ranks, and writes the thresholds between them.
///
/// Compiles an MPI program and runs it with the launcher, once in each round for each channel. On
/// one host the channels are shared buffers and kernel copy; between hosts, messages that are sent
/// at once and messages that the receiver asks for. Writes tcam.conf (the settings), tune.csv,
/// tune.svg and tune.png to the output directory, which all hosts must have.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam tune -- mpiexec -n 2
  tcam tune --by bandwidth --out thresholds -- mpiexec -n 2 -hosts a,b
Then:
  tcam run --set config=tcam-tune/tcam.conf -- mpiexec -n 16 ./app
  export FI_TCAM_CONFIG=$PWD/tcam-tune/tcam.conf")]
pub(crate) struct Tune {
    /// Directory for the settings, the numbers and the picture.
    #[arg(long, value_name = "DIR", default_value = "tcam-tune")]
    out: PathBuf,

    /// Runs of each channel, in turns. A difference within their spread decides nothing.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(3..1000)
    )]
    rounds: u32,

    /// Measure that decides the settings; all three are printed.
    #[arg(long, value_enum, default_value_t = Measure::Latency)]
    by: Measure,

    /// Measures fewer sizes for a shorter time. The result shows that the measurement works, and
    /// not which setting is best.
    #[arg(long)]
    quick: bool,

    /// Compiler of the MPI. The default is the mpicc in the launcher's directory, or in PATH.
    #[arg(long, value_name = "PATH")]
    mpicc: Option<PathBuf>,

    /// Sets a parameter of the provider for the measurement, such as net_seal=on.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// The provider libtcam-fi.so, or the directory that holds it. The default is the one installed
    /// or built with this program.
    #[arg(long, value_name = "PATH")]
    provider: Option<PathBuf>,

    /// MPI of the launcher; auto asks the launcher.
    #[arg(long, value_enum, default_value_t = MpiChoice::Auto)]
    mpi: MpiChoice,

    #[command(flatten)]
    json: Json,

    /// The launcher with its options for 2 ranks, and no program: mpiexec -n 2
    #[arg(last = true, required = true, value_name = "LAUNCHER")]
    launcher: Vec<OsString>,
}

/// Sizes that are measured, closer together where thresholds may be.
const SIZES: [usize; 19] = [
    8, 64, 256, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
    65_536, 131_072, 262_144, 1_048_576,
];
const QUICK: [usize; 8] = [8, 512, 2048, 4096, 8192, 16_384, 65_536, 262_144];
/// Milliseconds for each measurement of a size.
const MS: u32 = 20;
const QUICK_MS: u32 = 2;
/// Sizes of the first run. The kernel copies the larger one, if it copies at all.
const FIRST: [usize; 2] = [8192, 131_072];

/// Facts that the first run finds.
struct Place {
    reports: Vec<Report>,
    pair: &'static Pair,
    /// True if the kernel lets processes copy from each other, or if the channels are those of the
    /// network, which need no such copy.
    copies: bool,
}

/// Measures, and writes the settings. Returns 0, or the exit code of a signal.
pub(crate) fn tune(arguments: &Tune) -> Result<u8, Error> {
    let settings = Settings::parse(&arguments.set)?;
    if let Some(name) = PARAMETERS.into_iter().find(|name| settings.get(name).is_some()) {
        return Err(Error::Tuned { name });
    }
    settings.check()?;
    let library = Library::find_whole(arguments.provider.as_deref())?;
    let words = &arguments.launcher;
    launcher::find(&words[0]).map_err(|error| Error::Start { program: program(words), error })?;
    let mpicc = match &arguments.mpicc {
        Some(path) => launcher::find(path.as_os_str())
            .map_err(|error| Error::Start { program: path.display().to_string(), error })?,
        None => compiler(words)?,
    };
    let mpi = Mpi::chosen(arguments.mpi).or_else(|| launcher::detect(words));
    let mut signals = Signals::catch()?;
    let fresh = Fresh::inside(&arguments.out, &[])?;
    arguments.json.check()?;
    let mut program = Program::new(words, mpi, library, settings, fresh.directory());
    let measured = measure(arguments, &mut program, &mpicc, fresh.path(), &mut signals)?;
    let Some((place, curves)) = measured else {
        let name = signals.caught().map_or_else(|| "a signal".to_owned(), signals::name_of);
        eprintln!("tcam: ended by {name}; no settings were written");
        return Ok(signals.caught().map_or(0, ending::code_of));
    };
    let told = tell(arguments, &place, &curves);
    told.write(fresh.directory())?;
    arguments.json.write(Kind::Tune, &told)?;
    if !arguments.json.takes_output() {
        println!("{}", told.terminal(&arguments.out));
    }
    Ok(0)
}

/// Returns the place and a curve for each channel, or none after a signal.
fn measure(
    arguments: &Tune,
    program: &mut Program<'_>,
    mpicc: &Path,
    directory: &Path,
    signals: &mut Signals,
) -> Result<Option<(Place, Vec<Curve>)>, Error> {
    progress::step("compiling the program that measures");
    if program.compile(mpicc, directory, signals)?.is_none() {
        return Ok(None);
    }
    progress::step("a first run: one host or two?");
    let reports = reports::prepare(&directory.join("first"))?;
    let words = words(QUICK_MS, &FIRST);
    let forced = [("kernel_copy", "auto"), ("eager_size", "0")];
    if program.run(&forced, &words, Some(&reports), signals)?.is_none() {
        return Ok(None);
    }
    let place = Place::of(&reports, program)?;
    let ways = place.ways();
    let mut curves = vec![Curve::default(); ways.len()];
    let (ms, sizes): (_, &[usize]) = match arguments.quick {
        true => (QUICK_MS, &QUICK),
        false => (MS, &SIZES),
    };
    let words = self::words(ms, sizes);
    let runs = u64::from(arguments.rounds) * ways.len() as u64;
    let bar =
        progress::bar(runs, "{bar:30} {pos}/{len} runs, {elapsed} passed, {eta} left, now {msg}");
    bar.enable_steady_tick(Duration::from_millis(500));
    for round in 1..=arguments.rounds {
        for (way, curve) in ways.iter().zip(&mut curves) {
            bar.set_message(way.name);
            progress::step(&format!("round {round} of {}: {}", arguments.rounds, way.name));
            let Some(measured) = program.run(way.forced, &words, None, signals)? else {
                bar.finish_and_clear();
                return Ok(None);
            };
            measured.iter().for_each(|measured| curve.put(measured));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(Some((place, curves)))
}

/// Returns the arguments of the program.
fn words(ms: u32, sizes: &[usize]) -> Vec<String> {
    let first = ["--ms".to_owned(), ms.to_string()];
    first.into_iter().chain(sizes.iter().map(usize::to_string)).collect()
}

impl Place {
    fn of(directory: &Path, program: &Program<'_>) -> Result<Self, Error> {
        reports::settle(directory)?;
        let reports = reports::read(directory)?;
        if reports.is_empty() {
            let name = self::program(program.launcher);
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
        Ok(Self { pair: if is_far { &NETWORK } else { &ONE_HOST }, copies, reports })
    }

    fn ways(&self) -> &'static [ways::Way] {
        let all = if self.copies { 2 } else { 1 };
        &self.pair.ways[..all]
    }
}

/// Computes the settings from the curves.
fn tell<'a>(arguments: &Tune, place: &'a Place, curves: &'a [Curve]) -> Told<'a> {
    let pair = place.pair;
    let answers: Vec<_> = match curves {
        [short, long] => Measure::ALL
            .map(|measure| pair.answer(measure, crossing(short, long, measure, &pair.differ)))
            .into(),
        _ => Vec::new(),
    };
    let by = arguments.by;
    let mut reading: Vec<_> = answers.iter().map(|answer| pair.told(answer)).collect();
    let settings = match answers.iter().find(|answer| answer.measure == by) {
        Some(answer) => answer.settings.clone(),
        None => {
            let why =
                "the kernel refuses copies between processes (`tcam doctor`): kernel_copy = off";
            reading.push(why.to_owned());
            let (name, value) = KERNEL_COPY_OFF;
            vec![(name, value.to_owned())]
        }
    };
    let launcher: Vec<_> = arguments.launcher.iter().map(|word| word.to_string_lossy()).collect();
    let mut how = format!(
        "{} of {}, {}",
        count(u64::from(arguments.rounds), "round"),
        if arguments.quick { "few sizes (--quick)" } else { "all sizes" },
        launcher.join(" ")
    );
    for word in &arguments.set {
        how += &format!(", --set {word}");
    }
    Told::new(place.ways(), curves, &place.reports, how, by, reading, answers, settings)
}
