// SPDX-License-Identifier: BSD-2-Clause
//! `tcam sweep --trace`: the capacity curve of traces.
//!
//! With the overflow model `spill`, one pass over a trace answers for every table
//! size (`matching::Curve`); otherwise, and where the timing model is on, every size
//! is replayed.

use std::path::Path;

use matching::Curve;
use nic::lengths::Lengths;
use nic::params::Params;
use nic::report::ContextCounters;
use nic::timings::COSTS;

use crate::cli;
use crate::environment::{self, Settings};
use crate::error::Error;
use crate::fresh;
use crate::json::Kind;
use crate::numbers::{count, whole};
use crate::reading::{self, Cost, Modelled, Point};
use crate::replay::{self, Curves};
use crate::reports::Summary;
use crate::rows::{Row, Runs};
use crate::sheet::Sheet;
use crate::sizes::{self, Sizes};
use crate::sweep::show;
use crate::traces::{self, Counted, Trace};

/// Shares of the elements that may spill, in per cent, for which the smallest table
/// is told.
const SHARES: [f64; 4] = [0.0, 1.0, 5.0, 10.0];
/// Ranks that are told apart in the table of the smallest tables.
const RANKS: usize = 8;
/// Smallest size beside 0, and largest, of a curve without sizes asked for.
const FEWEST: usize = 16;
const MOST: usize = 65_536;
/// Least cost: entries compared on the host are counted, but take no time.
const LEAST: &str = "0.001";

/// Draws the curve and says how small the table may be. Returns 0.
pub(crate) fn sweep(arguments: &cli::Sweep) -> Result<u8, Error> {
    environment::note_unused();
    let common = &arguments.common;
    for (option, given) in
        [("--provider", common.provider.is_some()), ("--mpi", common.mpi.fixed().is_some())]
    {
        if given {
            return Err(Error::NothingIsRun { option });
        }
    }
    let mut settings = Settings::for_replay("--set", &common.set)?;
    sizes::check(&settings)?;
    settings.give("timing", "--timing", arguments.timing.as_ref())?;
    let found = traces::find(&arguments.trace, arguments.cut_off)?;
    if found.iter().all(|trace| trace.header.context != "tagged") {
        return Err(Error::NothingTagged);
    }
    let params = traces::params(&found, &settings)?;
    if let Some(mixed) = traces::mixed(&found) {
        eprintln!("{mixed}");
    }
    if replay::holds_back(&params) {
        replay::note_flow_control("overflow=flow-control");
    }
    fresh::make(&arguments.out)?;
    arguments.json.check()?;
    let prq = arguments.prq.clone().unwrap_or_else(Sizes::usual);
    let pairs = |prq: &Sizes| sizes::pairs(prq, arguments.umq.as_ref(), &params[0]);
    let first = pairs(&prq)?;
    let charged = params.iter().any(is_charged);
    let (points, rows) = if charged || !params.iter().all(is_plain) {
        replays(&first, &found, &settings, charged)?
    } else {
        let passed = replay::curves(&found, &settings)?;
        if !arguments.json.takes_output() {
            println!("{}", smallest(&passed));
        }
        let swept = points_of(&first, &passed, &settings)?;
        match reading::beyond(&swept.0).filter(|_| arguments.prq.is_none()) {
            // A list of sizes of the UMQ goes with the usual ones alone.
            Some(need) => match pairs(&prq.on_to(need)) {
                Ok(more) => points_of(&more, &passed, &settings)?,
                Err(_) => swept,
            },
            None => swept,
        }
    };
    write(&arguments.out, &rows)?;
    let title = title(&found);
    show(arguments, &title, &points)?;
    arguments.json.write(Kind::Sweep, Runs::new(&title, &rows, &points, Vec::new()))?;
    Ok(0)
}

/// The points of traces at sizes from 0 to beyond what they need; none of them without
/// traces, or where the table does not hold the oldest elements.
pub(crate) fn points(found: &[Trace]) -> Result<Option<Vec<Point>>, Error> {
    let settings = Settings::default();
    let Some(first) = found.first() else { return Ok(None) };
    if !is_plain(&first.params(&settings)?) {
        return Ok(None);
    }
    let passed = replay::curves(found, &settings)?;
    let marks = passed
        .iter()
        .map(|of| &of.counted.counters)
        .map(|counters| counters.prq.high_water.max(counters.umq.high_water));
    let need = marks.max().unwrap_or(0) as usize;
    let last = need.next_power_of_two().clamp(FEWEST << 4, MOST);
    let sizes = std::iter::successors(Some(FEWEST), |size| Some(2 * size));
    let pairs: Vec<_> = std::iter::once(0)
        .chain(sizes.take_while(|size| *size <= last))
        .map(|size| (size, size))
        .collect();
    Ok(Some(points_of(&pairs, &passed, &settings)?.0))
}

/// Whether the timing model is on.
pub(crate) fn is_charged(params: &Params) -> bool {
    COSTS.iter().any(|name| params.thousandths(name) > 0)
}

/// Whether the table always holds the oldest elements.
fn is_plain(params: &Params) -> bool {
    params.text("overflow") == "spill"
        && params.text("pool") == "endpoint"
        && params.text("refuse") == "none"
}

type Swept = (Vec<Point>, Vec<Row>);

fn points_of(
    pairs: &[(usize, usize)],
    passed: &[Curves],
    settings: &Settings,
) -> Result<Swept, Error> {
    let mut swept = (Vec::new(), Vec::new());
    for &(prq, umq) in pairs {
        let mut compared = 0;
        let counted: Vec<Counted> = passed
            .iter()
            .map(|Curves { counted, curves: [of_prq, of_umq] }| {
                if counted.trace.header.context == "tagged" {
                    compared += of_prq.host_entries(prq) + of_umq.host_entries(umq);
                }
                let (prq, umq) = (
                    of_prq.counters(&counted.counters.prq, prq),
                    of_umq.counters(&counted.counters.umq, umq),
                );
                let kinds = ContextCounters::kinds_of(&prq, &umq);
                // What was in the table over time, only a replay of this size knows.
                let lengths = Lengths::default();
                let counters =
                    ContextCounters { prq, umq, kinds, lengths, ..counted.counters.clone() };
                Counted { counters, ..counted.clone() }
            })
            .collect();
        if let Some(sum) = sum_of(&counted, settings)? {
            add(&mut swept, (prq, umq), &sum, Cost::Compared(compared as f64 / messages(&sum)));
        }
    }
    Ok(swept)
}

fn replays(
    pairs: &[(usize, usize)],
    found: &[Trace],
    settings: &Settings,
    charged: bool,
) -> Result<Swept, Error> {
    let mut swept = (Vec::new(), Vec::new());
    for &(prq, umq) in pairs {
        let mut settings = settings.clone();
        settings.set("prq_entries", &prq);
        settings.set("umq_entries", &umq);
        if let Some(Replayed { sum, cost }) = replayed(found, &settings, charged)? {
            add(&mut swept, (prq, umq), &sum, cost);
        }
    }
    Ok(swept)
}

/// What a replay of traces counted, all of them together, and what a message cost.
pub(crate) struct Replayed {
    pub(crate) sum: Summary,
    pub(crate) cost: Cost,
}

/// Replays traces once; the cost is that of the timing model where it is charged.
pub(crate) fn replayed(
    found: &[Trace],
    settings: &Settings,
    charged: bool,
) -> Result<Option<Replayed>, Error> {
    let mut settings = settings.clone();
    if !charged {
        settings.set("host_entry_ns", &LEAST);
    }
    let counted = replay::all(found, &settings)?;
    let Some(sum) = sum_of(&counted, &settings)? else { return Ok(None) };
    let of = [sum.tagged.prq.modelled, sum.tagged.umq.modelled];
    let compared: u64 = of.iter().map(|queue| queue.host_entries).sum();
    let cost = match charged {
        true => Cost::Modelled(Modelled::of(&sum, &counted)),
        false => Cost::Compared(compared as f64 / messages(&sum)),
    };
    Ok(Some(Replayed { sum, cost }))
}

fn messages(sum: &Summary) -> f64 {
    sum.tagged.arrivals.max(1) as f64
}

/// The sum of what was counted, which must add up; nothing of nothing.
fn sum_of(counted: &[Counted], settings: &Settings) -> Result<Option<Summary>, Error> {
    let reports = traces::reports(counted, settings)?;
    for report in &reports {
        report.check().map_err(Error::Replay)?;
    }
    Ok(Summary::of(&reports))
}

/// Adds the point of one size.
fn add((points, rows): &mut Swept, (prq, umq): (usize, usize), sum: &Summary, cost: Cost) {
    let mut point = Point::of(prq, umq, std::slice::from_ref(sum));
    point.cost = Some(cost);
    rows.push(Row::of(prq, umq, 1, 0.0, sum).with(cost));
    points.push(point);
}

fn write(out: &Path, rows: &[Row]) -> Result<(), Error> {
    let path = out.join("sweep.csv");
    let failed = |error| Error::Csv { path: path.clone(), error };
    let mut csv = csv::Writer::from_path(&path).map_err(failed)?;
    for row in rows {
        csv.serialize(row).map_err(failed)?;
    }
    csv.flush().map_err(Error::io(&path))
}

/// Headline: the program and its ranks.
pub(crate) fn title(found: &[Trace]) -> String {
    let program = &found[0].header.program;
    let name = program.rsplit('/').next().unwrap_or(program);
    let mut processes: Vec<_> =
        found.iter().map(|trace| (&trace.header.host, trace.header.pid)).collect();
    processes.sort_unstable();
    processes.dedup();
    let whole = found.iter().all(|trace| trace.cut().is_none());
    let replayed = if whole { "replayed" } else { "replayed as far as it was recorded" };
    format!("{name} on {}, {replayed}", count(processes.len() as u64, "rank"))
}

/// A rank, with its process where several have that number or none is known.
fn name_of(rank: Option<u32>, pid: u32, all: &[Option<u32>]) -> String {
    match rank {
        None => format!("rank {pid}"),
        Some(number) if all.iter().filter(|other| **other == rank).count() > 1 => {
            format!("rank {number} ({pid})")
        }
        Some(number) => format!("rank {number}"),
    }
}

/// The smallest tables for some shares of spills: of all ranks together, of each kind
/// of traffic, of the ranks that need most.
fn smallest(passed: &[Curves]) -> comfy_table::Table {
    let tagged: Vec<_> =
        passed.iter().filter(|of| of.counted.trace.header.context == "tagged").collect();
    let mut sum = [Curve::default(), Curve::default()];
    for Curves { curves, .. } in &tagged {
        sum[0].merge(&curves[0]);
        sum[1].merge(&curves[1]);
    }
    let mut sheet = Sheet::new("", ["smallest table with", "queue"]);
    sheet.header.extend(SHARES.map(|share| match share {
        0.0 => "no spill".to_owned(),
        share => format!("{share} % spilled"),
    }));
    let both = |[collective, rest]: [u64; 2]| collective + rest;
    let mut row = |what: &str, curves: [&Curve; 2], which: &dyn Fn([u64; 2]) -> u64| {
        for (queue, curve) in ["PRQ", "UMQ"].iter().zip(curves) {
            let mut cells = vec![what.to_owned(), (*queue).to_owned()];
            cells.extend(SHARES.map(|share| whole(curve.smallest(share / 100.0, which) as u64)));
            sheet.row(cells);
        }
    };
    let all = [&sum[0], &sum[1]];
    row("all ranks", all, &both);
    row("collective", all, &|[collective, _]| collective);
    row("point-to-point", all, &|[_, rest]| rest);
    let mut ranks: Vec<_> = tagged
        .iter()
        .map(|of| {
            let need = of.curves.each_ref().map(|curve| curve.smallest(0.0, both));
            (need[0].max(need[1]), of)
        })
        .collect();
    ranks.sort_by_key(|(need, _)| std::cmp::Reverse(*need));
    let all_ranks: Vec<_> = tagged.iter().map(|of| of.counted.trace.header.rank).collect();
    for (_, of) in ranks.iter().take(RANKS) {
        let header = &of.counted.trace.header;
        row(&name_of(header.rank, header.pid, &all_ranks), [&of.curves[0], &of.curves[1]], &both);
    }
    sheet.table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_one_number_are_told_apart() {
        let all = [Some(0), Some(1), Some(1), None];
        let names = [(Some(0), 7), (Some(1), 8), (Some(1), 9), (None, 10)];
        let names = names.map(|(rank, pid)| name_of(rank, pid, &all));
        assert_eq!(names, ["rank 0", "rank 1 (8)", "rank 1 (9)", "rank 10"]);
    }
}
