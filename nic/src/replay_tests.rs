// SPDX-License-Identifier: BSD-2-Clause
//! Tests that a replay gives the counts of the live run and, with another configuration, the counts
//! that a live run with that configuration would have.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use matching::measured::Clock;
use matching::timing::{Costs, EntryCost, Pace, Timing};
use matching::{EngineConfig, HostEngine, Key, OffloadConfig, Overflow, Role, Source, TableKind};
use proptest::prelude::*;

use super::*;
use crate::latency::Latencies;
use crate::message::{Envelope, MultiRecv};
use crate::trace::{Encoder, HEADER, Header, OpWord, Reader, Recorder, Sent};

/// Keeps a trace in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<(Encoder, Vec<u8>)>>);

impl Recorder for Memory {
    fn short(&mut self, head: OpWord, bits: u64, ignore: u64, source: Source) {
        let (encoder, trace) = &mut *self.0.lock().unwrap();
        encoder.short(trace, head, Key { bits, ignore, source }).unwrap();
    }

    fn record(&mut self, op: &Op) {
        let (encoder, bytes) = &mut *self.0.lock().unwrap();
        encoder.op(bytes, op).unwrap();
    }
}

fn config(entries: usize, engine: HostEngine, overflow: Overflow) -> DeviceConfig {
    let queue = OffloadConfig { entries, engine, overflow, depths: true, ..Default::default() };
    let unexpected = EngineConfig { role: Role::Unexpected, ..queue.engine_config };
    let umq = OffloadConfig { engine_config: unexpected, ..queue };
    DeviceConfig { prq: queue, umq, ..DeviceConfig::default() }
}

#[test]
fn each_operation_has_its_change() {
    let key = Key { bits: 1, ignore: 0, source: Source::new(1) };
    let multi = MultiRecv { len: 20, used: 0, min: 8 };
    let post = |multi| Op::Post(Posted { key, len: 20, multi, non_contiguous: false });
    let envelope = Envelope { source: 1, bits: 1, len: 10 };
    let arrive = Op::Arrive(envelope);
    let mut replay = Replay::new(&config(4, HostEngine::List, Overflow::FlowControl)).unwrap();
    for (op, change) in [
        (post(Some(multi)), Some(Change::Posted(0, key))),
        (arrive, Some(Change::Found(0))),
        (arrive, Some(Change::Matched(0))),
        (arrive, Some(Change::Kept(2, envelope))),
        (arrive, Some(Change::Kept(3, envelope))),
        (Op::Peek(key), Some(Change::Found(2))),
        (post(None), Some(Change::Taken(2))),
        (Op::Drop(2), None),
        (Op::Drop(3), Some(Change::Taken(3))),
        (Op::Peek(key), None),
        (Op::Claim(key), None),
        (post(None), Some(Change::Posted(2, key))),
        (Op::Cancel(3), None),
        (Op::Cancel(2), Some(Change::Matched(2))),
        (arrive, Some(Change::Kept(4, envelope))),
        (Op::Discard(key), Some(Change::Taken(4))),
        (Op::Processes(3), None),
    ] {
        let mut changes = Vec::new();
        replay.play_with(&op, |change| changes.push(change));
        assert_eq!(changes, change.into_iter().collect::<Vec<_>>(), "{op:?}");
    }
}

fn key() -> impl Strategy<Value = Key> {
    let source = prop_oneof![Just(Source::ANY), (0..3_u32).prop_map(Source::new)];
    let ignore = prop_oneof![3 => Just(0), 1 => Just(3)];
    (0..4_u64, ignore, source).prop_map(|(bits, ignore, source)| Key { bits, ignore, source })
}

fn op() -> impl Strategy<Value = Op> {
    let multi = proptest::option::weighted(0.1, Just(MultiRecv { len: 64, used: 0, min: 16 }));
    let posted = (key(), multi, any::<bool>()).prop_map(|(key, multi, non_contiguous)| Posted {
        key,
        len: multi.map_or(24, |multi| multi.len),
        multi,
        non_contiguous,
    });
    let envelope =
        (0..3_u32, 0..4_u64).prop_map(|(source, bits)| Envelope { source, bits, len: 24 });
    prop_oneof![
        8 => posted.prop_map(Op::Post),
        8 => envelope.prop_map(Op::Arrive),
        1 => key().prop_map(Op::Peek),
        1 => (0..3_u32, 0..4_u64).prop_map(|(peer, bits)| Op::Send(Sent { peer, bits, len: 8 })),
        1 => key().prop_map(Op::Claim),
        1 => key().prop_map(Op::Discard),
        1 => (0..50_u64).prop_map(Op::Cancel),
        1 => (0..50_u64).prop_map(Op::Drop),
        1 => (0..9_u32).prop_map(Op::Processes),
    ]
}

fn play<'a>(config: &DeviceConfig, ops: impl IntoIterator<Item = &'a Op>) -> Replay {
    let mut replay = Replay::new(config).unwrap();
    ops.into_iter().for_each(|op| replay.play(op));
    replay
}

/// Number of operations of a trace; fewer under Miri, which is about a thousand times slower.
const OPS: usize = if cfg!(miri) { 15 } else { 150 };

proptest! {
    #[test]
    fn a_trace_answers_for_every_configuration(
        ops in proptest::collection::vec(op(), 0..OPS),
        recorded in (0..9_usize, proptest::sample::select(Overflow::ALL)),
    ) {
        let recorded = config(recorded.0, HostEngine::List, recorded.1);
        let trace = Memory::default();
        let mut live = Replay::new(&recorded).unwrap();
        live.context.set_recorder(Box::new(trace.clone()));
        ops.iter().for_each(|op| live.play(op));

        let mut file = Header::default().to_bytes();
        assert_eq!(file.len(), HEADER);
        file.extend_from_slice(&trace.0.lock().unwrap().1);
        let read: Vec<Op> =
            Reader::new(&file[..]).unwrap().map(|timed| timed.unwrap().1).collect();
        prop_assert_eq!(play(&recorded, &read).counters(), live.counters());
        let matched = read.iter().filter(|op| !matches!(op, Op::Send(_)));
        prop_assert_eq!(play(&recorded, matched).counters(), live.counters());
        for &overflow in Overflow::ALL {
            for (at, &engine) in HostEngine::ALL.iter().enumerate() {
                let entries = [0, 3, 64][at % 3];
                let other = config(entries, engine, overflow);
                let counters = play(&other, &read).counters();
                prop_assert_eq!(&counters, &play(&other, &ops).counters());
                let mut cam = other;
                (cam.prq.table, cam.umq.table) = (TableKind::Cam, TableKind::Cam);
                prop_assert_eq!(&counters, &play(&cam, &read).counters());
            }
        }
    }
}

/// Replays twelve operations, whose latencies were calculated by hand with the equations of
/// docs/devices.md. The PRQ has 2 entries, the UMQ 1. The comment before each operation has its
/// result and, in ns, T, the start and the latency.
#[test]
fn twelve_operations_take_what_the_model_says() {
    #[derive(Debug, Default)]
    struct At(AtomicU64);
    impl Clock for At {
        fn now(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }
    #[derive(Debug)]
    struct NoTime;
    impl Pace for NoTime {
        fn spend(&self, _: u64) {}
    }
    let costs = Costs {
        table: 10_000,
        up: 100_000,
        host: 20_000,
        entry: EntryCost::flat(5_000),
        down: 100_000,
        spill: 50_000,
        promote: 200_000,
    };
    let clock = Arc::new(At::default());
    let mut config = config(2, HostEngine::List, Overflow::Spill);
    config.umq.entries = 1;
    config.timing = Some(Timing { costs, pace: Arc::new(NoTime) });
    config.clock = Some(clock.clone());
    let mut replay = Replay::new(&config).unwrap();
    let key = |bits| Key { bits, ignore: 0, source: Source::new(1) };
    let post =
        |bits| Op::Post(Posted { key: key(bits), multi: None, non_contiguous: false, len: 8 });
    let arrive = |bits| Op::Arrive(Envelope { source: 1, bits, len: 8 });
    let [a, b, c, d, x, y] = [1, 2, 3, 4, 5, 6];
    for (now, op) in [
        // no message; into the table: 10, 0, 10
        (0, post(a)),
        // into the table: 10, 10, 20
        (0, post(b)),
        // spills: 10 + 50, 20, 80
        (0, post(c)),
        // spills: 10 + 50, 80, 140
        (0, post(d)),
        // second of two on the host: 10 + 100 + 20 + 2 x 5 + 100, 1000, 240
        (1000, arrive(d)),
        // in the table; c is promoted: 10 + 200, 1240, 350
        (1100, arrive(a)),
        // in the table: 10, 2000, 10
        (2000, arrive(c)),
        // no receive; into the table of the UMQ: 10, 2100, 10
        (2100, arrive(x)),
        // no receive; spills: 10 + 50, 2110, 70
        (2100, arrive(y)),
        // first on the host: 10 + 100 + 20 + 5 + 100, 2170, 300
        (2105, post(y)),
        // in the table: 10, 3000, 10
        (3000, Op::Peek(key(x))),
        // in the table: 10, 3010, 20
        (3000, post(x)),
    ] {
        clock.0.store(now, Ordering::Relaxed);
        replay.play(&op);
    }
    let counters = replay.counters();
    counters.check().unwrap();
    let charged = counters.prq.modelled.picoseconds() + counters.umq.modelled.picoseconds();
    assert_eq!(charged, 925_000);
    let told = |of: &Latencies| {
        let times = [of.mean_ns(), of.quantile_ns(0.5), of.quantile_ns(0.99)];
        (of.count, times.map(Option::unwrap), of.waited_ps)
    };
    let latency = &counters.latency;
    assert_eq!(told(&latency.arrivals), (5, [136.0, 70.0, 350.0], 150_000));
    assert_eq!(told(&latency.posts), (6, [95.0, 20.0, 300.0], 185_000));
    assert_eq!(told(&latency.peeks), (1, [10.0; 3], 0));
}
