// SPDX-License-Identifier: BSD-2-Clause
//! The tx fast path: messages that are sent without the lock of the endpoint's engine. Other
//! threads may poll, copy, read or write meanwhile.
//!
//! ```text
//! send(op):
//!     to a known peer of this host, without acknowledgement or fence, and without reads or
//!     writes in progress:
//!         short:                lock of the tx rings; slot; unlock; completion
//!         long:                 lock of the table of operations; enter the operation; slot with
//!                               the address of the bytes; unlock. The thread that later makes
//!                               progress handles the answer of the receiver
//!     any other, or no room:    with the lock of the engine, from the start
//! ```
//! Messages of one thread to one peer stay in order, whichever path they take, because a message is
//! in the ring of the peer when the call returns.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use channel::{contract::Sent, shm::tx::ShmTx, wire::Header};
use ffi::{ops::ep::Send, serial::Serial};

use crate::{
    av::AddressVector,
    cntr::Counter,
    cq::CompletionQueue,
    engine::{
        Engine,
        ops::{OpKind, Ops, SendOp, UnderWay},
        outgoing::{Outgoing, Route, TxSettings},
    },
    wait::{callers::UnlockedStarts, pollable::count},
};

/// The state of an enabled endpoint that a send needs.
#[derive(Debug)]
pub(crate) struct TxFastPath {
    shm: Arc<ShmTx>,
    av: Arc<AddressVector>,
    /// Whether successes are reported to a queue.
    reports: bool,
    /// Whether successes are counted.
    counts: bool,
    reports_to: Serial<TxReports>,
    selective: bool,
    settings: Arc<TxSettings>,
    under_way: Arc<Ops>,
    rma_under_way: UnderWay,
    unlocked_starts: Arc<UnlockedStarts>,
    /// Set when the fast path may no longer be used.
    stopped: AtomicBool,
}

/// The queue and the counter of successes; both `None` once the fast path has been stopped.
#[derive(Debug, Default)]
struct TxReports {
    cq: Option<Arc<CompletionQueue>>,
    counter: Option<Arc<Counter>>,
}

impl TxFastPath {
    /// Creates the tx fast path. Returns `None` if sends are recorded or have checksums, or if no
    /// address vector is bound.
    pub(crate) fn of(engine: &Engine) -> Option<Self> {
        if engine.records_sends || engine.tx.settings.checks {
            return None;
        }
        let reports_to = TxReports {
            cq: engine.completions.tx.cq.clone(),
            counter: engine.completions.counters.send.clone(),
        };
        Some(Self {
            shm: Arc::clone(engine.peers.transports.shm()),
            av: Arc::clone(engine.peers.av.as_ref()?),
            reports: engine.completions.tx.cq.is_some(),
            counts: engine.completions.counters.send.is_some(),
            reports_to: Serial::new(reports_to, engine.domain.locked),
            selective: engine.completions.tx.selective,
            settings: Arc::clone(&engine.tx.settings),
            under_way: Arc::clone(&engine.tx.ops),
            rma_under_way: engine.tx.rma_under_way.clone(),
            unlocked_starts: engine.idle.callers.unlocked_starts(),
            stopped: AtomicBool::new(false),
        })
    }

    /// Stops the fast path for good, because the queue or the counter of the endpoint changes, or
    /// the endpoint closes.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        *self.reports_to.lock() = TxReports::default();
    }

    /// Stops the fast path, and closes the endpoint's sending end over shared memory.
    pub(crate) fn close(&self) {
        self.stop();
        self.shm.disconnect_all();
    }

    /// Sends a message if it does not need the engine. Returns whether it was sent.
    #[inline]
    pub(crate) fn send(&self, op: &Send) -> bool {
        let Ok(outgoing) = Outgoing::of(op, self.selective, &self.settings) else { return false };
        let needs_engine = outgoing.ack || outgoing.fence || self.rma_under_way.get() > 0;
        if needs_engine || self.stopped.load(Ordering::Relaxed) {
            return false;
        }
        let Some(peer) = self.av.peer(op.dest) else { return false };
        self.unlocked_starts.start();
        #[cfg(test)]
        crate::panic_tests::PanicAt::FastSend.reached();
        let route = self.settings.eager.route(op.buffer.len(), false);
        if route != Route::Eager {
            return self.send_long(peer, op, outgoing, route);
        }
        if self.shm.send_to_open(peer, &outgoing.header(op), &op.buffer) != Some(Sent::Yes) {
            return false;
        }
        self.report_sent(op, outgoing.report);
        true
    }

    /// Sends a message that is longer than the eager size. The receiver copies it from user memory,
    /// unless a copy into buffers of this endpoint is faster. Returns whether the message was sent.
    #[inline(never)]
    fn send_long(&self, peer: u32, op: &Send, outgoing: Outgoing, route: Route) -> bool {
        let header = outgoing.header(op);
        if outgoing.inject {
            return false;
        }
        if route == Route::IfQuick {
            match self.shm.send_if_quick(peer, &header, &op.buffer) {
                Some(Sent::Yes) => {
                    self.report_sent(op, outgoing.report);
                    return true;
                }
                Some(Sent::NoBuffer) => {}
                _ => return false,
            }
        }
        let long = SendOp::of_message(peer, op, outgoing.report);
        let is_sent = self.under_way.enter_if(long, |number| {
            let header = Header { op: number, ..header };
            self.shm.send_where(peer, &header, &op.buffer) == Some(Sent::Yes)
        });
        if is_sent {
            self.unlocked_starts.act();
        }
        is_sent
    }

    /// Reports and counts a message whose buffer may be reused.
    #[inline(always)]
    fn report_sent(&self, op: &Send, report: bool) {
        self.unlocked_starts.act();
        let reports = report && self.reports;
        if reports || self.counts {
            let reports_to = self.reports_to.lock();
            if let (true, Some(cq)) = (reports, &reports_to.cq) {
                cq.complete(OpKind::of_message(op).completion(op.context));
            }
            count(reports_to.counter.as_ref(), false);
        }
    }
}
