// SPDX-License-Identifier: BSD-2-Clause
//! Orders of arrival that depend only on the seed, and take no memory.

/// Returns a number that depends on both arguments: the finalizer of SplitMix64.
pub(crate) const fn mix(seed: u64, value: u64) -> u64 {
    let mut x = (seed ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A permutation of the numbers below `count`.
///
/// ```text
/// at(i):  (left, right) = the halves of i, with the bits that count needs
///         four times:  (left, right) = (right, left ^ hash(right))     a permutation
///         again while the result is not below count                    cycle walking
/// ```
///
/// Black and Rogaway, *Ciphers with arbitrary finite domains* (2002). A shuffled
/// array would need memory for every message of the largest machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    count: u64,
    half: u32,
    seed: u64,
}

impl Permutation {
    pub(crate) const fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let half = bits.div_ceil(2);
        Self { count, half: if half == 0 { 1 } else { half }, seed }
    }

    /// Returns the number at an index below `count`.
    pub(crate) const fn at(&self, place: u64) -> u64 {
        let low = (1 << self.half) - 1;
        let mut number = place;
        loop {
            let (mut left, mut right) = (number >> self.half, number & low);
            let mut round = 0;
            while round < 4 {
                let mixed = mix(self.seed.wrapping_add(round), right) & low;
                (left, right) = (right, left ^ mixed);
                round += 1;
            }
            number = left << self.half | right;
            if number < self.count {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for count in [1, 2, 3, 5, 16, 17, 1000, 4097_u64] {
            let order = Permutation::new(count, 7);
            let mut seen = vec![false; count as usize];
            for place in 0..count {
                assert!(!std::mem::replace(&mut seen[order.at(place) as usize], true));
            }
        }
    }

    #[test]
    fn the_order_is_that_of_the_seed() {
        let order = |seed| {
            let order = Permutation::new(1000, seed);
            (0..1000).map(move |place| order.at(place)).collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        // A search of a list in posting order passes half of it on average.
        let remaining = |order: &[u64]| {
            let mut left: Vec<u64> = (0..1000).collect();
            let depths = order.iter().map(|number| {
                let depth = left.iter().position(|one| one == number).unwrap();
                left.remove(depth);
                depth as f64 / (left.len() + 1) as f64
            });
            depths.sum::<f64>() / 1000.0
        };
        assert!((0.45..0.55).contains(&remaining(&order(3))), "{}", remaining(&order(3)));
    }
}
