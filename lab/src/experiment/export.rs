// SPDX-License-Identifier: BSD-2-Clause
//! Counts as CSV or Parquet: one line for each value, or for each rank and queue, in the form of
//! data frames.

use std::path::Path;

use super::lines::{Lines, row};
use super::outcome::Experiment;
use super::rank::Queue;
use crate::error::Error;

/// Names of all files. Only traces have `operations`.
pub(crate) const NAMES: [&str; 6] =
    ["queues", "kinds", "depths", "lengths", "origin", "operations"];

row! {
    /// A line of `queues`.
    struct QueueRow<'a> {
        rank: u32,
        queue: &'a str,
        entries: u64,
        inserts: u64,
        searches: u64,
        table_matches: u64,
        host_matches: u64,
        misses: u64,
        spills: u64,
        promotions: u64,
        onloads: u64,
        held_back: u64,
        table_cancels: u64,
        host_cancels: u64,
        table_high_water: u64,
        host_high_water: u64,
        high_water: u64,
        hit_entries: u64,
        miss_entries: u64,
        host_traversed: u64,
        host_in_a_list: u64,
        modelled_ns: f64,
        measured_ns: u64,
    }
}

row! {
    /// A line of `kinds`.
    struct KindRow<'a> {
        rank: u32,
        queue: &'a str,
        kind: &'a str,
        inserts: u64,
        searches: u64,
        table_matches: u64,
        host_matches: u64,
        misses: u64,
        table_full: u64,
        disabled: u64,
        order: u64,
        sticky: u64,
        preemptive: u64,
        pool_share: u64,
        pool_empty: u64,
        refused: u64,
        short: u64,
    }
}

row! {
    /// A line of `depths`: a bucket of a histogram that is not empty.
    struct DepthRow<'a> {
        rank: u32,
        queue: &'a str,
        outcome: &'a str,
        low: u64,
        high: u64,
        searches: u64,
    }
}

row! {
    /// A line of `lengths`.
    struct LengthRow<'a> {
        rank: u32,
        queue: &'a str,
        place: &'a str,
        operations: u64,
        /// Microseconds since the run began.
        us: u64,
        elements: u64,
    }
}

row! {
    /// A line of `origin`: a fact about the run, or a note on missing ranks.
    struct OriginRow<'a> {
        name: &'a str,
        value: &'a str,
    }
}

/// Writes `queues`, `kinds`, `depths`, `lengths` and `origin`.
pub(crate) fn write(experiment: &Experiment, out: &Path, parquet: bool) -> Result<(), Error> {
    let mut queues = Lines::new::<QueueRow<'_>>(out, "queues", parquet)?;
    let mut kinds = Lines::new::<KindRow<'_>>(out, "kinds", parquet)?;
    let mut depths = Lines::new::<DepthRow<'_>>(out, "depths", parquet)?;
    for rank in &experiment.ranks {
        for queue in Queue::BOTH {
            let (of, name) = (queue.of(&rank.tagged), queue.name());
            queues.add(&QueueRow {
                rank: rank.number,
                queue: name,
                entries: of.entries,
                inserts: of.inserts,
                searches: of.searches,
                table_matches: of.table_matches,
                host_matches: of.host_matches,
                misses: of.misses,
                spills: of.spills,
                promotions: of.promotions,
                onloads: of.onloads,
                held_back: of.held_back,
                table_cancels: of.table_cancels,
                host_cancels: of.host_cancels,
                table_high_water: of.table_high_water,
                host_high_water: of.host_high_water,
                high_water: of.high_water,
                hit_entries: of.search_depth.hit_entries,
                miss_entries: of.search_depth.miss_entries,
                host_traversed: of.traversals.entries,
                host_in_a_list: of.traversals.in_a_list,
                modelled_ns: of.modelled.seconds() * 1e9,
                measured_ns: of.measured.ns(),
            })?;
            for (kind, counted) in of.kinds.iter() {
                let reasons = &counted.block_reasons;
                kinds.add(&KindRow {
                    rank: rank.number,
                    queue: name,
                    kind,
                    inserts: counted.inserts,
                    searches: counted.searches,
                    table_matches: counted.table_matches,
                    host_matches: counted.host_matches,
                    misses: counted.misses,
                    table_full: reasons.table_full,
                    disabled: reasons.disabled,
                    order: reasons.order,
                    sticky: reasons.sticky,
                    preemptive: reasons.preemptive,
                    pool_share: reasons.pool_share,
                    pool_empty: reasons.pool_empty,
                    refused: reasons.refused,
                    short: reasons.short,
                })?;
            }
            let depth = &of.search_depth;
            for (outcome, histogram) in [("hit", &depth.hit), ("miss", &depth.miss)] {
                for (low, high, searches) in histogram.buckets() {
                    let rank = rank.number;
                    depths.add(&DepthRow { rank, queue: name, outcome, low, high, searches })?;
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

fn origin(experiment: &Experiment, out: &Path, parquet: bool) -> Result<(), Error> {
    let mut lines = Lines::new::<OriginRow<'_>>(out, "origin", parquet)?;
    for (name, value) in &experiment.sum.origin {
        lines.add(&OriginRow { name, value })?;
    }
    if let Some(lack) = experiment.sum.lack() {
        lines.add(&OriginRow { name: "lack", value: &lack })?;
    }
    lines.end()
}

/// Writes lengths over time, for one place of one queue of one rank after the other.
fn lengths(experiment: &Experiment, out: &Path, parquet: bool) -> Result<(), Error> {
    let mut lines = Lines::new::<LengthRow<'_>>(out, "lengths", parquet)?;
    for rank in &experiment.ranks {
        let lengths = &rank.lengths;
        for queue in Queue::BOTH {
            for (place, values) in ["table", "host"].into_iter().zip(queue.lengths(lengths)) {
                for (at, (&us, &elements)) in lengths.us.iter().zip(values).enumerate() {
                    let operations = at as u64 * lengths.every;
                    let (rank, queue) = (rank.number, queue.name());
                    lines.add(&LengthRow { rank, queue, place, operations, us, elements })?;
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
        assert!(queues[1].starts_with("0,PRQ,64,1600,1600,64,1536,0,1536,"), "{}", queues[1]);
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
