// SPDX-License-Identifier: BSD-2-Clause
//! Tests the numbers that a queue returns about itself, sums of the counters of two queues, and that
//! changed counters no longer add up.

use matching::measured::{MeasuredTime, Spent};
use matching::{
    Curve, Element, EngineConfig, HostEngine, HostStorage, Key, Offload, OffloadConfig,
};
use matching::{QueueCounters, Source, TagLayout};

const COLLECTIVE: u64 = 1 << 31;

fn queue(entries: usize, engine: HostEngine, storage: HostStorage) -> Offload {
    let engine_config =
        EngineConfig { layout: TagLayout::Mpich, storage, theta: 1, ..EngineConfig::default() };
    let config =
        OffloadConfig { entries, engine, engine_config, depths: true, ..OffloadConfig::default() };
    Offload::new(&config).unwrap()
}

fn element(bits: u64, token: u32) -> Element {
    Element { bits, ignore: 0, source: Source::new(1), token }
}

fn key(bits: u64) -> Key {
    Key { bits, ignore: 0, source: Source::new(1) }
}

#[test]
fn a_queue_returns_its_lengths_and_counts() {
    for &storage in HostStorage::ALL {
        let mut queue = queue(1, HostEngine::List, storage);
        assert!(queue.is_empty() && !queue.contains(0) && queue.charged() == 0);
        for token in 0..3 {
            queue.insert(element(u64::from(token), token));
        }
        assert_eq!((queue.len(), queue.occupancy(), queue.is_empty()), (3, (1, 2), false));
        assert_eq!([0, 2, 3, 99].map(|token| queue.contains(token)), [true, true, false, false]);
        assert_eq!(queue.iter_tokens().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(queue.search_if_any(&key(2)).map(|found| found.token), Some(2));
        queue.remove_matched(2);
        assert!(!queue.contains(2) && queue.search_if_any(&key(7)).is_none());
        // The longest state since the last call, then that of now.
        assert_eq!(
            (queue.recent(), queue.take_recent(), queue.take_recent()),
            ((1, 2), (1, 2), (1, 1))
        );
        // The element that was found is the third of all, and the second on the host.
        assert_eq!(queue.search_depth().hit_entries, 3);
        assert_eq!(queue.search_depth().miss_entries, 2);
        assert_eq!((queue.traversals().entries, queue.traversals().in_a_list), (3, 3));
        // A search that is repeated counts once.
        queue.insert(element(7, 4));
        assert_eq!(queue.search_again(&key(7)).map(|found| found.token), Some(4));
        queue.remove_matched(4);
        assert_eq!(queue.search(&key(0)).map(|found| found.token), Some(0));
        queue.remove_matched(0);
        let counters = queue.counters();
        assert_eq!((counters.searches, counters.misses, counters.promotions), (3, 0, 1));
        let tallies = queue.tallies();
        let QueueCounters { entries, table_matches, host_matches, spills, high_water, .. } =
            counters;
        assert_eq!(
            (tallies.entries, tallies.table_matches, tallies.host_matches),
            (entries, table_matches, host_matches)
        );
        assert_eq!((tallies.spills, tallies.high_water, high_water), (spills, high_water, 3));
        assert_eq!(
            (tallies.table_occupancy, tallies.host_occupancy, tallies.promotions),
            (1, 0, 1)
        );
    }
}

#[test]
fn an_empty_queue_counts_the_searches_that_pass_it() {
    let mut queue = queue(1, HostEngine::List, HostStorage::default());
    assert!(queue.search_if_any(&key(7)).is_none());
    assert!(queue.search_if_any(&key(COLLECTIVE)).is_none());
    let counters = queue.counters();
    assert_eq!((counters.searches, counters.misses), (2, 2));
    assert_eq!(counters.kinds.collective.misses, 1);
    counters.check().unwrap();
}

/// Counters of a queue after some operations of both kinds, and its curve.
fn counted(elements: u32) -> (QueueCounters, Curve) {
    let mut queue = queue(2, HostEngine::ColList, HostStorage::default());
    queue.keep_curve();
    for token in 0..elements {
        let bits = if token % 3 == 0 { COLLECTIVE } else { 0 } | u64::from(token);
        queue.insert(element(bits, token));
    }
    for token in (0..elements).step_by(2) {
        let bits = if token % 3 == 0 { COLLECTIVE } else { 0 } | u64::from(token);
        queue.search(&key(bits)).unwrap();
        queue.remove_matched(token);
    }
    queue.cancel(1);
    queue.peek(&key(99));
    queue.search(&key(99));
    let counters = queue.counters();
    counters.check().unwrap();
    (counters, queue.curve().unwrap().clone())
}

#[test]
fn a_sum_has_the_counts_of_both_queues_and_the_larger_marks() {
    let (few, many) = (counted(6), counted(40));
    for (first, second) in [(&few, &many), (&many, &few)] {
        let mut sum = first.0.clone();
        sum.merge(&second.0);
        sum.check().unwrap();
        let counts: [fn(&QueueCounters) -> u64; 16] = [
            |of| of.inserts,
            |of| of.searches,
            |of| of.table_matches,
            |of| of.host_matches,
            |of| of.misses,
            |of| of.spills,
            |of| of.promotions,
            |of| of.table_cancels,
            |of| of.host_cancels,
            |of| of.block_reasons.iter().map(|(_, n)| n).sum(),
            |of| of.kinds.collective.inserts,
            |of| of.search_depth.hit_entries,
            |of| of.search_depth.miss_entries,
            |of| of.traversals.entries,
            |of| of.traversals.in_a_list,
            |of| of.traversals.found.count,
        ];
        for (at, count) in counts.into_iter().enumerate() {
            assert_eq!(count(&sum), count(&few.0) + count(&many.0), "count {at}");
        }
        let total = |of: &QueueCounters| {
            let (depth, traversed) = (&of.search_depth, &of.traversals);
            [&depth.hit, &depth.miss, &traversed.hit, &traversed.miss]
                .map(matching::Histogram::total)
        };
        let [few_of, many_of] = [total(&few.0), total(&many.0)];
        assert_eq!(total(&sum), [0, 1, 2, 3].map(|at| few_of[at] + many_of[at]));
        assert_eq!((sum.high_water, sum.host_high_water), (40, 38));
        assert_eq!(sum.dedicated_levels, many.0.dedicated_levels);
        let mut curve = first.1.clone();
        curve.merge(&second.1);
        for entries in [0, 1, 2, 7, 39, 40] {
            assert_eq!(
                curve.host_entries(entries),
                few.1.host_entries(entries) + many.1.host_entries(entries)
            );
            let spills = |curve: &Curve, of: &QueueCounters| {
                let QueueCounters { spills, promotions, table_matches, .. } =
                    curve.counters(of, entries);
                [spills, promotions, table_matches]
            };
            let [of_sum, of_few, of_many] =
                [spills(&curve, &sum), spills(&few.1, &few.0), spills(&many.1, &many.0)];
            assert_eq!(of_sum, [0, 1, 2].map(|at| of_few[at] + of_many[at]), "{entries} entries");
        }
    }
    let ns = |ns| Spent { count: 1, ns };
    let mut time = MeasuredTime::default();
    time.search.table = ns(3);
    time.merge(&time.clone());
    assert_eq!((time.ns(), time.search.table), (6, Spent { count: 2, ns: 6 }));
}

#[test]
fn changed_counters_do_not_add_up() {
    let (counters, _) = counted(12);
    let changes: [fn(&mut QueueCounters); 14] = [
        |of| of.inserts += 1,
        |of| of.searches += 1,
        |of| of.table_matches += 1,
        |of| of.host_matches += 1,
        |of| of.misses += 1,
        |of| of.spills += 1,
        |of| of.promotions += 1,
        |of| of.table_cancels += 1,
        |of| of.host_cancels += 1,
        |of| of.table_occupancy += 1,
        |of| of.host_occupancy += 1,
        |of| of.onloads += 1,
        |of| of.block_reasons.order += 1,
        |of| of.kinds.collective.misses += 1,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut changed = counters.clone();
        change(&mut changed);
        assert!(changed.check().is_err(), "change {at}");
    }
}

#[test]
fn modelled_times_add_up() {
    use matching::timing::ModelledTime;
    let part = ModelledTime {
        table_ps: 1,
        host_ps: 2,
        way_ps: 3,
        spill_ps: 4,
        promote_ps: 5,
        ..Default::default()
    };
    let mut both = QueueCounters { modelled: part, ..QueueCounters::default() };
    both.merge(&both.clone());
    let sum = both.modelled;
    assert_eq!((sum.picoseconds(), sum.overflow_ps()), (30, 28));
    assert!((sum.seconds() - 30e-12).abs() < 1e-24);
}
