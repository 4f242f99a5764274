// SPDX-License-Identifier: BSD-2-Clause
//! How threads wait for messages, and operations for counters. Endpoints are known here only as
//! [`pollable::Pollable`].
//!
//! ```text
//! set  device_thread     endpoints that a queue, a counter or the thread of a domain polls
//! triggers               operations that wait for a counter
//! pollable               interfaces of endpoints and counters
//! idle  callers          empty polls, and the other calling threads
//! ```

pub(crate) mod callers;
pub(crate) mod device_thread;
pub(crate) mod idle;
pub(crate) mod pollable;
pub(crate) mod set;
pub(crate) mod triggers;

use std::{
    ffi::c_int,
    time::{Duration, Instant},
};

/// Maximum length of one sleep of a waiting call. A longer wait consists of several sleeps.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(3600);

/// The end of a waiting call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Creates the deadline `timeout` milliseconds from now, or none if `timeout` is negative.
    pub(crate) fn after(timeout: c_int) -> Self {
        Self(
            u64::try_from(timeout)
                .ok()
                .map(|timeout| Instant::now() + Duration::from_millis(timeout)),
        )
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }

    /// Returns the time left, but at most `most`.
    pub(crate) fn left(&self, most: Duration) -> Duration {
        self.0.map_or(most, |end| end.saturating_duration_since(Instant::now()).min(most))
    }
}
