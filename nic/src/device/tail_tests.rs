// SPDX-License-Identifier: BSD-2-Clause
//! Tests that a tail device gives the results and counts of an ordinary device if it is used by one
//! thread. With two threads, one that posts and one on which messages arrive, each message must go
//! to the receive that MPI requires.

use std::sync::{Arc, Barrier, atomic::AtomicU32};

use matching::pool::{LocalPool, Share};
use matching::timing::{Costs, Pace, Timing};
use matching::{HostStorage, OffloadConfig, Source};
use proptest::prelude::*;

use super::*;
use crate::message::MultiRecv;

fn config(entries: usize, depths: bool) -> DeviceConfig {
    let offload = OffloadConfig {
        entries,
        engine: HostEngine::TailQueues,
        overflow: Overflow::Spill,
        depths,
        ..OffloadConfig::default()
    };
    DeviceConfig { prq: offload, umq: offload, ..DeviceConfig::default() }
}

/// A receive with few bits, from few sources, some with wildcards.
fn receive(bits: u64, wild: u8, data: u32, multi: bool) -> Receive<u32> {
    let ignore = if wild & 1 != 0 { 3 } else { 0 };
    let source = if wild & 2 != 0 { Source::ANY } else { Source::new((bits % 3) as u32) };
    let multi = multi.then_some(MultiRecv { len: 10, used: 0, min: 3 });
    Receive {
        key: Key { bits: bits / 3, ignore, source },
        len: 10,
        multi,
        non_contiguous: false,
        data,
    }
}

fn envelope(bits: u64) -> Envelope {
    Envelope { source: (bits % 3) as u32, bits: bits / 3, len: 1 + bits % 4 }
}

/// Records operations in a list.
struct Listed(Arc<Mutex<Vec<String>>>);

impl Recorder for Listed {
    fn short(&mut self, head: crate::trace::OpWord, bits: u64, ignore: u64, source: Source) {
        self.0.lock().push(format!("{head:?} {bits} {ignore} {source:?}"));
    }

    fn record(&mut self, op: &Op) {
        self.0.lock().push(format!("{op:?}"));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Post { bits: u64, wild: u8, multi: bool },
    Arrive { bits: u64 },
    Peek { bits: u64 },
    Discard { bits: u64 },
    Claim { bits: u64, context: u64 },
    Claimed { context: u64 },
    Cancel { data: u32 },
    Drop { source: u32 },
    Count,
}

fn step() -> impl Strategy<Value = Step> {
    let bits = || 0..12_u64;
    prop_oneof![
        8 => (bits(), 0..4_u8, prop::bool::weighted(0.1))
            .prop_map(|(bits, wild, multi)| Step::Post { bits, wild, multi }),
        8 => bits().prop_map(|bits| Step::Arrive { bits }),
        1 => bits().prop_map(|bits| Step::Peek { bits }),
        1 => bits().prop_map(|bits| Step::Discard { bits }),
        1 => (bits(), 0..2_u64).prop_map(|(bits, context)| Step::Claim { bits, context }),
        1 => (0..2_u64).prop_map(|context| Step::Claimed { context }),
        1 => (0..100_u32).prop_map(|data| Step::Cancel { data }),
        1 => (0..3_u32).prop_map(|source| Step::Drop { source }),
        1 => Just(Step::Count),
    ]
}

/// Plays a step on an ordinary device, and returns the results as text.
fn play(device: &mut Device<u32, u32>, step: &Step, number: u32) -> String {
    let context = &mut device.tagged;
    let key = |bits| receive(bits, 0, 0, false).key;
    match *step {
        Step::Peek { bits } => format!("{:?}", context.peek(&key(bits))),
        Step::Discard { bits } => format!("{:?}", context.discard(&key(bits))),
        Step::Claim { bits, context: under } => format!("{:?}", context.claim(&key(bits), under)),
        Step::Claimed { context: under } => format!("{:?}", context.take_claimed(under)),
        Step::Cancel { data } => {
            let cancelled = context.cancel(|receive| receive.data % 100 == data);
            format!("{:?}", cancelled.map(|receive| receive.data))
        }
        Step::Drop { source } => {
            format!("{}", context.drop_unexpected(|envelope, _| envelope.source == source))
        }
        Step::Count => {
            assert_eq!(context.counters().check(), Ok(()));
            format!("{:?} {:?}", context.counters(), context.live())
        }
        Step::Post { bits, wild, multi } => {
            let mut receive = receive(bits, wild, number, multi);
            let mut told = String::new();
            let mut posted = context.post(&mut receive);
            loop {
                told += &format!("{posted:?}");
                if !matches!(posted, Post::Matched { again: true, .. }) {
                    return told;
                }
                posted = context.post_anyway(&mut receive);
            }
        }
        Step::Arrive { bits } => {
            let envelope = envelope(bits);
            let grant = context.arrive(&envelope);
            if grant.is_none() {
                context.keep(envelope, number);
            }
            format!("{grant:?}")
        }
    }
}

fn play_tail(device: &TailDevice<u32, u32>, step: &Step, number: u32) -> String {
    match *step {
        Step::Post { bits, wild, multi } => {
            let mut receive = receive(bits, wild, number, multi);
            let mut told = String::new();
            let mut posted = device.post(true, &mut receive, false);
            loop {
                told += &format!("{posted:?}");
                if !matches!(posted, Post::Matched { again: true, .. }) {
                    return told;
                }
                posted = device.post(true, &mut receive, true);
            }
        }
        Step::Arrive { bits } => format!("{:?}", device.arrive(true, &envelope(bits), || number)),
        _ => play(&mut device.whole(), step, number),
    }
}

#[derive(Debug)]
struct NoPace;

impl Pace for NoPace {
    fn spend(&self, _: u64) {}
}

#[test]
fn a_tail_device_is_for_queues_that_need_no_common_lock() {
    let wanted = |change: fn(&mut DeviceConfig)| {
        let mut config = config(4, false);
        change(&mut config);
        TailDevice::<u32, u32>::is_wanted(&config)
    };
    assert!(wanted(|_| {}) && wanted(|config| config.prq.overflow = Overflow::Prefix));
    assert!(!wanted(|config| config.prq.overflow = Overflow::Sticky));
    assert!(!wanted(|config| config.prq.engine = HostEngine::List));
    assert!(!wanted(
        |config| config.timing = Some(Timing { costs: Costs::default(), pace: Arc::new(NoPace) })
    ));
    assert!(!wanted(|config| config.pool =
        Some(Arc::new(LocalPool::new(1).join(Share { reserved: 0, max: 1 }).unwrap()))));
    let device = TailDevice::<u32, u32>::new(&config(4, false)).unwrap();
    let whole = device.try_whole().expect("no lock is held");
    assert!(device.try_whole().is_none());
    drop(whole);
}

proptest! {
    #[test]
    fn one_at_a_time_both_devices_do_and_count_the_same(
        steps in prop::collection::vec(step(), 1..200),
        entries in prop::sample::select(vec![0_usize, 1, 4, 64]),
        depths: bool,
        recorded: bool,
    ) {
        let mut plain = Device::new(&config(entries, depths)).unwrap();
        let tail = TailDevice::new(&config(entries, depths)).unwrap();
        let lists = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
        if recorded {
            plain.tagged.set_recorder(Box::new(Listed(Arc::clone(&lists[0]))));
            tail.whole().tagged.set_recorder(Box::new(Listed(Arc::clone(&lists[1]))));
        }
        for (number, step) in steps.iter().enumerate() {
            let expected = play(&mut plain, step, number as u32);
            prop_assert_eq!(play_tail(&tail, step, number as u32), expected, "{:?}", step);
        }
        prop_assert_eq!(tail.whole().tagged.counters(), plain.tagged.counters());
        prop_assert_eq!(&*lists[0].lock(), &*lists[1].lock());
    }
}

/// Checks the pairs of receives and messages. If the order of receives and the order of messages
/// are given, every interleaving of the two threads gives the same pairs, because a receive and a
/// message that are each other's oldest match always form a pair.
#[test]
fn two_threads_pair_receives_and_messages_as_one_does() {
    // Elements that never match make searches long, so that they overlap.
    const OTHERS: u32 = if cfg!(miri) { 100 } else { 1000 };
    const OPERATIONS: u32 = 2 * OTHERS;
    let rounds = match (cfg!(miri), cfg!(debug_assertions)) {
        (true, _) => 3,
        (_, true) => 12,
        _ => 60,
    };
    for round in 0..rounds {
        let entries = [0, 7, 4096][round % 3];
        let random = |of: u32, salt: u64| {
            let mut x = u64::from(of) + (round as u64) * 7919 + salt;
            x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ x >> 31
        };
        let receive_of = |of| {
            if of < OTHERS {
                return receive(90, 0, of, false);
            }
            let x = random(of, 0);
            // Wildcards are rare, so that queues become long.
            let wild = if x >> 32 & 7 == 0 { (x >> 40) as u8 & 3 } else { 0 };
            receive(x % 12, wild, of, false)
        };
        let envelope_of = |of| envelope(if of < OTHERS { 99 } else { random(of, 1 << 40) % 12 });
        let mut config = config(entries, true);
        for queue in [&mut config.prq, &mut config.umq] {
            queue.engine_config.storage = HostStorage::Linked;
        }
        let mut plain = Device::<u32, u32>::new(&config).unwrap();
        let mut pairs = Vec::new();
        for of in 0..OPERATIONS {
            assert!(matches!(plain.tagged.post(&mut receive_of(of)), Post::Pending));
        }
        for of in 0..OPERATIONS {
            match plain.tagged.arrive(&envelope_of(of)) {
                Some(grant) => pairs.push((grant.data, of)),
                None => plain.tagged.keep(envelope_of(of), of),
            }
        }
        let ahead = AtomicU32::new(0);
        let (tail, start) = (TailDevice::new(&config).unwrap(), Barrier::new(2));
        for of in 0..OTHERS {
            assert!(matches!(tail.post(true, &mut receive_of(of), false), Post::Pending));
            assert_eq!(tail.arrive(true, &envelope_of(of), || of), None);
        }
        let mut found = std::thread::scope(|scope| {
            let posts = scope.spawn(|| {
                start.wait();
                // In every other round, the arriving thread is ahead, and the posting thread finds
                // many messages in the inbox.
                while round % 2 == 0 && ahead.load(Ordering::Relaxed) < OTHERS + 10 {}
                let posted = (OTHERS..OPERATIONS).map(|of| {
                    match tail.post(true, &mut receive_of(of), false) {
                        Post::Matched { message, .. } => Some((of, message)),
                        _ => None,
                    }
                });
                posted.flatten().collect::<Vec<_>>()
            });
            let arrivals = scope.spawn(|| {
                start.wait();
                let arrive = |of| {
                    if of % 512 == 0 {
                        assert_eq!(tail.whole().tagged.counters().check(), Ok(()));
                    }
                    ahead.store(of, Ordering::Relaxed);
                    tail.arrive(true, &envelope_of(of), || of).map(|grant| (grant.data, of))
                };
                (OTHERS..OPERATIONS).filter_map(arrive).collect::<Vec<_>>()
            });
            let mut found = posts.join().unwrap();
            found.extend(arrivals.join().unwrap());
            found
        });
        found.sort_unstable();
        pairs.sort_unstable();
        assert_eq!(found, pairs, "round {round}");
        let (counted, plain) = (tail.whole().tagged.counters(), plain.tagged.counters());
        assert_eq!(counted.check(), Ok(()));
        assert_eq!((counted.posts, counted.arrivals), (plain.posts, plain.arrivals));
        assert_eq!(tail.whole().tagged.occupancy().map(|(table, host)| table + host), {
            let receives = OPERATIONS as usize - pairs.len();
            [receives, receives]
        });
    }
}

/// Measures posts and arrivals per microsecond of two threads: one posts receives, and on the other
/// messages arrive. Both search queues of `length` elements that do not match, and then match each
/// other. Prints the medians with tail queues and with one lock, and their ratio.
#[test]
#[ignore = "a measurement: cargo test --release -p tcam-nic -- --ignored --nocapture two_threads_against"]
fn two_threads_against_one_lock() {
    const OPERATIONS: u32 = 20_000;
    const ROUNDS: usize = 15;
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let time = |post: &(dyn Fn(u32) + Sync), arrive: &(dyn Fn(u32) + Sync)| {
        let start = Barrier::new(3);
        let began = std::thread::scope(|scope| {
            for work in [post, arrive] {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    (0..OPERATIONS).for_each(work);
                });
            }
            start.wait();
            std::time::Instant::now()
        });
        f64::from(2 * OPERATIONS) / began.elapsed().as_secs_f64() / 1e6
    };
    for length in [1, 32, 256, 1024] {
        let mut config = config(0, false);
        for queue in [&mut config.prq, &mut config.umq] {
            queue.engine_config.storage = HostStorage::Linked;
        }
        let (mut tails, mut ones, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let tail = TailDevice::<u32, u32>::new(&config).unwrap();
            let one = Mutex::new(Device::<u32, u32>::new(&config).unwrap());
            for of in 0..length {
                tail.post(true, &mut receive(90, 0, of, false), false);
                tail.arrive(true, &envelope(99), || of);
                one.lock().tagged.post(&mut receive(90, 0, of, false));
                one.lock().tagged.keep(envelope(99), of);
            }
            tails.push(time(
                &|of| _ = tail.post(true, &mut receive(u64::from(of % 12), 0, of, false), false),
                &|of| _ = tail.arrive(true, &envelope(u64::from(of % 12)), || of),
            ));
            ones.push(time(
                &|of| _ = one.lock().tagged.post(&mut receive(u64::from(of % 12), 0, of, false)),
                &|of| {
                    let (mut one, envelope) = (one.lock(), envelope(u64::from(of % 12)));
                    if one.tagged.arrive(&envelope).is_none() {
                        one.tagged.keep(envelope, of);
                    }
                },
            ));
            ratios.push(tails.last().unwrap() / ones.last().unwrap());
        }
        println!(
            "{length:>5}{:>8.2}{:>8.2}{:>8.2}",
            median(&mut tails),
            median(&mut ones),
            median(&mut ratios)
        );
    }
}
