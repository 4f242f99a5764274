// SPDX-License-Identifier: BSD-2-Clause
//! The hash table of the primary index. It finds entries by the fields that their patterns compare.
//!
//! Each class has separate buckets. So entries of different classes do not share a bucket, and
//! consecutive tags have a bucket each (`pattern.rs`).
//!
//! ```text
//! buckets
//! [ base class | class 1 | class 2 | ... ]    up to the last class that had entries
//! ```
//!
//! All classes have the same number of buckets, which grows with the number of slots.
//!
//! The entries of a bucket form a ring in age order. The bucket names the oldest:
//!
//! ```text
//! buckets
//! [ ... ]     +-> a <-> d <-> f --+
//! [  a  ] --> | (prev of a is f)  |     oldest to youngest
//! [ ... ]     +-------------------+
//! ```
//!
//! A bucket is one word. Its *mark* consists of bits of its entry's hash. By the marks, a search of
//! several buckets excludes most buckets without a match, and reads none of their entries:
//!
//! ```text
//! 31           30     17     16            0
//! [ unmarked | mark        | occupied | slot ]
//! ```
//!
//! All entries of a class that match a key are in the same bucket, so the first match in the ring
//! is the oldest match of the class. A search passes only entries that share the bucket by chance.
//! If these are many, the index is rebuilt with another hash.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::entry::Key;
use crate::index::pattern::Pattern;
use crate::index::seeded_hash::{BUCKETS, SeededHash};
use crate::slot::{Class, RingLink, Slot};

/// An empty bucket. It is zero, so that pages of large new arrays stay untouched.
const EMPTY: u32 = 0;

/// In a bucket: the bucket is not empty.
const OCCUPIED: u32 = 1 << u16::BITS;

/// In a bucket: the bucket may hold any entry, because it has or had several entries since it was
/// last empty, or because its entry was added without a mark.
const UNMARKED: u32 = 1 << 31;

/// In a bucket: the mark of its only entry.
const MARK: u32 = UNMARKED - 2 * OCCUPIED;

/// Returns the word of a bucket whose oldest entry is `id`.
#[inline(always)]
const fn bucket_of(id: u16, mark: u32) -> u32 {
    id as u32 | OCCUPIED | mark
}

/// Returns the bits of a hash after those that choose the bucket, shifted to the place of [`MARK`].
/// The other bits of the result are arbitrary, and the caller masks them.
#[inline(always)]
const fn mark(hash: u64) -> u32 {
    (hash >> (u64::BITS - BUCKETS.trailing_zeros() - UNMARKED.trailing_zeros())) as u32
}

/// Number of buckets of a class per slot, at most [`BUCKETS`]. With four instead, a fifth of the
/// entries with strides of tags or sources would share a bucket.
const ROOM: usize = 16;

/// Returns the oldest entry of a bucket that is not empty.
#[inline(always)]
const fn head_of(bucket: u32) -> u16 {
    bucket as u16
}

#[inline(always)]
fn link(slots: &mut [Slot], id: u16) -> &mut RingLink {
    &mut slots[usize::from(id)].link
}

/// A probed bucket, to be searched later.
#[derive(Clone, Copy)]
pub(crate) struct ProbedBucket(u32);

impl ProbedBucket {
    pub(crate) const NONE: Self = Self(EMPTY);

    #[inline(always)]
    pub(crate) const fn is_none(self) -> bool {
        self.0 == EMPTY
    }
}

/// The buckets; see the module. The fields that every operation loads come first.
#[repr(C)]
pub(crate) struct Buckets {
    /// Contains the buckets of the classes up to the last one that ever had entries, and at least
    /// those of the base class.
    buckets: Box<[u32]>,
    seeded: SeededHash,
    /// Number of entries that searches passed, minus those credited by [`Buckets::credit`].
    passed: AtomicU32,
}

impl Buckets {
    /// Creates an index for a table without slots.
    pub(crate) fn new() -> Self {
        let seeded = SeededHash::with_buckets(1);
        Self { buckets: Box::new([EMPTY]), seeded, passed: AtomicU32::new(0) }
    }

    /// Allocates more buckets if there are too few for this many slots. Returns true if so; the
    /// index is then empty, and the caller must fill it.
    pub(crate) fn grow(&mut self, slots: usize) -> bool {
        let buckets = (ROOM * slots).next_power_of_two().min(BUCKETS);
        let more = buckets > self.seeded.buckets();
        if more {
            let classes = self.buckets.len() / self.seeded.buckets();
            self.buckets = vec![EMPTY; classes * buckets].into();
            *self.passed.get_mut() = 0;
            self.seeded.set_buckets(buckets);
        }
        more
    }

    /// Returns the number of entries that searches passed, minus those credited.
    #[inline(always)]
    pub(crate) fn passed(&self) -> u32 {
        self.passed.load(Relaxed)
    }

    /// Subtracts this many entries from [`Buckets::passed`].
    pub(crate) fn credit(&mut self, entries: usize) {
        let passed = self.passed.get_mut();
        *passed = passed.saturating_sub(entries as u32);
    }

    /// Removes all entries and resets the search statistics. Bit `i` of `live`: class `i` may have
    /// entries.
    pub(crate) fn clear(&mut self, live: u8) {
        self.seeded.forget();
        self.empty(live);
    }

    fn empty(&mut self, live: u8) {
        *self.passed.get_mut() = 0;
        let rows = self.buckets.chunks_exact_mut(self.seeded.buckets());
        for (_, row) in rows.enumerate().filter(|(class, _)| live >> class & 1 != 0) {
            row.fill(EMPTY);
        }
    }

    /// Chooses another hash if that is due ([`SeededHash::reseed_if_due`]). Returns true if so; the
    /// index is then empty, and the caller must fill it. Bit `i` of `live`: class `i` may have had
    /// entries.
    pub(crate) fn reseed(&mut self, inserts: usize, entries: usize, live: u8) -> bool {
        let anew = self.seeded.reseed_if_due(inserts, entries);
        if anew {
            self.empty(live);
        }
        anew
    }

    /// Returns the place of the bucket of a hash in a class.
    #[inline(always)]
    const fn place(&self, class: Class, hash: u64) -> usize {
        class.pattern() * self.seeded.buckets() + self.seeded.bucket(hash)
    }

    /// Returns the buckets of each of the first `N` classes, with one check of the length. The last
    /// of these classes has or had entries, so the result is never `None`; a panic would cost a
    /// stack frame.
    #[inline(always)]
    pub(crate) fn rows<const N: usize>(&self) -> Option<[&[u32]; N]> {
        let buckets = self.seeded.buckets();
        debug_assert!(N * buckets <= self.buckets.len());
        let rows = self.buckets.get(..N * buckets)?;
        Some(std::array::from_fn(|class| &rows[class * buckets..][..buckets]))
    }

    /// Returns the buckets of a class that has or had entries.
    #[inline(always)]
    pub(crate) fn row(&self, class: Class) -> &[u32] {
        &self.buckets[self.place(class, 0)..][..self.seeded.buckets()]
    }

    /// Returns the bucket of these bits and this source among those of a class, and true if the
    /// bucket may hold a match.
    #[inline(always)]
    pub(crate) fn probe(
        &self,
        row: &[u32],
        pattern: &Pattern,
        bits: u64,
        source: u32,
    ) -> (ProbedBucket, bool) {
        let hash = self.seeded.hash(pattern, bits, source);
        let bucket = row[self.seeded.bucket(hash)];
        (ProbedBucket(bucket), (bucket ^ (mark(hash) | UNMARKED | OCCUPIED)) < UNMARKED + OCCUPIED)
    }

    /// Returns the oldest match in the bucket of these bits and this source in a class; `None` if
    /// no entry matches. The match is nearly always the first entry of the bucket.
    #[inline(always)]
    pub(crate) fn first<'a>(
        &self,
        slots: &'a [Slot],
        under: (Class, &Pattern),
        (bits, source): (u64, u32),
        matches: impl Fn(&Slot) -> bool,
    ) -> Option<(u16, &'a Slot)> {
        let (id, slot) = self.oldest(slots, under, bits, source)?;
        if matches(slot) { Some((id, slot)) } else { self.first_behind(slots, id, matches) }
    }

    /// Returns the oldest base entry that agrees with a key in all fields that the pattern
    /// compares.
    #[inline(always)]
    pub(crate) fn first_for<'a>(
        &self,
        slots: &'a [Slot],
        pattern: &Pattern,
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        let agrees = |slot: &Slot| pattern.agree(slot, key);
        self.first(slots, (Class::BASE, pattern), (key.bits, key.source.0), agrees)
    }

    /// Returns the oldest entry of a class that agrees with a key in its source and in all bits
    /// that the pattern compares. The key names its source. The pattern, and so the bucket, may
    /// include the source or not.
    #[inline(always)]
    pub(crate) fn first_named<'a>(
        &self,
        slots: &'a [Slot],
        (class, pattern): (Class, &Pattern),
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        let care = pattern.care();
        let equals = move |slot: &Slot| slot.equals(key, care);
        self.first(slots, (class, pattern), (key.bits, key.source.0), equals)
    }

    /// Returns the oldest entry in the bucket of these bits and this source, whether it matches or
    /// not.
    #[inline(always)]
    fn oldest<'a>(
        &self,
        slots: &'a [Slot],
        (class, pattern): (Class, &Pattern),
        bits: u64,
        source: u32,
    ) -> Option<(u16, &'a Slot)> {
        let hash = self.seeded.hash(pattern, bits, source);
        let first = *self.buckets.get(self.place(class, hash))?;
        (first != EMPTY).then(|| (head_of(first), &slots[usize::from(head_of(first))]))
    }

    /// Returns the oldest match in a bucket that is not empty; `None` if no entry matches.
    #[inline(always)]
    pub(crate) fn first_in_probed<'a>(
        &self,
        slots: &'a [Slot],
        probed: ProbedBucket,
        matches: impl Fn(&Slot) -> bool,
    ) -> Option<(u16, &'a Slot)> {
        let id = head_of(probed.0);
        let slot = &slots[usize::from(id)];
        if matches(slot) { Some((id, slot)) } else { self.first_behind(slots, id, matches) }
    }

    /// Returns the oldest match after the head of a ring, and counts the entries that the search
    /// passes.
    #[inline(never)]
    fn first_behind<'a>(
        &self,
        slots: &'a [Slot],
        head: u16,
        matches: impl Fn(&Slot) -> bool,
    ) -> Option<(u16, &'a Slot)> {
        let (mut at, mut passed) = (head, 0);
        let found = loop {
            at = slots[usize::from(at)].link.next;
            if at == head {
                break None;
            }
            passed += 1;
            let slot = &slots[usize::from(at)];
            if matches(slot) {
                break Some((at, slot));
            }
        };
        self.seeded.note_passed(passed);
        // If two searches run at the same time, only one of them may be counted.
        self.passed.store(self.passed.load(Relaxed).saturating_add(passed), Relaxed);
        found
    }

    /// Adds an entry that is younger than all others of its class.
    #[inline(always)]
    pub(crate) fn insert(&mut self, slots: &mut [Slot], under: (Class, &Pattern), id: u16) {
        self.insert_as::<false>(slots, under, id);
    }

    /// Like [`Buckets::insert`], but marks a bucket that was empty, so that [`Buckets::probe`] can
    /// exclude the bucket. Takes three more instructions.
    #[inline(always)]
    pub(crate) fn insert_marked(&mut self, slots: &mut [Slot], under: (Class, &Pattern), id: u16) {
        self.insert_as::<true>(slots, under, id);
    }

    #[inline(always)]
    fn insert_as<const MARKED: bool>(
        &mut self,
        slots: &mut [Slot],
        (class, pattern): (Class, &Pattern),
        id: u16,
    ) {
        let slot = &mut slots[usize::from(id)];
        let hash = self.seeded.hash(pattern, slot.bits, slot.source);
        let own = &mut slot.link;
        let place = self.place(class, hash);
        own.location = place as u32;
        let Some(bucket) = self.buckets.get_mut(place) else {
            return self.insert_first::<MARKED>(slots, (class, pattern), id);
        };
        let first = *bucket;
        if first == EMPTY {
            (own.next, own.prev) = (id, id);
            *bucket = bucket_of(id, if MARKED { mark(hash) & MARK } else { UNMARKED });
            return;
        }
        // Usually the bit is set already; storing it each time would add a store that the next
        // insert waits for.
        if first & UNMARKED == 0 {
            *bucket = first | UNMARKED;
        }
        let oldest = head_of(first);
        own.next = oldest;
        let youngest = std::mem::replace(&mut link(slots, oldest).prev, id);
        link(slots, youngest).next = id;
        link(slots, id).prev = youngest;
    }

    /// Allocates buckets for a class, and inserts its first entry.
    #[cold]
    #[inline(never)]
    fn insert_first<const MARKED: bool>(
        &mut self,
        slots: &mut [Slot],
        (class, pattern): (Class, &Pattern),
        id: u16,
    ) {
        let mut buckets = std::mem::take(&mut self.buckets).into_vec();
        buckets.resize((class.pattern() + 1) * self.seeded.buckets(), EMPTY);
        self.buckets = buckets.into();
        self.insert_as::<MARKED>(slots, (class, pattern), id);
    }

    /// Removes an entry.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], id: u16) {
        let RingLink { location, next, prev } = slots[usize::from(id)].link;
        let bucket = &mut self.buckets[location as usize];
        if next == id {
            *bucket = EMPTY;
            return;
        }
        link(slots, next).prev = prev;
        link(slots, prev).next = next;
        if head_of(*bucket) == id {
            *bucket = bucket_of(next, UNMARKED);
        }
    }
}

#[cfg(test)]
impl Buckets {
    /// Checks that each entry is in the ring of its bucket, in age order. Returns the number of
    /// entries.
    pub(crate) fn check<'a>(
        &self,
        slots: &'a [Slot],
        under: impl Fn(&'a Slot) -> (Class, &'a Pattern),
    ) -> usize {
        let mut entries = 0;
        for (bucket, &first) in
            self.buckets.iter().enumerate().filter(|(_, first)| **first != EMPTY)
        {
            let oldest = head_of(first);
            let (mut at, mut before) = (oldest, None);
            loop {
                let slot = &slots[usize::from(at)];
                let link = slot.link;
                let (class, pattern) = under(slot);
                let hash = self.seeded.hash(pattern, slot.bits, slot.source);
                assert_eq!(self.place(class, hash), bucket);
                let probed = self.probe(self.row(class), pattern, slot.bits, slot.source);
                assert_eq!((probed.0.0, probed.1), (first, true));
                assert_eq!(link.location as usize, bucket);
                assert_eq!(slots[usize::from(link.next)].link.prev, at);
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
    use super::Buckets;
    use crate::entry::{Entry, Key, Source};
    use crate::index::pattern::Pattern;
    use crate::index::seeded_hash::{BUCKETS, LONG, colliding};
    use crate::kernel::Kernel;
    use crate::slot::{Class, Slot};
    use crate::table::Table;

    const BASE: (Class, &Pattern) = (Class::BASE, &Pattern::EXACT);

    /// Only the base class has entries.
    const LIVE: u8 = 1;

    #[test]
    fn consecutive_tags_and_sources_share_no_bucket() {
        let mut buckets = Buckets::new();
        for entries in [64, 128, 256, 512, 6000] {
            if cfg!(miri) && entries > 64 {
                break;
            }
            assert!(buckets.grow(entries));
            let mut last = vec![0; BUCKETS];
            for tags in 1..=entries {
                for (tag, source) in
                    (0..tags).flat_map(|tag| (0..entries / tags).map(move |of| (tag, of)))
                {
                    let hash = buckets.seeded.hash(&Pattern::EXACT, tag as u64, source as u32);
                    let last = &mut last[buckets.seeded.bucket(hash)];
                    assert_ne!(*last, tags, "tag {tag}, source {source}, {entries} entries");
                    *last = tags;
                }
            }
        }
    }

    #[test]
    fn a_long_bucket_is_noticed_and_rehashed() {
        let mut slots = vec![Slot::EMPTY; 2 * LONG as usize];
        let mut buckets = Buckets::new();
        buckets.grow(slots.len());
        for (slot, i) in slots.iter_mut().zip(0..) {
            (slot.bits, slot.source) = (colliding(i, buckets.seeded.buckets()), 1);
        }
        for expected in [true, false] {
            for id in 0..slots.len() as u16 {
                buckets.insert(&mut slots, BASE, id);
            }
            for (id, slot) in slots.iter().enumerate() {
                let key = (slot.bits, 1);
                let found = buckets.first(&slots, BASE, key, |it| it.bits == key.0);
                assert_eq!(found.map(|(found, _)| usize::from(found)), Some(id));
            }
            assert_eq!(buckets.reseed(0, slots.len(), LIVE), expected);
            buckets.clear(LIVE);
        }
    }

    /// Tests whole tables: with exact keys, with any-source keys, and with any-source entries.
    #[test]
    fn colliding_entries_keep_their_order() {
        let half = if cfg!(miri) { 20 } else { 250 };
        for any in [(false, false), (false, true), (true, false)] {
            let source = |any| if any { Source::ANY } else { Source::new(1) };
            let mut table = Table::new(1000, Kernel::Scalar).unwrap();
            for round in 0..if cfg!(miri) { 1 } else { 20 } {
                // They collide in the primary index in some rounds, and in a secondary one in
                // others, which has another number of buckets.
                let buckets = 1024 << (round % 5);
                for i in 0..2 * half {
                    let bits = colliding(u64::from(i % half), buckets);
                    let entry = Entry { bits, ignore: 0, source: source(any.0), token: i };
                    table.insert(entry).unwrap();
                }
                for i in (0..half).rev().chain(half..2 * half) {
                    let bits = colliding(u64::from(i % half), buckets);
                    let key = Key { bits, ignore: 0, source: source(any.1) };
                    let hit = table.first_match(&key).unwrap();
                    assert_eq!(hit.token, i, "round {round}");
                    table.remove(hit.handle).unwrap();
                }
            }
        }
    }
}
