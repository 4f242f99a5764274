// SPDX-License-Identifier: BSD-2-Clause
//! Numbers the threads that call the provider, for traces. A thread gets its number with its first
//! recorded call.
//!
//! ```text
//! a call:  same control block as in the last call, and no
//!          numbered thread has ended since then:            the same thread calls
//!          otherwise:                                       reads the number of the thread
//! ```
//! A new thread may get the control block of a thread that has ended. [`ffi::thread::current`]
//! returns the same value for both. So threads with a number count themselves when they end.
//!
//! Rejected: reading the number in each call. To read a thread-local of a shared library takes a
//! call of the dynamic linker.

use std::{
    cell::Cell,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
};

use ffi::thread;
use nic::trace::Thread;

use crate::wait::device_thread;

/// Number of threads that have a number.
static NUMBERED: AtomicU32 = AtomicU32::new(0);
/// Number of these threads that have ended.
static ENDED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The thread, once it has a number. This value needs no drop, so it can still be used while
    /// other thread-locals are dropped.
    static OWN: Cell<Option<Thread>> = const { Cell::new(None) };
    static END: EndOfThread = const { EndOfThread };
}

/// Counts its thread when the thread ends.
struct EndOfThread;

impl Drop for EndOfThread {
    fn drop(&mut self) {
        ENDED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the calling thread. Its number is the number of threads that were recorded before it in
/// any trace of this process.
fn own() -> Thread {
    OWN.get().unwrap_or_else(|| {
        let _ = END.try_with(|_| ());
        let number = NUMBERED.fetch_add(1, Ordering::Relaxed);
        let own = Thread { number, is_device: device_thread::is_current(), cpu_ns: None };
        OWN.set(Some(own));
        own
    })
}

/// The thread of the last recorded call.
#[derive(Debug, Default)]
pub(super) struct LastCaller {
    /// Its [`thread::current`]; 0, which no thread has, before the first call.
    name: usize,
    /// Value of [`ENDED`] at its call.
    ended: usize,
    thread: Thread,
}

impl LastCaller {
    /// Returns whether the thread that was noted last calls again. If a new thread has got its
    /// control block, the noted thread had ended before, which increased [`ENDED`].
    #[inline(always)]
    pub(super) fn is_same(&self) -> bool {
        self.name == thread::current() && self.ended == ENDED.load(Ordering::Relaxed)
    }

    /// Notes the calling thread. Returns whether it differs from the last one; the first is
    /// compared with thread 0.
    #[cold]
    pub(super) fn has_changed(&mut self) -> bool {
        (self.name, self.ended) = (thread::current(), ENDED.load(Ordering::Relaxed));
        std::mem::replace(&mut self.thread, own()) != self.thread
    }

    /// The thread that was noted last.
    pub(super) fn thread(&self) -> Thread {
        self.thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_after_one_that_ended_has_another_number() {
        let mut caller = LastCaller::default();
        let mut numbers = Vec::new();
        // Stacks are reused, and control blocks with them.
        for _ in 0..20 {
            std::thread::scope(|scope| {
                let look = || {
                    assert!(!caller.is_same());
                    caller.has_changed();
                    assert!(!caller.has_changed());
                    caller.thread()
                };
                numbers.push(scope.spawn(look).join().unwrap().number);
            });
        }
        assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
    }

    #[test]
    fn threads_keep_their_numbers() {
        let here = own();
        assert!(!here.is_device && here.cpu_ns.is_none());
        let there = std::thread::spawn(|| (own(), own())).join().unwrap();
        assert_eq!(there.0, there.1);
        assert_ne!(there.0, here);
        assert_eq!(own(), here);
    }
}
