// SPDX-License-Identifier: BSD-2-Clause
//! `fi_cntr(3)`: counters of operations. Reading a counter makes progress.

use std::{
    ffi::c_int,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use ffi::{
    Errno, Result,
    object::{Control, Object},
    ops::{self, cntr::CntrAttr},
    sys,
};

use crate::{
    domain::{Domain, OfDomain},
    wait::{
        Deadline, FOR_EVER,
        idle::BACKOFF,
        pollable::{Count, Progress, Readable},
        set::WaitSet,
    },
};

/// A counter.
#[derive(Debug)]
pub(crate) struct Counter {
    domain: Arc<Domain>,
    count: AtomicU64,
    errors: AtomicU64,
    /// The values of `count` and `errors` when they were last read.
    seen: [AtomicU64; 2],
    /// Endpoints whose operations are counted here.
    pub(crate) endpoints: WaitSet,
    /// Whether other events may change the counts too: accesses of peers to a region, deferred
    /// operations that complete, or deferred work that sets the counter or adds to it.
    elsewhere: AtomicBool,
}

impl Counter {
    pub(crate) fn open(domain: &Arc<Domain>, attr: &CntrAttr) -> Result<Self> {
        ffi::object::check_flags(attr.flags, 0)?;
        if attr.events != sys::FI_CNTR_EVENTS_COMP {
            tracing::info!("fi_cntr_open: counters count completions only (FI_CNTR_EVENTS_COMP)");
            return Err(Errno::ENOSYS);
        }
        Ok(Self {
            domain: Arc::clone(domain),
            count: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            seen: Default::default(),
            endpoints: WaitSet::with_wait(domain.locked, attr.wait_obj)?,
            elsewhere: AtomicBool::new(false),
        })
    }

    /// Declares that progress on any endpoint of the domain may change the counts from now on.
    pub(crate) fn expect_other_events(&self) {
        self.elsewhere.store(true, Ordering::Relaxed);
    }

    fn is_counted_elsewhere(&self) -> bool {
        self.elsewhere.load(Ordering::Relaxed)
    }

    /// Makes progress on the endpoints that may change this counter, and starts work that waited
    /// for a counter.
    fn progress(&self) -> Progress {
        let all = self.is_counted_elsewhere() || self.endpoints.is_empty();
        let endpoints = if all { &self.domain.endpoints } else { &self.endpoints };
        let progress = endpoints.progress_and_look();
        self.domain.triggers.run();
        progress
    }

    /// Returns whether threads that wait for this counter must poll. This is so if endpoints whose
    /// doorbells do not wake these threads may count here, and no device thread makes progress on
    /// them.
    fn needs_polling(&self) -> bool {
        self.is_counted_elsewhere() && self.domain.device_thread().is_none()
    }

    fn has_changed(&self) -> bool {
        let differs = |count: &AtomicU64, seen: &AtomicU64| {
            count.load(Ordering::SeqCst) != seen.load(Ordering::Relaxed)
        };
        let [count, errors] = &self.seen;
        differs(&self.count, count) || differs(&self.errors, errors)
    }

    /// Prepares for a sleep on the descriptor.
    ///
    /// # Errors
    /// `EAGAIN` if the counts differ from the values that were last read, or if there is work to do
    /// first; `EINVAL` without a descriptor.
    pub(crate) fn try_wait(&self) -> Result<()> {
        self.progress();
        // The doorbells of endpoints outside of `self.endpoints` do not wake this thread.
        let at_most = if self.needs_polling() { BACKOFF } else { Duration::MAX };
        self.endpoints.try_wait(&self.domain.triggers, at_most, || self.has_changed())
    }

    fn look(&self, errors: bool) -> u64 {
        let counter = if errors { &self.errors } else { &self.count };
        let value = counter.load(Ordering::SeqCst);
        self.seen[usize::from(errors)].store(value, Ordering::Relaxed);
        value
    }
}

impl Count for Counter {
    fn value(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    fn failures(&self) -> u64 {
        self.errors.load(Ordering::Acquire)
    }

    #[inline]
    fn count(&self, failed: bool) {
        let counter = if failed { &self.errors } else { &self.count };
        counter.fetch_add(1, Ordering::SeqCst);
        self.endpoints.ring();
        // If a thread of the application counts, the device thread must be woken to start the
        // deferred work that waited for this count.
        if self.domain.triggers.has_any()
            && let Some(device) = self.domain.device_thread()
        {
            device.run_triggers();
        }
    }

    fn raise(&self, value: u64) {
        self.count.fetch_add(value, Ordering::SeqCst);
        self.endpoints.ring();
    }

    fn put(&self, value: u64) {
        self.count.store(value, Ordering::SeqCst);
        // The value that was last read must differ from the new one, so that the change is noticed.
        self.seen[0].store(!value, Ordering::Relaxed);
        self.endpoints.ring();
    }
}

impl Readable for Counter {
    fn has_something(&self) -> bool {
        self.progress() == Progress::Failed || self.has_changed()
    }
}

impl Object for Counter {
    type Raw = sys::fid_cntr;

    fn finish_uses(&self) {
        self.domain.triggers.finish_turn();
    }

    fn control(&self, command: Control<'_>) -> Result<()> {
        self.endpoints.control(command)
    }
}

impl OfDomain for Counter {
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

impl ops::cntr::Counter for Counter {
    fn read(&self) -> u64 {
        self.progress();
        self.look(false)
    }

    fn read_errors(&self) -> u64 {
        self.progress();
        self.look(true)
    }

    fn add(&self, value: u64) {
        self.raise(value);
        self.domain.triggers.run();
    }

    fn set(&self, value: u64) {
        self.put(value);
        self.domain.triggers.run();
    }

    fn add_errors(&self, value: u64) {
        self.errors.fetch_add(value, Ordering::SeqCst);
        self.endpoints.ring();
        self.domain.triggers.run();
    }

    fn set_errors(&self, value: u64) {
        self.errors.store(value, Ordering::SeqCst);
        self.seen[1].store(!value, Ordering::Relaxed);
        self.endpoints.ring();
        self.domain.triggers.run();
    }

    fn wait(&self, threshold: u64, timeout: c_int) -> Result<()> {
        let deadline = Deadline::after(timeout);
        let errors = self.look(true);
        loop {
            let progress = self.progress();
            if self.look(false) >= threshold {
                return Ok(());
            }
            if progress == Progress::Failed {
                return Err(Errno::EOTHER);
            }
            if self.look(true) != errors {
                return Err(Errno::EAVAIL);
            }
            if deadline.is_over() {
                return Err(Errno::ETIMEDOUT);
            }
            let looks = self.needs_polling() || self.endpoints.is_empty();
            let at_most = if looks { BACKOFF } else { FOR_EVER };
            self.endpoints.sleep(deadline.left(at_most), || {
                self.count.load(Ordering::SeqCst) >= threshold
                    || self.errors.load(Ordering::SeqCst) != errors
            });
        }
    }
}
