// SPDX-License-Identifier: BSD-2-Clause
//! Operations that run concurrently with other calls on this endpoint: receives posted by one
//! thread while others use the engine, and deferred work.

use ffi::{
    Result,
    ops::{ep::Recv, work::EndpointOp},
};
use matching::Source;

use super::Endpoint;
use crate::{
    engine::{Engine, tagged},
    rx_fast_path::RxFastPath,
    tx_fast_path::TxFastPath,
    wait::triggers::{DeferredOp, Start},
};

impl Endpoint {
    /// Posts a receive, concurrently with other threads.
    pub(super) fn recv_beside(&self, posts: &RxFastPath, op: &Recv) -> Result<()> {
        let port = &self.port;
        if tagged::is_probe(op) {
            let probed = self.with(|engine| {
                engine.idle.starts();
                let probed = engine.recv(op);
                port.wake(engine);
                probed
            });
            port.make_copies();
            return probed;
        }
        let named = posts.recv(op, |grant, envelope, message| {
            let delivered = self.with(|engine| {
                engine.deliver(grant, envelope, message);
                port.wake(engine);
                Ok(())
            });
            port.make_copies();
            delivered.is_ok()
        })?;
        match named {
            None => Ok(()),
            Some(peer) => self.with(|engine| {
                engine.watch(Source::new(peer));
                Ok(())
            }),
        }
    }

    /// Starts the tx fast path. Once it was stopped it does not start again: a context that opens
    /// anew has other queues.
    pub(crate) fn start_sends(&self, engine: &Engine) {
        if self.port.tx_fast_path.get().is_none()
            && let Some(sends) = TxFastPath::of(engine)
        {
            let _ = self.port.tx_fast_path.set(sends);
        }
    }

    /// Stops the tx fast path, because completions and counts go elsewhere from now on.
    pub(crate) fn stop_sends(&self) {
        if let Some(sends) = self.port.tx_fast_path.get() {
            sends.stop();
        }
    }

    /// Updates the defaults that the rx fast path takes from the endpoint.
    pub(super) fn renew_posts(&self, engine: &Engine) {
        if let Some(posts) = self.port.rx_fast_path.get() {
            posts.set(engine.completions.rx.op_flags, engine.rx.min_multi_recv);
        }
    }
}

impl Start for Endpoint {
    fn start_op(&self, op: &EndpointOp, deferred: Option<DeferredOp>) -> Result<()> {
        self.with(|engine| {
            let started = engine.start(op, deferred);
            self.port.wake(engine);
            started
        })
    }
}
