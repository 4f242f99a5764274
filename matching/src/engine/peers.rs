// SPDX-License-Identifier: BSD-2-Clause
//! Numbers of peers: how many there are, and the hash that finds what is kept
//! for one.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A map from small keys of this program's own making, which no attacker picks
/// to collide, so that one multiplication a word does.
pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// See [`Map`].
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        // The map picks a place by the low bits and a tag by the high ones.
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

/// Largest number that is counted: what comes above is some other number.
const LARGEST: u32 = 1 << 20;

/// The distinct sources seen so far.
#[derive(Default)]
pub(super) struct Seen {
    /// A bit a source.
    bits: Vec<u64>,
    count: u32,
}

impl Seen {
    /// Whether the source is new.
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
        let mut seen = Seen::default();
        for source in [3, 64, 3, 0, 64, u32::MAX] {
            seen.note(source);
        }
        assert_eq!(seen.count(), 3);
    }
}
