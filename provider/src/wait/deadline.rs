// SPDX-License-Identifier: BSD-2-Clause
//! The end of a waiting call.

use std::{
    ffi::c_int,
    time::{Duration, Instant},
};

/// Longer than any wait.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(3600);

/// The end of a waiting call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Creates the deadline `timeout` milliseconds from now; negative: never.
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

    /// Time left, at most `most`.
    pub(crate) fn left(&self, most: Duration) -> Duration {
        self.0.map_or(most, |end| end.saturating_duration_since(Instant::now()).min(most))
    }
}
