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
//! checked, and what is left in the end.
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

/// Command line.
struct Options {
    only: String,
    time: Duration,
    turns: usize,
    all: bool,
}

fn options() -> Options {
    let time = Duration::from_millis(10);
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

/// Million matches a second of so many threads.
fn measure(mut unit: impl Unit, standing: Standing, threads: u32, time: Duration) -> f64 {
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
        start.wait();
        let mut matches = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            meet(unit, own);
            matches += 1;
        }
        matches
    };
    let rate = thread::scope(|scope| {
        let (matches, counted) = mpsc::channel();
        for thread in 0..threads {
            let (unit, run, matches) = (&unit, &run, matches.clone());
            scope.spawn(move || matches.send(run(unit, thread)));
        }
        start.wait();
        let before = Instant::now();
        thread::sleep(time);
        let elapsed = before.elapsed();
        stop.store(true, Ordering::Relaxed);
        drop(matches);
        counted.iter().sum::<u64>() as f64 / elapsed.as_secs_f64() / 1e6
    });
    assert!(unit.receives().into_iter().eq(0..receives), "standing receives");
    assert!(unit.messages().into_iter().eq(0..messages), "standing messages");
    rate
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
                let turns: Vec<[f64; 3]> = (0..options.turns)
                    .map(|_| {
                        let tails = |binning| {
                            let unit = TailQueues::<Q, L>::new(binning, make);
                            measure(unit, standing, threads, time)
                        };
                        let one = measure(OneLock::<Q, L>::new(make), standing, threads, time);
                        [one, tails(Binning::OFF), tails(Binning::PAPER)]
                    })
                    .collect();
                let rate = |which: usize| median(turns.iter().map(|turn| turn[which]));
                let ratio = |which: usize| median(turns.iter().map(|turn| turn[which] / turn[0]));
                println!(
                    "{name},{:.3},{:.3},{:.3},{:.2},{:.2}",
                    rate(0),
                    rate(1),
                    rate(2),
                    ratio(1),
                    ratio(2)
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
