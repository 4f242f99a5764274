// SPDX-License-Identifier: BSD-2-Clause
//! Tests both kinds of table, several table sizes, and every kernel, engine, storage and overflow
//! model. Random sequences of operations, with the match bits of every tag layout, must find the
//! same elements as the naive list, and the counts must add up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use matching::measured::{Clock, MeasuredTime};
use matching::oracle::Oracle;
use matching::pool::{EntryPool as _, LocalPool, Share};
use matching::{
    Block, Clusters, Element, EngineConfig, Found, HostEngine, HostStorage, Kernel, Key, Leave,
    Offload, OffloadConfig, Overflow, Place, QueueCounters, Role, Source, TableKind, TagLayout,
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

/// One operation. `pick` chooses among the live elements.
#[derive(Clone, Debug)]
enum Op {
    Insert { bits: u64, ignore: u64, source: Source, refuse: bool },
    SearchRemove(Key),
    SearchKeep(Key),
    SearchOnly(Key),
    Find(Key),
    Cancel { pick: prop::sample::Index },
    CancelUnknown,
}

/// Returns match bits of a layout: those of an application message, or of the first, the second or
/// a nonblocking collective operation of a communicator.
fn of_layout(layout: TagLayout, context: u64, rank: u64, tag: u64) -> u64 {
    let mpich = [1, 2, 287, 288][tag as usize / 2 % 4];
    let open_mpi = tag.wrapping_sub([10, 12, 33, 34][tag as usize / 2 % 4]);
    let collective = tag % 2;
    let number = |plain, operation| if collective == 1 { operation } else { plain };
    match layout {
        TagLayout::Mpich => context << 32 | collective << 31 | number(tag, mpich),
        TagLayout::MpichSourceInTag => {
            context << 43 | collective << 42 | rank << 19 | number(tag, mpich)
        }
        TagLayout::IntelMpi => rank << 40 | context << 21 | collective << 20 | number(tag, mpich),
        TagLayout::OpenMpi => context << 34 | number(tag, open_mpi) & 0xffff_ffff,
        TagLayout::OpenMpiTag1 => context << 52 | rank << 34 | number(tag, open_mpi) & 0xffff_ffff,
        TagLayout::OpenMpiTag2 => context << 40 | rank << 22 | number(tag, open_mpi) & 0xf_ffff,
        TagLayout::Opaque => context << 48 | rank << 32 | tag,
    }
}

fn bits(layout: TagLayout) -> impl Strategy<Value = u64> {
    prop_oneof![
        16 => (0..2_u64, rank(), 0..8_u64)
            .prop_map(move |(context, rank, tag)| of_layout(layout, context, u64::from(rank), tag)),
        1 => any::<u64>(),
        1 => prop_oneof![Just(0), Just(u64::MAX)],
    ]
}

/// Generates ignore bits: those of MPI receives (protocol bits, tag, source), and some that no MPI
/// uses.
fn ignore(layout: TagLayout) -> impl Strategy<Value = u64> {
    let (protocol, tag, source) = match layout {
        TagLayout::Mpich => (0xc0 << 48, 0x7fff_ffff, 0),
        TagLayout::MpichSourceInTag => (0x3 << 62, 0x7_ffff, 0x7f_ffff << 19),
        TagLayout::IntelMpi => (0xf << 60, 0xf_ffff, 0xf_ffff << 40),
        TagLayout::OpenMpi => (1 << 32, 0x7fff_ffff, 0),
        TagLayout::OpenMpiTag1 => (1 << 32, 0x7fff_ffff, 0x3_ffff << 34),
        TagLayout::OpenMpiTag2 => (1 << 20, 0x7_ffff, 0x3_ffff << 22),
        TagLayout::Opaque => (0, 0xffff_ffff, 0xffff << 32),
    };
    prop_oneof![
        6 => Just(0),
        6 => Just(protocol),
        3 => Just(protocol | tag),
        1 => Just(protocol | source),
        1 => Just(protocol | tag | source),
        1 => (0..64_u32).prop_map(|bit| 1 << bit),
        1 => any::<u64>(),
        1 => Just(u64::MAX),
    ]
}

/// Generates ranks: 0 and 1 often, and 2 and 3 rarely.
fn rank() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..2_u32, 1 => 0..4_u32]
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![6 => rank().prop_map(Source::new), 1 => Just(Source::ANY)]
}

fn exact_source() -> impl Strategy<Value = Source> {
    rank().prop_map(Source::new)
}

/// The side with wildcards: posted receives, searches of unexpected messages, or both.
#[derive(Clone, Copy, Debug)]
enum Use {
    Posted,
    Unexpected,
    Both,
}

fn op(layout: TagLayout, of: Use) -> BoxedStrategy<Op> {
    let exact = || (bits(layout), Just(0), exact_source()).boxed();
    let ternary = || (bits(layout), ignore(layout), source()).boxed();
    let (element, key) = match of {
        Use::Posted => (ternary(), exact()),
        Use::Unexpected => (exact(), ternary()),
        Use::Both => (ternary(), ternary()),
    };
    let key = key.prop_map(|(bits, ignore, source)| Key { bits, ignore, source }).boxed();
    prop_oneof![
        8 => (element, prop::bool::weighted(0.2)).prop_map(|((bits, ignore, source), refuse)| {
            Op::Insert { bits, ignore, source, refuse }
        }),
        6 => key.clone().prop_map(Op::SearchRemove),
        1 => key.clone().prop_map(Op::SearchKeep),
        1 => key.clone().prop_map(Op::SearchOnly),
        1 => key.prop_map(Op::Find),
        1 => any::<prop::sample::Index>().prop_map(|pick| Op::Cancel { pick }),
        1 => Just(Op::CancelUnknown),
    ]
    .boxed()
}

/// Generates a layout, and operations with its match bits.
fn sequence(length: usize) -> impl Strategy<Value = (TagLayout, Vec<Op>)> {
    let of = prop_oneof![Just(Use::Posted), Just(Use::Unexpected), Just(Use::Both)];
    let layout = prop::sample::select(TagLayout::ALL);
    (layout, of).prop_flat_map(move |(layout, of)| {
        (Just(layout), prop::collection::vec(op(layout, of), 0..length))
    })
}

/// Tokens as the provider assigns them: dense, the lowest free one first.
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

/// Conditions in addition to the queue's configuration.
#[derive(Clone, Copy, Debug, Default)]
struct With {
    /// The device refuses some elements.
    refusals: bool,
    /// The table draws from a pool of this many entries, shared with a neighbour.
    pool: Option<u32>,
}

/// Another member of the pool, which takes and returns entries between operations.
struct Neighbour {
    pool: LocalPool,
    member: matching::pool::LocalMember,
    held: u32,
    random: u64,
}

impl Neighbour {
    fn new(pool: &LocalPool) -> Self {
        let member = pool.join(Share { reserved: 1, max: 5 }).unwrap();
        Self { pool: pool.clone(), member, held: 0, random: 1 }
    }

    fn act(&mut self) {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        match self.random >> 61 {
            0 if self.held > 0 => {
                self.member.give_back();
                self.held -= 1;
            }
            1 | 2 if self.member.take().is_ok() => self.held += 1,
            _ => {}
        }
    }
}

/// A clock that advances at each read.
#[derive(Debug, Default)]
struct Looks(AtomicU64);

impl Clock for Looks {
    fn now(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Replays `ops` on a queue and on the oracle. With the overflow model `spill`, and without
/// refusals and a pool, the table holds the oldest elements, so the oracle also predicts the place.
fn replay(config: OffloadConfig, with: With, ops: &[Op]) -> QueueCounters {
    let entries = config.entries;
    let spill = config.overflow == Overflow::Spill && !with.refusals && with.pool.is_none();
    let layout = config.engine_config.layout;
    let (mut collective, mut held_back) = (0, 0);
    let pool = with.pool.map(LocalPool::new);
    let mut neighbour = pool.as_ref().map(Neighbour::new);
    let mut queue = Offload::new(&config).unwrap();
    if config.engine == HostEngine::Kmeans {
        // Ranks 0 to 3 occur.
        let clusters = Clusters::new(vec![Some(1), Some(0), None]).unwrap();
        queue = queue.with_clusters(Arc::new(clusters));
    }
    if let Some(pool) = &pool {
        queue = queue.with_pool(Arc::new(pool.join(Share { reserved: 1, max: 6 }).unwrap()));
    }
    // Half of the sequences are measured.
    let measured = ops.len().is_multiple_of(2);
    if measured {
        queue = queue.with_clock(Arc::new(Looks::default()));
    }
    let mut oracle = Oracle::default();
    let mut tokens = Tokens::default();
    let mut depths = 0;
    let place = |rank: usize| if rank < entries { Place::Table } else { Place::Host };
    for op in ops {
        if let Some(neighbour) = &mut neighbour {
            neighbour.act();
        }
        match *op {
            Op::Insert { bits, ignore, source, refuse } => {
                let refused = refuse && with.refusals;
                if with.refusals && !refused && bits % 3 == 0 {
                    queue.force();
                }
                let room = refused || queue.check_room();
                assert!(room || config.overflow == Overflow::FlowControl);
                held_back += u64::from(!room);
                if !room && bits % 2 == 0 {
                    // Some posters give up; others insert the element although there is no room.
                    continue;
                }
                let element = Element { bits, ignore, source, token: tokens.take() };
                collective += u64::from(layout.is_collective(&Key { bits, ignore, source }));
                let placed = if refused {
                    if bits % 2 == 1 {
                        queue.refuse(element, Block::Short);
                    } else {
                        queue.refuse(element, Block::Refused);
                    }
                    Place::Host
                } else {
                    queue.insert(element)
                };
                if config.overflow == Overflow::FlowControl && entries > 0 && !refused {
                    assert_eq!(placed == Place::Table, room);
                    assert!(room || queue.holds_back());
                }
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
            Op::CancelUnknown => {
                assert!(!queue.cancel(1 << 20));
                // A queue must leave its table when the other queue of the context has left.
                queue.leave();
                assert!(config.overflow != Overflow::Sticky || entries == 0 || queue.has_left());
            }
        }
        assert_eq!(queue.len(), oracle.elements().len());
    }
    let counters = queue.counters();
    counters.check().unwrap();
    let moved = counters.inserts + counters.promotions + counters.onloads;
    let inserts = counters.measured.insert.table.count + counters.measured.insert.host.count;
    assert_eq!(inserts, if measured { moved } else { 0 });
    assert!(measured || counters.measured == MeasuredTime::default());
    assert_eq!(counters.kinds.collective.inserts, collective);
    assert!((counters.held_back == 0) == (held_back == 0));
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
    // A refused element may be older than elements in the table, which depths count first.
    assert!(with.refusals || (least..=most).contains(&(depths as u64)));
    assert!(with.refusals || counters.search_depth.hit_entries == depths as u64);
    if let Some(Neighbour { pool, held, .. }) = &neighbour {
        assert_eq!(u64::from(pool.taken() - held), counters.table_occupancy);
        assert!(counters.table_high_water <= 6);
    }
    assert!(queue.iter_tokens().eq(oracle.elements().iter().map(|element| element.token)));
    counters
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

/// Replays with every kernel, which searches the table and the queues of the engine. The engines
/// are the usual one and `list`, whose queue is the longest. The counters of both kinds of table
/// must be equal. Then replays with every engine, storage and overflow model and the usual kernel.
/// θ is small, so that engines look for partners and make levels.
fn replay_everywhere(entries: usize, (layout, ops): &(TagLayout, Vec<Op>)) {
    let engine_config = EngineConfig { layout: *layout, theta: 4, ..EngineConfig::default() };
    let usual = OffloadConfig { entries, depths: true, engine_config, ..OffloadConfig::default() };
    for name in ["avx512", "avx2", "scalar"] {
        let kernel: Kernel = name.parse().unwrap();
        if kernel.is_available() {
            for engine in [HostEngine::List, HostEngine::ColPnp] {
                let of = |table| OffloadConfig { table, kernel, engine, ..usual };
                let counters = |table| replay(of(table), With::default(), ops);
                assert_eq!(counters(TableKind::Index), counters(TableKind::Cam));
            }
        } else {
            eprintln!("SKIPPED: this processor has no {kernel}");
        }
    }
    for &overflow in Overflow::ALL {
        for pool in [None, Some(8)] {
            let with = With { refusals: false, pool };
            let counters = |table| replay(OffloadConfig { table, overflow, ..usual }, with, ops);
            assert_eq!(counters(TableKind::Index), counters(TableKind::Cam));
        }
    }
    for &queue in HostStorage::ALL {
        let engine_config = EngineConfig { storage: queue, ..engine_config };
        for &engine in HostEngine::ALL {
            for &overflow in Overflow::ALL {
                let leave = Leave { takes_along: true, ..Leave::default() };
                let config = OffloadConfig { engine, engine_config, overflow, leave, ..usual };
                replay(config, With::default(), ops);
                replay(config, With { refusals: false, pool: Some(8) }, ops);
                if engine == usual.engine {
                    replay(config, With { refusals: true, pool: None }, ops);
                    replay(config, With { refusals: true, pool: Some(3) }, ops);
                }
            }
        }
        // The queue of unexpected messages, searched by receives, with elements of any kind.
        let engine_config = EngineConfig { role: Role::Unexpected, ..engine_config };
        let engine = HostEngine::NewMadeleine;
        replay(OffloadConfig { engine, engine_config, ..usual }, With::default(), ops);
        // With a larger θ, short queues are searched as one list.
        let engine_config = EngineConfig { theta: 100, ..engine_config };
        let config = OffloadConfig { engine: HostEngine::ColPnp, engine_config, ..usual };
        replay(config, With::default(), ops);
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]

    #[test]
    fn table_of_1024(ops in sequence(9000)) {
        replay_everywhere(1024, &ops);
    }
}

/// Checks that the sequences reach the code that they are meant to test.
#[test]
fn engines_make_queues_for_the_sequences() {
    let mut runner = TestRunner::deterministic();
    let mut made = (0, 0);
    for _ in 0..8 {
        let strategy = prop::collection::vec(op(TagLayout::Mpich, Use::Posted), 1200);
        let ops = strategy.new_tree(&mut runner).unwrap().current();
        for &queue in HostStorage::ALL {
            let [usual, counters] = [100, 4].map(|theta| {
                let layout = TagLayout::Mpich;
                let engine_config =
                    EngineConfig { storage: queue, layout, theta, ..Default::default() };
                let engine = HostEngine::ColPnp;
                let config =
                    OffloadConfig { entries: 0, engine, engine_config, ..Default::default() };
                replay(OffloadConfig { depths: true, ..config }, With::default(), &ops)
            });
            assert!(usual.high_water > 100, "more than a list");
            made.0 += usize::from(counters.dedicated_collective > 0);
            made.1 += usize::from(counters.dedicated_point_to_point > 4);
        }
    }
    assert!(made.0 >= 12 && made.1 >= 12, "{made:?}");
}
