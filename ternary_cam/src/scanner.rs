// SPDX-License-Identifier: BSD-2-Clause
//! The compare kernels for queues of others: words in age order, 16 at a time.
//!
//! A queue keeps a word for each entry, a fingerprint of what is matched, so that
//! entries that cannot match agree with a key in few of its 32 bits. The kernels
//! find the words that agree, oldest first, and the caller compares those entries in
//! full.

use crate::kernel::{self, FEW_WORDS, Kernel, WORDS, Word};
use crate::table::TableError;

/// Searches words with the kernel it was made for.
#[derive(Clone, Copy, Debug)]
pub struct Scanner(Kernel);

impl Scanner {
    /// Slices that are searched have a multiple of so many words,
    pub const STEP: usize = WORDS;

    /// or so many.
    pub const FEW: usize = FEW_WORDS;

    /// A scanner with this kernel.
    ///
    /// # Errors
    /// This processor does not support the kernel.
    pub fn new(kernel: Kernel) -> Result<Self, TableError> {
        if kernel.is_available() { Ok(Self(kernel)) } else { Err(TableError::Kernel(kernel)) }
    }

    /// Index of the first word that equals `value`, bits of `ignore` aside, and that
    /// `accept` takes.
    ///
    /// # Panics
    /// If the words are neither [`Scanner::FEW`] nor a multiple of [`Scanner::STEP`].
    #[inline]
    pub fn first(
        self,
        words: &[u32],
        value: u32,
        ignore: u32,
        accept: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        kernel::first_word(self.0, words, Word { value, ignore }, accept)
    }

    /// [`Scanner::first`] where each word has ignore bits of its own, as many as there
    /// are words.
    ///
    /// # Panics
    /// If they are neither [`Scanner::FEW`] nor a multiple of [`Scanner::STEP`], or the
    /// ignore bits are fewer.
    #[inline]
    pub fn first_ternary(
        self,
        (words, ignores): (&[u32], &[u32]),
        value: u32,
        ignore: u32,
        accept: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        kernel::first_ternary_word(self.0, words, ignores, Word { value, ignore }, accept)
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
            length in prop_oneof![Just(FEW_WORDS), (0..11_usize).prop_map(|steps| steps * WORDS)],
            words in prop::collection::vec((word(), word()), 11 * WORDS),
            value in word(), ignore in word(), refused in 0..4_usize,
        ) {
            let (words, ignores): (Vec<_>, Vec<_>) = words[..length].iter().copied().unzip();
            let agree = |own: &[u32]| {
                let agrees = |at: usize| (words[at] ^ value) & !(own[at] | ignore) == 0;
                (0..words.len()).filter(|&at| agrees(at)).collect::<Vec<_>>()
            };
            let none = vec![0; words.len()];
            for kernel in Kernel::available() {
                let scanner = Scanner::new(kernel).unwrap();
                let mut offered = Vec::new();
                let mut accept = |at| {
                    offered.push(at);
                    offered.len() > refused
                };
                let found = scanner.first(&words, value, ignore, &mut accept);
                prop_assert_eq!(found, agree(&none).get(refused).copied());
                prop_assert_eq!(&offered[..], &agree(&none)[..offered.len()]);
                offered.clear();
                let mut accept = |at| {
                    offered.push(at);
                    offered.len() > refused
                };
                let found = scanner.first_ternary((&words, &ignores), value, ignore, &mut accept);
                prop_assert_eq!(found, agree(&ignores).get(refused).copied());
                prop_assert_eq!(&offered[..], &agree(&ignores)[..offered.len()]);
            }
        }
    }
}
