// SPDX-License-Identifier: BSD-2-Clause
//! A hash of entries by what a pattern of wildcards leaves of them.
//!
//! The entries of a bucket are a ring in age order. The bucket names the oldest:
//!
//! ```text
//! buckets
//! [ ... ]     +-> a <-> d <-> f --+
//! [  a  ] --> | (prev of a is f)  |     oldest to youngest
//! [ ... ]     +-------------------+
//! ```
//!
//! Entries that agree in all that is compared are in one bucket, so the first one of
//! the ring that matches a key is the oldest in the index that does. The others in its
//! way are those that the hash put there by chance.

use crate::pattern::Pattern;
use crate::slot::{INDEXES, Link, Slot};

/// Buckets of every index. A constant spares each operation a load and a bounds
/// check; pages that are never used are never touched. At 5120 entries there are
/// three buckets an entry, and no fewer than one in four at 65,536.
const BUCKETS: usize = 1 << 14;

/// An empty bucket: zero, so that a new index is pages nobody has touched.
const EMPTY: u32 = 0;

/// A bucket whose oldest entry is in this slot.
#[inline(always)]
const fn bucket_of(id: u16) -> u32 {
    id as u32 | 1 << u16::BITS
}

/// The slot of a bucket that is not empty.
#[inline(always)]
const fn head_of(bucket: u32) -> u16 {
    bucket as u16
}

/// The links in a slot that an index uses.
#[inline(always)]
fn link(slots: &mut [Slot], which: usize, id: u16) -> &mut Link {
    &mut slots[usize::from(id)].links[which % INDEXES]
}

/// See the module. `which` says which of the links in a slot are this index's.
pub(crate) struct Index {
    buckets: Box<[u32; BUCKETS]>,
}

impl Index {
    pub(crate) fn new() -> Self {
        let buckets = vec![EMPTY; BUCKETS].into_boxed_slice();
        let Ok(buckets) = buckets.try_into() else { unreachable!("the length is BUCKETS") };
        Self { buckets }
    }

    /// Forgets every entry.
    pub(crate) fn clear(&mut self) {
        self.buckets.fill(EMPTY);
    }

    #[inline(always)]
    const fn bucket(pattern: &Pattern, bits: u64, source: u32) -> usize {
        (pattern.hash(bits, source) >> (u64::BITS - BUCKETS.trailing_zeros())) as usize
    }

    /// The oldest entry in the bucket of these bits and this source that matches.
    #[inline(always)]
    pub(crate) fn first<'a>(
        &self,
        slots: &'a [Slot],
        which: usize,
        pattern: &Pattern,
        (bits, source): (u64, u32),
        matches: impl Fn(&Slot) -> bool,
    ) -> Option<(u16, &'a Slot)> {
        let first = self.buckets[Self::bucket(pattern, bits, source)];
        if first == EMPTY {
            return None;
        }
        let mut at = head_of(first);
        loop {
            let slot = &slots[usize::from(at)];
            if matches(slot) {
                return Some((at, slot));
            }
            at = slot.links[which % INDEXES].next;
            if at == head_of(first) {
                return None;
            }
        }
    }

    /// Adds an entry younger than every other.
    #[inline(always)]
    pub(crate) fn insert(&mut self, slots: &mut [Slot], which: usize, pattern: &Pattern, id: u16) {
        let slot = &mut slots[usize::from(id)];
        let bucket = Self::bucket(pattern, slot.bits, slot.source);
        let own = &mut slot.links[which % INDEXES];
        own.bucket = bucket as u16;
        let first = self.buckets[bucket];
        if first == EMPTY {
            (own.next, own.prev) = (id, id);
            self.buckets[bucket] = bucket_of(id);
            return;
        }
        let oldest = head_of(first);
        own.next = oldest;
        let youngest = std::mem::replace(&mut link(slots, which, oldest).prev, id);
        link(slots, which, youngest).next = id;
        link(slots, which, id).prev = youngest;
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], which: usize, id: u16) {
        let Link { bucket, next, prev } = slots[usize::from(id)].links[which % INDEXES];
        let bucket = &mut self.buckets[usize::from(bucket) % BUCKETS];
        if next == id {
            *bucket = EMPTY;
            return;
        }
        link(slots, which, next).prev = prev;
        link(slots, which, prev).next = next;
        if head_of(*bucket) == id {
            *bucket = bucket_of(next);
        }
    }
}
