// SPDX-License-Identifier: BSD-2-Clause
//! A hash of entries by what their patterns compare.
//!
//! The entries of a bucket are a ring by age. The bucket names the oldest:
//!
//! ```text
//! buckets
//! [ ... ]     +-> a <-> d <-> f --+
//! [  a  ] --> | (prev of a is f)  |     oldest to youngest
//! [ ... ]     +-------------------+
//! ```
//!
//! A bucket is a word. A mark, bits of the hash of its entry, lets a search that probes several
//! buckets tell most of those that hold nothing for it, without a look at an entry:
//!
//! ```text
//! 31           30     17     16            0
//! [ unmarked | mark        | occupied | slot ]
//! ```
//!
//! Entries that agree in all that is compared are in one bucket, so the first in its ring that
//! matches a key is the oldest in the index that does. A search passes only those that the hash
//! put there by chance. Where they are many, the index is built anew with another hash.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use crate::deep::keep::Keep;
use crate::deep::pattern::Pattern;
use crate::entry::Key;
use crate::slot::{Link, LinkNo, Slot};
use crate::wildcards::GOLDEN_RATIO;

/// Buckets of every index. A constant spares each operation a load and a bounds
/// check; pages that are never used are never touched. At 5120 entries there are
/// three buckets an entry, and no fewer than one in four at 65,536.
const BUCKETS: usize = 1 << 14;

/// Entries that a search passes in a bucket before another hash is worth its building.
const LONG: u32 = 64;

/// How often the wait between two new hashes is doubled at most: to build the index costs next to
/// nothing then.
const MOST_DOUBLINGS: u32 = 6;

/// An empty bucket: zero, so that a new index is pages nobody has touched.
const EMPTY: u32 = 0;

/// In a bucket: it is not empty.
const OCCUPIED: u32 = 1 << u16::BITS;

/// In a bucket: it may hold any entry, since it holds several, or did since it was empty, or
/// since its entry was added without a mark.
const UNMARKED: u32 = 1 << 31;

/// In a bucket: the mark of its only entry.
const MARK: u32 = UNMARKED - 2 * OCCUPIED;

/// A bucket with this entry as its oldest.
#[inline(always)]
const fn bucket_of(id: u16, mark: u32) -> u32 {
    id as u32 | OCCUPIED | mark
}

/// The bits of a hash behind those that choose the bucket, at the place of [`MARK`]; what is around
/// them is to be masked.
#[inline(always)]
const fn mark(hash: u64) -> u32 {
    (hash >> (u64::BITS - BUCKETS.trailing_zeros() - UNMARKED.trailing_zeros())) as u32
}

/// The oldest in a bucket that is not empty.
#[inline(always)]
const fn head_of(bucket: u32) -> u16 {
    bucket as u16
}

#[inline(always)]
fn link(slots: &mut [Slot], no: LinkNo, id: u16) -> &mut Link {
    slots[usize::from(id)].link_mut(no)
}

/// A bucket that was probed, to be looked into later.
#[derive(Clone, Copy)]
pub(crate) struct Offer(u32);

impl Offer {
    pub(crate) const NONE: Self = Self(EMPTY);

    #[inline(always)]
    pub(crate) const fn is_none(self) -> bool {
        self.0 == EMPTY
    }
}

/// See the module. `no` says which links of a slot are this index's: the same in every call.
pub(crate) struct Index {
    buckets: Box<[u32; BUCKETS]>,
    /// What the hash multiplies bits with; odd.
    spread: u64,
    /// Whether a search walked past [`LONG`] entries.
    long: AtomicBool,
    /// Inserts since it was spread anew.
    since_spread: u32,
    /// How often in a row it was, each time as soon as that might be.
    spreads: u32,
    /// Entries that searches walked past, but for those credited.
    walked: AtomicU32,
}

impl Index {
    pub(crate) fn new() -> Self {
        let buckets = vec![EMPTY; BUCKETS].into_boxed_slice();
        let Ok(buckets) = buckets.try_into() else { unreachable!("the length is BUCKETS") };
        Self {
            buckets,
            spread: GOLDEN_RATIO,
            walked: AtomicU32::new(0),
            since_spread: u32::MAX,
            spreads: 0,
            long: AtomicBool::new(false),
        }
    }

    /// Entries that searches walked past, but for those credited.
    #[inline(always)]
    pub(crate) fn walked(&self) -> u32 {
        self.walked.load(Relaxed)
    }

    /// Has so many entries that were walked past not count.
    pub(crate) fn credit(&mut self, entries: usize) {
        let walked = self.walked.get_mut();
        *walked = walked.saturating_sub(entries as u32);
    }

    /// Forgets every entry and how it was searched.
    pub(crate) fn clear(&mut self) {
        *self.long.get_mut() = false;
        *self.walked.get_mut() = 0;
        (self.since_spread, self.spreads) = (u32::MAX, 0);
        self.buckets.fill(EMPTY);
    }

    /// Counts inserts into a table of at most so many entries. Forgets every entry and takes
    /// another hash if a search walked far, unless it did so not long ago; whether it has.
    ///
    /// Entries with one tag whose sources share a bucket do so under every hash: the wait doubles
    /// while another hash does not help.
    pub(crate) fn spread_anew(&mut self, inserts: usize, entries: usize) -> bool {
        self.since_spread = self.since_spread.saturating_add(inserts as u32);
        let wait = (Keep::PER_ENTRY * entries) as u32;
        if self.since_spread < wait << self.spreads {
            return false;
        }
        let was_long = std::mem::take(self.long.get_mut());
        if !was_long {
            self.spreads = 0;
            return false;
        }
        let spreads = MOST_DOUBLINGS.min(self.spreads + 1);
        self.clear();
        (self.since_spread, self.spreads) = (0, spreads);
        self.spread = self.spread.wrapping_mul(GOLDEN_RATIO);
        true
    }

    #[inline(always)]
    const fn hash(&self, pattern: &Pattern, bits: u64, source: u32) -> u64 {
        pattern.hash(self.spread, bits, source)
    }

    /// The bucket of a hash.
    #[inline(always)]
    const fn bucket(hash: u64) -> usize {
        (hash >> (u64::BITS - BUCKETS.trailing_zeros())) as usize
    }

    /// The bucket of these bits and this source, and whether it may hold what matches them.
    #[inline(always)]
    pub(crate) fn offer(&self, pattern: &Pattern, bits: u64, source: u32) -> (Offer, bool) {
        let hash = self.hash(pattern, bits, source);
        let bucket = self.buckets[Self::bucket(hash)];
        (Offer(bucket), (bucket ^ (mark(hash) | UNMARKED | OCCUPIED)) < UNMARKED + OCCUPIED)
    }

    /// The oldest entry in the bucket of these bits and this source that matches. It is nearly
    /// always the first one there.
    #[inline(always)]
    pub(crate) fn first<'a>(
        &self,
        slots: &'a [Slot],
        no: LinkNo,
        pattern: &Pattern,
        (bits, source): (u64, u32),
        matches: impl Fn(&Slot) -> bool,
    ) -> Option<(u16, &'a Slot)> {
        let (id, slot) = self.oldest(slots, pattern, bits, source)?;
        if matches(slot) { Some((id, slot)) } else { self.first_behind(slots, no, id, matches) }
    }

    /// The oldest entry that agrees with a key in all that the pattern compares.
    #[inline(always)]
    pub(crate) fn first_for<'a>(
        &self,
        slots: &'a [Slot],
        no: LinkNo,
        pattern: &Pattern,
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        let agrees = |slot: &Slot| pattern.agree(slot, key);
        self.first(slots, no, pattern, (key.bits, key.source.0), agrees)
    }

    /// The oldest entry that agrees with a key, which names its source, in that and in all bits
    /// that the pattern compares. The pattern, and so the bucket, may be by source or not.
    #[inline(always)]
    pub(crate) fn first_named<'a>(
        &self,
        slots: &'a [Slot],
        no: LinkNo,
        pattern: &Pattern,
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        let care = pattern.care();
        let equals = move |slot: &Slot| slot.equals(key, care);
        self.first(slots, no, pattern, (key.bits, key.source.0), equals)
    }

    /// The oldest entry of a bucket.
    #[inline(always)]
    fn oldest<'a>(
        &self,
        slots: &'a [Slot],
        pattern: &Pattern,
        bits: u64,
        source: u32,
    ) -> Option<(u16, &'a Slot)> {
        let first = self.buckets[Self::bucket(self.hash(pattern, bits, source))];
        (first != EMPTY).then(|| (head_of(first), &slots[usize::from(head_of(first))]))
    }

    /// The oldest entry that matches in a bucket that may hold one.
    #[inline(always)]
    pub(crate) fn first_offered<'a>(
        &self,
        slots: &'a [Slot],
        no: LinkNo,
        offer: Offer,
        matches: impl Fn(&Slot) -> bool,
    ) -> Option<(u16, &'a Slot)> {
        let id = head_of(offer.0);
        let slot = &slots[usize::from(id)];
        if matches(slot) { Some((id, slot)) } else { self.first_behind(slots, no, id, matches) }
    }

    /// The oldest that matches behind the head of a ring.
    #[inline(never)]
    fn first_behind<'a>(
        &self,
        slots: &'a [Slot],
        no: LinkNo,
        head: u16,
        matches: impl Fn(&Slot) -> bool,
    ) -> Option<(u16, &'a Slot)> {
        let (mut at, mut passed) = (head, 0);
        let found = loop {
            at = slots[usize::from(at)].link(no).next;
            if at == head {
                break None;
            }
            passed += 1;
            let slot = &slots[usize::from(at)];
            if matches(slot) {
                break Some((at, slot));
            }
        };
        if passed > LONG {
            self.long.store(true, Relaxed);
        }
        // Of searches at the same time one may not be counted.
        self.walked.store(self.walked.load(Relaxed).saturating_add(passed), Relaxed);
        found
    }

    /// Adds an entry younger than every other.
    #[inline(always)]
    pub(crate) fn insert(&mut self, slots: &mut [Slot], no: LinkNo, pattern: &Pattern, id: u16) {
        self.insert_as::<false>(slots, no, pattern, id);
    }

    /// The same with a mark, by which [`Index::offer`] tells its bucket from others: three
    /// instructions more.
    #[inline(always)]
    pub(crate) fn insert_marked(
        &mut self,
        slots: &mut [Slot],
        no: LinkNo,
        pattern: &Pattern,
        id: u16,
    ) {
        self.insert_as::<true>(slots, no, pattern, id);
    }

    #[inline(always)]
    fn insert_as<const MARKED: bool>(
        &mut self,
        slots: &mut [Slot],
        no: LinkNo,
        pattern: &Pattern,
        id: u16,
    ) {
        let slot = &mut slots[usize::from(id)];
        let hash = self.hash(pattern, slot.bits, slot.source);
        let bucket = Self::bucket(hash);
        let own = slot.link_mut(no);
        own.bucket = bucket as u16;
        let first = self.buckets[bucket];
        if first == EMPTY {
            (own.next, own.prev) = (id, id);
            self.buckets[bucket] = bucket_of(id, if MARKED { mark(hash) & MARK } else { UNMARKED });
            return;
        }
        // Most often it is: a store each time would be one more that the next insert waits for.
        if first & UNMARKED == 0 {
            self.buckets[bucket] = first | UNMARKED;
        }
        let oldest = head_of(first);
        own.next = oldest;
        let youngest = std::mem::replace(&mut link(slots, no, oldest).prev, id);
        link(slots, no, youngest).next = id;
        link(slots, no, id).prev = youngest;
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], no: LinkNo, id: u16) {
        let Link { bucket, next, prev } = *slots[usize::from(id)].link(no);
        let bucket = &mut self.buckets[usize::from(bucket) % BUCKETS];
        if next == id {
            *bucket = EMPTY;
            return;
        }
        link(slots, no, next).prev = prev;
        link(slots, no, prev).next = next;
        if head_of(*bucket) == id {
            *bucket = bucket_of(next, UNMARKED);
        }
    }
}

#[cfg(test)]
impl Index {
    /// The entries, each in the ring of its bucket and there in order of age.
    pub(crate) fn check<'a>(
        &self,
        slots: &'a [Slot],
        no: LinkNo,
        pattern_of: impl Fn(&'a Slot) -> &'a Pattern,
    ) -> usize {
        let mut entries = 0;
        for (bucket, &first) in
            self.buckets.iter().enumerate().filter(|(_, first)| **first != EMPTY)
        {
            let oldest = head_of(first);
            let (mut at, mut before) = (oldest, None);
            loop {
                let slot = &slots[usize::from(at)];
                let link = *slot.link(no);
                let hash = self.hash(pattern_of(slot), slot.bits, slot.source);
                assert_eq!(Self::bucket(hash), bucket);
                let key = (slot.bits, slot.source);
                let offer = self.offer(pattern_of(slot), key.0, key.1);
                assert_eq!((offer.0.0, offer.1), (first, true));
                assert_eq!(usize::from(link.bucket), bucket);
                assert_eq!(slots[usize::from(link.next)].link(no).prev, at);
                assert!(before < Some(slot.stamp), "by age");
                before = Some(slot.stamp);
                entries += 1;
                at = link.next;
                if at == oldest {
                    break;
                }
            }
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::{Index, LONG, Relaxed};
    use crate::deep::pattern::Pattern;
    use crate::entry::{Entry, Key, Source};
    use crate::kernel::Kernel;
    use crate::slot::{LinkNo, Slot};
    use crate::table::Table;
    use crate::wildcards::GOLDEN_RATIO;

    /// Match bits that all have the same bucket under the first hash.
    fn colliding(i: u64) -> u64 {
        // Newton's iteration for the inverse: each step doubles the bits that are right.
        let inverse = (0..6).fold(GOLDEN_RATIO, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(GOLDEN_RATIO.wrapping_mul(inverse)))
        });
        i.wrapping_mul(inverse)
    }

    #[test]
    fn consecutive_tags_and_sources_share_no_bucket() {
        const ENTRIES: usize = if cfg!(miri) { 50 } else { 6000 };
        let index = Index::new();
        let mut last = vec![0; super::BUCKETS];
        for tags in 1..=ENTRIES {
            for (tag, source) in
                (0..tags).flat_map(|tag| (0..ENTRIES / tags).map(move |of| (tag, of)))
            {
                let hash = index.hash(&Pattern::EXACT, tag as u64, source as u32);
                let last = &mut last[Index::bucket(hash)];
                assert_ne!(*last, tags, "tag {tag} and source {source}, of {tags} tags");
                *last = tags;
            }
        }
    }

    #[test]
    fn a_long_bucket_is_noticed_and_spread() {
        let mut slots = vec![Slot::EMPTY; 2 * LONG as usize];
        for (slot, i) in slots.iter_mut().zip(0..) {
            (slot.bits, slot.source) = (colliding(i), 1);
        }
        let mut index = Index::new();
        for expected in [true, false] {
            for id in 0..slots.len() as u16 {
                index.insert(&mut slots, LinkNo::HOME, &Pattern::EXACT, id);
            }
            for (id, slot) in slots.iter().enumerate() {
                let key = (slot.bits, 1);
                let found =
                    index.first(&slots, LinkNo::HOME, &Pattern::EXACT, key, |it| it.bits == key.0);
                assert_eq!(found.map(|(found, _)| usize::from(found)), Some(id));
            }
            assert_eq!(index.spread_anew(0, slots.len()), expected);
            index.clear();
        }
    }

    /// All of its entries stay in one bucket, and then do not.
    #[test]
    fn what_no_hash_spreads_is_tried_ever_more_seldom() {
        const ENTRIES: usize = 100;
        let mut index = Index::new();
        let walk_far = |index: &Index| index.long.store(true, Relaxed);
        let mut tried = Vec::new();
        for inserts in 0..100 * ENTRIES {
            walk_far(&index);
            if index.spread_anew(1, ENTRIES) {
                tried.push(inserts);
            }
        }
        let waits: Vec<_> = tried.windows(2).map(|pair| (pair[1] - pair[0]) / ENTRIES).collect();
        assert_eq!(waits, [8, 16, 32]);
        while index.spreads != 0 {
            *index.long.get_mut() = false;
            assert!(!index.spread_anew(1, ENTRIES));
        }
        walk_far(&index);
        assert!(index.spread_anew(1, ENTRIES), "at once");
    }

    /// Through whole tables: exact keys, keys with any source, and entries with it.
    #[test]
    fn colliding_entries_keep_their_order() {
        let half = if cfg!(miri) { 20 } else { 250 };
        for any in [(false, false), (false, true), (true, false)] {
            let source = |any| if any { Source::ANY } else { Source::new(1) };
            let mut table = Table::new(1000, Kernel::Scalar).unwrap();
            for round in 0..if cfg!(miri) { 1 } else { 20 } {
                for i in 0..2 * half {
                    let bits = colliding(u64::from(i % half));
                    let entry = Entry { bits, ignore: 0, source: source(any.0), token: i };
                    table.insert(entry).unwrap();
                }
                for i in (0..half).rev().chain(half..2 * half) {
                    let bits = colliding(u64::from(i % half));
                    let key = Key { bits, ignore: 0, source: source(any.1) };
                    let hit = table.first_match(&key).unwrap();
                    assert_eq!(hit.token, i, "round {round}");
                    table.remove(hit.handle).unwrap();
                }
            }
        }
    }
}
