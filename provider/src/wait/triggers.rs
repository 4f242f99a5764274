// SPDX-License-Identifier: BSD-2-Clause
//! `fi_trigger(3)`: operations that wait until a counter reaches a threshold.
//!
//! ```text
//! whenever somebody looks at a queue or a counter of the domain:
//!     unless another thread does:
//!         read each counter once
//!         while work is ripe (its counter has reached its threshold):
//!             start it, by threshold; without room it stays ripe
//! ```
//! One thread at a time, and one value of a counter for all: otherwise work of a higher threshold,
//! or submitted later, could be started first while the counter rises.
//! Work is started outside of the lock of the endpoint whose completion made it
//! ripe. It holds no object open: work of a closed one is dropped.

use std::{
    fmt::Debug,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use ffi::{
    Errno, Result, flags,
    ops::work::{Op, WorkName},
};
use parking_lot::Mutex;

use super::count::Count;

/// What starts an operation: an endpoint.
pub(crate) trait Start: Debug + Send + Sync {
    /// Starts an operation that waited for a counter. One that cannot be started ends as one
    /// that fails later does; it is tried again after `EAGAIN`.
    fn start_op(&self, op: &Op, deferred: Option<DeferredOp>) -> Result<()>;
}

/// How the operation of deferred work ends.
#[derive(Debug)]
pub(crate) struct DeferredOp {
    /// What counts it.
    pub(crate) counter: Option<Arc<dyn Count>>,
    /// Whether success is told to the endpoint's queue and counters, too.
    pub(crate) reports: bool,
}

/// The work of a domain that waits.
#[derive(Debug, Default)]
pub(crate) struct Triggers {
    waiting: Mutex<Vec<Waiting>>,
    any: AtomicBool,
    /// Of who starts work.
    turn: Mutex<()>,
    /// Somebody looked who had no turn.
    again: AtomicBool,
}

/// Work that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Deferred work has one, an operation with `FI_TRIGGER` none.
    pub(crate) name: Option<WorkName>,
    pub(crate) counter: Weak<dyn Count>,
    pub(crate) threshold: u64,
    pub(crate) completion: Option<Weak<dyn Count>>,
    pub(crate) action: Action,
}

/// A counter as it was read.
struct Seen {
    counter: Weak<dyn Count>,
    value: u64,
    failures: u64,
}

/// What is done when its time has come.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "few wait")]
pub(crate) enum Action {
    Start(Weak<dyn Start>, Op),
    Set(Weak<dyn Count>, u64),
    Add(Weak<dyn Count>, u64),
}

impl Triggers {
    /// An operation with `FI_TRIGGER`.
    pub(crate) fn add_op(
        &self,
        endpoint: Weak<dyn Start>,
        op: Op,
        counter: Weak<dyn Count>,
        threshold: u64,
    ) {
        self.add(Waiting {
            name: None,
            counter,
            threshold,
            completion: None,
            action: Action::Start(endpoint, op),
        });
    }

    /// Work that waits from here on.
    pub(crate) fn add(&self, waiting: Waiting) {
        self.waiting.lock().push(waiting);
        self.any.store(true, Ordering::Release);
        self.run();
    }

    /// `FI_CANCEL_WORK`.
    pub(crate) fn cancel(&self, name: WorkName) -> Result<()> {
        let mut waiting = self.waiting.lock();
        let index = waiting.iter().position(|work| work.name == Some(name)).ok_or(Errno::ENOENT)?;
        waiting.remove(index);
        Ok(())
    }

    /// `FI_FLUSH_WORK`: drops the deferred work that has not been started.
    pub(crate) fn flush(&self) {
        self.waiting.lock().retain(|work| work.name.is_none());
    }

    /// Starts what is ripe.
    #[inline]
    pub(crate) fn run(&self) {
        if self.any.load(Ordering::Relaxed) {
            self.run_ripe();
        }
    }

    #[cold]
    fn run_ripe(&self) {
        self.again.store(true, Ordering::SeqCst);
        // Who has the turn looks once more after it, so that nothing ripens unseen.
        while self.again.load(Ordering::SeqCst) {
            let Some(_turn) = self.turn.try_lock() else { return };
            while self.again.swap(false, Ordering::SeqCst) {
                self.start_ripe();
            }
        }
    }

    fn start_ripe(&self) {
        loop {
            let mut waiting = self.waiting.lock();
            waiting.retain(|work| work.counter.strong_count() > 0);
            let mut seen = Vec::new();
            let mut ripe: Vec<_> = waiting.extract_if(.., |work| work.is_ripe(&mut seen)).collect();
            // Stable: of one threshold in the order of submission.
            ripe.sort_by_key(|work| work.threshold);
            self.any.store(!waiting.is_empty() || !ripe.is_empty(), Ordering::Release);
            drop(waiting);
            let found = ripe.len();
            // What finds no room keeps its place in front of what ripens later.
            ripe.retain(|work| !work.start());
            let stuck = ripe.len() == found;
            let mut waiting = self.waiting.lock();
            waiting.splice(..0, ripe);
            self.any.store(!waiting.is_empty(), Ordering::Release);
            if stuck {
                return;
            }
        }
    }
}

impl Waiting {
    /// Failures count for deferred work, as `fi_trigger(3)` has it. `seen` has the counters that
    /// were read in this round.
    fn is_ripe(&self, seen: &mut Vec<Seen>) -> bool {
        let known = seen.iter().find(|seen| seen.counter.ptr_eq(&self.counter));
        let (value, failures) = if let Some(seen) = known {
            (seen.value, seen.failures)
        } else {
            let Some(counter) = self.counter.upgrade() else { return false };
            let (value, failures) = (counter.value(), counter.failures());
            seen.push(Seen { counter: Weak::clone(&self.counter), value, failures });
            (value, failures)
        };
        let errors = if self.name.is_some() { failures } else { 0 };
        value.saturating_add(errors) >= self.threshold
    }

    /// Starts it; false if it must be tried again.
    fn start(&self) -> bool {
        match &self.action {
            Action::Start(endpoint, op) => {
                let Some(endpoint) = endpoint.upgrade() else { return true };
                let deferred = self.name.map(|_| DeferredOp {
                    counter: self.completion.as_ref().and_then(Weak::upgrade),
                    reports: op.flags() & flags::COMPLETION != 0,
                });
                return endpoint.start_op(op, deferred) != Err(Errno::EAGAIN);
            }
            Action::Set(counter, value) => {
                if let Some(counter) = counter.upgrade() {
                    counter.put(*value);
                }
            }
            Action::Add(counter, value) => {
                if let Some(counter) = counter.upgrade() {
                    counter.raise(*value);
                }
            }
        }
        true
    }
}
