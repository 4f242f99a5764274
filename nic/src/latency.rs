// SPDX-License-Identifier: BSD-2-Clause
//! Latencies of operations in the timing model (`FI_TCAM_TABLE_NS` and the other costs): the time
//! from an operation's arrival at the matching unit until the unit has finished it.
//!
//! ```text
//! start      = max(arrival, busy until)     the unit serves one operation at a time
//! busy until = start + T                    T as in matching::timing
//! latency    = busy until - arrival
//! ```
//! T includes the promotions that the operation makes possible. Promoted elements are in the table
//! when the unit has finished the operation. An operation that arrives earlier waits.

use serde::{Deserialize, Serialize};

/// Number of buckets per power of two. A bucket is at most 3 % wide.
const PARTS: u32 = 32;
const PART_BITS: u32 = PARTS.trailing_zeros();

/// Latencies of one kind of operations in picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Number of operations.
    pub count: u64,
    /// Sum of their latencies.
    pub sum_ps: u64,
    /// Part of `sum_ps` that operations waited for the unit.
    pub waited_ps: u64,
    /// For each non-empty bucket, in ascending order: its number, the number of operations, and the
    /// sum of their latencies.
    buckets: Vec<(u32, u64, u64)>,
}

/// The bucket of a value. Each value below `2 * PARTS` has its own bucket.
fn bucket(value: u64) -> u32 {
    let bits = u64::BITS - value.leading_zeros();
    let shift = bits.saturating_sub(PART_BITS + 1);
    shift * PARTS + (value >> shift) as u32
}

impl Latencies {
    fn record(&mut self, latency: u64, waited: u64) {
        self.waited_ps = self.waited_ps.saturating_add(waited);
        self.add(bucket(latency), 1, latency);
    }

    fn add(&mut self, bucket: u32, count: u64, sum: u64) {
        self.count = self.count.saturating_add(count);
        self.sum_ps = self.sum_ps.saturating_add(sum);
        match self.buckets.binary_search_by_key(&bucket, |of| of.0) {
            Ok(at) => {
                let (_, had, sum_of) = &mut self.buckets[at];
                (*had, *sum_of) = (had.saturating_add(count), sum_of.saturating_add(sum));
            }
            Err(at) => self.buckets.insert(at, (bucket, count, sum)),
        }
    }

    /// Adds the latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.waited_ps = self.waited_ps.saturating_add(other.waited_ps);
        for &(bucket, count, sum) in &other.buckets {
            self.add(bucket, count, sum);
        }
    }

    /// Mean latency in nanoseconds; `None` without operations.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ps as f64 / self.count as f64 * 1e-3)
    }

    /// Latency in nanoseconds that this share (0 to 1) of the operations does not exceed, by
    /// nearest rank. The result is the mean of a bucket 3 % wide, which is exact if all values in
    /// the bucket are equal. `None` without operations.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> Option<f64> {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut up_to = 0_u64;
        let bucket = self.buckets.iter().find(|(_, count, _)| {
            up_to = up_to.saturating_add(*count);
            up_to >= rank
        })?;
        Some(bucket.2 as f64 / bucket.1 as f64 * 1e-3)
    }
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Arrival,
    Post,
    Peek,
    /// A cancel or a drop: it keeps the unit busy, but its latency is not counted.
    Other,
}

/// Latencies by kind of operation. Empty if the timing model is off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Messages that arrived: time until the message is matched or kept as unexpected.
    pub arrivals: Latencies,
    /// Receives that were posted: time until the receive is matched or in the PRQ.
    pub posts: Latencies,
    /// Peeks, including those that claim or discard.
    pub peeks: Latencies,
}

impl Latency {
    /// The kinds with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Latencies)> {
        [("arrivals", &self.arrivals), ("posts", &self.posts), ("peeks", &self.peeks)].into_iter()
    }

    /// Returns true if no operation was modelled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().all(|(_, of)| of.count == 0)
    }

    /// Adds the latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.arrivals.merge(&other.arrivals);
        self.posts.merge(&other.posts);
        self.peeks.merge(&other.peeks);
    }
}

/// The matching unit of a context. See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MatchingUnit {
    /// Arrival of the current operation in picoseconds.
    arrival: u64,
    busy_until: u64,
    /// Sum of all charges when the last operation ended, in picoseconds.
    charged: u64,
}

impl MatchingUnit {
    /// Notes that an operation arrives at the time `now`, in nanoseconds.
    pub(crate) fn begin(&mut self, now: u64) {
        self.arrival = now.saturating_mul(1000);
    }

    /// Ends the operation, and adds its latency to `to`. `charged` is the sum of the charges for
    /// all operations up to this one, in picoseconds.
    pub(crate) fn end(&mut self, operation: Operation, charged: u64, to: &mut Latency) {
        let spent = charged - self.charged;
        self.charged = charged;
        let start = self.arrival.max(self.busy_until);
        self.busy_until = start.saturating_add(spent);
        let of = match operation {
            Operation::Arrival => &mut to.arrivals,
            Operation::Post => &mut to.posts,
            Operation::Peek => &mut to.peeks,
            Operation::Other => return,
        };
        of.record(self.busy_until - self.arrival, start - self.arrival);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut values: Vec<u64> = (0..5000).collect();
        values.extend((12..63).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, 3 << (bit - 1)]));
        values.push(u64::MAX);
        values.sort_unstable();
        for pair in values.windows(2) {
            assert!(bucket(pair[0]) <= bucket(pair[1]), "{pair:?}");
        }
        for value in 64..100_000 {
            let widest = value + value / u64::from(PARTS) + 1;
            assert!(bucket(value) < bucket(widest), "{value}");
        }
    }

    #[test]
    fn latencies_are_added_by_kind() {
        let mut one = Latency::default();
        assert!(one.is_empty());
        one.posts.record(4_000, 1_000);
        let mut sum = one.clone();
        sum.arrivals.record(7_000, 0);
        sum.merge(&one);
        sum.peeks.merge(&one.posts);
        assert!(!sum.is_empty());
        let of = |(name, of): (_, &Latencies)| {
            (name, of.count, of.mean_ns(), of.quantile_ns(0.99), of.waited_ps)
        };
        assert_eq!(
            sum.iter().map(of).collect::<Vec<_>>(),
            [
                ("arrivals", 1, Some(7.0), Some(7.0), 0),
                ("posts", 2, Some(4.0), Some(4.0), 2_000),
                ("peeks", 1, Some(4.0), Some(4.0), 1_000),
            ]
        );
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.mean_ns(), latencies.quantile_ns(0.5)), (None, None));
        for ns in 1..=100 {
            latencies.record(ns * 1_000_000, 0);
        }
        let [median, most] = [0.5, 0.99].map(|share| latencies.quantile_ns(share).unwrap());
        assert!((49e3..=51e3).contains(&median) && (97e3..=100e3).contains(&most));
        assert_eq!(latencies.mean_ns(), Some(50_500.0));
        let mut both = latencies.clone();
        both.merge(&latencies);
        assert_eq!(both.count, 200);
        assert_eq!(both.quantile_ns(0.5), latencies.quantile_ns(0.5));
    }

    #[test]
    fn an_operation_that_arrives_while_the_unit_is_busy_waits() {
        let (mut unit, mut latency) = (MatchingUnit::default(), Latency::default());
        for (now, charged) in [(0, 50_000), (10, 100_000), (200, 150_000)] {
            unit.begin(now);
            unit.end(Operation::Arrival, charged, &mut latency);
        }
        let arrivals = &latency.arrivals;
        // Latencies in ns: 50 for the first; 40 of waiting + 50 for the second; 50 for the third,
        // for which the unit is idle.
        assert_eq!((arrivals.sum_ps, arrivals.waited_ps), (190_000, 40_000));
        assert_eq!(arrivals.quantile_ns(0.99), Some(90.0));
    }
}
