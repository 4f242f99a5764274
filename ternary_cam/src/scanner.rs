// SPDX-License-Identifier: BSD-2-Clause
//! Runs searches of queues outside of this crate with the vector instructions of a compare kernel.
//!
//! Such a queue stores a 16-bit word for each entry, its fingerprint, which it computes from the
//! matched fields. An entry that does not match a key seldom has the same word as the key. A kernel
//! determines which of 16 or 64 words equal a value. The queue knows the meaning of the words, and
//! which entries are live.

use crate::handle::TableError;
use crate::kernel::{self, Available, Kernel, LANES, Search};

/// Runs searches with a fixed kernel.
#[derive(Clone, Copy, Debug)]
pub struct Scanner(Available);

impl Scanner {
    /// Words per step.
    pub const STEP: usize = kernel::STEP;

    /// Words per page.
    pub const PAGE: usize = LANES;

    /// Creates a scanner with this kernel.
    ///
    /// # Errors
    /// This processor does not support the kernel.
    pub fn new(kernel: Kernel) -> Result<Self, TableError> {
        Available::new(kernel).map(Self).ok_or(TableError::Kernel(kernel))
    }

    /// Runs a search and returns its result.
    #[inline(always)]
    pub fn run<S: Search>(self, search: S) -> S::Found {
        kernel::enter(self.0, search)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Compare;
    use proptest::prelude::*;

    /// Finds the words of a page that equal a value: in the whole page, and in each of its steps.
    struct Equal<'w>(&'w [u16; Scanner::PAGE], u16);

    impl Search for Equal<'_> {
        type Found = (u64, Vec<u64>);

        #[inline(always)]
        fn run(self, compare: impl Compare) -> Self::Found {
            let steps = self.0.as_chunks().0.iter();
            (compare.page(self.0, self.1), steps.map(|step| compare.step(step, self.1)).collect())
        }
    }

    fn word() -> impl Strategy<Value = u16> {
        prop_oneof![Just(0), Just(u16::MAX), 0..4_u16, (0..16_u32).prop_map(|bit| 1 << bit)]
    }

    proptest! {
        #[test]
        fn every_kernel_finds_the_equal_words(
            words in prop::collection::vec(word(), Scanner::PAGE), value in word(),
        ) {
            let words = words.try_into().unwrap();
            let scanners = Kernel::available().map(|kernel| Scanner::new(kernel).unwrap());
            for (page, steps) in scanners.map(|scanner| scanner.run(Equal(&words, value))) {
                for (at, &word) in words.iter().enumerate() {
                    prop_assert_eq!(page >> at & 1 == 1, word == value);
                }
                for (number, step) in steps.into_iter().enumerate() {
                    prop_assert_eq!(step, page >> (number * Scanner::STEP) & 0xffff);
                }
            }
        }
    }
}
