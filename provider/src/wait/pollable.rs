// SPDX-License-Identifier: BSD-2-Clause
//! The interface of an endpoint for queues, counters and the thread of a domain.

use std::{fmt::Debug, os::fd::BorrowedFd, time::Duration};

use ffi::Result;

use super::idle::{Caller, Pause};

/// Whether progress was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    None,
    Some,
}

/// An endpoint, for threads that make progress on it or sleep on it.
pub(crate) trait Pollable: Debug + Send + Sync {
    /// Makes progress.
    fn progress(&self) -> Progress;

    /// Makes progress and checks peers, if it is time, unless another thread uses this endpoint, or
    /// a device thread makes progress on it.
    fn try_progress(&self);

    /// Decides what to do after an empty poll. Checks peers, if it is time. Spins itself, if that
    /// is due; returns [`Pause::Spin`] if a message came.
    fn pause(&self, caller: Caller) -> Pause;

    /// Checks peers, if it is time.
    fn look_around(&self);

    /// Sleeps until a message comes, another thread wakes this one, or the time is over. Does not
    /// sleep if something is `ready`.
    fn sleep(&self, at_most: Duration, ready: &dyn Fn() -> bool);

    /// Wakes the threads that sleep here.
    fn wake(&self);

    /// Returns whether a device thread makes progress.
    fn is_auto(&self) -> bool;

    /// Calls `look` with each descriptor of the endpoint. One of them becomes readable when a
    /// message comes after [`Self::arm_bells`].
    ///
    /// # Errors
    /// No descriptors are left, or an error of `look`.
    fn bells(&self, look: &mut dyn FnMut(BorrowedFd<'_>) -> rustix::io::Result<()>) -> Result<()>;

    /// Arms the doorbells: from now on one of them becomes readable. Returns the longest sleep.
    fn arm_bells(&self) -> Duration;

    /// Returns when no other thread is in the middle of work on the endpoint.
    fn settle(&self);

    /// Sets the number of processes to `count`, which is called under the endpoint's lock.
    fn set_processes(&self, count: &dyn Fn() -> u32);

    /// Makes progress in the device thread.
    fn progress_as_device(&self) -> Progress;

    /// Prepares a sleep of the device thread. Returns the longest sleep.
    fn arm_device(&self) -> Duration;

    /// Notes that the device thread is awake again.
    fn device_awake(&self);
}
