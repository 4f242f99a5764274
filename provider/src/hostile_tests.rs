// SPDX-License-Identifier: BSD-2-Clause
//! An endpoint whose peer writes anything into its ring: no panic, no access
//! outside of the segments, and messages of others still arrive.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::Arc,
    time::Instant,
};

use ffi::{Buffer, Context, info::Info, ops::ep::OpFlags, ops::ep::Recv};
use proptest::prelude::*;

use crate::{
    attr,
    av::AddressVector,
    channel::{
        ring::Sender,
        segment::{PEERS, Segment, pack},
    },
    domain::Domain,
    engine::Engine,
    fabric::Fabric,
    progress::Progress,
};

fn endpoint(port: u16) -> (Segment, Engine) {
    let own = Segment::create(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap();
    let info: Info = attr::offer(8192, 0);
    let domain = Arc::new(Domain::open(&Arc::new(Fabric::new(0)), &info).unwrap());
    let address = pack(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
    let mut engine = Engine::new(&domain, &info, address, &own, Instant::now()).unwrap();
    let av = AddressVector::open(&domain, &ffi::ops::av::Attr::default(), 0).unwrap();
    engine.av = Some(Arc::new(av));
    engine.enabled = true;
    (own, engine)
}

fn post(engine: &mut Engine, own: &Segment, tag: Option<(u64, u64)>) {
    let recv = Recv {
        buffer: Buffer::default(),
        source: u64::MAX,
        tag,
        context: Context(7),
        flags: OpFlags::Default,
    };
    engine.recv(own, &recv).unwrap();
}

/// Words a peer may write: any, and such as get past the first checks.
fn words() -> impl Strategy<Value = [u64; 5]> {
    let small = prop_oneof![0..20_u64, Just(u64::MAX), Just(1 << 63), any::<u64>()];
    let first = (0..9_u64, 0..8_u64, prop_oneof![Just(0_u64), 0..70_000_u64], 0..70_u64).prop_map(
        |(kind, flags, peer, count)| kind | flags << 8 | (peer & 0xffff) << 16 | count << 32,
    );
    prop_oneof![
        1 => any::<[u64; 5]>(),
        8 => (first, small.clone(), small.clone(), small.clone(), small)
            .prop_map(|(first, bits, data, len, op)| [first, bits, data, len, op]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_in_the_ring_is_survived(slots in prop::collection::vec((words(), any::<u8>()), 1..300)) {
        let (own, mut engine) = endpoint(91);
        let (peer, _) = endpoint(92);
        own.peer(0).store(pack(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 92)), std::sync::atomic::Ordering::Release);
        prop_assert!(own.peer(PEERS as u16 - 1).load(std::sync::atomic::Ordering::Acquire) == 0);
        let mut sender = Sender::new(91);
        for (index, (words, fill)) in slots.iter().enumerate() {
            if index % 3 == 0 {
                post(&mut engine, &own, Some((0, u64::MAX)));
                post(&mut engine, &own, None);
            }
            prop_assert!(sender.push_words(&peer, &own, *words, *fill));
            while engine.progress(&own) == Progress::Some {}
        }
        prop_assert_eq!(engine.device.tagged.counters().check(), Ok(()));
        prop_assert_eq!(engine.device.msg.counters().check(), Ok(()));
    }
}
