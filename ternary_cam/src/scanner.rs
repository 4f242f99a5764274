// SPDX-License-Identifier: BSD-2-Clause
//! The compare kernels for queues of others: words in age order, 16 at a time.
//!
//! A queue keeps a word for each entry, a fingerprint of what is matched, so that
//! entries that cannot match agree with a key in few of its 32 bits, and a bitmap of
//! those that are there. The kernels find the words that agree, oldest first, and the
//! caller compares those entries in full.
//!
//! An entry that leaves only leaves the bitmap: a word that was written a moment ago
//! could not be read as a part of a vector without waiting for the write.

use crate::kernel::{self, FEW_WORDS, Kernel, WORDS, Word};
use crate::table::TableError;

/// Searches words with the kernel it was made for.
#[derive(Clone, Copy, Debug)]
pub struct Scanner(Kernel);

impl Scanner {
    /// Slices that are searched have a multiple of so many words.
    pub const STEP: usize = WORDS;

    /// Half a step, see [`Scanner::first_of_few`].
    pub const HALF: usize = FEW_WORDS;

    /// A scanner with this kernel.
    ///
    /// # Errors
    /// This processor does not support the kernel.
    pub fn new(kernel: Kernel) -> Result<Self, TableError> {
        if kernel.is_available() { Ok(Self(kernel)) } else { Err(TableError::Kernel(kernel)) }
    }

    /// Index of the first word that equals `value`, bits of `ignore` aside, whose bit
    /// in `live` is set, and that `accept` takes.
    ///
    /// # Panics
    /// If the words are no multiple of [`Scanner::STEP`], or `live` has more bits.
    #[inline]
    pub fn first(
        self,
        words: &[u32],
        live: &[u64],
        value: u32,
        ignore: u32,
        accept: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        kernel::first_word(self.0, words, live, Word { value, ignore }, accept)
    }

    /// [`Scanner::first`] where each word has ignore bits of its own, as many as there
    /// are words.
    ///
    /// # Panics
    /// If they are no multiple of [`Scanner::STEP`], or the ignore bits are fewer, or
    /// `live` has more bits.
    #[inline]
    pub fn first_ternary(
        self,
        words: (&[u32], &[u32]),
        live: &[u64],
        value: u32,
        ignore: u32,
        accept: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        kernel::first_ternary_word(self.0, words, live, Word { value, ignore }, accept)
    }

    /// [`Scanner::first`] in a step or half of one, without a kernel.
    #[inline(always)]
    pub fn first_of_few(
        words: &[u32],
        live: u64,
        value: u32,
        ignore: u32,
        accept: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        debug_assert!([Self::HALF, Self::STEP].contains(&words.len()));
        kernel::first_of_few(words, live, Word { value, ignore }, accept)
    }

    /// [`Scanner::first_ternary`] in a step or half of one, without a kernel.
    #[inline]
    pub fn first_ternary_of_few(
        (words, ignores): (&[u32], &[u32]),
        live: u64,
        value: u32,
        ignore: u32,
        accept: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        debug_assert!([Self::HALF, Self::STEP].contains(&words.len()));
        kernel::first_ternary_of_few(words, ignores, live, Word { value, ignore }, accept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word() -> impl Strategy<Value = u32> {
        prop_oneof![Just(0), Just(u32::MAX), 0..4_u32, (0..32_u32).prop_map(|bit| 1 << bit)]
    }

    proptest! {
        #[test]
        fn every_kernel_offers_what_agrees_in_order(
            steps in 0..11_usize,
            words in prop::collection::vec((word(), word()), 11 * WORDS),
            bitmap in any::<[u64; 3]>(),
            value in word(), ignore in word(), refused in 0..4_usize,
        ) {
            let (words, ignores): (Vec<_>, Vec<_>) = words[..steps * WORDS].iter().copied().unzip();
            let agree = |own: &[u32]| {
                let agrees = |at: usize| {
                    bitmap[at / 64] >> (at % 64) & 1 == 1
                        && (words[at] ^ value) & !(own[at] | ignore) == 0
                };
                (0..words.len()).filter(|&at| agrees(at)).collect::<Vec<_>>()
            };
            let none = vec![0; words.len()];
            let live = &bitmap[..words.len().div_ceil(64)];
            for kernel in Kernel::available() {
                let scanner = Scanner::new(kernel).unwrap();
                let mut offered = Vec::new();
                let mut accept = |at| {
                    offered.push(at);
                    offered.len() > refused
                };
                let found = scanner.first(&words, live, value, ignore, &mut accept);
                prop_assert_eq!(found, agree(&none).get(refused).copied());
                prop_assert_eq!(&offered[..], &agree(&none)[..offered.len()]);
                offered.clear();
                let mut accept = |at| {
                    offered.push(at);
                    offered.len() > refused
                };
                let found = scanner.first_ternary((&words, &ignores), live, value, ignore, &mut accept);
                prop_assert_eq!(found, agree(&ignores).get(refused).copied());
                prop_assert_eq!(&offered[..], &agree(&ignores)[..offered.len()]);
            }
        }

        #[test]
        fn few_are_offered_like_many(
            words in prop::collection::vec((word(), word()), WORDS),
            live in any::<u64>(),
            value in word(), ignore in word(), refused in 0..4_usize,
        ) {
            let (words, ignores): (Vec<_>, Vec<_>) = words.into_iter().unzip();
            let scanner = Scanner::new(Kernel::Scalar).unwrap();
            for length in [FEW_WORDS, WORDS] {
                let live = live & ((1 << length) - 1);
                let takes = |times: &mut usize| {
                    *times += 1;
                    *times > refused
                };
                let (few, all) = ((&words[..length], &ignores[..length]), (&words, &ignores));
                let (mut seen, mut expected) = (0, 0);
                let accept = |_| takes(&mut seen);
                let found = Scanner::first_ternary_of_few(few, live, value, ignore, accept);
                let accept = |_| takes(&mut expected);
                let all = scanner.first_ternary((all.0, all.1), &[live], value, ignore, accept);
                prop_assert_eq!((found, seen), (all, expected));

                let (mut seen, mut expected) = (0, 0);
                let accept = |_| takes(&mut seen);
                let found = Scanner::first_of_few(few.0, live, value, ignore, accept);
                let accept = |_| takes(&mut expected);
                let all = scanner.first(&words, &[live], value, ignore, accept);
                prop_assert_eq!((found, seen), (all, expected));
            }
        }
    }
}
