// SPDX-License-Identifier: BSD-2-Clause
//! Helpers of tests: they connect two endpoints over each transport, and start operations of one
//! endpoint at the other.

use std::{fmt::Debug, sync::Arc};

use channel::{
    address::unpack,
    contract::Settings,
    shm::segment::Segment,
    testing::{
        self,
        loopback::{Loopback, LoopbackEnd},
    },
};
use ffi::{
    Buffer, Errno, OpContext, Result,
    atomic::{Datatype, Form, Op},
    flags,
    memory::RegionMemory,
    ops::{
        WaitObj,
        cq::{Completion, CqAttr, Failure, Format},
        ep::{
            OpFlags, Recv, Send,
            atomic::Atomic,
            rma::{RemotePart, RemoteParts, Rma},
        },
        mr,
    },
};

use crate::{
    address,
    cq::CompletionQueue,
    engine::{Engine, inbound::Inbound},
    testing::endpoint,
};

/// Steps after which a test gives up.
pub(super) const STEPS: usize = 2000;
pub(super) const KEY: u64 = 5;
pub(super) const TAG: u64 = 7;
pub(super) const AT_ONE: OpContext = OpContext(1);
pub(super) const AT_OTHER: OpContext = OpContext(2);

/// An endpoint and the completions that were read from its queue.
pub(super) struct TestNode {
    pub(super) own: Arc<Segment>,
    pub(super) end: Option<Arc<LoopbackEnd>>,
    pub(super) engine: Engine,
    pub(super) cq: Arc<CompletionQueue>,
    pub(super) reported: Vec<std::result::Result<Completion, Failure>>,
}

impl TestNode {
    pub(super) fn new(net: Option<&Arc<Loopback>>, port: u16, settings: Settings) -> Self {
        let (own, mut engine) = endpoint(port);
        if port.is_multiple_of(2) {
            // One end of each pair gets the times of sends.
            own.ask_for_times();
        }
        let end = net.map(|net| net.end(own.identity()));
        engine.tx.set_checks(settings.checks);
        engine.peers.transports.set(settings);
        if let Some(end) = &end {
            engine.peers.transports.join(end);
            engine.inbound = Inbound::new(&engine.peers.transports);
        }
        let (format, wait_obj) = (Format::Tagged, WaitObj::None);
        let attr = CqAttr { size: 0, flags: 0, format, wait_obj, threshold: false };
        let cq = Arc::new(CompletionQueue::open(&engine.domain, &attr).unwrap());
        engine.completions.rx.cq = Some(Arc::clone(&cq));
        engine.completions.tx.cq = Some(Arc::clone(&cq));
        Self { own, end, engine, cq, reported: Vec::new() }
    }

    /// Inserts a peer into the empty address vector, as its first address.
    pub(super) fn list(&mut self, peer: &Self) {
        let bytes = address::to_bytes(unpack(peer.engine.peers.own_address()));
        assert_eq!(self.engine.peers.av.as_ref().unwrap().insert_one(&bytes), Some(0));
    }

    /// Makes the next copy, or progress if no copy is due. Reads the completions.
    pub(super) fn step(&mut self) {
        // A copy is a separate step: either end may die before and after it.
        if !self.engine.make_copy() {
            self.engine.progress();
        }
        self.reported.extend(std::iter::from_fn(|| self.cq.next()));
    }

    /// Checks peers, and makes a step.
    pub(super) fn look(&mut self) {
        self.engine.checks.hurry();
        self.engine.look_around();
        self.step();
    }

    /// Returns the result of the operation with this context; `None` if it was not reported.
    pub(super) fn has_reported(
        &self,
        context: OpContext,
    ) -> Option<std::result::Result<(), Errno>> {
        self.reported.iter().find_map(|entry| match entry {
            Ok(completion) => (completion.context == context).then_some(Ok(())),
            Err(failure) => (failure.completion.context == context).then_some(Err(failure.errno)),
        })
    }

    pub(super) fn has_failed_with(&self, errno: Errno) -> bool {
        self.reported.iter().any(|entry| entry.is_err_and(|failure| failure.errno == errno))
    }

    pub(super) fn die(&self) {
        if let Some(end) = &self.end {
            end.die();
        }
        testing::die(&self.own);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.is_dead())
    }

    /// Returns whether no operation or copy is in progress, no answer is pending, and no buffer is
    /// lent.
    pub(super) fn is_at_rest(&mut self) -> bool {
        let engine = &mut self.engine;
        !engine.tx.ops.any(|_| true)
            && engine.rx.is_idle()
            && engine.tx.has_no_streams()
            && engine.peers.has_no_pending_answers()
            && engine.rx.copies.is_empty()
            && !engine.peers.transports.has_unfinished_sends()
    }
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestOp {
    Send,
    /// A send with `FI_DELIVERY_COMPLETE`.
    SendAndHear,
    Write,
    Read,
    Fetch,
}

pub(super) const ALL: [TestOp; 5] =
    [TestOp::Send, TestOp::SendAndHear, TestOp::Write, TestOp::Read, TestOp::Fetch];

/// An operation, its memory, and the expected bytes.
pub(super) struct Operation {
    pub(super) what: TestOp,
    pub(super) from: Buffer,
    pub(super) to: Buffer,
    pub(super) expected: Vec<u8>,
}

/// Allocates memory with these bytes, which is never freed.
pub(super) fn memory(bytes: &[u8]) -> (RegionMemory, Buffer) {
    let window = RegionMemory::from(&mut *bytes.to_vec().leak());
    let buffer = window.part(0, bytes.len()).unwrap();
    (window, buffer)
}

pub(super) fn read(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    assert_eq!(buffer.read_to(&mut bytes), bytes.len());
    bytes
}

impl Operation {
    /// Prepares an operation: posts its receive, or registers its memory, at the other end.
    pub(super) fn prepare(what: TestOp, len: usize, other: &mut TestNode) -> Self {
        let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8 + 1).collect();
        let (from_window, from) = memory(&bytes);
        let (to_window, to) = memory(&vec![0; len]);
        let window = match what {
            TestOp::Send | TestOp::SendAndHear => {
                let recv = Recv {
                    buffer: to.clone(),
                    source: 0,
                    tag: Some((TAG, 0)),
                    context: AT_OTHER,
                    flags: OpFlags::Default,
                };
                other.engine.recv(&recv).unwrap();
                return Self { what, from, to, expected: bytes };
            }
            TestOp::Write => to_window,
            TestOp::Read | TestOp::Fetch => from_window,
        };
        let access = flags::REMOTE_READ | flags::REMOTE_WRITE;
        let attr = mr::MrAttr { window, access, offset: 0, requested_key: KEY, flags: 0 };
        other.engine.domain.regions.register(&attr).unwrap();
        Self { what, from, to, expected: bytes }
    }

    pub(super) fn start(&self, one: &mut TestNode) -> Result<()> {
        let part = RemotePart { addr: 0, len: self.expected.len() as u64, key: KEY };
        let (remote, context) = (RemoteParts::new([part])?, AT_ONE);
        match self.what {
            TestOp::Send | TestOp::SendAndHear => {
                let hear =
                    if self.what == TestOp::SendAndHear { flags::DELIVERY_COMPLETE } else { 0 };
                one.engine.send(&Send {
                    buffer: self.from.clone(),
                    dest: 0,
                    tag: Some(TAG),
                    data: None,
                    context,
                    flags: OpFlags::Given(hear),
                })
            }
            TestOp::Write | TestOp::Read => {
                let write = self.what == TestOp::Write;
                let buffer = if write { &self.from } else { &self.to };
                one.engine.rma(&Rma {
                    write,
                    remote,
                    buffer: buffer.clone(),
                    peer: 0,
                    data: None,
                    context,
                    flags: OpFlags::Default,
                })
            }
            TestOp::Fetch => one.engine.atomic(&Atomic {
                form: Form::Fetch,
                datatype: Datatype::Uint64,
                op: Op::Sum,
                remote,
                result: self.to.clone(),
                operand: memory(&vec![0; self.expected.len()]).1,
                compare: Buffer::default(),
                peer: 0,
                context,
                flags: OpFlags::Default,
            }),
        }
    }

    pub(super) fn is_received(&self) -> bool {
        matches!(self.what, TestOp::Send | TestOp::SendAndHear)
    }

    /// Checks that the bytes of a successful operation are right.
    pub(super) fn check(&self, case: &dyn Debug) {
        assert!(read(&self.to) == self.expected, "wrong bytes: {case:?}");
    }
}

/// Creates two endpoints. The address vector of each one contains the other.
pub(super) fn pair(net: Option<&Arc<Loopback>>, port: u16, settings: Settings) -> [TestNode; 2] {
    let mut nodes = [port, port + 1].map(|port| TestNode::new(net, port, settings));
    let [one, other] = &mut nodes;
    one.list(other);
    other.list(one);
    nodes
}

/// Creates two endpoints as [`pair`] does, and sends a message in each direction.
pub(super) fn connected_pair(
    net: Option<&Arc<Loopback>>,
    port: u16,
    settings: Settings,
) -> [TestNode; 2] {
    let mut nodes = pair(net, port, settings);
    for _ in 0..2 {
        let [one, other] = &mut nodes;
        let hello = Operation::prepare(TestOp::Send, 8, other);
        hello.start(one).unwrap();
        other.step();
        one.step();
        assert_eq!(other.has_reported(AT_OTHER), Some(Ok(())));
        nodes.iter_mut().for_each(|node| node.reported.clear());
        nodes.reverse();
    }
    nodes
}

/// Starts an operation. While it finds no room, both ends make progress.
pub(super) fn starts(operation: &Operation, one: &mut TestNode, other: &mut TestNode) {
    for _ in 0..STEPS {
        match operation.start(one) {
            Err(Errno::EAGAIN) => {}
            started => return started.unwrap(),
        }
        other.step();
        one.step();
    }
    panic!("each attempt returns EAGAIN");
}

pub(super) fn lengths(what: TestOp) -> &'static [usize] {
    match what {
        TestOp::Fetch => &[8, 256, 4096],
        _ => &[0, 8, 207, 209, 4096, 8192, 16_384, 16_385, 300_000, 5_000_000],
    }
}

pub(super) const SETTINGS: [Settings; 3] = [
    Settings { checks: false, copies: true },
    Settings { checks: false, copies: false },
    Settings { checks: true, copies: true },
];

pub(super) fn transports() -> [Option<Arc<Loopback>>; 2] {
    [None, Some(Arc::default())]
}

/// Checks the survivor after the other end died: all operations end, and a successful one has the
/// right bytes.
pub(super) fn survive(
    survivor: &mut TestNode,
    context: OpContext,
    operation: &Operation,
    case: &dyn Debug,
) {
    let is_asked = context == AT_ONE || operation.is_received();
    for _ in 0..STEPS {
        let is_told = !is_asked || survivor.has_reported(context).is_some();
        if is_told && survivor.is_at_rest() {
            break;
        }
        survivor.look();
    }
    assert!(survivor.is_at_rest(), "an operation never ends: {case:?}");
    if is_asked {
        let end = survivor.has_reported(context);
        assert!(end.is_some(), "the operation was not reported: {case:?}");
        // A send without acknowledgement may succeed although the bytes are lost.
        if end == Some(Ok(())) && (context == AT_OTHER || operation.what != TestOp::Send) {
            operation.check(case);
        }
    }
}
