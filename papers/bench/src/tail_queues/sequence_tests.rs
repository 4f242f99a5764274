// SPDX-License-Identifier: BSD-2-Clause
//! Runs random sequences of operations in one thread, with wildcards, cancels and probes, and
//! compares the results with naive lists. Tests both units on every storage, with every lock, and
//! with bins of several sizes.

use proptest::prelude::*;

use super::model::{Model, Op, check_rest};
use super::{Binning, Locks, Mcs, OneLock, ParkingLot, TailQueues, Unit};
use matching::{Element, EngineConfig, Kernel, Key, Linked, Packed, Queues, Scanner, Source};

const ANY_TAG: u64 = 0xff;

/// Returns a packed storage with the best kernel of this processor.
pub(super) fn packed() -> Packed {
    Packed::new(&EngineConfig::default(), Scanner::new(Kernel::best()).unwrap())
}

/// An operation without its token.
#[derive(Clone, Debug)]
enum Draw {
    Post(Key),
    Arrive(Key),
    /// Cancels the receive that was posted this number of operations ago.
    Cancel(u32),
    Probe(Key),
}

fn draw() -> impl Strategy<Value = Draw> {
    let message = || {
        (0..4_u64, 0..3_u32).prop_map(|(bits, from)| {
            let source = Source::new(from);
            Key { bits, ignore: 0, source }
        })
    };
    let receive = || {
        let wildcards = (prop::bool::weighted(0.2), prop::bool::weighted(0.2));
        (message(), wildcards).prop_map(|(key, (any_tag, any_source))| Key {
            ignore: if any_tag { ANY_TAG } else { 0 },
            source: if any_source { Source::ANY } else { key.source },
            ..key
        })
    };
    prop_oneof![
        6 => receive().prop_map(Draw::Post),
        6 => message().prop_map(Draw::Arrive),
        1 => (1..40_u32).prop_map(Draw::Cancel),
        1 => receive().prop_map(Draw::Probe),
    ]
}

/// Bursts of one kind make lists that are longer than a bin.
fn sequence() -> impl Strategy<Value = Vec<Op>> {
    let burst = (draw(), 1..30_usize);
    let mixed = prop::collection::vec(draw(), 1..60);
    let part = prop_oneof![
        1 => burst.prop_map(|(draw, times)| vec![draw; times]),
        2 => mixed,
    ];
    prop::collection::vec(part, 1..8).prop_map(|parts| {
        let element = |key: Key, token| {
            let Key { bits, ignore, source } = key;
            Element { bits, ignore, source, token }
        };
        let op = |(token, draw): (u32, &Draw)| match *draw {
            Draw::Post(key) => Op::Post(element(key, token)),
            Draw::Arrive(key) => Op::Arrive(element(key, token)),
            Draw::Cancel(before) => Op::Cancel(token.saturating_sub(before)),
            Draw::Probe(key) => Op::Probe(key),
        };
        (0..).zip(parts.iter().flatten()).map(op).collect()
    })
}

fn replay(mut unit: impl Unit, ops: &[Op]) {
    let mut model = Model::default();
    for &op in ops {
        assert_eq!(op.run(&unit), model.run(op), "{op:?}");
        if let Op::Cancel(_) = op {
            check_rest(&mut unit, &model);
        }
    }
    check_rest(&mut unit, &model);
}

fn replay_on<Q: Queues + Send, L: Locks>(make: impl Fn() -> Q, ops: &[Op]) {
    replay(OneLock::<Q, L>::new(&make), ops);
    for (bins, elements) in [(1, 1), (2, 1), (2, 5), (4, 2), (8, 3)] {
        let binning = Binning::new(bins, elements).unwrap();
        replay(TailQueues::<Q, L>::new(binning, &make), ops);
    }
}

proptest! {
    #[test]
    fn a_unit_is_two_lists(ops in sequence()) {
        replay_on::<_, Mcs>(Linked::default, &ops);
        replay_on::<_, ParkingLot>(Linked::default, &ops);
        replay_on::<_, Mcs>(packed, &ops);
        replay_on::<_, ParkingLot>(packed, &ops);
    }
}

#[test]
fn bins_are_a_power_of_two_and_not_empty() {
    assert_eq!(Binning::new(2, 50), Ok(Binning::PAPER));
    assert_eq!(Binning::new(1, usize::MAX), Ok(Binning::OFF));
    assert!(Binning::new(0, 50).is_err());
    assert!(Binning::new(2, 0).is_err());
    assert_eq!(
        Binning::new(3, 50).unwrap_err().to_string(),
        "3 bins of 50 elements: expected 1, 2, 4, ... bins of 1 element or more"
    );
}
