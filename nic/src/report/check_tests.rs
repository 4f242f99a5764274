// SPDX-License-Identifier: BSD-2-Clause
//! Tests of the equations of a context's counters, and of sums.

use matching::{BlockReasons, KindCounters};
use serde_json::Value;

use super::*;

fn queue(collective: KindCounters, point_to_point: KindCounters) -> QueueCounters {
    let sum = |of: fn(&KindCounters) -> u64| of(&collective) + of(&point_to_point);
    let inserts = sum(|of| of.inserts);
    QueueCounters {
        entries: 100,
        inserts,
        searches: sum(|of| of.searches),
        table_matches: sum(|of| of.table_matches),
        host_matches: sum(|of| of.host_matches),
        misses: sum(|of| of.misses),
        spills: sum(|of| of.block_reasons.table_full),
        block_reasons: BlockReasons {
            table_full: sum(|of| of.block_reasons.table_full),
            ..Default::default()
        },
        table_occupancy: inserts
            - sum(|of| of.block_reasons.table_full)
            - sum(|of| of.table_matches),
        host_occupancy: sum(|of| of.block_reasons.table_full) - sum(|of| of.host_matches),
        table_high_water: 20,
        host_high_water: 9,
        kinds: ByKind { collective, point_to_point },
        ..QueueCounters::default()
    }
}

fn kind(inserts: u64, spills: u64, matches: [u64; 2], misses: u64) -> KindCounters {
    let [table_matches, host_matches] = matches;
    KindCounters {
        inserts,
        searches: table_matches + host_matches + misses,
        table_matches,
        host_matches,
        misses,
        block_reasons: BlockReasons { table_full: spills, ..Default::default() },
    }
}

/// Counters of a context that add up, without a zero in an equation. The queues are at their
/// high-water marks in one sample each.
fn full() -> ContextCounters {
    let prq = queue(kind(9, 3, [2, 1], 5), kind(12, 4, [3, 2], 6));
    let umq = queue(kind(5, 2, [1, 1], 9), kind(6, 3, [2, 2], 12));
    let mut context = ContextCounters {
        posts: 27,
        arrivals: 19,
        bytes: 1000,
        unexpected: 11,
        peeks: 4,
        broken_promises: BrokenPromises { any_source: 27, any_tag: 3 },
        kinds: ContextCounters::kinds_of(&prq, &umq),
        prq,
        umq,
        lengths: Lengths {
            every: 16,
            us: vec![1, 2, 3],
            prq_table: vec![0, 20, 3],
            prq_host: vec![0, 9, 0],
            umq_table: vec![0, 1, 20],
            umq_host: vec![0, 0, 9],
        },
        ..ContextCounters::default()
    };
    (0..19).for_each(|size| context.sizes.record(size));
    context
}

#[test]
fn changed_counters_do_not_add_up() {
    full().check().unwrap();
    type Change = fn(&mut ContextCounters);
    let changes: [(Change, &str); 17] = [
        (|of| of.prq.misses += 1, "prq: searches ="),
        (|of| of.umq.misses += 1, "umq: searches ="),
        (|of| of.arrivals += 1, "arrivals ="),
        (|of| of.arrivals -= 1, "arrivals ="),
        (|of| of.unexpected += 1, "arrivals ="),
        (|of| (of.unexpected, of.arrivals) = (12, 20), "unexpected = prq.misses"),
        (|of| (of.unexpected, of.arrivals) = (10, 18), "unexpected = prq.misses"),
        (|of| of.posts += 1, "posts ="),
        // The UMQ missed more often than receives went to the PRQ.
        (
            |of| {
                of.umq.misses += 1;
                of.umq.table_matches -= 1;
                of.umq.table_occupancy += 1;
                of.umq.kinds.collective.misses += 1;
                of.umq.kinds.collective.table_matches -= 1;
            },
            "posts =",
        ),
        (|of| of.broken_promises.any_source += 1, "28 any-source and 3 any-tag"),
        (|of| of.broken_promises.any_tag = 28, "27 any-source and 28 any-tag"),
        (|of| of.kinds.collective.posts += 1, "kinds ="),
        (|of| of.kinds.point_to_point.host_matches -= 1, "kinds ="),
        (|of| of.sizes.record(3), "sizes: a profile of 20"),
        (|of| of.lengths.every = 15, "3 samples do not fit one in 15 of 46"),
        (|of| of.lengths.umq_host[2] = 10, "10 is above the high-water mark 9"),
        (|of| of.prq.table_high_water = 19, "20 is above the high-water mark 19"),
    ];
    for (at, (change, why)) in changes.into_iter().enumerate() {
        let mut changed = full();
        change(&mut changed);
        let error = changed.check().unwrap_err();
        assert!(error.contains(why), "change {at}: {error}");
    }
}

#[test]
fn both_contexts_of_a_report_are_checked() {
    let report = |tagged, msg| Report {
        format: FORMAT.to_owned(),
        version: VERSION,
        tagged,
        msg,
        ..Report::default()
    };
    report(full(), full()).check().unwrap();
    let wrong = || ContextCounters { posts: 1, ..full() };
    for (report, context) in
        [(report(wrong(), full()), "tagged: posts ="), (report(full(), wrong()), "msg: posts =")]
    {
        let error = Report::from_json(&report.to_json().unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("the counts do not add up: ") && error.contains(context));
    }
    let mut foreign = report(full(), full());
    foreign.version += 1;
    let error = Report::from_json(&foreign.to_json().unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("format `tcam-report` version 2 is not"), "{error}");
    foreign = Report { format: "tcam-trace".to_owned(), version: VERSION, ..foreign };
    assert!(Report::from_json(&foreign.to_json().unwrap()).is_err());
    assert!(matches!(Report::from_json("{}"), Err(ReportError::Json(_))));
}

#[test]
fn the_traffic_of_a_kind_is_that_of_both_queues() {
    let kinds = full().kinds;
    let expected = |posts, arrivals, table_matches, host_matches| KindTraffic {
        posts,
        arrivals,
        table_matches,
        host_matches,
    };
    assert_eq!(kinds.collective, expected(11, 8, 3, 2));
    assert_eq!(kinds.point_to_point, expected(16, 11, 5, 4));
}

#[test]
fn times_of_all_queues_are_added() {
    let mut report = Report::default();
    let Report { tagged, msg, .. } = &mut report;
    for (queue, n) in
        [&mut tagged.prq, &mut tagged.umq, &mut msg.prq, &mut msg.umq].into_iter().zip(0..)
    {
        queue.modelled.table_ps = 10_u64.pow(n) * 1_000_000_000;
        queue.measured.search.host.ns = 10_u64.pow(n);
        queue.measured.search.host.count = 2 * 10_u64.pow(n);
    }
    assert!((report.modelled_s() - 1.111).abs() < 1e-9);
    assert_eq!(report.measured().search.host, matching::measured::Spent { count: 2222, ns: 1111 });
}

/// The numbers of the counters that a context has besides those of its queues.
fn numbers<'a>(value: &'a mut Value, all: &mut Vec<&'a mut Value>) {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter_mut();
            let own = fields
                .filter(|(name, _)| !["prq", "umq", "kinds", "lengths"].contains(&name.as_str()));
            own.for_each(|(_, value)| numbers(value, all));
        }
        Value::Number(_) => all.push(value),
        _ => {}
    }
}

#[test]
fn every_counter_is_in_the_sum() {
    let mut context = full();
    // Counters that are zero are left out of the JSON.
    context.latency.posts.count = 1;
    let of = |start: u64| -> ContextCounters {
        let mut json = serde_json::to_value(&context).unwrap();
        let mut all = Vec::new();
        numbers(&mut json, &mut all);
        (start..).zip(all).for_each(|(at, number)| *number = at.into());
        let mut of: ContextCounters = serde_json::from_value(json).unwrap();
        of.latency = Latency::default();
        of
    };
    let (first, second) = (of(100), of(5000));
    let mut sum = first.clone();
    sum.merge(&second);
    let mut json = [first, second, sum.clone()].map(|of| serde_json::to_value(of).unwrap());
    let [first, second, sums] = json.each_mut().map(|json| {
        let mut all = Vec::new();
        numbers(json, &mut all);
        all.into_iter().map(|number| number.as_u64().unwrap()).collect::<Vec<_>>()
    });
    assert!(sums.len() >= 10, "{} numbers", sums.len());
    assert!(sums.iter().zip(first.iter().zip(&second)).all(|(sum, (a, b))| *sum == a + b));
    assert_eq!(sum.lengths, Lengths::default());
    let mut twice = full();
    twice.merge(&full());
    assert_eq!((twice.prq.inserts, twice.umq.inserts), (42, 22));
    assert_eq!(twice.kinds, ContextCounters::kinds_of(&twice.prq, &twice.umq));
    twice.check().unwrap();
}

#[test]
fn a_broken_promise_of_either_kind_is_kept() {
    assert!(BrokenPromises::default().is_empty());
    assert!(!BrokenPromises { any_source: 1, any_tag: 0 }.is_empty());
    assert!(!BrokenPromises { any_source: 0, any_tag: 1 }.is_empty());
}

#[test]
fn counters_of_a_channel_that_are_zero_are_left_out() {
    let json = |of: ChannelCounters| serde_json::to_value(of).unwrap();
    let empty = json(ChannelCounters::default());
    let some = json(ChannelCounters {
        waited: 1,
        polls: 2,
        empty_polls: 3,
        discovery_ns: 4,
        ..Default::default()
    });
    for name in ["waited", "polls", "empty_polls", "discovery_ns"] {
        assert!(empty.get(name).is_none() && some[name].as_u64() > Some(0), "{name}");
    }
}
