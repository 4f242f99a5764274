// SPDX-License-Identifier: BSD-2-Clause
//! `fi_trigger(3)`: operations that wait until a counter reaches a threshold.
//!
//! ```text
//! when work is added, when a queue or a counter of the domain is read or set, and in the
//! device thread:
//!     unless another thread does this:
//!         read each counter once
//!         while work is ripe (its counter has reached its threshold):
//!             start it, in the order of thresholds; without room it stays ripe
//! ```
//! One thread at a time starts work, with one value of each counter. If several threads did, work
//! with a higher threshold, or work that was submitted later, could start first while the counter
//! rises. Work is started outside of the lock of the endpoint whose completion made it ripe.
//! Waiting work keeps no object open. If its counter or its endpoint is closed, it is dropped.

use std::{
    fmt::Debug,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use ffi::{
    Errno, Result, flags,
    ops::work::{EndpointOp, WorkName},
};
use parking_lot::Mutex;

use super::pollable::Count;

/// An object that starts operations: an endpoint.
pub(crate) trait Start: Debug + Send + Sync {
    /// Starts an operation that waited for a counter. After `EAGAIN` the caller tries again.
    /// Another error is reported as if the operation had failed later.
    fn start_op(&self, op: &EndpointOp, deferred: Option<DeferredOp>) -> Result<()>;

    /// Checks whether the object has operations of this direction.
    ///
    /// # Errors
    /// The object is a context of the other direction, or it is not enabled.
    fn check_op(&self, _op: &EndpointOp) -> Result<()> {
        Ok(())
    }
}

/// How deferred work is reported when its operation ends.
#[derive(Debug)]
pub(crate) struct DeferredOp {
    /// The counter that counts the operation when it ends.
    pub(crate) counter: Option<Arc<dyn Count>>,
    /// Whether success is also reported to the endpoint's queue and counters.
    pub(crate) reports: bool,
}

/// The waiting work of a domain.
#[derive(Debug, Default)]
pub(crate) struct Triggers {
    waiting: Mutex<Vec<Waiting>>,
    /// Whether work waits or is being started.
    any: AtomicBool,
    /// Held by the thread that starts work.
    turn: Mutex<()>,
    /// Whether a check for ripe work was requested since the last check began.
    again: AtomicBool,
}

/// Waiting work.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The name of deferred work; `None` for an operation with `FI_TRIGGER`.
    pub(crate) name: Option<WorkName>,
    pub(crate) counter: Weak<dyn Count>,
    pub(crate) threshold: u64,
    /// The counter that counts deferred work when it completes.
    pub(crate) completion: Option<Weak<dyn Count>>,
    pub(crate) action: Action,
}

/// The action of ripe work.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "few operations wait")]
pub(crate) enum Action {
    Start(Weak<dyn Start>, EndpointOp),
    Set(Weak<dyn Count>, u64),
    Add(Weak<dyn Count>, u64),
}

impl Triggers {
    /// Adds waiting work.
    pub(crate) fn add(&self, waiting: Waiting) {
        self.waiting.lock().push(waiting);
        self.any.store(true, Ordering::Release);
        self.run();
    }

    /// `FI_CANCEL_WORK`: drops the deferred work with this name, if it has not been started.
    ///
    /// # Errors
    /// `ENOENT` if no such work waits.
    pub(crate) fn cancel(&self, name: WorkName) -> Result<()> {
        self.in_turn(|waiting| {
            let index = waiting.iter().position(|work| work.name == Some(name));
            waiting.remove(index.ok_or(Errno::ENOENT)?);
            Ok(())
        })
    }

    /// `FI_FLUSH_WORK`: drops all deferred work that has not been started.
    pub(crate) fn flush(&self) {
        self.in_turn(|waiting| waiting.retain(|work| work.name.is_none()));
    }

    /// Starts ripe work, unless another thread does.
    #[inline]
    pub(crate) fn run(&self) {
        if self.has_any() {
            self.run_ripe();
        }
    }

    /// Returns whether work waits or is being started.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Waits for the thread that starts work: it uses endpoints and counters meanwhile.
    pub(crate) fn finish_turn(&self) {
        self.in_turn(|_| ());
    }

    /// Changes the waiting work while no thread starts any of it. A thread that starts work removes
    /// it from the list meanwhile, and returns work that finds no room.
    fn in_turn<T>(&self, change: impl FnOnce(&mut Vec<Waiting>) -> T) -> T {
        let turn = self.turn.lock();
        let changed = change(&mut self.waiting.lock());
        drop(turn);
        // Another thread may have found the turn taken.
        self.run();
        changed
    }

    #[cold]
    fn run_ripe(&self) {
        self.again.store(true, Ordering::SeqCst);
        // The thread that has the turn checks once more afterwards, so that no ripe work is missed.
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
            // The sort is stable: work with one threshold stays in the order of submission.
            ripe.sort_by_key(|work| work.threshold);
            self.any.store(!waiting.is_empty() || !ripe.is_empty(), Ordering::Release);
            drop(waiting);
            let found = ripe.len();
            // Work that found no room stays in front of work that ripens later.
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
    /// Returns whether the work is ripe; false if its counter is closed. For deferred work,
    /// failures count too, as `fi_trigger(3)` requires. `seen` contains the counters that were read
    /// in this round, each with its value and its failures.
    fn is_ripe(&self, seen: &mut Vec<(Weak<dyn Count>, u64, u64)>) -> bool {
        let known = seen.iter().find(|(counter, ..)| counter.ptr_eq(&self.counter));
        let (value, failures) = if let Some(&(_, value, failures)) = known {
            (value, failures)
        } else {
            let Some(counter) = self.counter.upgrade() else { return false };
            let (value, failures) = (counter.value(), counter.failures());
            seen.push((Weak::clone(&self.counter), value, failures));
            (value, failures)
        };
        let errors = if self.name.is_some() { failures } else { 0 };
        value.saturating_add(errors) >= self.threshold
    }

    /// Starts the work, or drops it if its object is closed. Returns false if it must be tried
    /// again.
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

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Barrier,
            atomic::{AtomicU64, Ordering::SeqCst},
        },
        time::Duration,
    };

    use ffi::{
        Buffer, OpContext,
        ops::ep::{OpFlags, Recv},
    };

    use super::*;

    #[derive(Debug)]
    struct Reached;

    impl Count for Reached {
        fn value(&self) -> u64 {
            1
        }
        fn failures(&self) -> u64 {
            0
        }
        fn count(&self, _failed: bool) {}
        fn raise(&self, _value: u64) {}
        fn put(&self, _value: u64) {}
    }

    /// An endpoint without room, whose first start takes some time.
    #[derive(Debug)]
    struct Full {
        begun: Barrier,
        starts: AtomicU64,
    }

    impl Start for Full {
        fn start_op(&self, _op: &EndpointOp, _deferred: Option<DeferredOp>) -> Result<()> {
            if self.starts.fetch_add(1, SeqCst) == 0 {
                self.begun.wait();
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(Errno::EAGAIN)
        }
    }

    #[test]
    fn flushed_work_is_not_started_although_a_thread_just_tried_to() {
        let (triggers, counter) = (Triggers::default(), Arc::new(Reached));
        let full = Arc::new(Full { begun: Barrier::new(2), starts: AtomicU64::new(0) });
        let op = EndpointOp::Recv(Recv {
            buffer: Buffer::default(),
            source: 0,
            tag: None,
            context: OpContext(0),
            flags: OpFlags::Default,
        });
        let work = Waiting {
            name: Some(WorkName(1)),
            counter: Arc::downgrade(&counter) as Weak<dyn Count>,
            threshold: 1,
            completion: None,
            action: Action::Start(Arc::downgrade(&full) as Weak<dyn Start>, op),
        };
        std::thread::scope(|scope| {
            scope.spawn(|| triggers.add(work));
            full.begun.wait();
            triggers.flush();
            let starts = full.starts.load(SeqCst);
            triggers.run();
            assert!(!triggers.has_any());
            assert_eq!(full.starts.load(SeqCst), starts);
        });
    }
}
