// SPDX-License-Identifier: BSD-2-Clause
//! `tcam sweep`: one run a table size, then the capacity curve.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use comfy_table::Table;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::cli;
use crate::environment::{Environment, Settings};
use crate::error::Error;
use crate::fresh;
use crate::launcher::Mpi;
use crate::numbers::{share, whole};
use crate::plot;
use crate::progress;
use crate::reading::{Cost, Modelled, Point, reading};
use crate::reports::{self, Summary};
use crate::run::{Plan, exit_code, program};
use crate::sizes;
use crate::table;

/// Lines of a failed program's output that are shown.
const TAIL: usize = 20;

/// One line of `sweep.csv`: one run, or one replay.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    prq_entries: usize,
    umq_entries: usize,
    repeat: u32,
    ranks: usize,
    seconds: f64,
    wall_seconds: f64,
    messages: u64,
    unexpected: u64,
    in_table_percent: f64,
    spilled_percent: f64,
    prq_inserts: u64,
    prq_table_matches: u64,
    prq_host_matches: u64,
    prq_spills: u64,
    prq_promotions: u64,
    prq_high_water: u64,
    umq_inserts: u64,
    umq_table_matches: u64,
    umq_host_matches: u64,
    umq_spills: u64,
    umq_promotions: u64,
    umq_high_water: u64,
    /// Nanoseconds a message, of the timing model; nothing without it.
    matching_ns: Option<f64>,
    added_ns: Option<f64>,
    added_ns_worst_rank: Option<f64>,
}

/// Runs the sweep. Returns 0: a program that fails is an error.
pub(crate) fn sweep(arguments: &cli::Sweep) -> Result<u8, Error> {
    let common = &arguments.common;
    let settings = Settings::parse(&common.set)?;
    sizes::check(&settings)?;
    let pairs = sizes::pairs(&arguments.prq, arguments.umq.as_ref(), &settings.check()?)?;
    let plan = Plan::new(common, &arguments.command, settings)?;
    let out = fresh::make(&arguments.out)?;

    let progress = progress_bar(pairs.len() as u64 * u64::from(arguments.repeat));
    let mut runs: Vec<Vec<Summary>> = vec![Vec::new(); pairs.len()];
    let csv_path = arguments.out.join("sweep.csv");
    let csv_error = |error| Error::Csv { path: csv_path.clone(), error };
    let mut csv = csv::Writer::from_path(&csv_path).map_err(csv_error)?;
    // All sizes once, then again: slow moments of the machine hit all alike.
    for repeat in 1..=arguments.repeat {
        for (at, &(prq, umq)) in pairs.iter().enumerate() {
            progress.set_message(format!("PRQ {} UMQ {}", whole(prq as u64), whole(umq as u64)));
            let started = Instant::now();
            let sum = one(&plan, &out, prq, umq, repeat)?;
            let row = Row::of(prq, umq, repeat, started.elapsed().as_secs_f64(), &sum);
            csv.serialize(row).map_err(csv_error)?;
            if progress.is_hidden() {
                eprintln!(
                    "PRQ {prq} UMQ {umq}: {:.2} s, {} in the table, {} spilled",
                    sum.seconds,
                    share(sum.in_table()),
                    share(sum.spilled())
                );
            }
            runs[at].push(sum);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    csv.flush().map_err(Error::io(&csv_path))?;

    let points: Vec<_> =
        pairs.iter().zip(&runs).map(|(&(prq, umq), runs)| Point::of(prq, umq, runs)).collect();
    let title = title(plan.command, plan.mpi, &runs[0][0]);
    show(&arguments.out, &title, &points)?;
    Ok(0)
}

/// Draws and prints the points of a sweep.
pub(crate) fn show(out: &Path, title: &str, points: &[Point]) -> Result<(), Error> {
    let [svg, png] = plot::draw(out, title, points)?;
    println!("{}", points_table(points));
    println!("Table: {}", out.join("sweep.csv").display());
    println!("Curve: {}", svg.display());
    println!("       {}", png.display());
    for line in reading(points) {
        println!("{line}");
    }
    Ok(())
}

fn progress_bar(runs: u64) -> ProgressBar {
    let template = "{bar:30} {pos}/{len} runs, {elapsed} passed, {eta} left, now {msg}";
    let bar = progress::bar(runs, template);
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    bar
}

/// One run, its output in a log beside its reports.
fn one(plan: &Plan<'_>, out: &Path, prq: usize, umq: usize, repeat: u32) -> Result<Summary, Error> {
    let directory = out.join("runs").join(format!("prq{prq}-umq{umq}-{repeat}"));
    let directory = reports::prepare(&directory)?;
    let log = directory.join("output.log");
    let mut settings = plan.settings.clone();
    settings.set("prq_entries", &prq);
    settings.set("umq_entries", &umq);
    let environment = Environment::new(plan.mpi, &plan.library, &settings, &directory)?;
    let output = File::create(&log).map_err(Error::io(&log))?;
    let errors = output.try_clone().map_err(Error::io(&log))?;
    let status = environment
        .command(plan.command)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .status()
        .map_err(|error| Error::Start { program: program(plan.command), error })?;
    if !status.success() {
        return Err(Error::Program {
            what: format!("{prq} PRQ and {umq} UMQ entries"),
            status: status.to_string(),
            code: exit_code(status),
            tail: tail(&log)?,
            log,
        });
    }
    Summary::of(&reports::read(&directory)?).ok_or(Error::NoReports)
}

/// The last lines of a log.
fn tail(log: &Path) -> Result<String, Error> {
    let text = fs::read(log).map_err(Error::io(log))?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL)..].join("\n"))
}

/// Headline of the curve: the program, its ranks, the MPI.
fn title(command: &[std::ffi::OsString], mpi: Option<Mpi>, run: &Summary) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let name = words
        .iter()
        .skip(1)
        .find(|word| word.contains('/') || !word.starts_with('-') && word.parse::<f64>().is_err())
        .map_or("program", |word| word.rsplit('/').next().unwrap_or(word));
    let mpi = mpi.map_or_else(String::new, |mpi| format!(", {mpi}"));
    format!("{name} on {} ranks{mpi}", run.processes)
}

/// One line a size, for the terminal.
fn points_table(points: &[Point]) -> Table {
    let mut table = table::blank();
    let mut header = vec![
        "entries",
        "matched in table",
        "PRQ spills",
        "UMQ spills",
        "PRQ high water",
        "UMQ high water",
        points[0].cost.map_or("time", |cost| cost.title().1),
    ];
    if matches!(points[0].cost, Some(Cost::Modelled(_))) {
        header.extend(["host adds, ns", "worst rank, ns"]);
    }
    table.set_header(header);
    for point in points {
        let spills = |queue: usize| {
            format!("{} ({})", whole(point.spills[queue]), share(point.spilled[1 + queue]))
        };
        let mut row = vec![
            point.size(),
            share(point.in_table),
            spills(0),
            spills(1),
            whole(point.peaks[0].elements),
            whole(point.peaks[1].elements),
            match point.cost {
                None => format!("{:.2} s", point.seconds[1]),
                Some(cost) => format!("{:.1}", cost.value()),
            },
        ];
        if let Some(Cost::Modelled(modelled)) = point.cost {
            row.extend([modelled.added, modelled.worst].map(|ns| format!("{ns:.1}")));
        }
        table.add_row(row);
    }
    table::align(&mut table);
    table
}

impl Row {
    pub(crate) fn of(
        prq: usize,
        umq: usize,
        repeat: u32,
        wall_seconds: f64,
        sum: &Summary,
    ) -> Self {
        let (posted, unexpected) = (&sum.tagged.prq, &sum.tagged.umq);
        Self {
            prq_entries: prq,
            umq_entries: umq,
            repeat,
            ranks: sum.processes,
            seconds: sum.seconds,
            wall_seconds,
            messages: sum.tagged.arrivals,
            unexpected: sum.tagged.unexpected,
            in_table_percent: sum.in_table(),
            spilled_percent: sum.spilled(),
            prq_inserts: posted.inserts,
            prq_table_matches: posted.table_matches,
            prq_host_matches: posted.host_matches,
            prq_spills: posted.spills,
            prq_promotions: posted.promotions,
            prq_high_water: posted.high_water,
            umq_inserts: unexpected.inserts,
            umq_table_matches: unexpected.table_matches,
            umq_host_matches: unexpected.host_matches,
            umq_spills: unexpected.spills,
            umq_promotions: unexpected.promotions,
            umq_high_water: unexpected.high_water,
            matching_ns: None,
            added_ns: None,
            added_ns_worst_rank: None,
        }
    }

    /// The same with what the timing model says.
    pub(crate) fn with(self, cost: Option<Cost>) -> Self {
        let Some(Cost::Modelled(Modelled { matching, added, worst, .. })) = cost else {
            return self;
        };
        Self {
            matching_ns: Some(matching),
            added_ns: Some(added),
            added_ns_worst_rank: Some(worst),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::tests::sample;

    #[test]
    fn the_title_names_the_program() {
        let run = Summary::of(&[sample(0, 1, 1)]).unwrap();
        for (command, name) in [
            ("mpiexec -n 32 target/apps/fds_gather --steps 8", "fds_gather"),
            ("mpirun -np 4 lmp -in in.rhodo", "lmp"),
            ("mpirun", "program"),
        ] {
            let words: Vec<_> = command.split(' ').map(std::ffi::OsString::from).collect();
            let title = title(&words, Some(Mpi::Mpich), &run);
            assert_eq!(title, format!("{name} on 1 ranks, MPICH"));
        }
    }

    #[test]
    fn the_tail_is_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let lines: Vec<_> = (0..50).map(|line| line.to_string()).collect();
        fs::write(&log, lines.join("\n")).unwrap();
        assert!(tail(&log).unwrap().starts_with("30\n"));
        fs::write(&log, "").unwrap();
        assert_eq!(tail(&log).unwrap(), "");
    }
}
