// SPDX-License-Identifier: BSD-2-Clause
//! The smallest tables with which at most a given share of the elements spills, from the curves of
//! one pass over traces.

use comfy_table::Table;
use matching::Curve;
use serde::Serialize;

use crate::text::{Sheet, whole};
use crate::traces::Curves;

/// Largest number of ranks in the table for the terminal.
const RANKS: usize = 8;

/// The smallest tables of a queue, in entries.
#[derive(Debug, Serialize)]
pub(crate) struct Smallest {
    /// Name of the elements that count: worst rank, all ranks, a kind of traffic, or one rank.
    of: String,
    queue: &'static str,
    no_spill: usize,
    spilled_1_percent: usize,
    spilled_5_percent: usize,
    spilled_10_percent: usize,
}

impl Smallest {
    /// Computes the sizes. `with` returns the smallest table with which at most the given share of
    /// the elements (0 to 1) spills.
    fn of(of: &str, queue: &'static str, with: impl Fn(f64) -> usize) -> Self {
        Self {
            of: of.to_owned(),
            queue,
            no_spill: with(0.0),
            spilled_1_percent: with(0.01),
            spilled_5_percent: with(0.05),
            spilled_10_percent: with(0.1),
        }
    }
}

/// Returns the smallest tables for the worst rank of all recordings, for all ranks together, for
/// each kind of traffic, and for each rank, those that need most first.
pub(crate) fn smallest<'a>(
    passed: impl Iterator<Item = &'a Curves>,
    recordings: usize,
) -> Vec<Smallest> {
    let tagged: Vec<_> = passed.filter(|of| of.counted.trace.header.context == "tagged").collect();
    let mut sum = [Curve::default(), Curve::default()];
    for Curves { curves, .. } in &tagged {
        sum[0].merge(&curves[0]);
        sum[1].merge(&curves[1]);
    }
    let both = |[collective, rest]: [u64; 2]| collective + rest;
    let mut all = Vec::new();
    let name = match recordings {
        1 => "worst rank".to_owned(),
        _ => format!("worst rank, {recordings} runs"),
    };
    for (at, queue) in ["prq", "umq"].into_iter().enumerate() {
        let worst =
            |share| tagged.iter().map(|of| of.curves[at].smallest(share, both)).max().unwrap_or(0);
        all.push(Smallest::of(&name, queue, worst));
    }
    let mut add = |of: &str, curves: [&Curve; 2], which: &dyn Fn([u64; 2]) -> u64| {
        for (queue, curve) in ["prq", "umq"].into_iter().zip(curves) {
            all.push(Smallest::of(of, queue, |share| curve.smallest(share, which)));
        }
    };
    let together = [&sum[0], &sum[1]];
    add("all ranks", together, &both);
    add("collective", together, &|[collective, _]| collective);
    add("point-to-point", together, &|[_, rest]| rest);
    let mut ranks: Vec<_> = tagged
        .iter()
        .map(|of| {
            let need = of.curves.each_ref().map(|curve| curve.smallest(0.0, both));
            (need[0].max(need[1]), of)
        })
        .collect();
    ranks.sort_by_key(|(need, _)| std::cmp::Reverse(*need));
    let numbers: Vec<_> = tagged.iter().map(|of| of.counted.trace.header.rank).collect();
    for (_, of) in ranks {
        let header = &of.counted.trace.header;
        let name = name_of(header.rank, header.pid, &numbers);
        add(&name, [&of.curves[0], &of.curves[1]], &both);
    }
    all
}

/// Returns the name of a rank. If several ranks have its number, the process id follows. If the
/// number is unknown, returns the process id alone.
fn name_of(rank: Option<u32>, pid: u32, all: &[Option<u32>]) -> String {
    match rank {
        None => format!("process {pid}"),
        Some(number) if all.iter().filter(|other| **other == rank).count() > 1 => {
            format!("rank {number}, process {pid}")
        }
        Some(number) => format!("rank {number}"),
    }
}

/// Returns the table for the terminal. Of the ranks it has only the [`RANKS`] that need most.
pub(crate) fn table(all: &[Smallest]) -> Table {
    const TOGETHER: usize = 4;
    let header =
        ["smallest table with", "queue", "no spill", "1 % spilled", "5 % spilled", "10 % spilled"];
    let mut sheet = Sheet::new("", header);
    for it in all.iter().take(2 * (TOGETHER + RANKS)) {
        let entries =
            [it.no_spill, it.spilled_1_percent, it.spilled_5_percent, it.spilled_10_percent];
        let mut cells = vec![it.of.clone(), it.queue.to_uppercase()];
        cells.extend(entries.map(|entries| whole(entries as u64)));
        sheet.row(cells);
    }
    sheet.table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_at_most_eight_ranks() {
        let of = |at: usize| {
            Smallest::of(&format!("row {at}"), "prq", |share| at + (100.0 * share) as usize)
        };
        let all: Vec<_> = (0..40).map(of).collect();
        let text = table(&all).to_string();
        assert_eq!((0..40).filter(|at| text.contains(&format!("row {at} "))).count(), 2 * (4 + 8));
        let cells: Vec<_> =
            text.lines().find(|line| line.contains("row 23")).unwrap().split_whitespace().collect();
        assert_eq!(cells, ["row", "23", "PRQ", "23", "24", "28", "33"]);
    }

    #[test]
    fn ranks_of_one_number_get_different_names() {
        let all = [Some(0), Some(1), Some(1), None];
        let names = [(Some(0), 7), (Some(1), 8), (Some(1), 9), (None, 10)];
        let names = names.map(|(rank, pid)| name_of(rank, pid, &all));
        assert_eq!(names, ["rank 0", "rank 1, process 8", "rank 1, process 9", "process 10"]);
    }
}
