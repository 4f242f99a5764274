// SPDX-License-Identifier: BSD-2-Clause
//! Control messages that wait for room, and lengths that fit.

use channel::{
    testing,
    wire::{Flags, Header, INLINE, Kind},
};

use nic::params::{PARAMS, Values};

use crate::fuzzing::endpoint;

#[test]
fn the_short_end_of_an_answer_does_not_pass_a_long_part() {
    let (own, mut engine) = endpoint(141);
    let (there, other) = endpoint(142);
    let address = channel::address::unpack(other.address);
    let peer = engine.domain.peers.number(address);
    engine.link_to(peer).unwrap();
    let answer = |flags, len| {
        let (kind, len) = (Kind::Answer, len as u64);
        Header { kind, flags, peer: 0, count: 0, bits: 0, data: 0, len, op: 1 }
    };
    // No buffer is free for the part; the end would fit a slot.
    engine.home.take_all(peer);
    engine.deferred.push_back((peer, answer(Flags::PART, INLINE + 1), vec![1; INLINE + 1].into()));
    engine.deferred.push_back((peer, answer(Flags::empty(), 8), vec![2; 8].into()));
    engine.flush_deferred();
    assert!(testing::slots(&there).is_empty() && engine.deferred.len() == 2);
    testing::free_buffers(&own);
    engine.flush_deferred();
    let flags: Vec<_> = testing::slots(&there).iter().map(|slot| slot.unwrap().flags).collect();
    assert_eq!(flags, [Flags::PART, Flags::empty()]);
}

#[test]
fn what_is_sent_at_once_over_the_network_fits_a_frame() {
    let param = PARAMS.iter().find(|param| param.name == "net_eager_size").unwrap();
    let most = channel::net::frame::EAGER;
    assert_eq!(param.values, Values::Number(0, most as u64));
    assert_eq!(param.default, most.to_string());
}
