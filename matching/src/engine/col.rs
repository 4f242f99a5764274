// SPDX-License-Identifier: BSD-2-Clause
//! COL: queues of collective elements. An operation gets as many queues as its searches compared
//! elements on average (section 4.1, Algorithms 1 and 2 of Ghazimirsaeed, Grant, Afsahi 2019).
//!
//! ```text
//! pq = queue of the elements whose p is being profiled; T = number of other queues of COL
//!
//! insert(e), e of operation c with parameters p:             (Algorithm 1)
//!   if p is not profiled:  e -> pq, and profile               (lines 4-5)
//!   else, once for each p:                                    (lines 7-15)
//!     nq = average number of traversals in the profile
//!     if nq + T < k_C * sqrt(n) and nq > queues of c's last level:
//!       a new level of c with nq queues; T += nq
//!   e -> last level of c, queue e.source mod nq
//!
//! search(c, source):                                         (Algorithm 2)
//!   pq; for each level of c, first to last: queue source mod nq of the level
//! ```
//!
//! `p` is here a communicator's use of an operation: its tag and the context id, which stands for
//! the communicator's size. The range of message sizes is not part of p: a posted receive has a
//! buffer and no message, so its size would put a receive and its message into different profiles.
//!
//! Details that the paper leaves open:
//! - *A call* of p, the first of which is profiled: the call is over when an element of p arrives
//!   and none is left in pq. A nonblocking call is also over when its tag changes. A call that
//!   never ends is profiled for [`LONG_CALL`] searches. The profile averages the searches that
//!   compared any element; if no search did, the next call is profiled as well.
//! - *Line 9 with a large nq*: taken literally, MPI_Gather on 1024 processes would get no queue at
//!   all, because half of 1024 is above the cap. The evaluation says that it gets as many queues as
//!   the cap allows (sqrt(1024) = 32 with k = 1), so nq is limited to the cap minus the queues made
//!   so far.
//! - *No room*: of the last levels of all operations, the one with the most queues also becomes a
//!   level of c. If there is no such level, or if one traversal is enough, p stays in pq.
//! - *Number of p*: at most [`MOST_PROFILES`], so that match bits of a wrong layout cannot exhaust
//!   memory. All further p share one profile that stays in pq.
//! - *Elements of pq and of older levels* are not always the older ones, because communicators
//!   share the levels of an operation. Ages decide.

use std::cell::Cell;

use super::{
    peers::Map,
    queue::{Best, Lookup, Queues},
};
use crate::CollectiveId;

/// Searches after which the profile of a first call is complete.
const LONG_CALL: u64 = 1024;

/// Maximum number of p that are profiled separately.
const MOST_PROFILES: usize = 4096;

/// Index in `profiles` of the profile that all p beyond [`MOST_PROFILES`] share. Also the index in
/// `levels` of their operation, which has no levels.
const OTHERS: usize = 0;

/// The id of the shared profile: no communicator has this number.
const NO_OPERATION: CollectiveId =
    CollectiveId { communicator: u32::MAX, operation: CollectiveId::NONBLOCKING };

/// The queues of an operation at one level, selected by source.
#[derive(Clone, Copy)]
struct Level {
    first: usize,
    queues: u32,
    /// 2^64 / queues, rounded up.
    reciprocal: u64,
    /// The level belongs to another operation.
    lent: bool,
}

impl Level {
    const fn new(first: usize, queues: u32) -> Self {
        let reciprocal = (u64::MAX / queues as u64).wrapping_add(1);
        Self { first, queues, reciprocal, lent: false }
    }

    /// The queue of a source: `first` plus source mod `queues`, computed as the fraction of the
    /// quotient times the divisor. (A division would take a quarter of a search.)
    #[inline]
    fn queue(&self, source: u32) -> usize {
        let fraction = self.reciprocal.wrapping_mul(source.into());
        self.first + ((u128::from(fraction) * u128::from(self.queues)) >> 64) as usize
    }
}

/// The profile of one p.
struct CollectiveProfile {
    id: CollectiveId,
    /// Index of the operation in `levels`.
    operation: usize,
    /// Number of elements of this p in pq.
    in_pq: u32,
    /// Tag of the call being profiled.
    call: u32,
    /// Number of elements that the searches of pq for this p compared.
    compared: Cell<u64>,
    /// Number of searches of pq for this p that compared any element.
    searches: Cell<u64>,
    /// The first call is over, so the searches are no longer profiled.
    done: bool,
}

/// The collective queues; see the module.
pub(super) struct Col {
    pq: usize,
    /// Index in `profiles` of each p.
    known: Map<CollectiveId, usize>,
    profiles: Vec<CollectiveProfile>,
    /// Index of the profile used last, which is often the next one as well.
    last: Cell<usize>,
    /// Index in `levels` of each operation.
    operations: Map<u32, usize>,
    levels: Vec<Vec<Level>>,
    dedicated: usize,
}

impl Col {
    pub(super) fn new(queues: &mut impl Queues) -> Self {
        Self {
            pq: queues.make(1),
            known: Map::default(),
            profiles: vec![CollectiveProfile {
                done: true,
                ..CollectiveProfile::new(NO_OPERATION, OTHERS)
            }],
            last: Cell::new(OTHERS),
            operations: Map::default(),
            levels: vec![Vec::new()],
            dedicated: 0,
        }
    }

    /// Number of queues made, without pq.
    pub(super) fn dedicated(&self) -> usize {
        self.dedicated
    }

    /// Returns true if any collective element was ever placed.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.profiles.len() > 1
    }

    /// Number of queues by level, summed over all operations.
    pub(super) fn levels(&self) -> Vec<u64> {
        let mut sums = vec![0; self.levels.iter().map(Vec::len).max().unwrap_or(0)];
        for levels in &self.levels {
            for (sum, level) in sums.iter_mut().zip(levels).filter(|(_, level)| !level.lent) {
                *sum += u64::from(level.queues);
            }
        }
        sums
    }

    /// Ends the first call of `id` (operation and communicator) if it is over, and returns the
    /// queue for a new element of `source`. `call` is the tag of the element, and `cap` is the
    /// maximum number of dedicated queues.
    pub(super) fn place(
        &mut self,
        id: CollectiveId,
        call: u32,
        source: u32,
        cap: usize,
        queues: &mut impl Queues,
    ) -> usize {
        let at = self.find(id).unwrap_or_else(|| self.add(id));
        let profile = &self.profiles[at];
        if !profile.done && profile.is_over(call) {
            self.finish(at, cap, queues);
        }
        let profile = &mut self.profiles[at];
        profile.call = call;
        match self.levels[profile.operation].last() {
            Some(level) if profile.done => level.queue(source),
            _ => {
                profile.in_pq += 1;
                self.pq
            }
        }
    }

    fn find(&self, id: CollectiveId) -> Option<usize> {
        let last = self.last.get();
        if self.profiles.get(last).is_some_and(|profile| profile.id == id) {
            return Some(last);
        }
        if let Some(&at) = self.known.get(&id) {
            self.last.set(at);
            return Some(at);
        }
        (self.profiles.len() > MOST_PROFILES).then_some(OTHERS)
    }

    #[cold]
    fn add(&mut self, id: CollectiveId) -> usize {
        let operation = *self.operations.entry(id.operation).or_insert_with(|| {
            self.levels.push(Vec::new());
            self.levels.len() - 1
        });
        let at = self.profiles.len();
        self.profiles.push(CollectiveProfile::new(id, operation));
        self.known.insert(id, at);
        at
    }

    /// Ends the first call of a p. Adds a level to its operation if a search compared more elements
    /// on average than the last level has queues. The new level has a queue for each element
    /// compared, or fewer if the cap requires it. In the second case, if the largest last level of
    /// all operations has more queues, the operation shares that level instead.
    #[cold]
    fn finish(&mut self, at: usize, cap: usize, queues: &mut impl Queues) {
        let profile = &mut self.profiles[at];
        profile.done = true;
        let operation = profile.operation;
        let wanted = profile.compared.get().div_ceil(profile.searches.get()) as usize;
        let size = |level: Option<&Level>| level.map_or(1, |level| level.queues as usize);
        let last = size(self.levels[operation].last());
        if wanted <= last {
            return;
        }
        let count = cap.saturating_sub(self.dedicated).min(wanted);
        let lent = self.levels.iter().filter_map(|levels| levels.last());
        let lent = lent.max_by_key(|level| level.queues).copied();
        if count > last && count >= size(lent.as_ref()).min(wanted) {
            let level = Level::new(queues.make(count), count as u32);
            self.levels[operation].push(level);
            self.dedicated += count;
        } else if let Some(level) = lent.filter(|lent| lent.queues as usize > last) {
            self.levels[operation].push(Level { lent: true, ..level });
        }
    }

    /// The queue pq.
    pub(super) fn profiling_queue(&self) -> usize {
        self.pq
    }

    /// Counts that an element of `id` left pq.
    pub(super) fn note_removed(&mut self, id: CollectiveId) {
        if let Some(at) = self.find(id) {
            self.profiles[at].in_pq -= 1;
        }
    }

    /// The older of `best` and the oldest match among the elements of `id` from `source`.
    pub(super) fn older_match<Q: Lookup>(
        &self,
        id: CollectiveId,
        source: u32,
        queues: &Q,
        probe: &Q::Probe<'_>,
        mut best: Best,
    ) -> Best {
        let Some(at) = self.find(id) else { return best };
        let profile = &self.profiles[at];
        if profile.in_pq > 0 {
            best = queues.older_match(self.pq, probe, best);
            if !profile.done {
                profile.note(queues.profiled(self.pq, best));
            }
        }
        self.levels[profile.operation]
            .iter()
            .fold(best, |best, level| queues.older_match(level.queue(source), probe, best))
    }
}

impl CollectiveProfile {
    fn new(id: CollectiveId, operation: usize) -> Self {
        let (compared, searches) = Default::default();
        Self { id, operation, in_pq: 0, call: 0, compared, searches, done: false }
    }

    /// Counts a search that compared this many elements of pq; 0 is not counted.
    fn note(&self, compared: u64) {
        if compared > 0 {
            self.compared.set(self.compared.get() + compared);
            self.searches.set(self.searches.get() + 1);
        }
    }

    fn is_over(&self, call: u32) -> bool {
        let searches = self.searches.get();
        let next = self.id.operation == CollectiveId::NONBLOCKING && call != self.call;
        searches > 0 && (self.in_pq == 0 || next || searches >= LONG_CALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Element, Key, Source,
        engine::{HostHandle, Linked},
    };

    const GATHER: CollectiveId = CollectiveId { communicator: 1, operation: 3 };
    const SMALLER: CollectiveId = CollectiveId { communicator: 9, operation: 3 };

    struct Harness {
        queues: Linked,
        col: Col,
        age: u64,
    }

    impl Harness {
        fn new() -> Self {
            let mut queues = Linked::default();
            let col = Col::new(&mut queues);
            Self { queues, col, age: 0 }
        }

        fn insert(&mut self, id: CollectiveId, call: u32, source: u32, cap: usize) -> HostHandle {
            let queue = self.col.place(id, call, source, cap, &mut self.queues);
            let bits = u64::from(id.communicator);
            let element = Element { bits, ignore: 0, source: Source::new(source), token: 0 };
            self.age += 1;
            self.queues.insert(queue, element, self.age)
        }

        fn search(&self, id: CollectiveId, source: u32) -> Option<HostHandle> {
            let bits = u64::from(id.communicator);
            let key = Key { bits, ignore: 0, source: Source::new(source) };
            let found = self.col.older_match(id, source, &self.queues, &&key, Best::NONE);
            self.queues.hit(found).map(|hit| hit.handle)
        }

        fn remove(&mut self, id: CollectiveId, handle: HostHandle) {
            let Self { queues, col, .. } = self;
            queues.remove(handle, |_, queue| {
                if queue == col.pq {
                    col.note_removed(id);
                }
            });
        }

        /// Makes one call with `n` receives, which are matched from the last to the first. A search
        /// of one queue then compares (n + 1) / 2 elements on average.
        fn gather(&mut self, id: CollectiveId, n: u32, cap: usize) {
            let posted: Vec<_> = (0..n).map(|source| self.insert(id, 0, source, cap)).collect();
            for (source, handle) in (0..n).zip(posted).rev() {
                assert_eq!(self.search(id, source), Some(handle));
                self.remove(id, handle);
                assert_eq!(self.search(id, source), None);
            }
        }

        fn levels(&self) -> Vec<u32> {
            self.col.levels[1].iter().map(|level| level.queues).collect()
        }
    }

    #[test]
    fn the_second_call_gets_as_many_queues_as_the_first_compared() {
        let mut harness = Harness::new();
        harness.gather(GATHER, 32, 99);
        assert_eq!(harness.levels(), []);
        // The 32 searches that hit compared 16.5 elements on average, and the 31 misses that
        // compared any element compared 16: together 16.25, rounded up.
        harness.gather(GATHER, 32, 99);
        assert_eq!((harness.levels(), harness.col.dedicated()), (vec![17], 17));
        harness.gather(GATHER, 32, 99);
        assert_eq!((harness.levels(), harness.col.dedicated()), (vec![17], 17));
    }

    #[test]
    fn the_queue_is_the_remainder() {
        for queues in [1, 2, 3, 7, 32, 45, 1000, u32::MAX] {
            let level = Level::new(5, queues);
            for source in [0, 1, 2, 31, 44, 45, 999, 1 << 20, u32::MAX - 1, u32::MAX] {
                assert_eq!(level.queue(source), 5 + (source % queues) as usize);
            }
        }
    }

    #[test]
    fn other_parameters_of_an_operation_make_a_level_if_they_need_more() {
        let mut harness = Harness::new();
        for (id, n) in
            [(GATHER, 32), (SMALLER, 8), (CollectiveId { communicator: 5, ..GATHER }, 64)]
        {
            harness.gather(id, n, 99);
            harness.gather(id, n, 99);
        }
        assert_eq!((harness.levels(), harness.col.dedicated()), (vec![17, 33], 50));
    }

    #[test]
    fn there_are_never_more_queues_than_the_cap() {
        for (cap, levels) in [(0, vec![]), (1, vec![]), (2, vec![2]), (16, vec![16])] {
            let mut harness = Harness::new();
            harness.gather(GATHER, 32, cap);
            harness.gather(GATHER, 32, cap);
            assert_eq!(harness.levels(), levels);
        }
    }

    #[test]
    fn an_operation_without_room_shares_the_largest_level() {
        let mut harness = Harness::new();
        let scatter = CollectiveId { operation: 5, ..SMALLER };
        for id in [GATHER, scatter] {
            harness.gather(id, 32, 20);
            harness.gather(id, 32, 20);
        }
        assert_eq!(harness.col.dedicated(), 17);
        assert_eq!(harness.col.levels[2][0].first, harness.col.levels[1][0].first);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes an hour there")]
    fn profiles_are_bounded() {
        let mut harness = Harness::new();
        let id = |communicator| CollectiveId { communicator, operation: 3 };
        let ids = 0..MOST_PROFILES as u32 + 8;
        let all: Vec<_> = ids.clone().map(|n| harness.insert(id(n), 0, 7, 99)).collect();
        assert_eq!(harness.col.profiles.len(), MOST_PROFILES + 1);
        for (n, handle) in ids.zip(all).rev() {
            assert_eq!(harness.search(id(n), 7), Some(handle));
            harness.remove(id(n), handle);
            assert_eq!(harness.search(id(n), 7), None);
        }
        assert!(harness.col.profiles.iter().all(|profile| profile.in_pq == 0));
    }

    #[test]
    fn a_nonblocking_call_ends_with_the_next_tag() {
        let id = CollectiveId { operation: CollectiveId::NONBLOCKING, ..GATHER };
        let mut harness = Harness::new();
        for source in 0..8 {
            harness.insert(id, 287, source, 99);
        }
        harness.search(id, 7);
        harness.insert(id, 287, 8, 99);
        assert_eq!(harness.levels(), []);
        harness.insert(id, 288, 0, 99);
        assert_eq!(harness.levels(), [8]);
        // The older of the two is in pq, the younger one in the level.
        let first = harness.search(id, 0).unwrap();
        harness.remove(id, first);
        let second = harness.search(id, 0).unwrap();
        assert_ne!(first, second);
    }
}
