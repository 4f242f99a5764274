// SPDX-License-Identifier: BSD-2-Clause
//! The time of a trace. Recorded times pass, costs of the timing model do not.

use std::sync::atomic::{AtomicU64, Ordering};

use matching::measured::Clock;
use matching::timing::Pace;

/// The time of a trace.
#[derive(Debug, Default)]
pub(crate) struct TraceClock(AtomicU64);

impl TraceClock {
    /// Sets the time in nanoseconds since the start.
    pub(crate) fn set(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }
}

impl Clock for TraceClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Ignores the time that the timing model charges.
#[derive(Debug)]
pub(super) struct NoTime;

impl Pace for NoTime {
    fn spend(&self, _picoseconds: u64) {}
}
