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

/// An empty bucket.
const EMPTY: u32 = u32::MAX;

/// Buckets for each entry, as far as [`MAX_BUCKETS`] allows.
const BUCKETS_PER_ENTRY: usize = 2;

/// Bucket numbers must fit [`Link::bucket`] beside [`Link::NOT_HEAD`].
const MAX_BUCKETS: usize = 1 << 15;

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
    /// Slot of the oldest entry of the first group, or [`EMPTY`].
    buckets: Box<[u32]>,
    /// Takes the high bits of a hash.
    shift: u32,
    links: L,
}

impl<L: Links> Index<L> {
    /// An index for `capacity` entries that uses these links of the slots.
    pub(crate) fn new(capacity: usize, links: L) -> Self {
        let buckets = (BUCKETS_PER_ENTRY * capacity).next_power_of_two().clamp(2, MAX_BUCKETS);
        Self {
            buckets: vec![EMPTY; buckets].into(),
            shift: u64::BITS - buckets.trailing_zeros(),
            links,
        }
    }

    /// Forgets every entry.
    pub(crate) fn clear(&mut self) {
        self.buckets.fill(EMPTY);
    }

    #[inline(always)]
    fn bucket(&self, pattern: &Pattern, bits: u64, source: u32) -> usize {
        (pattern.hash(bits, source) >> (self.shift % u64::BITS)) as usize
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
        let head = self.buckets[self.bucket(pattern, bits, source)];
        if head == EMPTY {
            return None;
        }
        let mut at = head as u16;
        loop {
            let slot = &slots[usize::from(at)];
            if pattern.same_group(slot, bits, source) {
                return Some(at);
            }
            let next = self.links.read(slot).chain;
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
        let bucket = self.bucket(pattern, slot.bits, slot.source);
        let first = &mut self.buckets[bucket];
        if *first != EMPTY {
            return self.insert_chained(slots, pattern, id, bucket);
        }
        *first = u32::from(id);
        *self.links.of(slot) = Link { next: id, prev: id, chain: id, bucket: bucket as u16 };
    }

    /// The same into a bucket that is not empty: to the end of the entry's group,
    /// or as a new group in front of the others.
    #[inline(never)]
    fn insert_chained(&mut self, slots: &mut [Slot], pattern: &Pattern, id: u16, bucket: usize) {
        let links = self.links;
        let (bits, source) = (slots[usize::from(id)].bits, slots[usize::from(id)].source);
        let first = self.buckets[bucket] as u16;
        let mut at = first;
        loop {
            let slot = &mut slots[usize::from(at)];
            if pattern.same_group(slot, bits, source) {
                let youngest = std::mem::replace(&mut links.of(slot).prev, id);
                links.of(&mut slots[usize::from(youngest)]).next = id;
                *links.of(&mut slots[usize::from(id)]) =
                    Link { next: at, prev: youngest, chain: id, bucket: Link::NOT_HEAD };
                return;
            }
            let next = links.read(slot).chain;
            if next == at {
                break;
            }
            at = next;
        }
        self.buckets[bucket] = u32::from(id);
        *links.of(&mut slots[usize::from(id)]) =
            Link { next: id, prev: id, chain: first, bucket: bucket as u16 };
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], id: u16) {
        let link = self.links.read(&slots[usize::from(id)]);
        if link.next == id && link.chain == id {
            let first = &mut self.buckets[usize::from(link.bucket)];
            if *first == u32::from(id) {
                *first = EMPTY;
                return;
            }
        }
        self.remove_chained(slots, id);
    }

    /// The same where the entry is not alone in its bucket.
    #[inline(never)]
    fn remove_chained(&mut self, slots: &mut [Slot], id: u16) {
        let links = self.links;
        let Link { next, prev, chain, bucket } = links.read(&slots[usize::from(id)]);
        if next != id {
            links.of(&mut slots[usize::from(prev)]).next = next;
            links.of(&mut slots[usize::from(next)]).prev = prev;
        }
        if bucket == Link::NOT_HEAD {
            return;
        }
        // What the bucket (or the group before) points to instead.
        let mut heir = (chain != id).then_some(chain);
        if next != id {
            let link = links.of(&mut slots[usize::from(next)]);
            (link.chain, link.bucket) = (heir.unwrap_or(next), bucket);
            heir = Some(next);
        }
        let first = &mut self.buckets[usize::from(bucket)];
        if *first == u32::from(id) {
            *first = heir.map_or(EMPTY, u32::from);
            return;
        }
        let mut at = *first as u16;
        loop {
            let link = &mut links.of(&mut slots[usize::from(at)]).chain;
            if *link == id {
                *link = heir.unwrap_or(at);
                return;
            }
            at = *link;
        }
    }
}
