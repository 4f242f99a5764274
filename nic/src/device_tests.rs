// SPDX-License-Identifier: BSD-2-Clause
//! Compares the device with two plain lists over random operations.

use matching::pool::{EntryPool, LocalPool, Share};
use matching::{HostEngine, Kernel, OffloadConfig, Overflow, Role};
use proptest::prelude::*;

use super::*;
use crate::message::MultiRecv;

#[path = "device_refusals_tests.rs"]
mod refusals;

fn config(entries: usize) -> DeviceConfig {
    let offload = OffloadConfig {
        entries,
        kernel: Kernel::best(),
        engine: HostEngine::List,
        overflow: Overflow::Spill,
        depths: true,
        ..OffloadConfig::default()
    };
    DeviceConfig { prq: offload, umq: offload, ..DeviceConfig::default() }
}

fn any_source(bits: u64, data: u32) -> Receive<u32> {
    Receive {
        key: Key { bits, ignore: 0, source: Source::ANY },
        len: 0,
        multi: None,
        non_contiguous: false,
        data,
    }
}

#[test]
fn the_earliest_posted_receive_wins_directed_or_not() {
    for entries in [0, 1, 2] {
        let mut device = Device::<u32, ()>::new(&config(entries)).unwrap();
        let directed = Receive {
            key: Key { bits: 5, ignore: 0, source: Source::new(3) },
            len: 0,
            multi: None,
            non_contiguous: false,
            data: 2,
        };
        assert!(matches!(device.tagged.post(&mut any_source(5, 1)), Post::Pending));
        assert!(matches!(device.tagged.post(&mut directed.clone()), Post::Pending));
        let envelope = Envelope { source: 3, bits: 5, len: 0 };
        assert_eq!(device.tagged.arrive(&envelope).unwrap().data, 1);
        assert_eq!(device.tagged.arrive(&envelope).unwrap().data, 2);
        assert!(device.tagged.arrive(&envelope).is_none());
    }
}

#[test]
fn a_multi_receive_buffer_takes_messages_until_less_than_the_minimum_is_left() {
    let mut device = Device::<u32, ()>::new(&config(1)).unwrap();
    let multi = Some(MultiRecv { len: 100, used: 0, min: 30 });
    assert!(matches!(device.msg.post(&mut Receive { multi, ..any_source(0, 9) }), Post::Pending));
    let envelope = Envelope { source: 1, bits: 0, len: 40 };
    let grant = |offset, last| Some(Grant { data: 9, offset, last });
    assert_eq!(device.msg.arrive(&envelope), grant(0, false));
    assert_eq!(device.msg.arrive(&envelope), grant(40, true));
    assert_eq!(device.msg.arrive(&envelope), None);
    device.msg.keep(envelope, ());
    let mut receive = Receive { multi, ..any_source(0, 9) };
    assert!(matches!(device.msg.post(&mut receive), Post::Matched { again: true, .. }));
    assert_eq!(receive.multi, Some(MultiRecv { len: 100, used: 40, min: 30 }));
    device.msg.counters().check().unwrap();
}

#[test]
fn both_queues_of_both_contexts_draw_from_the_pool() {
    let pool = LocalPool::new(3);
    let member = Arc::new(pool.join(Share { reserved: 0, max: 3 }).unwrap());
    let config = DeviceConfig { pool: Some(member), ..config(8) };
    let mut device = Device::<u32, ()>::new(&config).unwrap();
    for context in device.contexts() {
        assert!(matches!(context.post(&mut any_source(5, 1)), Post::Pending));
        context.keep(Envelope { source: 1, bits: 6, len: 0 }, ());
    }
    assert_eq!(pool.taken(), 3);
    let umq = device.msg.counters().umq;
    assert_eq!((umq.host_occupancy, umq.block_reasons.pool_share), (1, 1));
    // An entry that becomes free in one context does not go to the other context at once.
    assert!(device.tagged.arrive(&Envelope { source: 1, bits: 5, len: 0 }).is_some());
    assert_eq!(pool.taken(), 2);
    assert!(matches!(device.msg.post(&mut any_source(6, 2)), Post::Matched { .. }));
    drop((device, config));
    assert_eq!(pool.taken(), 0);
}

#[test]
fn unexpected_messages_make_room_for_receives_and_messages() {
    let pool = LocalPool::new(4);
    let member = Arc::new(pool.join(Share { reserved: 0, max: 4 }).unwrap());
    let mut config = DeviceConfig { pool: Some(member), onloads: true, ..config(8) };
    (config.prq.overflow, config.umq.overflow) = (Overflow::FlowControl, Overflow::FlowControl);
    let mut device = Device::<u32, u32>::new(&config).unwrap();
    let context = &mut device.tagged;
    let envelope = |bits| Envelope { source: 1, bits, len: 0 };
    let keep = |context: &mut Context<u32, u32>, bits| {
        assert!(context.arrive(&envelope(bits)).is_none());
        context.keep(envelope(bits), bits as u32);
    };
    (0..4).for_each(|bits| keep(context, bits));
    // A message finds no entry, so that four messages move. It is not held back.
    keep(context, 4);
    assert!(!context.holds_back());
    assert_eq!((pool.taken(), context.counters().umq.onloads), (1, 4));
    (10..13).for_each(|bits| {
        assert!(matches!(context.post(&mut any_source(bits, 1)), Post::Pending));
    });
    // A receive finds none, and the fifth message moves.
    assert!(matches!(context.post(&mut any_source(13, 1)), Post::Pending));
    assert_eq!((pool.taken(), context.counters().umq.onloads), (4, 5));
    assert!(matches!(context.post(&mut any_source(14, 1)), Post::HeldBack));
    // Messages on the host are matched in their order, and none returns to the table.
    for bits in [2, 0, 4, 1, 3] {
        let matched = context.post(&mut any_source(bits, 1));
        assert!(matches!(matched, Post::Matched { message, .. } if u64::from(message) == bits));
    }
    let counters = context.counters();
    counters.check().unwrap();
    assert_eq!((counters.umq.promotions, counters.umq.host_matches, pool.taken()), (0, 5, 4));
    // A free entry is for the next receive.
    assert!(context.arrive(&envelope(11)).is_some());
    assert!(matches!(context.post(&mut any_source(14, 1)), Post::Pending));
}

proptest! {
    /// Moves to the host change no match.
    #[test]
    fn onloads_match_as_a_large_table_does(
        steps in proptest::collection::vec((0..4_u64, any::<bool>()), 1..200), entries in 1..9_u32,
    ) {
        let pool = LocalPool::new(entries);
        let member = Arc::new(pool.join(Share { reserved: 0, max: entries }).unwrap());
        let mut small = DeviceConfig { pool: Some(member), onloads: true, ..config(64) };
        (small.prq.overflow, small.umq.overflow) = (Overflow::FlowControl, Overflow::FlowControl);
        let mut contexts = [&small, &config(256)].map(|of| Context::<u32, u32>::new(of).unwrap());
        for (number, (bits, is_post)) in (0..).zip(steps) {
            let told = contexts.each_mut().map(|context| match is_post {
                true => match context.post_anyway(&mut any_source(bits, number)) {
                    Post::Matched { message, .. } => Some(message),
                    _ => None,
                },
                false => {
                    let envelope = Envelope { source: 1, bits, len: 0 };
                    let found = context.arrive(&envelope).map(|grant| grant.data);
                    if found.is_none() {
                        context.keep(envelope, number);
                    }
                    found
                }
            });
            prop_assert_eq!(told[0], told[1]);
        }
        contexts[0].counters().check().unwrap();
    }
}

#[test]
fn numbers_and_lists_of_a_context_are_those_of_its_queues() {
    let mut config = config(1);
    config.prq.engine_config.layout = TagLayout::Mpich;
    config.umq.overflow = Overflow::FlowControl;
    let mut context = Context::<u32, char>::new(&config).unwrap();
    context.keep_curves();
    assert_eq!(context.layout(), TagLayout::Mpich);
    for data in [1, 2, 3] {
        assert!(matches!(context.post(&mut any_source(5, data)), Post::Pending));
    }
    for (name, is_full) in [('a', false), ('b', true)] {
        let envelope = Envelope { source: 1, bits: 6, len: 0 };
        assert!(!context.expects(&envelope) && context.arrive(&envelope).is_none());
        context.keep(envelope, name);
        assert_eq!(context.holds_back(), is_full);
    }
    assert!(context.expects(&Envelope { source: 1, bits: 5, len: 0 }));
    let any = Key { bits: 6, ignore: 0, source: Source::ANY };
    assert_eq!(context.claim(&any, 1).unwrap().unwrap().1, &'a');
    let mut kept: Vec<_> = context.kept().copied().collect();
    kept.sort_unstable();
    assert_eq!((context.posted(), context.unexpected(), kept), (3, 1, vec!['a', 'b']));
    // The searches of two arrivals passed one receive in the table, and two on the host.
    let [prq, umq] = context.traversals().map(|of| of.in_a_list);
    assert_eq!((prq, umq), (4, 0));
    assert_eq!(context.search_depths()[0].miss_entries, 6);
    let [prq, umq] = context.curves().unwrap();
    assert_eq!((prq.host_entries(1), prq.host_entries(2), umq.host_entries(1)), (4, 2, 0));
    let cancelled = context.cancel_all(|receive| receive.data != 2);
    assert_eq!(cancelled.iter().map(|receive| receive.data).collect::<Vec<_>>(), [1, 3]);
    assert_eq!((context.posted(), context.cancel_all(|_| true).len()), (1, 1));
}

/// Records the names of calls.
struct Calls(Arc<parking_lot::Mutex<Vec<String>>>);

impl Recorder for Calls {
    fn short(&mut self, _: crate::trace::OpWord, bits: u64, _: u64, _: Source) {
        self.0.lock().push(format!("short {bits}"));
    }

    fn record(&mut self, op: &crate::trace::Op) {
        self.0.lock().push(format!("{op:?}"));
    }

    fn came(&mut self, ns: u64, error_ns: u32) {
        self.0.lock().push(format!("came {ns} {error_ns}"));
    }

    fn idle(&mut self) {
        self.0.lock().push("idle".to_owned());
    }

    fn close(&mut self) {
        self.0.lock().push("close".to_owned());
    }
}

#[test]
fn recorders_of_both_contexts_are_called() {
    let mut config = config(1);
    config.prq.overflow = Overflow::FlowControl;
    let mut device = Device::<u32, ()>::new(&config).unwrap();
    let calls = Arc::new(parking_lot::Mutex::new(Vec::new()));
    for context in device.contexts() {
        context.set_recorder(Box::new(Calls(Arc::clone(&calls))));
    }
    let told = || std::mem::take(&mut *calls.lock());
    device.set_processes(9);
    assert_eq!(told(), ["Processes(9)", "Processes(9)"]);
    device.idle();
    device.end_recording();
    assert_eq!(told(), ["idle", "idle", "close", "close"]);
    device.tagged.note_came(3, 4);
    let posts = |device: &mut Device<u32, ()>, bits| {
        matches!(device.tagged.post(&mut any_source(bits, 1)), Post::HeldBack)
    };
    assert!(!posts(&mut device, 5));
    assert_eq!(told(), ["came 3 4", "short 5"]);
    // A receive that is held back several times is recorded once, also if a send is between.
    assert!(posts(&mut device, 6) && posts(&mut device, 6));
    device.tagged.note_send(Sent { peer: 1, bits: 7, len: 8 });
    assert!(posts(&mut device, 6));
    let held = told();
    assert_eq!(held.len(), 2, "{held:?}");
    assert!(held[1].contains("Send") || held[1] == "short 7", "{held:?}");
    device.tagged.count_if_held_back(&any_source(6, 1));
    assert_eq!((told(), device.tagged.counters().prq.held_back), (vec![], 1));
}

#[test]
fn a_claimed_message_belongs_to_its_context() {
    let mut device = Device::<u32, char>::new(&config(4)).unwrap();
    let key = Key { bits: 7, ignore: 0, source: Source::ANY };
    for name in ['a', 'b'] {
        let envelope = Envelope { source: 1, bits: 7, len: 1 };
        assert!(device.tagged.arrive(&envelope).is_none());
        device.tagged.keep(envelope, name);
    }
    assert_eq!(device.tagged.peek(&key).unwrap().1, &'a');
    assert_eq!(device.tagged.claim(&key, 77).unwrap().unwrap().1, &'a');
    assert_eq!(device.tagged.claim(&key, 77), Err(AlreadyClaimed));
    assert_eq!(device.tagged.peek(&key).unwrap().1, &'b');
    assert_eq!(device.tagged.take_claimed(78), None);
    assert_eq!(device.tagged.take_claimed(77).unwrap().1, 'a');
    assert_eq!(device.tagged.discard(&key).unwrap().1, 'b');
    assert!(device.tagged.peek(&key).is_none());
    assert_eq!(device.tagged.claim(&key, 77), Ok(None));
    let envelope = Envelope { source: 1, bits: 7, len: 1 };
    assert!(device.tagged.arrive(&envelope).is_none());
    device.tagged.keep(envelope, 'c');
    assert_eq!(device.tagged.claim(&key, 77).unwrap().unwrap().1, &'c');
    assert_eq!(device.tagged.drop_unexpected(|_, name| *name == 'c'), 1);
    assert_eq!(device.tagged.take_claimed(77), None);
    let counters = device.tagged.counters();
    counters.check().unwrap();
    assert_eq!((counters.posts, counters.peeks), (3, 7));
    assert_eq!((counters.umq.table_matches, counters.umq.table_cancels), (3, 0));
}

#[derive(Clone, Debug)]
enum Op {
    Post { bits: u64, ignore: u64, source: Option<u32> },
    Arrive { bits: u64, source: u32 },
    Cancel(u32),
    CancelNamed(u32),
}

/// Returns the name of a receive; several receives have the same name.
fn name_of(data: u32) -> u64 {
    u64::from(data % 7)
}

fn op() -> impl Strategy<Value = Op> {
    let bits = 0_u64..4;
    prop_oneof![
        (bits.clone(), prop_oneof![Just(0_u64), Just(3), 0..4_u64], proptest::option::of(0_u32..3))
            .prop_map(|(bits, ignore, source)| Op::Post { bits, ignore, source }),
        (bits, 0_u32..3).prop_map(|(bits, source)| Op::Arrive { bits, source }),
        (0_u32..64).prop_map(Op::Cancel),
        (0_u32..8).prop_map(Op::CancelNamed),
    ]
}

fn matches(post: &(u64, u64, Option<u32>, u32), message: &(u64, u32, u32)) -> bool {
    (post.0 ^ message.0) & !post.1 == 0 && post.2.is_none_or(|source| source == message.1)
}

proptest! {
    #[test]
    fn device_and_two_lists_agree(
        ops in proptest::collection::vec(op(), 0..200),
        entries in prop_oneof![Just(0_usize), Just(1), Just(7), Just(64)],
        overflow in prop::sample::select(Overflow::ALL),
        shared in any::<bool>(),
        refuse in any::<bool>(),
    ) {
        let mut config = config(entries);
        config.prq.overflow = overflow;
        config.umq.overflow = overflow;
        config.refuse.any_source = refuse;
        let member = LocalPool::new(4).join(Share { reserved: 1, max: 3 }).unwrap();
        config.pool = shared.then(|| Arc::new(member) as Arc<dyn EntryPool>);
        let mut device = Device::<u32, u32>::new(&config).unwrap();
        let mut posts: Vec<(u64, u64, Option<u32>, u32)> = Vec::new();
        let mut messages: Vec<(u64, u32, u32)> = Vec::new();
        for (id, op) in (0_u32..).zip(ops) {
            match op {
                Op::Post { bits, ignore, source } => {
                    let post = (bits, ignore, source, id);
                    let expected = messages.iter().position(|message| matches(&post, message));
                    let key =
                        Key { bits, ignore, source: source.map_or(Source::ANY, Source::new) };
                    match device.tagged.post(&mut Receive { data: id, key, ..any_source(0, 0) }) {
                        Post::Pending => {
                            prop_assert_eq!(expected, None);
                            posts.push(post);
                        }
                        Post::HeldBack => {
                            prop_assert_eq!(overflow, Overflow::FlowControl);
                            prop_assert_eq!(expected, None);
                            prop_assert!(shared || refuse || posts.len() == entries);
                        }
                        Post::Matched { message, .. } => {
                            let index = expected.expect("the lists have a match, too");
                            prop_assert_eq!(messages.remove(index).2, message);
                        }
                    }
                }
                Op::Arrive { bits, source } => {
                    let expected =
                        posts.iter().position(|post| matches(post, &(bits, source, id)));
                    let envelope = Envelope { source, bits, len: 8 };
                    let grant = device.tagged.arrive(&envelope);
                    prop_assert_eq!(
                        grant.map(|grant| grant.data),
                        expected.map(|index| posts.remove(index).3)
                    );
                    if grant.is_none() {
                        device.tagged.keep(envelope, id);
                        messages.push((bits, source, id));
                    }
                }
                Op::Cancel(which) => {
                    let expected = posts.iter().position(|post| post.3 == which);
                    let cancelled = device.tagged.cancel(|receive| receive.data == which);
                    prop_assert_eq!(
                        cancelled.map(|receive| receive.data),
                        expected.map(|index| posts.remove(index).3)
                    );
                }
                Op::CancelNamed(name) => {
                    let name = u64::from(name);
                    let expected = posts.iter().position(|post| name_of(post.3) == name);
                    let cancelled = device.tagged.cancel_named(name, |&data| name_of(data));
                    prop_assert_eq!(
                        cancelled.map(|receive| receive.data),
                        expected.map(|index| posts.remove(index).3)
                    );
                }
            }
        }
        let counters = device.tagged.counters();
        prop_assert_eq!(counters.check(), Ok(()));
        prop_assert_eq!(
            counters.prq.table_occupancy + counters.prq.host_occupancy,
            posts.len() as u64
        );
    }
}

#[test]
fn receives_that_break_a_promise_are_matched_and_counted() {
    for &engine in HostEngine::ALL {
        let mut config = config(0);
        for queue in [&mut config.prq, &mut config.umq] {
            queue.engine = engine;
            queue.engine_config.layout = TagLayout::Mpich;
        }
        config.umq.engine_config.role = Role::Unexpected;
        config.promise = Promise { no_any_source: true, no_any_tag: true };
        let mut context: Context<u32, ()> = Context::new(&config).unwrap();
        let one = Key { bits: 5, ignore: 0, source: Source::new(1) };
        let wild = Key { ignore: 0x7fff_ffff, source: Source::ANY, ..one };
        let post = |context: &mut Context<u32, ()>, key, data| {
            let mut receive = Receive { key, data, ..any_source(0, 0) };
            matches!(context.post(&mut receive), Post::Matched { .. })
        };
        for (key, data) in [(one, 1), (wild, 2), (one, 3), (Key { bits: 6, ..one }, 4)] {
            assert!(!post(&mut context, key, data));
        }
        let arrival = |bits| Envelope { source: 1, bits, len: 0 };
        for (bits, data) in [(5, 1), (6, 2), (6, 4), (5, 3)] {
            assert_eq!(context.arrive(&arrival(bits)).unwrap().data, data, "{engine}");
        }
        for bits in [8, 7] {
            assert!(context.arrive(&arrival(bits)).is_none());
            context.keep(arrival(bits), ());
        }
        let any_tag = Key { source: Source::new(1), ..wild };
        assert!(post(&mut context, any_tag, 5), "{engine}");
        assert!(post(&mut context, Key { bits: 7, ..one }, 6), "{engine}: 8 was the older");
        let broken = context.counters().broken_promises;
        assert_eq!((broken.any_source, broken.any_tag), (1, 2), "{engine}");
        context.counters().check().unwrap();
    }
}

/// Measures nanoseconds per message for the first unexpected messages of a context, received newest
/// first. The receives leave the same fields open, or they are of two kinds in this respect, which
/// alternate or follow each other. For a new kind, the table builds an index that it lacks. Prints
/// the median times of the first round and of the slowest other round.
#[test]
#[ignore = "a measurement: cargo test --release -p tcam-nic -- --ignored --nocapture cost_of_the_first"]
fn cost_of_the_first_unexpected_messages() {
    const ROUNDS: usize = 24;
    // The bits that MPICH's receives ignore: the protocol, and the tag.
    let (protocol, tag) = (0xc0 << 48, 0x7fff_ffff);
    let kinds = [
        ("exact", (0, Source::new(1))),
        ("named", (protocol, Source::new(1))),
        ("any source", (protocol, Source::ANY)),
        ("any tag", (protocol | tag, Source::new(1))),
    ];
    let median = |mut times: Vec<u64>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let mut kept = Vec::new();
    for messages in [4, 8, 16, 32, 64] {
        for (first, then) in [(0, 0), (1, 1), (1, 2), (1, 3), (3, 2)] {
            for rounds_of_one in [1, ROUNDS / 2] {
                let times: Vec<_> = (0..11)
                    .map(|_| {
                        // No context is dropped: the next one would reuse memory that is already
                        // resident.
                        kept.push(Context::<u64, u64>::new(&config(4096)).unwrap());
                        let context = kept.last_mut().unwrap();
                        let mut round = |round: usize| {
                            let kind = [first, then][round / rounds_of_one % 2];
                            first_messages(context, messages, kinds[kind].1) / messages
                        };
                        (round(0), (1..ROUNDS).map(round).max().unwrap())
                    })
                    .collect();
                let (first_round, slowest) = times.into_iter().unzip();
                let (first_round, slowest) = (median(first_round), median(slowest));
                let name = format!("{}, {} by {rounds_of_one}", kinds[first].0, kinds[then].0);
                println!("{messages:>4} messages, {name:<30}{first_round:>6}{slowest:>6}");
            }
        }
    }
}

/// Measures the nanoseconds that `messages` messages take; each is kept and then received.
fn first_messages(
    context: &mut Context<u64, u64>,
    messages: u64,
    (ignore, source): (u64, Source),
) -> u64 {
    let start = std::time::Instant::now();
    for bits in 0..messages {
        let envelope = Envelope { source: 1, bits, len: 8 };
        assert!(context.arrive(&envelope).is_none());
        context.keep(envelope, bits);
    }
    for bits in (0..messages).rev() {
        let (key, data) = (Key { bits, ignore, source }, bits);
        let mut receive = Receive { key, len: 8, multi: None, non_contiguous: false, data };
        assert!(matches!(context.post(&mut receive), Post::Matched { .. }));
    }
    u64::try_from(start.elapsed().as_nanos()).unwrap()
}
