// SPDX-License-Identifier: BSD-2-Clause
//! Tests of an endpoint with a hostile peer. The peer writes arbitrary data into the ring, sends
//! arbitrary frames over the network, or claims to be another endpoint. There must be no panic and
//! no access outside of the segments, and messages of other peers must still arrive.

use std::{
    net::SocketAddrV4,
    time::{Duration, Instant},
};

use channel::{
    net::{Net, secret::Secret},
    testing::{self, Writer},
    wire::{Flags, Header, INLINE, Kind},
};
use ffi::{
    Buffer, Errno, OpContext, flags,
    memory::RegionMemory,
    ops::{
        ep::{OpFlags, Recv},
        mr,
    },
};
use proptest::prelude::*;

use crate::{
    address,
    engine::Engine,
    testing::{endpoint, engine_of, net_endpoint, survive, survive_far},
    wait::pollable::Progress,
};

const PATIENCE: Duration = Duration::from_secs(10);

fn post(engine: &mut Engine, tag: Option<(u64, u64)>) {
    let recv = Recv {
        buffer: Buffer::default(),
        source: u64::MAX,
        tag,
        context: OpContext(7),
        flags: OpFlags::Default,
    };
    engine.recv(&recv).unwrap();
}

/// Words that a peer may write: arbitrary ones, and ones that pass the first checks.
fn words() -> impl Strategy<Value = [u64; 5]> {
    let small = prop_oneof![0..20_u64, Just(u64::MAX), Just(1 << 63), any::<u64>()];
    // A number, or a `channel::wire::Frame`: numbers of parts, of segments, and of a buffer.
    let count = prop_oneof![
        0..70_u64,
        (0..6_u64, 0..6_u64, prop_oneof![Just(0_u64), 0..70_u64])
            .prop_map(|(parts, segments, buffer)| parts | segments << 8 | buffer << 16),
    ];
    let first = (0..13_u64, 0..16_u64, prop_oneof![Just(0_u64), 0..70_000_u64], count).prop_map(
        |(kind, flags, peer, count)| kind | flags << 8 | (peer & 0xffff) << 16 | count << 32,
    );
    prop_oneof![
        1 => any::<[u64; 5]>(),
        8 => (first, small.clone(), small.clone(), small.clone(), small)
            .prop_map(|(first, bits, data, len, op)| [first, bits, data, len, op]),
    ]
}

/// Payloads of small numbers: keys, addresses and lengths that may be valid.
fn payload() -> impl Strategy<Value = [u64; INLINE / 8]> {
    prop::array::uniform26(prop_oneof![8 => 0..20_u64, 1 => Just(u64::MAX), 1 => any::<u64>()])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_segments_do_no_harm(data in prop::collection::vec(any::<u8>(), 0..2000)) {
        survive(&data);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_frames_do_no_harm(data in prop::collection::vec(any::<u8>(), 0..2000)) {
        survive_far(&data);
    }
}

#[test]
fn a_read_of_several_parts_over_the_network_is_answered() {
    let part = [0, 8, 5];
    let data = [&[0, 0x49, 3, 0, 0, 0, 0, 0, 24, 0, 9][..], &part, &part, &part, &[8, 15]];
    survive_far(&data.concat());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_slots_do_no_harm(slots in prop::collection::vec((words(), payload()), 1..300)) {
        let (own, mut engine) = endpoint(91);
        let (peer, _) = endpoint(92);
        prop_assert_eq!(testing::enter(91, peer.identity()), Ok(0));
        let memory: &'static mut [u8] = vec![0; 64].leak();
        let (before, region) = memory.split_at_mut(16);
        let (region, after) = region.split_at_mut(32);
        let access = flags::REMOTE_READ | flags::REMOTE_WRITE;
        let attr = mr::MrAttr { window: RegionMemory::from(region), access, offset: 0, requested_key: 0, flags: 0 };
        for requested_key in 0..8 {
            engine.domain.regions.register(&mr::MrAttr { requested_key, ..attr.clone() }).unwrap();
        }
        let mut sender = Writer::new(&own);
        for (index, (words, payload)) in slots.iter().enumerate() {
            if index % 3 == 0 {
                post(&mut engine, Some((0, u64::MAX)));
                post(&mut engine, None);
            }
            prop_assert!(sender.push_words(&peer, *words, payload));
            while engine.progress() == Progress::Some {}
        }
        prop_assert!(before.iter().chain(&*after).all(|byte| *byte == 0));
        prop_assert_eq!(engine.rx.device.lock_own().tagged.counters().check(), Ok(()));
        prop_assert_eq!(engine.rx.device.lock_own().msg.counters().check(), Ok(()));
    }
}

/// Connects `net` to the endpoint at `at`, of which it knows the secret (1). The networks of
/// `others` make progress meanwhile.
fn connect_to(net: &Net, at: SocketAddrV4, others: &[&Net]) -> Result<(), Errno> {
    let start = Instant::now();
    while !net.has_met(at, Some(Secret::of_endpoint(1)))? {
        assert!(start.elapsed() < PATIENCE, "no handshake");
        others.iter().for_each(|net| net.progress());
    }
    Ok(())
}

fn push(net: &Net, at: SocketAddrV4, bits: u64) {
    let (kind, flags) = (Kind::Inline, Flags::TAGGED);
    let header = Header { kind, flags, peer: 0, count: 0, bits, data: 0, len: 0, op: 0 };
    net.push_words(at, header.words(), &[], |_| ());
}

/// Sends a message. Waits until it arrives or its connection ends. Returns the number of messages
/// that arrived, and drops them.
fn arrive(net: &Net, at: SocketAddrV4, own: &Net, engine: &mut Engine, bits: u64) -> usize {
    push(net, at, bits);
    let (start, peers) = (Instant::now(), own.open_peers());
    loop {
        assert!(start.elapsed() < PATIENCE, "neither a message nor an end");
        engine.progress();
        net.progress();
        let came = engine.rx.device.lock().context(true).drop_unexpected(|it, _| it.bits == bits);
        if came > 0 || own.open_peers() < peers {
            return came;
        }
    }
}

/// A process that knows the name of an endpoint sends it a message, and claims to be another
/// endpoint or a context of one. The receiver learns the name of that other endpoint before or
/// afterwards.
#[test]
fn an_impostor_is_not_received_from() {
    for (is_known, context) in [(true, 0), (true, 1), (false, 0)] {
        let (at, own, net) = net_endpoint(None, 1, None);
        let (victim, ..) = net_endpoint(None, 2, None);
        let (.., impostor) = net_endpoint(None, 3, Some((victim, context)));
        let mut engine = engine_of(&own, at.port(), Some(net.clone()));
        let insert = |engine: &Engine| {
            let av = engine.peers.av.clone().unwrap();
            assert!(av.insert_one(&address::to_name(victim, 2)).is_some());
        };
        if is_known {
            insert(&engine);
        }
        connect_to(&impostor, at, &[&net]).unwrap();
        assert_eq!(arrive(&impostor, at, &net, &mut engine, 5), usize::from(!is_known));
        let peer = engine.domain.peers.number(victim);
        assert_eq!(engine.peers.is_linked(peer), !is_known);
        if !is_known {
            push(&impostor, at, 6);
            while engine.rx.device.lock().tagged.live().umq.table_occupancy == 0 {
                engine.progress();
                impostor.progress();
            }
        }
        insert(&engine);
        assert_ne!(engine.link_to(peer), Ok(()), "before the next look");
        let kept = engine.rx.device.lock().context(true).drop_unexpected(|_, _| true);
        assert_eq!(kept, 0, "a message of the impostor stays");
        engine.checks.hurry();
        engine.look_around();
        assert!(!engine.peers.is_linked(peer));
    }
}

/// Waits until this number of messages is kept.
fn keep(count: u64, engine: &mut Engine, peers: &[&Net]) {
    let start = Instant::now();
    while engine.rx.device.lock().tagged.live().umq.table_occupancy < count {
        assert!(start.elapsed() < PATIENCE, "the messages do not come");
        engine.progress();
        peers.iter().for_each(|net| net.progress());
    }
}

/// Makes progress until the link to a peer is dropped.
fn until_forgotten(peer: u32, engine: &mut Engine) {
    let start = Instant::now();
    while engine.peers.is_linked(peer) {
        assert!(start.elapsed() < PATIENCE, "the end of the sender is not noticed");
        engine.checks.hurry();
        engine.look_around();
    }
}

/// Posts a receive that names the address at an index of the address vector.
fn post_to(engine: &mut Engine, source: u64, bits: u64) {
    let (buffer, context, flags) = (Buffer::default(), OpContext(8), OpFlags::Default);
    engine.recv(&Recv { buffer, source, tag: Some((bits, 0)), context, flags }).unwrap();
}

fn posted(engine: &mut Engine) -> u64 {
    engine.rx.device.lock().tagged.live().prq.table_occupancy
}

/// Counts and drops the kept messages with these match bits.
fn take_kept(engine: &mut Engine, bits: u64) -> usize {
    engine.rx.device.lock().context(true).drop_unexpected(|it, _| it.bits == bits)
}

/// A process sends as another endpoint, or as a context of one, and perhaps ends. When the receiver
/// gets the name of that endpoint, the messages are dropped. Those of the endpoint itself and of
/// endpoints without a name stay.
#[test]
fn messages_from_before_the_name_are_checked_when_it_comes() {
    let home = SocketAddrV4::new([240, 0, 0, 1].into(), 5000);
    for (context, ends) in [(0, false), (0, true), (1, false), (1, true)] {
        let (at, own, net) = net_endpoint(None, 1, None);
        let (.., honest) = net_endpoint(None, 2, Some((home, 0)));
        let says = SocketAddrV4::new(*home.ip(), home.port() + u16::from(context));
        let (.., impostor) = net_endpoint(None, 3, Some((says, context)));
        let elsewhere = SocketAddrV4::new([240, 0, 0, 2].into(), 5000);
        let (.., other) = net_endpoint(None, 4, Some((elsewhere, 0)));
        let mut engine = engine_of(&own, at.port(), Some(net.clone()));
        let av = engine.peers.av.clone().unwrap();
        if context > 0 {
            // The name of the impostor itself, which is not that of the endpoint that it claims to
            // be a context of.
            assert!(av.insert_one(&address::to_name(says, 3)).is_some());
        }
        for (sender, bits) in [(&impostor, 5), (&other, 6)] {
            connect_to(sender, at, &[&net]).unwrap();
            push(sender, at, bits);
        }
        keep(2, &mut engine, &[&impostor, &other]);
        let peer = engine.domain.peers.number(says);
        if ends {
            drop(impostor);
            until_forgotten(peer, &mut engine);
        }
        let named = av.insert_one(&address::to_name(home, 2)).unwrap();
        engine.check_names();
        assert!(!engine.peers.is_linked(peer));
        assert_eq!(take_kept(&mut engine, 5), 0, "context {context}, ends: {ends}");
        connect_to(&honest, at, &[&net]).unwrap();
        push(&honest, at, 7);
        keep(2, &mut engine, &[&honest]);
        post_to(&mut engine, named, 7);
        assert_eq!(posted(&mut engine), 0, "the message of the endpoint itself");
        assert_eq!(take_kept(&mut engine, 6), 1);
    }
}

/// A receive that names an address waits for the endpoint there, although an impostor claimed the
/// address before.
#[test]
fn a_receive_outlives_an_impostor() {
    let (at, own, net) = net_endpoint(None, 1, None);
    let (home, segment, honest) = net_endpoint(None, 2, None);
    drop(segment);
    let (.., impostor) = net_endpoint(None, 3, Some((home, 0)));
    let mut engine = engine_of(&own, at.port(), Some(net.clone()));
    connect_to(&impostor, at, &[&net]).unwrap();
    push(&impostor, at, 5);
    keep(1, &mut engine, &[&impostor]);
    let av = engine.peers.av.clone().unwrap();
    assert_eq!(av.insert_one(&address::to_bytes(home)), Some(0));
    post_to(&mut engine, 0, 6);
    assert!(av.insert_one(&address::to_name(home, 2)).is_some());
    engine.check_names();
    assert_eq!((posted(&mut engine), take_kept(&mut engine, 5)), (1, 0));
    connect_to(&honest, at, &[&net]).unwrap();
    push(&honest, at, 6);
    let start = Instant::now();
    while posted(&mut engine) > 0 {
        assert!(start.elapsed() < PATIENCE, "the message of the endpoint does not come");
        engine.progress();
        honest.progress();
    }
}

/// The message of an endpoint that is gone before the receiver gets its name is received.
#[test]
fn a_message_outlives_its_sender_until_the_name_comes() {
    let (at, own, net) = net_endpoint(None, 1, None);
    let (home, segment, honest) = net_endpoint(None, 2, None);
    drop(segment);
    let mut engine = engine_of(&own, at.port(), Some(net.clone()));
    connect_to(&honest, at, &[&net]).unwrap();
    push(&honest, at, 5);
    keep(1, &mut engine, &[&honest]);
    drop(honest);
    until_forgotten(engine.domain.peers.number(home), &mut engine);
    let av = engine.peers.av.clone().unwrap();
    assert_eq!(av.insert_one(&address::to_name(home, 2)), Some(0));
    engine.check_names();
    post_to(&mut engine, 0, 5);
    assert_eq!(posted(&mut engine), 0);
}

/// A claim is forgotten when its sender is gone and its messages were received.
#[test]
fn claims_of_senders_that_are_gone_are_forgotten() {
    let (at, own, net) = net_endpoint(None, 1, None);
    let mut engine = engine_of(&own, at.port(), Some(net.clone()));
    for _ in 0..150 {
        let (home, segment, sender) = net_endpoint(None, 2, None);
        drop(segment);
        connect_to(&sender, at, &[&net]).unwrap();
        assert_eq!(arrive(&sender, at, &net, &mut engine, 5), 1);
        drop(sender);
        until_forgotten(engine.domain.peers.number(home), &mut engine);
    }
    assert!(engine.peers.claim_count() < 100, "all are kept");
}

/// A peer cannot claim the address of the receiver, whose secret all peers know.
#[test]
fn an_impostor_of_the_receiver_is_refused() {
    let (at, _own, net) = net_endpoint(None, 1, None);
    let (.., impostor) = net_endpoint(None, 1, Some((at, 0)));
    assert_eq!(connect_to(&impostor, at, &[&net]), Err(Errno::EACCES));
}

/// An endpoint whose name was never inserted keeps its connection, although another endpoint claims
/// its address.
#[test]
fn an_impostor_ends_no_connection() {
    let (at, own, net) = net_endpoint(None, 1, None);
    let (home, _segment, client) = net_endpoint(None, 2, None);
    let (.., impostor) = net_endpoint(None, 3, Some((home, 0)));
    let mut engine = engine_of(&own, at.port(), Some(net.clone()));
    connect_to(&client, at, &[&net]).unwrap();
    // Peers of this host send over shared memory. Without its segment, the client seems to be on
    // another host.
    drop(_segment);
    assert_eq!(arrive(&client, at, &net, &mut engine, 5), 1);
    connect_to(&impostor, at, &[&net]).unwrap();
    assert_eq!(arrive(&impostor, at, &net, &mut engine, 6), 0);
    assert_eq!(arrive(&client, at, &net, &mut engine, 7), 1);
}
