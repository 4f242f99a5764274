// SPDX-License-Identifier: BSD-2-Clause
//! What the network may do and memory does not: lose a message.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    time::{Duration, Instant},
};

use host::owner::Look;

use super::ends::{COPIES, Endpoint, Way, header, message, pairs_over};
use crate::{
    contract::{Payload, Sent},
    way::Liveness,
    wire::Kind,
};

fn send(from: &mut Endpoint, number: u64) {
    let (_, buffer) = message(number, 8);
    assert_eq!(from.send(header(Kind::Inline, number, 8), Payload::Message(&buffer)), Sent::Yes);
}

/// Both ends find out that the other is gone, though neither is.
fn part(one: &mut Endpoint, other: &mut Endpoint) {
    let start = Instant::now();
    let alive = |end: &Endpoint| end.links[0].liveness(Look::Closely) == Liveness::Alive;
    while alive(one) || alive(other) {
        assert!(start.elapsed() < Duration::from_secs(10), "they go on");
        assert!(one.inbox().peek().is_none() && other.inbox().peek().is_none());
        one.until(|_| Some(()));
        for net in one.net.iter().chain(&other.net) {
            net.progress();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_comes_behind_a_lost_message_is_never_taken_for_the_next() {
    for (mut one, mut other) in pairs_over([Way::Net, Way::Below], 0, COPIES) {
        send(&mut one, 1);
        assert_eq!(other.take().unwrap().0.bits, 1);
        let net = one.net.clone().unwrap();
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, other.port());
        let words = header(Kind::Inline, 3, 0).words();
        // As if two had gone before it that did not come.
        assert!(net.push_words(to, words, &[], |head| head[12] ^= 2));
        send(&mut one, 4);
        part(&mut one, &mut other);
        assert!(other.take().is_none(), "a message that came after");
    }
}
