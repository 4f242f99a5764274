// SPDX-License-Identifier: BSD-2-Clause
//! A lock that an application can turn off with `FI_THREAD_DOMAIN`.

use std::{
    cell::UnsafeCell,
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicBool, Ordering, compiler_fence},
    time::{Duration, Instant},
};

use parking_lot::{RawMutex, lock_api::RawMutex as _};

/// Maximum time for which an exit waits for other threads.
const AT_EXIT: Duration = Duration::from_millis(200);

/// State that one thread at a time may use. A lock protects it. Under `FI_THREAD_DOMAIN` the
/// application serialises all calls on a domain (`fi_domain(3)`), and `lock` costs one predicted
/// branch and one store.
pub struct Serial<T> {
    lock: Option<RawMutex>,
    /// Without a lock: whether a guard exists.
    is_used: AtomicBool,
    state: UnsafeCell<T>,
}

// SAFETY: only `lock` and `try_lock` give access to `state`. They hold the mutex, or rely on the
// application's promise to serialise calls. Within a call, `try_lock` gives no second access, and
// no function of the provider calls `lock` while it has a guard of the same state: `lock` asserts
// that in all tests.
unsafe impl<T: Send> Sync for Serial<T> {}
// SAFETY: moving the value moves the state.
unsafe impl<T: Send> Send for Serial<T> {}

impl<T> Serial<T> {
    /// Creates the state with a lock, or without one if `locked` is false. `locked` must be true
    /// unless the application asked for `FI_THREAD_DOMAIN`.
    pub fn new(state: T, locked: bool) -> Self {
        Self {
            lock: locked.then_some(RawMutex::INIT),
            is_used: AtomicBool::new(false),
            state: UnsafeCell::new(state),
        }
    }

    /// Waits for exclusive use of the state, which lasts until the guard is dropped. Not
    /// re-entrant.
    #[inline]
    pub fn lock(&self) -> SerialGuard<'_, T> {
        match &self.lock {
            Some(lock) => lock.lock(),
            None => {
                debug_assert!(!self.is_used.load(Ordering::Relaxed), "a second use of a state");
                self.begin_unlocked();
            }
        }
        SerialGuard { owner: self }
    }

    /// Takes exclusive use of the state; returns `None` if the state is in use.
    #[inline]
    pub fn try_lock(&self) -> Option<SerialGuard<'_, T>> {
        let free = match &self.lock {
            Some(lock) => lock.try_lock(),
            None => {
                let free = !self.is_used.load(Ordering::Acquire);
                if free {
                    self.begin_unlocked();
                }
                free
            }
        };
        free.then(|| SerialGuard { owner: self })
    }

    #[inline]
    fn begin_unlocked(&self) {
        self.is_used.store(true, Ordering::Relaxed);
        // A signal handler that calls `exit` must not see a change of the state without the store.
        compiler_fence(Ordering::SeqCst);
    }

    /// Takes exclusive use of the state for a process that exits. Returns `None` if the state is in
    /// use after a limited wait. This thread may use the state itself, if a signal handler calls
    /// `exit`.
    pub fn lock_at_exit(&self) -> Option<SerialGuard<'_, T>> {
        try_lock_at_exit(|| self.try_lock())
    }
}

/// Calls `try_lock` until it returns a guard. Returns `None` after the maximum time for which an
/// exit waits for other threads.
pub fn try_lock_at_exit<G>(try_lock: impl Fn() -> Option<G>) -> Option<G> {
    let end = Instant::now() + AT_EXIT;
    loop {
        let guard = try_lock();
        if guard.is_some() || Instant::now() >= end {
            return guard;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl<T> std::fmt::Debug for Serial<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serial").field("locked", &self.lock.is_some()).finish_non_exhaustive()
    }
}

/// Exclusive use of a [`Serial`]'s state.
#[derive(Debug)]
pub struct SerialGuard<'a, T> {
    owner: &'a Serial<T>,
}

impl<T> Deref for SerialGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard grants exclusive use (see `Sync` above).
        unsafe { &*self.owner.state.get() }
    }
}

impl<T> DerefMut for SerialGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.owner.state.get() }
    }
}

impl<T> Drop for SerialGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match &self.owner.lock {
            // SAFETY: this guard locked it.
            Some(lock) => unsafe { lock.unlock() },
            None => self.owner.is_used.store(false, Ordering::Release),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_use_at_a_time() {
        for locked in [false, true] {
            let state = Serial::new(1, locked);
            let first = state.lock();
            assert!(state.try_lock().is_none() && state.lock_at_exit().is_none());
            drop(first);
            assert_eq!(state.try_lock().map(|guard| *guard), Some(1));
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "a second use of a state")]
    fn a_second_use_without_a_lock_is_noticed() {
        let state = Serial::new(1, false);
        let _first = state.lock();
        state.lock();
    }
}
