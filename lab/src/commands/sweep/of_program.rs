// SPDX-License-Identifier: BSD-2-Clause
//! `tcam sweep` with a program: runs the program once for each table size, then draws the capacity
//! curve.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::arguments::Sweep;
use super::show::show;
use crate::capacity::{Knob, Point, Rows, Runs, Sizes, Swept, UmqSizes, rows, sizes};
use crate::error::Error;
use crate::launch::plan::program;
use crate::launch::signals::{OWN_FAILURE, ProgramInput, exit_code};
use crate::launch::{Leftovers, Mpi, Plan, Signals, signals};
use crate::results::ranks::INCOMPLETE;
use crate::results::{
    Adding, DirectoryLock, Kind, Summary, origin, output_directory, reports, runs,
};
use crate::settings::{self, Settings};
use crate::text::{count, entries, progress, share, whole};

/// Table entries of the first run, which finds the sizes to try.
const FIRST: usize = 8192;
/// Exit code for a program that took too long, as of timeout(1).
const TIMED_OUT: u8 = 124;

/// Runs the sweep. Returns 0, 3 if results are incomplete, or the exit code of a signal. A program
/// that fails is an error, after the other sizes have run.
pub(crate) fn sweep(arguments: &Sweep) -> Result<u8, Error> {
    let common = &arguments.common;
    for (option, given) in [
        ("--ppn", arguments.placed.ppn.is_some()),
        ("--placement", arguments.placed.placement.is_some()),
    ] {
        if given {
            fail!("{option}: places the ranks of a recording, give it with --trace");
        }
    }
    let settings = Settings::parse(&common.set)?;
    settings.refuse_sizes()?;
    let params = settings.check()?;
    let pairs = |prq: &Sizes| sizes::pairs(prq, arguments.umq.as_ref(), &params);
    // Wrong sizes fail before a program is run.
    let given = pairs(&arguments.prq.clone().unwrap_or_else(Sizes::usual))?;
    if Knob::of(&params) == Knob::Pool {
        eprintln!(
            "The tables of each rank are swept, and the pool of the node stays at {}: `tcam run --trace` and \
             then `tcam sweep --trace` with the same --set sweep the pool",
            entries(params.pool_entries.into())
        );
    }
    settings::note_report("--out DIR");
    let plan = Plan::new(common, &arguments.command, settings)?;
    let mut signals = Signals::catch()?;
    let out = output_directory::make_for_reports(&arguments.out)?;
    let _lock = DirectoryLock::acquire(&out)?;
    runs::check(&out)?;
    // The file of `--json` may be in that directory, so it is checked after the directory is made.
    arguments.json.check()?;

    let pairs = match chosen(arguments, &plan, &mut signals, &out)? {
        Chosen::Given => given,
        Chosen::Around(need) => pairs(&Sizes::around(need))?,
        Chosen::Failed(failure) => match signals.caught() {
            None => return failure_of(&[failure]),
            Some(signal) => {
                let name = signals::name_of(signal);
                eprintln!("tcam: ended by {name} in the first run; no size was tried");
                return Ok(signals::code_of(signal));
            }
        },
    };
    let progress = progress_bar(pairs.len() as u64 * u64::from(arguments.repeat));
    let mut runs: Vec<Vec<Summary>> = vec![Vec::new(); pairs.len()];
    let mut failed: Vec<Failure> = Vec::new();
    let mut rows = None;
    // Every size runs once before any size runs again, so that slow moments of the machine affect
    // all sizes.
    'runs: for repeat in 1..=arguments.repeat {
        for (at, &(prq, umq)) in pairs.iter().enumerate() {
            progress.set_message(format!("PRQ {} UMQ {}", whole(prq as u64), whole(umq as u64)));
            let started = Instant::now();
            let outcome = one(&plan, &mut signals, &out, prq, umq, repeat, arguments.timeout)?;
            if outcome.is_err() && signals.caught().is_some() {
                break 'runs;
            }
            let text = match &outcome {
                Ok(sum) => format!(
                    "PRQ {prq} UMQ {umq}: {:.2} s, {} fit immediately, {} promoted first",
                    sum.seconds,
                    share(sum.immediate()),
                    share(sum.promoted())
                ),
                Err(failure) => format!("{}: FAILED", failure.which),
            };
            if progress.is_hidden() {
                eprintln!("{text}");
            }
            match outcome {
                Ok(sum) => {
                    let rows = match &mut rows {
                        Some(rows) => rows,
                        // The files of an earlier sweep stay until there is a new result.
                        None => {
                            runs::clear(&out, &pairs, arguments.repeat)?;
                            rows.insert(Rows::create(&arguments.out)?)
                        }
                    };
                    let seconds = started.elapsed().as_secs_f64();
                    rows.put(rows::row(Knob::Tables, (prq, umq), repeat, seconds, &sum, None))?;
                    runs[at].push(sum);
                }
                // If the first run writes no report, no run at another size would write one either.
                Err(mut failure) if failure.silent && repeat == 1 && at == 0 => {
                    progress.finish_and_clear();
                    if pairs.len() > 1 {
                        failure.why += "; no other size was run";
                    }
                    return failure_of(&[failure]);
                }
                Err(failure) => failed.push(failure),
            }
            progress.inc(1);
            if signals.caught().is_some() {
                break 'runs;
            }
        }
    }
    progress.finish_and_clear();

    let done = || pairs.iter().zip(&runs).filter(|(_, runs)| !runs.is_empty());
    let points = done().map(|(&(prq, umq), runs)| Point::of(prq, umq, runs)).collect();
    let scheduling_note = runs.iter().flatten().find_map(Summary::scheduling_note);
    let swept = Swept::of_runs(points, Knob::Tables, scheduling_note);
    let mut incomplete = 0;
    // The completeness is that of the run with the most missing ranks.
    let least = |sum: &&Summary| (sum.ranks.present(), std::cmp::Reverse(sum.ranks.cut_short()));
    if let Some(run) = runs.iter().flatten().min_by_key(least) {
        let title = title(plan.mpi, run);
        let sizes: Vec<_> = failed.iter().map(|failure| failure.size).collect();
        show(arguments, &arguments.out, &title, &swept, run.lack().as_deref(), &sizes)?;
        let rows = rows.map_or_else(Vec::new, |rows| rows.all);
        let ranks: BTreeSet<u32> = runs.iter().flatten().map(|run| run.ranks.job_size()).collect();
        if ranks.len() > 1 {
            let all: Vec<_> = ranks.iter().map(u32::to_string).collect();
            eprintln!("The runs are of jobs of different sizes, of {} ranks", all.join(" and "));
            incomplete = INCOMPLETE;
        }
        let completeness = run.ranks.completeness();
        let runs = Runs::new(title, rows, swept, completeness, failure_lines(&failed), Vec::new());
        arguments.json.write(Kind::Sweep, runs)?;
        incomplete = run.ranks.code(arguments.common.partial).max(incomplete);
    }
    if let Some(signal) = signals.caught() {
        for line in failure_lines(&failed) {
            eprintln!("tcam: FAILED {line}");
        }
        let (done, all) = (runs.iter().map(Vec::len).sum::<usize>(), progress.length());
        eprintln!(
            "tcam: ended by {}; {done} of {} runs are in {}",
            signals::name_of(signal),
            all.unwrap_or_default(),
            arguments.out.display()
        );
        return Ok(signals::code_of(signal));
    }
    failure_of(&failed).map(|code| code.max(incomplete))
}

/// The sizes that are swept.
enum Chosen {
    /// The sizes of the command line.
    Given,
    /// Sizes around the need of a first run.
    Around(u64),
    /// The first run failed.
    Failed(Failure),
}

/// If no sizes are given, runs the program once with large tables to find its need. If only `--umq`
/// has a list of sizes, there is no first run: the list is paired with the usual sizes of the PRQ,
/// and must have as many sizes.
fn chosen(
    arguments: &Sweep,
    plan: &Plan<'_>,
    signals: &mut Signals,
    out: &Path,
) -> Result<Chosen, Error> {
    let listed = matches!(&arguments.umq, Some(UmqSizes::List(Sizes(sizes))) if sizes.len() > 1);
    if arguments.prq.is_some() || listed {
        return Ok(Chosen::Given);
    }
    eprintln!("A first run, to see which sizes to try (--prq gives them):");
    let umq = match &arguments.umq {
        Some(UmqSizes::List(Sizes(sizes))) => sizes.first().copied().unwrap_or(FIRST),
        _ => FIRST,
    };
    let ran = one(plan, signals, out, FIRST, umq, 1, arguments.timeout)?;
    Ok(match ran {
        Err(mut failure) => {
            failure.why += "; no other size was run";
            Chosen::Failed(failure)
        }
        Ok(sum) => {
            let need = sum.prq_peak.elements.max(sum.umq_peak.elements);
            eprintln!("its longest queue had {}", count(need, "element"));
            Chosen::Around(need)
        }
    })
}

fn progress_bar(runs: u64) -> ProgressBar {
    let template = "{bar:30} {pos}/{len} runs, {elapsed} passed, {left}, now {msg}";
    let bar = progress::bar(runs, template);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Does one run, with its output in a log in the directory of its reports. Returns the sum of its
/// reports, or why it failed. The outer error ends the sweep.
fn one(
    plan: &Plan<'_>,
    signals: &mut Signals,
    out: &Path,
    prq: usize,
    umq: usize,
    repeat: u32,
    timeout: Option<f64>,
) -> Result<Result<Summary, Failure>, Error> {
    let directory = reports::prepare(&out.join("runs").join(runs::name_of(prq, umq, repeat)))?;
    let log = directory.join(runs::LOG);
    let settings = plan.settings.with([("prq_entries", &prq), ("umq_entries", &umq)]);
    let mut command = plan.command(&settings, &directory)?;
    let _left = Leftovers::claim(&directory);
    let limit = timeout.map(Duration::from_secs_f64);
    let name = program(plan.words);
    let ended = signals.wait_logged(&mut command, &name, &log, ProgramInput::File, limit)?;
    reports::settle(&directory)?;
    plan.recorded(ended, &directory).write(&directory)?;
    let failure = |why: String, code| Failure {
        which: format!("PRQ {prq} UMQ {umq}, run {repeat}"),
        size: prq.max(umq),
        why,
        code,
        log,
        silent: false,
    };
    if let Some(seconds) = timeout.filter(|_| ended.late) {
        let why = format!("ended after {seconds} s (--timeout)");
        return Ok(Err(failure(why, TIMED_OUT)));
    }
    if !ended.status.success() {
        return Ok(Err(failure(ended.status.to_string(), exit_code(ended.status))));
    }
    let mut adding = Adding::default();
    let read = reports::each(&directory, |_, report| adding.add(&report));
    adding.sort();
    Ok(match read.map(|()| adding.sum()) {
        Ok(Some((sum, _))) => Ok(sum),
        Ok(None) => {
            let why = plan.no_reports(ended, &directory).to_string();
            Err(Failure { silent: true, ..failure(why, OWN_FAILURE) })
        }
        Err(error) => Err(failure(error.to_string(), OWN_FAILURE)),
    })
}

/// Returns the title of the curve: the program that the reports name, its ranks, the MPI. Of
/// several programs, the first is named.
fn title(mpi: Option<Mpi>, run: &Summary) -> String {
    let of = |name: &str| {
        let line = run.origin.iter().find(|(key, _)| *key == name);
        line.map_or("", |(_, value)| value.as_str())
    };
    let program = of("program").split(", ").next().unwrap_or_default();
    let name = match origin::name_of(program, of("command")) {
        "" => "program",
        name => name,
    };
    let mpi = mpi.map_or_else(String::new, |mpi| format!(", {mpi}"));
    format!("{name} on {}{mpi}", run.ranks())
}

/// A run that failed.
#[derive(Debug)]
struct Failure {
    /// The table sizes and the number of the run.
    which: String,
    /// The larger of both table sizes.
    size: usize,
    /// How the program ended, or which results are missing.
    why: String,
    code: u8,
    log: PathBuf,
    /// True if the program ended with 0, but no rank wrote a report.
    silent: bool,
}

/// Returns the error of the sweep: all runs that failed, with the exit code and log of the first.
/// Returns 0 if no run failed.
fn failure_of(failed: &[Failure]) -> Result<u8, Error> {
    let Some(first) = failed.first() else { return Ok(0) };
    Err(Error::Program {
        what: failure_lines(failed).join("\n"),
        code: first.code,
        tail: signals::tail(&first.log)?,
        log: first.log.clone(),
    })
}

/// Returns a line for each reason, with the runs that failed for it.
fn failure_lines(failed: &[Failure]) -> Vec<String> {
    let mut ways: Vec<(&str, Vec<&str>)> = Vec::new();
    for failure in failed {
        match ways.iter_mut().find(|(why, _)| *why == failure.why) {
            Some((_, which)) => which.push(&failure.which),
            None => ways.push((&failure.why, vec![&failure.which])),
        }
    }
    ways.into_iter().map(|(why, which)| format!("{}: {why}", which.join("; "))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::results::reports::tests::sample;

    #[test]
    fn every_size_that_failed_is_named_and_the_first_gives_the_code() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        fs::write(&log, "why").unwrap();
        let failure = |which: &str, why: &str, code| {
            let (which, why, log) = (which.to_owned(), why.to_owned(), log.clone());
            Failure { which, size: 0, why, code, log, silent: false }
        };
        assert_eq!(failure_of(&[]).unwrap(), 0);
        let failed =
            [failure("PRQ 1", "bad", 3), failure("PRQ 2", "worse", 4), failure("PRQ 4", "bad", 3)];
        let error = failure_of(&failed).unwrap_err();
        assert!(matches!(error, Error::Program { code: 3, .. }));
        let text = error.to_string();
        assert!(text.contains("\nPRQ 1; PRQ 4: bad\nPRQ 2: worse\n"), "{text}");
        assert!(text.ends_with("why"), "{text}");
    }

    #[test]
    fn the_title_names_the_program() {
        for (program, command, name) in [
            ("target/apps/fds_gather", "target/apps/fds_gather --steps 8", "fds_gather"),
            ("lmp", "lmp -in in.rhodo", "lmp"),
            ("", "", "program"),
            ("python3", "python3 farm/work.py 7", "work.py"),
        ] {
            let mut report = sample(0, 1, 1);
            (report.program, report.origin.command) = (program.to_owned(), command.to_owned());
            let run = Summary::of(&[report]).unwrap();
            let title = title(Some(Mpi::Mpich), &run);
            assert_eq!(title, format!("{name} on 1 rank, MPICH"));
        }
        let [mut first, mut second] = [sample(0, 1, 1), sample(1, 1, 1)];
        (first.program, second.program) = ("b/ocean".to_owned(), "c/air".to_owned());
        let run = Summary::of(&[first, second]).unwrap();
        assert_eq!(title(None, &run), "ocean on 2 ranks");
    }
}
