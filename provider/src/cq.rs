// SPDX-License-Identifier: BSD-2-Clause
//! `fi_cq(3)`: completion queues. Reading a queue makes progress on the endpoints that report to
//! it.

use std::{
    collections::VecDeque,
    ffi::c_int,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ffi::{
    Errno, Result, flags,
    object::{Control, Object},
    ops::{
        self, WaitObj,
        cq::{Completion, CqAttr, Entries, Failure, Format},
    },
    serial::Serial,
    sys,
};

use crate::{
    domain::{Domain, OfDomain},
    params::api_at_least,
    wait::{
        Deadline, FOR_EVER,
        pollable::{Progress, Readable},
        set::WaitSet,
    },
};

/// A completion queue.
#[derive(Debug)]
pub(crate) struct CompletionQueue {
    domain: Arc<Domain>,
    attr: CqAttr,
    queue: Serial<CqEntries>,
    /// Endpoints that report to this queue.
    pub(crate) endpoints: WaitSet,
    signaled: AtomicBool,
}

/// Entries that were not read yet. Failures are read before all completions, as `fi_cq(3)`
/// requires; the order between operations is not guaranteed. But a failure that returns a
/// multi-receive buffer is read after all completions that were reported before this failure. Later
/// failures are read after it.
#[derive(Debug)]
struct CqEntries {
    completions: VecDeque<Completion>,
    /// Each failure, with the value of `read` from which on it may be read.
    failures: VecDeque<(u64, Failure)>,
    /// Number of completions that were ever read.
    read: u64,
}

impl CqEntries {
    /// Returns the number of completions to read before the next failure; `None` without a failure.
    #[inline]
    fn before_failure(&self) -> Option<usize> {
        let (after, _) = self.failures.front()?;
        Some(after.saturating_sub(self.read) as usize)
    }
}

/// Number of entries that are allocated at the start, unless the requested size is smaller.
const PREALLOCATE: usize = 1024;

impl CompletionQueue {
    pub(crate) fn open(domain: &Arc<Domain>, attr: &CqAttr) -> Result<Self> {
        ffi::object::check_flags(attr.flags, flags::AFFINITY)?;
        let room = if attr.size == 0 { PREALLOCATE } else { attr.size.min(PREALLOCATE) };
        let queue = CqEntries {
            completions: VecDeque::with_capacity(room),
            failures: VecDeque::new(),
            read: 0,
        };
        Ok(Self {
            domain: Arc::clone(domain),
            attr: attr.clone(),
            queue: Serial::new(queue, domain.locked),
            endpoints: WaitSet::with_wait(domain.locked, attr.wait_obj)?,
            signaled: AtomicBool::new(false),
        })
    }

    /// Reports a completion. The queue grows if it is not read.
    #[inline(always)]
    pub(crate) fn complete(&self, completion: Completion) {
        self.queue.lock().completions.push_back(completion);
        self.endpoints.ring();
    }

    /// Reports a failure.
    #[cold]
    pub(crate) fn fail(&self, failure: Failure) {
        let mut queue = self.queue.lock();
        let gives_back = failure.completion.flags & flags::MULTI_RECV != 0;
        let after = if gives_back { queue.read + queue.completions.len() as u64 } else { 0 };
        queue.failures.push_back((after, failure));
        drop(queue);
        self.endpoints.ring();
    }

    /// Returns whether the queue has a failure, or at least `at_least` completions.
    fn holds(&self, at_least: usize) -> bool {
        let queue = self.queue.lock();
        !queue.failures.is_empty() || queue.completions.len() >= at_least
    }

    /// Prepares for a sleep on the descriptor.
    ///
    /// # Errors
    /// `EAGAIN` if there is an entry to read, or work to do first; `EINVAL` without a descriptor.
    pub(crate) fn try_wait(&self) -> Result<()> {
        let ready = || self.holds(1) || self.signaled.swap(false, Ordering::SeqCst);
        self.endpoints.try_wait(&self.domain.triggers, Duration::MAX, ready)
    }

    /// Reads completions that are in the queue, as many as fit.
    ///
    /// # Errors
    /// `EAVAIL` if a failure comes first. `EAGAIN` if there is no failure, and there are fewer
    /// completions than `at_least` and than fit. `EAGAIN` also if none fits.
    #[inline]
    fn take(&self, entries: &mut Entries, at_least: usize) -> Result<()> {
        let mut queue = self.queue.lock();
        let mut most = usize::MAX;
        if let Some(before) = queue.before_failure() {
            if before == 0 {
                return Err(Errno::EAVAIL);
            }
            most = before;
        } else if queue.completions.len() < at_least.min(entries.room()) {
            return Err(Errno::EAGAIN);
        }
        while entries.room() > 0 && entries.written() < most {
            let Some(completion) = queue.completions.pop_front() else { break };
            entries.push(&completion);
            queue.read += 1;
        }
        if entries.written() == 0 && at_least > 0 { Err(Errno::EAGAIN) } else { Ok(()) }
    }
}

impl Readable for CompletionQueue {
    fn has_something(&self) -> bool {
        let progress = self.endpoints.progress_and_look();
        self.domain.triggers.run();
        self.holds(1) || progress == Progress::Failed
    }
}

impl Object for CompletionQueue {
    type Raw = sys::fid_cq;

    fn control(&self, command: Control<'_>) -> Result<()> {
        self.endpoints.control(command)
    }
}

impl OfDomain for CompletionQueue {
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

impl ops::cq::CompletionQueue for CompletionQueue {
    fn format(&self) -> Format {
        self.attr.format
    }

    fn api_at_least(&self, major: u32, minor: u32) -> bool {
        api_at_least(self.domain.api_version(), major, minor)
    }

    #[inline]
    fn read(&self, entries: &mut Entries) -> Result<()> {
        let progress = self.endpoints.progress();
        self.domain.triggers.run();
        let taken = self.take(entries, 1);
        if taken != Err(Errno::EAGAIN) {
            return taken;
        }
        match progress {
            Progress::None if self.endpoints.pause(|| self.holds(1)) => {
                self.endpoints.progress();
                self.take(entries, 1)
            }
            Progress::None | Progress::Some => taken,
            Progress::Failed => Err(Errno::EOTHER),
        }
    }

    fn wait_read(&self, entries: &mut Entries, threshold: usize, timeout: c_int) -> Result<()> {
        if self.attr.wait_obj == WaitObj::None {
            return Err(Errno::ENOSYS);
        }
        if entries.room() == 0 {
            return self.read(entries);
        }
        let deadline = Deadline::after(timeout);
        loop {
            let progress = self.endpoints.progress();
            self.domain.triggers.run();
            match self.take(entries, threshold) {
                Err(Errno::EAGAIN) if progress == Progress::Failed => return Err(Errno::EOTHER),
                Err(Errno::EAGAIN) => {}
                done => return done,
            }
            if self.signaled.swap(false, Ordering::SeqCst) {
                return Err(Errno::EAGAIN);
            }
            if deadline.is_over() {
                return self.take(entries, 1);
            }
            let enough = threshold.min(entries.room());
            self.endpoints.sleep(deadline.left(FOR_EVER), || {
                self.holds(enough) || self.signaled.load(Ordering::SeqCst)
            });
        }
    }

    fn read_error(&self, read_flags: u64) -> Result<Failure> {
        let mut queue = self.queue.lock();
        if queue.before_failure() != Some(0) {
            return Err(Errno::EAGAIN);
        }
        let failure = if read_flags & flags::PEEK == 0 {
            queue.failures.pop_front()
        } else {
            queue.failures.front().copied()
        };
        failure.map(|(_, failure)| failure).ok_or(Errno::EAGAIN)
    }

    fn signal(&self) -> Result<()> {
        if self.attr.wait_obj == WaitObj::None {
            return Err(Errno::ENOSYS);
        }
        self.signaled.store(true, Ordering::SeqCst);
        self.endpoints.ring();
        Ok(())
    }

    fn takes_threshold(&self) -> bool {
        self.attr.threshold
    }
}

#[cfg(test)]
impl CompletionQueue {
    /// Removes and returns the next entry, without making progress.
    pub(crate) fn next(&self) -> Option<std::result::Result<Completion, Failure>> {
        if let Ok(failure) = ffi::ops::cq::CompletionQueue::read_error(self, 0) {
            return Some(Err(failure));
        }
        self.queue.lock().completions.pop_front().map(Ok)
    }
}
