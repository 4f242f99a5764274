// SPDX-License-Identifier: BSD-2-Clause
//! `tcam answer`: prints on one page how large the match table of a NIC must be for a program.

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::Args;
use nic::models;
use nic::plain::plain;

use crate::answer::facts::Facts;
use crate::answer::show;
use crate::error::Error;
use crate::experiment::CallSites;
use crate::file;
use crate::hint;
use crate::launch::plan::program;
use crate::launch::signals::ProgramInput;
use crate::launch::{Ended, Leftovers, Plan, Signals, signals};
use crate::options::Common;
use crate::results::{
    Json, Kind, ListFiles, RecordedPlacement, RunRecord, StagingDirectory, reports, runs,
};
use crate::settings::{self, Settings, SiteOption};
use crate::text;
use crate::traces::node::{Placed, Placement, at_least_one};
use crate::traces::take::MAX_QUEUE;
use crate::traces::{Take, files, repeats};

/// Prints one page: the entries that a program needs, the devices that hold them, and the cost of
/// overflow.
///
/// Records a program several times, or takes recordings, and replays them on each emulated device
/// that `tcam devices` names. The page has the need of a rank, and of the NIC that all ranks of a
/// node share. The need is the largest number of receives, unexpected messages, and receives of the
/// MPI itself at one moment. A pool of this size holds all of them, unless engines divide the pool.
/// Without --ppn the ranks of a host share a NIC. If runs differ, a figure is their range.
///
/// Costs are modelled with --timing cpu-list, as shares of the time from the beginning of the run
/// to its last recorded operation, on the rank with the highest share. The page ends with its
/// limits and a paragraph to quote. Recordings of several programs or numbers of ranks have a page
/// each, and a picture each: FILE-1 and so on.
#[derive(Debug, Args)]
#[command(
    override_usage = "tcam answer [OPTIONS] -- COMMAND...\n       tcam answer [OPTIONS] TRACE...",
    after_help = "Examples:
  tcam answer -- mpiexec -n 16 ./app
  tcam answer --ppn 8 -- mpiexec -n 16 ./app
  tcam answer --ppn 4,8,16 tcam-answer
  tcam answer run-1 run-2 run-3
  tcam answer --html answer.html --plot answer.svg run-1 run-2 run-3
  tcam answer --ppn 8 --json answer.json tcam-trace"
)]
pub(crate) struct MakeAnswer {
    /// Number of runs of the program. Its output goes to output.log in the directory of each
    /// recording, or to output.log.new if the run leaves no trace. If standard input is a file,
    /// each run reads it from its beginning; otherwise the program has no input, and a pipe with
    /// input is refused. After a run that fails there is no further run, and the page begins with
    /// its exit status.
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..100))]
    repeat: u32,

    /// Directory for the recordings, each in a subdirectory with its number.
    #[arg(long, value_name = "DIR", default_value = "tcam-answer")]
    out: PathBuf,

    /// Number of ranks that share a NIC: P ranks on each node, with one NIC. Messages between ranks
    /// of a node are left out. Several numbers, such as 4,8,16, are compared in one table.
    #[arg(long, value_name = "P,...", value_delimiter = ',', allow_negative_numbers = true,
        value_parser = at_least_one)]
    ppn: Vec<NonZeroU32>,

    /// Assigns ranks to nodes: consecutive ranks share a node (block, the default), or ranks are
    /// dealt out to all nodes in turn (cyclic). Line N of a file names the node of rank N, counted
    /// from 0, and a line NODE:P that of the next P ranks. A file replaces --ppn.
    #[arg(long, value_name = "block|cyclic|FILE")]
    placement: Option<Placement>,

    /// Also writes the page as HTML that needs no other file, with the picture of --plot.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Draws the share that fits in NICs of several sizes and the cost of overflow there, as SVG or
    /// PNG by the ending of the name. The ranks of such a NIC share all its entries; the other
    /// elements are in a list on the host.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    sites: SiteOption,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    common: Common,

    /// Accepts traces that were cut off, for example by an incomplete copy, up to the cut. Leaves
    /// out traces with an incomplete header. Traces of a killed program do not count as cut off.
    #[arg(long)]
    cut_off: bool,

    /// Ends a replay with an error if a queue has more than N elements. An element takes 150 to 250
    /// bytes; as many traces are replayed at a time as there are cores.
    #[arg(long, value_name = "N", default_value_t = MAX_QUEUE)]
    max_queue: usize,

    /// Traces, or directories of traces. Directories that have ranks in common are repeats of one
    /// program.
    #[arg(
        value_name = "TRACE",
        required_unless_present = "command",
        conflicts_with_all = ["command", "repeat", "out", "set", "provider", "mpi", "sites"]
    )]
    traces: Vec<PathBuf>,

    /// Input of the program.
    #[arg(skip)]
    pub(super) input: ProgramInput,

    /// The program, with its launcher: mpiexec -n 4 ./app
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl MakeAnswer {
    pub(crate) fn runs_a_program(&self) -> bool {
        !self.command.is_empty()
    }

    /// Returns true if a page of HTML or a picture is asked for. Fails before the work starts if a
    /// file cannot be written.
    fn check_drawings(&self) -> Result<bool, Error> {
        if let Some(path) = &self.html {
            file::check_page(path)?;
        }
        if let Some(path) = &self.plot {
            let expected = "a picture is written: give a name such as x.svg or x.png";
            file::check_kind(path, &["svg", "png"], expected)?;
            file::check(path)?;
        }
        Ok(self.html.is_some() || self.plot.is_some())
    }

    /// Returns the placements that were asked for, at least one.
    fn placements(&self) -> Vec<Placed> {
        let placed = |ppn| Placed { ppn, placement: self.placement.clone() };
        match self.ppn.as_slice() {
            [] => vec![placed(None)],
            several => several.iter().map(|&ppn| placed(Some(ppn))).collect(),
        }
    }

    /// Writes the page of HTML and the picture that were asked for.
    fn draw(&self, all: &[Facts]) -> Result<(), Error> {
        if let Some(path) = &self.html {
            let sections = all.iter().map(show::section).collect::<Result<String, _>>()?;
            let several = (self.ppn.len() > 1).then(|| {
                let of_program = all.chunks(self.ppn.len());
                of_program.map(|facts| text::html::table(&show::by_placement(facts))).collect()
            });
            let sections = several.unwrap_or_else(String::new) + &sections;
            file::write(path, text::html::page(&show::title(all), "", &sections))?;
        }
        let Some(path) = &self.plot else { return Ok(()) };
        for (facts, number) in all.iter().zip(1..) {
            let Some(drawn) = show::drawn(facts) else { continue };
            let path = match all.len() {
                1 => path.clone(),
                _ => numbered(path, number),
            };
            match path.extension().is_some_and(|end| end.eq_ignore_ascii_case("png")) {
                true => drawn.png(&path)?,
                false => file::write(&path, drawn.svg()?)?,
            }
        }
        Ok(())
    }
}

/// Prints the page. Returns the exit code of the program, or 3 if results are incomplete, even if
/// the program failed.
pub(crate) fn answer(arguments: &MakeAnswer) -> Result<u8, Error> {
    print(arguments).map(|(code, _)| code)
}

/// Prints the page, and writes the page of HTML and the picture. Returns the exit code, and whether
/// there is a page. There is no page if no run left a trace. After a signal, the page is that of
/// the complete runs, and the exit code that of the signal.
pub(super) fn print(arguments: &MakeAnswer) -> Result<(u8, bool), Error> {
    arguments.json.check()?;
    let is_drawn = arguments.check_drawings()?;
    let (names, code, is_ended) = match arguments.runs_a_program() {
        false => {
            settings::note_unused();
            (arguments.traces.iter().flat_map(|name| repeats::runs_in(name)).collect(), 0, false)
        }
        true => recorded(arguments)?,
    };
    if names.is_empty() {
        return Ok((code, false));
    }
    let MakeAnswer { cut_off, max_queue, .. } = *arguments;
    let take = Take { cut_off, max_queue, partial: arguments.common.partial };
    let (placements, mut of_ranks) = (arguments.placements(), 0);
    // For each program, its facts with each placement.
    let mut programs: Vec<Vec<Facts>> = Vec::new();
    for placed in &placements {
        for (at, group) in repeats::groups(&names, take, placed)?.into_iter().enumerate() {
            let runs: Vec<_> = group.into_iter().map(|of| of.found).collect();
            runs.iter().for_each(|run| files::note_mixed(run));
            let runs_of = runs.iter().collect::<Vec<_>>();
            let mut facts = Facts::of(&runs_of, models::specific(), is_drawn)?;
            facts.ranks_a_nic = placed.ppn;
            let codes = runs.iter().map(|run| run.ranks().code(arguments.common.partial));
            of_ranks = codes.fold(of_ranks, u8::max);
            programs.resize_with(programs.len().max(at + 1), Vec::new);
            programs[at].push(facts);
        }
    }
    for (at, facts) in programs.iter().enumerate().filter(|_| !arguments.json.takes_output()) {
        let lines = match facts.as_slice() {
            [facts] => show::lines(facts),
            several => show::lines_by_placement(several),
        };
        let blank = if at > 0 { "\n" } else { "" };
        println!("{blank}{}", lines.join("\n"));
    }
    let all: Vec<_> = programs.into_iter().flatten().collect();
    arguments.json.write_each(Kind::Answer, &all)?;
    arguments.draw(&all)?;
    Ok((if of_ranks == 0 || is_ended { code } else { of_ranks }, true))
}

/// Returns `answer-2.svg` for `answer.svg`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().display();
    let ending = path.extension().map_or_else(String::new, |end| format!(".{}", end.display()));
    path.with_file_name(format!("{stem}-{number}{ending}"))
}

/// Functions that find the files of an earlier recording.
const OLD: [ListFiles; 2] = [reports::old, files::old];

/// Output of a run until it is known that the run left traces, in the directory of its recording.
/// It becomes [`runs::LOG`] then, so that an earlier recording keeps its log until it is replaced.
const NEW_LOG: &str = "output.log.new";

/// Checks the command line and the directories, and records the program. Prints which recordings of
/// an earlier call are still there. Returns the directories of the recordings and the exit code of
/// the program. After a signal, returns the directories of the complete runs, the exit code of the
/// signal, and true.
fn recorded(arguments: &MakeAnswer) -> Result<(Vec<PathBuf>, u8, bool), Error> {
    let mut settings = Settings::parse(&arguments.common.set)?;
    arguments.sites.set(&mut settings)?;
    settings
        .refuse(&[("trace", "--out DIR"), ("trace_max", "`tcam run --trace DIR --max MIB`")])?;
    let others = ["device", "prq_entries", "umq_entries", "pool_entries"];
    if let Some(name) = others.into_iter().find(|name| settings.get(name).is_some()) {
        fail!(
            "--set {name}: the page does not depend on it; `tcam replay --set {name}=VALUE` replays \
             the recordings with it"
        );
    }
    settings::note_report("--out DIR");
    let mut plan = Plan::new(&arguments.common, &arguments.command, settings)?;
    let mut signals = Signals::catch()?;
    // If any of the directories contains files of another program, the command fails before the
    // first run.
    let places = (1..=arguments.repeat).map(|number| place_of(arguments, number));
    for place in places.filter(|place| place.is_dir()) {
        OLD.iter().try_for_each(|kind| kind(&place).map(drop))?;
    }
    let is_recording = |number| RunRecord::beside(&place_of(arguments, number)).is_some();
    if (1..=arguments.repeat).any(is_recording) {
        let out = arguments.out.display();
        eprintln!("tcam: new recordings replace those in {out}; another --out DIR keeps them");
    }
    let mut names = Vec::new();
    let code = record_all(arguments, &mut plan, &mut signals, &mut names);
    let next = names.len() as u32 + 1;
    if is_recording(next) {
        let next = place_of(arguments, next);
        eprintln!("tcam: {} and later ones stay from an earlier call", next.display());
    }
    let code = code?;
    let Some(signal) = signals.caught() else { return Ok((names, code, false)) };
    let name = signals::name_of(signal);
    match names.iter().map(|name| hint::quoted(name)).collect::<Vec<_>>().as_slice() {
        [] => eprintln!(
            "tcam: ended by {name}, and no run is complete; `tcam run --trace` keeps the traces of a \
             program that is ended"
        ),
        done => eprintln!(
            "tcam: ended by {name}; {} of {} runs are complete: `tcam answer {}` prints their page",
            done.len(),
            arguments.repeat,
            done.join(" ")
        ),
    }
    Ok((names, signals::code_of(signal), true))
}

/// Records the program `--repeat` times, with its output in a log in the directory of each
/// recording. No run follows a run that fails, or a signal. Adds the directories of the recordings
/// to `names`. Returns the exit code of the program.
fn record_all(
    arguments: &MakeAnswer,
    plan: &mut Plan<'_>,
    signals: &mut Signals,
    names: &mut Vec<PathBuf>,
) -> Result<u8, Error> {
    for repeat in 1..=arguments.repeat {
        eprintln!("tcam: run {repeat} of {}", arguments.repeat);
        let place = place_of(arguments, repeat);
        // Several placements are of no use as the default of later pages.
        let placed = match arguments.placements().as_slice() {
            [one] => one.for_record(),
            _ => RecordedPlacement::default(),
        };
        let (ended, missing) = record(plan, signals, &place, placed, arguments.input)?;
        if missing.is_none() {
            names.push(place.clone());
        }
        let code = ended.code();
        let log = place.join(if missing.is_none() { runs::LOG } else { NEW_LOG });
        if signals.caught().is_some() {
            if missing.is_some() {
                eprintln!("tcam: run {repeat} is not kept; its output is in {}", log.display());
            }
            return Ok(code);
        }
        if code != 0 || missing.is_some() {
            eprintln!("tcam: the output of the program is in {}; it ends with:", log.display());
            signals::tail(&log)?.lines().for_each(|line| eprintln!("{}", plain(line)));
        }
        match (missing, code) {
            (None, 0) => continue,
            (None, _) => {}
            (Some(missing), 0) => return Err(missing),
            (Some(missing), _) => eprintln!("tcam: {missing}"),
        }
        return Ok(code);
    }
    Ok(0)
}

/// Returns the directory of a recording.
fn place_of(arguments: &MakeAnswer, number: u32) -> PathBuf {
    arguments.out.join(number.to_string())
}

/// Records one run. Returns how the run ended, and the likely reason if its traces are not kept: it
/// left none, or a signal ended it before it was complete.
fn record(
    plan: &mut Plan<'_>,
    signals: &mut Signals,
    place: &Path,
    placed: RecordedPlacement,
    input: ProgramInput,
) -> Result<(Ended, Option<Error>), Error> {
    let staging = StagingDirectory::inside(place, &OLD)?;
    plan.settings.set("trace", &staging.path().display());
    let _left = Leftovers::claim(staging.path());
    let mut command = plan.command(&plan.settings, staging.path())?;
    let (name, log) = (program(plan.words), place.join(NEW_LOG));
    let ended = signals.wait_logged(&mut command, &name, &log, input, None)?;
    reports::settle(staging.path())?;
    if ended.caught.is_some() || !staging.keep(&["trace"])? {
        // The staging directory still takes the space that may be missing.
        return Ok((ended, Some(plan.no_reports(ended, staging.path()))));
    }
    let mut run = plan.recorded(ended, staging.path());
    run.placed = placed;
    run.write(staging.directory())?;
    let take = Take { cut_off: true, ..Take::default() };
    if let Ok(found) = files::find(&[staging.directory().to_owned()], take) {
        CallSites::write(&found, staging.directory())?;
    }
    fs::rename(&log, place.join(runs::LOG)).map_err(Error::io(&log))?;
    Ok((ended, None))
}
