// SPDX-License-Identifier: BSD-2-Clause
//! What a storage of queues does, and what engines ask of it.

use crate::engine::contract::{HostHandle, HostHit};
use crate::{Element, Key};

/// The oldest match so far. It fits two registers: a search hands it from queue to
/// queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Best {
    /// Where it is stored.
    pub(super) at: u32,
    pub(super) age: u64,
}

impl Best {
    /// No match yet.
    pub const NONE: Self = Self { at: u32::MAX, age: u64::MAX };

    /// The older one.
    #[inline]
    pub(super) const fn or(self, other: Self) -> Self {
        if self.age <= other.age { self } else { other }
    }
}

/// What an engine asks while it searches.
pub trait Lookup {
    /// A key, prepared for searches. It points to the key: a copy would be loaded as a whole
    /// from parts that were just stored, which the store buffer cannot forward.
    type Probe<'k>;

    /// Prepares a key.
    fn probe<'k>(&self, key: &'k Key) -> Self::Probe<'k>;

    /// Queues there are, empty ones too.
    fn count(&self) -> usize;

    /// The older of `best` and the first match of a queue.
    fn older_match(&self, queue: usize, probe: &Self::Probe<'_>, best: Best) -> Best;

    /// How many elements of a queue the search that gave `best` traversed, for a profile of it;
    /// 0 where that is to stay as it is.
    fn profiled(&self, queue: usize, best: Best) -> u64;

    /// The oldest match of all.
    fn oldest_match(&self, probe: &Self::Probe<'_>) -> Best;

    /// The oldest match of all, known to be in one of these queues, of which there
    /// are `count`.
    fn oldest_match_in(
        &self,
        count: usize,
        queues: impl Iterator<Item = usize> + Clone,
        probe: &Self::Probe<'_>,
    ) -> Best;

    /// Whether elements that have queues are found sooner in the list of all; `short` is
    /// how many a list has before it is split, `split` whether one was.
    fn prefers_list(&self, short: usize, split: bool) -> bool;
}

/// Queues by number, and the list of all elements. See `engine/queue/mod.rs`.
pub trait Queues: Lookup {
    /// Up to so many elements, with collective ones among them, are found sooner in the
    /// list of all than by finding out in which queue they are.
    const LIST: usize;

    /// Makes sure that there are queues 0 to `count - 1`.
    fn ensure(&mut self, count: usize);

    /// Makes `count` queues and says which is the first.
    fn make(&mut self, count: usize) -> usize {
        let first = self.count();
        self.ensure(first + count);
        first
    }

    /// Appends an element, the youngest of all, to a queue.
    #[inline]
    fn insert(&mut self, queue: usize, element: Element, age: u64) -> HostHandle {
        let handle = self.push(element, age);
        self.place(handle, queue);
        handle
    }

    /// Adds an element, the youngest of all, without a queue.
    fn push(&mut self, element: Element, age: u64) -> HostHandle;

    /// The oldest element without a queue.
    fn unplaced(&self) -> Option<HostHandle>;

    /// Appends the oldest element without a queue to one.
    fn place(&mut self, handle: HostHandle, queue: usize);

    /// An element.
    fn element(&self, handle: HostHandle) -> &Element;

    /// The element of a token, if there is one: all are looked at.
    fn handle_of(&self, token: u32) -> Option<HostHandle>;

    /// Takes an element out. If it has a queue, `leaves` is told which.
    fn remove(&mut self, handle: HostHandle, leaves: impl FnOnce(&Element, usize));

    /// How many elements of a queue a list would have compared to find `best`, or that
    /// none is older.
    fn compared(&self, queue: usize, best: Best) -> u64;

    /// [`Lookup::oldest_match`] where no other search follows.
    #[inline]
    fn oldest_match_of(&self, key: &Key) -> Best {
        self.oldest_match(&self.probe(key))
    }

    /// How many elements [`Lookup::oldest_match_in`] traversed to find this.
    fn traversed_in(
        &self,
        count: usize,
        queues: impl Iterator<Item = usize>,
        probe: &Self::Probe<'_>,
        found: Best,
    ) -> u64;

    /// The same of [`Lookup::oldest_match`].
    fn traversed_of_all(&self, found: Best) -> u64 {
        self.hit(found).map_or(self.len(), |hit| self.depth(hit.handle)) as u64
    }

    /// What was found, for others.
    fn hit(&self, best: Best) -> Option<HostHit>;

    /// Elements in a queue.
    fn len_of(&self, queue: usize) -> usize;

    /// The elements of a queue, oldest first.
    fn elements(&self, queue: usize) -> impl Iterator<Item = &Element> + '_;

    /// The oldest element of all.
    fn oldest(&self) -> Option<HostHit>;

    /// Rank by age of an element, from 1.
    fn depth(&self, handle: HostHandle) -> usize;

    /// Elements there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tokens and ages, oldest first.
    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_;
}
