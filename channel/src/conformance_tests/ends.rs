// SPDX-License-Identifier: BSD-2-Clause
//! Endpoints of the conformance tests: all transports, and no engine.

use std::{
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    sync::Arc,
    time::{Duration, Instant},
};

use ffi::{Buffer, Errno, memory::RegionMemory};
use nic::polling::Polling;

use crate::{
    contract::{Payload, Sent, Settings},
    home::{Home, Inboxes, NET},
    net::{
        end::{self, Net},
        secret::Secret,
    },
    polling::Turns,
    shm::segment::Segment,
    testing,
    twin::{self, End},
    way::{Inbox, Link},
    wire::{Flags, Header, Kind},
};

/// A transport between the endpoints of a test.
#[derive(Clone)]
pub(super) enum Way {
    Shm,
    Twin(Arc<twin::Net>),
    /// TCP connections.
    Net,
    /// TCP connections with sealed frames.
    Sealed,
}

/// Transports that copy memory between processes.
pub(super) fn near() -> [Way; 2] {
    [Way::Shm, Way::Twin(Arc::default())]
}

/// All transports.
pub(super) fn ways() -> [Way; 4] {
    [Way::Shm, Way::Twin(Arc::default()), Way::Net, Way::Sealed]
}

/// The network of an endpoint that holds a port with this socket.
fn network(socket: TcpListener, own: &Segment, address: SocketAddrV4, seals: bool) -> Arc<Net> {
    let settings = end::Settings {
        job: Some(Secret::of_job("test")),
        own: Secret::of_endpoint(0),
        timeout: Duration::from_secs(10),
        seals,
    };
    Net::new(&settings, socket.into(), own.identity(), address).unwrap()
}

/// Longest wait for something that was sent over the network.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// An endpoint without an engine.
pub(super) struct Endpoint {
    pub(super) own: Arc<Segment>,
    pub(super) end: Option<Arc<End>>,
    pub(super) net: Option<Arc<Net>>,
    /// Networks of peers, which must make progress as well.
    pub(super) others: Vec<Arc<Net>>,
    pub(super) home: Home,
    pub(super) inboxes: Inboxes,
    pub(super) links: Vec<Link>,
}

pub(super) const COPIES: Settings = Settings { checks: false, copies: true };

impl Endpoint {
    pub(super) fn new(way: &Way, port: u16, settings: Settings) -> Self {
        let socket = matches!(way, Way::Net | Way::Sealed)
            .then(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port"));
        let port = socket.as_ref().map_or(port, |socket| socket.local_addr().unwrap().port());
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let own = Arc::new(Segment::create(address).unwrap());
        let net = socket.map(|socket| network(socket, &own, address, matches!(way, Way::Sealed)));
        let mut home =
            Home::new(&own, net.clone(), Turns::new(Polling::Auto, false), settings, false);
        let end = if let Way::Twin(net) = way { Some(net.end(own.identity())) } else { None };
        if let Some(end) = &end {
            home.join(end);
        }
        let inboxes = home.inboxes();
        Self { own, end, net, others: Vec::new(), home, inboxes, links: Vec::new() }
    }

    /// Repeats `work` until it returns a result, while this endpoint and its peers make progress.
    /// Gives up after [`PATIENCE`] on the network, and at once on other transports.
    pub(super) fn until<T>(&mut self, mut work: impl FnMut(&mut Self) -> Option<T>) -> Option<T> {
        let start = Instant::now();
        loop {
            match work(self) {
                None if self.net.is_some() && start.elapsed() < PATIENCE => {
                    self.others.iter().chain(&self.net).for_each(|net| net.progress());
                    std::thread::yield_now();
                }
                done => return done,
            }
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.own.port()
    }

    /// Opens a link to a peer. Links are numbered in the order of the calls.
    pub(super) fn meet(&mut self, peer: &Self) {
        let Some(net) = &peer.net else {
            let link = self.home.open(peer.port()).unwrap();
            self.home.connect(self.links.len() as u32, &link);
            self.links.push(link);
            return;
        };
        self.others.push(Arc::clone(net));
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, peer.port());
        let opened = self.until(|it| match it.home.open_far(address, None) {
            Err(Errno::EAGAIN) => None,
            opened => Some(opened),
        });
        self.links.push(opened.expect("in time").unwrap());
    }

    /// Sends a slot. On the network, waits for room.
    pub(super) fn send(&mut self, header: Header, payload: Payload<'_>) -> Sent {
        let sent = self.until(|it| {
            let sent = it.try_send(header, payload);
            (sent == Sent::Yes).then_some(sent)
        });
        sent.unwrap_or(Sent::NoRoom)
    }

    pub(super) fn try_send(&mut self, header: Header, payload: Payload<'_>) -> Sent {
        let sent = self.home.send_near(0, &header, payload);
        sent.unwrap_or_else(|| self.home.send(&mut self.links[0], &header, payload))
    }

    /// Returns whether parts of a message are received directly into the memory of the application.
    pub(super) fn lands(&self) -> bool {
        self.net.as_ref().is_some_and(|net| !net.seals)
    }

    pub(super) fn way(&self) -> usize {
        match (&self.end, &self.net) {
            (Some(_), _) => 2,
            (_, Some(_)) => NET,
            _ => 0,
        }
    }

    pub(super) fn inbox(&mut self) -> &mut Inbox {
        let way = self.way();
        self.inboxes[way].as_mut().unwrap()
    }

    /// The next slot with a copy of its payload. The sender must be the first peer.
    pub(super) fn take(&mut self) -> Option<(Header, Vec<u8>)> {
        let way = self.way();
        self.until(|it| (!it.inbox().is_empty()).then_some(()))?;
        let inbox = self.inboxes[way].as_mut().unwrap();
        let header = inbox.peek()?.header.unwrap();
        let body = self.links[0].body(&header, inbox.payload()).unwrap();
        let bytes = body.bytes().keep().into_vec();
        drop(body);
        inbox.release();
        inbox.publish();
        Some((header, bytes))
    }

    pub(super) fn close(&mut self) {
        if let Some(end) = &self.end {
            end.close();
        }
        self.own.close();
    }

    pub(super) fn die(&mut self) {
        if let Some(end) = &self.end {
            end.die();
        }
        testing::die(&self.own);
    }
}

/// Pairs of connected endpoints, one for each transport. The ports from `port` on belong to the
/// test.
pub(super) fn pairs(port: u16, settings: Settings) -> impl Iterator<Item = (Endpoint, Endpoint)> {
    pairs_over(ways(), port, settings)
}

/// Pairs of connected endpoints over some transports.
pub(super) fn pairs_over(
    ways: impl IntoIterator<Item = Way>,
    port: u16,
    settings: Settings,
) -> impl Iterator<Item = (Endpoint, Endpoint)> {
    ways.into_iter().zip([port, port + 2, 0, 0]).map(move |(way, port)| {
        let mut one = Endpoint::new(&way, port, settings);
        let mut other = Endpoint::new(&way, port + 1, settings);
        one.meet(&other);
        other.meet(&one);
        (one, other)
    })
}

pub(super) fn header(kind: Kind, bits: u64, len: usize) -> Header {
    let flags = Flags::empty();
    Header { kind, flags, peer: 0, count: 0, bits, data: !bits, len: len as u64, op: bits << 7 }
}

/// Bytes that differ from those of other messages, in memory that is never freed.
pub(super) fn message(number: u64, len: usize) -> (Vec<u8>, Buffer) {
    let bytes: Vec<u8> = (0..len).map(|at| (at as u64 * 31 + number * 7 + 1) as u8).collect();
    let window = RegionMemory::from(&mut *bytes.clone().leak());
    (bytes, window.part(0, len).unwrap())
}

pub(super) fn room(len: usize) -> (RegionMemory, Buffer) {
    let window = RegionMemory::from(&mut *vec![0; len].leak());
    let buffer = window.part(0, len).unwrap();
    (window, buffer)
}

pub(super) fn read(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer.read_to(&mut bytes);
    bytes
}
