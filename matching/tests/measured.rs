// SPDX-License-Identifier: BSD-2-Clause
//! Tests that measured time is attributed to the right operation and place, and dedicated queues to
//! their levels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use matching::measured::{ByPlace, Clock, MeasuredTime, Spent};
use matching::{
    Element, EngineConfig, HostEngine, Key, Offload, OffloadConfig, QueueCounters, Source,
};

/// A clock. It advances by 1 ns per read while the queue calibrates it, and by 7 ns per read after
/// that, as if an operation were done before each read.
#[derive(Debug, Default)]
struct Looks(AtomicU64);

const CALIBRATION: u64 = 128;

impl Clock for Looks {
    fn now(&self) -> u64 {
        let looks = self.0.fetch_add(1, Ordering::Relaxed);
        looks + looks.saturating_sub(CALIBRATION) * 6
    }
}

fn element(bits: u64, source: u32) -> Element {
    Element { bits, ignore: 0, source: Source::new(source), token: bits as u32 }
}

fn key(bits: u64) -> Key {
    Key { bits, ignore: 0, source: Source::new(0) }
}

fn spent(count: u64) -> Spent {
    Spent { count, ns: 6 * count }
}

#[test]
fn time_is_attributed_to_operation_and_place() {
    let config = OffloadConfig { entries: 1, ..OffloadConfig::default() };
    let mut queue = Offload::new(&config).unwrap().with_clock(Arc::new(Looks::default()));
    for bits in 0..3 {
        queue.insert(element(bits, 0));
    }
    // The first match is on the host. The second is in the table, which then takes another element
    // from the host.
    for bits in [2, 0] {
        queue.search(&key(bits)).unwrap();
        queue.remove_matched(bits as u32);
    }
    queue.peek(&key(1)).unwrap();
    let _ = queue.find(&key(1));
    let counters = queue.counters();
    counters.check().unwrap();
    let of = |table, host| ByPlace { table: spent(table), host: spent(host) };
    let expected = MeasuredTime {
        search: of(3, 1),
        insert: of(2, 2),
        remove: of(1, 2),
        dedicate: Spent::default(),
    };
    assert_eq!(counters.measured, expected);
    assert_eq!(counters.measured.ns(), 6 * 11);
    assert_eq!(counters.measured.overhead(), Some((2.0, 0.0)));
}

#[test]
fn a_missing_measurement_is_noticed() {
    let config = OffloadConfig { entries: 1, ..OffloadConfig::default() };
    let mut queue = Offload::new(&config).unwrap().with_clock(Arc::new(Looks::default()));
    for bits in 0..3 {
        queue.insert(element(bits, 0));
    }
    queue.search(&key(2)).unwrap();
    queue.remove_matched(2);
    let counters = queue.counters();
    for spoil in [
        (|time| &mut time.insert.table) as fn(&mut MeasuredTime) -> &mut Spent,
        |time| &mut time.insert.host,
        |time| &mut time.remove.host,
        |time| &mut time.search.host,
        |time| &mut time.search.table,
    ] {
        let mut less = counters.clone();
        spoil(&mut less.measured).count -= 1;
        assert!(less.check().is_err());
    }
}

/// Posts receives of one busy source among others, all on the host, and returns the counters.
/// `given` is the number of processes in the configuration. Unless `tell` is 0,
/// `Offload::set_processes` sets the number to `tell`.
fn with_partners(tell: u32, given: u32) -> QueueCounters {
    let engine_config = EngineConfig { theta: 4, processes: given, ..EngineConfig::default() };
    let config = OffloadConfig { entries: 0, engine_config, ..OffloadConfig::default() };
    let mut queue = Offload::new(&config).unwrap().with_clock(Arc::new(Looks::default()));
    if tell > 0 {
        queue.set_processes(tell);
    }
    for bits in 0..64 {
        queue.insert(element(bits, if bits % 4 == 3 { bits as u32 } else { 0 }));
    }
    let counters = queue.counters();
    counters.check().unwrap();
    counters
}

#[test]
fn queues_are_counted_by_level_and_making_them_is_measured() {
    let counters = with_partners(64, 0);
    let levels = counters.dedicated_levels.point_to_point.clone();
    assert_eq!(levels.first(), Some(&2), "the busy source and the others");
    assert_eq!(levels.iter().sum::<u64>(), counters.dedicated_point_to_point);
    assert_eq!(counters.measured.dedicate, spent(levels.len() as u64));
    let mut more = counters;
    more.dedicated_levels.point_to_point[0] += 1;
    assert!(more.check().is_err());
}

#[test]
fn the_number_of_processes_caps_the_queues() {
    let queues = |tell, given| with_partners(tell, given).dedicated_point_to_point;
    // k is 8.
    assert!((2..=8).contains(&queues(1, 0)), "8 * sqrt(1)");
    assert_eq!(queues(1, 0), queues(0, 1));
    assert_eq!(queues(64, 0), queues(0, 64));
}

#[test]
fn the_number_of_processes_may_become_known_later() {
    // Each of 50 sources in turn has more elements than the other sources, which have one each.
    let queues = |processes: Option<u32>, engine| {
        let engine_config = EngineConfig { theta: 4, ..EngineConfig::default() };
        let config =
            OffloadConfig { entries: 0, engine, engine_config, ..OffloadConfig::default() };
        let mut queue = Offload::new(&config).unwrap();
        for bits in 0..800 {
            if let (1, Some(processes)) = (bits, processes) {
                queue.set_processes(processes);
            }
            let source = if bits % 4 == 3 { 1000 + bits } else { bits / 16 };
            queue.insert(element(bits, source as u32));
        }
        queue.counters().dedicated_point_to_point
    };
    for engine in [HostEngine::ColPnp, HostEngine::ListPnp] {
        let of = |processes| queues(Some(processes), engine);
        // k is 8.
        assert_eq!([of(1), of(4), of(9)], [8, 16, 24], "{engine}: 8 * sqrt(n)");
        // By default, n is the number of sources seen so far, which are hundreds.
        assert!(queues(None, engine) > of(9), "{engine}");
    }
}
