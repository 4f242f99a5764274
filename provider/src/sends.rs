// SPDX-License-Identifier: BSD-2-Clause
//! Messages that are sent without the lock of the endpoint's engine: by one thread, beside others that
//! poll, copy, read or write.
//!
//! ```text
//! send(op):
//!     short, to a peer of this host that was met, and nobody acknowledges it, fences it
//!     or has pieces under way:      lock of the outbox; slot; unlock; completion
//!     anything else, or no room:    with the lock of the engine, from the start
//! ```
//! What one thread sends to one peer stays in order whichever way a message takes: it is in the ring of
//! the peer when the call returns.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use channel::{contract::Sent, sending::Sending, wire::LONGEST};
use ffi::{ops::ep::Send, serial::Serial};

use crate::{
    av::AddressVector,
    cntr::Counter,
    cq::CompletionQueue,
    engine::{
        Engine,
        ops::UnderWay,
        outgoing::{Outgoing, kind_of},
        side::count,
    },
    wait::callers::Beside,
};

/// What an endpoint that is enabled needs to send so.
#[derive(Debug)]
pub(crate) struct Sends {
    near: Arc<Sending>,
    av: Arc<AddressVector>,
    /// Whether there is a queue, and a counter, for successes.
    reports: bool,
    counts: bool,
    told: Serial<Told>,
    selective: bool,
    /// Of messages that have no flags of their own; set at any time.
    op_flags: AtomicU64,
    inject_size: usize,
    /// Longest message that is sent so.
    longest: usize,
    rma_under_way: UnderWay,
    beside: Arc<Beside>,
    /// Nothing is sent so any more.
    over: AtomicBool,
}

/// Where successes are reported, and counted; nowhere once that is over.
#[derive(Debug, Default)]
struct Told {
    cq: Option<Arc<CompletionQueue>>,
    counter: Option<Arc<Counter>>,
}

impl Sends {
    /// Those of an endpoint, unless what is sent is recorded, or has checksums.
    pub(crate) fn of(engine: &Engine) -> Option<Self> {
        if engine.records_sends || engine.check {
            return None;
        }
        let told = Told { cq: engine.tx.cq.clone(), counter: engine.counters.send.clone() };
        Some(Self {
            near: Arc::clone(engine.home.near()),
            av: Arc::clone(engine.av.as_ref()?),
            reports: engine.tx.cq.is_some(),
            counts: engine.counters.send.is_some(),
            told: Serial::new(told, engine.domain.locked),
            selective: engine.tx.selective,
            op_flags: AtomicU64::new(engine.tx.op_flags),
            inject_size: engine.inject_size,
            longest: engine.eager_size.min(LONGEST),
            rma_under_way: engine.rma_under_way.clone(),
            beside: engine.idle.callers.beside(),
            over: AtomicBool::new(false),
        })
    }

    /// The flags of messages are others from now on.
    pub(crate) fn set(&self, op_flags: u64) {
        self.op_flags.store(op_flags, Ordering::Relaxed);
    }

    /// From now on nothing is sent so: what is told of messages is told elsewhere.
    pub(crate) fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
        *self.told.lock() = Told::default();
    }

    /// The endpoint is closed.
    pub(crate) fn close(&self) {
        self.stop();
        self.near.stop();
    }

    /// Sends a message if that can be without the engine; whether it is sent.
    #[inline]
    pub(crate) fn send(&self, op: &Send) -> bool {
        let op_flags = self.op_flags.load(Ordering::Relaxed);
        let Ok(outgoing) = Outgoing::of(op, op_flags, self.selective, self.inject_size) else {
            return false;
        };
        let needs_engine = outgoing.ack || outgoing.fence || self.rma_under_way.get() > 0;
        let is_over = self.over.load(Ordering::Relaxed);
        if is_over || needs_engine || op.buffer.len() > self.longest {
            return false;
        }
        let Some(peer) = self.av.peer(op.dest) else { return false };
        self.beside.start();
        if self.near.send_to_open(peer, &outgoing.header(op), &op.buffer) != Some(Sent::Yes) {
            return false;
        }
        self.beside.act();
        let reports = outgoing.report && self.reports;
        if reports || self.counts {
            let told = self.told.lock();
            if let (true, Some(cq)) = (reports, &told.cq) {
                cq.complete(kind_of(op).completion(op.context));
            }
            count(told.counter.as_ref(), false);
        }
        true
    }
}
