// SPDX-License-Identifier: BSD-2-Clause
//! Locks by name, and what a unit asks of them.
//!
//! A lock runs a closure on what it protects. So an MCS lock has its node on the stack, and every
//! lock is given back in the reverse of the order in which it was taken: `Bins`
//! does without lock coupling for that.

use std::sync::atomic::{AtomicU64, Ordering};

use mcslock::{raw, relax::YieldBackoff};

/// A lock and what it protects.
pub trait Lock<T>: Send + Sync {
    /// An open lock.
    fn new(value: T) -> Self;

    /// Waits for the lock and runs `f` on what it protects.
    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R;
}

/// A number that only grows.
pub trait Mark: Send + Sync {
    /// One at 0.
    fn new() -> Self;

    /// The number. What happened before it was raised has happened.
    fn get(&self) -> u64;

    /// Makes it at least `to`.
    fn raise(&self, to: u64);
}

/// A kind of lock.
pub trait Locks: 'static {
    /// The lock.
    type Lock<T: Send>: Lock<T>;
    /// Its kind of mark: an atomic integer, or one that loom watches.
    type Mark: Mark;
    /// What it is called.
    const NAME: &'static str;
}

/// The lock of Mellor-Crummey and Scott, which the paper has: who waits spins on a word of its
/// own, and the lock goes to who came first. Who waits for long yields its core, since the owner
/// may need it.
pub struct Mcs;

/// The lock of `parking_lot`: who waits spins for a short time and then sleeps, and who comes just
/// then may go first.
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

/// What lies on cache lines of its own: processors fetch them in pairs.
#[repr(align(128))]
pub(super) struct Apart<T>(pub(super) T);
