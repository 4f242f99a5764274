// SPDX-License-Identifier: BSD-2-Clause
//! The number of distinct sources, and a hash map for small keys such as sources.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A map from small keys, such as sources and operations. A peer may choose them, but collisions
/// cost little: at most 4096 operations are stored, and a source has at most 23 bits if it is from
/// the match bits. So one multiplication per word suffices.
pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Hasher of [`Map`].
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        // The map uses the low bits for the place and the high bits for the tag.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.0 = (self.0.rotate_left(32) ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Largest source number that is counted. Larger numbers are not ranks.
const LARGEST: u32 = 1 << 20;

/// The distinct sources seen so far.
#[derive(Default)]
pub(super) struct DistinctSources {
    /// One bit per source.
    bits: Vec<u64>,
    count: u32,
}

impl DistinctSources {
    /// Counts a source. Returns true if it is new and at most [`LARGEST`].
    pub(super) fn note(&mut self, source: u32) -> bool {
        let (word, bit) = (source as usize / 64, 1 << (source % 64));
        if word >= self.bits.len() {
            if source > LARGEST {
                return false;
            }
            self.bits.resize(word + 1, 0);
        }
        let new = self.bits[word] & bit == 0;
        self.count += u32::from(new);
        self.bits[word] |= bit;
        new
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_counts_once() {
        let mut seen = DistinctSources::default();
        for source in [3, 64, 3, 0, 64, u32::MAX] {
            seen.note(source);
        }
        assert_eq!(seen.count(), 3);
    }

    #[test]
    fn sources_up_to_the_largest_count() {
        let mut seen = DistinctSources::default();
        assert!(seen.note(LARGEST) && !seen.note(LARGEST) && !seen.note(LARGEST + 64));
        // There is memory up to the largest source, rounded up to a word.
        assert!(seen.note(LARGEST + 63) && seen.note(0) && seen.note(63) && !seen.note(0));
        assert_eq!(seen.count(), 4);
    }

    fn hash(key: impl std::hash::Hash) -> u64 {
        let mut mix = Mix::default();
        key.hash(&mut mix);
        mix.finish()
    }

    /// Checks that no place of a table, and no tag, is much more frequent than the others.
    fn check_spread(hashes: &[u64]) {
        let mut distinct = hashes.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), hashes.len());
        // A random hash has at most about 15 of these keys at a place or with a tag.
        for part in [|hash| hash & 1023, |hash: u64| hash >> 57 << 3 | hash & 7] {
            let mut keys = vec![0; 1024];
            hashes.iter().for_each(|&hash| keys[part(hash) as usize] += 1);
            assert!(keys.iter().all(|&keys| keys <= 24), "{:?}", keys.iter().max());
        }
    }

    #[test]
    fn small_keys_spread_over_places_and_tags() {
        for step in [1_u32, 2, 64, 1 << 12] {
            check_spread(&(0..4096).map(|n| hash(n * step)).collect::<Vec<_>>());
            let pairs = (0..64).flat_map(|a| (0..64).map(move |b| hash((a, b * step))));
            check_spread(&pairs.collect::<Vec<_>>());
        }
        let mut bytes = Mix::default();
        bytes.write(&[3, 5]);
        assert_eq!(bytes.finish(), hash((3_u32, 5_u32)));
    }
}
