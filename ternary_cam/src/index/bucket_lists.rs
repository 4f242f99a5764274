// SPDX-License-Identifier: BSD-2-Clause
//! The hash table of a secondary index. It finds entries by the fields that one pattern compares,
//! and is made for keys that several entries match. A bucket is a circular list.
//!
//! ```text
//! nodes
//! [ bucket 0 | bucket 1 | ...      | slot 0 | slot 1 | ... ]
//!   names        |  ^                 ^
//!   itself:      v  |                 |
//!   empty      oldest <-> ... <-> youngest
//! ```
//!
//! A bucket is a node of its list, so that entries are added and removed without a branch. A branch
//! on whether an entry is the oldest or the only one in its bucket would be mispredicted, if keys
//! of several kinds take entries in any order. The primary index (`buckets.rs`) usually has one
//! entry per bucket, which a search finds in one step; there the branch is predictable.

use crate::entry::Key;
use crate::index::pattern::Pattern;
use crate::index::seeded_hash::{BUCKETS, SeededHash};
use crate::slot::Slot;

/// A bucket, or an entry in its list: the numbers of two other nodes. They are stored and loaded
/// one by one, like the fields of [`crate::slot::RingLink`].
type Node = [u32; 2];

/// Index of the next younger node. In the youngest entry, this is the bucket; in the bucket, the
/// oldest entry.
const NEXT: usize = 0;

/// Index of the next older node. In the oldest entry, this is the bucket; in the bucket, the
/// youngest entry.
const PREV: usize = 1;

/// The hash table; see the module. Nodes that no bucket leads to may name removed entries.
pub(crate) struct BucketLists {
    /// Empty until the table is cleared for the first time.
    nodes: Vec<Node>,
    seeded: SeededHash,
}

/// Minimum number of buckets: one page.
const FEWEST: usize = 512;

/// Minimum number of buckets per entry, at most [`BUCKETS`].
const ROOM: usize = 4;

impl BucketLists {
    /// Creates a table that must be cleared before use.
    pub(crate) fn new() -> Self {
        Self { nodes: Vec::new(), seeded: SeededHash::with_buckets(BUCKETS) }
    }

    /// Makes room for the entries of this many slots.
    pub(crate) fn grow(&mut self, slots: usize) {
        self.nodes.resize(self.seeded.buckets() + slots, Node::default());
    }

    /// Removes all entries and resets the search statistics. Prepares the table for up to `entries`
    /// entries in `slots` slots.
    pub(crate) fn clear(&mut self, entries: usize, slots: usize) {
        let buckets = (2 * ROOM * entries).next_power_of_two().clamp(FEWEST, BUCKETS);
        self.seeded.set_buckets(buckets);
        self.seeded.forget();
        self.grow(slots);
        self.empty();
    }

    /// Returns true if there are too few buckets for this many entries.
    pub(crate) const fn is_narrow(&self, entries: usize) -> bool {
        let buckets = self.seeded.buckets();
        buckets < BUCKETS && buckets <= ROOM * entries
    }

    fn empty(&mut self) {
        for (bucket, node) in (0..).zip(&mut self.nodes[..self.seeded.buckets()]) {
            *node = [bucket, bucket];
        }
    }

    /// Chooses another hash if that is due ([`SeededHash::reseed_if_due`]). Returns true if so; the
    /// table is then empty, and the caller must fill it.
    pub(crate) fn reseed(&mut self, inserts: usize, entries: usize) -> bool {
        let anew = self.seeded.reseed_if_due(inserts, entries);
        if anew {
            self.empty();
        }
        anew
    }

    /// Returns the node of the bucket of these bits and this source.
    #[inline(always)]
    const fn bucket(&self, pattern: &Pattern, bits: u64, source: u32) -> usize {
        self.seeded.bucket(self.seeded.hash(pattern, bits, source))
    }

    /// Returns the node of a slot.
    #[inline(always)]
    const fn node(&self, id: u16) -> usize {
        self.seeded.buckets() + id as usize
    }

    /// Adds an entry that is younger than all others.
    #[inline(always)]
    pub(crate) fn insert(&mut self, slots: &[Slot], pattern: &Pattern, id: u16) {
        let slot = &slots[usize::from(id)];
        let bucket = self.bucket(pattern, slot.bits, slot.source);
        let own = self.node(id);
        let youngest = std::mem::replace(&mut self.nodes[bucket][PREV], own as u32);
        self.nodes[own][NEXT] = bucket as u32;
        self.nodes[own][PREV] = youngest;
        self.nodes[youngest as usize][NEXT] = own as u32;
    }

    /// Removes an entry.
    #[inline(always)]
    pub(crate) fn remove(&mut self, id: u16) {
        let [next, prev] = self.nodes[self.node(id)];
        self.nodes[next as usize][PREV] = prev;
        self.nodes[prev as usize][NEXT] = next;
    }

    /// Returns the oldest entry that agrees with a key in all fields that the pattern compares. It
    /// is nearly always the first entry in its bucket.
    #[inline(always)]
    pub(crate) fn first_for<'a>(
        &self,
        slots: &'a [Slot],
        pattern: &Pattern,
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        let bucket = self.bucket(pattern, key.bits, key.source.0);
        let oldest = self.nodes[bucket][NEXT] as usize;
        let id = oldest.checked_sub(self.seeded.buckets())?;
        let slot = &slots[id];
        if pattern.agree(slot, key) {
            return Some((id as u16, slot));
        }
        self.first_behind(slots, pattern, key, oldest)
    }

    /// Returns the oldest entry after node `at` that agrees, and notes how many entries the search
    /// passed.
    #[inline(never)]
    fn first_behind<'a>(
        &self,
        slots: &'a [Slot],
        pattern: &Pattern,
        key: &Key,
        mut at: usize,
    ) -> Option<(u16, &'a Slot)> {
        let mut passed = 0;
        let found = loop {
            passed += 1;
            at = self.nodes[at][NEXT] as usize;
            let Some(id) = at.checked_sub(self.seeded.buckets()) else { break None };
            let slot = &slots[id];
            if pattern.agree(slot, key) {
                break Some((id as u16, slot));
            }
        };
        self.seeded.note_passed(passed);
        found
    }
}

#[cfg(test)]
impl BucketLists {
    /// Checks that each entry is in the list of its bucket, in age order. Returns the number of
    /// entries.
    pub(crate) fn check(&self, slots: &[Slot], pattern: &Pattern) -> usize {
        let mut entries = 0;
        for bucket in 0..self.seeded.buckets() {
            let (mut at, mut before) = (bucket, None);
            loop {
                let next = self.nodes[at][NEXT] as usize;
                assert_eq!(self.nodes[next][PREV] as usize, at);
                at = next;
                if at == bucket {
                    break;
                }
                let slot = &slots[at - self.seeded.buckets()];
                assert_eq!(self.bucket(pattern, slot.bits, slot.source), bucket);
                assert!(before < Some(slot.stamp), "by age");
                before = Some(slot.stamp);
                entries += 1;
            }
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, BucketLists};
    use crate::entry::{Key, Source};
    use crate::index::pattern::Pattern;
    use crate::index::seeded_hash::{LONG, colliding};
    use crate::slot::{Class, Slot, Stamp};
    use crate::wildcards::Wildcards;

    const ANY_TAG: Wildcards = Wildcards { ignore: 0xffff, any_source: false };

    /// Returns slots with entries of four sources in turn, in age order.
    fn slots(count: usize) -> Vec<Slot> {
        let slot = |i| Slot {
            bits: i,
            source: (i % 4) as u32,
            stamp: Stamp::new(i, Class::BASE),
            ..Slot::EMPTY
        };
        (0..count as u64).map(slot).collect()
    }

    const fn key(source: u32) -> Key {
        Key { bits: 0, ignore: ANY_TAG.ignore, source: Source::new(source) }
    }

    #[test]
    fn the_oldest_of_a_ring_is_found_after_any_removal() {
        let slots = slots(40);
        let pattern = Pattern::new(ANY_TAG);
        let mut lists = BucketLists::new();
        lists.clear(slots.len(), slots.len());
        for id in 0..slots.len() as u16 {
            lists.insert(&slots, &pattern, id);
        }
        assert_eq!(lists.check(&slots, &pattern), slots.len());
        // Removes entries of source 1: the youngest, the oldest and one in between.
        for (leaves, oldest) in [(37, 1), (1, 5), (17, 5), (5, 9)] {
            lists.remove(leaves);
            let found = lists.first_for(&slots, &pattern, &key(1));
            assert_eq!(found.map(|(id, slot)| (id, slot.bits)), Some((oldest, oldest.into())));
        }
        for id in (0..40).step_by(4) {
            lists.remove(id);
        }
        assert!(lists.first_for(&slots, &pattern, &key(0)).is_none());
        assert!(lists.first_for(&slots, &pattern, &key(7)).is_none());
        assert_eq!(lists.check(&slots, &pattern), slots.len() - 4 - 10);
    }

    #[test]
    fn few_entries_have_few_buckets() {
        let mut lists = BucketLists::new();
        for (entries, buckets) in [(16, 512), (64, 512), (128, 1024), (5000, BUCKETS)] {
            lists.clear(entries, 16);
            assert_eq!(lists.seeded.buckets(), buckets);
            assert_eq!(lists.nodes.len(), buckets + 16);
            assert!(!lists.is_narrow(entries));
            assert_eq!(lists.is_narrow(2 * entries), (64..2048).contains(&entries));
        }
    }

    #[test]
    fn a_long_ring_is_noticed_and_rehashed() {
        let bits = (0..2 * u64::from(LONG)).map(|i| colliding(i, 1024));
        let slots: Vec<_> = bits.map(|bits| Slot { bits, source: 1, ..Slot::EMPTY }).collect();
        let mut lists = BucketLists::new();
        lists.clear(slots.len(), slots.len());
        for expected in [true, false] {
            for id in 0..slots.len() as u16 {
                lists.insert(&slots, &Pattern::EXACT, id);
            }
            for (id, slot) in slots.iter().enumerate() {
                let key = Key { bits: slot.bits, ignore: 0, source: Source::new(1) };
                let found = lists.first_for(&slots, &Pattern::EXACT, &key);
                assert_eq!(found.map(|(found, _)| usize::from(found)), Some(id));
            }
            assert_eq!(lists.reseed(0, slots.len()), expected);
            lists.empty();
        }
    }
}
