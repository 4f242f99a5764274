// SPDX-License-Identifier: BSD-2-Clause
//! The interfaces of endpoints and counters for the queues and threads that wait for them. An
//! endpoint that threads poll or sleep on is a [`Pollable`].

use std::{fmt::Debug, os::fd::BorrowedFd, sync::Arc, time::Duration};

use ffi::Result;

use super::idle::{Caller, Pause};

/// Whether progress was made. Of several endpoints, the greatest value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    None,
    Some,
    /// The endpoint has failed: it will never make progress again.
    Failed,
}

/// An endpoint, for threads that make progress on it or sleep on it.
pub(crate) trait Pollable: Debug + Send + Sync {
    /// Makes progress.
    fn progress(&self) -> Progress;

    /// Makes progress, and does the periodic work of [`Self::look_around`]. Does nothing if another
    /// thread uses this endpoint, or if a device thread makes progress on it.
    fn try_progress(&self);

    /// Decides what to do after an empty poll. Does the periodic work of [`Self::look_around`]
    /// before a yield or a sleep, and after a number of empty polls. If a spin is due, this
    /// function spins, and returns [`Pause::Spin`] only if a message came meanwhile.
    fn pause(&self, caller: Caller) -> Pause;

    /// Does periodic work, if it is time: shows the counters to `tcam show --live`, and checks peers.
    fn look_around(&self);

    /// Sleeps until a message comes, another thread wakes this one, or `at_most` is over. Does not
    /// sleep if `ready` returns true.
    fn sleep(&self, at_most: Duration, ready: &dyn Fn() -> bool);

    /// Wakes the threads that sleep on the endpoint.
    fn wake(&self);

    /// Returns whether a device thread makes progress on the endpoint.
    fn is_auto(&self) -> bool;

    /// Calls `look` with each descriptor of the endpoint. After [`Self::arm_bells`], one of them
    /// becomes readable when a message comes.
    ///
    /// # Errors
    /// No descriptors are left, or an error of `look`.
    fn bells(&self, look: &mut dyn FnMut(BorrowedFd<'_>) -> rustix::io::Result<()>) -> Result<()>;

    /// Arms the doorbells: from now on, a message makes one of the descriptors readable. Returns
    /// the longest sleep; zero if there is work.
    fn arm_bells(&self) -> Duration;

    /// Makes the copies that are due. Waits until no other thread copies for a peer's read or write
    /// of local memory.
    fn finish_copies(&self);

    /// Sets the number of processes to the result of `count`, which is called under the endpoint's
    /// lock.
    fn set_processes(&self, count: &dyn Fn() -> u32);

    /// Checks the senders whose names were just inserted into an address vector.
    fn check_names(&self);

    /// Makes progress in the device thread.
    fn progress_as_device(&self) -> Progress;

    /// Prepares a sleep of the device thread. Returns the longest sleep; zero if there is work.
    fn arm_device(&self) -> Duration;

    /// Notes that the device thread is awake again.
    fn device_awake(&self);
}

/// A queue or a counter, for poll sets.
pub(crate) trait Readable: Debug + Send + Sync {
    /// Makes progress. Returns whether there is something to read.
    fn has_something(&self) -> bool;
}

/// A counter, for objects that count on it or wait for it.
pub(crate) trait Count: Debug + Send + Sync {
    /// Returns the count, without progress.
    fn value(&self) -> u64;

    /// Returns the number of failures, without progress.
    fn failures(&self) -> u64;

    /// Counts an operation that has ended, as a failure if it `failed`.
    fn count(&self, failed: bool);

    /// Adds to the count. Operations that wait for the counter start at the next check of the
    /// triggers.
    fn raise(&self, value: u64);

    /// Sets the count. Operations that wait for the counter start at the next check of the
    /// triggers.
    fn put(&self, value: u64);
}

/// Counts an operation, if there is a counter for it.
#[inline]
pub(crate) fn count<C: Count + ?Sized>(counter: Option<&Arc<C>>, failed: bool) {
    if let Some(counter) = counter {
        counter.count(failed);
    }
}
