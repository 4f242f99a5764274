// SPDX-License-Identifier: BSD-2-Clause
//! Matches a second of tail queues against one lock around both lists: the prototype of the paper
//! (Dosanjh, Grant, Schonbein, Bridges 2019, section 4.1.1).
//!
//! ```text
//! cargo bench -p matching --bench tail_queues -- [--only TEXT] [--ms N] [--turns N] [--all]
//! ```
//!
//! A unit begins with so many receives and messages that never match ("both"), or with receives
//! only ("prq"). Then every thread alternates: it posts a receive and hands over the message that
//! matches it. Contenders take turns, each time with a new unit; a row has the medians of their
//! million matches a second, and of what they are to the one lock of the same turn. Every answer is
//! checked, and what is left in the end. A turn in which a thread waited for a core, though there is
//! one for each, is made again: somebody else had it. The last column says how often that was, with
//! [`AGAIN`] it says that the row is disturbed.
//!
//! `--only` chooses rows by a part of their name, such as `both,linked,mcs,2,`; without `--all`
//! there are lengths of 1, 32 and 1024 only. A turn of more threads than cores takes four times as
//! long: whoever waits for a lock has to wait for a core, too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use matching::tail_queues::{Binning, Locks, Mcs, OneLock, ParkingLot, TailQueues, Unit};
use matching::{Element, EngineConfig, Kernel, Linked, Packed, Queues, Scanner, Source};

/// Part of a turn in which a thread waits for a core that disturbs it.
const DISTURBED: f64 = 0.03;
/// Turns of a row that are made again at most.
const AGAIN: usize = 1000;

/// Command line.
struct Options {
    only: String,
    time: Duration,
    turns: usize,
    all: bool,
}

fn options() -> Options {
    let time = Duration::from_millis(5);
    let mut options = Options { only: String::new(), time, turns: 7, all: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} wants a value"));
        match arg.as_str() {
            "--bench" => {}
            "--only" => options.only = value(),
            "--ms" => {
                options.time = Duration::from_millis(value().parse().expect("milliseconds"));
            }
            "--turns" => options.turns = value().parse().expect("a number of turns"),
            "--all" => options.all = true,
            _ => panic!("there are --only TEXT, --ms N, --turns N and --all"),
        }
    }
    options
}

/// Elements that wait when the threads start.
#[derive(Clone, Copy)]
struct Standing {
    receives: u32,
    messages: u32,
}

/// Tags of standing receives, of standing messages, and of the first thread.
const RECEIVES: u64 = 1;
const MESSAGES: u64 = 2;
const FIRST: u64 = 3;

fn element(bits: u64, token: u32) -> Element {
    Element { bits, ignore: 0, source: Source::new(1), token }
}

/// What a turn gave.
struct Turn {
    /// Million matches a second.
    rate: f64,
    /// Part of the time that a thread was ready to run and had no core, of the worst thread.
    waited: f64,
}

/// Nanoseconds that this thread was ready to run and had no core.
fn waited() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    statistics.split_whitespace().nth(1).map_or(0, |wait| wait.parse().expect("nanoseconds"))
}

/// One turn of so many threads.
fn turn(mut unit: impl Unit, standing: Standing, threads: u32, time: Duration) -> Turn {
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
        start.wait();
        let before = Instant::now();
        thread::sleep(time);
        let elapsed = before.elapsed();
        stop.store(true, Ordering::Relaxed);
        drop(results);
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

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn rows<Q: Queues + Send, L: Locks>(storage: &str, make: impl Fn() -> Q + Copy, options: &Options) {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    for lists in ["both", "prq"] {
        for threads in [1, 2, 4, 8] {
            let time = options.time * if threads as usize > cores { 4 } else { 1 };
            for length in (0..=12).map(|power| 1_u32 << power) {
                let name = format!("{lists},{storage},{},{threads},{length}", L::NAME);
                let few = [1, 32, 1024].contains(&length);
                if !(few || options.all) || !format!("{name},").contains(&options.only) {
                    continue;
                }
                let messages = if lists == "both" { length } else { 0 };
                let standing = Standing { receives: length, messages };
                let one = || turn(OneLock::<Q, L>::new(make), standing, threads, time);
                let tails =
                    |binning| turn(TailQueues::<Q, L>::new(binning, make), standing, threads, time);
                let mut again = 0;
                let mut undisturbed = |turn: &dyn Fn() -> Turn| loop {
                    let Turn { rate, waited } = turn();
                    if threads as usize > cores || waited < DISTURBED || again == AGAIN {
                        return rate;
                    }
                    again += 1;
                };
                let turns: Vec<[f64; 3]> = (0..options.turns)
                    .map(|_| {
                        [
                            undisturbed(&one),
                            undisturbed(&|| tails(Binning::OFF)),
                            undisturbed(&|| tails(Binning::PAPER)),
                        ]
                    })
                    .collect();
                let rate = |which: usize| median(turns.iter().map(|turn| turn[which]));
                let ratio = |which: usize| median(turns.iter().map(|turn| turn[which] / turn[0]));
                let [one, tails, binned] = [0, 1, 2].map(rate);
                let [of_tails, of_binned] = [1, 2].map(ratio);
                println!(
                    "{name},{one:.3},{tails:.3},{binned:.3},{of_tails:.2},{of_binned:.2},{again}"
                );
            }
        }
    }
}

fn main() {
    let options = options();
    let packed = || {
        let scanner = Scanner::new(Kernel::best()).expect("this processor has its best kernel");
        Packed::new(&EngineConfig::default(), scanner)
    };
    println!(
        "lists,storage,lock,threads,length,one-lock,tail-queues,binned,tail-queues/one-lock,binned/one-lock"
    );
    rows::<_, Mcs>("linked", Linked::default, &options);
    rows::<_, ParkingLot>("linked", Linked::default, &options);
    rows::<_, Mcs>("packed", packed, &options);
    rows::<_, ParkingLot>("packed", packed, &options);
}
