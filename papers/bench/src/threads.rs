// SPDX-License-Identifier: BSD-2-Clause
//! Runs turns of the prototype of *Tail queues* (section 4.1.1). A turn measures the matches a
//! second of several threads that share one matching unit.
//!
//! ```text
//! before: LENGTH receives wait, and with `both` LENGTH messages; none of them ever matches
//! each thread, until the turn is over:
//!     post a receive                           the receive waits
//!     deliver the message that matches it      the message takes the receive
//! ```
//!
//! Every answer is checked, and so are the remaining tokens at the end.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use matching::{Element, EngineConfig, Kernel, Linked, Packed, Queues, Scanner, Source};

use papers_bench::tail_queues::{Binning, Locks, Mcs, OneLock, ParkingLot, TailQueues, Unit};

/// Match bits of standing receives, of standing messages, and of the first thread.
const RECEIVES: u64 = 1;
const MESSAGES: u64 = 2;
const FIRST: u64 = 3;

/// A turn: the elements that wait when the threads start, the number of threads, and the duration.
#[derive(Clone, Copy)]
struct Turn {
    receives: u32,
    messages: u32,
    threads: u32,
    time: Duration,
}

/// The fields of a line of the input.
const FIELDS: &str = "LISTS,STORAGE,LOCK,THREADS,LENGTH,CONTENDER,MS";

/// Reads lines of [`FIELDS`]. For each line, prints the matches a second in millions, and the
/// fraction of the time for which a thread was ready to run and had no core. The fraction is that
/// of the thread where it is largest.
pub(crate) fn threads() -> Result<(), Box<dyn Error>> {
    for line in std::io::stdin().lines() {
        let line = line?;
        let [lists, storage, lock, threads, length, contender, ms] =
            line.split(',').collect::<Vec<_>>()[..]
        else {
            return Err(format!("{line}: expected {FIELDS}").into());
        };
        let receives = length.parse()?;
        let turn = Turn {
            receives,
            messages: if lists == "both" { receives } else { 0 },
            threads: threads.parse()?,
            time: Duration::from_millis(ms.parse()?),
        };
        let packed = || {
            let scanner = Scanner::new(Kernel::best()).expect("this processor has its best kernel");
            Packed::new(&EngineConfig::default(), scanner)
        };
        let (rate, waited) = match (storage, lock) {
            ("linked", Mcs::NAME) => turn.run_contender::<_, Mcs>(contender, Linked::default),
            ("linked", ParkingLot::NAME) => {
                turn.run_contender::<_, ParkingLot>(contender, Linked::default)
            }
            ("packed", Mcs::NAME) => turn.run_contender::<_, Mcs>(contender, packed),
            ("packed", ParkingLot::NAME) => turn.run_contender::<_, ParkingLot>(contender, packed),
            _ => return Err(format!("{line}: unknown storage or lock").into()),
        }
        .ok_or_else(|| format!("{line}: unknown contender `{contender}`"))?;
        println!("{rate} {waited}");
    }
    Ok(())
}

impl Turn {
    /// Runs the turn on a contender. Returns `None` if there is no contender of this name.
    fn run_contender<Q: Queues + Send, L: Locks>(
        self,
        contender: &str,
        make: impl Fn() -> Q,
    ) -> Option<(f64, f64)> {
        match contender {
            "one lock" => Some(self.run(OneLock::<Q, L>::new(make))),
            "tail queues" => Some(self.run(TailQueues::<Q, L>::new(Binning::OFF, make))),
            "binned tail queues" => Some(self.run(TailQueues::<Q, L>::new(Binning::PAPER, make))),
            _ => None,
        }
    }

    fn run(self, mut unit: impl Unit) -> (f64, f64) {
        let Self { receives, messages, threads, time } = self;
        for token in 0..receives {
            assert_eq!(unit.post(element(RECEIVES, token)), None);
        }
        for token in 0..messages {
            assert_eq!(unit.arrive(element(MESSAGES, token)), None);
        }
        let (start, stop) = (Barrier::new(threads as usize + 1), AtomicBool::new(false));
        let run = |unit: &_, thread: u32| {
            let own = element(FIRST + u64::from(thread), receives.max(messages) + thread);
            // The first match moves the standing elements from the inboxes to their lists.
            meet(unit, own);
            let before = wait_ns();
            start.wait();
            let mut matches = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                meet(unit, own);
                matches += 1;
            }
            (matches, wait_ns() - before)
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
            while before.elapsed() < time {
                thread::sleep(time.saturating_sub(before.elapsed()));
            }
            let elapsed = before.elapsed();
            stop.store(true, Ordering::Relaxed);
            let (matches, waited) =
                counted.iter().fold((0, 0), |(matches, worst), (more, waited)| {
                    (matches + more, waited.max(worst))
                });
            let rate = matches as f64 / elapsed.as_secs_f64() / 1e6;
            (rate, waited as f64 / elapsed.as_nanos() as f64)
        });
        assert!(unit.receives().into_iter().eq(0..receives), "standing receives");
        assert!(unit.messages().into_iter().eq(0..messages), "standing messages");
        turn
    }
}

fn element(bits: u64, token: u32) -> Element {
    Element { bits, ignore: 0, source: Source::new(1), token }
}

/// Posts a receive and delivers its message.
fn meet(unit: &impl Unit, own: Element) {
    assert_eq!(unit.post(own), None);
    assert_eq!(unit.arrive(own), Some(own.token));
}

/// Returns the nanoseconds for which this thread was ready to run and had no core, or 0 if the
/// kernel does not count them.
fn wait_ns() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    statistics.split_whitespace().nth(1).and_then(|wait| wait.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_matches_behind_standing_elements() {
        let turn =
            |threads| Turn { receives: 60, messages: 3, threads, time: Duration::from_millis(2) };
        for (contender, threads) in [("one lock", 2), ("tail queues", 4), ("binned tail queues", 4)]
        {
            let (rate, _) =
                turn(threads).run_contender::<_, Mcs>(contender, Linked::default).unwrap();
            assert!(rate > 0.0 && rate.is_finite(), "{contender}: {rate}");
        }
        assert!(turn(1).run_contender::<_, Mcs>("two locks", Linked::default).is_none());
    }
}
