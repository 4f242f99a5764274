// SPDX-License-Identifier: BSD-2-Clause
//! The timing model charges the searches that a device would make, and the charged time in the
//! counters equals the time that passed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use matching::timing::{Costs, EntryCost, ModelledTime, Pace, Timing};
use matching::{Block, Element, Key, Offload, OffloadConfig, Source};

/// A pace that adds up the time instead of waiting.
#[derive(Debug, Default)]
struct Sum(AtomicU64);

impl Pace for Sum {
    fn spend(&self, picoseconds: u64) {
        self.0.fetch_add(picoseconds, Ordering::Relaxed);
    }
}

const COSTS: Costs = Costs {
    table: 10,
    up: 1,
    host: 1000,
    entry: EntryCost::flat(100_000),
    down: 2,
    spill: 5,
    promote: 7,
};

fn queue(entries: usize) -> (Offload, Arc<Sum>) {
    let pace = Arc::new(Sum::default());
    let config = OffloadConfig { entries, ..OffloadConfig::default() };
    let timing = Timing { costs: COSTS, pace: pace.clone() };
    (Offload::new(&config).unwrap().with_timing(timing), pace)
}

fn key(bits: u64) -> Key {
    Key { bits, ignore: 0, source: Source::new(1) }
}

fn insert(queue: &mut Offload, bits: u64) {
    let token = bits as u32;
    queue.insert(Element { bits, ignore: 0, source: Source::new(1), token });
}

#[test]
fn searches_are_charged() {
    let (mut queue, pace) = queue(2);
    let spent = || pace.0.swap(0, Ordering::Relaxed);
    assert_eq!((queue.search(&key(0)), spent()), (None, 10));
    for bits in 0..5 {
        insert(&mut queue, bits);
    }
    assert_eq!(spent(), 3 * 5, "posting is no search, but three found no entry");
    queue.search(&key(1)).unwrap();
    assert_eq!(spent(), 10, "what is on the host is younger");
    queue.search(&key(4)).unwrap();
    assert_eq!(spent(), 10 + 1 + 1000 + 3 * 100_000 + 2);
    queue.search(&key(9));
    assert_eq!(spent(), 10 + 1 + 1000 + 3 * 100_000 + 2, "all of the host");
    queue.peek(&key(2)).unwrap();
    assert_eq!(spent(), 10 + 1 + 1000 + 100_000 + 2);
    queue.find(&key(2)).unwrap();
    assert_eq!(spent(), 0);
    let counters = queue.counters();
    let modelled = ModelledTime {
        table_searches: 5,
        table_ps: 50,
        host_searches: 3,
        host_entries: 7,
        host_ps: 703_000,
        way_ps: 9,
        spill_ps: 15,
        promote_ps: 0,
    };
    assert_eq!((modelled.picoseconds(), modelled.overflow_ps()), (703_074, 703_024));
    assert_eq!(counters.modelled, modelled);
    counters.check().unwrap();
}

#[test]
fn a_promotion_is_charged() {
    let (mut queue, pace) = queue(2);
    for bits in 0..4 {
        insert(&mut queue, bits);
    }
    let found = queue.search(&key(0)).unwrap();
    pace.0.store(0, Ordering::Relaxed);
    queue.remove_matched(found.token);
    assert_eq!(pace.0.load(Ordering::Relaxed), 7);
    let counters = queue.counters();
    assert_eq!((counters.promotions, counters.modelled.promote_ps), (1, 7));
    // After that, no element waits for an entry.
    let found = queue.search(&key(3)).unwrap();
    queue.remove_matched(found.token);
    assert_eq!(queue.counters().modelled.promote_ps, 7);
}

#[test]
fn an_older_refused_element_makes_the_host_be_searched_too() {
    let (mut queue, pace) = queue(2);
    queue.refuse(Element { bits: 7, ignore: 0, source: Source::ANY, token: 7 }, Block::Refused);
    insert(&mut queue, 1);
    queue.search(&key(1)).unwrap();
    assert_eq!(pace.0.load(Ordering::Relaxed), 5 + 10 + 1 + 1000 + 100_000 + 2);
}

#[test]
fn without_a_table_only_the_host_is_charged_and_no_transfer() {
    let (mut queue, pace) = queue(0);
    insert(&mut queue, 1);
    queue.search(&key(1)).unwrap();
    assert_eq!(pace.0.load(Ordering::Relaxed), 5 + 1000 + 100_000);
}
