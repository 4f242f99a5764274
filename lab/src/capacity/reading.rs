// SPDX-License-Identifier: BSD-2-Clause
//! The points of a capacity curve and what they say in two lines.

use std::fmt;

use matching::timing::ModelledTime;
use nic::latency::{Latencies, Latency};
use nic::report::ContextCounters;
use serde::Serialize;

use super::sizes::{Sizes, UmqSizes};
use crate::options::LARGEST;
use crate::results::summary::{Peak, Summary, spilled};
use crate::text::numbers::{entries, share, whole};
use crate::traces::files::Counted;
use crate::traces::repeats;

/// What was measured at one table size: the medians of its runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Entries of the table of posted receives.
    pub(crate) prq: usize,
    /// Entries of the table of unexpected messages.
    pub(crate) umq: usize,
    /// Elements that went to the host and entered a table later, per cent.
    pub(crate) promoted: f64,
    /// Elements that did not fit, per cent: both queues together, PRQ, UMQ.
    pub(crate) spilled: [f64; 3],
    /// The most of any run.
    pub(crate) spilled_most: [f64; 3],
    /// Elements that did not fit, counted in the run with most of them: PRQ, UMQ.
    pub(crate) spills: [u64; 2],
    /// Longest PRQ and UMQ of any rank.
    pub(crate) peaks: [Peak; 2],
    /// The same of each run.
    pub(crate) marks: [Vec<u64>; 2],
    /// Seconds of the run: shortest, median, longest.
    pub(crate) seconds: [f64; 3],
    /// What a message costs, if nothing was run.
    pub(crate) cost: Option<Cost>,
}

/// What matching costs a message in a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cost {
    /// Nanoseconds of the timing model.
    Modelled(Modelled),
    /// Entries that a linear search on the host compares.
    Compared(f64),
}

impl Cost {
    /// What is drawn, and its unit.
    pub(crate) fn title(self) -> (&'static str, &'static str) {
        match self {
            Self::Modelled(_) => ("Modelled time of matching", "ns a message"),
            Self::Compared(_) => ("Entries compared on the host", "entries a message"),
        }
    }

    pub(crate) fn value(self) -> f64 {
        match self {
            Self::Modelled(modelled) => modelled.matching,
            Self::Compared(entries) => entries,
        }
    }
}

/// Nanoseconds a message, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Modelled {
    /// Of all searches, spills and promotions.
    pub(crate) matching: f64,
    /// Of all but the searches of tables: what overflow adds.
    pub(crate) added: f64,
    /// The same of the rank where it is most.
    pub(crate) worst: f64,
    pub(crate) rank: Option<u32>,
    /// Latency of arrivals and of posts, waiting counted: mean, median and what 99 % do not
    /// exceed.
    pub(crate) arrivals: [Option<f64>; 3],
    pub(crate) posts: [Option<f64>; 3],
}

impl Modelled {
    /// What was charged for the tagged messages of traces and their sum.
    pub(crate) fn of(sum: &Summary, counted: &[Counted]) -> Self {
        let ns = |of: &ContextCounters, ps: fn(&ModelledTime) -> u64| {
            let ps = ps(&of.prq.modelled).saturating_add(ps(&of.umq.modelled));
            ps as f64 * 1e-3 / of.arrivals.max(1) as f64
        };
        let host_ns = |of: &ContextCounters| ns(of, ModelledTime::overflow_ps);
        let table_ns = ns(&sum.tagged, |time| time.table_ps);
        let matching = table_ns + host_ns(&sum.tagged);
        let (worst, rank) = counted
            .iter()
            .filter(|of| of.trace.header.context == "tagged")
            .map(|of| (host_ns(&of.counters), of.trace.header.rank))
            .fold((0.0, None), |most, of| if of.0 > most.0 { of } else { most });
        let latency = |of: &Latencies| [of.mean_ns(), of.quantile_ns(0.5), of.quantile_ns(0.99)];
        let Latency { arrivals, posts, .. } = &sum.tagged.latency;
        let added = host_ns(&sum.tagged);
        let (arrivals, posts) = (latency(arrivals), latency(posts));
        Self { matching, added, worst, rank, arrivals, posts }
    }
}

/// The middle one of some values, or halfway between the middle ones.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    f64::midpoint(values[last / 2], values[last.div_ceil(2)])
}

impl Point {
    /// The medians of the runs at one size; peaks are the highest of any run,
    /// since a table must hold them all.
    ///
    /// # Panics
    /// Without runs.
    pub(crate) fn of(prq: usize, umq: usize, runs: &[Summary]) -> Self {
        let peak = |of: fn(&Summary) -> &Peak| {
            runs.iter().map(of).cloned().fold(Peak::default(), Peak::highest)
        };
        let seconds = || runs.iter().map(|run| run.seconds);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        Self {
            prq,
            umq,
            promoted: median(runs.iter().map(Summary::promoted)),
            spilled: [
                median(runs.iter().map(Summary::spilled)),
                median(runs.iter().map(|run| spilled(&run.tagged.prq))),
                median(runs.iter().map(|run| spilled(&run.tagged.umq))),
            ],
            spilled_most: [
                most(&mut runs.iter().map(Summary::spilled)),
                most(&mut runs.iter().map(|run| spilled(&run.tagged.prq))),
                most(&mut runs.iter().map(|run| spilled(&run.tagged.umq))),
            ],
            spills: [
                runs.iter().map(|run| run.tagged.prq.spills).max().unwrap_or(0),
                runs.iter().map(|run| run.tagged.umq.spills).max().unwrap_or(0),
            ],
            peaks: [peak(|run| &run.prq_peak), peak(|run| &run.umq_peak)],
            marks: [
                runs.iter().map(|run| run.prq_peak.elements).collect(),
                runs.iter().map(|run| run.umq_peak.elements).collect(),
            ],
            seconds: [
                seconds().fold(f64::INFINITY, f64::min),
                median(seconds()),
                seconds().fold(0.0, f64::max),
            ],
            cost: None,
        }
    }

    /// What spilled of a queue, or of both: the median, and the most where that is more.
    pub(crate) fn told_spilled(&self, of: usize) -> String {
        let (median, most) = (share(self.spilled[of]), share(self.spilled_most[of]));
        if median == most { median } else { format!("{median}, at most {most}") }
    }

    /// Elements that fit at once, per cent.
    pub(crate) fn at_once(&self) -> f64 {
        100.0 - self.spilled[0]
    }

    /// Whether nothing spilled here.
    fn fits(&self) -> bool {
        self.spills == [0, 0]
    }

    /// The size as entries.
    fn entries(&self) -> String {
        if self.prq == self.umq {
            entries(self.prq as u64)
        } else {
            format!("{} entries", self.size())
        }
    }

    /// The size as one number, or both when they differ.
    pub(crate) fn size(&self) -> String {
        if self.prq == self.umq {
            whole(self.prq as u64)
        } else {
            format!("{} + {}", whole(self.prq as u64), whole(self.umq as u64))
        }
    }
}

/// How much a number varies from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) min: u64,
    pub(crate) median: f64,
    pub(crate) max: u64,
    /// Of so many runs.
    pub(crate) runs: usize,
}

impl Spread {
    pub(crate) fn of(values: &[u64]) -> Self {
        let (Some(&min), Some(&max)) = (values.iter().min(), values.iter().max()) else {
            return Self::default();
        };
        let median = median(values.iter().map(|&value| value as f64));
        Self { min, median, max, runs: values.len() }
    }

    fn width(&self) -> u64 {
        self.max - self.min
    }
}

impl fmt::Display for Spread {
    /// `18`, or `14 to 18 (median 14)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width() {
            0 => f.write_str(&whole(self.max)),
            _ => {
                let (min, max) = (whole(self.min), whole(self.max));
                write!(f, "{min} to {max} (median {})", whole(self.median.round() as u64))
            }
        }
    }
}

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
    use super::*;
    use crate::results::reports::tests::sample;

    fn point(entries: u64, posts: &[u64]) -> Point {
        let runs: Vec<_> = posts
            .iter()
            .map(|&posts| Summary::of(&[sample(0, entries, 3), sample(1, entries, posts)]).unwrap())
            .collect();
        Point::of(entries as usize, entries as usize, &runs)
    }

    #[test]
    fn medians_are_taken_and_peaks_kept() {
        let point = point(10, &[20, 12, 100]);
        assert_eq!((point.spills, point.spilled[0] < point.spilled_most[0]), ([90, 0], true));
        assert_eq!(point.peaks[0], Peak { elements: 100, rank: Some(1) });
        assert_eq!(point.seconds, [2.5, 2.5, 2.5]);
    }

    #[test]
    fn of_two_runs_the_median_is_between_them() {
        let point = point(10, &[20, 40]);
        assert_eq!(point.spills, [30, 0]);
        assert!((point.spilled[1] - 100.0 * (10.0 / 23.0 + 30.0 / 43.0) / 2.0).abs() < 1e-9);
    }

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
