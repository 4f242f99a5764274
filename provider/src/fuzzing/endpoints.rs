// SPDX-License-Identifier: BSD-2-Clause
//! Endpoints without libfabric.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::Arc,
    time::Instant,
};

use channel::{address::pack, net::end::Net, shm::segment::Segment, testing};
use ffi::info::Info;

use crate::{attr, av::AddressVector, domain::Domain, engine::Engine, fabric::Fabric};

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
    let domain = Arc::new(Domain::open(&Arc::new(Fabric::new(0)), &info).unwrap());
    let address = pack(address_of(port));
    let mut engine = Engine::new(&domain, &info, address, own, net, Instant::now()).unwrap();
    let av = AddressVector::open(&domain, &ffi::ops::av::AvAttr::default(), 0).unwrap();
    engine.peers.av = Some(Arc::new(av));
    engine.enabled = true;
    engine
}
