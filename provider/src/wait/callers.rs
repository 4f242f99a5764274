// SPDX-License-Identifier: BSD-2-Clause
//! Which threads call an endpoint: whether another one may wait for the thread that polls.
//!
//! Under `MPI_THREAD_MULTIPLE` a thread of MPICH polls with a lock held that the other threads
//! of its process need to send. Nobody can ring for a thread that waits for such a lock, since
//! it has not called yet. So a poll that sleeps keeps it out to the end of the sleep, and what
//! tells of it is that it called before.
//!
//! Who starts operations leaves its name in passing, without a look at the clock. Who is about
//! to sleep finds it and notes when.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_utils::CachePadded;
use ffi::thread;

/// Threads other than the one that polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// None has called for long: nobody is kept waiting.
    Away,
    /// One has called, and may come back.
    About,
    /// One has just started an operation: the next may follow at any moment.
    Active,
}

/// From an operation of another thread to the next sleep. One that starts something this
/// often must find the lock free; one that does less often is delayed by little.
const ACTIVE: Duration = Duration::from_millis(20);
/// From a call of another thread to the next long sleep. While one thread sleeps the others
/// cannot tell that they are there, and some compute for seconds between two calls.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Threads that leave their names apart.
const STARTERS: usize = 4;

/// What threads leave that start operations without the lock of the endpoint.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// The last of some threads that did since somebody was about to sleep ([`thread::current`]); 0 if
    /// none did. Threads that start operations all the time would otherwise take the line from each
    /// other.
    starters: [CachePadded<AtomicUsize>; STARTERS],
    /// Whether something went to a peer since a wait was slept through.
    acted: AtomicBool,
}

impl Beside {
    /// This thread starts an operation.
    #[inline]
    pub(crate) fn start(&self) {
        leave(&self.starters[thread::current_of(STARTERS)], thread::current());
    }

    /// It went to a peer.
    #[inline]
    pub(crate) fn act(&self) {
        if !self.acted.load(Ordering::Relaxed) {
            self.acted.store(true, Ordering::Relaxed);
        }
    }
}

/// Stores what is not there yet.
#[inline]
fn leave(at: &AtomicUsize, thread: usize) {
    if at.load(Ordering::Relaxed) != thread {
        at.store(thread, Ordering::Relaxed);
    }
}

/// The threads that called an endpoint lately.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    /// The last thread that started an operation since somebody was about to sleep; 0 if none did.
    starter: usize,
    beside: Arc<Beside>,
    /// When a thread other than the one about to sleep last started an operation.
    started: Option<Instant>,
    /// The last to poll in vain,
    poller: usize,
    /// and whether another one did before, since somebody was about to sleep.
    polled_by_several: bool,
    /// When a thread other than the one about to sleep was last noticed.
    noticed: Option<Instant>,
}

impl Callers {
    /// This thread starts an operation.
    #[inline(always)]
    pub(crate) fn start(&mut self) {
        self.starter = thread::current();
    }

    /// Where threads leave their traces that start operations without the lock of the endpoint.
    pub(crate) fn beside(&self) -> Arc<Beside> {
        Arc::clone(&self.beside)
    }

    /// Whether one of these has sent something since this was last asked.
    pub(crate) fn take_acts(&self) -> bool {
        self.beside.acted.swap(false, Ordering::Relaxed)
    }

    /// This thread polls in vain.
    #[inline]
    pub(crate) fn poll(&mut self) {
        let this = thread::current();
        let before = std::mem::replace(&mut self.poller, this);
        self.polled_by_several |= before != this && before != 0;
    }

    /// What the other threads do, for one that is about to sleep.
    pub(crate) fn others(&mut self) -> Others {
        let now = Instant::now();
        let this = thread::current();
        let taken = |starter: &CachePadded<AtomicUsize>| starter.swap(0, Ordering::Relaxed);
        let beside = self.beside.starters.each_ref().map(taken);
        let own = std::mem::take(&mut self.starter);
        let another_polled = std::mem::take(&mut self.polled_by_several);
        if beside.into_iter().chain([own]).any(|starter| starter != 0 && starter != this) {
            self.started = Some(now);
            self.noticed = Some(now);
        } else if another_polled {
            self.noticed = Some(now);
        }
        let is_within = |time: Option<Instant>, most| time.is_some_and(|time| now - time < most);
        if is_within(self.started, ACTIVE) {
            Others::Active
        } else if is_within(self.noticed, REMEMBERED) {
            Others::About
        } else {
            Others::Away
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_another_thread(work: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            scope.spawn(work);
        });
    }

    /// As if so much time had passed.
    fn pass(callers: &mut Callers, time: Duration) {
        for noted in [&mut callers.started, &mut callers.noticed] {
            *noted = noted.and_then(|noted| noted.checked_sub(time));
        }
    }

    #[test]
    fn a_thread_alone_has_no_others() {
        let mut callers = Callers::default();
        for _ in 0..3 {
            callers.start();
            callers.poll();
            assert_eq!(callers.others(), Others::Away);
        }
    }

    #[test]
    fn who_starts_operations_is_active_then_about_and_forgotten_in_the_end() {
        let mut callers = Callers::default();
        in_another_thread(|| callers.start());
        callers.poll();
        assert_eq!(callers.others(), Others::Active);
        pass(&mut callers, ACTIVE);
        assert_eq!(callers.others(), Others::About);
        pass(&mut callers, REMEMBERED);
        assert_eq!(callers.others(), Others::Away);
    }

    #[test]
    fn threads_that_only_poll_are_about() {
        let mut callers = Callers::default();
        in_another_thread(|| callers.poll());
        callers.poll();
        assert_eq!(callers.others(), Others::About);
        pass(&mut callers, REMEMBERED);
        callers.poll();
        assert_eq!(callers.others(), Others::Away, "the other one is gone");
    }

    #[test]
    fn operations_of_one_thread_are_noticed_by_another_that_waits_only() {
        let mut callers = Callers::default();
        callers.start();
        in_another_thread(|| {
            callers.poll();
            assert_eq!(callers.others(), Others::Active);
        });
    }
}
