// SPDX-License-Identifier: BSD-2-Clause
//! Writes the counts of an experiment for `tcam show --format csv`, as CSV or Parquet files that
//! can be read as data frames.

use std::path::Path;

use matching::{BlockReasons, KindCounters};

use super::{Experiment, QueueKind};
use crate::error::Error;
use crate::results::columns::{TEXT, WHOLE};
use crate::results::{Cell, ColumnFile, counters};

/// Names of all files. `operations` is written only from traces.
pub(crate) const NAMES: [&str; 6] =
    ["queues", "kinds", "depths", "lengths", "origin", "operations"];

/// Writes `queues`, `kinds`, `depths`, `lengths` and `origin`.
pub(crate) fn write(experiment: &Experiment, out: &Path, parquet: bool) -> Result<(), Error> {
    let place = [("rank", WHOLE), ("queue", TEXT)].into_iter();
    let columns = place.clone().chain(counters::columns());
    let mut queues = ColumnFile::new(out, "queues", parquet, columns)?;
    let of_kind = KindCounters::COUNTERS.iter().map(|counter| (counter.name, WHOLE));
    let reasons = BlockReasons::COUNTERS.iter().map(|reason| (reason.name, WHOLE));
    let columns = place.clone().chain([("kind", TEXT)]).chain(of_kind).chain(reasons);
    let mut kinds = ColumnFile::new(out, "kinds", parquet, columns)?;
    let columns = [("outcome", TEXT), ("low", WHOLE), ("high", WHOLE), ("searches", WHOLE)];
    let mut depths = ColumnFile::new(out, "depths", parquet, place.chain(columns))?;
    for rank in &experiment.ranks {
        for queue in QueueKind::BOTH {
            let of = queue.of(&rank.tagged);
            let place = || [Cell::from(rank.number), queue.name().into()].into_iter();
            queues.add(place().chain(counters::values(of)))?;
            for (kind, of_kind) in of.kinds.iter() {
                let counts = KindCounters::COUNTERS.iter().map(|of| (of.get)(of_kind).into());
                let reasons = of_kind.block_reasons.iter().map(|(_, elements)| elements.into());
                kinds.add(place().chain([kind.into()]).chain(counts).chain(reasons))?;
            }
            let depth = &of.search_depth;
            for (outcome, histogram) in [("hit", &depth.hit), ("miss", &depth.miss)] {
                for (low, high, searches) in histogram.buckets() {
                    let bucket = [outcome.into(), low.into(), high.into(), searches.into()];
                    depths.add(place().chain(bucket))?;
                }
            }
        }
    }
    queues.end()?;
    kinds.end()?;
    depths.end()?;
    origin(experiment, out, parquet)?;
    lengths(experiment, out, parquet)
}

/// Writes the facts about the run, and a note on missing ranks.
fn origin(experiment: &Experiment, out: &Path, parquet: bool) -> Result<(), Error> {
    let mut lines = ColumnFile::new(out, "origin", parquet, [("name", TEXT), ("value", TEXT)])?;
    for (name, value) in &experiment.sum.origin {
        lines.add([(*name).into(), value.as_str().into()])?;
    }
    if let Some(lack) = experiment.sum.lack() {
        lines.add(["lack".into(), lack.into()])?;
    }
    lines.end()
}

/// Writes the lengths over time, sorted by rank, queue and place (table, then host).
fn lengths(experiment: &Experiment, out: &Path, parquet: bool) -> Result<(), Error> {
    let columns = [
        ("rank", WHOLE),
        ("queue", TEXT),
        ("place", TEXT),
        ("operations", WHOLE),
        // Microseconds since the run began.
        ("us", WHOLE),
        ("elements", WHOLE),
    ];
    let mut lines = ColumnFile::new(out, "lengths", parquet, columns)?;
    for rank in &experiment.ranks {
        let lengths = &rank.lengths;
        for queue in QueueKind::BOTH {
            for (place, values) in ["table", "host"].into_iter().zip(queue.lengths(lengths)) {
                for (at, (&us, &elements)) in lengths.us.iter().zip(values).enumerate() {
                    let operations = at as u64 * lengths.every;
                    let place = [rank.number.into(), queue.name().into(), place.into()];
                    let sample = [operations, us, elements].map(Cell::from);
                    lines.add(place.into_iter().chain(sample))?;
                }
            }
        }
    }
    lines.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::outcome::tests::experiment;

    #[test]
    fn every_count_has_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let experiment = experiment(3, 64);
        write(&experiment, directory.path(), false).unwrap();
        let read = |name: &str| {
            let text = std::fs::read_to_string(directory.path().join(name)).unwrap();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let queues = read("queues.csv");
        assert_eq!(queues.len(), 1 + 3 * 2);
        assert!(queues[0].starts_with("rank,queue,entries,inserts,"));
        let value = |name: &str| {
            let column = queues[0].split(',').position(|of| of == name).unwrap();
            queues[1].split(',').nth(column).unwrap()
        };
        let names =
            ["rank", "queue", "entries", "inserts", "table_matches", "spills", "hit_entries"];
        assert_eq!(names.map(value), ["0", "PRQ", "64", "1600", "64", "1536", "1280800"]);
        assert_eq!(read("kinds.csv").len(), 1 + 3 * 2 * 2);
        let depths = read("depths.csv");
        assert_eq!(
            depths[..3],
            ["rank,queue,outcome,low,high,searches", "0,PRQ,hit,1,1,1", "0,PRQ,hit,2,3,2"]
        );
        let lengths = read("lengths.csv");
        assert_eq!(lengths[0], "rank,queue,place,operations,us,elements");
        assert_eq!(
            lengths.len(),
            1 + 4 * experiment.ranks.iter().map(|of| of.lengths.us.len()).sum::<usize>()
        );
    }
}
