// SPDX-License-Identifier: BSD-2-Clause
//! Control messages that wait for room.

use std::sync::atomic::Ordering;

use crate::{
    channel::{
        ring::Receiver,
        segment::BUFFERS,
        wire::{Header, INLINE, Kind, PART},
    },
    fuzzing::endpoint,
};

#[test]
fn the_short_end_of_an_answer_does_not_pass_a_long_part() {
    let (own, mut engine) = endpoint(141);
    let (there, other) = endpoint(142);
    let address = crate::address::unpack(other.address);
    let peer = engine.domain.peers.number(address);
    engine.link_to(&own, peer).unwrap();
    let answer = |flags, len| {
        let (kind, len) = (Kind::Answer, len as u64);
        Header { kind, flags, peer: 0, count: 0, bits: 0, data: 0, len, op: 1 }
    };
    // No buffer is free for the part; the end would fit a slot.
    engine.outbox.take_all(&own, peer);
    engine.deferred.push_back((peer, answer(PART, INLINE + 1), vec![1; INLINE + 1].into()));
    engine.deferred.push_back((peer, answer(0, 8), vec![2; 8].into()));
    engine.flush_deferred(&own);
    assert!(Receiver::default().peek(&there).is_none() && engine.deferred.len() == 2);
    (0..BUFFERS).for_each(|buffer| own.buffer_state(buffer).store(0, Ordering::Release));
    engine.flush_deferred(&own);
    let mut receiver = Receiver::default();
    assert_eq!(receiver.peek(&there).unwrap().header.unwrap().flags, PART);
    receiver.release();
    assert_eq!(receiver.peek(&there).unwrap().header.unwrap().flags, 0);
}
