// SPDX-License-Identifier: BSD-2-Clause
//! One turn of the prototype of *Tail queues* (section 4.1.1): matches a second of some threads at
//! one matching unit.
//!
//! ```text
//! so many receives and messages wait that never match
//! each thread, until the turn is over:
//!     post a receive                       it waits
//!     hand over the message that it is for it takes the receive
//! ```
//!
//! Every answer is checked, and what is left in the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use matching::tail_queues::Unit;
use matching::{Element, Source};

/// Longest time between two looks at whether the turn is to end early.
const LOOK: Duration = Duration::from_millis(50);

/// Elements that wait when the threads start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) receives: u32,
    pub(super) messages: u32,
}

/// Tags of standing receives, of standing messages, and of the first thread.
const RECEIVES: u64 = 1;
const MESSAGES: u64 = 2;
const FIRST: u64 = 3;

fn element(bits: u64, token: u32) -> Element {
    Element { bits, ignore: 0, source: Source::new(1), token }
}

/// What a turn gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Million matches a second.
    pub(super) rate: f64,
    /// Part of the time that a thread was ready to run and had no core, of the worst thread.
    pub(super) waited: f64,
}

/// Nanoseconds that this thread was ready to run and had no core; 0 where the kernel does not tell.
fn waited() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    statistics.split_whitespace().nth(1).and_then(|wait| wait.parse().ok()).unwrap_or(0)
}

/// One turn of so many threads, which a caller that is asked to stop ends early.
pub(super) fn turn(
    mut unit: impl Unit,
    standing: Standing,
    threads: u32,
    time: Duration,
    stops: &mut impl FnMut() -> bool,
) -> Turn {
    let Standing { receives, messages } = standing;
    for token in 0..receives {
        assert_eq!(unit.post(element(RECEIVES, token)), None);
    }
    for token in 0..messages {
        assert_eq!(unit.arrive(element(MESSAGES, token)), None);
    }
    let (start, stop) = (Barrier::new(threads as usize + 1), AtomicBool::new(false));
    let run = |unit: &_, thread: u32| {
        let own = element(FIRST + u64::from(thread), receives.max(messages) + thread);
        // The first match moves what waits to its list.
        meet(unit, own);
        let before = waited();
        start.wait();
        let mut matches = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            meet(unit, own);
            matches += 1;
        }
        (matches, waited() - before)
    };
    let turn = thread::scope(|scope| {
        let (results, counted) = mpsc::channel();
        for thread in 0..threads {
            let (unit, run, results) = (&unit, &run, results.clone());
            scope.spawn(move || results.send(run(unit, thread)));
        }
        drop(results);
        start.wait();
        let before = Instant::now();
        let elapsed = loop {
            let elapsed = before.elapsed();
            if elapsed >= time || stops() {
                break elapsed;
            }
            thread::sleep((time - elapsed).min(LOOK));
        };
        stop.store(true, Ordering::Relaxed);
        let (matches, waited) = counted
            .iter()
            .fold((0, 0), |(matches, worst), (more, waited)| (matches + more, waited.max(worst)));
        Turn {
            rate: matches as f64 / elapsed.as_secs_f64() / 1e6,
            waited: waited as f64 / elapsed.as_nanos() as f64,
        }
    });
    assert!(unit.receives().into_iter().eq(0..receives), "standing receives");
    assert!(unit.messages().into_iter().eq(0..messages), "standing messages");
    turn
}

/// Posts a receive and hands over its message.
fn meet(unit: &impl Unit, own: Element) {
    assert_eq!(unit.post(own), None);
    assert_eq!(unit.arrive(own), Some(own.token));
}

#[cfg(test)]
mod tests {
    use matching::Linked;
    use matching::tail_queues::{Binning, Mcs, OneLock, ParkingLot, TailQueues};

    use super::*;

    const STANDING: Standing = Standing { receives: 60, messages: 3 };

    #[test]
    fn every_unit_matches_behind_what_waits() {
        let time = Duration::from_millis(2);
        let tails = TailQueues::<_, Mcs>::new(Binning::PAPER, Linked::default);
        let one = OneLock::<_, ParkingLot>::new(Linked::default);
        for rate in [
            turn(tails, STANDING, 4, time, &mut || false).rate,
            turn(one, STANDING, 2, time, &mut || false).rate,
        ] {
            assert!(rate > 0.0 && rate.is_finite(), "{rate}");
        }
    }

    #[test]
    fn who_is_asked_to_stop_does_not_wait_for_the_end() {
        let before = Instant::now();
        let unit = OneLock::<_, Mcs>::new(Linked::default);
        turn(unit, STANDING, 1, Duration::from_secs(600), &mut || true);
        assert!(before.elapsed() < Duration::from_secs(60));
    }
}
