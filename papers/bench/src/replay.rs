// SPDX-License-Identifier: BSD-2-Clause
//! Measures the time of the operations of a trace on the host for each engine.
//!
//! ```text
//! for each turn, for each engine:            a slow moment of the machine affects all engines
//!     replay steps, measure from the third   the first two make queues and fill caches
//!     time each section of equal operations  less the time of reading the clock
//! time = median of samples of at least 1024 operations
//! ```
//!
//! The time of an operation includes the search, the removal or insertion that follows, and the
//! device's statistics. The table has no entries. The time of making queues is measured separately,
//! from the first operation on.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use matching::measured::{Clock, MeasuredTime};
use matching::{Key, Source, TagLayout};
use nic::clusters;
use nic::config::DeviceConfig;
use nic::params::Params;
use nic::replay::{Change, Replay};
use nic::trace::{Op, Reader};
use serde_json::json;

/// Number of turns of each engine.
const TURNS: u32 = 3;
/// Number of steps at the beginning of a turn that are not measured.
const WARM_UP: usize = 2;
/// Least number of measured steps of a turn.
const MEASURED: usize = 4;
/// Least number of operations of a sample.
const SAMPLE: u64 = 1024;
/// Number of steps, from the first one on, whose operations and queues are counted.
const COUNTED: usize = 2;
/// Number of steps, from the first one on, in which the time of making queues is measured.
const MAKING: usize = 10;
/// Results of an operation: a receive waits, a message finds its receive, a message waits, a
/// receive finds its message.
const ROLES: [&str; 4] = ["waits", "finds receive", "unexpected", "finds message"];

type Failed = Box<dyn Error>;

/// Consecutive operations with the same result and the same kind of traffic. `role` is an index of
/// [`ROLES`].
struct Section {
    role: usize,
    collective: bool,
    operations: Range<usize>,
}

/// A trace, divided into steps. All steps have equal numbers of operations, except for a first step
/// that is not repeated.
pub(crate) struct Stream {
    ranks: String,
    operations: Vec<Op>,
    steps: Vec<Vec<Section>>,
    /// If set, the first step is not repeated.
    once: bool,
}

impl Stream {
    /// Reads the posts and arrivals of a trace. The first `once` operations become one step, the
    /// others become `steps` steps.
    pub(crate) fn read(path: &str, steps: usize, once: usize) -> Result<Self, Failed> {
        let reader = Reader::new(BufReader::new(File::open(path)?))?;
        let ranks = reader.header().config.get("nprocs").cloned().unwrap_or_default();
        let operations = reader.map(|timed| timed.map(|(_, op)| op));
        let mut operations = operations.collect::<Result<Vec<_>, _>>()?;
        operations.retain(|op| matches!(op, Op::Post(_) | Op::Arrive(_)));
        let mut stream = Self { ranks, operations, steps: Vec::new(), once: once > 0 };
        let mut replay = Replay::new(&stream.config("host_engine=hash")?)?;
        let step = (stream.operations.len() - once) / steps;
        for (at, op) in stream.operations.iter().enumerate() {
            if at == 0 || at >= once && (at - once).is_multiple_of(step) {
                stream.steps.push(Vec::new());
            }
            let bits = match op {
                Op::Post(posted) => posted.key.bits,
                Op::Arrive(message) => message.bits,
                _ => unreachable!("only these are kept"),
            };
            let key = Key { bits, ignore: 0, source: Source::ANY };
            let collective = TagLayout::Mpich.is_collective(&key);
            let mut role = 0;
            replay.play_with(op, |change| {
                role = match change {
                    Change::Posted(..) => 0,
                    Change::Matched(_) | Change::Found(_) => 1,
                    Change::Kept(..) => 2,
                    Change::Taken(_) => 3,
                }
            });
            let sections = stream.steps.last_mut().expect("the first operation begins a step");
            match sections.last_mut() {
                Some(last) if (last.role, last.collective) == (role, collective) => {
                    last.operations.end += 1;
                }
                _ => sections.push(Section { role, collective, operations: at..at + 1 }),
            }
        }
        Ok(stream)
    }

    /// Returns the step with a number. After the last step the steps repeat, without the first step
    /// if `once` is set.
    fn step(&self, number: usize) -> &[Section] {
        let (all, once) = (self.steps.len(), usize::from(self.once));
        let at = if number < all { number } else { once + (number - all) % (all - once) };
        &self.steps[at]
    }

    /// Returns the operations of the first `steps` steps, which repeat as in [`Stream::step`].
    fn first(&self, steps: usize) -> impl Iterator<Item = &Op> {
        let sections = (0..steps).flat_map(|number| self.step(number));
        sections.flat_map(|section| &self.operations[section.operations.clone()])
    }

    /// Returns the configuration of a device without table entries. An example of `settings` is
    /// `host_engine=list,host_storage=linked`.
    fn config(&self, settings: &str) -> Result<DeviceConfig, Failed> {
        let fixed = "tag_layout=mpich,prq_entries=0,umq_entries=0";
        let all = format!("nprocs={},{fixed},{settings}", self.ranks);
        let value = |name: &str| {
            let mut pairs = all.split(',').filter_map(|one| one.split_once('='));
            pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
        };
        let mut config = DeviceConfig::from_params(&Params::from_lookup(value)?, TagLayout::Mpich);
        if let Some(path) = value("clusters") {
            let own = clusters::read(&mut BufReader::new(File::open(path)?), 0, None)?;
            config.clusters = Some(own);
        }
        Ok(config)
    }
}

/// Nanoseconds for each operation of one kind.
#[derive(Clone, Default)]
struct Samples {
    all: Vec<f64>,
    time: f64,
    operations: u64,
    total: u64,
}

impl Samples {
    fn add(&mut self, time: f64, operations: u64) {
        self.time += time;
        self.operations += operations;
        self.total += operations;
        if self.operations >= SAMPLE {
            self.all.push(self.time / self.operations as f64);
            (self.time, self.operations) = (0.0, 0);
        }
    }

    /// Returns the median of the samples, or the mean if there are too few operations for a sample.
    /// Returns `None` without operations.
    fn median(mut self) -> Option<f64> {
        if self.all.is_empty() && self.operations > 0 {
            self.all.push(self.time / self.operations as f64);
        }
        self.all.sort_by(f64::total_cmp);
        self.all.get(self.all.len() / 2).copied()
    }
}

/// An engine in the middle of a stream.
struct Runner {
    replay: Replay,
    next: usize,
    samples: [[Samples; 2]; ROLES.len()],
}

impl Runner {
    fn turn(&mut self, stream: &Stream, clock: f64, time: Duration) {
        let began = Instant::now();
        let mut done = 0;
        while done < WARM_UP + MEASURED || began.elapsed() < time {
            for section in stream.step(self.next) {
                let operations = &stream.operations[section.operations.clone()];
                let before = Instant::now();
                for op in operations {
                    self.replay.play(op);
                }
                let time = before.elapsed().as_nanos() as f64 - clock;
                if done >= WARM_UP {
                    self.samples[section.role][usize::from(section.collective)]
                        .add(time, operations.len() as u64);
                }
            }
            self.next += 1;
            done += 1;
        }
    }
}

/// Returns the nanoseconds that reading the clock adds to a time, from the fastest batch of
/// readings.
fn clock() -> f64 {
    const BATCHES: u32 = 100;
    const READINGS: u32 = 100;
    let batch = |_| {
        let before = Instant::now();
        for _ in 0..READINGS {
            std::hint::black_box(Instant::now());
        }
        before.elapsed().as_nanos() as f64 / f64::from(READINGS)
    };
    (0..BATCHES).map(batch).fold(f64::INFINITY, f64::min)
}

/// A clock that returns the nanoseconds since its creation.
#[derive(Debug)]
struct Steady(Instant);

impl Clock for Steady {
    fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// Returns the nanoseconds of the insertions that made queues, and of all searches. Both are sums
/// over PRQ and UMQ in the first steps, from the first operation on.
fn making(stream: &Stream, config: DeviceConfig) -> Result<[u64; 2], Failed> {
    let clock: Option<Arc<dyn Clock>> = Some(Arc::new(Steady(Instant::now())));
    let mut replay = Replay::new(&DeviceConfig { clock, times: true, ..config })?;
    stream.first(MAKING).for_each(|op| replay.play(op));
    let counters = replay.counters();
    let both = [counters.prq.measured, counters.umq.measured];
    let sum = |part: fn(&MeasuredTime) -> u64| both.iter().map(part).sum();
    Ok([sum(|of| of.dedicate.ns), sum(|of| of.search.host.ns)])
}

/// Prints the times and counters of each engine, as a line of JSON for each of `settings`.
pub(crate) fn replay(stream: &Stream, ms: u64, settings: &[&str]) -> Result<(), Failed> {
    let configs = settings.iter().map(|settings| stream.config(settings));
    let configs = configs.collect::<Result<Vec<_>, _>>()?;
    let runner = |config| {
        Replay::new(config).map(|replay| {
            let samples = std::array::from_fn(|_| Default::default());
            Runner { replay, next: 0, samples }
        })
    };
    let mut runners = configs.iter().map(runner).collect::<Result<Vec<_>, _>>()?;
    let clock = clock();
    // If `ms` is 0, the engines count but nothing is timed.
    for _ in 0..if ms > 0 { TURNS } else { 0 } {
        for runner in &mut runners {
            runner.turn(stream, clock, Duration::from_millis(ms) / TURNS);
        }
    }
    for (mut config, runner) in configs.into_iter().zip(runners) {
        let mut times = serde_json::Map::new();
        for (role, of_role) in ROLES.into_iter().zip(runner.samples) {
            let each = of_role.map(|samples| (samples.total, samples.median()));
            times.insert(role.to_owned(), json!(each));
        }
        let queues = runner.replay.counters();
        let making = making(stream, config.clone())?;
        (config.prq.depths, config.umq.depths) = (true, true);
        let mut replay = Replay::new(&config)?;
        let traversed = |replay: &Replay| replay.context().traversals().map(|of| of.entries);
        let (mut deepest, mut before) = ([0; 2], [0; 2]);
        for op in stream.first(COUNTED) {
            replay.play(op);
            let after = traversed(&replay);
            for queue in 0..2 {
                deepest[queue] = deepest[queue].max(after[queue] - before[queue]);
            }
            before = after;
        }
        let counted = replay.counters();
        let line = json!({
            "times": times, "queues": queues, "making": making, "counted": counted, "deepest": deepest,
        });
        println!("{line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nic::message::Envelope;
    use nic::trace::{Encoder, Header, Posted};

    #[test]
    fn sections_of_a_step_have_one_role_and_one_kind_of_traffic() {
        let place = std::env::temp_dir().join(format!("papers-bench-{}.trace", std::process::id()));
        let config = [("nprocs".to_owned(), "2".to_owned())].into();
        let mut bytes =
            Header { config, layout: "mpich".to_owned(), ..Header::default() }.to_bytes();
        let (mut encoder, collective) = (Encoder::default(), 1 << 31);
        let post = |bits| {
            let key = Key { bits, ignore: 0, source: Source::new(1) };
            Op::Post(Posted { key, len: 8, non_contiguous: false, multi: None })
        };
        let arrive = |bits| Op::Arrive(Envelope { source: 1, bits, len: 8 });
        let step = [post(1), post(collective), arrive(collective), arrive(1), arrive(2), post(2)];
        for op in step.iter().chain(&step) {
            encoder.op(&mut bytes, op).unwrap();
        }
        std::fs::write(&place, bytes).unwrap();
        let stream = Stream::read(place.to_str().unwrap(), 2, 0).unwrap();
        std::fs::remove_file(&place).unwrap();
        for (number, step) in stream.steps.iter().enumerate() {
            let of = step.iter().map(|of| (of.role, of.collective, of.operations.clone()));
            let at = number * 6;
            let expected = [
                (0, false, at..at + 1),
                (0, true, at + 1..at + 2),
                (1, true, at + 2..at + 3),
                (1, false, at + 3..at + 4),
                (2, false, at + 4..at + 5),
                (3, false, at + 5..at + 6),
            ];
            assert!(of.eq(expected));
        }
    }
}
