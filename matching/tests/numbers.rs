// SPDX-License-Identifier: BSD-2-Clause
//! Tests the numbers that a queue returns about itself, sums of the counters of two queues, and that
//! changed counters no longer add up.

use matching::measured::{ByPlace, MeasuredTime, Spent};
use matching::{
    BUCKETS, BlockReasons, ByKind, Curve, Element, Engine as _, EngineConfig, Histogram,
    HostEngine, HostStorage, Key, KindCounters, Linked, List, Offload, OffloadConfig, Profile,
    QueueCounters, Source, TagLayout, Traversals,
};
use serde_json::Value;

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
        assert_eq!(queue.search(&key(0)).map(|found| found.token), Some(0));
        queue.remove_matched(0);
        let counters = queue.counters();
        assert_eq!((counters.searches, counters.misses, counters.promotions), (3, 1, 1));
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

/// Returns `count` values, the largest of which is in the last bucket.
fn traversed(count: u64) -> (Histogram, Profile) {
    let (mut histogram, mut profile) = <(Histogram, Profile)>::default();
    for value in (1..count).chain([u64::MAX]) {
        histogram.record(value);
        profile.record(value);
    }
    (histogram, profile)
}

/// Counters that add up. No term of an equation is 0, and every limit is reached.
fn full() -> QueueCounters {
    let reasons = |table_full, refused| BlockReasons { table_full, refused, ..Default::default() };
    let kind = |inserts, searches, table_matches, host_matches, misses| KindCounters {
        inserts,
        searches,
        table_matches,
        host_matches,
        misses,
        block_reasons: BlockReasons::default(),
    };
    let spent = |count| Spent { count, ns: 5 };
    let place = |table, host| ByPlace { table: spent(table), host: spent(host) };
    let mut counters = QueueCounters {
        entries: 64,
        inserts: 100,
        searches: 50,
        table_matches: 30,
        host_matches: 12,
        misses: 8,
        table_kept: 11,
        host_kept: 5,
        spills: 40,
        promotions: 20,
        onloads: 7,
        table_cancels: 9,
        host_cancels: 3,
        table_occupancy: 45,
        host_occupancy: 17,
        dedicated_collective: 5,
        dedicated_point_to_point: 7,
        dedicated_levels: ByKind { collective: vec![2, 3], point_to_point: vec![3, 4] },
        unclustered: 47,
        added: vec![(0, 60), (3, 40)],
        block_reasons: reasons(25, 15),
        kinds: ByKind {
            collective: KindCounters { block_reasons: reasons(10, 9), ..kind(30, 20, 13, 4, 3) },
            point_to_point: KindCounters {
                block_reasons: reasons(15, 6),
                ..kind(70, 30, 17, 8, 5)
            },
        },
        measured: MeasuredTime {
            search: place(50, 12),
            insert: place(80, 47),
            remove: place(35, 30),
            dedicate: spent(47),
        },
        ..QueueCounters::default()
    };
    let of = &mut counters.traversals;
    (of.hit, of.found) = traversed(12);
    (of.miss, of.not_found) = traversed(4);
    counters.search_depth.hit.record(u64::MAX);
    counters
}

/// A histogram with one bucket more than allowed.
fn too_wide() -> Histogram {
    serde_json::from_value([1; BUCKETS + 1].to_vec().into()).unwrap()
}

#[test]
fn changed_counters_do_not_add_up() {
    full().check().unwrap();
    counted(12).0.check().unwrap();
    type Change = fn(&mut QueueCounters, i8);
    fn change(count: &mut u64, by: i8) {
        *count = count.checked_add_signed(by.into()).unwrap();
    }
    // The change of each of these counters, by one in either direction, violates this equation.
    let equations: [(&str, &[Change]); 12] = [
        (
            "searches = table_matches + host_matches + misses",
            &[|of, by| change(&mut of.searches, by), |of, by| change(&mut of.misses, by)],
        ),
        (
            "= host_occupancy",
            &[
                |of, by| change(&mut of.spills, by),
                |of, by| change(&mut of.onloads, by),
                |of, by| change(&mut of.promotions, by),
                |of, by| change(&mut of.host_kept, by),
                |of, by| change(&mut of.host_cancels, by),
                |of, by| change(&mut of.host_occupancy, by),
            ],
        ),
        (
            "= table_occupancy",
            &[
                |of, by| change(&mut of.inserts, by),
                |of, by| change(&mut of.table_kept, by),
                |of, by| change(&mut of.table_cancels, by),
                |of, by| change(&mut of.table_occupancy, by),
            ],
        ),
        ("block reasons = spills", &[|of, by| change(&mut of.block_reasons.refused, by)]),
        ("collective: levels", &[|of, by| change(&mut of.dedicated_collective, by)]),
        ("point-to-point: levels", &[|of, by| change(&mut of.dedicated_point_to_point, by)]),
        (
            "insertions in the table were",
            &[|of, by| change(&mut of.measured.insert.table.count, by)],
        ),
        ("insertions on the host were", &[|of, by| change(&mut of.measured.insert.host.count, by)]),
        (
            "removals from the table were",
            &[|of, by| change(&mut of.measured.remove.table.count, by)],
        ),
        ("removals from the host were", &[|of, by| change(&mut of.measured.remove.host.count, by)]),
        (
            "collective + point-to-point = all does not hold: ",
            &[
                |of, by| change(&mut of.kinds.collective.inserts, by),
                |of, by| change(&mut of.kinds.collective.searches, by),
                |of, by| change(&mut of.kinds.collective.table_matches, by),
                |of, by| change(&mut of.kinds.point_to_point.host_matches, by),
                |of, by| change(&mut of.kinds.point_to_point.misses, by),
            ],
        ),
        (
            "block reasons: collective + point-to-point = all",
            &[|of, by| change(&mut of.kinds.point_to_point.block_reasons.refused, by)],
        ),
    ];
    for (equation, changes) in equations {
        for (at, change) in changes.iter().enumerate() {
            for by in [-1, 1] {
                let mut changed = full();
                change(&mut changed, by);
                let error = changed.check().unwrap_err();
                assert!(error.contains(equation), "{equation}, change {at}: {error}");
            }
        }
    }
}

#[test]
fn counters_beyond_a_limit_are_refused() {
    type Change = fn(&mut QueueCounters);
    let changes: [(&str, Change); 15] = [
        ("a search depth has 34 of 33", |of| of.search_depth.hit = too_wide()),
        ("a search depth has 34 of 33", |of| of.search_depth.miss = too_wide()),
        ("traversals have 34 of 33", |of| of.traversals.hit = too_wide()),
        ("traversals have 34 of 33", |of| of.traversals.miss = too_wide()),
        ("traversals: a profile of 13", |of| of.traversals.found.record(1)),
        ("traversals: a profile of 5", |of| of.traversals.not_found.record(1)),
        // Searches without a match are counted, so those with a match must be counted as well.
        ("traversals of 0 searches", |of| {
            (of.traversals.hit, of.traversals.found) = Default::default();
        }),
        ("traversals of 11 searches", |of| {
            (of.traversals.hit, of.traversals.found) = traversed(11);
        }),
        ("48 elements in no cluster", |of| of.unclustered += 1),
        ("101 elements are counted by source", |of| of.added[1].1 += 1),
        ("49 of 50 searches of the table", |of| of.measured.search.table.count -= 1),
        ("11 of at least 12 on the host", |of| of.measured.search.host.count -= 1),
        ("48 of 47 insertions there", |of| of.measured.dedicate.count += 1),
        ("0 of 80 insertions in the table", |of| {
            of.measured = MeasuredTime { search: of.measured.search, ..Default::default() };
        }),
        ("levels with [0] queues", |of| of.dedicated_levels.collective = vec![0]),
    ];
    for (limit, change) in changes {
        let mut changed = full();
        change(&mut changed);
        let error = changed.check().unwrap_err();
        assert!(error.contains(limit), "{limit}: {error}");
    }
}

#[test]
fn reports_without_optional_counters_are_accepted() {
    let changes: [fn(&mut QueueCounters); 6] = [
        |of| of.traversals = Traversals::default(),
        // Traversals also count peeks.
        |of| (of.traversals.hit, of.traversals.found) = traversed(13),
        |of| (of.traversals.found, of.traversals.not_found) = Default::default(),
        |of| of.dedicated_levels = ByKind::default(),
        |of| of.measured = MeasuredTime::default(),
        // Without a table, no search of a table is measured.
        |of| (of.entries, of.measured.search.table.count) = (0, 0),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut changed = full();
        change(&mut changed);
        assert_eq!(changed.check(), Ok(()), "change {at}");
    }
}

/// The numbers of the counters, each with its path. Lists are left out.
fn numbers<'a>(value: &'a mut Value, path: &str, all: &mut Vec<(String, &'a mut Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                numbers(value, &format!("{path}/{name}"), all);
            }
        }
        Value::Number(_) => all.push((path.to_owned(), value)),
        _ => {}
    }
}

#[test]
fn every_counter_is_in_the_sum() {
    const MARKS: [&str; 6] = [
        "/entries",
        "/table_high_water",
        "/host_high_water",
        "/high_water",
        "/dedicated_collective",
        "/dedicated_point_to_point",
    ];
    let of = |value: fn(u64) -> u64| -> QueueCounters {
        let mut json = serde_json::to_value(QueueCounters::default()).unwrap();
        let mut all = Vec::new();
        numbers(&mut json, "", &mut all);
        assert!(all.len() > 70, "{} numbers", all.len());
        (0..).zip(all).for_each(|(at, (_, number))| *number = value(at).into());
        serde_json::from_value(json).unwrap()
    };
    // In some marks the first is larger, in others the second.
    let (first, second) = (of(|at| 1000 + at), of(|at| 1500 - 20 * (at % 40)));
    let mut sum = first.clone();
    sum.merge(&second);
    let mut json = [first, second, sum].map(|of| serde_json::to_value(of).unwrap());
    let [first, second, sum] = json.each_mut().map(|json| {
        let mut all = Vec::new();
        numbers(json, "", &mut all);
        all.into_iter().map(|(path, number)| (path, number.as_u64().unwrap())).collect::<Vec<_>>()
    });
    for (((path, sum), (_, first)), (_, second)) in sum.into_iter().zip(first).zip(second) {
        let is_mark = MARKS.contains(&path.as_str());
        assert_eq!(sum, if is_mark { first.max(second) } else { first + second }, "{path}");
    }
}

#[test]
fn a_sum_has_the_levels_of_the_queue_with_most_queues() {
    let of = |collective: &[u64], point_to_point: &[u64]| QueueCounters {
        dedicated_collective: collective.iter().sum(),
        dedicated_point_to_point: point_to_point.iter().sum(),
        dedicated_levels: ByKind {
            collective: collective.to_vec(),
            point_to_point: point_to_point.to_vec(),
        },
        added: vec![(1, 2)],
        ..QueueCounters::default()
    };
    let sum = |mut first: QueueCounters, second: &QueueCounters| {
        first.merge(second);
        assert!(first.added.is_empty());
        first.dedicated_levels
    };
    let (less, equal, more) = (of(&[1], &[4]), of(&[3], &[1, 5]), of(&[2, 1], &[6]));
    assert_eq!(sum(less.clone(), &more), more.dedicated_levels);
    assert_eq!(sum(more.clone(), &less), more.dedicated_levels);
    assert_eq!(sum(more.clone(), &equal), more.dedicated_levels);
}

#[test]
fn sums_do_not_overflow() {
    let most = QueueCounters { inserts: u64::MAX - 1, ..QueueCounters::default() };
    let mut sum = most.clone();
    sum.merge(&most);
    assert_eq!(sum.inserts, u64::MAX);
}

#[test]
fn counts_by_reason_and_by_kind_have_their_names() {
    let reasons = BlockReasons {
        table_full: 1,
        disabled: 2,
        order: 3,
        sticky: 4,
        preemptive: 5,
        pool_share: 6,
        pool_empty: 7,
        refused: 8,
        short: 9,
    };
    let fields = serde_json::to_value(&reasons).unwrap();
    assert_eq!(
        reasons.iter().map(|(_, count)| count).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6, 7, 8, 9]
    );
    for (name, count) in reasons.iter() {
        assert_eq!(fields[name.replace(' ', "_")], count, "{name}");
    }
    let kinds = ByKind { collective: 1, point_to_point: 2 };
    assert_eq!(kinds.iter().collect::<Vec<_>>(), [("collective", &1), ("point-to-point", &2)]);
}

#[test]
fn a_histogram_has_a_bucket_for_each_power_of_two() {
    let mut histogram = Histogram::default();
    let values = [0, 1, 2, 3, 4, 7, 8, 1 << 31, 1 << 40, u64::MAX];
    values.into_iter().for_each(|value| histogram.record(value));
    let last = (1 << 31, (1 << 32) - 1, 3);
    let buckets = [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 2), (8, 15, 1), last];
    assert_eq!(histogram.buckets().collect::<Vec<_>>(), buckets);
    assert_eq!(histogram.total(), values.len() as u64);
    let mut short = Histogram::default();
    short.record(3);
    let mut sums = [histogram.clone(), short.clone()];
    sums[0].merge(&short);
    sums[1].merge(&histogram);
    assert_eq!(sums[0], sums[1]);
    assert_eq!(sums[0].buckets().nth(2), Some((2, 3, 3)));
    assert_eq!(sums[0].total(), histogram.total() + 1);
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

#[test]
fn engines_without_dedicated_queues_count_none() {
    for engine in [
        HostEngine::List,
        HostEngine::TailQueues,
        HostEngine::RankArray,
        HostEngine::Hash,
        HostEngine::NewMadeleine,
    ] {
        for &storage in HostStorage::ALL {
            let mut queue = queue(1, engine, storage);
            assert_eq!(queue.counters().dedicated_levels, ByKind::default());
            for token in 0..20 {
                queue.insert(element(u64::from(token % 2) * COLLECTIVE, token));
            }
            let counters = queue.counters();
            let QueueCounters { dedicated_collective, dedicated_point_to_point, .. } = counters;
            assert_eq!((dedicated_collective, dedicated_point_to_point), (0, 0), "{engine}");
            assert_eq!((&counters.dedicated_levels, counters.unclustered), (&ByKind::default(), 0));
            counters.check().unwrap();
        }
    }
}

#[test]
fn an_engine_returns_its_elements() {
    let mut engine = List::new(Linked::default());
    assert_eq!((engine.len(), engine.is_empty(), engine.oldest()), (0, true, None));
    let handles = [3, 9].map(|token| engine.insert(element(7, token), token.into()));
    assert_eq!((engine.len(), engine.is_empty()), (2, false));
    assert_eq!(handles.map(|handle| engine.depth(handle)), [1, 2]);
    assert_eq!(handles.map(|handle| engine.element(handle)), [3, 9].map(|token| element(7, token)));
    assert_eq!(engine.first_token(&key(7)), Some(3));
    assert_eq!((engine.first_token(&key(8)), engine.traversed(&key(8))), (None, 2));
    assert!(engine.iter().eq([(3, 3), (9, 9)]));
    engine.remove(handles[0]);
    assert_eq!(engine.oldest().map(|hit| (hit.token, hit.age)), Some((9, 9)));
    engine.remove(handles[1]);
    assert!(engine.is_empty() && engine.iter().next().is_none());
}
