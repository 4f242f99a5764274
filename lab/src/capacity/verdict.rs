// SPDX-License-Identifier: BSD-2-Clause
//! Draws conclusions from the points of a capacity curve: the size that a table or a pool needs,
//! and how reliable this size is.

use super::{Cost, Knob, Modelled, Need, Point, Sizes, UmqSizes, need};
use crate::options::LARGEST;
use crate::results::Peak;
use crate::stats::Variation;
use crate::text::{count, entries, share, whole};
use crate::traces::repeats;

/// The points of a sweep.
#[derive(Debug)]
pub(crate) struct Swept {
    pub(crate) points: Vec<Point>,
    /// The size that varies.
    pub(crate) knob: Knob,
    /// The need of each recording. Empty for runs of a program, whose needs follow from their
    /// reports.
    pub(crate) needs: Vec<Need>,
    /// Entries of the pool from which the tables take their entries; `None` without such a pool.
    pub(crate) pool_entries: Option<u64>,
    /// A note that ranks shared processors, if they did.
    pub(crate) scheduling_note: Option<String>,
    /// A note on the host engine whose costs were modelled, if they were.
    pub(crate) engine_note: Option<String>,
    /// True if operations are missing, so that every need is a lower bound.
    pub(crate) is_lower_bound: bool,
}

impl Swept {
    /// Makes a sweep without the needs of recordings.
    pub(crate) fn of_runs(points: Vec<Point>, knob: Knob, scheduling_note: Option<String>) -> Self {
        let (needs, pool_entries, engine_note, is_lower_bound) = (Vec::new(), None, None, false);
        Self { points, knob, needs, pool_entries, scheduling_note, engine_note, is_lower_bound }
    }

    fn replayed(&self) -> bool {
        self.points.iter().any(|point| point.cost.is_some())
    }

    fn has_umq(&self) -> bool {
        self.points.iter().any(|point| point.umq > 0)
    }

    /// Returns the size that each recording needs, or `None` if no size is enough for one of them.
    /// Empty for runs of a program.
    fn sizes(&self) -> Option<Vec<u64>> {
        self.needs.iter().map(|need| need.size(self.knob)).collect()
    }

    /// Returns the size that the sweep finds: the smallest size without a spill, or the largest
    /// high-water mark of runs. Fails with the reason if elements spill at every size.
    fn size(&self) -> Result<u64, String> {
        if let (Knob::Tables, Some(pool)) = (self.knob, self.pool_entries)
            && let Some(need) =
                self.needs.iter().map(|need| need.pool.most).find(|need| *need > pool)
        {
            return Err(format!("the pool has {}, and {} are needed", entries(pool), whole(need)));
        }
        match self.sizes() {
            Some(sizes) => sizes.into_iter().max().map_or_else(|| self.size_of_runs(), Ok),
            None => {
                let why = self.needs.iter().find_map(Need::why_never).unwrap_or_default();
                Err(format!("elements spill at every size ({why})"))
            }
        }
    }

    /// Finds the size from the reports of runs.
    fn size_of_runs(&self) -> Result<u64, String> {
        let [prq, umq] = self.peaks();
        let longest = if self.has_umq() { prq.elements.max(umq.elements) } else { prq.elements };
        if self.knob == Knob::Pool {
            let smallest =
                self.points.iter().rposition(|point| !point.fits()).map_or(0, |at| at + 1);
            return match self.points.get(smallest) {
                Some(point) => Ok(point.prq as u64),
                None => Err("elements spill at every size of this sweep".to_owned()),
            };
        }
        // Elements that spill although both tables are large enough for the longest queues show
        // that no size is enough. Smaller tables show nothing: with `sticky`, one table that
        // overflows makes the other table overflow, too.
        let holds = |point: &&Point| {
            point.prq as u64 >= prq.elements
                && (!self.has_umq() || point.umq as u64 >= umq.elements)
                && (point.spills[0] > 0 || self.has_umq() && point.spills[1] > 0)
        };
        match self.points.iter().find(holds) {
            None => Ok(longest),
            Some(point) => {
                let [prq, umq] = [&prq, &umq].map(peak_text);
                let at = point.entries();
                Err(format!(
                    "at {at} elements spill though the PRQ{prq} and the UMQ{umq} at the same time \
                     (refused, or the pool is used up)"
                ))
            }
        }
    }

    /// Returns the longest PRQ and UMQ at any size.
    pub(crate) fn peaks(&self) -> [Peak; 2] {
        [0, 1].map(|queue| {
            let peaks = self.points.iter().map(|point| point.peaks[queue].clone());
            peaks.fold(Peak::default(), Peak::highest)
        })
    }

    /// Returns the number of entries that are needed, or `None` if no size is enough.
    pub(crate) fn needs(&self) -> Option<u64> {
        self.size().ok()
    }

    /// Returns the spreads of the longest PRQ and UMQ from run to run. Lengths do not depend on the
    /// size of the tables, so the runs of all sizes count.
    pub(crate) fn spreads(&self) -> [Variation; 2] {
        // All points of replays are from the same recordings.
        let points = if self.replayed() { &self.points[..1] } else { &self.points };
        [0, 1].map(|queue| {
            let marks: Vec<_> =
                points.iter().flat_map(|point| &point.marks[queue]).copied().collect();
            Variation::of(&marks)
        })
    }

    /// Returns the smallest power of two that holds the largest need plus its spread. For a pool,
    /// runs of a program show no spread. Returns `None` if no size is enough, or if the result
    /// exceeds [`LARGEST`].
    pub(crate) fn recommended(&self) -> Option<u64> {
        let need = self.needs()?;
        let most = |spread: Variation| spread.max + spread.width();
        let size = match self.sizes()? {
            sizes if !sizes.is_empty() => most(Variation::of(&sizes)),
            _ if self.knob == Knob::Pool => need,
            _ => {
                let [prq, umq] = self.spreads().map(most);
                if self.has_umq() { prq.max(umq) } else { prq }
            }
        };
        Some(size.next_power_of_two()).filter(|size| *size <= LARGEST as u64)
    }

    /// Returns sentences on the spread of the need, and the recommended size.
    ///
    /// `failed` contains the sizes at which the program failed.
    pub(crate) fn reliance(&self, failed: &[usize]) -> Vec<String> {
        let spreads = self.spreads();
        let runs = spreads[0].runs;
        let mut lines = Vec::new();
        let again = if self.replayed() { "another recording" } else { "--repeat 3" };
        let one = runs < 2;
        if !one {
            let [prq, umq] = spreads;
            lines.push(format!("in {} runs: PRQ {prq}, UMQ {umq}", whole(runs as u64)));
            lines.push(repeats::exceeded(runs));
        }
        let recommended = self.recommended();
        let what = if self.knob == Knob::Pool { "a pool of" } else { "tables of" };
        if let Some(size) = recommended.filter(|_| spreads.iter().any(|it| it.max > 0)) {
            lines.push(match one {
                true => format!(
                    "recommended: {what} {}, the next power of two; one run was measured, and {again} \
                     shows how much the need varies",
                    entries(size)
                ),
                false => format!(
                    "recommended: {what} {}, the next power of two above the most that was seen and its \
                     spread",
                    entries(size)
                ),
            });
        }
        if recommended.is_some_and(|size| failed.iter().any(|&of| of as u64 == size)) {
            lines.push("the program FAILED at that size".to_owned());
        }
        lines
    }

    /// Returns the needs that no size of the sweep holds: of the PRQ, or of the pool, and of the
    /// UMQ. Each is `None` if a size holds it, unless no size holds both.
    fn beyond(&self) -> [Option<u64>; 2] {
        let [prq, umq] = self.peaks().map(|peak| peak.elements);
        let needs = match self.knob {
            Knob::Pool => [self.needs(), None],
            Knob::Tables => [Some(prq), Some(umq).filter(|_| self.has_umq())],
        };
        let holds = |point: &Point, queue: usize| {
            let size = [point.prq, point.umq][queue] as u64;
            needs[queue].is_none_or(|need| size >= need)
        };
        if self.points.iter().any(|point| holds(point, 0) && holds(point, 1)) {
            return [None, None];
        }
        let held = [0, 1].map(|queue| self.points.iter().any(|point| holds(point, queue)));
        [0, 1].map(|queue| needs[queue].filter(|_| !held[queue] || held == [true, true]))
    }

    /// Returns a hint on larger sizes, if a size can hold all elements and the sweep has no such
    /// size. `given` contains the sizes of the UMQ from the command line.
    pub(crate) fn larger(&self, given: Option<&UmqSizes>) -> Option<String> {
        let beyond = self.beyond();
        let need = beyond.into_iter().flatten().max()?;
        self.needs()?;
        let (option, most) = match self.knob {
            Knob::Tables => ("--prq", "no table holds that"),
            Knob::Pool => ("--pool", "no pool holds that"),
        };
        if need > LARGEST as u64 {
            return Some(format!("{most}: {} entries are the most", whole(LARGEST as u64)));
        }
        // A longer list of `--prq` would not fit a list of `--umq`, and would not enlarge the UMQ.
        if let Some(UmqSizes::List(Sizes(sizes))) = given
            && (sizes.len() > 1 || beyond[1].is_some())
        {
            let needs = ["--prq", "--umq"].into_iter().zip(beyond);
            let needs: Vec<_> = needs
                .filter_map(|(option, need)| Some(format!("{option} {}", whole(need?))))
                .collect();
            return Some(format!(
                "no size of this sweep holds all elements: give {} or more",
                needs.join(" and ")
            ));
        }
        let size = need.next_power_of_two().max(self.recommended().unwrap_or(0)).max(128);
        let first = if self.knob == Knob::Tables { "0,64" } else { "64" };
        Some(format!(
            "no size of this sweep holds all elements: {option} {first},...,{size} has a size that \
             does"
        ))
    }

    /// Returns sentences on the need, and on the cost of a smaller size.
    pub(crate) fn reading(&self) -> Vec<String> {
        let mut lines = vec![match self.size() {
            Err(why) => format!("no size would do: {why}"),
            Ok(size) => self.need_sentence(size),
        }];
        if self.knob == Knob::Tables {
            lines.extend(need::nic_sentence(&self.needs, self.is_lower_bound));
        }
        lines.push(self.smaller_size_sentence());
        lines.extend(self.engine_note.iter().chain(&self.scheduling_note).cloned());
        lines
    }

    fn need_sentence(&self, size: u64) -> String {
        let at_least = if self.is_lower_bound { "at least " } else { "" };
        if self.knob == Knob::Pool {
            let most = self.needs.iter().map(Need::nic).max_by_key(|nic| nic.peak_total.most);
            return match most {
                Some(nic) => {
                    let (name, parts) = (nic.name(), nic.parts());
                    // Several engines, reserved shares or preemption leave a part of a pool unused.
                    let unused = match size > nic.peak_total.most {
                        true => ", and this device leaves part of its pool unused",
                        false => "",
                    };
                    let least = self.needs.iter().filter_map(|need| need.sizes(self.knob));
                    let least = least.map(|sizes| sizes.least).min().unwrap_or(size);
                    let range =
                        if least < size { format!("{} to ", whole(least)) } else { String::new() };
                    let needs = format!("A NIC needs a pool of {at_least}{range}{}", entries(size));
                    format!("{needs}: {name} held {parts} at the same time{unused}")
                }
                None => {
                    format!("the smallest pool of this sweep without a spill has {}", entries(size))
                }
            };
        }
        let [prq, umq] = self.peaks();
        if !self.has_umq() {
            return format!(
                "A rank needs a table of {at_least}{}: the PRQ{} at the same time; unexpected messages \
                 have no table",
                entries(size),
                peak_text(&prq)
            );
        }
        let (worst, name, less, other) = if umq.elements > prq.elements {
            (&umq, "UMQ", &prq, "PRQ")
        } else {
            (&prq, "PRQ", &umq, "UMQ")
        };
        format!(
            "A rank needs tables of {at_least}{}: the {name}{} held that many at the same time, the \
             {other}{} at most {}",
            entries(size),
            of_rank(worst),
            of_rank(less),
            whole(less.elements),
        )
    }

    fn smaller_size_sentence(&self) -> String {
        let points = &self.points;
        // A queue without a table spills at every size.
        let has = [|point: &Point| point.prq > 0, |point: &Point| point.umq > 0]
            .map(|table| points.iter().any(table));
        let small_of = |point: &&Point| {
            let mut spills = point.spills.iter().zip(has);
            let spills =
                point.internal_spills > 0 || spills.any(|(spills, has)| has && *spills > 0);
            spills && (!has[0] || point.prq > 0) && (!has[1] || point.umq > 0)
        };
        // The example is 1,024 entries, a common size of hardware. If it is not among the sizes
        // that are too small, the largest power of two among them is the example, or else the
        // largest size.
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
        match small {
            Some(point) => format!(
                "at {} {} spill (PRQ {}, UMQ {}{}): {} fit immediately, {} are promoted first{}",
                point.entries(),
                point.spilled_text(0),
                point.spilled_text(1),
                point.spilled_text(2),
                match point.internal_spills {
                    0 => String::new(),
                    own => format!(", and {} of the MPI itself", count(own, "element")),
                },
                share(point.immediate()),
                share(point.promoted),
                added(point.cost),
            ),
            None => {
                let [prq, umq] = self.peaks();
                format!(
                    "did not overflow at any size of this sweep; high-water mark {}",
                    whole(prq.elements.max(umq.elements))
                )
            }
        }
    }
}

fn of_rank(peak: &Peak) -> String {
    peak.rank.map_or_else(String::new, |rank| format!(" of rank {rank}"))
}

/// Returns text such as ` of rank 3 held at most 175`.
fn peak_text(peak: &Peak) -> String {
    format!("{} held at most {}", of_rank(peak), whole(peak.elements))
}

/// Returns text on the time that the host adds to a message; empty if time is not modelled.
fn added(cost: Option<Cost>) -> String {
    let Some(Cost::Modelled(Modelled { added, worst, rank, .. })) = cost else {
        return String::new();
    };
    let rank = rank.map_or_else(String::new, |rank| format!(", {worst:.1} ns on rank {rank}"));
    format!("; the host adds {added:.1} ns to a message{rank}")
}

/// Returns a note on measured times of the program, if they are of one run each, or do not differ
/// by more than their spread. Returns `None` for replays and for fewer than two points.
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
    let note = "times do not differ by more than they do from run to run";
    (slowest <= quickest).then(|| note.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::point::tests::point;
    use super::*;

    fn swept(points: impl Into<Vec<Point>>) -> Swept {
        Swept::of_runs(points.into(), Knob::Tables, None)
    }

    fn reading(points: impl Into<Vec<Point>>) -> [String; 2] {
        swept(points).reading().try_into().unwrap()
    }

    #[test]
    fn the_reliance_has_the_spread_and_the_recommended_size() {
        let one = swept([point(2048, &[1000])]);
        assert_eq!(
            one.reliance(&[64]),
            [
                "recommended: tables of 1,024 entries, the next power of two; one run was measured, and \
                 --repeat 3 shows how much the need varies"
            ]
        );
        let mut lines = one.reliance(&[1024]);
        assert_eq!(lines.pop().unwrap(), "the program FAILED at that size");
        let several = swept([0, 2048].map(|size| point(size, &[1000, 1020]))).reliance(&[]);
        assert!(
            several[0].starts_with("in 4 runs: PRQ 1,000 to 1,020 (median 1,010), UMQ "),
            "{several:?}"
        );
        assert!(several[1].ends_with("of 4 with probability at most 1/5"), "{several:?}");
        assert!(
            several[2]
                .starts_with("recommended: tables of 2,048 entries, the next power of two above")
        );
        let empty = Point { marks: [vec![0], vec![0]], ..point(64, &[0]) };
        assert_eq!(swept([empty]).reliance(&[]), Vec::<String>::new());
    }

    #[test]
    fn the_smallest_pool_of_runs_is_above_all_that_spill() {
        let pool = |spills: &[u64]| {
            let points = (1..).zip(spills).map(|(size, &internal_spills)| Point {
                internal_spills,
                ..point(16 * size, &[1])
            });
            Swept { knob: Knob::Pool, ..swept(points.collect::<Vec<_>>()) }.size()
        };
        assert_eq!(pool(&[0, 0]), Ok(16));
        assert_eq!(pool(&[5, 0, 3, 0, 0]), Ok(64));
        assert!(pool(&[0, 5]).unwrap_err().starts_with("elements spill at every size"));
    }

    #[test]
    fn tables_need_no_more_than_their_pool() {
        let of = |pool_entries, need: u64| {
            let need = Need { tables: [7, 9], pool: need.into(), ..Need::default() };
            let swept = swept([0, 64].map(|size| point(size, &[1])));
            Swept { needs: vec![need], pool_entries, ..swept }.size()
        };
        assert_eq!((of(None, 30), of(Some(30), 30)), (Ok(9), Ok(9)));
        let error = of(Some(30), 31).unwrap_err();
        assert_eq!(error, "the pool has 30 entries, and 31 are needed");
    }

    #[test]
    fn reasons_of_elements_that_always_spill_are_named() {
        let mut need = Need { tables: [7, 9], ..Need::default() };
        assert_eq!((need.why_never(), need.size(Knob::Tables)), (None, Some(9)));
        need.never.disabled = 3;
        assert_eq!(need.size(Knob::Tables), Some(9));
        need.never.short = 16_004;
        assert_eq!(
            (need.why_never().unwrap().as_str(), need.size(Knob::Tables)),
            ("disabled 3, short 16,004", None)
        );
    }

    #[test]
    fn the_need_is_the_highest_mark_and_1024_is_the_example() {
        let points: Vec<_> = [0, 64, 1024, 1500, 2048].map(|size| point(size, &[1997])).into();
        let [first, second] = reading(points);
        assert_eq!(
            first,
            "A rank needs tables of 1,997 entries: the PRQ of rank 1 held that many at the same time, the UMQ at most 0"
        );
        assert!(
            second.starts_with("at 1,024 entries 48.6 % spill (PRQ 48.6 %, UMQ 0.0 %)"),
            "{second}"
        );
    }

    #[test]
    fn no_need_is_printed_if_no_size_meets_it() {
        let mut points: Vec<_> = [64, 4096].map(|size| point(size, &[175])).into();
        points[1].spills = [40, 0];
        // A device without a table of unexpected messages.
        points.iter_mut().for_each(|point| point.umq = 0);
        let [first, _] = reading(points);
        let expected = "no size would do: at 4,096 + 0 entries elements spill though the PRQ of rank 1 \
                        held at most 175 and the UMQ held at most 0 at the same time (refused, or the pool is \
                        used up)";
        assert_eq!(first, expected);
    }

    #[test]
    fn a_queue_that_leaves_its_table_with_the_other_one_needs_no_more() {
        let mut points = [16, 256].map(|size| point(size, &[8]));
        points.iter_mut().for_each(|point| point.peaks[1].elements = 190);
        // The UMQ overflowed, and the PRQ followed it (`sticky`).
        points[0].spills = [5, 300];
        let [first, _] = reading(points);
        assert_eq!(
            first,
            "A rank needs tables of 190 entries: the UMQ held that many at the same time, the PRQ of rank 1 at most 8"
        );
    }

    #[test]
    fn the_example_is_of_the_queue_that_has_a_table() {
        let points = [0, 64, 1024, 2048].map(|size| {
            let mut point = point(size, &[100]);
            (point.umq, point.spills[1]) = (0, 40);
            point
        });
        let second = &reading(points.clone())[1];
        assert!(second.starts_with("at 64 + 0 entries "), "{second}");
        // If a queue without a table spills and the other fits, the spills are still printed.
        let second = &reading(&points[2..])[1];
        assert!(second.starts_with("at 2,048 + 0 entries "), "{second}");
    }

    #[test]
    fn the_example_has_both_tables_if_any_size_has() {
        let example = |sizes: [(usize, usize); 2]| {
            let points = sizes.map(|(prq, umq)| Point { prq, umq, ..point(64, &[2000]) });
            reading(points)[1].split(" spill").next().unwrap().to_owned()
        };
        for without in [(1024, 0), (0, 1024)] {
            assert_eq!(example([without, (65, 65)]), "at 65 entries 96.7 %");
        }
    }

    #[test]
    fn the_recommended_size_holds_the_most_and_the_spread() {
        let of = |posts: &[u64]| swept([0, 2048].map(|size| point(size, posts))).recommended();
        assert_eq!(of(&[1000, 1020]), Some(2048), "1,020 and a spread of 20");
        assert_eq!(of(&[1000, 1012]), Some(1024), "1,012 and a spread of 12");
        assert_eq!(of(&[1024]), Some(1024));
        assert_eq!(of(&[65_537]), None, "larger than any table");
    }

    #[test]
    fn times_of_one_run_or_within_their_spread_get_a_note() {
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
        let touching = told([[1.0, 1.1, 1.4], [1.4, 1.5, 1.6]]).unwrap();
        assert_eq!(touching, same);
        // One of several runs has no spread, and a replay has no times.
        assert_eq!(told([[1.0; 3], [1.0, 1.3, 1.4]]), Some(same));
        assert_eq!((times(&[]), times(&[point(64, &[10])])), (None, None));
        let replayed = Point { cost: Some(Cost::Compared(1.0)), ..point(64, &[10]) };
        assert_eq!(times(&[point(0, &[10]), replayed]), None);
        assert!(times(&[point(0, &[10]), point(64, &[10])]).is_some());
    }

    #[test]
    fn larger_sizes_are_suggested_if_none_holds_all() {
        let told = |posts| swept([64, 1024].map(|size| point(size, &[posts]))).larger(None);
        assert_eq!(told(1024), None);
        assert!(told(1025).unwrap().ends_with("--prq 0,64,...,2048 has a size that does"));
        let most = told(65_537).unwrap();
        assert_eq!(most, "no table holds that: 65,536 entries are the most");
        let list = UmqSizes::List(Sizes(vec![5, 6]));
        let told = swept([64, 1024].map(|size| point(size, &[1025]))).larger(Some(&list)).unwrap();
        assert!(told.ends_with(": give --prq 1,025 or more"), "{told}");
    }

    #[test]
    fn a_table_of_unexpected_messages_that_is_too_small_is_named() {
        let told = |sizes: &[(usize, usize)], umq: &[usize]| {
            let points = sizes.iter().map(|&(prq, umq)| {
                let mut point = Point { umq, ..point(prq as u64, &[151]) };
                point.peaks[1].elements = 152;
                point
            });
            let points: Vec<_> = points.collect();
            let larger = swept(points).larger(Some(&UmqSizes::List(Sizes(umq.to_vec()))));
            larger.map_or_else(String::new, |text| text.split_once(": ").unwrap().1.to_owned())
        };
        assert_eq!(told(&[(512, 64)], &[64]), "give --umq 152 or more");
        assert_eq!(told(&[(64, 32), (64, 64)], &[32, 64]), "give --prq 151 and --umq 152 or more");
        assert_eq!(told(&[(64, 152)], &[152]), "--prq 0,64,...,256 has a size that does");
        assert_eq!(
            told(&[(64, 152), (151, 64)], &[152, 64]),
            "give --prq 151 and --umq 152 or more"
        );
        assert_eq!(told(&[(64, 64), (151, 152)], &[64, 152]), "");
        // A device without a table of unexpected messages.
        assert_eq!(told(&[(151, 0)], &[0]), "");
    }

    #[test]
    fn the_cost_of_the_host_is_printed_if_it_is_modelled() {
        let mut points: Vec<_> = [0, 1024].map(|size| point(size, &[1500])).into();
        assert!(!reading(points.clone())[1].contains("the host adds"));
        let modelled = Modelled {
            matching: 300.0,
            added: 123.45,
            worst: 678.9,
            rank: Some(1),
            ..Modelled::default()
        };
        points[1].cost = Some(Cost::Modelled(modelled));
        let second = &reading(points.clone())[1];
        assert!(second.ends_with("; the host adds 123.5 ns to a message, 678.9 ns on rank 1"));
    }

    #[test]
    fn without_1024_the_largest_that_is_too_small_is_the_example() {
        let points: Vec<_> = [0, 64, 128, 4096].map(|size| point(size, &[1000])).into();
        assert!(reading(points.clone())[1].starts_with("at 128 entries"));
        let points: Vec<_> = [0, 4096].map(|size| point(size, &[1000])).into();
        assert!(reading(points.clone())[1].starts_with("at 0 entries 100.0 % spill"));
        let points: Vec<_> = [2048, 4096].map(|size| point(size, &[1000])).into();
        assert_eq!(
            reading(points.clone())[1],
            "did not overflow at any size of this sweep; high-water mark 1,000"
        );
    }
}
