// SPDX-License-Identifier: BSD-2-Clause
//! Checks the lengths of queues, and the searches, of generated receives and messages.

use nic::config::DeviceConfig;
use nic::replay::Replay;
use nic::report::ContextCounters;

use super::*;
use crate::workload::stream::Effect;

fn events(pattern: Pattern, receiver: Receiver, steps: u32, seed: u64) -> Vec<(Effect, Op)> {
    let mut events = Vec::new();
    for step in 0..steps {
        let flight = Flight { messages: 100, bytes: 256 };
        for (exchange, number) in pattern.step(receiver, step, flight).iter().zip(0..) {
            let seed = seed + u64::from(step) * 100 + number;
            exchange.play(receiver, seed, &mut |effect, op| events.push((effect, op)));
        }
    }
    events
}

fn replayed(events: &[(Effect, Op)]) -> ContextCounters {
    let params = params(64, &[]).unwrap();
    let config = DeviceConfig::from_params(&params, TagLayout::Mpich);
    let mut replay = Replay::new(&config).unwrap();
    for (expected, op) in events {
        let before = replay.context().posted();
        replay.play(op);
        let effect = match replay.context().posted().cmp(&before) {
            std::cmp::Ordering::Greater => Effect::Waits,
            std::cmp::Ordering::Less => Effect::FindsReceive,
            std::cmp::Ordering::Equal => match op {
                Op::Arrive(_) => Effect::Unexpected,
                _ => Effect::FindsMessage,
            },
        };
        assert_eq!(effect, *expected);
    }
    replay.counters()
}

/// Returns the high-water marks of PRQ and UMQ of rank 0.
fn marks(pattern: Pattern, ranks: u32) -> [u64; 2] {
    let counters = replayed(&events(pattern, Receiver { rank: 0, ranks }, 4, 1));
    [counters.prq.high_water, counters.umq.high_water]
}

#[test]
fn every_message_is_received_at_every_size() {
    for &pattern in Pattern::value_variants() {
        for ranks in [2, 3, 4, 5, 7, 12, 16, 64, 100] {
            for rank in [0, 1, ranks - 1] {
                if !pattern.reaches(rank) {
                    continue;
                }
                let counters = replayed(&events(pattern, Receiver { rank, ranks }, 3, 5));
                assert_eq!(counters.check(), Ok(()));
                let left = [&counters.prq, &counters.umq]
                    .map(|queue| queue.table_occupancy + queue.host_occupancy);
                assert_eq!(left, [0, 0], "{pattern:?} on {ranks} ranks, rank {rank}");
                assert!(counters.arrivals > 0);
            }
        }
    }
}

#[test]
fn queues_are_as_long_as_the_papers() {
    assert_eq!(marks(Pattern::Radix, 512), [9, 9]);
    assert_eq!(marks(Pattern::Radix, 1024), [10, 10]);
    assert_eq!(marks(Pattern::Nbody, 512), [32 + 16 * 16 + 112, 16 + 16 * 8 + 48]);
    assert_eq!(marks(Pattern::Miniamr, 512), [66, 50]);
    assert_eq!(marks(Pattern::Amg, 4096), [543, 418]);
    assert_eq!(marks(Pattern::Gather, 1024), [1023, 0]);
    assert_eq!(marks(Pattern::Allreduce, 1024), [1, 10]);
    assert_eq!(marks(Pattern::Iallgather, 1024), [16, 160]);
    assert_eq!(marks(Pattern::Shuffle, 2), [100, 0]);
    assert_eq!(marks(Pattern::Burst, 2), [100, 0]);
    assert_eq!(marks(Pattern::Reverse, 2), [100, 0]);
    assert_eq!(marks(Pattern::Pingpong, 2), [101, 0]);
    assert_eq!(marks(Pattern::Cholesky, 64), [64, 64]);
    assert_eq!(marks(Pattern::Solver, 64), [24, 24]);
    assert_eq!(marks(Pattern::Manager, 64), [63, 126]);
    assert_eq!(marks(Pattern::Lammps, 240), [15, 6]);
    assert_eq!(marks(Pattern::Minimd, 4096), [1, 11]);
    assert_eq!(marks(Pattern::Halo, 64), [104, 104]);
    // 8147 in Tail queues, Table 2.
    let [_, unexpected] = marks(Pattern::Fds, 4096);
    assert!((8000..8300).contains(&unexpected), "{unexpected}");
}

#[test]
fn a_list_is_traversed_as_the_papers_say() {
    let of = |pattern| {
        let receiver = Receiver { rank: 0, ranks: 2 };
        let set = [("prq_entries", "0"), ("host_engine", "list"), ("report", "x")];
        let params = params(2, &set).unwrap();
        let mut replay =
            Replay::new(&DeviceConfig::from_params(&params, TagLayout::Mpich)).unwrap();
        events(pattern, receiver, 1, 1).iter().for_each(|(_, op)| replay.play(op));
        replay.counters().prq.traversals.found
    };
    // 100 receives wait before the receive of the ping-pong. After the ping-pong, each of 100
    // messages finds the first receive.
    assert_eq!(of(Pattern::Pingpong).sum, 64 * 101 + 100);
    assert_eq!(of(Pattern::Reverse).mean(), Some(50.5));
    assert_eq!(of(Pattern::Burst).quartiles(), Some([1; 3]));
}

#[test]
fn collectives_are_distinguished_from_messages() {
    let receiver = Receiver { rank: 0, ranks: 64 };
    let exchanges = Pattern::Fds.step(receiver, 0, Pattern::Fds.usual_flight());
    for set in exchanges.iter().flat_map(|exchange| &exchange.sets) {
        for number in 0..set.count() {
            let (_, bits) = set.message(number, receiver);
            let kind = TagLayout::Mpich.kind(bits);
            assert_eq!(set.collective, kind != matching::Traffic::PointToPoint);
        }
    }
}

#[test]
fn messages_are_those_of_the_seed() {
    let receiver = Receiver { rank: 0, ranks: 64 };
    let ops = |seed| -> Vec<_> {
        events(Pattern::Nbody, receiver, 2, seed).iter().map(|(_, op)| *op).collect()
    };
    assert_eq!(ops(1), ops(1));
    assert_ne!(ops(1), ops(2));
}

#[test]
fn boxes_are_as_cubic_as_can_be() {
    assert_eq!(sides(64), [4, 4, 4]);
    assert_eq!(sides(12), [3, 2, 2]);
    assert_eq!(sides(7), [7, 1, 1]);
    assert_eq!(neighbours(Receiver { rank: 21, ranks: 64 }).len(), 26);
}
