// SPDX-License-Identifier: BSD-2-Clause
//! The seeded hash of an index, which is replaced by another one if some of the index's buckets are
//! long.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::index::idle_timeout::IdleTimeout;
use crate::index::pattern::Pattern;
use crate::wildcards::GOLDEN_RATIO;

/// Maximum number of buckets of every class, and of every secondary index. There are three buckets
/// per entry at 5,120 entries, and one per four entries at 65,536.
pub(super) const BUCKETS: usize = 1 << 14;

/// If a search passes more entries than this in a bucket, the index is rebuilt with another hash.
pub(super) const LONG: u32 = 64;

/// Maximum number of doublings of the wait between two hashes. After the longest wait, rebuilding
/// the index costs next to nothing per insert.
const MOST_DOUBLINGS: u32 = 6;

/// The lowest bit of a hash that chooses the bucket. A mask limits the bits above it.
const BUCKET_SHIFT: u32 = u64::BITS - BUCKETS.trailing_zeros();

/// Returns the multiplier for `last + 1` buckets. With `BUCKETS` buckets, the highest bits of the
/// multiples of the seed choose the bucket. With fewer buckets, a mask keeps only lower bits, so
/// the seed is shifted down by as many bits as the mask removes.
const fn factor(seed: u64, last: u32) -> u64 {
    seed >> (BUCKETS.trailing_zeros() - last.count_ones()) | 1
}

/// The hash of an index. The fields that every operation loads come first.
#[repr(C)]
pub(super) struct SeededHash {
    /// Multiplier of the match bits; odd. Consists of the high bits of `seed` ([`factor`]).
    factor: u64,
    /// Number of buckets of each class, a power of two, minus one.
    last: u32,
    /// True if a search passed more than [`LONG`] entries since the flag was last reset.
    long: AtomicBool,
    seed: u64,
    /// Inserts since this hash was chosen.
    since: u32,
    /// How often in a row another hash was chosen as soon as it was allowed.
    doublings: u32,
}

impl SeededHash {
    /// Returns the first hash of an index with this many buckets per class, a power of two.
    pub(super) const fn with_buckets(buckets: usize) -> Self {
        let mut hash = Self {
            factor: 0,
            last: 0,
            long: AtomicBool::new(false),
            seed: GOLDEN_RATIO,
            since: u32::MAX,
            doublings: 0,
        };
        hash.set_buckets(buckets);
        hash
    }

    /// Sets the number of buckets of each class, a power of two.
    pub(super) const fn set_buckets(&mut self, buckets: usize) {
        self.last = (buckets - 1) as u32;
        self.set_seed(self.seed);
    }

    /// Returns the number of buckets of each class.
    #[inline(always)]
    pub(super) const fn buckets(&self) -> usize {
        self.last as usize + 1
    }

    const fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
        self.factor = factor(seed, self.last);
    }

    /// Resets the search statistics.
    pub(super) fn forget(&mut self) {
        *self.long.get_mut() = false;
        (self.since, self.doublings) = (u32::MAX, 0);
    }

    /// Returns the hash of the fields that a pattern compares.
    #[inline(always)]
    pub(super) const fn hash(&self, pattern: &Pattern, bits: u64, source: u32) -> u64 {
        pattern.hash(self.factor, bits, source)
    }

    /// Returns the bucket of a hash.
    #[inline(always)]
    pub(super) const fn bucket(&self, hash: u64) -> usize {
        (hash >> BUCKET_SHIFT) as usize & self.last as usize
    }

    /// Notes that a search passed this many entries.
    #[inline(always)]
    pub(super) fn note_passed(&self, entries: u32) {
        if entries > LONG {
            self.long.store(true, Relaxed);
        }
    }

    /// Counts inserts into a table of at most `entries` entries. Chooses another hash if a search
    /// passed many entries, unless the last choice is too recent. Returns true if the hash changed;
    /// the index must then be rebuilt.
    ///
    /// Entries with the same tag whose sources share a bucket do so under every hash. So the wait
    /// doubles while another hash does not help.
    pub(super) fn reseed_if_due(&mut self, inserts: usize, entries: usize) -> bool {
        self.since = self.since.saturating_add(inserts as u32);
        let wait = (IdleTimeout::PER_ENTRY * entries) as u32;
        if self.since < wait << self.doublings {
            return false;
        }
        if !std::mem::take(self.long.get_mut()) {
            self.doublings = 0;
            return false;
        }
        self.since = 0;
        self.doublings = MOST_DOUBLINGS.min(self.doublings + 1);
        self.set_seed(self.seed.wrapping_mul(GOLDEN_RATIO));
        true
    }
}

/// Returns match bits that have the same bucket for every `i` under the first hash of an index with
/// this many buckets per class, if the pattern compares all bits.
#[cfg(test)]
pub(super) fn colliding(i: u64, buckets: usize) -> u64 {
    let factor = factor(GOLDEN_RATIO, (buckets - 1) as u32);
    // Newton's iteration for the inverse: each step doubles the number of correct bits.
    let inverse = (0..6).fold(factor, |inverse, _| {
        inverse.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(inverse)))
    });
    i.wrapping_mul(inverse)
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, LONG, SeededHash};

    /// At first, searches report long buckets under every hash. Later they report none.
    #[test]
    fn entries_that_no_hash_separates_are_rehashed_less_and_less_often() {
        const ENTRIES: usize = 100;
        let mut seeded = SeededHash::with_buckets(BUCKETS);
        let mut tried = Vec::new();
        for inserts in 0..100 * ENTRIES {
            seeded.note_passed(LONG + 1);
            if seeded.reseed_if_due(1, ENTRIES) {
                tried.push(inserts);
            }
        }
        let waits: Vec<_> = tried.windows(2).map(|pair| (pair[1] - pair[0]) / ENTRIES).collect();
        assert_eq!(waits, [8, 16, 32]);
        while seeded.doublings != 0 {
            seeded.note_passed(LONG);
            *seeded.long.get_mut() = false;
            assert!(!seeded.reseed_if_due(1, ENTRIES));
        }
        seeded.note_passed(LONG + 1);
        assert!(seeded.reseed_if_due(1, ENTRIES), "at once");
    }
}
