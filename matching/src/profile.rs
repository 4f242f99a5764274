// SPDX-License-Identifier: BSD-2-Clause
//! Profiles of values: number, mean, variance and quartiles.
//!
//! ```text
//! below 32     one bucket per value
//! from 32 on   16 buckets per octave: [2^e + i * 2^(e-4), 2^e + (i + 1) * 2^(e-4)), i = 0 to 15
//! ```
//! A bucket is at most 6.25 % wide, so a quartile differs from the exact one by at most 3.2 %.
//! Number, mean and variance are exact. *Hint-driven matching* (section V.C) uses these features.

use serde::{Deserialize, Serialize};

use crate::sums::add;

const PART_BITS: u32 = 4;
/// Buckets per octave.
const PARTS: u64 = 1 << PART_BITS;
/// Larger values share the last bucket: no queue is that long, and messages of 1 TiB are rare.
const BITS: u32 = 40;

/// Values of one kind: traversals of searches, or sizes of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: u64,
    /// Sum of their squares.
    pub squares: u128,
    /// `[lowest value, values]` of every non-empty bucket, in ascending order.
    buckets: Buckets,
}

/// Counts by bucket; trailing empty buckets may be left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
struct Buckets(Vec<u64>);

impl Buckets {
    fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }
}

impl PartialEq for Buckets {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Buckets {}

impl From<Vec<(u64, u64)>> for Buckets {
    fn from(pairs: Vec<(u64, u64)>) -> Self {
        let mut counts = Vec::new();
        for (low, count) in pairs {
            add(at(&mut counts, bucket(low)), count);
        }
        Self(counts)
    }
}

impl From<Buckets> for Vec<(u64, u64)> {
    fn from(buckets: Buckets) -> Self {
        buckets.iter().map(|(bucket, count)| (lowest(bucket), count)).collect()
    }
}

/// The bucket of a value.
#[inline]
fn bucket(value: u64) -> usize {
    let value = value.min((1 << BITS) - 1);
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(PART_BITS + 1);
    shift as usize * PARTS as usize + (value >> shift) as usize
}

/// The lowest value of a bucket.
fn lowest(bucket: usize) -> u64 {
    let shift = (bucket as u64 / PARTS).saturating_sub(1);
    (bucket as u64 - shift * PARTS) << shift
}

fn at(counts: &mut Vec<u64>, bucket: usize) -> &mut u64 {
    if bucket >= counts.len() {
        counts.resize(bucket + 1, 0);
    }
    &mut counts[bucket]
}

impl Profile {
    /// Counts one value of any size.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        add(&mut self.sum, value);
        self.squares = self.squares.saturating_add(u128::from(value) * u128::from(value));
        *at(&mut self.buckets.0, bucket(value)) += 1;
    }

    /// Adds another profile's values.
    pub fn merge(&mut self, other: &Self) {
        add(&mut self.count, other.count);
        add(&mut self.sum, other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        for (bucket, count) in other.buckets.iter() {
            add(at(&mut self.buckets.0, bucket), count);
        }
    }

    /// Mean; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Variance of the whole population, not the sample estimate; `None` without values.
    #[must_use]
    pub fn variance(&self) -> Option<f64> {
        // In integers unless they overflow, because the difference of two large sums may be small.
        let (count, sum) = (u128::from(self.count), u128::from(self.sum));
        let exact =
            self.squares.checked_mul(count).map(|squares| squares.saturating_sub(sum * sum));
        let (mean, n) = (self.mean()?, count as f64);
        Some(match exact {
            Some(spread) => spread as f64 / (n * n),
            None => (self.squares as f64 / n - mean * mean).max(0.0),
        })
    }

    /// Standard deviation; `None` without values.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// The value that this share (0 to 1) of all values does not exceed, by nearest rank. Returns
    /// the middle of its bucket; `None` without values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut up_to = 0_u64;
        self.buckets().find_map(|(low, high, count)| {
            up_to = up_to.saturating_add(count);
            (up_to >= rank).then(|| low + (high - low) / 2)
        })
    }

    /// The quartiles: 25, 50 and 75 % of the values do not exceed them. `None` without values.
    #[must_use]
    pub fn quartiles(&self) -> Option<[u64; 3]> {
        let [first, second, third] = [0.25, 0.5, 0.75].map(|share| self.quantile(share));
        Some([first?, second?, third?])
    }

    /// `(lowest value, highest value, count)` of every non-empty bucket.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.buckets.iter().map(|(bucket, count)| (lowest(bucket), lowest(bucket + 1) - 1, count))
    }

    /// Checks that every value is in a bucket, and that there are `values` values, or none if they
    /// are not requested.
    ///
    /// # Errors
    /// A description of the violated condition.
    pub fn check(&self, values: u64) -> Result<(), String> {
        let in_buckets =
            self.buckets.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(count));
        if in_buckets != self.count {
            return Err(format!("{in_buckets} of {} values are in buckets", self.count));
        }
        if self.count != 0 && self.count != values {
            return Err(format!("a profile of {} values, not {values}", self.count));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of buckets.
    const BUCKETS: usize = ((BITS - PART_BITS) as usize + 1) << PART_BITS;

    fn of(values: impl IntoIterator<Item = u64>) -> Profile {
        let mut profile = Profile::default();
        values.into_iter().for_each(|value| profile.record(value));
        profile
    }

    #[test]
    fn the_deviation_is_the_root_of_the_mean_square() {
        assert_eq!(of([]).deviation(), None);
        assert_eq!(of([2, 2]).deviation(), Some(0.0));
        assert_eq!(of([1, 1, 7, 7]).deviation(), Some(3.0));
    }

    #[test]
    fn buckets_are_narrow_and_follow_each_other() {
        for number in 0..BUCKETS {
            let (low, next) = (lowest(number), lowest(number + 1));
            assert!(low < next && (next - low) * PARTS <= low.max(PARTS), "{low} to {next}");
            assert_eq!((bucket(low), bucket(next - 1)), (number, number));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn moments_are_exact_and_quartiles_close() {
        let profile = of(1..=1000);
        assert_eq!((profile.count, profile.mean()), (1000, Some(500.5)));
        assert_eq!(profile.variance(), Some((1000.0 * 1000.0 - 1.0) / 12.0));
        for (told, exact) in profile.quartiles().unwrap().into_iter().zip([250.0, 500.0, 750.0]) {
            assert!((told as f64 / exact - 1.0).abs() < 0.032, "{told} of {exact}");
        }
        assert_eq!(of([7; 5]).quartiles(), Some([7; 3]));
        assert_eq!(of([]).quartiles(), None);
        assert_eq!(of([]).variance(), None);
    }

    #[test]
    fn a_small_spread_of_large_values_is_not_lost() {
        let large = (1 << 40) + 1;
        assert_eq!(of([large, large + 2]).variance(), Some(1.0));
    }

    #[test]
    fn sums_of_ranks_are_those_of_all_values() {
        let mut sum = of(0..100);
        sum.merge(&of(100..5000));
        assert_eq!(sum, of(0..5000));
        let pairs: Vec<(u64, u64)> = sum.buckets.clone().into();
        assert_eq!((pairs[0], Buckets::from(pairs)), ((0, 1), sum.buckets));
    }

    #[test]
    fn any_report_is_tolerated() {
        let most = u64::MAX;
        let mut profile = Profile {
            count: most,
            sum: most,
            squares: u128::MAX,
            buckets: vec![(most, most), (most, 1)].into(),
        };
        profile.merge(&profile.clone());
        assert_eq!(profile.check(most), Ok(()));
        assert!(profile.variance().is_some_and(f64::is_finite));
        assert!(profile.quartiles().is_some());
        assert!(of([1, 2]).check(3).is_err());
        assert_eq!(of([1, 2]).check(2), Ok(()));
        assert_eq!(Profile::default().check(5), Ok(()));
    }
}
