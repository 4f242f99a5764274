// SPDX-License-Identifier: BSD-2-Clause
//! Tests of checksums: changed bytes are never accepted.

use std::sync::Arc;

use channel::{
    address::unpack,
    contract::{Payload, Sent, Settings},
    shm::segment::Segment,
    testing::{self, scribble},
    wire::{Flags, Header, Kind},
};
use ffi::{
    Errno, OpContext,
    memory::RegionMemory,
    ops::{
        WaitObj,
        cq::{CompletionQueue as _, CqAttr, Failure, Format},
        ep::{OpFlags, Recv},
    },
};

use super::sum;
use crate::{cq::CompletionQueue, engine::Engine, testing::endpoint, wait::pollable::Progress};

const MESSAGE: &[u8] = b"what was sent, and longer than nothing";

/// An endpoint with a queue and checksums.
fn checked(port: u16) -> (Arc<Segment>, Engine, Arc<CompletionQueue>) {
    let (own, mut engine) = endpoint(port);
    let attr = CqAttr {
        size: 0,
        flags: 0,
        format: Format::Tagged,
        wait_obj: WaitObj::None,
        threshold: false,
    };
    let cq = Arc::new(CompletionQueue::open(&engine.domain, &attr).unwrap());
    engine.completions.rx.cq = Some(Arc::clone(&cq));
    engine.tx.set_checks(true);
    engine.peers.transports.set(Settings { checks: true, copies: true });
    (own, engine, cq)
}

/// Sends a message through the first buffer.
fn send(engine: &mut Engine, to: u32) {
    engine.link_to(to).unwrap();
    let message = RegionMemory::from(&mut *MESSAGE.to_vec().leak());
    let header = Header {
        kind: Kind::Buffered,
        flags: Flags::TAGGED,
        peer: 0,
        count: 0,
        bits: 7,
        data: 0,
        len: MESSAGE.len() as u64,
        op: 0,
    };
    let part = message.part(0, MESSAGE.len()).unwrap();
    engine.peers.set_check(to, sum(&part));
    assert_eq!(engine.peers.push(to, &header, Payload::Part(&part)), Ok(Sent::Yes));
}

/// Sends a message between two new endpoints, and calls `tamper` before the message is received.
/// `expected`: the receive is posted before the message comes. Returns the error of the receive, if
/// it has one.
fn end_of(
    ports: [u16; 2],
    expected: bool,
    tamper: impl FnOnce(&Segment, &Segment),
) -> Option<Failure> {
    let (own, mut engine, cq) = checked(ports[0]);
    let (there, mut sender, _) = checked(ports[1]);
    let memory: &'static mut [u8] = vec![0; 64].leak();
    let window = RegionMemory::from(&mut *memory);
    let post = |engine: &mut Engine| {
        let recv = Recv {
            buffer: window.part(0, 64).unwrap(),
            source: u64::MAX,
            tag: Some((7, 0)),
            context: OpContext(1),
            flags: OpFlags::Default,
        };
        engine.recv(&recv).unwrap();
    };
    if expected {
        post(&mut engine);
    }
    let to = sender.domain.peers.number(unpack(engine.peers.own_address()));
    send(&mut sender, to);
    tamper(&own, &there);
    let settle =
        |engine: &mut Engine| while engine.make_copy() || engine.progress() == Progress::Some {};
    settle(&mut engine);
    if !expected {
        post(&mut engine);
        settle(&mut engine);
    }
    cq.read_error(0).ok()
}

#[test]
fn an_unchanged_message_is_no_error() {
    for (ports, expected) in [([161, 162], true), ([163, 164], false)] {
        assert!(end_of(ports, expected, |_, _| ()).is_none());
    }
}

#[test]
fn a_byte_that_changes_in_a_buffer_is_an_error() {
    for (ports, expected) in [([165, 166], true), ([167, 168], false)] {
        let end = end_of(ports, expected, |_, there| scribble(there, testing::BUFFER, 0));
        assert_eq!(end.unwrap().errno, Errno::ECRC);
    }
}

#[test]
fn a_word_that_changes_in_a_slot_is_an_error() {
    for (port, word) in (171..).step_by(2).zip(1..6) {
        let end = end_of([port, port + 1], true, |own, _| {
            scribble(own, testing::RING + word * 8, 0x0003_0000_4102);
        });
        let end = end.unwrap();
        assert_eq!(end.errno, Errno::ECRC, "word {word}");
        // Matching does not use the words from 3 on, so the error goes to the receive.
        if word > 2 {
            assert_eq!(
                (end.completion.context, end.completion.tag),
                (OpContext(1), 7),
                "word {word}"
            );
        }
    }
}
