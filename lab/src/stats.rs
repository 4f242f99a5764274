// SPDX-License-Identifier: BSD-2-Clause
//! Statistics: quantiles of values and of histograms, and the variation from run to run.

use std::fmt;

use matching::Histogram;
use serde::Serialize;

use crate::text::whole;

/// Returns the values in ascending order.
pub(crate) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<_> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns the value that the given share (0 to 1) of the sorted values do not exceed, interpolated
/// between two values. Returns 0 without values.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// Returns the middle value, or the mean of the two middle values; 0 without values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// Returns the approximate depth that `thousandths` of the searches do not exceed. `longest` is the
/// largest length of the queue. Within a bucket of the histogram, depths are assumed to be spread
/// evenly. Returns 0 without searches.
pub(crate) fn depth_quantile(histogram: &Histogram, thousandths: u64, longest: u64) -> u64 {
    let wanted = histogram.total() as f64 * thousandths as f64 / 1000.0;
    let mut seen = 0.0;
    for (low, high, count) in histogram.buckets() {
        let (before, high) = (seen, high.min(longest).max(low));
        seen += count as f64;
        if seen >= wanted {
            let part = ((wanted - before) / count as f64).clamp(0.0, 1.0);
            // Each of the `width` depths of the bucket has an equal part of its searches.
            let width = (high - low) as f64 + 1.0;
            return (low + (width * part).ceil().max(1.0) as u64 - 1).min(high);
        }
    }
    0
}

/// The lowest and the highest value of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Range<T> {
    pub(crate) least: T,
    pub(crate) most: T,
}

impl<T: Copy> From<T> for Range<T> {
    fn from(value: T) -> Self {
        Self { least: value, most: value }
    }
}

impl fmt::Display for Range<u64> {
    /// Writes text such as `12`, or `12 to 15`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_one() {
            true => f.pad(&whole(self.most)),
            false => f.pad(&format!("{} to {}", whole(self.least), whole(self.most))),
        }
    }
}

impl<T: Copy + Default + PartialOrd> Range<T> {
    /// Returns true if the range is one number.
    pub(crate) fn is_one(&self) -> bool {
        self.least == self.most
    }

    /// Returns the range of the values; the default without values.
    pub(crate) fn of(values: impl Iterator<Item = T>) -> Self {
        Self::over(values.map(Self::from))
    }

    /// Returns the smallest range that contains all ranges; the default without ranges.
    pub(crate) fn over(ranges: impl Iterator<Item = Self>) -> Self {
        let widest = ranges.reduce(|all, one| Self {
            least: if one.least < all.least { one.least } else { all.least },
            most: if one.most > all.most { one.most } else { all.most },
        });
        widest.unwrap_or_default()
    }
}

/// The variation of a number from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Variation {
    pub(crate) min: u64,
    pub(crate) median: f64,
    pub(crate) max: u64,
    /// Number of runs.
    pub(crate) runs: usize,
}

impl Variation {
    /// Returns the variation of the values; zeros without values.
    pub(crate) fn of(values: &[u64]) -> Self {
        let (Some(&min), Some(&max)) = (values.iter().min(), values.iter().max()) else {
            return Self::default();
        };
        let median = median(values.iter().map(|&value| value as f64));
        Self { min, median, max, runs: values.len() }
    }

    /// Returns the difference between the highest and the lowest value.
    pub(crate) fn width(&self) -> u64 {
        self.max - self.min
    }
}

impl fmt::Display for Variation {
    /// Writes `18`, or `14 to 18 (median 14)`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated() {
        let values = sorted([4.0, 1.0, 3.0, 2.0]);
        assert_eq!([0.0, 0.5, 1.0].map(|share| quantile(&values, share)), [1.0, 2.5, 4.0]);
        assert_eq!(quantile(&values, 0.25), 1.75);
        assert_eq!(median([7.0]), 7.0);
        let variation = Variation::of(&[18, 14, 14]);
        assert_eq!(variation.to_string(), "14 to 18 (median 14)");
        assert_eq!(Variation::of(&[]), Variation::default());
    }
}
