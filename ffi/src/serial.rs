// SPDX-License-Identifier: BSD-2-Clause
//! A lock that an application can promise not to need.

use std::{
    cell::UnsafeCell,
    ops::{Deref, DerefMut},
    time::{Duration, Instant},
};

use parking_lot::{RawMutex, lock_api::RawMutex as _};

/// How long an exit waits for other threads.
const AT_EXIT: Duration = Duration::from_millis(200);

/// State that one thread at a time may use: guarded by a lock, or by the
/// application itself under `FI_THREAD_DOMAIN` (`fi_domain(3)`: access to all
/// objects of the domain is serialised by the application), where `lock` costs
/// one predicted branch.
pub struct Serial<T> {
    lock: Option<RawMutex>,
    state: UnsafeCell<T>,
}

// SAFETY: `state` is only reached through `lock`, which either holds the mutex
// or relies on the application's promise of serialised calls.
unsafe impl<T: Send> Sync for Serial<T> {}
// SAFETY: moving the whole moves the state.
unsafe impl<T: Send> Send for Serial<T> {}

impl<T> Serial<T> {
    /// `locked` is false only where the application asked for `FI_THREAD_DOMAIN`.
    pub fn new(state: T, locked: bool) -> Self {
        Self { lock: locked.then_some(RawMutex::INIT), state: UnsafeCell::new(state) }
    }

    /// Exclusive use of the state until the guard is dropped. Not re-entrant.
    #[inline]
    pub fn lock(&self) -> SerialGuard<'_, T> {
        if let Some(lock) = &self.lock {
            lock.lock();
        }
        SerialGuard { owner: self }
    }

    /// The same, unless another thread has it.
    #[inline]
    pub fn try_lock(&self) -> Option<SerialGuard<'_, T>> {
        let free = self.lock.as_ref().is_none_or(RawMutex::try_lock);
        free.then(|| SerialGuard { owner: self })
    }

    /// The same for a process that exits: whoever has it may be this very thread, which a signal
    /// took out of its work and whose handler calls `exit`.
    pub fn lock_at_exit(&self) -> Option<SerialGuard<'_, T>> {
        at_exit(|| self.try_lock())
    }
}

/// Tries to take a lock until it succeeds, for as long as an exit waits for other threads.
pub fn at_exit<G>(try_lock: impl Fn() -> Option<G>) -> Option<G> {
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
        // SAFETY: the guard stands for exclusive use (see `Sync` above).
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
        if let Some(lock) = &self.owner.lock {
            // SAFETY: this guard locked it.
            unsafe { lock.unlock() };
        }
    }
}
