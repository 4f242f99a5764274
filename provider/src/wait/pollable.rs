// SPDX-License-Identifier: BSD-2-Clause
//! What queues, counters and the thread of a domain know of an endpoint.

use std::{fmt::Debug, os::fd::BorrowedFd, time::Duration};

use ffi::Result;

use super::idle::{Caller, Pause};

/// Whether progress was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    None,
    Some,
}

/// An endpoint, as seen by whoever makes progress on it or sleeps on it.
pub(crate) trait Pollable: Debug + Send + Sync {
    /// Makes progress.
    fn progress(&self) -> Progress;

    /// Makes progress and looks at peers, if it is time, unless another thread is at this endpoint.
    /// It moves on by itself then, as it does where there is a device thread.
    fn try_progress(&self);

    /// After a poll that found nothing: what to do, once the peers were looked at if it is time.
    /// A spin is done here; if it ends with a message, that is [`Pause::Spin`].
    fn pause(&self, caller: Caller) -> Pause;

    /// Looks at peers, if it is time.
    fn look_around(&self);

    /// Sleeps until a message comes, somebody wakes us, or the time is over; not at all if
    /// something is `ready`.
    fn sleep(&self, at_most: Duration, ready: &dyn Fn() -> bool);

    /// Wakes those who sleep here.
    fn wake(&self);

    /// Whether a device thread makes progress.
    fn is_auto(&self) -> bool;

    /// Shows each descriptor of which one becomes readable when a message comes, once they were
    /// armed.
    ///
    /// # Errors
    /// No descriptors are left, or what the looker answers.
    fn bells(&self, look: &mut dyn FnMut(BorrowedFd<'_>) -> rustix::io::Result<()>) -> Result<()>;

    /// From here on one of them becomes readable; answers the longest sleep.
    fn arm_bells(&self) -> Duration;

    /// Returns when no other thread is in the middle of work on the endpoint.
    fn settle(&self);

    /// Tells the endpoint how many processes there are, as counted while nobody else tells it.
    fn set_processes(&self, count: &dyn Fn() -> u32);

    /// Makes progress in the device thread.
    fn progress_as_device(&self) -> Progress;

    /// Before the device thread sleeps: for how long it may.
    fn arm_device(&self) -> Duration;

    /// The device thread is awake again.
    fn device_awake(&self);
}
