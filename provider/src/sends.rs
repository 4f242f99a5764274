// SPDX-License-Identifier: BSD-2-Clause
//! Messages that are sent without the lock of the endpoint's engine: by one thread, beside others that
//! poll, copy, read or write.
//!
//! ```text
//! send(op):
//!     to a peer of this host that was met, and nobody acknowledges it, fences it or has
//!     reads or writes under way:
//!         short:                    lock of the lanes; slot; unlock; completion
//!         long:                     lock of what is under way; enter; slot that says where it is;
//!                                   unlock. Who has the engine hears of its end
//!     anything else, or no room:    with the lock of the engine, from the start
//! ```
//! What one thread sends to one peer stays in order whichever way a message takes: it is in the ring of
//! the peer when the call returns.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use channel::{
    contract::Sent,
    sending::Sending,
    wire::{Header, LONGEST},
};
use ffi::{ops::ep::Send, serial::Serial};

use crate::{
    av::AddressVector,
    cntr::Counter,
    cq::CompletionQueue,
    engine::{
        Engine,
        ops::{OpKind, Ops, SendOp, UnderWay},
        outgoing::{EAGER_AT_TIMES, Outgoing},
    },
    sizes::Sizes,
    wait::{callers::Beside, count::count},
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
    sizes: Arc<Sizes>,
    /// Longest message that is copied at once, and longest that is if that is quick.
    at_once: usize,
    if_quick: usize,
    under_way: Arc<Ops>,
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
            sizes: Arc::clone(&engine.sizes),
            at_once: engine.eager_size.min(LONGEST),
            if_quick: (EAGER_AT_TIMES * engine.eager_size).min(LONGEST),
            under_way: Arc::clone(&engine.sends),
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
        let Ok(outgoing) = Outgoing::of(op, op_flags, self.selective, &self.sizes) else {
            return false;
        };
        let needs_engine = outgoing.ack || outgoing.fence || self.rma_under_way.get() > 0;
        if needs_engine || self.over.load(Ordering::Relaxed) {
            return false;
        }
        let Some(peer) = self.av.peer(op.dest) else { return false };
        self.beside.start();
        if op.buffer.len() > self.at_once {
            return self.send_long(peer, op, outgoing);
        }
        if self.near.send_to_open(peer, &outgoing.header(op), &op.buffer) != Some(Sent::Yes) {
            return false;
        }
        self.has_gone(op, outgoing.report);
        true
    }

    /// A message that its receiver reads from where it is, if that is not slower than a copy.
    #[inline(never)]
    fn send_long(&self, peer: u32, op: &Send, outgoing: Outgoing) -> bool {
        let header = outgoing.header(op);
        if outgoing.inject {
            return false;
        }
        if op.buffer.len() <= self.if_quick {
            match self.near.send_if_quick(peer, &header, &op.buffer) {
                Some(Sent::Yes) => {
                    self.has_gone(op, outgoing.report);
                    return true;
                }
                Some(Sent::NoBuffer) => {}
                _ => return false,
            }
        }
        let long = SendOp::of_message(peer, op, outgoing.report);
        let is_told = self.under_way.enter_if(long, |number| {
            let header = Header { op: number, ..header };
            self.near.send_where(peer, &header, &op.buffer) == Some(Sent::Yes)
        });
        if is_told {
            self.beside.act();
        }
        is_told
    }

    /// A message is on its way, and its buffer may be used again.
    #[inline(always)]
    fn has_gone(&self, op: &Send, report: bool) {
        self.beside.act();
        let reports = report && self.reports;
        if reports || self.counts {
            let told = self.told.lock();
            if let (true, Some(cq)) = (reports, &told.cq) {
                cq.complete(OpKind::of_message(op).completion(op.context));
            }
            count(told.counter.as_ref(), false);
        }
    }
}
