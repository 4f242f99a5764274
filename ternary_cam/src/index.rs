// SPDX-License-Identifier: BSD-2-Clause
//! A hash of entries by what a pattern of wildcards leaves of them.
//!
//! Entries that agree in all that is compared are a *group*, a ring in age order,
//! so that any number of equal entries costs no more than one. A bucket chains the
//! oldest entries of its groups:
//!
//! ```text
//! buckets          group {tag 5}               group {tag 9}
//! [ ... ]        +-> a <-> d <-> f --+       +-> b --+
//! [  a  ] ------ | (prev of a is f)  | ----> |       |  (chain of b is b: the end)
//! [ ... ]        +-------------------+ chain +-------+
//! ```
//!
//! The head of a group is its oldest entry: the first match is found by comparing
//! heads alone.

use crate::pattern::Pattern;
use crate::slot::{Link, Slot, WILD};

/// Buckets of every index. A constant spares each operation a load and a bounds
/// check; pages that are never used are never touched. At 5120 entries there are
/// three buckets an entry, and no fewer than one in four at 65,536.
const BUCKETS: usize = Link::BUCKETS;

/// An empty bucket: zero, so that a new index is pages nobody has touched.
const EMPTY: u32 = 0;

/// A bucket whose first group's oldest entry is in this slot.
#[inline(always)]
const fn bucket_of(id: u16) -> u32 {
    id as u32 + 1
}

/// The slot of a bucket that is not empty.
#[inline(always)]
const fn head_of(bucket: u32) -> u16 {
    bucket.wrapping_sub(1) as u16
}

/// Which of the links in a slot an index uses.
pub(crate) trait Links: Copy {
    fn of(self, slot: &mut Slot) -> &mut Link;
    fn read(self, slot: &Slot) -> Link;
}

/// The links of the home index.
#[derive(Clone, Copy)]
pub(crate) struct Home;

impl Links for Home {
    #[inline(always)]
    fn of(self, slot: &mut Slot) -> &mut Link {
        &mut slot.home
    }

    #[inline(always)]
    fn read(self, slot: &Slot) -> Link {
        slot.home
    }
}

/// The links of an index for keys with wildcards.
#[derive(Clone, Copy)]
pub(crate) struct Wild(pub(crate) usize);

impl Links for Wild {
    #[inline(always)]
    fn of(self, slot: &mut Slot) -> &mut Link {
        &mut slot.wild[self.0 % WILD]
    }

    #[inline(always)]
    fn read(self, slot: &Slot) -> Link {
        slot.wild[self.0 % WILD]
    }
}

/// See the module.
pub(crate) struct Index<L> {
    buckets: Box<[u32; BUCKETS]>,
    links: L,
}

impl<L: Links> Index<L> {
    /// An index that uses these links of the slots.
    pub(crate) fn new(links: L) -> Self {
        let buckets = vec![EMPTY; BUCKETS].into_boxed_slice();
        let Ok(buckets) = buckets.try_into() else { unreachable!("the length is BUCKETS") };
        Self { buckets, links }
    }

    /// Forgets every entry.
    pub(crate) fn clear(&mut self) {
        self.buckets.fill(EMPTY);
    }

    #[inline(always)]
    const fn bucket(pattern: &Pattern, bits: u64, source: u32) -> usize {
        (pattern.hash(bits, source) >> (u64::BITS - BUCKETS.trailing_zeros())) as usize
    }

    /// The oldest entry of the group these bits and this source belong to.
    #[inline(always)]
    pub(crate) fn first(
        &self,
        slots: &[Slot],
        pattern: &Pattern,
        bits: u64,
        source: u32,
    ) -> Option<u16> {
        let first = self.buckets[Self::bucket(pattern, bits, source)];
        if first == EMPTY {
            return None;
        }
        let mut at = head_of(first);
        loop {
            let slot = &slots[usize::from(at)];
            if pattern.same_group(slot, bits, source) {
                return Some(at);
            }
            let next = self.links.read(slot).chain(at);
            if next == at {
                return None;
            }
            at = next;
        }
    }

    /// Adds an entry younger than every other.
    #[inline(always)]
    pub(crate) fn insert(&mut self, slots: &mut [Slot], pattern: &Pattern, id: u16) {
        let slot = &mut slots[usize::from(id)];
        let bucket = Self::bucket(pattern, slot.bits, slot.source);
        let first = &mut self.buckets[bucket];
        if *first == EMPTY {
            *first = bucket_of(id);
            *self.links.of(slot) = Link::alone(bucket);
            return;
        }
        let (bits, source, first) = (slot.bits, slot.source, head_of(*first));
        if pattern.same_group(&slots[usize::from(first)], bits, source) {
            self.append(slots, first, id);
        } else {
            self.insert_chained(slots, pattern, id, bucket);
        }
    }

    /// Adds the youngest of a group.
    #[inline(always)]
    fn append(&self, slots: &mut [Slot], oldest: u16, id: u16) {
        let link = self.links.of(&mut slots[usize::from(oldest)]);
        let youngest = link.prev(oldest);
        *link = link.with_prev(oldest, id);
        let link = self.links.of(&mut slots[usize::from(youngest)]);
        *link = link.with_next(youngest, id);
        *self.links.of(&mut slots[usize::from(id)]) = Link::younger(id, oldest, youngest);
    }

    /// Adds an entry to a bucket whose first group is not its own: to the end of its
    /// group, or as a new group in front of the others.
    #[inline(never)]
    fn insert_chained(&mut self, slots: &mut [Slot], pattern: &Pattern, id: u16, bucket: usize) {
        let links = self.links;
        let (bits, source) = (slots[usize::from(id)].bits, slots[usize::from(id)].source);
        let first = head_of(self.buckets[bucket]);
        let mut at = first;
        loop {
            let next = links.read(&slots[usize::from(at)]).chain(at);
            if next == at {
                break;
            }
            at = next;
            if pattern.same_group(&slots[usize::from(at)], bits, source) {
                return self.append(slots, at, id);
            }
        }
        let link = links.of(&mut slots[usize::from(first)]);
        *link = link.with_first(false);
        self.buckets[bucket] = bucket_of(id);
        *links.of(&mut slots[usize::from(id)]) = Link::alone(bucket).with_chain(id, first);
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], id: u16) {
        match self.links.read(&slots[usize::from(id)]).bucket_alone() {
            Some(bucket) => self.buckets[bucket] = EMPTY,
            None => self.remove_chained(slots, id),
        }
    }

    /// The same where the entry is not alone in its bucket.
    #[inline(never)]
    fn remove_chained(&mut self, slots: &mut [Slot], id: u16) {
        let links = self.links;
        let gone = links.read(&slots[usize::from(id)]);
        let (next, prev, chain) = (gone.next(id), gone.prev(id), gone.chain(id));
        if next != id {
            let link = links.of(&mut slots[usize::from(prev)]);
            *link = link.with_next(prev, next);
            let link = links.of(&mut slots[usize::from(next)]);
            *link = link.with_prev(next, prev);
        }
        if !gone.is_oldest() {
            return;
        }
        // What the bucket (or the group before) points to instead.
        let mut heir = (chain != id).then_some(chain);
        if next != id {
            let link = links.of(&mut slots[usize::from(next)]);
            *link = link.with_bucket_of(gone).with_chain(next, heir.unwrap_or(next));
            heir = Some(next);
        }
        let bucket = &mut self.buckets[gone.bucket()];
        if gone.is_first() {
            *bucket = heir.map_or(EMPTY, bucket_of);
            if let Some(heir) = heir {
                let link = links.of(&mut slots[usize::from(heir)]);
                *link = link.with_first(true);
            }
            return;
        }
        let mut at = head_of(*bucket);
        loop {
            let link = links.of(&mut slots[usize::from(at)]);
            let chain = link.chain(at);
            if chain == id {
                *link = link.with_chain(at, heir.unwrap_or(at));
                return;
            }
            at = chain;
        }
    }
}
