// SPDX-License-Identifier: BSD-2-Clause
//! Conformance tests: each runs over all transports to which it applies.

mod ends;
mod impostors;

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use ffi::{Errno, ops::ep::rma::RemotePart};
use host::{clock, owner::Look};

use self::ends::{
    COPIES, Endpoint, Transport, header, message, near, pairs, pairs_over, read, room, transports,
};
use crate::{
    contract::{Arrivals as _, CopyError, Direction, Liveness, Payload, Sent, Settings},
    testing::{
        self,
        loopback::{Fault, Phase},
    },
    wire::{Flags, Frame, Header, Kind, LONGEST},
};

/// Lengths around those at which a transport changes what it does.
const LENGTHS: [usize; 12] = [0, 1, 8, 64, 192, 193, 200, 201, 208, 209, 4096, LONGEST];

#[test]
fn messages_of_all_lengths_arrive_in_order_and_whole() {
    for settings in [COPIES, Settings { checks: true, copies: true }] {
        let port = if settings.checks { 205 } else { 201 };
        for (mut one, mut other) in pairs(port, settings) {
            let (mut sent, mut taken) = (Vec::new(), 0);
            for round in 0..600_u64 {
                let len = LENGTHS[(round * 5 % 12) as usize];
                let (bytes, buffer) = message(round, len);
                let header = header(Kind::Inline, round, len);
                while one.send(header, Payload::Message(&buffer)) != Sent::Yes {
                    assert!(taken < sent.len(), "no room, although all messages were taken");
                    check(&mut other, &sent, &mut taken);
                }
                sent.push(bytes);
                if round % 7 == 0 {
                    check(&mut other, &sent, &mut taken);
                }
            }
            while taken < sent.len() {
                check(&mut other, &sent, &mut taken);
            }
            assert!(other.take().is_none() && other.rx().is_empty());
            assert_eq!((other.rx().position(), other.rx().end()), (600, 600));
            assert_eq!(one.until(|it| (!it.tx.has_unfinished_sends()).then_some(())), Some(()));
        }
    }
}

/// Checks the next message, if one has come.
fn check(to: &mut Endpoint, sent: &[Vec<u8>], taken: &mut usize) {
    let Some((header, bytes)) = to.take() else { return };
    assert_eq!((header.bits, header.data), (*taken as u64, !(*taken as u64)));
    assert_eq!(header.op, header.bits << 7);
    assert!(matches!(header.kind, Kind::Inline | Kind::Buffered));
    assert_eq!(header.len as usize, sent[*taken].len());
    assert!(bytes.get(..sent[*taken].len()) == Some(&sent[*taken]), "message {taken}");
    *taken += 1;
}

#[test]
fn a_message_comes_when_it_is_sent_and_not_when_it_is_taken() {
    for (mut one, mut other) in pairs_over([Transport::TimedNet, Transport::Sealed], 0, COPIES) {
        let (_, buffer) = message(0, 8);
        // Frames that are taken at once, in both directions.
        for number in 0..20 {
            one.send(header(Kind::Inline, number, 8), Payload::Message(&buffer));
            other.take().unwrap();
            other.send(header(Kind::Inline, number, 8), Payload::Message(&buffer));
            one.take().unwrap();
        }
        let mut sent = Vec::new();
        for number in 0..5 {
            sent.push(clock::now());
            one.send(header(Kind::Inline, number, 8), Payload::Message(&buffer));
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        for time in sent {
            other.take().unwrap();
            let error = other.timed.abs_diff(time);
            assert!(error < 200_000_000, "{error} ns");
        }
    }
}

#[test]
fn frames_have_times_if_one_end_records_and_hostile_times_do_no_harm() {
    let mut one = Endpoint::new(&Transport::Net, 0, COPIES);
    let mut other = Endpoint::new(&Transport::TimedNet, 0, COPIES);
    one.meet(&other);
    other.meet(&one);
    let (bytes, buffer) = message(0, 8);
    let inline = header(Kind::Inline, 0, 8);
    assert_eq!(one.send(inline, Payload::Message(&buffer)), Sent::Yes);
    assert_eq!(other.take().unwrap().1, bytes);
    let timed = Header { flags: Flags::TIMED, ..inline };
    let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, other.port());
    let net = one.net.clone().unwrap();
    for times in [[0, 0], [0, u64::MAX], [1, 1 << 63], [u64::MAX, 0], [1 << 63; 2]] {
        let payload = [&times.map(u64::to_ne_bytes).concat()[..], &bytes].concat();
        for len in [payload.len(), 15, 8, 0] {
            assert!(net.push_words(to, timed.words(), &payload[..len], |_| ()));
            other.until(|it| (!it.rx().is_empty()).then_some(())).expect("a frame");
            let rx = other.rx();
            let header = rx.peek().unwrap().header.unwrap();
            let body = rx.payload().skip(header.flags.payload_shift()).keep();
            assert_eq!(*body, payload[16.min(len)..len]);
            // It comes before it is handled, on a clock that wraps around.
            assert_eq!(rx.time().is_some(), len >= 16);
            let time = rx.time().map_or(0, |came| came.ns);
            assert!((clock::now().wrapping_sub(time) as i64) >= 0, "{time}");
            rx.release();
            rx.publish();
        }
    }
}

#[test]
fn requests_and_their_answers_arrive_whole() {
    for (mut one, mut other) in pairs(209, COPIES) {
        for (number, len) in (0..).zip([0, 8, 100, 5000, LONGEST - 200]) {
            let parts = [RemotePart { addr: 1, len: len as u64, key: 2 }; 2];
            let (mut bytes, buffer) = message(number, len);
            let data = [buffer.part(0, len / 2), buffer.part(len / 2, len)];
            let sent =
                one.send(header(Kind::Write, number, len), Payload::PartsAndData(&parts, &data));
            assert_eq!(sent, Sent::Yes);
            let (header_, body) = other.take().unwrap();
            let frame = Frame::unpack(header_.count);
            assert_eq!((frame.parts, frame.segments), (2, 0));
            let parts = size_of_val(&parts);
            assert!(body[parts..].starts_with(&bytes), "frame of {len}");
            let sent = one.send(header(Kind::Answer, number, len), Payload::Bytes(&bytes));
            assert_eq!(sent, Sent::Yes);
            assert!(other.take().unwrap().1.starts_with(&bytes), "answer of {len}");
            bytes.clear();
        }
    }
}

#[test]
fn long_messages_are_copied_or_arrive_in_parts() {
    for (mut one, mut other) in pairs(213, COPIES) {
        for (number, len) in (0..).zip([0, 1, LONGEST - 1, LONGEST + 1, 100_000, 5_000_000]) {
            let (bytes, buffer) = message(number, len);
            let rendezvous = header(Kind::Rendezvous, number, len);
            assert_eq!(one.send(rendezvous, Payload::Where(&buffer)), Sent::Yes);
            other.until(|it| (!it.rx().is_empty()).then_some(())).expect("an offer");
            let rx = other.rx();
            let offer = rx.peek().unwrap().header.unwrap();
            assert_eq!((offer.kind, offer.len), (Kind::Rendezvous, len as u64));
            let payload = rx.payload().skip(offer.flags.payload_shift());
            let remote = payload.remote(offer.count, offer.len).unwrap();
            rx.release();
            rx.publish();
            if other.net.is_none() {
                let (_window, to) = room(len);
                other.peers[0].read(&remote, &to, None).unwrap();
                assert!(read(&to) == bytes, "{len} bytes read");
                assert!(*other.peers[0].read_whole(&remote, len).unwrap() == bytes);
            }
            let (_window, to) = room(len);
            let _landing = other.peers[0].expect(number << 7, &to);
            let lands = other.lands();
            let mut came: Vec<u8> = Vec::new();
            while came.len() < len {
                let (left, most) = (len - came.len(), one.peers[0].part_len());
                let is_last = left <= most;
                let part = buffer.part(came.len(), left.min(most));
                let mut chunk = header(Kind::Chunk, number, part.len());
                chunk.flags.set(Flags::PART, !is_last);
                chunk.data = came.len() as u64;
                assert_eq!(one.send(chunk, Payload::Part(&part)), Sent::Yes);
                let (header, body) = other.take().unwrap();
                assert_eq!(header.kind == Kind::Landed, lands, "{header:?}");
                if lands {
                    came.extend(read(&to.part(came.len(), part.len())));
                } else {
                    came.extend(&body[..part.len()]);
                }
            }
            assert!(came == bytes, "{len} bytes in parts");
        }
    }
}

#[test]
fn pieces_are_copied_both_ways() {
    for (mut one, mut other) in pairs_over(near(), 217, COPIES) {
        let (bytes, there) = message(3, 10_000);
        let parts = [RemotePart { addr: 0, len: 10_000, key: 0 }];
        let sent = one.send(header(Kind::Write, 0, 10_000), Payload::Segments(&parts, &there));
        assert_eq!(sent, Sent::Yes);
        let (header, body) = other.take().unwrap();
        let frame = Frame::unpack(header.count);
        assert_eq!((frame.parts, frame.segments), (1, 1));
        let payload = crate::bytes::SharedBytes::from(&body[size_of_val(&parts)..]);
        let remote = payload.remote(1, 10_000).unwrap();
        let (_window, here) = room(10_000);
        let pieces = [(0, here.part(0, 10)), (10, here.part(10, 10_000))];
        let pieces = || pieces.iter().map(|(at, piece)| (*at, piece));
        let copier = other.peers[0].copier().unwrap();
        copier.exchange(Direction::Read, (&remote, 0), pieces()).unwrap();
        assert!(read(&here) == bytes);
        assert_eq!(here.fill(&[7; 10_000]), 10_000);
        copier.exchange(Direction::Write, (&remote, 0), pieces()).unwrap();
        assert!(read(&there) == [7; 10_000]);
        one.close();
        let after = copier.exchange(Direction::Read, (&remote, 0), pieces());
        assert_eq!(after, Err(CopyError::Failed(Errno::ECONNABORTED)));
    }
}

#[test]
fn a_sender_without_room_loses_nothing_and_continues_later() {
    for (mut one, mut other) in pairs(221, COPIES) {
        for len in [0, 8, LONGEST] {
            let (bytes, buffer) = message(0, len);
            let mut sent = 0;
            let first = one.send(header(Kind::Inline, sent, len), Payload::Message(&buffer));
            assert_eq!(first, Sent::Yes);
            while {
                sent += 1;
                let header = header(Kind::Inline, sent, len);
                one.try_send(header, Payload::Message(&buffer)) == Sent::Yes
            } {
                assert!(sent < 1_000_000, "it never runs out of room");
            }
            assert!(sent >= if one.net.is_some() { 1 } else { 16 }, "too few slots");
            for taken in 0..sent {
                let (header, body) = other.take().unwrap();
                assert_eq!(header.bits, taken);
                assert!(body[..len] == bytes);
            }
            assert!(other.take().is_none());
            let has_room = |it: &mut Endpoint| it.peers[0].has_room() && it.tx.has_room();
            assert_eq!(one.until(|it| has_room(it).then_some(())), Some(()));
            let again = one.send(header(Kind::Inline, 0, len), Payload::Message(&buffer));
            assert_eq!(again, Sent::Yes);
            other.take().unwrap();
        }
    }
}

#[test]
fn copies_are_refused_if_the_kernel_may_not_copy() {
    let none = Settings { checks: false, copies: false };
    for (_one, mut other) in pairs(225, none) {
        let (_window, to) = room(10);
        let peer = &mut other.peers[0];
        assert!(peer.copier().is_none() && peer.goes_in_pieces() == Some(true));
        let remote = crate::bytes::Remote::default();
        assert_eq!(peer.read(&remote, &to, None), Err(CopyError::Refused));
        assert_eq!(peer.read_whole(&remote, 10), Err(CopyError::Refused));
    }
    for (_one, mut other) in pairs_over(near(), 229, COPIES) {
        assert_ne!(other.peers[0].goes_in_pieces(), Some(true));
        other.peers[0].note_pull();
        assert_eq!(other.peers[0].goes_in_pieces(), Some(true));
    }
}

#[test]
fn closed_and_dead_peers_differ_and_both_return_their_buffers() {
    for dies in [false, true] {
        let port = if dies { 237 } else { 233 };
        for (mut one, mut other) in pairs_over(near(), port, COPIES) {
            let (bytes, buffer) = message(1, 300);
            assert_eq!(one.peers[0].liveness(Look::Closely), Liveness::Alive);
            for number in 0..5 {
                let sent = one.send(header(Kind::Inline, number, 300), Payload::Message(&buffer));
                assert_eq!(sent, Sent::Yes);
                let back = other.send(header(Kind::Inline, number, 300), Payload::Message(&buffer));
                assert_eq!(back, Sent::Yes);
            }
            let gone = one.peers[0].identity();
            let other = if dies {
                other.die();
                Some(other)
            } else {
                other.close();
                drop(other);
                None
            };
            let expected = if dies { Liveness::Dead } else { Liveness::Closed };
            assert_eq!(one.peers[0].liveness(Look::Closely), expected);
            assert!(!one.peers[0].is_open());
            // Messages that the peer sent before arrive, and the buffers that it held are free
            // again.
            for number in 0..5 {
                let (header, body) = one.take().unwrap();
                assert_eq!(header.bits, number);
                assert!(body[..300] == bytes);
            }
            one.tx.shm().disconnect(0);
            assert!(!one.tx.has_unfinished_sends());
            let (_window, to) = room(10);
            let read = one.peers[0].read(&crate::bytes::Remote::default(), &to, None);
            assert!(matches!(read, Err(CopyError::Failed(_))));
            assert_eq!(one.tx.open_only(gone).unwrap_err(), Errno::ECONNREFUSED);
            assert!(!one.tx.has_segment(gone.port()));
            drop(other);
        }
    }
}

#[test]
fn an_endpoint_differs_from_the_next_one_at_its_port() {
    for (transport, port) in near().into_iter().zip([241, 243]) {
        let mut one = Endpoint::new(&transport, port, COPIES);
        let mut first = Endpoint::new(&transport, port + 1, COPIES);
        one.meet(&first);
        let gone = one.peers[0].identity();
        assert!(one.tx.has_segment(port + 1));
        first.close();
        drop(first);
        let _second = Endpoint::new(&transport, port + 1, COPIES);
        assert_eq!(one.tx.open_only(gone).unwrap_err(), Errno::ECONNREFUSED);
        let now = one.tx.open(port + 1).unwrap().identity();
        assert_ne!(now, gone);
        assert_eq!(one.tx.open_only(now).unwrap().identity(), now);
    }
}

#[test]
fn a_slot_names_its_sender() {
    for (transport, port) in transports().into_iter().zip([245, 250, 0, 0]) {
        let mut to = Endpoint::new(&transport, port, COPIES);
        let mut senders: Vec<_> =
            (1..4).map(|at| Endpoint::new(&transport, port + at, COPIES)).collect();
        for sender in &mut senders {
            sender.meet(&to);
        }
        to.meet(&senders[0]);
        for (number, sender) in (0..).zip(&mut senders) {
            let sent = sender.send(header(Kind::Done, number, 0), Payload::Nothing);
            assert_eq!(sent, Sent::Yes);
        }
        for _ in &senders {
            let (header, _) = to.take().unwrap();
            // Over the network, messages of several senders come in any order.
            let who = senders[header.bits as usize].own.identity();
            let (listed, address) = to.tx.sender(header.peer).unwrap();
            assert_eq!((listed, address.is_some()), (who, to.net.is_some()));
            assert_eq!(header.is_far(), to.net.is_some());
            to.tx.strike(header.peer, who);
            assert_eq!(to.tx.sender(header.peer).is_some(), to.net.is_some());
        }
    }
}

#[test]
fn many_senders_lose_nothing_and_keep_their_order() {
    const EACH: u64 = 5000;
    for (transport, port) in transports().into_iter().zip([255, 259, 0, 0]) {
        let mut to = Endpoint::new(&transport, port, COPIES);
        // The senders live until the messages in their buffers were read.
        let mut senders: Vec<_> =
            (1..4).map(|at| Endpoint::new(&transport, port + at, COPIES)).collect();
        to.meet(&senders[0]);
        std::thread::scope(|scope| {
            for sender in &mut senders {
                sender.meet(&to);
                scope.spawn(move || {
                    let (_, buffer) = message(1, 24);
                    for count in 0..EACH {
                        let header = header(Kind::Inline, count, 24);
                        while sender.send(header, Payload::Message(&buffer)) != Sent::Yes {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut next = std::collections::BTreeMap::new();
            for _ in 0..3 * EACH {
                let (header, bytes) = loop {
                    match to.take() {
                        Some(taken) => break taken,
                        None => std::thread::yield_now(),
                    }
                };
                let next = next.entry(header.peer).or_insert(0);
                assert_eq!((header.bits, &bytes[..24]), (*next, &*message(1, 24).0));
                *next += 1;
            }
            assert_eq!(next.into_values().collect::<Vec<_>>(), [EACH; 3]);
        });
    }
}

#[test]
fn a_slot_that_changes_on_its_way_is_noticed() {
    let checks = Settings { checks: true, copies: true };
    for (mut one, mut other) in pairs(263, checks) {
        let (_, buffer) = message(1, 40);
        // A test cannot change a frame on its way over the network.
        let damages: &[bool] = if one.net.is_some() { &[false] } else { &[false, true] };
        for &damage in damages {
            one.tx.set_check(0, &mut one.peers[0], 77);
            if damage && let Some(end) = &one.end {
                end.inject(Phase::Send(Kind::Inline), 0, Fault::Damage);
            }
            let sent = one.send(header(Kind::Inline, 0, 40), Payload::Message(&buffer));
            assert_eq!(sent, Sent::Yes);
            if damage && other.end.is_none() {
                testing::scribble(&other.own, testing::RING + 256 + 48, 0);
            }
            other.until(|it| (!it.rx().is_empty()).then_some(())).expect("a slot");
            let rx = other.rx();
            let header = rx.peek().unwrap().header.unwrap();
            assert!(header.flags.contains(Flags::CHECKED));
            assert_eq!(rx.check(), if damage { None } else { Some(77) });
            rx.release();
            rx.publish();
        }
    }
}
