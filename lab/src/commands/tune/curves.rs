// SPDX-License-Identifier: BSD-2-Clause
//! Compares the values of two channels by message size, and finds the size from which one channel
//! stays better than the other ("channel polling", sections 4.2 and 4.3).
//!
//! ```text
//! at a size     better    the middle half of the channel's values is better than the other's,
//!                         and both do not overlap
//!               tie       they overlap, so that the difference is within the spread
//! crossing      the smallest size at which the channel for long messages is better, if
//!               - the other channel is better at no larger size, and
//!               - at most half of the sizes from the crossing on are ties
//! ```
//!
//! A tie decides nothing, so that a noisy size neither makes a crossing nor ends one. Half of the
//! sizes from the crossing on must show the difference, so that one lucky size is no crossing.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use clap::ValueEnum;
use serde::Serialize;
use strum::IntoStaticStr;

use crate::stats;

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Measure {
    /// Half a round trip.
    Latency,
    /// Bytes per second with a window of messages.
    Bandwidth,
    /// Share of an exchange that a computation hides.
    Overlap,
}

impl Measure {
    pub(super) const ALL: [Self; 3] = [Self::Latency, Self::Bandwidth, Self::Overlap];

    pub(super) fn name(self) -> &'static str {
        self.into()
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Latency => "us",
            Self::Bandwidth => "MB/s",
            Self::Overlap => "share",
        }
    }

    /// Returns true if smaller values are better.
    pub(super) fn wants_less(self) -> bool {
        self == Self::Latency
    }
}

/// The values of one size in one run of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measurement {
    pub(super) size: usize,
    /// Values in the order of [`Measure::ALL`].
    pub(super) values: [f64; 3],
}

/// Spread of a value over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Quartiles {
    pub(super) rounds: usize,
    pub(super) lowest: f64,
    pub(super) lower_quartile: f64,
    pub(super) median: f64,
    pub(super) upper_quartile: f64,
    pub(super) highest: f64,
}

impl Quartiles {
    /// Computes the spread of at least one value.
    pub(super) fn of(values: &[f64]) -> Self {
        let sorted = stats::sorted(values.iter().copied());
        let at = |share| stats::quantile(&sorted, share);
        Self {
            rounds: values.len(),
            lowest: at(0.0),
            lower_quartile: at(0.25),
            median: at(0.5),
            upper_quartile: at(0.75),
            highest: at(1.0),
        }
    }
}

/// The values of one channel, by size. Each measure has one value per round.
#[derive(Clone, Debug, Default)]
pub(super) struct ChannelCurve(BTreeMap<usize, [Vec<f64>; 3]>);

impl ChannelCurve {
    pub(super) fn put(&mut self, measured: &Measurement) {
        let values = self.0.entry(measured.size).or_default();
        for (all, value) in values.iter_mut().zip(measured.values) {
            all.push(value);
        }
    }

    pub(super) fn sizes(&self) -> impl Iterator<Item = usize> {
        self.0.keys().copied()
    }

    pub(super) fn quartiles(&self, size: usize, measure: Measure) -> Option<Quartiles> {
        let values = &self.0.get(&size)?[measure as usize];
        (!values.is_empty()).then(|| Quartiles::of(values))
    }

    /// Returns the sizes with their spreads, in rising order.
    pub(super) fn all_quartiles(
        &self,
        measure: Measure,
    ) -> impl Iterator<Item = (usize, Quartiles)> {
        self.sizes().filter_map(move |size| Some((size, self.quartiles(size, measure)?)))
    }
}

/// The channel that is better at a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    Short,
    Long,
    Tie,
}

/// The result of comparing two curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub(super) enum Crossing {
    /// The channel for long messages stays better from a size on.
    At {
        /// The measured size before `from`; `None` if `from` is the smallest.
        after: Option<usize>,
        /// The smallest measured size from which the channel for long messages stays better.
        from: usize,
    },
    /// The channel for short messages is better at half of the sizes or more, and the channel for
    /// long messages is better at no size.
    Never,
    /// Each channel is better at some sizes, and neither stays better.
    Alternates,
    /// The difference is within the spread.
    Same,
    /// No size was measured on both channels.
    Unknown,
}

/// Finds the crossing among the sizes `differ`, at which the channels differ at all.
pub(super) fn crossing(
    short: &ChannelCurve,
    long: &ChannelCurve,
    measure: Measure,
    differ: &RangeInclusive<usize>,
) -> Crossing {
    let of_both = |size| {
        let (short, long) = (short.quartiles(size, measure)?, long.quartiles(size, measure)?);
        Some((size, better(&short, &long, measure)))
    };
    let all: Vec<_> =
        short.sizes().filter(|size| differ.contains(size)).filter_map(of_both).collect();
    let count = |sizes: &[(usize, Better)], which| {
        sizes.iter().filter(|(_, better)| *better == which).count()
    };
    let end = all.iter().rposition(|(_, better)| *better == Better::Short).map_or(0, |at| at + 1);
    let begins = |at: &usize| {
        let beyond = &all[*at..];
        beyond[0].1 == Better::Long && 2 * count(beyond, Better::Long) >= beyond.len()
    };
    if let Some(at) = (end..all.len()).find(begins) {
        let after = at.checked_sub(1).map(|before| all[before].0);
        return Crossing::At { after, from: all[at].0 };
    }
    match (count(&all, Better::Short), count(&all, Better::Long)) {
        _ if all.is_empty() => Crossing::Unknown,
        (short, 0) if 2 * short >= all.len() => Crossing::Never,
        (1.., 1..) => Crossing::Alternates,
        _ => Crossing::Same,
    }
}

fn better(short: &Quartiles, long: &Quartiles, measure: Measure) -> Better {
    let (lower, higher) = match measure.wants_less() {
        true => (Better::Short, Better::Long),
        false => (Better::Long, Better::Short),
    };
    if short.upper_quartile < long.lower_quartile {
        lower
    } else if long.upper_quartile < short.lower_quartile {
        higher
    } else {
        Better::Tie
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_have_the_middle_and_the_ends() {
        let of = Quartiles::of(&[5.0, 1.0, 3.0, 2.0, 4.0]);
        let all = [of.lowest, of.lower_quartile, of.median, of.upper_quartile, of.highest];
        assert_eq!(all, [1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn curves_have_the_measured_values() {
        let mut curve = ChannelCurve::default();
        for value in [1.0, 2.0, 4.0] {
            curve.put(&Measurement { size: 64, values: [value, 10.0 * value, 0.5] });
        }
        assert_eq!(curve.quartiles(64, Measure::Bandwidth).unwrap().median, 20.0);
        assert_eq!(curve.quartiles(8, Measure::Latency), None);
        assert_eq!(curve.all_quartiles(Measure::Overlap).count(), 1);
    }

    const ALL: RangeInclusive<usize> = 1..=usize::MAX;

    /// Returns a curve of sizes, each with a value and its spread.
    fn curve(points: &[(usize, f64, f64)]) -> ChannelCurve {
        let mut curve = ChannelCurve::default();
        for part in [-1.0, -0.5, 0.0, 0.5, 1.0] {
            for &(size, value, spread) in points {
                let value = value + part * spread;
                // Less latency is better; more bandwidth and overlap are.
                curve.put(&Measurement { size, values: [value, 1e6 / value, 1.0 / value] });
            }
        }
        curve
    }

    fn of(short: &[f64], long: &[f64], spread: f64) -> Crossing {
        let sized = |values: &[f64]| {
            let points: Vec<_> =
                (0..).zip(values).map(|(at, &value)| (1 << at, value, spread)).collect();
            curve(&points)
        };
        let (short, long) = (sized(short), sized(long));
        let [first, rest @ ..] = Measure::ALL.map(|measure| crossing(&short, &long, measure, &ALL));
        assert_eq!(rest, [first; 2], "all measures agree");
        first
    }

    #[test]
    fn the_size_is_found_from_which_one_stays_better() {
        let at = |after, from| Crossing::At { after, from };
        let linear = [1.0, 2.0, 4.0, 8.0, 16.0];
        assert_eq!(of(&linear, &[5.0, 5.5, 6.0, 7.0, 9.0], 0.1), at(Some(4), 8));
        // Better from the first size on.
        assert_eq!(of(&linear, &[0.5, 1.0, 2.0, 4.0, 8.0], 0.1), at(None, 1));
        // At first the channel is better only at a small size. This size is no crossing, because
        // the channel does not stay better.
        assert_eq!(of(&linear, &[0.5, 3.0, 6.0, 7.0, 9.0], 0.1), at(Some(4), 8));
        // Better at the last size only.
        assert_eq!(of(&linear, &[5.0, 5.5, 6.0, 9.0, 9.0], 0.1), at(Some(8), 16));
    }

    #[test]
    fn noise_makes_no_crossing_and_ends_none() {
        let linear = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        // A tie among better sizes.
        let long = [5.0, 5.5, 3.0, 8.0, 9.0, 12.0];
        assert_eq!(of(&linear, &long, 0.1), Crossing::At { after: Some(2), from: 4 });
        // All sizes within the spread.
        assert_eq!(of(&linear, &linear.map(|it| 1.01 * it), 1.0), Crossing::Same);
        // One lucky size among ties.
        let lucky = [1.0, 1.5, 4.0, 8.0, 16.0, 32.0];
        assert_eq!(of(&linear, &lucky, 0.1), Crossing::Same);
    }

    #[test]
    fn curves_without_a_crossing_have_a_reason() {
        let linear = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(of(&linear, &[2.0, 4.0, 8.0, 16.0], 0.1), Crossing::Never);
        assert_eq!(of(&linear, &[0.5, 1.0, 8.0, 16.0], 0.1), Crossing::Alternates);
        assert_eq!(of(&linear, &linear, 0.0), Crossing::Same);
    }

    #[test]
    fn sizes_that_one_lacks_are_left_out() {
        let short = curve(&[(1, 1.0, 0.1), (4, 4.0, 0.1), (16, 16.0, 0.1)]);
        let long = curve(&[(1, 3.0, 0.1), (2, 1.0, 0.1), (16, 9.0, 0.1)]);
        let found = |differ| crossing(&short, &long, Measure::Latency, &differ);
        assert_eq!(found(ALL), Crossing::At { after: Some(1), from: 16 });
        assert_eq!(found(1..=8), Crossing::Never);
        assert_eq!(found(2..=15), Crossing::Unknown);
        let none = ChannelCurve::default();
        assert_eq!(crossing(&short, &none, Measure::Latency, &ALL), Crossing::Unknown);
    }
}
