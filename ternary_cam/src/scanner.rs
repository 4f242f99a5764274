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

use crate::kernel::{self, FEW_WORDS, Kernel, LANES, WORDS, Word};
use crate::table::TableError;

/// 64 words and what there is to know of them, in one piece: who adds or finds a word
/// looks up one address.
///
/// ```text
///            word 0     1    2  ...  63
/// words    [  u32  |  u32 | u32 ... u32 ]   4 cache lines
/// ignores  [  u32  |  u32 | u32 ... u32 ]   4 cache lines
/// names    [  u32  |  u32 | u32 ... u32 ]   4 cache lines
/// live     [  u64  ]
/// ```
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Page {
    /// What is compared.
    pub words: [u32; Self::LEN],
    /// Bits of each word that are not compared.
    pub ignores: [u32; Self::LEN],
    /// The caller's name for each word; a search only hands it over.
    pub names: [u32; Self::LEN],
    /// Bit `i` is set when word `i` is there.
    pub live: u64,
}

impl Page {
    /// Words in a page.
    pub const LEN: usize = LANES;

    /// No word is there.
    pub const EMPTY: Self =
        Self { words: [0; Self::LEN], ignores: [0; Self::LEN], names: [0; Self::LEN], live: 0 };
}

/// Searches words with the kernel it was made for: for those that equal a value, bits of
/// `ignore` aside, and are there, the lower first. `accept` turns the name of one into
/// what was found, or refuses it.
#[derive(Clone, Copy, Debug)]
pub struct Scanner(Kernel);

impl Scanner {
    /// Words that are compared at once.
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

    /// What is found first where no word ignores a bit that is not in `ignore`.
    #[inline]
    pub fn first<T>(
        self,
        pages: &[Page],
        value: u32,
        ignore: u32,
        accept: impl FnMut(u32) -> Option<T>,
    ) -> Option<T> {
        kernel::first_word(self.0, pages, Word { value, ignore }, accept)
    }

    /// What is found first where each word has ignore bits of its own.
    #[inline]
    pub fn first_ternary<T>(
        self,
        pages: &[Page],
        value: u32,
        ignore: u32,
        accept: impl FnMut(u32) -> Option<T>,
    ) -> Option<T> {
        kernel::first_ternary_word(self.0, pages, Word { value, ignore }, accept)
    }

    /// [`Scanner::first_ternary`] among the words of a page that `mask` selects.
    #[inline(always)]
    pub fn first_of_page<T>(
        self,
        page: &Page,
        mask: u64,
        value: u32,
        ignore: u32,
        accept: impl FnMut(u32) -> Option<T>,
    ) -> Option<T> {
        kernel::first_of_page(self.0, page, mask, Word { value, ignore }, accept)
    }

    /// [`Scanner::first_ternary`] among `length` words of a page from `at` on, a step or
    /// half of one, without a kernel; `at` is a multiple of `length`.
    #[inline(always)]
    pub fn first_of_few<T>(
        page: &Page,
        (at, length): (usize, usize),
        value: u32,
        ignore: u32,
        accept: impl FnMut(u32) -> Option<T>,
    ) -> Option<T> {
        debug_assert!([Self::HALF, Self::STEP].contains(&length) && at % length == 0);
        kernel::first_of_few(page, at, length, Word { value, ignore }, accept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word() -> impl Strategy<Value = u32> {
        prop_oneof![Just(0), Just(u32::MAX), 0..4_u32, (0..32_u32).prop_map(|bit| 1 << bit)]
    }

    prop_compose! {
        /// A page whose names count from `first`.
        fn page(first: u32)(
            words in prop::collection::vec((word(), word()), Page::LEN),
            live in any::<u64>(),
        ) -> Page {
            let mut page = Page { live, ..Page::EMPTY };
            for (at, word) in words.into_iter().enumerate() {
                (page.words[at], page.ignores[at]) = word;
                page.names[at] = first + at as u32;
            }
            page
        }
    }

    fn pages() -> impl Strategy<Value = Vec<Page>> {
        (0..4_usize, page(0), page(64), page(128)).prop_map(|(count, first, second, third)| {
            let mut pages = vec![first, second, third];
            pages.truncate(count);
            pages
        })
    }

    /// Names that agree, by the definition.
    fn agree(pages: &[Page], key: Word, own: bool) -> Vec<u32> {
        let of_page = |page: &Page| {
            let ignore = |at: usize| if own { page.ignores[at] } else { 0 };
            let agrees = |&at: &usize| key.differs(page.words[at], ignore(at)) == 0;
            let there = |at: &usize| page.live >> at & 1 == 1;
            let found = (0..Page::LEN).filter(there).filter(agrees);
            found.map(|at| page.names[at]).collect::<Vec<_>>()
        };
        pages.iter().flat_map(of_page).collect()
    }

    /// What a search finds that refuses the first so many, and what it was offered.
    fn offered(
        refused: usize,
        search: impl FnOnce(&mut dyn FnMut(u32) -> Option<u32>) -> Option<u32>,
    ) -> (Option<u32>, Vec<u32>) {
        let mut offered = Vec::new();
        let found = search(&mut |name| {
            offered.push(name);
            (offered.len() > refused).then_some(name)
        });
        (found, offered)
    }

    proptest! {
        #[test]
        fn every_kernel_offers_what_agrees_in_order(
            pages in pages(), value in word(), ignore in word(), refused in 0..4_usize,
            mask in any::<u64>(),
        ) {
            let key = Word { value, ignore };
            let expected = |mut names: Vec<u32>| {
                let found = names.get(refused).copied();
                names.truncate(refused + 1);
                (found, names)
            };
            for kernel in Kernel::available() {
                let scanner = Scanner::new(kernel).unwrap();
                let found = offered(refused, |accept| scanner.first(&pages, value, ignore, accept));
                prop_assert_eq!(found, expected(agree(&pages, key, false)));
                let found =
                    offered(refused, |accept| scanner.first_ternary(&pages, value, ignore, accept));
                prop_assert_eq!(found, expected(agree(&pages, key, true)));
                for (number, page) in pages.iter().enumerate() {
                    let found = offered(refused, |accept| {
                        scanner.first_of_page(page, mask, value, ignore, accept)
                    });
                    let there = Page { live: page.live & mask, ..page.clone() };
                    prop_assert_eq!(found, expected(agree(&[there], key, true)));
                    for length in [Scanner::HALF, Scanner::STEP] {
                        let at = (number + 1) * length;
                        let found = offered(refused, |accept| {
                            Scanner::first_of_few(page, (at, length), value, ignore, accept)
                        });
                        let few = ((1 << length) - 1) << at;
                        let there = Page { live: page.live & few, ..page.clone() };
                        prop_assert_eq!(found, expected(agree(&[there], key, true)));
                    }
                }
            }
        }
    }
}
