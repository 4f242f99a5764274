// SPDX-License-Identifier: BSD-2-Clause
//! Histograms over powers of two.

use serde::{Deserialize, Serialize};

use crate::sums::add;

/// Number of buckets of a [`Histogram`]: 0, 1, 2-3, 4-7, ... up to 2^31 and more.
pub const BUCKETS: usize = 33;

/// A histogram over powers of two: bucket 0 counts zeros, bucket `b` counts values from `2^(b-1)`
/// to `2^b - 1`. The last bucket also counts all larger values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram {
    /// Counts per bucket; trailing empty buckets are left out.
    pub(super) counts: Vec<u64>,
}

impl Histogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let bucket = ((u64::BITS - value.leading_zeros()) as usize).min(BUCKETS - 1);
        match self.counts.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.widen(bucket),
        }
    }

    /// Counts one value in a bucket that was not allocated yet.
    #[cold]
    fn widen(&mut self, bucket: usize) {
        self.counts.resize(bucket + 1, 0);
        self.counts[bucket] = 1;
    }

    /// Adds another histogram's counts to this one's.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            add(mine, *theirs);
        }
    }

    /// `(lowest value, highest value, count)` of every bucket that is not empty.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bucket, &count)| {
            match bucket {
                0 => (0, 0, count),
                b => (1 << (b - 1), (1 << b) - 1, count),
            }
        })
    }

    /// Number of recorded values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}
