// SPDX-License-Identifier: BSD-2-Clause
//! The kinds of locks, and the traits that a matching unit requires of them.
//!
//! A lock runs a closure on the data that it protects. An MCS lock therefore has its node on the
//! stack, and locks are released in the reverse order of their acquisition. For this reason `Bins`
//! uses no lock coupling.

use std::sync::atomic::{AtomicU64, Ordering};

use mcslock::{raw, relax::YieldBackoff};

/// A lock and the data that it protects.
pub trait Lock<T>: Send + Sync {
    /// Returns an unlocked lock.
    fn new(value: T) -> Self;

    /// Waits for the lock and runs `f` on the protected data.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
}

/// A number that only grows.
pub trait Mark: Send + Sync {
    /// Returns a mark at 0.
    fn new() -> Self;

    /// Returns the number. The memory operations before the call of `raise` that set this number
    /// are visible to the caller.
    fn get(&self) -> u64;

    /// Raises the number to at least `to`.
    fn raise(&self, to: u64);
}

/// A kind of lock.
pub trait Locks: 'static {
    /// The type of the lock.
    type Lock<T: Send>: Lock<T>;
    /// The type of the mark: an atomic integer, of the standard library or of loom.
    type Mark: Mark;
    /// The name of the lock in arguments and results.
    const NAME: &'static str;
}

/// The lock of Mellor-Crummey and Scott, which the paper uses. Each waiting thread spins on a
/// separate word, and the lock goes to the thread that waits longest. After a long wait a thread
/// yields its core, because the owner may need it.
pub struct Mcs;

/// The lock of `parking_lot`. A waiting thread spins for a short time and then sleeps, and a thread
/// that arrives meanwhile may get the lock first.
pub struct ParkingLot;

impl Locks for Mcs {
    type Lock<T: Send> = raw::Mutex<T, YieldBackoff>;
    type Mark = AtomicU64;
    const NAME: &'static str = "mcs";
}

impl Locks for ParkingLot {
    type Lock<T: Send> = parking_lot::Mutex<T>;
    type Mark = AtomicU64;
    const NAME: &'static str = "parking-lot";
}

impl<T: Send> Lock<T> for raw::Mutex<T, YieldBackoff> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.lock_then(f)
    }
}

impl<T: Send> Lock<T> for parking_lot::Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock())
    }
}

impl Mark for AtomicU64 {
    fn new() -> Self {
        Self::new(0)
    }

    #[inline]
    fn get(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    fn raise(&self, to: u64) {
        self.fetch_max(to, Ordering::AcqRel);
    }
}

/// Data on separate cache lines, aligned to pairs because processors fetch lines in pairs.
#[repr(align(128))]
pub(super) struct Apart<T>(pub(super) T);
