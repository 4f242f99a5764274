// SPDX-License-Identifier: BSD-2-Clause
//! The interface of queue storages, and the lookups that engines make.

use crate::engine::hit::{HostHandle, HostHit};
use crate::{Element, Key};

/// The oldest match so far. It fits into two registers, in which a search passes it from queue to
/// queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Best {
    /// Index of the element in its storage.
    pub(super) at: u32,
    pub(super) age: u64,
}

impl Best {
    /// No match yet.
    pub const NONE: Self = Self { at: u32::MAX, age: u64::MAX };

    /// Returns the older of two matches.
    #[inline]
    pub(super) const fn or(self, other: Self) -> Self {
        if self.age <= other.age { self } else { other }
    }
}

/// The lookups of an engine during a search.
pub trait Lookup {
    /// A key prepared for searches. It borrows the key: a copy would be loaded as a whole from
    /// parts that were just stored, which the store buffer cannot forward.
    type Probe<'k>;

    /// Prepares a key.
    fn probe<'k>(&self, key: &'k Key) -> Self::Probe<'k>;

    /// Number of queues, including empty ones.
    fn count(&self) -> usize;

    /// The older of `best` and the first match of a queue.
    fn older_match(&self, queue: usize, probe: &Self::Probe<'_>, best: Best) -> Best;

    /// For COL's profile: the number of elements of a queue that the search with result `best`
    /// traversed. 0 leaves the profile unchanged.
    fn profiled(&self, queue: usize, best: Best) -> u64;

    /// The oldest match among all elements.
    fn oldest_match(&self, probe: &Self::Probe<'_>) -> Best;

    /// The oldest match among all elements. The caller knows that it is in one of `queues`, and
    /// that these are about `count` queues.
    fn oldest_match_in(
        &self,
        count: usize,
        queues: impl Iterator<Item = usize> + Clone,
        probe: &Self::Probe<'_>,
    ) -> Best;

    /// Returns true if a search of the list of all elements is faster than a search of queues.
    /// Up to `short` elements, the list is not split. `split` is true if PNP has dedicated
    /// queues or COL is used.
    fn prefers_list(&self, short: usize, split: bool) -> bool;
}

/// Queues by number, and the list of all elements; see `engine/queue/mod.rs`.
pub trait Queues: Lookup {
    /// Number of elements, some of them collective, up to which a search of the list of all is
    /// faster than the selection of a queue.
    const LIST: usize;

    /// Makes sure that queues 0 to `count - 1` exist.
    fn ensure(&mut self, count: usize);

    /// Makes `count` queues and returns the number of the first.
    fn make(&mut self, count: usize) -> usize {
        let first = self.count();
        self.ensure(first + count);
        first
    }

    /// Appends the youngest element to a queue.
    #[inline]
    fn insert(&mut self, queue: usize, element: Element, age: u64) -> HostHandle {
        let handle = self.push(element, age);
        self.place(handle, queue);
        handle
    }

    /// Adds the youngest element without a queue.
    fn push(&mut self, element: Element, age: u64) -> HostHandle;

    /// The oldest element without a queue.
    fn unplaced(&self) -> Option<HostHandle>;

    /// Appends an element to a queue. It must be the oldest element without a queue.
    fn place(&mut self, handle: HostHandle, queue: usize);

    /// The element of a handle.
    fn element(&self, handle: HostHandle) -> &Element;

    /// The handle of a token, if it is in use. Searches all elements.
    fn handle_of(&self, token: u32) -> Option<HostHandle>;

    /// Removes an element. If it is in a queue, calls `leaves` with the element and the queue.
    fn remove(&mut self, handle: HostHandle, leaves: impl FnOnce(&Element, usize));

    /// Number of elements of a queue that a linear search would have compared to find `best` or, if
    /// `best` is in another queue, to find no older match.
    fn compared(&self, queue: usize, best: Best) -> u64;

    /// [`Lookup::oldest_match`] for a single search.
    #[inline]
    fn oldest_match_of(&self, key: &Key) -> Best {
        self.oldest_match(&self.probe(key))
    }

    /// Number of elements that [`Lookup::oldest_match_in`] traversed to find `found`.
    fn traversed_in(
        &self,
        count: usize,
        queues: impl Iterator<Item = usize>,
        probe: &Self::Probe<'_>,
        found: Best,
    ) -> u64;

    /// Number of elements that [`Lookup::oldest_match`] traversed to find `found`.
    fn traversed_of_all(&self, found: Best) -> u64 {
        self.hit(found).map_or(self.len(), |hit| self.depth(hit.handle)) as u64
    }

    /// Converts a match for callers outside the storage; `None` for [`Best::NONE`].
    fn hit(&self, best: Best) -> Option<HostHit>;

    /// Number of elements in a queue.
    fn len_of(&self, queue: usize) -> usize;

    /// The elements of a queue, oldest first.
    fn elements(&self, queue: usize) -> impl Iterator<Item = &Element> + '_;

    /// The oldest element of all.
    fn oldest(&self) -> Option<HostHit>;

    /// Age rank of an element, from 1.
    fn depth(&self, handle: HostHandle) -> usize;

    /// Number of elements.
    fn len(&self) -> usize;

    /// Returns true if there is no element.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tokens and ages, oldest element first.
    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_;
}
