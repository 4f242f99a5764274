// SPDX-License-Identifier: BSD-2-Clause
//! Tests of answers that wait for room, of checks of senders that have not sent, and of the longest
//! message in a frame.

use channel::{
    testing,
    wire::{Flags, Header, INLINE, Kind, LONGEST},
};
use ffi::Errno;

use nic::params::{PARAMS, Values};

use crate::{
    engine::{deferred::MOST, pairs::*},
    testing::endpoint,
};

#[test]
fn the_short_end_of_an_answer_does_not_overtake_a_long_part() {
    let (own, mut engine) = endpoint(141);
    let (there, other) = endpoint(142);
    let address = channel::address::unpack(other.peers.address);
    let peer = engine.domain.peers.number(address);
    engine.link_to(peer).unwrap();
    let answer = |flags, len| {
        let (kind, len) = (Kind::Answer, len as u64);
        Header { kind, flags, peer: 0, count: 0, bits: 0, data: 0, len, op: 1 }
    };
    // No buffer is free for the part; the end would fit a slot.
    engine.peers.transports.take_all(peer);
    engine.peers.deferred.push(peer, answer(Flags::PART, INLINE + 1), vec![1; INLINE + 1].into());
    engine.peers.deferred.push(peer, answer(Flags::empty(), 8), vec![2; 8].into());
    engine.peers.flush();
    assert!(testing::slots(&there).is_empty() && engine.peers.deferred.has(peer));
    // Another peer gets its answer meanwhile.
    let (beside, other) = endpoint(143);
    let address = channel::address::unpack(other.peers.address);
    let second = engine.domain.peers.number(address);
    engine.link_to(second).unwrap();
    engine.peers.reply(second, answer(Flags::empty(), 0));
    assert_eq!(testing::slots(&beside).len(), 1);
    testing::free_buffers(&own);
    engine.peers.flush();
    let flags: Vec<_> = testing::slots(&there).iter().map(|slot| slot.unwrap().flags).collect();
    assert_eq!(flags, [Flags::PART, Flags::empty()]);
    assert!(engine.peers.has_no_pending_answers());
}

#[test]
fn a_check_of_silent_senders_enters_no_list() {
    let (own, mut engine) = endpoint(147);
    let (_there, mut other) = endpoint(148);
    // A sender at the other endpoint that sends nothing.
    let address = channel::address::unpack(other.peers.own_address());
    let peer = engine.domain.peers.number(address);
    engine.link_to(peer).unwrap();
    for _ in 0..3 {
        assert!(other.peers.silent_and_gone(64).is_empty());
    }
    assert!(engine.peers.transports.senders_in(0).is_empty());
    assert_eq!(other.peers.transports.senders_in(0).len(), 1);
    drop((engine, own));
    assert_eq!(other.peers.silent_and_gone(64).len(), 1);
}

#[test]
fn a_peer_with_many_pending_answers_is_refused() {
    let [mut one, mut other] = connected_pair(None, 145, SETTINGS[0]);
    let to_one =
        other.engine.domain.peers.number(channel::address::unpack(one.engine.peers.own_address()));
    let read = Operation::prepare(TestOp::Read, 8, &mut other);
    let fill = |other: &mut TestNode, size| {
        while other.engine.peers.unanswered(to_one) < size {
            let (kind, flags, len) = (Kind::Answer, Flags::PART, LONGEST as u64);
            let answer = Header { kind, flags, peer: 0, count: 0, bits: 0, data: 0, len, op: 999 };
            other.engine.peers.deferred.push(to_one, answer, vec![0; LONGEST].into());
        }
    };
    other.engine.peers.transports.take_all(to_one);
    fill(&mut other, MOST - LONGEST);
    read.start(&mut one).unwrap();
    other.step();
    fill(&mut other, MOST);
    read.start(&mut one).unwrap();
    other.step();
    fill(&mut other, 2 * MOST);
    let full = other.engine.peers.unanswered(to_one);
    read.start(&mut one).unwrap();
    other.step();
    assert_eq!(other.engine.peers.unanswered(to_one), full);
    testing::free_buffers(&other.own);
    while !other.engine.peers.has_no_pending_answers() {
        other.step();
        one.step();
    }
    one.step();
    assert!(one.reported.iter().any(Result::is_ok) && one.has_failed_with(Errno::ENOBUFS));
    assert_eq!(one.reported.len(), 2);
}

#[test]
fn messages_sent_at_once_over_the_network_fit_a_frame() {
    let param = PARAMS.iter().find(|param| param.name == "net_eager_size").unwrap();
    let most = channel::net::frame::EAGER;
    assert_eq!(param.values, Values::Number(0, most as u64));
    assert_eq!(param.default, most.to_string());
}
