// SPDX-License-Identifier: BSD-2-Clause
//! Values of a channel by message size.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;

use crate::stats;

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
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
        match self {
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
            Self::Overlap => "overlap",
        }
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
pub(super) struct Measured {
    pub(super) size: usize,
    /// Values in the order of [`Measure::ALL`].
    pub(super) values: [f64; 3],
}

/// Spread of a value over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) rounds: usize,
    pub(super) lowest: f64,
    pub(super) lower_quartile: f64,
    pub(super) median: f64,
    pub(super) upper_quartile: f64,
    pub(super) highest: f64,
}

impl Spread {
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
pub(super) struct Curve(BTreeMap<usize, [Vec<f64>; 3]>);

impl Curve {
    pub(super) fn put(&mut self, measured: &Measured) {
        let values = self.0.entry(measured.size).or_default();
        for (all, value) in values.iter_mut().zip(measured.values) {
            all.push(value);
        }
    }

    pub(super) fn sizes(&self) -> impl Iterator<Item = usize> {
        self.0.keys().copied()
    }

    pub(super) fn spread(&self, size: usize, measure: Measure) -> Option<Spread> {
        let values = &self.0.get(&size)?[measure as usize];
        (!values.is_empty()).then(|| Spread::of(values))
    }

    /// Returns the sizes with their spreads, in rising order.
    pub(super) fn spreads(&self, measure: Measure) -> impl Iterator<Item = (usize, Spread)> {
        self.sizes().filter_map(move |size| Some((size, self.spread(size, measure)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_have_the_middle_and_the_ends() {
        let of = Spread::of(&[5.0, 1.0, 3.0, 2.0, 4.0]);
        let all = [of.lowest, of.lower_quartile, of.median, of.upper_quartile, of.highest];
        assert_eq!(all, [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(Spread::of(&[1.0, 2.0]).median, 1.5);
        assert_eq!(Spread::of(&[7.0]).upper_quartile, 7.0);
    }

    #[test]
    fn curves_have_the_measured_values() {
        let mut curve = Curve::default();
        for value in [1.0, 2.0, 4.0] {
            curve.put(&Measured { size: 64, values: [value, 10.0 * value, 0.5] });
        }
        assert_eq!(curve.spread(64, Measure::Bandwidth).unwrap().median, 20.0);
        assert_eq!(curve.spread(8, Measure::Latency), None);
        assert_eq!(curve.spreads(Measure::Overlap).count(), 1);
    }
}
