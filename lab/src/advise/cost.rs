// SPDX-License-Identifier: BSD-2-Clause
//! What replaying takes, predicted from counted work: a linear model for each engine and storage.
//!
//! ```text
//! x          = work counted in a replay (Work), which is the same every time
//! time       = w . x,  w >= 0
//! w          = argmin  sum over streams of (w . x / measured - 1)^2 + RIDGE |w|^2
//!              by coordinate descent, each w_i cut off at 0    non-negative least squares
//! ```
//! The relative error is what counts: streams take from microseconds to seconds. A cost below zero
//! would have no meaning, and predicts nonsense on a stream of another shape.

use matching::QueueCounters;
use nic::report::ContextCounters;
use serde::{Deserialize, Serialize};

use super::math::dot;
use super::stream::Census;

/// Names of the work that is counted.
pub(crate) const WORK: [&str; 18] = [
    "streams",
    "operations",
    "host_inserts",
    "host_removals",
    "host_found",
    "host_not_found",
    "cells_8",
    "cells_128",
    "cells_2048",
    "cells_beyond",
    "host_span",
    "queue_steps",
    "dedicated",
    "table_inserts",
    "table_removals",
    "table_searches",
    "turns",
    "jumps",
];
/// Where the parts of a traversal are in it, and their ends: cells are dearer where they are
/// further apart than a level of the cache holds.
const CELLS: [(usize, u64, u64); 4] = [(6, 0, 8), (7, 8, 128), (8, 128, 2048), (9, 2048, u64::MAX)];
const RIDGE: f64 = 1e-6;
const SWEEPS: usize = 4000;

/// Work of one engine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work(pub(crate) [f64; WORK.len()]);

impl Work {
    /// What a context did with a stream.
    pub(crate) fn of(counters: &ContextCounters, census: &Census) -> Self {
        let mut work = Self::default();
        work.0[0] = 1.0;
        work.0[1] = (counters.posts + counters.arrivals + counters.peeks) as f64;
        (work.0[16], work.0[17]) = (census.turns as f64, census.jumps as f64);
        for queue in [&counters.prq, &counters.umq] {
            work.add_queue(queue);
        }
        work
    }

    fn add_queue(&mut self, queue: &QueueCounters) {
        let inserts = queue.spills + queue.onloads;
        let removals = (queue.host_matches + queue.host_cancels + queue.promotions)
            .saturating_sub(queue.host_kept);
        let traversals = &queue.traversals;
        let searches = traversals.found.count + traversals.not_found.count;
        let levels: usize = queue.dedicated_levels.iter().map(|(_, levels)| levels.len()).sum();
        let table_inserts = (queue.inserts + queue.promotions).saturating_sub(queue.spills);
        let table_removals = (queue.table_matches + queue.table_cancels + queue.onloads)
            .saturating_sub(queue.table_kept);
        let table_searches = if queue.entries > 0 { queue.searches } else { 0 };
        // Elements that were far apart in memory cost more to reach.
        let span = (1.0 + queue.host_high_water as f64 / 64.0).ln();
        for (at, value) in [
            (2, inserts as f64),
            (3, removals as f64),
            (4, traversals.found.count as f64),
            (5, traversals.not_found.count as f64),
            (10, (inserts + removals) as f64 * span),
            (11, searches as f64 * levels as f64),
            (12, (queue.dedicated_collective + queue.dedicated_point_to_point) as f64),
            (13, table_inserts as f64),
            (14, table_removals as f64),
            (15, table_searches as f64),
        ] {
            self.0[at] += value;
        }
        let both = traversals.found.buckets().chain(traversals.not_found.buckets());
        for (low, high, count) in both {
            let cells = low + (high - low) / 2;
            for (at, from, to) in CELLS {
                self.0[at] += cells.clamp(from, to).saturating_sub(from) as f64 * count as f64;
            }
        }
    }

    /// Adds another stream's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    /// Cells traversed by a search on the host.
    pub(crate) fn cells_a_search(&self) -> f64 {
        let cells: f64 = CELLS.iter().map(|(at, ..)| self.0[*at]).sum();
        cells / self.searches().max(1.0)
    }

    /// Searches on the host.
    pub(crate) fn searches(&self) -> f64 {
        self.0[4] + self.0[5]
    }

    /// Queues made for one operation or source, in one stream.
    pub(crate) fn dedicated_a_stream(&self) -> f64 {
        self.0[12] / self.0[0].max(1.0)
    }

    /// Elements that went to the host.
    pub(crate) fn host_inserts(&self) -> f64 {
        self.0[2]
    }
}

/// Nanoseconds of each unit of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CostModel(Vec<f64>);

impl CostModel {
    /// Fits measured nanoseconds.
    pub(crate) fn fit(samples: &[(Work, f64)]) -> Self {
        const N: usize = WORK.len();
        // Columns are scaled to be alike.
        let mut scale = [0.0_f64; N];
        for (work, ns) in samples {
            for (scale, value) in scale.iter_mut().zip(work.0) {
                *scale = scale.max(value / ns);
            }
        }
        let (mut gram, mut target) = ([[0.0; N]; N], [0.0; N]);
        for (work, ns) in samples {
            let mut row = [0.0; N];
            for at in 0..N {
                row[at] = if scale[at] > 0.0 { work.0[at] / ns / scale[at] } else { 0.0 };
            }
            for at in 0..N {
                target[at] += row[at];
                for other in 0..N {
                    gram[at][other] += row[at] * row[other];
                }
            }
        }
        let mut weights = [0.0; N];
        for _ in 0..SWEEPS {
            for at in 0..N {
                let rest = dot(&gram[at], &weights) - gram[at][at] * weights[at];
                let curvature = gram[at][at] + RIDGE;
                weights[at] = ((target[at] - rest) / curvature).max(0.0);
            }
        }
        let unscaled =
            |(weight, scale): (&f64, &f64)| if *scale > 0.0 { weight / scale } else { 0.0 };
        Self(weights.iter().zip(&scale).map(unscaled).collect())
    }

    /// Nanoseconds of this work.
    pub(crate) fn predict(&self, work: &Work) -> f64 {
        dot(&self.0, &work.0)
    }

    /// Whether it has a cost of each unit of work.
    pub(crate) fn fits(&self) -> bool {
        self.0.len() == WORK.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_that_are_there_are_found() {
        let truth = |work: &Work| 30.0 * work.0[1] + 2.0 * work.0[6] + 8.0 * work.0[9];
        let samples: Vec<_> = (1..60_u32)
            .map(|n| {
                let mut work = Work::default();
                work.0[1] = f64::from(100 + n * 37 % 53);
                work.0[6] = f64::from(n * n % 997);
                work.0[9] = f64::from(n * 7 % 31) * 100.0;
                (work, truth(&work))
            })
            .collect();
        let model = CostModel::fit(&samples);
        for (work, ns) in &samples {
            assert!((model.predict(work) / ns - 1.0).abs() < 0.01, "{} {ns}", model.predict(work));
        }
        assert!(model.0.iter().all(|cost| *cost >= 0.0));
    }

    #[test]
    fn a_traversal_is_divided_where_its_cells_get_dearer() {
        let mut counters = ContextCounters::default();
        counters.prq.traversals.found.record(31);
        counters.umq.traversals.not_found.record(0);
        let work = Work::of(&counters, &Census::default());
        assert_eq!((work.0[6], work.0[7], work.0[8]), (8.0, 23.0, 0.0));
        assert_eq!((work.searches(), work.cells_a_search()), (2.0, 15.5));
    }
}
