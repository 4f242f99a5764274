// SPDX-License-Identifier: BSD-2-Clause
//! The clock for measurements: the monotonic clock, which is read without a system call.

use std::time::Instant;

use matching::measured::Clock;

/// Measures the time since the endpoint was opened.
#[derive(Debug)]
pub(crate) struct Monotonic {
    start: Instant,
}

impl Monotonic {
    pub(crate) fn since(start: Instant) -> Self {
        Self { start }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> u64 {
        // 584 years fit.
        self.start.elapsed().as_nanos() as u64
    }
}
