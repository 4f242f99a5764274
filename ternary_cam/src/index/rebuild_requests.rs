// SPDX-License-Identifier: BSD-2-Clause
//! Requests that searches leave, without changing the table, to have structures built or rebuilt.
//!
//! A search takes the table by shared reference, so it cannot build a missing structure. It leaves
//! a request, which a later insert or remove fulfils. Requests are relaxed atomics: they affect
//! only cost, never a result, so a lost or torn request does no harm.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::wildcards::Wildcards;

/// Number of searches with the same wildcards after which an index is built for such keys. If all
/// keys ignore different bits, no index is built.
const ENOUGH: u64 = 4;

/// Number of different wildcards whose searches are counted at a time.
const COUNTERS: usize = 8;

/// The counting bits of a counter; the other bits identify the wildcards.
const COUNT: u64 = 0xff;

/// A rebuild request of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RebuildRequest {
    /// Build an index for keys with these wildcards.
    Keys(Wildcards),
    /// Put all entries into the scan, for keys that no index serves.
    ScanAll,
    /// Stop serving keys without a source in the primary index, which slows down keys with one.
    SplitPrimary,
    /// Keep the primary index, which is in use; searches need not request this again for a while.
    PrimaryUsed,
}

/// The pending requests.
#[derive(Default)]
pub(crate) struct RebuildRequests {
    /// One bit for each variant of [`RebuildRequest`].
    pending: AtomicU8,
    /// Ignore bits of the keys of [`RebuildRequest::Keys`].
    ignore: AtomicU64,
    /// True if the keys of [`RebuildRequest::Keys`] name no source.
    any_source: AtomicBool,
    /// Numbers of searches, indexed by a hash of their wildcards.
    counters: [AtomicU64; COUNTERS],
}

impl RebuildRequests {
    const KEYS: u8 = 1 << 0;
    const SCAN_ALL: u8 = 1 << 1;
    const SPLIT_PRIMARY: u8 = 1 << 2;
    const PRIMARY_USED: u8 = 1 << 3;

    #[inline]
    pub(crate) fn add(&self, request: RebuildRequest) {
        let bit = match request {
            RebuildRequest::Keys(keys) => {
                self.ignore.store(keys.ignore, Relaxed);
                self.any_source.store(keys.any_source, Relaxed);
                Self::KEYS
            }
            RebuildRequest::ScanAll => Self::SCAN_ALL,
            RebuildRequest::SplitPrimary => Self::SPLIT_PRIMARY,
            RebuildRequest::PrimaryUsed => Self::PRIMARY_USED,
        };
        // Usually an earlier search has left the same request.
        if self.pending.load(Relaxed) & bit == 0 {
            self.pending.fetch_or(bit, Relaxed);
        }
    }

    /// Counts a search with wildcards that no index serves. Returns true if there were enough of
    /// these searches for [`RebuildRequest::Keys`]; the count then starts again.
    #[cold]
    pub(crate) fn count_search(&self, keys: Wildcards) -> bool {
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

    /// Removes all pending requests and returns them.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = RebuildRequest> + use<> {
        let pending = std::mem::take(self.pending.get_mut());
        let keys =
            Wildcards { ignore: *self.ignore.get_mut(), any_source: *self.any_source.get_mut() };
        [
            (Self::KEYS, RebuildRequest::Keys(keys)),
            (Self::SCAN_ALL, RebuildRequest::ScanAll),
            (Self::SPLIT_PRIMARY, RebuildRequest::SplitPrimary),
            (Self::PRIMARY_USED, RebuildRequest::PrimaryUsed),
        ]
        .into_iter()
        .filter_map(move |(bit, request)| (pending & bit != 0).then_some(request))
    }
}

#[cfg(test)]
mod tests {
    use super::{ENOUGH, RebuildRequest, RebuildRequests, Wildcards};

    #[test]
    fn only_wildcards_that_come_again_are_enough() {
        let requests = RebuildRequests::default();
        for ignore in 0..1000 {
            assert!(!requests.count_search(Wildcards { ignore, any_source: false }));
        }
        let keys = Wildcards { ignore: 7, any_source: true };
        for count in 1..=ENOUGH {
            assert_eq!(requests.count_search(keys), count == ENOUGH);
        }
    }

    #[test]
    fn every_request_is_taken_once() {
        let mut requests = RebuildRequests::default();
        let keys = RebuildRequest::Keys(Wildcards { ignore: 7, any_source: true });
        for request in [
            keys,
            RebuildRequest::ScanAll,
            RebuildRequest::SplitPrimary,
            RebuildRequest::PrimaryUsed,
        ] {
            assert!(!requests.are_pending());
            requests.add(request);
            requests.add(request);
            assert!(requests.are_pending());
            assert!(requests.take().eq([request]));
        }
        assert!(!requests.are_pending());
        assert_eq!(requests.take().count(), 0);
    }
}
