// SPDX-License-Identifier: BSD-2-Clause
//! The threads that call an endpoint, and whether one of them may be waiting for the thread that
//! polls it.
//!
//! Under `MPI_THREAD_MULTIPLE`, a thread of MPICH polls while it holds a lock that the other
//! threads of its process need to send. A thread that waits for that lock has not called the
//! provider yet, so no doorbell can ring for it. If the polling thread sleeps, the waiting thread
//! is delayed until the end of the sleep. The only sign of a waiting thread is that it called
//! before.
//!
//! As a sign, a thread that starts an operation stores its number ([`thread::current`]), without
//! reading the clock. A thread that is about to sleep finds the number and notes the time.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_utils::CachePadded;
use ffi::thread;

/// The threads other than the polling one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// No other thread has called for a long time, so none is delayed by a sleep.
    Away,
    /// Another thread has called, and may call again.
    About,
    /// Another thread has just started an operation, and may start the next one at any moment.
    Active,
}

/// Time after an operation of another thread in which polls of the application do not sleep. A
/// thread that starts operations this often must find the lock free; a thread that starts fewer is
/// delayed little.
const ACTIVE: Duration = Duration::from_millis(20);
/// Time after a call of another thread in which polls sleep only briefly. While one thread sleeps
/// and holds the lock of MPICH, the others cannot leave a sign. Some of them compute for seconds
/// between two calls.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Number of separate words for the numbers of threads.
const STARTERS: usize = 4;

/// The signs of threads that start operations without the lock of the endpoint.
#[derive(Debug, Default)]
pub(crate) struct UnlockedStarts {
    /// In each word, the number of the last thread that started an operation since a thread was
    /// about to sleep, or 0. Several words keep threads that start operations continuously from
    /// taking the cache line from each other.
    starters: [CachePadded<AtomicUsize>; STARTERS],
    /// Whether an operation went to a peer since [`Callers::take_acts`] was last called.
    acted: AtomicBool,
}

impl UnlockedStarts {
    /// Notes that this thread starts an operation without the lock of the endpoint.
    #[inline]
    pub(crate) fn start(&self) {
        leave(&self.starters[thread::current_of(STARTERS)], thread::current());
    }

    /// Notes that the operation went to a peer.
    #[inline]
    pub(crate) fn act(&self) {
        if !self.acted.load(Ordering::Relaxed) {
            self.acted.store(true, Ordering::Relaxed);
        }
    }
}

/// Stores the number of a thread, unless it is stored already.
#[inline]
fn leave(at: &AtomicUsize, thread: usize) {
    if at.load(Ordering::Relaxed) != thread {
        at.store(thread, Ordering::Relaxed);
    }
}

/// Number of threads that have had empty polls for a while.
static POLLERS: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of threads of the application that poll endpoints. A thread that has ended
/// still counts, but callers never assume more pollers than endpoints.
pub(crate) fn pollers() -> usize {
    POLLERS.load(Ordering::Relaxed)
}

/// Counts this thread as a poller, once.
pub(crate) fn note_poller() {
    thread_local!(static COUNTED: Cell<bool> = const { Cell::new(false) });
    if !COUNTED.replace(true) {
        POLLERS.fetch_add(1, Ordering::Relaxed);
    }
}

/// The threads that recently called an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Callers {
    /// The last thread that started an operation since a thread was about to sleep, or 0.
    starter: usize,
    unlocked_starts: Arc<UnlockedStarts>,
    /// Time at which a thread other than the one about to sleep last started an operation.
    started: Option<Instant>,
    /// The last thread with an empty poll.
    poller: usize,
    /// Whether several threads had empty polls since a thread was about to sleep.
    polled_by_several: bool,
    /// Time at which a thread other than the one about to sleep was last noticed.
    noticed: Option<Instant>,
}

impl Callers {
    /// Notes that this thread starts an operation with the lock of the endpoint.
    #[inline(always)]
    pub(crate) fn start(&mut self) {
        self.starter = thread::current();
    }

    /// Returns the place where threads that start operations without the lock of the endpoint leave
    /// their signs.
    pub(crate) fn unlocked_starts(&self) -> Arc<UnlockedStarts> {
        Arc::clone(&self.unlocked_starts)
    }

    /// Returns whether a thread without the lock of the endpoint has sent something since the last
    /// call.
    pub(crate) fn take_acts(&self) -> bool {
        self.unlocked_starts.acted.swap(false, Ordering::Relaxed)
    }

    /// Notes an empty poll of this thread.
    #[inline]
    pub(crate) fn poll(&mut self) {
        let this = thread::current();
        let before = std::mem::replace(&mut self.poller, this);
        self.polled_by_several |= before != this && before != 0;
    }

    /// Returns what the other threads do, for a thread that is about to sleep. Removes the signs
    /// that threads have left.
    pub(crate) fn others(&mut self) -> Others {
        let now = Instant::now();
        let this = thread::current();
        let taken = |starter: &CachePadded<AtomicUsize>| starter.swap(0, Ordering::Relaxed);
        let unlocked_starts = self.unlocked_starts.starters.each_ref().map(taken);
        let own = std::mem::take(&mut self.starter);
        let another_polled = std::mem::take(&mut self.polled_by_several);
        if unlocked_starts.into_iter().chain([own]).any(|starter| starter != 0 && starter != this) {
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

    /// Simulates the passage of `time`.
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
    fn a_thread_that_starts_operations_is_active_then_about_then_away() {
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
    fn operations_of_one_thread_are_noticed_by_another_that_only_waits() {
        let mut callers = Callers::default();
        callers.start();
        in_another_thread(|| {
            callers.poll();
            assert_eq!(callers.others(), Others::Active);
        });
    }
}
