// SPDX-License-Identifier: BSD-2-Clause
//! `fi_tx_context` and `fi_rx_context`: one direction of an index of a scalable endpoint
//! ([`crate::sep`]).
//!
//! Both contexts of an index work on one endpoint. Each binds, enables, uses and closes only one
//! direction of the endpoint.

use std::{
    fmt,
    net::SocketAddrV4,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use channel::address::pack;
use ffi::{
    Errno, OpContext, Result, flags,
    object::{Bound, Control, Object, Variables, direction},
    ops::{
        self,
        ep::{Recv, Send, atomic::Atomic, rma::Rma},
        work::{EndpointOp, Trigger},
    },
    sys,
};

use crate::{
    cntr::Counter,
    cq::CompletionQueue,
    domain::{Domain, OfDomain},
    engine::{Engine, rma::wait_for_copies},
    ep::{Endpoint, start_later},
    wait::{
        pollable::Pollable as _,
        triggers::{DeferredOp, Start},
    },
};

/// Maximum time for which a close waits for long messages that are being received.
const LINGER: Duration = Duration::from_secs(2);

/// The direction of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Transmit,
    Receive,
}

impl Direction {
    /// Returns the bind flags of the counters of a direction.
    fn flags(self) -> u64 {
        match self {
            Self::Transmit => flags::SEND | flags::READ | flags::WRITE,
            Self::Receive => flags::RECV | flags::REMOTE_READ | flags::REMOTE_WRITE,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Transmit => "transmit",
            Self::Receive => "receive",
        })
    }
}

/// A scalable endpoint, as its contexts see it. It is open as long as one of them is.
pub(crate) trait Contexts: fmt::Debug + std::marker::Send + Sync {
    /// Returns the address under which peers list all contexts.
    fn address(&self) -> SocketAddrV4;

    /// Notes that a context is closed.
    fn closed(&self, index: usize, direction: Direction);
}

/// A transmit or receive context of a scalable endpoint.
#[derive(Debug)]
pub(crate) struct EpContext {
    of: Arc<dyn Contexts>,
    index: usize,
    direction: Direction,
    endpoint: Arc<Endpoint>,
    enabled: AtomicBool,
    /// The context of which this object is an alias. That context stays open as long as the alias.
    aliased: Option<Arc<EpContext>>,
}

impl EpContext {
    pub(crate) fn new(
        of: Arc<dyn Contexts>,
        index: usize,
        direction: Direction,
        endpoint: &Arc<Endpoint>,
    ) -> Self {
        let endpoint = Arc::clone(endpoint);
        Self { of, index, direction, endpoint, enabled: AtomicBool::new(false), aliased: None }
    }

    /// Returns the packed address under which peers list the scalable endpoint.
    pub(crate) fn listed_address(&self) -> u64 {
        pack(self.of.address())
    }

    /// Checks that an operation of a direction may start. Returns `EOPNOTSUPP` if the context has
    /// the other direction, and `EOPBADSTATE` if it is not enabled.
    #[inline]
    fn check(&self, direction: Direction) -> Result<()> {
        if self.direction != direction {
            return Err(Errno::EOPNOTSUPP);
        }
        let enabled = self.aliased.as_ref().map_or(&self.enabled, |context| &context.enabled);
        if enabled.load(Ordering::Acquire) { Ok(()) } else { Err(Errno::EOPBADSTATE) }
    }

    fn enable(&self) -> Result<()> {
        let is_first = self.endpoint.with(|engine| Ok(!engine.enabled))?;
        if is_first {
            self.endpoint.control(Control::Enable)?;
        }
        if self.direction == Direction::Transmit {
            self.endpoint.with(|engine| {
                self.endpoint.start_sends(engine);
                Ok(())
            })?;
        }
        self.enabled.store(true, Ordering::Release);
        Ok(())
    }

    /// Waits until peers have taken what was sent ([`Endpoint::linger`]), drops the transmits that
    /// are still in progress, and waits until no peer copies from local memory or to it.
    fn end_transmits(&self) -> Result<()> {
        self.endpoint.linger(false);
        self.endpoint.stop_sends();
        self.endpoint.with(|engine| {
            engine.drop_transmits();
            Ok(())
        })?;
        let shared = &self.endpoint.shared;
        let is_reached = || shared.lock().as_ref().is_some_and(Engine::is_reached);
        wait_for_copies(shared.address, is_reached);
        Ok(())
    }

    /// Drops posted receives. Waits up to [`LINGER`] for messages that are being received, and then
    /// drops their receives too. Copies that another thread makes are waited for in any case.
    fn end_receives(&self) {
        let end = Instant::now() + LINGER;
        let shared = &self.endpoint.shared;
        loop {
            let at_once = Instant::now() >= end;
            if shared.lock().as_mut().is_none_or(|engine| engine.drop_receives(at_once)) {
                return;
            }
            shared.progress();
            self.domain().endpoints.progress_others(shared);
            std::thread::yield_now();
        }
    }

    /// Removes the queue and the counters of this direction from the endpoint.
    fn unbind(&self) -> Result<()> {
        let shared = &self.endpoint.shared;
        if self.direction == Direction::Transmit {
            self.endpoint.stop_sends();
        }
        let (queue, counters) = self.endpoint.with(|engine| {
            let (own, other) = match self.direction {
                Direction::Transmit => (&mut engine.completions.tx, &engine.completions.rx),
                Direction::Receive => (&mut engine.completions.rx, &engine.completions.tx),
            };
            let queue = own.cq.take();
            own.selective = false;
            let is_other = |queue: &Arc<CompletionQueue>| {
                other.cq.as_ref().is_some_and(|other| Arc::ptr_eq(other, queue))
            };
            let queue = queue.filter(|queue| !is_other(queue));
            let mut taken: Vec<Arc<Counter>> = Vec::new();
            let mut left: Vec<Arc<Counter>> = Vec::new();
            for (flag, place) in engine.completions.counters.all() {
                if flag & self.direction.flags() == 0 {
                    left.extend(place.clone());
                } else {
                    taken.extend(place.take());
                }
            }
            taken.retain(|counter| !left.iter().any(|other| Arc::ptr_eq(other, counter)));
            Ok((queue, taken))
        })?;
        if let Some(queue) = queue {
            queue.endpoints.remove(shared);
        }
        for counter in counters {
            counter.endpoints.remove(shared);
        }
        Ok(())
    }
}

impl Start for EpContext {
    fn start_op(&self, op: &EndpointOp, deferred: Option<DeferredOp>) -> Result<()> {
        self.endpoint.start_op(op, deferred)
    }

    fn check_op(&self, op: &EndpointOp) -> Result<()> {
        self.check(match op {
            EndpointOp::Recv(_) => Direction::Receive,
            _ => Direction::Transmit,
        })
    }
}

impl Object for EpContext {
    type Raw = sys::fid_ep;

    fn finish_uses(&self) {
        self.endpoint.domain.triggers.finish_turn();
    }

    fn bind(&self, other: &Bound, bind_flags: u64) -> Result<()> {
        match other.class() {
            sys::FI_CLASS_CQ => {
                let own = match self.direction {
                    Direction::Transmit => flags::TRANSMIT,
                    Direction::Receive => flags::RECV,
                };
                ffi::object::check_flags(bind_flags, own | flags::SELECTIVE_COMPLETION)?;
                self.endpoint.bind_object(other, bind_flags)
            }
            sys::FI_CLASS_CNTR => {
                ffi::object::check_flags(bind_flags, self.direction.flags())?;
                self.endpoint.bind_object(other, bind_flags)
            }
            sys::FI_CLASS_EQ => self.endpoint.bind_object(other, bind_flags),
            // The address vector is bound to the scalable endpoint.
            _ => Err(Errno::EINVAL),
        }
    }

    fn control(&self, command: Control<'_>) -> Result<()> {
        match command {
            Control::Enable => self.enable(),
            other => self.endpoint.control(other),
        }
    }

    fn variables(self: &Arc<Self>) -> Result<Arc<dyn Variables>> {
        self.endpoint.variables()
    }

    fn alias(self: &Arc<Self>, alias_flags: u64) -> Result<Arc<Self>> {
        let own = self.direction == Direction::Transmit;
        if direction(alias_flags) != (own, !own) {
            return Err(Errno::EINVAL);
        }
        let of = Arc::clone(&self.of);
        let mut alias =
            Self::new(of, self.index, self.direction, &self.endpoint.alias(alias_flags)?);
        alias.aliased = Some(Arc::clone(self));
        Ok(Arc::new(alias))
    }

    fn close(&self) -> Result<()> {
        // A forked child has neither the segment nor the threads.
        if self.aliased.is_some() || !self.endpoint.shared.own.is_ours() {
            return Ok(());
        }
        // The close of the scalable endpoint unbinds the objects of an endpoint that has failed.
        if !self.endpoint.shared.has_failed() {
            match self.direction {
                Direction::Transmit => self.end_transmits()?,
                Direction::Receive => self.end_receives(),
            }
            self.unbind()?;
        }
        self.of.closed(self.index, self.direction);
        Ok(())
    }
}

impl OfDomain for EpContext {
    fn domain(&self) -> &Arc<Domain> {
        &self.endpoint.domain
    }
}

impl ops::ep::Endpoint for EpContext {
    #[inline]
    fn send(&self, op: &Send) -> Result<()> {
        self.check(Direction::Transmit)?;
        self.endpoint.send(op)
    }

    #[inline]
    fn recv(&self, op: &Recv) -> Result<()> {
        self.check(Direction::Receive)?;
        self.endpoint.recv(op)
    }

    fn rma(&self, op: &Rma) -> Result<()> {
        self.check(Direction::Transmit)?;
        self.endpoint.rma(op)
    }

    fn atomic(&self, op: &Atomic) -> Result<()> {
        self.check(Direction::Transmit)?;
        self.endpoint.atomic(op)
    }

    fn trigger(self: &Arc<Self>, trigger: &Trigger, op: EndpointOp) -> Result<()> {
        start_later(self, trigger, op)
    }

    fn cancel(&self, context: OpContext) -> Result<()> {
        match self.direction {
            Direction::Transmit => Err(Errno::ENOENT),
            Direction::Receive => self.endpoint.cancel(context),
        }
    }

    fn name(&self) -> Result<Vec<u8>> {
        Ok(self.endpoint.shared.name_at(self.of.address()))
    }

    fn option(&self, name: u32) -> Result<usize> {
        self.endpoint.option(name)
    }

    fn set_option(&self, name: u32, value: usize) -> Result<()> {
        self.endpoint.set_option(name, value)
    }
}
