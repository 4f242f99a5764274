// SPDX-License-Identifier: BSD-2-Clause
//! Panics at marked places of the provider. Each leaves the endpoint failed: no later call hangs.

use std::{
    cell::Cell,
    sync::Arc,
    time::{Duration, Instant},
};

use ffi::{
    Errno, OpContext, Result, guard,
    info::Info,
    memory::RegionMemory,
    object::{Control, Object as _},
    ops::{
        WaitObj,
        av::AvAttr,
        cntr::{CntrAttr, Counter as _},
        cq::{CompletionQueue as _, CqAttr, Entries, Format},
        ep::{Endpoint as _, OpFlags, Recv, Send},
    },
    sys,
};

use crate::{
    attr, av::AddressVector, cntr::Counter, cq::CompletionQueue, domain::Domain, ep::Endpoint,
    fabric::Fabric, wait::pollable::Readable as _,
};

/// A marked place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PanicAt {
    /// The receiving end of a transport is not in the engine.
    Receiver,
    /// The link to a peer is not in its table.
    Link,
    /// A receive is posted with the lock of the engine.
    Post,
    /// A receive is posted without it.
    FastPost,
    /// A message is sent with the lock of the engine.
    Send,
    /// A message is sent without it.
    FastSend,
    /// A long message is copied without it.
    Copy,
}

thread_local!(static NEXT: Cell<Option<PanicAt>> = const { Cell::new(None) });

impl PanicAt {
    /// Panics once if a test of this thread has asked for a panic at this place.
    #[inline]
    pub(crate) fn reached(self) {
        if NEXT.get() == Some(self) {
            NEXT.set(None);
            panic!("a panic that a test makes: {self:?}");
        }
    }
}

/// An endpoint with a queue and a counter for everything.
struct TestEndpoint {
    endpoint: Endpoint,
    cq: Arc<CompletionQueue>,
    counter: Arc<Counter>,
    memory: RegionMemory,
}

/// Length in bytes of the messages; longer than [`crate::engine`] copies with the lock.
const LONG: usize = 200_000;

impl TestEndpoint {
    fn new(threading: u32) -> Self {
        channel::testing::apart();
        let mut info: Info = attr::offer(8192, 0, 0);
        info.domain.as_mut().unwrap().threading = threading;
        let domain = Arc::new(Domain::open(&Arc::new(Fabric { api_version: 0 }), &info).unwrap());
        let endpoint = Endpoint::open(&domain, &info).unwrap();
        let (format, wait_obj) = (Format::Tagged, WaitObj::None);
        let attr = CqAttr { size: 0, flags: 0, format, wait_obj, threshold: false };
        let cq = Arc::new(CompletionQueue::open(&domain, &attr).unwrap());
        let attr = CntrAttr { events: sys::FI_CNTR_EVENTS_COMP, ..CntrAttr::default() };
        let counter = Arc::new(Counter::open(&domain, &attr).unwrap());
        let av = Arc::new(AddressVector::open(&domain, &AvAttr::default(), 0).unwrap());
        let bound = endpoint.with(|engine| {
            engine.peers.av = Some(Arc::clone(&av));
            engine.completions.rx.cq = Some(Arc::clone(&cq));
            engine.completions.tx.cq = Some(Arc::clone(&cq));
            for (_, place) in engine.completions.counters.all() {
                *place = Some(Arc::clone(&counter));
            }
            Ok(())
        });
        bound.unwrap();
        cq.endpoints.add(&endpoint.shared).unwrap();
        counter.endpoints.add(&endpoint.shared).unwrap();
        endpoint.control(Control::Enable).unwrap();
        let memory = RegionMemory::from(&mut *vec![0; LONG].leak());
        Self { endpoint, cq, counter, memory }
    }

    fn list(&self, peer: &Self) {
        let name = peer.endpoint.name().unwrap();
        let insert = |engine: &mut crate::engine::Engine| {
            Ok(engine.peers.av.as_ref().and_then(|av| av.insert_one(&name)))
        };
        assert_eq!(self.endpoint.with(insert), Ok(Some(0)));
    }

    fn recv(&self) -> Result<()> {
        self.endpoint.recv(&Recv {
            buffer: self.memory.part(0, LONG).unwrap(),
            source: u64::MAX,
            tag: Some((7, 0)),
            context: OpContext(1),
            flags: OpFlags::Default,
        })
    }

    fn send(&self, len: usize) -> Result<()> {
        self.endpoint.send(&Send {
            buffer: self.memory.part(0, len).unwrap(),
            dest: 0,
            tag: Some(7),
            data: None,
            context: OpContext(2),
            flags: OpFlags::Default,
        })
    }

    fn read(&self) -> Result<()> {
        self.cq.read(&mut Entries::none())
    }
}

/// Calls a function as an entry point does. Returns `EOTHER` if it panics.
fn guarded(call: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut result = Ok(());
    guard::thread(|| result = call()).and(result)
}

/// Lets an endpoint panic at a place while it posts, sends and polls. Then checks every call on it,
/// and that its peer sees it as closed.
fn panics_at(place: PanicAt, threading: u32) {
    let (one, other) = (TestEndpoint::new(threading), TestEndpoint::new(threading));
    one.list(&other);
    other.list(&one);
    let len = match place {
        PanicAt::Link => 1000,
        PanicAt::Copy => LONG,
        _ => 8,
    };
    NEXT.set((place != PanicAt::Receiver && place != PanicAt::Copy).then_some(place));
    let mut results = vec![guarded(|| one.recv()), guarded(|| one.send(8))];
    if place == PanicAt::FastSend {
        // The first message opened the link.
        results.push(guarded(|| one.send(8)));
    }
    if NEXT.get().is_some() || matches!(place, PanicAt::Receiver | PanicAt::Copy) {
        NEXT.set(None);
        other.send(len).unwrap();
        NEXT.set(Some(place));
        results.push(guarded(|| one.read()));
    }
    assert_eq!(NEXT.take(), None, "{place:?} was not reached");
    assert!(results.contains(&Err(Errno::EOTHER)), "{place:?}: {results:?}");

    for _ in 0..3 {
        let calls: [&dyn Fn() -> Result<()>; 7] = [
            &|| one.read(),
            &|| one.recv(),
            &|| one.send(8),
            &|| one.send(LONG),
            &|| one.endpoint.cancel(OpContext(1)),
            &|| one.counter.wait(100, -1),
            &|| one.endpoint.control(Control::Enable),
        ];
        for (number, call) in calls.into_iter().enumerate() {
            assert_eq!(guarded(call), Err(Errno::EOTHER), "{place:?}: call {number}");
        }
        assert!(one.cq.has_something() && one.counter.read_errors() > 0);
    }
    // The peer hears of it, as if the endpoint had closed.
    let end = Instant::now() + Duration::from_secs(20);
    while matches!(other.send(8), Ok(()) | Err(Errno::EAGAIN)) {
        assert!(Instant::now() < end, "{place:?}: the peer sends for ever");
        let _ = other.read();
    }
    assert_eq!(guarded(|| one.endpoint.close()), Ok(()));
    assert_eq!(one.recv(), Err(Errno::EOTHER));
    other.endpoint.close().unwrap();
}

#[test]
fn an_endpoint_fails_after_a_panic() {
    use PanicAt::{Copy, FastPost, FastSend, Link, Post, Receiver, Send};
    for place in [Receiver, Link, FastPost, Send, FastSend, Copy] {
        panics_at(place, sys::FI_THREAD_SAFE);
    }
    for place in [Receiver, Link, Post, Send, FastSend] {
        panics_at(place, sys::FI_THREAD_DOMAIN);
    }
}
