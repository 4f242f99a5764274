// SPDX-License-Identifier: BSD-2-Clause
//! Tests of deaths of peers that only a periodic check notices.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    time::{Duration, Instant},
};

use channel::{
    contract::Settings,
    identity::Identity,
    testing::{self, Writer},
    wire::{Flags, Header, Kind},
};
use ffi::{
    Buffer, Errno, OpContext,
    ops::ep::{OpFlags, Recv, rma::RemoteParts},
};
use matching::Source;

use crate::{
    engine::{
        Engine,
        ops::{OpKind, SendOp},
        pairs::{AT_ONE, AT_OTHER, Operation, SETTINGS, TAG, TestNode, TestOp, connected_pair},
    },
    testing::endpoint,
};

const LONGEST: Duration = Duration::from_secs(5);

fn address(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

/// Number of slots of the ring that were handled.
fn position(engine: &Engine) -> u64 {
    engine.inbound.position_over(0)
}

fn header(number: u16) -> Header {
    let (kind, flags, peer) = (Kind::Inline, Flags::empty(), number.into());
    Header { kind, flags, peer, count: 0, bits: 0, data: 0, len: 0, op: 0 }
}

/// Starts an operation to a peer that does not answer. Returns the number of the operation.
fn wait_for(engine: &mut Engine, port: u16) -> u64 {
    let peer = engine.domain.peers.number(address(port));
    engine.link_to(peer).unwrap();
    engine.tx.ops.enter(SendOp {
        kind: OpKind::Msg,
        peer,
        buffer: Buffer::default(),
        remote: RemoteParts::default(),
        data: None,
        context: OpContext(1),
        report: false,
        acknowledged: true,
        work: 0,
        age: 0,
    })
}

#[test]
fn a_peer_that_dies_in_its_first_claim_does_not_stop_the_ring() {
    let (own, mut engine) = endpoint(121);
    let (living, _other) = endpoint(122);
    assert_eq!(testing::enter(own.port(), living.identity()), Ok(0));
    // The dead peer entered the list of senders, and claimed a slot of the ring to write to it. The
    // file of its segment is gone.
    assert_eq!(testing::enter(own.port(), Identity::new(123, 0).unwrap()), Ok(1));
    testing::claim(&own);
    assert!(Writer::new(&own).push(&living, &header(0)));
    let started = Instant::now();
    while position(&engine) < 2 {
        assert!(started.elapsed() < LONGEST, "the ring stands still");
        engine.look_around();
        engine.progress();
    }
    assert_eq!(engine.peers.channels.shm.received, 1);
}

#[test]
fn a_claim_of_a_living_peer_is_waited_for() {
    let (own, mut engine) = endpoint(124);
    let (living, _other) = endpoint(125);
    assert_eq!(testing::enter(own.port(), living.identity()), Ok(0));
    // The living peer has claimed a slot and not published it.
    testing::intend(&living, &own);
    testing::claim(&own);
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(300) {
        engine.look_around();
        engine.progress();
    }
    assert_eq!(position(&engine), 0);
}

#[test]
fn a_death_is_noticed_while_messages_of_others_come() {
    let (own, mut engine) = endpoint(126);
    let (living, _other) = endpoint(127);
    assert_eq!(testing::enter(own.port(), living.identity()), Ok(0));
    let (dying, its_engine) = endpoint(128);
    let number = wait_for(&mut engine, 128);
    let to = engine.domain.peers.number(address(128));
    engine.peers.transports.take_all(to);
    // This also removes the file of the peer's segment.
    drop((dying, its_engine));
    let (mut sender, started) = (Writer::new(&own), Instant::now());
    while engine.tx.is_at(to, number) {
        assert!(started.elapsed() < LONGEST, "the death is not noticed");
        assert!(sender.push(&living, &header(0)));
        engine.progress();
    }
    assert!(!engine.peers.transports.has_unfinished_sends(), "the dead peer still has buffers");
}

#[test]
fn a_peer_is_awaited_until_it_was_seen() {
    let (own, mut engine) = endpoint(129);
    let peer = engine.domain.peers.number(address(130));
    engine.watch(Source::new(peer));
    let look = |engine: &mut Engine| {
        engine.checks.hurry();
        engine.look_around();
    };
    look(&mut engine);
    assert!(engine.checks.awaits(peer), "it may come yet");
    // The peer opened and died between two checks.
    engine.domain.peers.saw_open(peer);
    testing::claim(&own);
    look(&mut engine);
    assert!(engine.checks.awaits(peer), "a message is being written");
    testing::unclaim(&own);
    look(&mut engine);
    assert!(!engine.checks.awaits(peer));
    let (_living, _other) = endpoint(130);
    engine.watch(Source::new(peer));
    look(&mut engine);
    assert!(engine.peers.is_linked(peer) && !engine.checks.awaits(peer));
}

#[test]
fn a_message_in_a_buffer_that_is_lost_with_its_sender_keeps_its_place() {
    let settings = Settings { checks: false, copies: true };
    for expected in [true, false] {
        let mut node = TestNode::new(None, 131, settings);
        let (dying, its_engine) = endpoint(132);
        assert_eq!(testing::enter(131, dying.identity()), Ok(0));
        let message = Header { flags: Flags::TAGGED, bits: TAG, ..header(0) };
        let mut sender = Writer::new(&node.own);
        let buffered = Header { kind: Kind::Buffered, len: 300, ..message };
        assert!([buffered, message].iter().all(|it| sender.push(&dying, it)));
        drop((dying, its_engine));
        let post = |node: &mut TestNode| {
            for context in [AT_ONE, AT_OTHER] {
                let (buffer, source, flags) = (Buffer::default(), u64::MAX, OpFlags::Default);
                let recv = Recv { buffer, source, tag: Some((TAG, 0)), context, flags };
                node.engine.recv(&recv).unwrap();
            }
        };
        if expected {
            post(&mut node);
        }
        node.look();
        if !expected {
            post(&mut node);
            node.step();
        }
        assert_eq!(node.has_reported(AT_ONE), Some(Err(Errno::ECONNABORTED)));
        assert_eq!(node.has_reported(AT_OTHER), Some(Ok(())));
    }
}

#[test]
fn a_late_copy_is_not_answered_to_a_later_endpoint_at_the_address() {
    for begun in [true, false] {
        let [mut one, mut other] = connected_pair(None, 351, SETTINGS[0]);
        let operation = Operation::prepare(TestOp::Send, 300_000, &mut other);
        operation.start(&mut one).unwrap();
        other.engine.progress();
        let copy = begun.then(|| other.engine.rx.copies.begin().expect("a copy is due"));
        // The sender is forgotten, and a later endpoint at its address has an operation with the
        // same number.
        let peer = other.engine.domain.peers.number(address(351));
        other.engine.forget(peer);
        other.engine.link_to(peer).unwrap();
        if let Some(copy) = copy {
            other.engine.copied(copy, Ok(()));
            other.step();
            assert_eq!(other.has_reported(AT_OTHER), Some(Err(Errno::ECONNABORTED)));
        } else {
            assert!(other.engine.drop_receives(true));
        }
        one.step();
        assert_eq!(one.has_reported(AT_ONE), None, "copy begun: {begun}");
    }
}
