// SPDX-License-Identifier: BSD-2-Clause
//! The capacity curve: the counts that a queue would have with a table of any size, from one pass.
//!
//! With [`Overflow::Spill`](crate::Overflow::Spill), and without a shared pool, a table of N
//! entries always holds the N oldest elements. So the age rank of an element determines its place
//! for every N at once, like the stack distance in a least-recently-used cache (Mattson, Gecsei,
//! Slutz, Traiger: "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2),
//! 1970):
//!
//! ```text
//! an element inserted behind o others                spills            if o >= N
//! one matched, kept or cancelled at rank r (from 1)  is in the table   if r <= N
//! one that leaves from rank r of o elements          promotes another  if r <= N < o
//! ```

use crate::counters::{Block, ByKind, KindCounters, QueueCounters, Traversals};

/// Counts of one queue by rank or by length; see the module.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Insertions, by the length of the queue before the insertion.
    inserts: ByKind<Vec<u64>>,
    /// Matches, by rank.
    matches: ByKind<Vec<u64>>,
    /// Searches without a match, by the length of the queue.
    misses: Vec<u64>,
    /// Peeks, by the rank of the element found or by the length of the queue.
    peeks: Vec<u64>,
    /// Matches that left the element in place, by rank.
    kept: Vec<u64>,
    /// Cancels, by rank.
    cancels: Vec<u64>,
    /// Departures that promote. The sum of the values up to index N is their number with a table of
    /// N entries.
    promotions: Vec<i64>,
    /// Rank of the last match.
    last: usize,
}

fn count<T: Default + Clone + std::ops::AddAssign>(counts: &mut Vec<T>, at: usize, more: T) {
    if at >= counts.len() {
        counts.resize((at + 1).next_power_of_two(), T::default());
    }
    counts[at] += more;
}

/// Sum of the counts from index `at` on.
fn from(counts: &[u64], at: usize) -> u64 {
    counts.iter().skip(at).sum()
}

/// Sum of the counts up to and including index `at`.
fn to(counts: &[u64], at: usize) -> u64 {
    counts.iter().take(at + 1).sum()
}

fn merge<T: Copy + Default + std::ops::AddAssign>(counts: &mut Vec<T>, others: &[T]) {
    if others.len() > counts.len() {
        counts.resize(others.len(), T::default());
    }
    for (count, other) in counts.iter_mut().zip(others) {
        *count += *other;
    }
}

impl Curve {
    pub(crate) fn insert(&mut self, len: usize, collective: bool) {
        count(self.inserts.of_mut(collective), len, 1);
    }

    pub(crate) fn matched(&mut self, rank: usize, collective: bool) {
        count(self.matches.of_mut(collective), rank, 1);
        self.last = rank;
    }

    pub(crate) fn missed(&mut self, len: usize) {
        count(&mut self.misses, len, 1);
    }

    pub(crate) fn peeked(&mut self, at: usize) {
        count(&mut self.peeks, at, 1);
    }

    /// Counts the last match as kept: its element stays in the queue.
    pub(crate) fn keep(&mut self) {
        count(&mut self.kept, self.last, 1);
    }

    pub(crate) fn cancel(&mut self, rank: usize) {
        count(&mut self.cancels, rank, 1);
    }

    pub(crate) fn leave(&mut self, rank: usize, len: usize) {
        count(&mut self.promotions, rank, 1);
        count(&mut self.promotions, len, -1);
    }

    /// Adds the curve of another queue.
    pub fn merge(&mut self, other: &Self) {
        for collective in [false, true] {
            let mut other = other.clone();
            merge(self.inserts.of_mut(collective), other.inserts.of_mut(collective));
            merge(self.matches.of_mut(collective), other.matches.of_mut(collective));
        }
        merge(&mut self.misses, &other.misses);
        merge(&mut self.peeks, &other.peeks);
        merge(&mut self.kept, &other.kept);
        merge(&mut self.cancels, &other.cancels);
        merge(&mut self.promotions, &other.promotions);
    }

    /// Numbers of elements that spill with a table of `entries`: `[collective, others]`.
    #[must_use]
    pub fn spills(&self, entries: usize) -> [u64; 2] {
        [&self.inserts.collective, &self.inserts.point_to_point]
            .map(|inserts| from(inserts, entries))
    }

    /// Number of entries that linear searches on the host compare behind a table of `entries`,
    /// peeks included.
    #[must_use]
    pub fn host_entries(&self, entries: usize) -> u64 {
        let beyond = |counts: &[u64]| -> u64 {
            counts.iter().zip(0..).skip(entries).map(|(n, at)| n * (at - entries as u64)).sum()
        };
        let ByKind { collective, point_to_point } = &self.matches;
        beyond(collective) + beyond(point_to_point) + beyond(&self.misses) + beyond(&self.peeks)
    }

    /// The smallest table with which no more than this share of the elements (0 to 1) spills.
    /// `which` selects collective elements, others, or both.
    #[must_use]
    pub fn smallest(&self, share: f64, which: impl Fn([u64; 2]) -> u64) -> usize {
        let allowed = which(self.spills(0)) as f64 * share;
        let longest = self.inserts.collective.len().max(self.inserts.point_to_point.len());
        let sizes: Vec<usize> = (0..=longest).collect();
        sizes.partition_point(|&entries| which(self.spills(entries)) as f64 > allowed)
    }

    /// The counters that the queue would have with a table of `entries`. `counted` are its counters
    /// with the table of the recorded run. The curve does not know what the host engine does, so
    /// the numbers of dedicated queues and unclustered elements, the choices and the traversals are
    /// zero or empty. Modelled and measured times are those of `counted`.
    #[must_use]
    pub fn counters(&self, counted: &QueueCounters, entries: usize) -> QueueCounters {
        let promotions: i64 = self.promotions.iter().take(entries + 1).sum();
        let len = counted.table_occupancy + counted.host_occupancy;
        let size = entries as u64;
        // A match that is neither removed nor kept yet counts as kept.
        let pending = counted.table_kept + counted.host_kept - from(&self.kept, 0);
        let (pending_table, pending_host) =
            if self.last <= entries { (pending, 0) } else { (0, pending) };
        let mut counters = QueueCounters {
            entries: size,
            table_kept: to(&self.kept, entries) + pending_table,
            host_kept: from(&self.kept, entries + 1) + pending_host,
            promotions: promotions.cast_unsigned(),
            table_cancels: to(&self.cancels, entries),
            host_cancels: from(&self.cancels, entries + 1),
            table_occupancy: len.min(size),
            host_occupancy: len.saturating_sub(size),
            table_high_water: counted.high_water.min(size),
            host_high_water: counted.high_water.saturating_sub(size),
            dedicated_collective: 0,
            dedicated_point_to_point: 0,
            dedicated_levels: ByKind::default(),
            unclustered: 0,
            traversals: Traversals::default(),
            spills: self.spills(entries).iter().sum(),
            ..counted.clone()
        };
        for collective in [false, true] {
            let (inserts, matches) = match collective {
                true => (&self.inserts.collective, &self.matches.collective),
                false => (&self.inserts.point_to_point, &self.matches.point_to_point),
            };
            let kind = counters.kinds.of_mut(collective);
            *kind = KindCounters {
                table_matches: to(matches, entries),
                host_matches: from(matches, entries + 1),
                block_reasons: Default::default(),
                ..kind.clone()
            };
            let reason = if entries == 0 { Block::Disabled } else { Block::TableFull };
            kind.block_reasons.add(reason, from(inserts, entries));
        }
        counters.with_sums_of_kinds()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{
        ByKind, Element, Key, Offload, OffloadConfig, QueueCounters, Source, TagLayout, Traversals,
    };

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u64),
        Take(u64),
        Keep(u64),
        Look(u64),
        Peek(u64),
        Cancel(u32),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => (0..6_u64).prop_map(Op::Insert),
            3 => (0..8_u64).prop_map(Op::Take),
            1 => (0..6_u64).prop_map(Op::Keep),
            1 => (0..6_u64).prop_map(Op::Look),
            1 => (0..6_u64).prop_map(Op::Peek),
            1 => (0..40_u32).prop_map(Op::Cancel),
        ]
    }

    fn queue(entries: usize) -> Offload {
        Offload::new(&OffloadConfig { entries, depths: true, ..Default::default() }).unwrap()
    }

    fn queue_with_curve(entries: usize) -> Offload {
        let mut queue = queue(entries);
        queue.keep_curve();
        queue
    }

    fn play(mut queue: Offload, ops: &[Op]) -> Offload {
        let any = Source::ANY;
        for (token, op) in (0..).zip(ops) {
            match *op {
                Op::Insert(bits) => {
                    queue.insert(Element { bits, ignore: 0, source: any, token });
                }
                Op::Take(bits) | Op::Keep(bits) | Op::Look(bits) => {
                    let found = queue.search(&Key { bits, ignore: 0, source: Source::new(1) });
                    match (op, found) {
                        (Op::Take(_), Some(found)) => assert!(queue.remove_matched(found.token)),
                        (Op::Keep(_), Some(found)) => queue.keep_matched(found.token),
                        _ => {}
                    }
                }
                Op::Peek(bits) => {
                    queue.peek(&Key { bits, ignore: 0, source: Source::new(1) });
                }
                Op::Cancel(token) => {
                    queue.cancel(token);
                }
            }
        }
        queue
    }

    proptest! {
        #[test]
        fn one_pass_yields_the_counts_of_every_table(
            ops in proptest::collection::vec(op(), 0..if cfg!(miri) { 15 } else { 120 }),
            recorded in 0..12_usize,
        ) {
            let one = play(queue_with_curve(recorded), &ops);
            let (curve, counted) = (one.curve().unwrap(), one.counters());
            for entries in (0..20).chain([64, 4096]) {
                let live = play(queue(entries), &ops).counters();
                prop_assert_eq!(curve.host_entries(entries), live.traversals.in_a_list);
                let expected = QueueCounters {
                    dedicated_collective: 0,
                    dedicated_point_to_point: 0,
                    dedicated_levels: ByKind::default(),
                    traversals: Traversals::default(),
                    ..live
                };
                prop_assert_eq!(curve.counters(&counted, entries), expected);
            }
        }
    }

    #[test]
    fn the_smallest_table_for_a_share_of_spills() {
        let ops: Vec<_> = (0..100).map(Op::Insert).collect();
        let one = play(queue_with_curve(4), &ops);
        let curve = one.curve().unwrap();
        let both = |[collective, rest]: [u64; 2]| collective + rest;
        let sizes = [0.0, 0.01, 0.05, 0.5, 1.0].map(|share| curve.smallest(share, both));
        assert_eq!(sizes, [100, 99, 95, 50, 0]);
    }

    #[test]
    fn counts_add_up_with_dedicated_queues() {
        let mut config = OffloadConfig { entries: 0, ..OffloadConfig::default() };
        config.engine_config.layout = TagLayout::Mpich;
        let mut one = Offload::new(&config).unwrap();
        one.keep_curve();
        let bits = 1 << 31 | 3;
        for _ in 0..4 {
            for token in 0..1000 {
                let source = Source::new(token);
                one.insert(Element { bits, ignore: 0, source, token });
            }
            for token in (0..1000).rev() {
                let key = Key { bits, ignore: 0, source: Source::new(token) };
                let found = one.search(&key).unwrap();
                one.remove_matched(found.token);
            }
        }
        let counted = one.counters();
        assert!(counted.dedicated_collective > 0);
        for entries in [0, 1, 500, 2000] {
            assert_eq!(one.curve().unwrap().counters(&counted, entries).check(), Ok(()));
        }
    }
}
