// SPDX-License-Identifier: BSD-2-Clause
//! Tests of the network with impostors, with addresses that a later endpoint takes over, with
//! broken connections, and with peers that close.

use std::{
    io::Read as _,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use ffi::Errno;
use host::owner::Look;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::Timespec,
    net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

use super::ends::{COPIES, Endpoint, Transport, header, message, pairs_over};
use crate::{
    contract::{Arrivals as _, Liveness, Payload, Sent},
    identity::Identity,
    net::{Net, NetSettings, secret::Secret},
    shm::segment::Segment,
    testing,
    wire::Kind,
};

const PATIENCE: Duration = Duration::from_secs(10);

fn send(from: &mut Endpoint, number: u64) {
    let (_, buffer) = message(number, 8);
    assert_eq!(from.send(header(Kind::Inline, number, 8), Payload::Message(&buffer)), Sent::Yes);
}

/// Waits until each end considers the other closed or dead, although both are alive.
fn part(one: &mut Endpoint, other: &mut Endpoint) {
    let start = Instant::now();
    let alive = |end: &Endpoint| end.peers[0].liveness(Look::Closely) == Liveness::Alive;
    while alive(one) || alive(other) {
        assert!(start.elapsed() < PATIENCE, "the connection goes on");
        assert!(one.rx().peek().is_none() && other.rx().peek().is_none());
        one.until(|_| Some(()));
        for net in one.net.iter().chain(&other.net) {
            net.progress();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_frame_with_another_token_ends_the_connection() {
    for (mut one, mut other) in pairs_over([Transport::Net, Transport::Sealed], 0, COPIES) {
        send(&mut one, 1);
        assert_eq!(other.take().unwrap().0.bits, 1);
        let net = one.net.clone().unwrap();
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, other.port());
        let words = header(Kind::Inline, 3, 0).words();
        assert!(net.push_words(to, words, &[], |head| head[7] ^= 2));
        send(&mut one, 4);
        part(&mut one, &mut other);
        assert!(other.take().is_none(), "a message that came after");
        // A message is missing, so this end does not connect again.
        let again = one.until(|_| match net.has_met(to, None) {
            Ok(false) => None,
            done => Some(done),
        });
        assert_eq!(again, Some(Err(Errno::ECONNREFUSED)));
        // Nor does the other end.
        let from = SocketAddrV4::new(Ipv4Addr::LOCALHOST, one.port());
        let back = other.net.clone().unwrap();
        let again = other.until(|_| match back.has_met(from, None) {
            Ok(false) => None,
            done => Some(done),
        });
        assert_eq!(again, Some(Err(Errno::ECONNREFUSED)));
    }
}

#[test]
fn what_a_peer_sent_arrives_after_its_end_and_a_failed_send() {
    for (mut one, mut other) in pairs_over([Transport::Net, Transport::Sealed], 0, COPIES) {
        send(&mut one, 1);
        assert_eq!(other.take().unwrap().0.bits, 1);
        (2..6).for_each(|number| send(&mut other, number));
        // The other endpoint ends without Bye.
        one.others.clear();
        drop(other);
        let start = Instant::now();
        let (_, buffer) = message(9, 8);
        // The first send provokes a reset, and a later one fails.
        while one.try_send(header(Kind::Inline, 9, 8), Payload::Message(&buffer)) == Sent::Yes {
            assert!(start.elapsed() < PATIENCE, "sends go on");
            std::thread::sleep(Duration::from_millis(1));
        }
        let taken: Vec<u64> = (2..6).map_while(|_| Some(one.take()?.0.bits)).collect();
        assert_eq!(taken, [2, 3, 4, 5]);
        let dead =
            one.until(|it| (it.peers[0].liveness(Look::Closely) == Liveness::Dead).then_some(()));
        assert_eq!(dead, Some(()));
    }
}

/// Creates the network of an endpoint with the secret `own`, at any port. The endpoint claims the
/// address `says`, or its real address if `says` is `None`. Returns the real address as well.
fn named(own: u64, says: Option<SocketAddrV4>) -> (Arc<Net>, SocketAddrV4) {
    network(0, None, own, says)
}

/// Creates the network of an endpoint at a port, or at any port if `port` is 0; see [`named`].
fn network(
    port: u16,
    job: Option<Secret>,
    own: u64,
    says: Option<SocketAddrV4>,
) -> (Arc<Net>, SocketAddrV4) {
    testing::apart();
    let socket = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    let segment = Segment::create(address).unwrap();
    let own = Secret::of_endpoint(own);
    let settings = NetSettings { job, own, timeout: PATIENCE, seals: false, has_times: false };
    let who = says.map_or(segment.identity(), |says| Identity::new(says.port(), 0).unwrap());
    (Net::new(&settings, socket.into(), who, says.unwrap_or(address)).unwrap(), address)
}

fn meet(one: &Arc<Net>, address: SocketAddrV4, secret: u64, others: &[&Arc<Net>]) {
    let start = Instant::now();
    while !one.has_met(address, Some(Secret::of_endpoint(secret))).unwrap() {
        assert!(start.elapsed() < PATIENCE, "no handshake");
        others.iter().for_each(|net| net.progress());
    }
    others.iter().for_each(|net| net.progress());
}

/// Returns the number of the only peer that has completed the handshake.
fn only(net: &Arc<Net>) -> u16 {
    let all: Vec<u16> = (0..64).filter(|&number| net.peer(number).is_some()).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

#[test]
fn a_peer_that_knows_one_name_cannot_pose_as_another_endpoint() {
    let (server, at) = named(1, None);
    let (honest, home) = named(2, None);
    let secret = || Some(Secret::of_endpoint(2));

    // The server knows the secret in the name of the honest endpoint, which connects to it.
    meet(&honest, at, 1, &[&server]);
    assert!(server.is_at_its_address(only(&server), secret));

    // The impostor knows the name of the server, and claims the address of the honest endpoint.
    let (server, at) = named(1, None);
    let (impostor, _) = named(3, Some(home));
    meet(&impostor, at, 1, &[&server]);
    assert!(!server.is_at_its_address(only(&server), secret));
    let (impostor, _) = named(3, Some(home));
    meet(&impostor, at, 1, &[&server]);

    // A dial to that address reaches the honest endpoint, although an impostor claimed it before.
    meet(&server, home, 2, &[&honest, &impostor]);
    let (_, who) = server.meet(home, secret()).unwrap();
    assert_eq!(who.port(), home.port());
}

#[test]
fn an_impostor_does_not_take_the_place_of_a_peer_that_has_connected() {
    let (server, at) = named(1, None);
    let (honest, home) = named(2, None);
    meet(&honest, at, 1, &[&server]);
    let number = only(&server);
    let impostors: Vec<_> = (3..6).map(|own| named(own, Some(home)).0).collect();
    impostors.iter().for_each(|impostor| meet(impostor, at, 1, &[&server]));

    // The server reaches the honest endpoint over the connection that the honest endpoint made.
    meet(&server, home, 2, &[&honest]);
    let (met, _) = server.meet(home, Some(Secret::of_endpoint(2))).unwrap();
    assert_eq!(met, number);
    assert!(server.is_at_its_address(number, || Some(Secret::of_endpoint(2))));
}

#[test]
fn an_impostor_is_refused_while_its_victim_is_dialed() {
    let (server, at) = named(1, None);
    let (honest, home) = named(2, None);
    // The honest endpoint makes no progress yet, so it does not answer.
    assert_eq!(server.meet(home, Some(Secret::of_endpoint(2))), Err(Errno::EAGAIN));
    let (impostor, _) = named(3, Some(home));
    let start = Instant::now();
    let refused = loop {
        match impostor.has_met(at, Some(Secret::of_endpoint(1))) {
            Ok(false) => server.progress(),
            other => break other,
        }
        assert!(start.elapsed() < PATIENCE, "no answer");
    };
    assert_eq!(refused, Err(Errno::EACCES));
    meet(&server, home, 2, &[&honest]);
}

/// Makes progress for 0.1 s, in which connections and messages on their way are handled.
fn progress(nets: &[&Arc<Net>]) {
    for _ in 0..50 {
        nets.iter().for_each(|net| net.progress());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn an_endpoint_that_has_connected_is_not_dialed_again() {
    let job = Some(Secret::of_job("key"));
    let (server, at) = network(0, job, 1, None);
    // This socket stands for a process that ends before it answers, so the server plans another
    // dial.
    let ends = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(address) = ends.local_addr().unwrap() else { panic!("no IPv4 address") };
    assert_eq!(server.has_met(address, None), Ok(false));
    drop(ends.accept().unwrap());
    drop(ends);
    progress(&[&server]);
    // Before that dial, an endpoint at that address connects and ends, and another one takes its
    // place.
    let (first, _) = network(address.port(), job, 2, None);
    meet(&first, at, 1, &[&server]);
    drop(first);
    let (later, _) = network(address.port(), job, 3, None);
    progress(&[&server]);
    server.look_around();
    progress(&[&server, &later]);
    // Fails if a connection between the two broke.
    meet(&later, at, 1, &[&server]);
}

#[test]
fn an_endpoint_that_closes_is_no_peer_any_more() {
    let job = Some(Secret::of_job("key"));
    let [(closes, at), (other, address)] = [1, 2].map(|own| network(0, job, own, None));
    meet(&closes, address, 2, &[&other]);
    closes.send_bye();
    progress(&[&closes, &other]);
    assert_eq!(other.has_met(at, None), Ok(false));
    progress(&[&closes, &other]);
    assert_eq!(other.has_met(at, None), Err(Errno::ECONNREFUSED));
}

#[test]
fn a_bye_does_not_go_to_another_peer() {
    let job = Some(Secret::of_job("key"));
    let [(server, at), (first, address), (second, _)] =
        [1, 2, 3].map(|own| network(0, job, own, None));
    meet(&first, at, 1, &[&server]);
    let words = header(Kind::Inline, 1, 0).words();
    assert!(server.push_words(address, words, &[], |_| ()));
    drop(first);
    progress(&[&server]);
    // The connection of the second peer gets the number of the first peer's connection.
    assert_eq!(second.has_met(at, None), Ok(false));
    progress(&[&server]);
    server.send_bye();
    meet(&second, at, 1, &[&server]);
}

/// Opens connections to an endpoint from 127.0.0.2, and sends nothing.
fn strangers(at: SocketAddrV4, count: usize) -> Vec<OwnedFd> {
    let from = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 2), 0);
    let stranger = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        bind(&socket, &from).unwrap();
        // The kernel connects later.
        let _ = connect(&socket, &at);
        socket
    };
    (0..count).map(|_| stranger()).collect()
}

#[test]
fn strangers_that_came_before_delay_no_newcomer() {
    // More than an endpoint has unproved connections.
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = usize::try_from(limit / 4).unwrap_or(usize::MAX).min(1100);
    let secret = || Some(Secret::of_endpoint(1));
    let (server, at) = named(1, None);
    let before = strangers(at, count);
    let (newcomer, _) = named(2, None);
    assert_eq!(newcomer.has_met(at, secret()), Ok(false));
    let mut polls = 0;
    while !newcomer.has_met(at, secret()).unwrap() {
        server.progress();
        polls += 1;
        assert!(polls <= 20, "the newcomer waits for strangers");
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(before);
}

#[test]
fn strangers_that_all_end_at_once_delay_no_newcomer() {
    let whole = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: whole.maximum, ..whole }).unwrap();
    let count =
        usize::try_from(whole.maximum.unwrap_or(u64::MAX) / 8).unwrap_or(usize::MAX).min(1000);
    let secret = || Some(Secret::of_endpoint(1));
    let (server, at) = named(1, None);
    let before = strangers(at, count);
    for _ in 0..10 {
        server.progress();
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(before);
    let (newcomer, _) = named(2, None);
    let mut polls = 0;
    while !newcomer.has_met(at, secret()).unwrap() {
        server.progress();
        polls += 1;
        assert!(polls <= 20, "the newcomer waits for {count} strangers");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Environment variable of the process that
/// [`connections_that_cannot_be_accepted_do_not_wake`] starts.
const FEW: &str = "TCAM_TEST_FEW_DESCRIPTORS";

#[test]
fn connections_that_cannot_be_accepted_do_not_wake() {
    let done = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "conformance_tests::impostors::few_descriptors", "--ignored"])
        .env(FEW, "")
        .output()
        .unwrap();
    let ran = String::from_utf8_lossy(&done.stdout).contains("1 passed");
    assert!(done.status.success() && ran, "{done:?}");
}

#[test]
#[ignore = "connections_that_cannot_be_accepted_do_not_wake runs it"]
fn few_descriptors() {
    if std::env::var_os(FEW).is_none() {
        return;
    }
    let (server, at) = named(1, None);
    let mut dialer = TcpStream::connect(at).unwrap();
    dialer.set_read_timeout(Some(PATIENCE)).unwrap();
    let whole = getrlimit(Resource::Nofile);
    let none_left = Rlimit { current: Some(3), ..whole };
    setrlimit(Resource::Nofile, none_left).unwrap();
    let is_rung = || {
        let doorbell = server.doorbell();
        let mut fds = [PollFd::new(&doorbell, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 10_000_000 })).unwrap() == 1
    };
    assert!(is_rung() && server.arm());
    assert!(!is_rung(), "it cannot accept the connection");
    setrlimit(Resource::Nofile, whole).unwrap();
    server.look_around();
    assert!(is_rung() && server.arm());
    dialer.read_exact(&mut [0]).unwrap();
}
