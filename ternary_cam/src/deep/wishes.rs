// SPDX-License-Identifier: BSD-2-Clause
//! Wishes: rebuild requests of searches, recorded without changing the table.
//!
//! A search takes the table by shared reference, so it cannot build a missing structure. It leaves
//! a wish, which a later insert or remove fulfils. Wishes are relaxed atomics: they affect only
//! cost, never a result, so a lost or torn wish does no harm.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::wildcards::Wildcards;

/// Number of searches with the same wildcards before an index is built for them: keys that all
/// ignore different bits must not build one each.
const ENOUGH: u64 = 4;

/// Number of wildcards that are counted at a time.
const COUNTERS: usize = 8;

/// The counting bits of a counter; the other bits identify the wildcards.
const COUNT: u64 = 0xff;

/// A rebuild request of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// An index for keys with these wildcards.
    Keys(Wildcards),
    /// Put all entries into the scan, for keys that no index serves.
    ScanAll,
    /// Stop serving keys with a source in a home index that also serves keys without.
    SplitHome,
    /// Stop requesting this: the home index is in use.
    HomeUsed,
}

/// The pending wishes.
#[derive(Default)]
pub(crate) struct Wishes {
    /// One bit for each variant of [`Wish`].
    pending: AtomicU8,
    /// The keys of [`Wish::Keys`].
    ignore: AtomicU64,
    any_source: AtomicBool,
    counters: [AtomicU64; COUNTERS],
}

impl Wishes {
    const KEYS: u8 = 1 << 0;
    const SCAN_ALL: u8 = 1 << 1;
    const SPLIT_HOME: u8 = 1 << 2;
    const HOME_USED: u8 = 1 << 3;

    #[inline]
    pub(crate) fn add(&self, wish: Wish) {
        let bit = match wish {
            Wish::Keys(keys) => {
                self.ignore.store(keys.ignore, Relaxed);
                self.any_source.store(keys.any_source, Relaxed);
                Self::KEYS
            }
            Wish::ScanAll => Self::SCAN_ALL,
            Wish::SplitHome => Self::SPLIT_HOME,
            Wish::HomeUsed => Self::HOME_USED,
        };
        // Usually a repeated search leaves the same wish.
        if self.pending.load(Relaxed) & bit == 0 {
            self.pending.fetch_or(bit, Relaxed);
        }
    }

    /// Counts a search with wildcards that no index serves. Returns true if there were enough of
    /// them for [`Wish::Keys`].
    #[cold]
    pub(crate) fn count(&self, keys: Wildcards) -> bool {
        let hash = keys.hash();
        let counter = &self.counters[(hash >> 56) as usize % COUNTERS];
        let known = counter.load(Relaxed);
        let count = if (known ^ hash) & !COUNT == 0 { (known & COUNT) + 1 } else { 1 };
        let enough = count >= ENOUGH;
        counter.store(if enough { 0 } else { hash & !COUNT | count }, Relaxed);
        enough
    }

    #[inline]
    pub(crate) fn are_pending(&self) -> bool {
        self.pending.load(Relaxed) != 0
    }

    /// Takes all wishes.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Wish> + use<> {
        let pending = std::mem::take(self.pending.get_mut());
        let keys =
            Wildcards { ignore: *self.ignore.get_mut(), any_source: *self.any_source.get_mut() };
        [
            (Self::KEYS, Wish::Keys(keys)),
            (Self::SCAN_ALL, Wish::ScanAll),
            (Self::SPLIT_HOME, Wish::SplitHome),
            (Self::HOME_USED, Wish::HomeUsed),
        ]
        .into_iter()
        .filter_map(move |(bit, wish)| (pending & bit != 0).then_some(wish))
    }
}

#[cfg(test)]
mod tests {
    use super::{ENOUGH, Wildcards, Wish, Wishes};

    #[test]
    fn only_wildcards_that_come_again_are_enough() {
        let wishes = Wishes::default();
        for ignore in 0..1000 {
            assert!(!wishes.count(Wildcards { ignore, any_source: false }));
        }
        let keys = Wildcards { ignore: 7, any_source: true };
        for count in 1..=ENOUGH {
            assert_eq!(wishes.count(keys), count == ENOUGH);
        }
    }

    #[test]
    fn every_wish_is_taken_once() {
        let mut wishes = Wishes::default();
        let keys = Wish::Keys(Wildcards { ignore: 7, any_source: true });
        for wish in [keys, Wish::ScanAll, Wish::SplitHome, Wish::HomeUsed] {
            assert!(!wishes.are_pending());
            wishes.add(wish);
            wishes.add(wish);
            assert!(wishes.are_pending());
            assert!(wishes.take().eq([wish]));
        }
        assert!(!wishes.are_pending());
        assert_eq!(wishes.take().count(), 0);
    }
}
