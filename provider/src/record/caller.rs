// SPDX-License-Identifier: BSD-2-Clause
//! The thread that calls, as traces name it.
//!
//! ```text
//! a call:  the same control block as before, and no numbered thread has ended: the same thread
//!          otherwise: its number, which it gets with its first recorded call
//! ```
//! A thread may get the control block of one that has ended, which [`ffi::thread::current`] does not
//! tell apart. So threads with a number count themselves when they end. Rejected: the number in each
//! call (a thread-local of a library is a call of the dynamic linker).

use std::{
    cell::Cell,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
};

use ffi::thread;
use nic::trace::Thread;

use crate::wait::device_thread;

/// Threads that have a number.
static NUMBERED: AtomicU32 = AtomicU32::new(0);
/// Of these, those that have ended.
static ENDED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Still there while other thread-locals are dropped.
    static OWN: Cell<Option<Thread>> = const { Cell::new(None) };
    static END: End = const { End };
}

/// Counts its thread when that ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        ENDED.fetch_add(1, Ordering::Relaxed);
    }
}

/// The thread that calls: how many were recorded before it, in any trace of this process.
fn own() -> Thread {
    OWN.get().unwrap_or_else(|| {
        let _ = END.try_with(|_| ());
        let number = NUMBERED.fetch_add(1, Ordering::Relaxed);
        let own = Thread { number, is_device: device_thread::is_current(), cpu_ns: None };
        OWN.set(Some(own));
        own
    })
}

/// Who called last.
#[derive(Debug, Default)]
pub(super) struct Caller {
    /// Its name, which none has at first.
    name: usize,
    ended: usize,
    thread: Thread,
}

impl Caller {
    /// Whether the same thread calls again. Who has its control block was made after it had ended, and
    /// sees that counted.
    #[inline(always)]
    pub(super) fn is_same(&self) -> bool {
        self.name == thread::current() && self.ended == ENDED.load(Ordering::Relaxed)
    }

    /// Looks who calls; whether that is another thread than before, or than thread 0 at first.
    #[cold]
    pub(super) fn has_changed(&mut self) -> bool {
        (self.name, self.ended) = (thread::current(), ENDED.load(Ordering::Relaxed));
        std::mem::replace(&mut self.thread, own()) != self.thread
    }

    /// The thread that was seen last.
    pub(super) fn thread(&self) -> Thread {
        self.thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_follows_one_that_ended_is_another_one_whatever_its_control_block() {
        let mut caller = Caller::default();
        let mut numbers = Vec::new();
        // Stacks, and control blocks with them, are used again.
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
