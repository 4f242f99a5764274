// SPDX-License-Identifier: BSD-2-Clause
//! What the points of a capacity curve say: how large a table has to be, and how far that can be
//! relied on.

use super::point::{Cost, Modelled, Point};
use super::sizes::{Sizes, UmqSizes};
use super::spread::Spread;
use crate::options::LARGEST;
use crate::results::summary::Peak;
use crate::text::numbers::{entries, share, whole};
use crate::traces::repeats;

/// What the longest PRQ and UMQ were, run by run. Their lengths do not depend on the size of the
/// tables, so that the runs of all sizes tell.
pub(crate) fn spreads(points: &[Point]) -> [Spread; 2] {
    // All points of replays are of the same recordings.
    let replayed = points.iter().any(|point| point.cost.is_some());
    let points = if replayed { &points[..1] } else { points };
    [0, 1].map(|queue| {
        let marks: Vec<_> = points.iter().flat_map(|point| &point.marks[queue]).copied().collect();
        Spread::of(&marks)
    })
}

/// A size of both tables that holds what was seen and as much more as it varied: the next power of
/// two. None where no size would do.
pub(crate) fn recommended(points: &[Point]) -> Option<u64> {
    let [prq, umq] = needs(points);
    if never_held(points, &prq, &umq).is_some() {
        return None;
    }
    let most = |spread: Spread| spread.max + spread.width();
    let size = spreads(points).map(most).into_iter().max()?.next_power_of_two();
    (size <= LARGEST as u64).then_some(size)
}

/// How far what is needed can be relied on, and what to take.
///
/// `failed` has the sizes at which the program failed.
pub(crate) fn reliance(points: &[Point], failed: &[usize]) -> Vec<String> {
    let spreads = spreads(points);
    let replayed = points.iter().any(|point| point.cost.is_some());
    let runs = spreads[0].runs;
    let mut lines = Vec::new();
    let again = if replayed { "another recording" } else { "--repeat 3" };
    let one = runs < 2;
    if !one {
        let [prq, umq] = spreads;
        lines.push(format!("in {} runs: PRQ {prq}, UMQ {umq}", whole(runs as u64)));
        lines.push(repeats::exceeded(runs));
    }
    if let Some(size) = recommended(points).filter(|_| spreads.iter().any(|it| it.max > 0)) {
        lines.push(match one {
            true => format!(
                "recommended: {}, the next power of two; that is of one run, {again} tells how much \
                 it varies",
                entries(size)
            ),
            false => format!(
                "recommended: {}, the next power of two above the most that was seen and its spread",
                entries(size)
            ),
        });
    }
    if recommended(points).is_some_and(|size| failed.iter().any(|&of| of as u64 == size)) {
        lines.push("the program FAILED at that size".to_owned());
    }
    lines
}

/// The longest PRQ and UMQ seen at any size.
pub(crate) fn needs(points: &[Point]) -> [Peak; 2] {
    [0, 1].map(|queue| {
        points.iter().map(|point| point.peaks[queue].clone()).fold(Peak::default(), Peak::highest)
    })
}

/// What the host adds to a message, where that is modelled.
fn added(cost: Option<Cost>) -> String {
    let Some(Cost::Modelled(Modelled { added, worst, rank, .. })) = cost else {
        return String::new();
    };
    let rank = rank.map_or_else(String::new, |rank| format!(", {worst:.1} ns on rank {rank}"));
    format!("; the host adds {added:.1} ns to a message{rank}")
}

/// A point at which a queue spilled though its table was never too small, and that queue.
fn never_held<'a>(
    points: &'a [Point],
    prq: &'a Peak,
    umq: &'a Peak,
) -> Option<(&'a Point, &'static str, &'a Peak)> {
    points.iter().find_map(|point| {
        let of =
            [("PRQ", prq, point.prq, point.spills[0]), ("UMQ", umq, point.umq, point.spills[1])];
        of.into_iter()
            .find(|&(_, peak, size, spills)| size as u64 >= peak.elements && spills > 0)
            .map(|(name, peak, ..)| (point, name, peak))
    })
}

/// Entries that are needed, where no size of a sweep has as many.
pub(crate) fn beyond(points: &[Point]) -> Option<u64> {
    let [prq, umq] = needs(points);
    // Sizes of the UMQ that are not those of the PRQ were chosen as they are.
    let same = points.iter().all(|point| point.prq == point.umq);
    let need = if same { prq.elements.max(umq.elements) } else { prq.elements };
    points.iter().all(|point| (point.prq as u64) < need).then_some(need)
}

/// How to ask for tables that hold all, where a sweep had none of sizes for which the UMQ's were
/// given like this.
pub(crate) fn larger(points: &[Point], given: Option<&UmqSizes>) -> Option<String> {
    let need = beyond(points)?;
    let [prq, umq] = needs(points);
    if never_held(points, &prq, &umq).is_some() {
        return None;
    }
    if need > LARGEST as u64 {
        return Some(format!(
            "no table holds that: {} entries are the most",
            whole(LARGEST as u64)
        ));
    }
    // A list of as many sizes would not fit it.
    if matches!(given, Some(UmqSizes::List(Sizes(sizes))) if sizes.len() > 1) {
        let need = whole(need);
        return Some(format!(
            "no size of this sweep holds that: --prq needs one of {need} or more"
        ));
    }
    let size = need.next_power_of_two().max(recommended(points).unwrap_or(0)).max(128);
    Some(format!("no size of this sweep holds that: --prq 0,64,...,{size} has one that does"))
}

/// What to think of times that were measured: one is that of the whole program on this machine.
pub(crate) fn times(points: &[Point]) -> Option<String> {
    if points.len() < 2 || points.iter().any(|point| point.cost.is_some()) {
        return None;
    }
    if points.iter().all(|point| point.seconds[0] == point.seconds[2]) {
        return Some(
            "times are of one run each, with its noise: --repeat 3 has medians; --trace with \
             --timing has what a NIC would add"
                .to_owned(),
        );
    }
    let slowest = points.iter().map(|point| point.seconds[0]).fold(0.0, f64::max);
    let quickest = points.iter().map(|point| point.seconds[2]).fold(f64::INFINITY, f64::min);
    let told = "times do not differ by more than they do from run to run";
    (slowest <= quickest).then(|| told.to_owned())
}

/// Two lines: how many entries are needed, and what a smaller table costs.
pub(crate) fn reading(points: &[Point]) -> [String; 2] {
    let [prq, umq] = needs(points);
    let rank = |peak: &Peak| peak.rank.map_or_else(String::new, |rank| format!(" of rank {rank}"));
    let (worst, name, less, other) = if umq.elements > prq.elements {
        (&umq, "UMQ", &prq, "PRQ")
    } else {
        (&prq, "PRQ", &umq, "UMQ")
    };
    let mut first = format!(
        "needs {}: the {name}{} held that many at once, the {other}{} at most {}",
        entries(worst.elements),
        rank(worst),
        rank(less),
        whole(less.elements),
    );
    if let Some((point, name, peak)) = never_held(points, &prq, &umq) {
        first = format!(
            "no size would do: at {} elements spill though the {name}{} held at most {} at once \
             (refused, or the pool is used up)",
            point.entries(),
            rank(peak),
            whole(peak.elements),
        );
    }
    // What has no table at any size spills at all of them.
    let has = [|point: &Point| point.prq > 0, |point: &Point| point.umq > 0]
        .map(|table| points.iter().any(table));
    let small_of = |point: &&Point| {
        let spills = point.spills.iter().zip(has).any(|(spills, has)| has && *spills > 0);
        spills && (!has[0] || point.prq > 0) && (!has[1] || point.umq > 0)
    };
    // 1,024 entries is a size hardware has; otherwise the largest that is too small.
    let usual = |point: &Point| {
        let mut sizes = [point.prq, point.umq].into_iter().zip(has);
        sizes.all(|(size, has)| !has || size == 1024)
    };
    let is_power = |point: &Point| {
        [point.prq, point.umq].into_iter().all(|size| size == 0 || size.is_power_of_two())
    };
    let small = points
        .iter()
        .filter(small_of)
        .max_by_key(|point| (usual(point), is_power(point), point.prq, point.umq))
        .or_else(|| points.iter().rfind(|point| !point.fits()));
    let second = match small {
        Some(point) => format!(
            "at {} {} spill (PRQ {}, UMQ {}): {} fit at once, {} are promoted first{}",
            point.entries(),
            point.told_spilled(0),
            point.told_spilled(1),
            point.told_spilled(2),
            share(point.at_once()),
            share(point.promoted),
            added(point.cost),
        ),
        None => format!(
            "did not overflow at any size of this sweep; high-water mark {}",
            whole(worst.elements)
        ),
    };
    [first, second]
}

#[cfg(test)]
mod tests {
    use super::super::point::tests::point;
    use super::*;

    #[test]
    fn the_need_is_the_highest_mark_and_1024_is_the_example() {
        let points: Vec<_> = [0, 64, 1024, 1500, 2048].map(|size| point(size, &[1997])).into();
        let [first, second] = reading(&points);
        assert_eq!(
            first,
            "needs 1,997 entries: the PRQ of rank 1 held that many at once, the UMQ at most 0"
        );
        assert!(
            second.starts_with("at 1,024 entries 48.6 % spill (PRQ 48.6 %, UMQ 0.0 %)"),
            "{second}"
        );
    }

    #[test]
    fn a_need_that_no_size_meets_is_not_told() {
        let mut points: Vec<_> = [64, 4096].map(|size| point(size, &[175])).into();
        points[1].spills = [40, 0];
        // A device without a table of unexpected messages.
        points.iter_mut().for_each(|point| point.umq = 0);
        let [first, _] = reading(&points);
        let expected = "no size would do: at 4,096 + 0 entries elements spill though the PRQ of rank 1 \
                        held at most 175 at once (refused, or the pool is used up)";
        assert_eq!(first, expected);
    }

    #[test]
    fn the_example_is_of_the_queue_that_has_a_table() {
        let points = [0, 64, 1024, 2048].map(|size| {
            let mut point = point(size, &[100]);
            (point.umq, point.spills[1]) = (0, 40);
            point
        });
        let second = &reading(&points)[1];
        assert!(second.starts_with("at 64 + 0 entries "), "{second}");
        // Where it always fits, what spills is said nevertheless.
        let second = &reading(&points[2..])[1];
        assert!(second.starts_with("at 2,048 + 0 entries "), "{second}");
    }

    #[test]
    fn times_of_one_run_or_within_their_spread_are_told() {
        let told = |seconds: [[f64; 3]; 2]| {
            let points: Vec<_> = (seconds.into_iter())
                .map(|seconds| Point { seconds, ..point(64, &[10]) })
                .collect();
            times(&points)
        };
        let one = told([[1.0; 3], [2.0; 3]]).unwrap();
        assert!(one.starts_with("times are of one run each"), "{one}");
        let same = told([[1.0, 1.1, 1.3], [1.2, 1.3, 1.4]]).unwrap();
        assert!(same.starts_with("times do not differ"), "{same}");
        assert_eq!(told([[1.0, 1.1, 1.3], [1.4, 1.5, 1.6]]), None);
    }

    #[test]
    fn sizes_that_hold_all_are_told_where_there_were_none() {
        let told = |posts| larger(&[64, 1024].map(|size| point(size, &[posts])), None);
        assert_eq!(told(1024), None);
        assert!(told(1025).unwrap().ends_with("--prq 0,64,...,2048 has one that does"));
        let most = told(65_537).unwrap();
        assert_eq!(most, "no table holds that: 65,536 entries are the most");
        let list = UmqSizes::List(Sizes(vec![5, 6]));
        let told = larger(&[64, 1024].map(|size| point(size, &[1025])), Some(&list)).unwrap();
        assert!(told.ends_with("--prq needs one of 1,025 or more"), "{told}");
        // The UMQ was not to be held.
        let mut points = [point(64, &[10])];
        points[0].peaks[1].elements = 100;
        assert_eq!(beyond(&points), Some(100));
        points[0].umq = 8;
        assert_eq!(beyond(&points), None);
    }

    #[test]
    fn what_the_host_adds_is_said_where_it_is_modelled() {
        let mut points: Vec<_> = [0, 1024].map(|size| point(size, &[1500])).into();
        assert!(!reading(&points)[1].contains("the host adds"));
        let modelled = Modelled {
            matching: 300.0,
            added: 123.45,
            worst: 678.9,
            rank: Some(1),
            ..Modelled::default()
        };
        points[1].cost = Some(Cost::Modelled(modelled));
        let second = &reading(&points)[1];
        assert!(second.ends_with("; the host adds 123.5 ns to a message, 678.9 ns on rank 1"));
    }

    #[test]
    fn without_1024_the_largest_that_is_too_small_is_the_example() {
        let points: Vec<_> = [0, 64, 128, 4096].map(|size| point(size, &[1000])).into();
        assert!(reading(&points)[1].starts_with("at 128 entries"));
        let points: Vec<_> = [0, 4096].map(|size| point(size, &[1000])).into();
        assert!(reading(&points)[1].starts_with("at 0 entries 100.0 % spill"));
        let points: Vec<_> = [2048, 4096].map(|size| point(size, &[1000])).into();
        assert_eq!(
            reading(&points)[1],
            "did not overflow at any size of this sweep; high-water mark 1,000"
        );
    }
}
