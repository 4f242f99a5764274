// SPDX-License-Identifier: BSD-2-Clause
//! The range of a sum of counts if the order of their changes is uncertain.
//!
//! A *unit* is a sequence of operations whose order is exact, such as those of a rank. Each
//! operation was made between an earliest and a latest time, and both never decrease within a unit.
//! A count of the unit may have a value from the earliest time of the operation that set it to the
//! latest time of the next operation that changes it:
//!
//! ```text
//! operation               a              b
//! earliest ... latest     [----]     [------]
//! value before a     ----------]
//! value of a              [-----------------]
//! value of b                         [--------------
//! ```
//! At each time, the largest of these values is the most that the unit may hold, and the smallest
//! is the least. The order of two units is independent, so the most of a sum is the sum of the
//! most.
//!
//! Each count keeps its values in two queues, as for the extremes of a sliding window. Memory grows
//! with the number of operations whose times overlap, not with the length of the traces.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::stats::Range;

/// Number of counts of a unit.
pub(super) const COUNTS: usize = 5;

/// The counts of a unit.
pub(super) type Counts = [u64; COUNTS];

/// Least and most of each count of a unit at one time.
pub(super) type Bounds = [Range<u64>; COUNTS];

/// A change of a unit's counts. Of events of equal times, values enter before others leave, because
/// both ends of an interval belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time: u64,
    leaves: bool,
    /// Number of the operation. Values of operations with smaller numbers leave.
    number: u64,
    unit: usize,
    counts: Counts,
}

/// The values that a count may have at one time, each with the number of its operation.
#[derive(Clone, Debug, Default)]
struct Window {
    /// Decreasing values; the first is the largest of all.
    most: VecDeque<(u64, u64)>,
    /// Increasing values; the first is the smallest of all.
    least: VecDeque<(u64, u64)>,
}

impl Window {
    fn enter(&mut self, number: u64, value: u64) {
        while self.most.back().is_some_and(|(_, other)| *other <= value) {
            self.most.pop_back();
        }
        self.most.push_back((number, value));
        while self.least.back().is_some_and(|(_, other)| *other >= value) {
            self.least.pop_back();
        }
        self.least.push_back((number, value));
    }

    fn leave(&mut self, before: u64) {
        for values in [&mut self.most, &mut self.least] {
            while values.len() > 1 && values.front().is_some_and(|(number, _)| *number < before) {
                values.pop_front();
            }
        }
    }

    fn range(&self) -> Range<u64> {
        let first = |values: &VecDeque<(u64, u64)>| values.front().map_or(0, |(_, value)| *value);
        Range { least: first(&self.least), most: first(&self.most) }
    }
}

#[derive(Clone, Debug)]
struct Unit {
    windows: [Window; COUNTS],
    /// Counts after the last operation.
    last: Counts,
    earliest: u64,
    latest: u64,
}

impl Unit {
    fn bounds(&self) -> Bounds {
        self.windows.each_ref().map(Window::range)
    }
}

/// Units whose operations have uncertain times; see the module.
#[derive(Clone, Debug)]
pub(super) struct UncertainOrder {
    units: Vec<Unit>,
    events: BinaryHeap<Reverse<Event>>,
    /// Number of operations that changed a count.
    number: u64,
}

impl UncertainOrder {
    /// Makes units whose counts are 0.
    pub(super) fn new(units: usize) -> Self {
        let mut windows: [Window; COUNTS] = Default::default();
        windows.iter_mut().for_each(|window| window.enter(0, 0));
        let unit = Unit { windows, last: Counts::default(), earliest: 0, latest: 0 };
        Self { units: vec![unit; units], events: BinaryHeap::new(), number: 0 }
    }

    /// Notes the counts of a unit after its next operation, which was made between these times.
    pub(super) fn note(&mut self, unit: usize, counts: Counts, earliest: u64, latest: u64) {
        let of = &mut self.units[unit];
        // A time may be unknown, and then the interval is wider than those of later operations.
        (of.earliest, of.latest) = (earliest.max(of.earliest), latest.max(of.latest));
        if counts == of.last {
            return;
        }
        of.last = counts;
        self.number += 1;
        let number = self.number;
        for (time, leaves) in [(of.earliest, false), (of.latest.max(of.earliest), true)] {
            self.events.push(Reverse(Event { time, leaves, number, unit, counts }));
        }
    }

    /// Calls `changed` for each change of the bounds of a unit before `end`, in the order of time,
    /// with the bounds before and after. No operation that is noted later may have an earliest time
    /// before `end`.
    pub(super) fn advance(&mut self, end: u64, mut changed: impl FnMut(usize, &Bounds, &Bounds)) {
        while let Some(&Reverse(event)) = self.events.peek()
            && event.time < end
        {
            self.events.pop();
            let unit = &mut self.units[event.unit];
            let before = unit.bounds();
            for (window, value) in unit.windows.iter_mut().zip(event.counts) {
                match event.leaves {
                    false => window.enter(event.number, value),
                    true => window.leave(event.number),
                }
            }
            changed(event.unit, &before, &unit.bounds());
        }
    }
}

/// A sum over units, with the least and the most that its largest value may be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeakOfSum {
    now: Range<u64>,
    pub(super) peak: Range<u64>,
}

impl PeakOfSum {
    /// Replaces the bounds of one term.
    pub(super) fn change(&mut self, before: Range<u64>, after: Range<u64>) {
        self.now.least = self.now.least + after.least - before.least;
        self.now.most = self.now.most + after.most - before.most;
        self.peak.least = self.peak.least.max(self.now.least);
        self.peak.most = self.peak.most.max(self.now.most);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Operations of a unit: the time since the previous one, and the count after it.
    type Ops = Vec<(u64, u64)>;

    fn peak(units: &[Ops], error: u64) -> Range<u64> {
        let mut order = UncertainOrder::new(units.len());
        let mut sum = PeakOfSum::default();
        let mut all: Vec<(u64, usize, u64)> = Vec::new();
        for (unit, ops) in units.iter().enumerate() {
            let mut now = 100;
            for (passed, count) in ops {
                now += passed;
                all.push((now, unit, *count));
            }
        }
        all.sort_by_key(|(time, ..)| *time);
        for (time, unit, count) in all {
            order.advance(time - error, |_, from, to| sum.change(from[0], to[0]));
            order.note(unit, [count; COUNTS], time - error, time + error);
        }
        order.advance(u64::MAX, |_, from, to| sum.change(from[0], to[0]));
        sum.peak
    }

    /// Returns the peak of the sum, each operation at the time that `at` returns.
    fn exact(units: &[Ops], mut at: impl FnMut() -> u64) -> u64 {
        let mut all: Vec<(u64, usize, u64)> = Vec::new();
        for (unit, ops) in units.iter().enumerate() {
            let (mut now, mut last) = (100, 0);
            for (passed, count) in ops {
                now += passed;
                last = (now + at()).max(last);
                all.push((last, unit, *count));
            }
        }
        all.sort_by_key(|(time, ..)| *time);
        let (mut held, mut most) = (vec![0; units.len()], 0);
        for (_, unit, count) in all {
            held[unit] = count;
            most = most.max(held.iter().sum());
        }
        most
    }

    /// Returns the largest sum over all interleavings in which the times of operations differ by up
    /// to `error`, by brute force: at each time, the largest possible count of each unit.
    fn most_of_all(units: &[Ops], error: u64) -> u64 {
        let end = 200 + units.iter().flatten().map(|(passed, _)| passed).sum::<u64>() + error;
        let most_at = |ops: &Ops, time: u64| {
            let times: Vec<_> = ops
                .iter()
                .scan(100, |now, (passed, count)| {
                    *now += passed;
                    Some((*now, *count))
                })
                .collect();
            let values = std::iter::once((0, 0)).chain(times.iter().copied()).enumerate();
            let possible = values.filter(|&(at, (from, _))| {
                from <= time + error && times.get(at).is_none_or(|(next, _)| time <= next + error)
            });
            possible.map(|(_, (_, count))| count).max().unwrap_or(0)
        };
        (0..end).map(|time| units.iter().map(|ops| most_at(ops, time)).sum()).max().unwrap_or(0)
    }

    fn units() -> impl Strategy<Value = Vec<Ops>> {
        proptest::collection::vec(proptest::collection::vec((0..30_u64, 0..6_u64), 0..12), 1..4)
    }

    proptest! {
        #[test]
        fn every_order_within_the_error_has_a_peak_in_the_range(
            units in units(), error in 0..25_u64, seed in any::<u64>(),
        ) {
            let range = peak(&units, error);
            let mut state = seed | 1;
            for _ in 0..20 {
                let order = exact(&units, || {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33) % (2 * error + 1)
                });
                prop_assert!((range.least..=range.most).contains(&order), "{range:?} {order}");
            }
            prop_assert_eq!(range.most, most_of_all(&units, error));
        }
    }

    #[test]
    fn units_far_apart_have_one_peak() {
        let busy: Ops = (0..50).map(|at| (3, 1 + at % 2 * 4)).chain([(3, 0)]).collect();
        let later: Ops = [(500, 4), (300, 0)].into();
        let one = |units: &[Ops]| peak(units, 9);
        assert_eq!(one(&[busy.clone(), later.clone()]).most, 5);
        assert_eq!(one(&[later.clone(), later]), Range { least: 8, most: 8 });
        assert_eq!(one(&[busy.clone(), busy]), Range { least: 2, most: 10 });
    }
}
