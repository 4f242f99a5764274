// SPDX-License-Identifier: BSD-2-Clause
//! `fi_cntr(3)`.

use std::{
    ffi::c_int,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ffi::{
    Errno, Result,
    object::{Bindable, Control, Object},
    ops::{self, WaitObj, cntr::Attr},
    sys,
};

use crate::{
    domain::Domain,
    idle::{Deadline, NAP},
    progress::Drivers,
};

/// A counter.
#[derive(Debug)]
pub(crate) struct Counter {
    domain: Arc<Domain>,
    wait_obj: WaitObj,
    count: AtomicU64,
    errors: AtomicU64,
    /// The endpoints that count here.
    pub(crate) drivers: Drivers,
}

impl Counter {
    pub(crate) fn open(domain: &Arc<Domain>, attr: &Attr) -> Result<Self> {
        ffi::object::only(attr.flags, 0)?;
        if attr.events != sys::FI_CNTR_EVENTS_COMP {
            tracing::info!("counters count completions, not bytes");
            return Err(Errno::ENOSYS);
        }
        if let WaitObj::Other(wait_obj) = attr.wait_obj {
            tracing::info!("wait object {wait_obj} of a counter is not supported");
            return Err(Errno::ENOSYS);
        }
        Ok(Self {
            domain: Arc::clone(domain),
            wait_obj: attr.wait_obj,
            count: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            drivers: Drivers::new(domain.locked),
        })
    }

    /// The endpoints that this counter waits for: those that count here or, as it
    /// counts completions of deferred work, all of the domain.
    fn drivers(&self) -> &Drivers {
        if self.drivers.is_empty() { &self.domain.endpoints } else { &self.drivers }
    }

    fn progress(&self) {
        self.drivers().progress();
        self.domain.triggers.run();
    }

    /// The count, without progress.
    pub(crate) fn value(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Adds to the count, and leaves what waits for it to who looks next.
    pub(crate) fn raise(&self, value: u64) {
        self.count.fetch_add(value, Ordering::AcqRel);
    }

    /// Sets the count, and leaves what waits for it to who looks next.
    pub(crate) fn put(&self, value: u64) {
        self.count.store(value, Ordering::Release);
    }

    /// Counts an operation.
    #[inline]
    pub(crate) fn count(&self, failed: bool) {
        let counter = if failed { &self.errors } else { &self.count };
        counter.fetch_add(1, Ordering::AcqRel);
    }
}

impl Object for Counter {
    fn control(&self, command: Control<'_>) -> Result<()> {
        match command {
            Control::GetWaitObj(to) => {
                *to = self.wait_obj.raw();
                Ok(())
            }
            _ => Err(Errno::ENOSYS),
        }
    }
}

impl Bindable for Counter {
    type Raw = sys::fid_cntr;
}

impl ops::cntr::Counter for Counter {
    fn read(&self) -> u64 {
        self.progress();
        self.value()
    }

    fn read_errors(&self) -> u64 {
        self.progress();
        self.errors.load(Ordering::Acquire)
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
        self.errors.fetch_add(value, Ordering::AcqRel);
    }

    fn set_errors(&self, value: u64) {
        self.errors.store(value, Ordering::Release);
    }

    fn wait(&self, threshold: u64, timeout: c_int) -> Result<()> {
        let deadline = Deadline::after(timeout);
        let errors = self.errors.load(Ordering::Acquire);
        loop {
            if self.read() >= threshold {
                return Ok(());
            }
            if self.errors.load(Ordering::Acquire) != errors {
                return Err(Errno::EAVAIL);
            }
            if deadline.is_over() {
                return Err(Errno::ETIMEDOUT);
            }
            self.drivers().wait(deadline.left(NAP));
        }
    }
}
