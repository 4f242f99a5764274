// SPDX-License-Identifier: BSD-2-Clause
//! An endpoint without libfabric, and two peers of it: one that writes arbitrary data, and a
//! healthy one. Both peers are on this host, or both on the network.

use std::{
    io::Write as _,
    net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use channel::{
    address::pack,
    identity::Identity,
    net::{self, Net, NetSettings, secret::Secret},
    shm::segment::Segment,
    testing::{self, Payload, Writer},
    wire::Header,
};
use ffi::info::Info;

use crate::{attr, av::AddressVector, domain::Domain, engine::Engine, fabric::Fabric};

/// Ports of the endpoint, of the peer that writes arbitrary data, and of the healthy peer. They
/// differ between processes.
#[derive(Clone, Copy)]
pub(super) struct Ports {
    pub(super) own: u16,
    pub(super) peer: u16,
    pub(super) healthy: u16,
}

/// The two peers: first the one that writes arbitrary data, then the healthy one.
pub(super) enum TestPeers {
    /// Peers on this host. The writer belongs to the first peer.
    Near([Segment; 2], Writer),
    /// Peers on the network, the endpoint's address, and perhaps a stranger that is connected to
    /// it.
    Far([Arc<Net>; 2], SocketAddrV4, Option<TcpStream>),
}

/// An endpoint, and the peers that it is connected to.
pub(super) type Met = (Ports, Arc<Segment>, Engine, TestPeers);

/// Creates an endpoint and two peers on this host.
pub(super) fn near() -> Met {
    let first = 1000 + 3 * (std::process::id() % 10_000) as u16;
    let ports = Ports { own: first, peer: first + 1, healthy: first + 2 };
    let (own, engine) = endpoint(ports.own);
    let peers = [ports.peer, ports.healthy].map(|port| Segment::create(address_of(port)).unwrap());
    for (number, peer) in peers.iter().enumerate() {
        assert_eq!(testing::enter(ports.own, peer.identity()), Ok(number as u16));
    }
    let sender = Writer::new(&own);
    (ports, own, engine, TestPeers::Near(peers, sender))
}

/// Creates an endpoint with a network. It claims to have the address and the context index in
/// `says`. If `says` is `None`, it claims its real ones.
pub(crate) fn net_endpoint(
    job: Option<Secret>,
    own: u64,
    says: Option<(SocketAddrV4, u8)>,
) -> (SocketAddrV4, Arc<Segment>, Arc<Net>) {
    testing::apart();
    let socket = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
    let address = address_of(socket.local_addr().unwrap().port());
    let segment = Arc::new(Segment::create(address).unwrap());
    let own = Secret::of_endpoint(own);
    let timeout = Duration::from_secs(10);
    let settings = NetSettings { job, own, timeout, seals: false, has_times: false };
    let (who, says) = says.map_or((segment.identity(), address), |(says, context)| {
        (Identity::new(says.port(), context).unwrap(), says)
    });
    let net = Net::new(&settings, socket.into(), who, says).unwrap();
    (address, segment, net)
}

/// Creates an endpoint and two peers on the network.
pub(super) fn far() -> Met {
    let [own, peer, healthy] =
        [(); 3].map(|()| net_endpoint(Some(Secret::of_job("fuzz")), 0, None));
    let ports = Ports { own: own.0.port(), peer: peer.0.port(), healthy: healthy.0.port() };
    // The segments of the peers are dropped below. Then the peers seem to be on other hosts.
    let peers = [peer.2, healthy.2];
    let start = Instant::now();
    while !peers.iter().all(|net| net.has_met(own.0, None).unwrap()) {
        assert!(start.elapsed() < Duration::from_secs(10), "no handshake");
        own.2.progress();
    }
    drop((peer.1, healthy.1));
    let engine = engine_of(&own.1, ports.own, Some(own.2));
    (ports, own.1, engine, TestPeers::Far(peers, own.0, None))
}

impl TestPeers {
    pub(super) fn are_far(&self) -> bool {
        matches!(self, Self::Far(..))
    }

    pub(super) fn progress(&self) {
        if let Self::Far(nets, ..) = self {
            nets.iter().for_each(|net| net.ignore_all());
        }
    }

    /// Lets the first peer send a slot. Over the network, `change` names a byte of the head and the
    /// bits to flip in it.
    pub(super) fn push_words(
        &mut self,
        words: [u64; 5],
        payload: &Payload,
        change: Option<(u8, u8)>,
    ) {
        match self {
            Self::Near([peer, _], sender) => {
                sender.push_words(peer, words, payload);
            }
            Self::Far([peer, _], to, _) => {
                let bytes: Vec<u8> = payload.iter().flat_map(|word| word.to_ne_bytes()).collect();
                peer.push_words(*to, words, &bytes, |head| {
                    if let Some((at, byte)) = change {
                        let at = usize::from(at) % head.len();
                        head[at] ^= byte;
                    }
                });
            }
        }
    }

    /// Lets the healthy peer send a message. Returns whether there was room.
    pub(super) fn push_healthy(&mut self, own: &Arc<Segment>, header: Header) -> bool {
        match self {
            Self::Near([_, healthy], _) => Writer::new(own).push(healthy, &header),
            Self::Far([_, healthy], to, _) => {
                let header = Header { peer: 0, ..header };
                healthy.push_words(*to, header.words(), &[], |_| ())
            }
        }
    }

    /// Sends arbitrary bytes over the network, from the first peer, from a stranger that has just
    /// connected, or from the stranger of an earlier call. Does nothing if the peers are on this
    /// host.
    pub(super) fn push_bytes(&mut self, bytes: &[u8], how: u8) {
        let Self::Far([peer, _], to, stranger) = self else { return };
        if how & 3 == 0 {
            return peer.push_bytes(*to, bytes);
        }
        if how & 1 != 0 {
            *stranger = None;
        }
        if stranger.is_none()
            && let Ok(mut socket) = TcpStream::connect(*to)
            && socket.set_nonblocking(true).is_ok()
        {
            if how & 4 != 0 {
                let _ = socket.write_all(&net::testing::start());
            }
            *stranger = Some(socket);
        }
        // The endpoint may have closed the connection.
        let _ = stranger.as_mut().map(|socket| socket.write_all(bytes));
    }

    /// Lets the first peer write into its own segment. Does nothing over the network.
    pub(super) fn scribble(&self, offset: usize, word: u64) {
        if let Self::Near([peer, _], _) = self {
            testing::scribble(peer, offset, word);
        }
    }
}

pub(super) fn address_of(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

/// Creates the segment and the engine of an endpoint.
pub(crate) fn endpoint(port: u16) -> (Arc<Segment>, Engine) {
    testing::apart();
    let own = Arc::new(Segment::create(address_of(port)).unwrap());
    let engine = engine_of(&own, port, None);
    (own, engine)
}

/// Creates the engine of an endpoint.
pub(crate) fn engine_of(own: &Arc<Segment>, port: u16, net: Option<Arc<Net>>) -> Engine {
    let info: Info = attr::offer(8192, 0, 0);
    let domain = Arc::new(Domain::open(&Arc::new(Fabric { api_version: 0 }), &info).unwrap());
    let address = pack(address_of(port));
    let mut engine = Engine::new(&domain, &info, address, own, net, Instant::now()).unwrap();
    let av = AddressVector::open(&domain, &ffi::ops::av::AvAttr::default(), 0).unwrap();
    engine.peers.av = Some(Arc::new(av));
    engine.enabled = true;
    engine
}
