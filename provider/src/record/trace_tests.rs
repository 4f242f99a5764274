// SPDX-License-Identifier: BSD-2-Clause
//! Tests of traces. If several threads use one device, the trace contains the operations in the
//! order in which they took effect, and those of each thread in the order of the thread.

use std::{
    collections::BTreeMap,
    fs::File,
    sync::{Arc, Barrier},
};

use matching::{OffloadConfig, Overflow};
use nic::{
    config::DeviceConfig,
    device::Device,
    message::{Envelope, Receive},
    replay::Replay,
    report::ContextCounters,
    trace::Reader,
};
use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;

/// Match bits that are compared. The other bits contain the thread and the step.
const CLASS: u64 = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    Post,
    Arrive,
    Peek,
}

fn key(bits: u64) -> Key {
    Key { bits, ignore: !CLASS, source: Source::ANY }
}

fn receive(bits: u64) -> Receive<u64> {
    Receive { key: key(bits), len: 8, multi: None, non_contiguous: false, data: bits }
}

fn config() -> DeviceConfig {
    let overflow = Overflow::Spill;
    let queue = OffloadConfig { entries: 4, overflow, depths: true, ..OffloadConfig::default() };
    DeviceConfig { prq: queue, umq: queue, ..DeviceConfig::default() }
}

/// A trace in a directory that is removed after the test.
fn trace_in(
    directory: &tempfile::TempDir,
    pauses: Option<Pauses>,
) -> (PathBuf, Box<Trace<NoSites>>) {
    let path = directory.path().join("0.1.2.tagged.trace");
    let start_clock_ns = clock::now();
    let header = Header { window: WINDOW as u32, start_clock_ns, ..Header::default() };
    let trace = Trace::new(path.clone(), header, u64::MAX, Arc::default(), pauses, NoSites);
    (path, Box::new(trace))
}

/// Runs one thread for each list of steps, concurrently. The bits of a step are its thread and its
/// place.
fn ask(lists: &[Vec<Step>], does: impl Fn(Step, u64) + Sync) {
    let start = Barrier::new(lists.len());
    std::thread::scope(|scope| {
        for (thread, steps) in lists.iter().enumerate() {
            let (does, start) = (&does, &start);
            scope.spawn(move || {
                start.wait();
                for (at, step) in steps.iter().enumerate() {
                    let class = (thread + at) as u64 % (CLASS + 1);
                    does(*step, (thread as u64) << 32 | (at as u64) << 2 | class);
                }
            });
        }
    });
}

/// Reads a trace. Returns the counts of its replay, and the bits of the operations of each thread
/// number.
fn read(path: &Path, config: &DeviceConfig) -> (ContextCounters, BTreeMap<u32, Vec<u64>>) {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    let (mut replay, mut asked) = (Replay::new(config).unwrap(), BTreeMap::<u32, Vec<u64>>::new());
    while let Some(next) = reader.next() {
        let (_, op) = next.unwrap();
        replay.play(&op);
        let (_, key) = op.short().unwrap();
        let thread = reader.thread();
        assert!(!thread.is_device);
        asked.entry(thread.number).or_default().push(key.bits);
    }
    (replay.counters(), asked)
}

/// Checks that the operations of the trace are those of the threads.
fn check(lists: &[Vec<Step>], asked: &BTreeMap<u32, Vec<u64>>) {
    assert_eq!(asked.len(), lists.len(), "threads");
    let mut seen = vec![false; lists.len()];
    for bits in asked.values() {
        let thread = (bits[0] >> 32) as usize;
        assert!(!std::mem::replace(&mut seen[thread], true), "thread {thread} has two numbers");
        let places = bits.iter().map(|bits| (bits >> 32, (bits & 0xffff_ffff) >> 2));
        assert!(places.eq((0..lists[thread].len() as u64).map(|at| (thread as u64, at))));
    }
}

fn lists() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = prop_oneof![3 => Just(Step::Post), 3 => Just(Step::Arrive), 1 => Just(Step::Peek)];
    proptest::collection::vec(proptest::collection::vec(step, 1..300), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn threads_with_one_lock_are_recorded_in_matching_order(
        lists in lists(), sends in any::<bool>(),
    ) {
        let (directory, config) = (tempfile::tempdir().unwrap(), config());
        let (path, trace) = trace_in(&directory, sends.then(Pauses::default));
        let mut device = Device::new(&config).unwrap();
        device.tagged.set_recorder(trace);
        let device = Mutex::new(device);
        ask(&lists, |step, bits| {
            let context = &mut device.lock().tagged;
            match step {
                Step::Post => drop(context.post(&mut receive(bits))),
                Step::Arrive => {
                    let envelope = Envelope { source: 1, bits, len: 8 };
                    if context.arrive(&envelope).is_none() {
                        context.keep(envelope, bits);
                    }
                }
                Step::Peek => drop(context.peek(&key(bits))),
            }
        });
        let mut device = device.into_inner();
        device.end_recording();
        let (replayed, asked) = read(&path, &config);
        prop_assert_eq!(replayed, device.tagged.counters());
        check(&lists, &asked);
    }
}

#[test]
fn a_change_of_thread_costs_one_word() {
    let size = |threads: &[usize]| {
        let directory = tempfile::tempdir().unwrap();
        let (path, mut trace) = trace_in(&directory, None);
        // All operations are arrivals of the same message, so that each record takes one word. This
        // thread is recorded first.
        let record = |trace: &mut Trace<NoSites>| {
            let (head, key) = Op::Arrive(Envelope { source: 1, bits: 5, len: 8 }).short().unwrap();
            // A long step would take more words.
            trace.came(trace.now + 1, 0);
            trace.short(head, key.bits, key.ignore, key.source);
        };
        record(&mut trace);
        for &count in threads {
            std::thread::scope(|scope| {
                scope.spawn(|| (0..count).for_each(|_| record(&mut trace)));
            });
        }
        trace.close();
        let bytes = std::fs::read(&path).unwrap();
        let words = bytes[nic::trace::HEADER..].as_chunks::<4>().0;
        words.iter().rposition(|word| *word != [0; 4]).unwrap() + 1
    };
    // Each thread records the time, the change, and the message again. Each repetition is a word.
    let more = [size(&[1]), size(&[9]), size(&[9, 9])].map(|it| it - size(&[]));
    assert_eq!(more, [3, 11, 22]);
}

/// Records operations. If an operation has a time, the message came at that time.
fn times_of(ops: &[(Op, Option<u64>)], pauses: bool) -> Vec<u64> {
    let directory = tempfile::tempdir().unwrap();
    let (path, mut trace) = trace_in(&directory, pauses.then(Pauses::default));
    let started = trace.started;
    for (op, came) in ops {
        came.iter().for_each(|came| trace.came(started + came, 0));
        match op.short() {
            Some((head, key)) => trace.short(head, key.bits, key.ignore, key.source),
            None => trace.record(op),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    trace.close();
    let reader = Reader::new(File::open(&path).unwrap()).unwrap();
    reader.map(|timed| timed.unwrap().0).collect()
}

#[test]
fn each_operation_has_its_own_time() {
    let post = Op::Post((&receive(5)).into());
    let arrive = Op::Arrive(Envelope { source: 1, bits: 5, len: 8 });
    let ops = [post, arrive, arrive, Op::Cancel(0), Op::Drop(0), post, post];
    for pauses in [false, true] {
        let times = times_of(&ops.map(|op| (op, None)), pauses);
        assert!(times.is_sorted_by(|one, next| next - one >= 1_000_000), "{times:?}");
    }
}

#[test]
fn the_error_of_the_clock_of_a_peer_is_recorded_when_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    let (path, mut trace) = trace_in(&directory, None);
    let arrive = |source| Op::Arrive(Envelope { source, bits: 5, len: 8 });
    let errors = [(1, 800), (2, 0), (1, 850), (3, u32::MAX), (1, 901), (2, 0), (1, 300), (1, 0)];
    for (source, error) in errors {
        trace.came(trace.now + 1, error);
        let (head, key) = arrive(source).short().unwrap();
        trace.short(head, key.bits, key.ignore, key.source);
    }
    trace.close();
    let mut reader = Reader::new(File::open(&path).unwrap()).unwrap();
    let read = std::array::from_fn(|_| {
        let op = reader.next().unwrap().unwrap().1;
        reader.error(&op)
    });
    assert_eq!(read, [900, 0, 900, u32::MAX.into(), 1013, 0, 337, 337]);
    assert_eq!(reader.error(&Op::Post((&receive(5)).into())), 0);
}

#[test]
fn the_time_of_a_dropped_message_is_not_that_of_the_next_operation() {
    let post = Op::Post((&receive(5)).into());
    let arrive = Op::Arrive(Envelope { source: 1, bits: 5, len: 8 });
    // The second and the third time are those of messages that were dropped before their match.
    let ops = [(arrive, Some(7)), (post, Some(8)), (Op::Cancel(0), Some(9)), (arrive, None)];
    let times = times_of(&ops, false);
    assert!(times.is_sorted_by(|one, next| next - one >= 1_000_000), "{times:?}");
}

#[test]
fn an_arrival_has_the_time_that_its_sender_wrote_within_bounds() {
    let post = Op::Post((&receive(5)).into());
    let arrive = Op::Arrive(Envelope { source: 1, bits: 5, len: 8 });
    let hour = 3600 * 1_000_000_000;
    let ops = [
        (arrive, Some(7)),
        (arrive, Some(9)),
        (arrive, Some(3)),
        (post, None),
        (arrive, Some(11)),
        (arrive, Some(hour)),
        (arrive, None),
    ];
    let times = times_of(&ops, false);
    assert_eq!(times[..3], [7, 9, 9], "times never decrease");
    assert!(times[3] >= 3_000_000);
    assert_eq!(times[4], times[3], "the message came before the post");
    assert!(times[5] > times[4] && times[5] < hour, "the future is not trusted: {times:?}");
    assert!(times[6] - times[5] >= 1_000_000);
}

#[test]
#[ignore = "a measurement: cargo test --release -p tcam-provider -- --ignored --nocapture cost_of_recording"]
fn cost_of_recording() {
    const OPERATIONS: u64 = 10_000_000;
    let path = std::env::temp_dir().join(format!("tcam-cost-{}", std::process::id()));
    let peers = Arc::default();
    let header = Header { start_clock_ns: clock::now(), ..Header::default() };
    let mut trace = Trace::new(path.clone(), header, u64::MAX, peers, None, NoSites);
    for keys in [1, 100, 1000, OPERATIONS] {
        let envelope = |at| Envelope { source: 1, bits: at % keys, len: 8 };
        let started = Instant::now();
        for at in 0..OPERATIONS {
            let (head, key) = Op::Arrive(envelope(at)).short().unwrap();
            let recorder: &mut dyn Recorder = std::hint::black_box(&mut trace);
            recorder.short(head, key.bits, key.ignore, key.source);
        }
        let ns = started.elapsed().as_nanos() as f64 / OPERATIONS as f64;
        println!("{ns:.1} ns an operation, {keys} keys");
    }
    std::fs::remove_file(path).unwrap();
}
