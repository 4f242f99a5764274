// SPDX-License-Identifier: BSD-2-Clause
//! COL+PNP through an MPI: latencies of Figure 5 and the runtime of Figure 11, by
//! `tests/apps/collectives.c`.
//!
//! ```text
//! for each operation and engine:     once with a report and FI_TCAM_TIMES: queues made,
//!                                    time in matching
//! as often as there are seeds:       every engine in turn, without a report: the time
//!
//! bound of any speedup = time / (time - matching of all ranks)          with the list
//! ```
//!
//! No engine can take away more than what matching takes, however few cores there are.
//! Measured on ranks that share cores, matching counts what other ranks did meanwhile,
//! which makes the bound larger, never smaller. What is measured beyond it is who ran when.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use matching::{HostEngine, Queue, QueueCounters};

use super::figure::{Cell, Figure};
use super::judged::basis_of_queues;
use super::number::{Number, Numbers, Place};
use super::paper::{K, K_OPERATIONS};
use crate::error::Error;
use crate::launch::ending::exit_code;
use crate::launch::environment::Environment;
use crate::launch::launcher::{self, Mpi};
use crate::launch::leftovers::Leftovers;
use crate::launch::library::Library;
use crate::launch::plan::program;
use crate::launch::signals::Signals;
use crate::results::reports;
use crate::settings::Settings;
use crate::text::numbers::whole;
use crate::text::progress;
use crate::workload::basis::Basis;
use crate::workload::pattern::Pattern;

/// What is timed: the figure, k_C and k_P, the engines, the list first.
const OPERATIONS: [(&str, Pattern, u32, &[HostEngine]); 4] = [
    ("5a", Pattern::Gather, K_OPERATIONS, &[HostEngine::List, HostEngine::ColPnp]),
    ("5b", Pattern::Allreduce, K_OPERATIONS, &[HostEngine::List, HostEngine::ColPnp]),
    ("5c", Pattern::Iallgather, K_OPERATIONS, &[HostEngine::List, HostEngine::ColPnp]),
    (
        "11",
        Pattern::Fds,
        K,
        &[
            HostEngine::List,
            HostEngine::ColPnp,
            HostEngine::ColList,
            HostEngine::ListPnp,
            HostEngine::RankArray,
        ],
    ),
];
/// The paper's theta.
const THETA: u32 = 100;
/// Lines of a failed program's output that are shown.
const TAIL: usize = 20;

/// A program with its launcher, checked.
pub(super) struct Job<'a> {
    words: &'a [OsString],
    library: Library,
    mpi: Option<Mpi>,
    /// Its name, as its line has it.
    program: &'static str,
    ranks: u32,
}

/// What a run of the program printed.
struct Ran {
    steps: f64,
    /// Microseconds of an operation or step.
    us: f64,
}

/// What its reports counted.
struct Counted {
    /// Nanoseconds in matching, of all ranks.
    matching: f64,
    /// Of the rank with most: collective and point-to-point queues, in both queues.
    made: [f64; 2],
    longest: [f64; 2],
}

impl<'a> Job<'a> {
    /// None without a command. The program has this name and ends soon with these words.
    pub(super) fn new(
        words: &'a [OsString],
        provider: Option<&Path>,
        name: &'static str,
        briefly: &[&str],
        signals: &mut Signals,
    ) -> Result<Option<Self>, Error> {
        let Some(first) = words.first() else { return Ok(None) };
        let library = Library::find_whole(provider)?;
        launcher::find(first).map_err(|error| Error::Start { program: program(words), error })?;
        let mpi = launcher::detect(words);
        let mut job = Self { words, library, mpi, program: name, ranks: 0 };
        // Whether it works at all, and on how many ranks, before minutes are spent.
        let place = tempfile::tempdir().map_err(Error::io(std::env::temp_dir()))?;
        let settings = Settings::default();
        let text = job.output(signals, &settings, briefly, place.path(), false)?;
        job.ranks = job.value(&text, "ranks")? as u32;
        Ok(Some(job))
    }

    /// Runs the program; what it printed.
    pub(super) fn output(
        &self,
        signals: &mut Signals,
        settings: &Settings,
        words: &[&str],
        directory: &Path,
        report: bool,
    ) -> Result<String, Error> {
        let mut all = self.words.to_vec();
        all.extend(words.iter().map(OsString::from));
        let environment = Environment::new(self.mpi, &self.library, settings, directory)?;
        let mut command = environment.command(&all);
        if !report {
            // A report counts how deep each search went, which takes time.
            command.env_remove("FI_TCAM_REPORT");
        }
        let log = directory.join("output.log");
        let file = File::create(&log).map_err(Error::io(&log))?;
        let errors = file.try_clone().map_err(Error::io(&log))?;
        command.stdin(Stdio::null()).stdout(file).stderr(errors);
        let _left = Leftovers::claim(directory);
        let ended = signals.wait(&mut command, &program(self.words), None)?;
        if ended.caught.is_some() {
            return Err(Error::Interrupted);
        }
        let text = fs::read(&log).map_err(Error::io(&log))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        if ended.status.success() {
            return Ok(text);
        }
        let lines: Vec<_> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n");
        let what = format!("{}: {}", words.join(" "), ended.status);
        Err(Error::Program { what, code: exit_code(ended.status), log, tail })
    }

    /// The number behind `name=` in the line that the program printed.
    pub(super) fn value(&self, text: &str, name: &str) -> Result<f64, Error> {
        let last = &self.words[self.words.len() - 1..];
        let missing = || Error::NoTimes { program: program(last), name: self.program };
        value(text, self.program, name).ok_or_else(missing)
    }

    fn counted(&self, directory: &Path) -> Result<Counted, Error> {
        reports::settle(directory)?;
        let reports = reports::read(directory)?;
        if reports.is_empty() {
            return Err(Error::NoReports { why: program(self.words) });
        }
        let mut counted = Counted { matching: 0.0, made: [0.0; 2], longest: [0.0; 2] };
        for report in &reports {
            let queues = [&report.tagged.prq, &report.tagged.umq];
            let sum = |of: fn(&QueueCounters) -> u64| queues.map(of).iter().sum::<u64>() as f64;
            counted.matching += sum(|queue| queue.measured.ns());
            let made = [sum(|of| of.dedicated_collective), sum(|of| of.dedicated_point_to_point)];
            if made.iter().sum::<f64>() > counted.made.iter().sum::<f64>() {
                counted.made = made;
            }
            for (longest, queue) in counted.longest.iter_mut().zip(queues) {
                *longest = longest.max(queue.high_water as f64);
            }
        }
        Ok(counted)
    }
}

/// The program that is measured here.
pub(super) fn job<'a>(
    words: &'a [OsString],
    provider: Option<&Path>,
    signals: &mut Signals,
) -> Result<Option<Job<'a>>, Error> {
    Job::new(words, provider, "collectives", &["gather", "1"], signals)
}

/// Measures all operations, in as many rounds.
pub(super) fn measure(
    job: &Job<'_>,
    rounds: u32,
    signals: &mut Signals,
    numbers: &mut Numbers,
) -> Result<(), Error> {
    let place = tempfile::tempdir().map_err(Error::io(std::env::temp_dir()))?;
    for (figure, pattern, k, engines) in OPERATIONS {
        let name = pattern.name();
        let text = format!("{name} through MPI on {}", whole(u64::from(job.ranks)));
        progress::step(&text);
        let settings: Vec<_> =
            engines.iter().map(|&engine| settings(engine, Queue::Linked, k)).collect();
        let mut counted = Vec::new();
        for (at, settings) in settings.iter().enumerate() {
            let directory = place.path().join(format!("{name}-{at}"));
            let directory = reports::prepare(&directory)?;
            let mut timed = settings.clone();
            timed.set("times", &"on");
            job.output(signals, &timed, &[&name], &directory, true)?;
            counted.push(job.counted(&directory)?);
        }
        let mut rans: Vec<Vec<Ran>> = engines.iter().map(|_| Vec::new()).collect();
        for _ in 0..rounds {
            for (settings, rans) in settings.iter().zip(&mut rans) {
                let text = job.output(signals, settings, &[&name], place.path(), false)?;
                let of = |name| job.value(&text, name);
                rans.push(Ran { steps: of("steps")?, us: of("us")? });
            }
        }
        for (at, &engine) in engines.iter().enumerate() {
            let storage = Queue::Linked;
            let place =
                Place { pattern, ranks: job.ranks, queue: "", traffic: "", engine, storage, k };
            put(figure, place, &rans[0], &rans[at], &counted[at], numbers);
        }
    }
    Ok(())
}

pub(super) fn settings(engine: HostEngine, queue: Queue, k: u32) -> Settings {
    let mut settings = Settings::default();
    settings.set("prq_entries", &0);
    settings.set("umq_entries", &0);
    settings.set("host_engine", &engine.name());
    settings.set("queue", &queue.name());
    if queue == Queue::Linked {
        settings.set("theta", &THETA);
    }
    settings.set("k_col", &k);
    settings.set("k_pnp", &k);
    settings
}

/// The number behind `name=` in a program's line.
fn value(text: &str, program: &str, name: &str) -> Option<f64> {
    let line = |line: &'_ str| Some(line.strip_prefix(program)?.strip_prefix(": ok ")?.to_owned());
    let line = text.lines().find_map(line)?;
    let mut words = line.split(' ');
    words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

/// The numbers of one engine, beside the list in the same rounds.
fn put(
    figure: &str,
    place: Place<'_>,
    list: &[Ran],
    rans: &[Ran],
    counted: &Counted,
    numbers: &mut Numbers,
) {
    let is = Basis::Measured;
    let times = rans.iter().map(|ran| ran.us).collect();
    numbers.put(Number::new(figure, place, "us", is, times));
    if place.engine == HostEngine::List {
        let bound = |ran: &Ran| {
            let time = ran.us * ran.steps * 1e3;
            let rest = time - counted.matching;
            (rest > 0.0).then(|| time / rest)
        };
        let bounds = rans.iter().filter_map(bound).collect();
        numbers.put(Number::new(figure, place, "bound", Basis::Bounded, bounds));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let share = vec![f64::from(place.ranks) / cores as f64];
        numbers.put(Number::new(figure, place, "ranks a core", Basis::Given, share));
        for (queue, longest) in ["PRQ", "UMQ"].into_iter().zip(counted.longest) {
            let place = Place { queue, ..place };
            numbers.put(Number::new(figure, place, "longest", is, vec![longest]));
        }
        return;
    }
    let faster = list.iter().zip(rans).map(|(list, ran)| list.us / ran.us).collect();
    numbers.put(Number::new(figure, place, "time speedup", is, faster));
    if place.engine == HostEngine::RankArray {
        return;
    }
    for (traffic, made) in ["collective", "point-to-point"].into_iter().zip(counted.made) {
        let place = Place { traffic, ..place };
        // The cap is of each queue, and these are of both.
        let basis = basis_of_queues(made / 2.0, place, Basis::Predicted);
        numbers.put(Number::new(figure, place, "queues", basis, vec![made]));
    }
}

/// The section of a page; nothing where nothing was measured.
pub(super) fn figure(numbers: &Numbers) -> Option<Figure> {
    let (_, first, k, _) = OPERATIONS[0];
    let ranks = numbers.ranks_of("ranks a core", first)?;
    let (engine, storage) = (HostEngine::List, Queue::Linked);
    let place = Place { pattern: first, ranks, queue: "", traffic: "", engine, storage, k };
    let share = numbers.get("ranks a core", place)?.ours;
    let mut figure = Figure::new(
        "Figs. 5 and 11, through an MPI",
        format!(
            "`tests/apps/collectives.c` over tcam without table entries, engines in turn, on \
             {ranks} ranks, {share:.0} to a core: microseconds of an operation (of one of 16 \
             MPI_Iallgather at once, of a step of fds), measured, and the speedup over the list. \
             The paper has 1024 to 4096 processes on a cluster, with a core for each. Here most of \
             what is timed is who runs when, and the range says how much of a speedup that hides. \
             *At most* is *bounded*: the time over what would be left of it without any matching, \
             which is all that an engine can explain with queues of this length; what is measured \
             beyond it is who ran when. It is empty where all ranks together spent more time in \
             matching than the operation took. Ranges are over runs."
        ),
        [
            "said in",
            "operation",
            "engine",
            "us",
            "speedup",
            "at most",
            "queues",
            "longest PRQ",
            "longest UMQ",
        ],
    );
    for (said, pattern, k, engines) in OPERATIONS {
        for &engine in engines {
            let storage = Queue::Linked;
            let place = Place { pattern, ranks, queue: "", traffic: "", engine, storage, k };
            let longest = |queue| Cell::from(numbers.get("longest", Place { queue, ..place }));
            let made = numbers.made(place).map(|made| made.map(|made| whole(made as u64)));
            figure.row(vec![
                format!("Fig. {said}").into(),
                pattern.name().into(),
                format!("`{}`", engine.name()).into(),
                numbers.get("us", place).into(),
                numbers.get("time speedup", place).into(),
                numbers.get("bound", place).into(),
                made.map_or_else(String::new, |made| made.join(" + ")).into(),
                longest("PRQ"),
                longest("UMQ"),
            ]);
        }
    }
    Some(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_program_is_read() {
        let text = "noise\ncollectives: ok ranks=64 operation=fds steps=20 us=12.500\n";
        assert_eq!(value(text, "collectives", "ranks"), Some(64.0));
        assert_eq!(value(text, "collectives", "us"), Some(12.5));
        assert_eq!(value(text, "collectives", "operation"), None);
        assert_eq!(value("collectives: FAILED us=3", "collectives", "us"), None);
    }

    #[test]
    fn no_engine_is_faster_than_no_matching() {
        let place = Place {
            pattern: Pattern::Fds,
            ranks: 64,
            queue: "",
            traffic: "",
            engine: HostEngine::List,
            storage: Queue::Linked,
            k: K,
        };
        let list = [Ran { steps: 10.0, us: 4.0 }];
        let counted = Counted { matching: 30e3, made: [0.0; 2], longest: [5.0, 6.0] };
        let mut numbers = Numbers::default();
        put("11", place, &list, &list, &counted, &mut numbers);
        assert_eq!(numbers.get("bound", place).unwrap().ours, 4.0);
        let col_pnp = Place { engine: HostEngine::ColPnp, ..place };
        let counted = Counted { made: [3.0, 1.0], ..counted };
        let rans = [Ran { steps: 10.0, us: 2.0 }];
        put("11", col_pnp, &list, &rans, &counted, &mut numbers);
        assert_eq!(numbers.get("time speedup", col_pnp).unwrap().ours, 2.0);
        assert_eq!(numbers.made(col_pnp), Some([3.0, 1.0]));
        let more = Counted { matching: 50e3, ..counted };
        let mut numbers = Numbers::default();
        put("11", place, &list, &list, &more, &mut numbers);
        assert_eq!(numbers.get("bound", place), None, "all of it was matching");
    }
}
