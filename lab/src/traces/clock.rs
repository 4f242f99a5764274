// SPDX-License-Identifier: BSD-2-Clause
//! The time of a trace, which passes for what is counted and costs none.

use std::sync::atomic::{AtomicU64, Ordering};

use matching::measured::Clock;
use matching::timing::Pace;

/// The time of a trace.
#[derive(Debug, Default)]
pub(crate) struct TraceClock(AtomicU64);

impl TraceClock {
    /// So many nanoseconds after the start.
    pub(crate) fn set(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }
}

impl Clock for TraceClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Time that does not pass.
#[derive(Debug)]
pub(super) struct NoTime;

impl Pace for NoTime {
    fn spend(&self, _picoseconds: u64) {}
}
