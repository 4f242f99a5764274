// SPDX-License-Identifier: BSD-2-Clause
//! Lets modelled time pass (`FI_TCAM_TABLE_NS` and related parameters): the calling thread spins,
//! so that the application waits as it would for the device.
//!
//! A cost may be shorter than the time to read the clock. Time that passes in excess is a credit
//! for the next costs, which take no time until the credit is used up. The sum is therefore right,
//! and no cost is off by more than two reads of the clock.

use std::{
    hint,
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use matching::timing::Pace;

/// Maximum credit in picoseconds. Without this limit, time in which another process had the core
/// would become credit.
const MOST_CREDIT: u64 = 200_000;

/// Spins on the clock, which is read without a system call.
#[derive(Debug)]
pub(crate) struct Spin {
    /// Credit in picoseconds. Only the thread that uses the device spends it.
    credit: AtomicU64,
    /// Time in picoseconds that two reads of the clock take beyond the difference between them.
    clock_overhead: u64,
}

impl Spin {
    pub(crate) fn new() -> Self {
        // The minimum of several measurements, because other processes use the core too.
        let clock_overhead = (0..20).map(|_| {
            let (start, rounds) = (Instant::now(), 32);
            let seen: u64 = (0..rounds).map(|_| picoseconds_since(Instant::now())).sum();
            picoseconds_since(start).saturating_sub(seen) / rounds
        });
        Self { credit: AtomicU64::new(0), clock_overhead: clock_overhead.min().unwrap_or(0) }
    }
}

fn picoseconds_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).map_or(u64::MAX, |ns| ns.saturating_mul(1000))
}

impl Pace for Spin {
    fn spend(&self, picoseconds: u64) {
        let credit = self.credit.load(Ordering::Relaxed);
        let Some(owed) = picoseconds.checked_sub(credit).filter(|owed| *owed > 0) else {
            return self.credit.store(credit - picoseconds, Ordering::Relaxed);
        };
        let start = Instant::now();
        let spent = loop {
            let spent = picoseconds_since(start).saturating_add(self.clock_overhead);
            if spent >= owed {
                break spent;
            }
            hint::spin_loop();
        };
        self.credit.store((spent - owed).min(MOST_CREDIT), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_costs_passes() {
        for cost in [37_500, 2_000_000] {
            // Rounds short enough to fit between two switches of a busy core.
            let times = 200_000_000 / cost;
            let ratio = (0..200).map(|_| {
                let spin = Spin::new();
                let start = Instant::now();
                (0..times).for_each(|_| spin.spend(cost));
                picoseconds_since(start) as f64 / (times * cost) as f64
            });
            // The minimum, because other processes use the core too.
            let best = ratio.fold(f64::INFINITY, f64::min);
            assert!((0.8..2.0).contains(&best), "{cost} ps: {best} times as long");
        }
    }
}
