// SPDX-License-Identifier: BSD-2-Clause
//! Finds the laws by which the need (of table entries) may grow with the number of ranks, and
//! predicts the need at another number.
//!
//! A size is a number of ranks that was recorded. The band of a size is the range of the needs of
//! its runs, widened on either side by its own width, by 2 elements or by a share of the need,
//! whichever is most. A law fits if one of its curves `a + b f(n)`, with `b >= 0`, passes through
//! all bands. The prediction of a law is the range of all such curves. If the need follows one of
//! the four laws within the bands, the range of all laws that fit contains the need.
//!
//! Leave-one-out errors were rejected as a criterion. With three sizes, each of them is the error
//! of a line through two points, and the smallest of four such errors is often small by chance.

use serde::Serialize;

/// A band is widened by at least this number of elements on either side.
const ELEMENTS: f64 = 2.0;
/// A band is widened by at least this share of the need on either side.
pub(super) const SHARE: f64 = 0.02;
const ROUNDING: f64 = 1e-6;

/// Needs of the runs of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Point {
    pub(super) ranks: u32,
    pub(super) least: u64,
    pub(super) most: u64,
    /// Share of the need by which another run may differ, if the runs do not differ by more.
    pub(super) share: f64,
}

impl Point {
    fn middle(&self) -> f64 {
        (self.least as f64 + self.most as f64) / 2.0
    }

    /// Returns true if the needs of runs differ, or are assumed to differ, by more than the
    /// smallest width of a band.
    pub(super) fn varies(&self) -> bool {
        let [least, most] = [self.least, self.most].map(|need| need as f64);
        self.share > SHARE || most - least > ELEMENTS.max(SHARE * most)
    }

    fn band(&self) -> [f64; 2] {
        let [least, most] = [self.least, self.most].map(|need| need as f64);
        let width = |need: f64| ELEMENTS.max(self.share * need).max(most - least);
        [least - width(least), most + width(most)]
    }
}

/// Growth with the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Law {
    Constant,
    Logarithmic,
    SquareRoot,
    Linear,
}

impl Law {
    pub(super) const ALL: [Self; 4] =
        [Self::Constant, Self::Logarithmic, Self::SquareRoot, Self::Linear];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Logarithmic => "logarithmic",
            Self::SquareRoot => "square root",
            Self::Linear => "linear",
        }
    }

    pub(super) fn of(self, ranks: u32) -> f64 {
        let ranks = f64::from(ranks);
        match self {
            Self::Constant => 0.0,
            Self::Logarithmic => ranks.log2(),
            Self::SquareRoot => ranks.sqrt(),
            Self::Linear => ranks,
        }
    }

    /// Returns the lowest and the highest value at `ranks` of the curves of this law that pass
    /// through all bands. `ranks` must not be below the size of any point. Returns `None` if no
    /// curve passes through all bands.
    ///
    /// The curves are a convex set of lines. The extreme ones pass through ends of two bands, or
    /// are horizontal and pass through one end.
    fn predicts(self, points: &[Point], ranks: u32) -> Option<[f64; 2]> {
        let ends: Vec<_> = points
            .iter()
            .flat_map(|point| point.band().map(|end| (self.of(point.ranks), end)))
            .collect();
        let passes = |a: f64, b: f64| {
            points.iter().all(|point| {
                let [low, high] = point.band();
                let value = a + b * self.of(point.ranks);
                (low - ROUNDING..=high + ROUNDING).contains(&value)
            })
        };
        let slope = |one: &(f64, f64), other: &(f64, f64)| (other.1 - one.1) / (other.0 - one.0);
        let mut range: Option<[f64; 2]> = None;
        for (at, one) in ends.iter().enumerate() {
            let later = ends[at + 1..].iter().filter(|other| other.0 > one.0);
            for b in std::iter::once(0.0).chain(later.map(|other| slope(one, other))) {
                let a = one.1 - b * one.0;
                if b >= 0.0 && passes(a, b) {
                    let value = a + b * self.of(ranks);
                    let [low, high] = range.unwrap_or([value; 2]);
                    range = Some([low.min(value), high.max(value)]);
                }
            }
        }
        range
    }
}

/// A law, its closest curve, and its prediction.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Fit {
    pub(super) law: Law,
    /// Coefficients of `a + b f(ranks)` with the least squares.
    a: f64,
    b: f64,
    /// Largest distance of a need from this curve, in elements.
    pub(super) misses_by: f64,
    /// Prediction, if the law fits.
    pub(super) predicts: Option<[u64; 2]>,
}

impl Fit {
    fn of(law: Law, points: &[Point], to: u32) -> Self {
        let mean =
            |of: &dyn Fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
        let x = mean(&|point| law.of(point.ranks));
        let y = mean(&Point::middle);
        let xx = mean(&|point| (law.of(point.ranks) - x).powi(2));
        let xy = mean(&|point| (law.of(point.ranks) - x) * (point.middle() - y));
        let b = if xx > 0.0 { (xy / xx).max(0.0) } else { 0.0 };
        let a = y - b * x;
        let misses = |point: &Point| (point.middle() - a - b * law.of(point.ranks)).abs();
        let misses_by = points.iter().map(misses).fold(0.0, f64::max);
        let predicts = law.predicts(points, to).map(|[low, high]| [down(low), up(high)]);
        let [a, b, misses_by] = [a, b, misses_by].map(|of| (of * 1e3).round() / 1e3);
        Self { law, a, b, misses_by, predicts }
    }
}

/// Rounds up to an integer; above 100, to two digits.
fn up(value: f64) -> u64 {
    let unit = unit(value);
    ((value / unit - ROUNDING).ceil().max(0.0) * unit) as u64
}

/// Rounds down to an integer; above 100, to two digits.
fn down(value: f64) -> u64 {
    let unit = unit(value);
    ((value / unit + ROUNDING).floor().max(0.0) * unit) as u64
}

fn unit(value: f64) -> f64 {
    10_f64.powf((value.max(1.0).log10().floor() - 1.0).max(0.0))
}

/// The prediction for another size from the needs of the recorded sizes.
#[derive(Debug, Serialize)]
pub(super) struct Growth {
    /// All laws, the closest first.
    pub(super) laws: Vec<Fit>,
    /// True if the law `Constant` fits, and the need does not rise from every size to the next.
    pub(super) constant: bool,
    /// The range of all laws that fit. If `constant` is true, the range of the recorded needs, for
    /// needs that depend on timing widened by [`ELEMENTS`]. If
    /// `bracket` is true, the range from the parts.
    pub(super) predicts: Option<[u64; 2]>,
    /// True if there is no prediction, or if its high end is above twice its low end and more than
    /// 8 above its low end.
    pub(super) refused: bool,
    /// True if the range is from the largest part to the sum of all parts, because runs differ by
    /// timing.
    pub(super) bracket: bool,
    /// A number of ranks at which the predictions of the laws that fit do not overlap.
    pub(super) apart_at: Option<u32>,
}

impl Growth {
    /// Computes the growth from points in the order of their sizes.
    pub(super) fn of(points: &[Point], to: u32) -> Self {
        let mut laws = Law::ALL.map(|law| Fit::of(law, points, to)).to_vec();
        let rises = points.windows(2).all(|pair| pair[0].middle() < pair[1].middle());
        let constant = laws[0].predicts.is_some() && !rises;
        laws.sort_by(|one, other| one.misses_by.total_cmp(&other.misses_by));
        let fitting = || laws.iter().filter(|fit| fit.predicts.is_some()).map(|fit| fit.law);
        let predicts = if constant {
            let least = points.iter().map(|point| point.least).min();
            least.zip(points.iter().map(|point| point.most).max()).map(|(low, high)| [low, high])
        } else {
            let ranges = laws.iter().filter_map(|fit| fit.predicts);
            ranges.reduce(|all, of| [all[0].min(of[0]), all[1].max(of[1])])
        };
        let refused = predicts.is_none_or(|[low, high]| high > (2 * low).max(low + 8));
        let apart_at =
            if refused { apart(&fitting().collect::<Vec<_>>(), points, to) } else { None };
        Self { laws, constant, predicts, refused, bracket: false, apart_at }
    }

    /// Widens the range of a constant need that depends on timing, by [`ELEMENTS`] on either side:
    /// another run exceeds the highest of n runs with a probability of 1/(n + 1).
    pub(super) fn widen(&mut self) {
        if let Some([low, high]) = self.predicts.as_mut().filter(|_| self.constant) {
            *low = low.saturating_sub(ELEMENTS as u64);
            *high += ELEMENTS as u64;
        }
    }

    /// Replaces the range of the elements at one moment by a range from their parts, each at its
    /// longest, if each part has a prediction that is not refused. The need is no less than the
    /// largest part, and no more than the sum.
    pub(super) fn bracket(&mut self, parts: &[&Self]) {
        let ranges: Option<Vec<_>> =
            parts.iter().map(|part| part.predicts.filter(|_| !part.refused)).collect();
        let Some(ranges) = ranges else { return };
        let low = ranges.iter().map(|range| range[0]).max().unwrap_or(0);
        let high = up(ranges.iter().map(|range| range[1] as f64).sum());
        (self.predicts, self.refused, self.bracket) = (Some([low, high]), false, true);
    }

    /// Withdraws the prediction.
    pub(super) fn withhold(&mut self) {
        (self.predicts, self.refused, self.bracket, self.apart_at) = (None, true, false, None);
    }

    /// Returns the laws that fit, the closest first; constant growth alone if the need is constant.
    pub(super) fn fitting(&self) -> impl Iterator<Item = Law> + Clone {
        let constant = self.constant;
        self.laws
            .iter()
            .filter(|fit| fit.predicts.is_some())
            .map(|fit| fit.law)
            .filter(move |law| !constant || *law == Law::Constant)
    }
}

/// Doubles the largest recorded size repeatedly. Returns the first such size below `to` at which
/// the ranges of these laws are more than a band apart, so that a recording of that size would
/// leave one law. Returns `None` if there is no such size, or fewer than two laws.
fn apart(laws: &[Law], points: &[Point], to: u32) -> Option<u32> {
    let largest = points.last()?.ranks;
    let sizes = std::iter::successors(largest.checked_mul(2), |ranks| ranks.checked_mul(2));
    let are_apart = |ranks: &u32| {
        let mut ranges: Vec<_> =
            laws.iter().filter_map(|law| law.predicts(points, *ranks)).collect();
        ranges.sort_by(|one, other| one[0].total_cmp(&other[0]));
        ranges.windows(2).all(|pair| {
            let most = pair[0][1];
            pair[1][0] - most > 2.0 * ELEMENTS.max(SHARE * most)
        })
    };
    if laws.len() < 2 { None } else { sizes.take_while(|ranks| *ranks < to).find(are_apart) }
}

#[cfg(test)]
#[path = "law_tests.rs"]
mod tests;
