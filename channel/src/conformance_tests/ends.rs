// SPDX-License-Identifier: BSD-2-Clause
//! The endpoints that the conformance tests use, over all transports and without an engine.

use std::{
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::{Duration, Instant},
};

use ffi::{Buffer, Errno, memory::RegionMemory};
use host::clock;
use nic::polling::Polling;

use crate::{
    contract::{Arrivals as _, Came, Payload, Sent, Settings},
    net::{Net, NetSettings, secret::Secret},
    peer::Peer,
    polling::NetworkSchedule,
    rx::{NET, Receivers, Rx},
    shm::segment::Segment,
    testing::{
        self,
        loopback::{Loopback, LoopbackEnd},
    },
    tx::Tx,
    wire::{Flags, Header, Kind},
};

/// A transport between the endpoints of a test.
#[derive(Clone)]
pub(super) enum Transport {
    Shm,
    /// Shared memory, with the time of each send in its slot.
    Timed,
    Loopback(Arc<Loopback>),
    /// TCP connections.
    Net,
    /// TCP connections, with the time of each send in its frame.
    TimedNet,
    /// TCP connections with sealed frames and times.
    Sealed,
}

/// Returns the transports over which an endpoint copies from and to the memory of its peers.
pub(super) fn near() -> [Transport; 3] {
    [Transport::Shm, Transport::Loopback(Arc::default()), Transport::Timed]
}

/// Returns all transports.
pub(super) fn transports() -> [Transport; 6] {
    let [shm, loopback, timed] = near();
    [shm, loopback, timed, Transport::Net, Transport::TimedNet, Transport::Sealed]
}

impl Transport {
    fn is_net(&self) -> bool {
        matches!(self, Self::Net | Self::TimedNet | Self::Sealed)
    }

    fn has_times(&self) -> bool {
        matches!(self, Self::Timed | Self::TimedNet | Self::Sealed)
    }
}

/// Creates the network of an endpoint that holds a port with this socket.
fn network(
    socket: TcpListener,
    own: &Segment,
    address: SocketAddrV4,
    transport: &Transport,
) -> Arc<Net> {
    let settings = NetSettings {
        job: Some(Secret::of_job("test")),
        own: Secret::of_endpoint(0),
        timeout: Duration::from_secs(10),
        seals: matches!(transport, Transport::Sealed),
        has_times: transport.has_times(),
    };
    Net::new(&settings, socket.into(), own.identity(), address).unwrap()
}

/// The next port of an endpoint over [`Transport::Timed`].
static NEXT_TIMED: AtomicU16 = AtomicU16::new(2000);

/// Longest wait for something that was sent over the network.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// Longest error in nanoseconds of the offset of the clocks of two ends on the network.
const CLOCK_ERROR: u64 = 20_000_000_000;

/// An endpoint without an engine.
pub(super) struct Endpoint {
    pub(super) own: Arc<Segment>,
    pub(super) end: Option<Arc<LoopbackEnd>>,
    pub(super) net: Option<Arc<Net>>,
    /// Networks of peers, which must make progress as well.
    pub(super) others: Vec<Arc<Net>>,
    pub(super) tx: Tx,
    pub(super) receivers: Receivers,
    pub(super) peers: Vec<Peer>,
    /// Time of the last timed slot.
    pub(super) timed: u64,
    /// Time at which the endpoint was opened.
    opened: u64,
}

pub(super) const COPIES: Settings = Settings { checks: false, copies: true };

impl Endpoint {
    pub(super) fn new(transport: &Transport, port: u16, settings: Settings) -> Self {
        let socket = transport
            .is_net()
            .then(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port"));
        let port = match (&socket, transport) {
            (Some(socket), _) => socket.local_addr().unwrap().port(),
            // Tests have ports for two transports of shared memory.
            (None, Transport::Timed) => NEXT_TIMED.fetch_add(1, Ordering::Relaxed),
            (None, _) => port,
        };
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let own = Arc::new(Segment::create(address).unwrap());
        if transport.has_times() {
            own.ask_for_times();
        }
        let net = socket.map(|socket| network(socket, &own, address, transport));
        let mut tx =
            Tx::new(&own, net.clone(), NetworkSchedule::new(Polling::Auto, false), settings, false);
        let end = if let Transport::Loopback(net) = transport {
            Some(net.end(own.identity()))
        } else {
            None
        };
        if let Some(end) = &end {
            tx.join(end);
        }
        let receivers = tx.receivers();
        let (others, peers, opened) = (Vec::new(), Vec::new(), clock::now());
        Self { own, end, net, others, tx, receivers, peers, timed: 0, opened }
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

    /// Opens a peer. Peers are numbered in the order of the calls.
    pub(super) fn meet(&mut self, other: &Self) {
        let Some(net) = &other.net else {
            let peer = self.tx.open(other.port()).unwrap();
            self.tx.connect(self.peers.len() as u32, &peer);
            self.peers.push(peer);
            return;
        };
        self.others.push(Arc::clone(net));
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, other.port());
        let opened = self.until(|it| match it.tx.open_far(address, None) {
            Err(Errno::EAGAIN) => None,
            opened => Some(opened),
        });
        self.peers.push(opened.expect("in time").unwrap());
    }

    /// Sends a slot to the first peer. On the network, waits for room. Returns [`Sent::NoRoom`] if
    /// the slot was not sent.
    pub(super) fn send(&mut self, header: Header, payload: Payload<'_>) -> Sent {
        let sent = self.until(|it| {
            let sent = it.try_send(header, payload);
            (sent == Sent::Yes).then_some(sent)
        });
        sent.unwrap_or(Sent::NoRoom)
    }

    pub(super) fn try_send(&mut self, header: Header, payload: Payload<'_>) -> Sent {
        let sent = self.tx.send_shm(0, &header, payload);
        sent.unwrap_or_else(|| self.tx.send(&mut self.peers[0], &header, payload))
    }

    /// Returns whether parts of a message are received directly into the memory of the application.
    pub(super) fn lands(&self) -> bool {
        self.net.as_ref().is_some_and(|net| !net.seals)
    }

    pub(super) fn transport(&self) -> usize {
        match (&self.end, &self.net) {
            (Some(_), _) => 2,
            (_, Some(_)) => NET,
            _ => 0,
        }
    }

    pub(super) fn rx(&mut self) -> &mut Rx {
        let transport = self.transport();
        self.receivers[transport].as_mut().unwrap()
    }

    /// Takes the next slot, with a copy of its payload. The sender must be the first peer. Returns
    /// `None` if no slot comes.
    pub(super) fn take(&mut self) -> Option<(Header, Vec<u8>)> {
        let transport = self.transport();
        self.until(|it| (!it.rx().is_empty()).then_some(()))?;
        let rx = self.receivers[transport].as_mut().unwrap();
        let header = rx.peek()?.header.unwrap();
        // Over the network, parts of long messages have no times.
        let is_part = matches!(header.kind, Kind::Chunk | Kind::Landed) && self.net.is_some();
        let is_timed = header.flags.contains(Flags::TIMED);
        assert_eq!(is_timed, self.own.wants_times() && !is_part);
        if is_timed {
            let Came { ns: time, error_ns } = rx.time().unwrap();
            assert_eq!(error_ns > 0, self.net.is_some());
            // The offset of the clock of a peer on the network has an error, which is large if this
            // thread gets no processor.
            let error = if self.net.is_some() { CLOCK_ERROR } else { 0 };
            let since = self.opened - error;
            assert!((since..=clock::now()).contains(&time), "{since} {time}");
            self.timed = time;
        }
        let payload = rx.payload().skip(header.flags.payload_shift());
        let body = self.peers[0].body(&header, payload).unwrap();
        let bytes = body.bytes().keep().into_vec();
        drop(body);
        rx.release();
        rx.publish();
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

/// Returns pairs of connected endpoints, one for each transport. The ports from `port` on must
/// belong to the test.
pub(super) fn pairs(port: u16, settings: Settings) -> impl Iterator<Item = (Endpoint, Endpoint)> {
    pairs_over(transports(), port, settings)
}

/// Returns pairs of connected endpoints over some transports.
pub(super) fn pairs_over(
    transports: impl IntoIterator<Item = Transport>,
    port: u16,
    settings: Settings,
) -> impl Iterator<Item = (Endpoint, Endpoint)> {
    transports.into_iter().zip([port, port + 2, 0, 0, 0, 0]).map(move |(transport, port)| {
        let mut one = Endpoint::new(&transport, port, settings);
        let mut other = Endpoint::new(&transport, port + 1, settings);
        one.meet(&other);
        other.meet(&one);
        (one, other)
    })
}

pub(super) fn header(kind: Kind, bits: u64, len: usize) -> Header {
    let flags = Flags::empty();
    Header { kind, flags, peer: 0, count: 0, bits, data: !bits, len: len as u64, op: bits << 7 }
}

/// Returns bytes that differ from those of other messages, and a buffer with a copy of them in
/// memory that is never freed.
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
