// SPDX-License-Identifier: BSD-2-Clause
//! Deaths that nothing but a look finds.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use ffi::{Buffer, Context, ops::ep::rma::RemoteParts};
use matching::Source;

use crate::{
    channel::{
        identity::Identity,
        ring::Sender,
        segment::Segment,
        wire::{Header, Kind},
    },
    engine::{
        Engine,
        ops::{OpKind, SendOp},
    },
    fuzzing::endpoint,
};

const LONGEST: Duration = Duration::from_secs(5);

fn address(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

/// Enters a peer into a list, as it does before it sends.
fn enter(own: &Segment, number: u16, who: Identity) {
    let (opened, file) = Segment::open(own.port()).unwrap();
    assert_eq!(opened.enter(&file, who), Ok(number));
}

fn header(number: u16) -> Header {
    let (kind, flags, peer) = (Kind::Inline, 0, number);
    Header { kind, flags, peer, count: 0, bits: 0, data: 0, len: 0, op: 0 }
}

/// An operation towards a peer that answers nothing.
fn wait_for(engine: &mut Engine, own: &Segment, port: u16) -> u64 {
    let peer = engine.domain.peers.number(address(port));
    engine.link_to(own, peer).unwrap();
    engine.track(SendOp {
        kind: OpKind::Msg,
        peer,
        buffer: Buffer::default(),
        remote: RemoteParts::default(),
        data: None,
        context: Context(1),
        report: false,
        work: 0,
        age: 0,
    })
}

#[test]
fn a_peer_that_dies_in_its_first_claim_does_not_stop_the_ring() {
    let (own, mut engine) = endpoint(121);
    let (living, _other) = endpoint(122);
    enter(&own, 0, living.identity());
    // The dead one entered its identity and claimed a position; its file is gone.
    enter(&own, 1, Identity::new(123).unwrap());
    own.tail().store(1, Ordering::Relaxed);
    assert!(Sender::new(own.identity()).push(&living, &own, &header(0), |_| ()));
    let started = Instant::now();
    while engine.receiver.position() < 2 {
        assert!(started.elapsed() < LONGEST, "the ring stands still");
        engine.look_around(&own);
        engine.progress(&own);
    }
    assert_eq!(engine.channels.shm.received, 1);
}

#[test]
fn a_claim_of_the_living_is_waited_for() {
    let (own, mut engine) = endpoint(124);
    let (living, _other) = endpoint(125);
    enter(&own, 0, living.identity());
    // Between claim and turn.
    living.intent().store(u64::from(own.identity().ring()) << 32, Ordering::Release);
    own.tail().store(1, Ordering::Relaxed);
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(300) {
        engine.look_around(&own);
        engine.progress(&own);
    }
    assert_eq!(engine.receiver.position(), 0);
}

#[test]
fn a_death_is_noticed_while_messages_of_others_come() {
    let (own, mut engine) = endpoint(126);
    let (living, _other) = endpoint(127);
    enter(&own, 0, living.identity());
    let (dying, _its_engine) = endpoint(128);
    let number = wait_for(&mut engine, &own, 128);
    let to = engine.domain.peers.number(address(128));
    engine.outbox.take_all(&own, to);
    // Its file goes with it.
    drop(dying);
    let (mut sender, started) = (Sender::new(own.identity()), Instant::now());
    while engine.is_send_to(to, number) {
        assert!(started.elapsed() < LONGEST, "the death is not noticed");
        assert!(sender.push(&living, &own, &header(0), |_| ()));
        engine.progress(&own);
    }
    assert!(!engine.outbox.is_lent(&own), "the dead has buffers");
}

#[test]
fn a_peer_is_awaited_until_it_was_there() {
    let (own, mut engine) = endpoint(129);
    let peer = engine.domain.peers.number(address(130));
    engine.watch(Source::new(peer));
    let look = |engine: &mut Engine| {
        engine.checked -= super::INTERVAL;
        engine.look_around(&own);
    };
    look(&mut engine);
    assert!(engine.awaited.contains(&peer), "it may come yet");
    // It came, and went while nobody looked.
    engine.domain.peers.saw(peer);
    own.tail().store(1, Ordering::Relaxed);
    look(&mut engine);
    assert!(engine.awaited.contains(&peer), "a message is being written");
    own.tail().store(0, Ordering::Relaxed);
    look(&mut engine);
    assert!(!engine.awaited.contains(&peer));
    let (_living, _other) = endpoint(130);
    engine.watch(Source::new(peer));
    look(&mut engine);
    assert!(engine.is_linked(peer) && engine.awaited.is_empty());
}
