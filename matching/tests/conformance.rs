// SPDX-License-Identifier: BSD-2-Clause
//! One suite over every table size, kernel, engine and overflow model: random sequences of operations
//! must find what the naive list finds, and the counts must add up.

use matching::oracle::Oracle;
use matching::{
    Element, Found, HostEngine, Kernel, Key, Offload, OffloadConfig, Overflow, Place, Source,
};
use proptest::prelude::*;

/// One operation. `pick` chooses among the live elements.
#[derive(Clone, Debug)]
enum Op {
    Insert { bits: u64, ignore: u64, source: Source },
    SearchRemove(Key),
    SearchKeep(Key),
    SearchOnly(Key),
    Find(Key),
    Cancel { pick: prop::sample::Index },
    CancelUnknown,
}

/// The fields of an MPI's match bits, as MPICH lays them out: context, source, tag.
const TAG: u64 = 0xffff_ffff;
const RANK: u64 = 0xffff << 32;

fn bits() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => (0..3_u64, 0..3_u64, 0..6_u64).prop_map(|(context, rank, tag)| context << 48 | rank << 32 | tag),
        1 => any::<u64>(),
        1 => prop_oneof![Just(0), Just(u64::MAX)],
    ]
}

fn ignore() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => Just(0),
        2 => Just(TAG),
        1 => Just(RANK),
        1 => Just(TAG | RANK),
        1 => (0..64_u32).prop_map(|bit| 1 << bit),
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ]
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![4 => (0..4_u32).prop_map(Source::new), 1 => Just(Source::ANY)]
}

fn exact_source() -> impl Strategy<Value = Source> {
    (0..4_u32).prop_map(Source::new)
}

/// Which side carries the wildcards: posted receives, unexpected messages, both.
#[derive(Clone, Copy, Debug)]
enum Use {
    Posted,
    Unexpected,
    Both,
}

fn op(of: Use) -> BoxedStrategy<Op> {
    let exact = || (bits(), Just(0), exact_source()).boxed();
    let ternary = || (bits(), ignore(), source()).boxed();
    let (element, key) = match of {
        Use::Posted => (ternary(), exact()),
        Use::Unexpected => (exact(), ternary()),
        Use::Both => (ternary(), ternary()),
    };
    let key = key.prop_map(|(bits, ignore, source)| Key { bits, ignore, source }).boxed();
    prop_oneof![
        8 => element.prop_map(|(bits, ignore, source)| Op::Insert { bits, ignore, source }),
        6 => key.clone().prop_map(Op::SearchRemove),
        1 => key.clone().prop_map(Op::SearchKeep),
        1 => key.clone().prop_map(Op::SearchOnly),
        1 => key.prop_map(Op::Find),
        1 => any::<prop::sample::Index>().prop_map(|pick| Op::Cancel { pick }),
        1 => Just(Op::CancelUnknown),
    ]
    .boxed()
}

fn sequence(length: usize) -> impl Strategy<Value = Vec<Op>> {
    prop_oneof![Just(Use::Posted), Just(Use::Unexpected), Just(Use::Both)]
        .prop_flat_map(move |of| prop::collection::vec(op(of), 0..length))
}

/// Tokens as the provider makes them: dense, the lowest free one first.
#[derive(Default)]
struct Tokens(Vec<bool>);

impl Tokens {
    fn take(&mut self) -> u32 {
        let free = self.0.iter().position(|used| !used).unwrap_or(self.0.len());
        self.0.resize(self.0.len().max(free + 1), false);
        self.0[free] = true;
        u32::try_from(free).unwrap()
    }
}

/// Replays `ops` on a queue and on the oracle. With `spill` the table holds the
/// oldest elements, so the oracle also knows the place and the depth.
fn replay(config: OffloadConfig, ops: &[Op]) {
    let entries = config.entries;
    let spill = config.overflow == Overflow::Spill;
    let mut queue = Offload::new(&config).unwrap();
    let mut oracle = Oracle::default();
    let mut tokens = Tokens::default();
    let mut depths = 0;
    let place = |rank: usize| if rank < entries { Place::Table } else { Place::Host };
    for op in ops {
        match *op {
            Op::Insert { bits, ignore, source } => {
                let element = Element { bits, ignore, source, token: tokens.take() };
                let placed = queue.insert(element);
                assert!(!spill || placed == place(oracle.elements().len()));
                oracle.insert(element);
            }
            Op::SearchRemove(key) | Op::SearchKeep(key) | Op::SearchOnly(key) => {
                let expected = oracle.find(&key);
                let found = queue.search(&key);
                check_found(found, expected, spill, place);
                if let Some((rank, token)) = expected {
                    depths += rank + 1;
                    match op {
                        Op::SearchRemove(_) => {
                            assert!(queue.remove_matched(token));
                            assert!(oracle.remove(token));
                            tokens.0[token as usize] = false;
                        }
                        Op::SearchKeep(_) => queue.keep_matched(token),
                        _ => {}
                    }
                }
            }
            Op::Find(key) => {
                let expected = oracle.find(&key);
                check_found(queue.find(&key), expected, spill, place);
            }
            Op::Cancel { ref pick } => {
                if !oracle.elements().is_empty() {
                    let token = pick.get(oracle.elements()).token;
                    assert!(queue.cancel(token));
                    assert!(oracle.remove(token));
                    tokens.0[token as usize] = false;
                }
            }
            Op::CancelUnknown => assert!(!queue.cancel(1 << 20)),
        }
        assert_eq!(queue.len(), oracle.elements().len());
    }
    let counters = queue.counters();
    counters.check().unwrap();
    assert_eq!(counters.table_occupancy + counters.host_occupancy, oracle.elements().len() as u64);
    assert_eq!(counters.search_depth.hit.total(), counters.table_matches + counters.host_matches);
    assert_eq!(counters.search_depth.miss.total(), counters.misses);
    if spill {
        assert_eq!(counters.table_occupancy, oracle.elements().len().min(entries) as u64);
        assert_eq!(counters.spills == 0, counters.high_water <= entries as u64);
    }
    let (least, most) = counters
        .search_depth
        .hit
        .buckets()
        .fold((0, 0), |(least, most), (low, high, n)| (least + low * n, most + high * n));
    assert!((least..=most).contains(&(depths as u64)));
    assert!(queue.iter_tokens().eq(oracle.elements().iter().map(|element| element.token)));
}

fn check_found(
    found: Option<Found>,
    expected: Option<(usize, u32)>,
    spill: bool,
    place: impl Fn(usize) -> Place,
) {
    assert_eq!(found.map(|found| found.token), expected.map(|(_, token)| token));
    if let (true, Some(found), Some((rank, _))) = (spill, found, expected) {
        assert_eq!(found.place, place(rank));
    }
}

/// Every kernel with the usual engine, and every engine and overflow model with
/// the usual kernel: they do not meet each other's code.
fn replay_everywhere(entries: usize, ops: &[Op]) {
    let usual = OffloadConfig { entries, depths: true, ..OffloadConfig::default() };
    for name in ["avx512", "avx2", "scalar"] {
        let kernel: Kernel = name.parse().unwrap();
        if kernel.is_available() {
            replay(OffloadConfig { kernel, ..usual }, ops);
        } else {
            eprintln!("SKIPPED: this processor has no {kernel}");
        }
    }
    for engine in HostEngine::ALL {
        for overflow in Overflow::ALL {
            replay(OffloadConfig { engine, overflow, ..usual }, ops);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn table_of_0(ops in sequence(120)) {
        replay_everywhere(0, &ops);
    }

    #[test]
    fn table_of_1(ops in sequence(120)) {
        replay_everywhere(1, &ops);
    }

    #[test]
    fn table_of_7(ops in sequence(200)) {
        replay_everywhere(7, &ops);
    }

    #[test]
    fn table_of_64(ops in sequence(1200)) {
        replay_everywhere(64, &ops);
    }

    #[test]
    fn table_of_4096(ops in sequence(1200)) {
        replay_everywhere(4096, &ops);
    }
}
