// SPDX-License-Identifier: BSD-2-Clause
//! Time of searches on the host, engine by engine, on a generated stream.
//!
//! ```text
//! for some turns, for each engine:           whatever slows the machine hits all
//!     replay steps, the first not measured   queues are made, caches filled
//!     time each section of operations alike  less what reading the clock takes
//! time = median of samples of at least 1024 operations
//! ```
//!
//! An operation is what the device does with a table of no entries: the search, the
//! removal or insertion that follows, and its own accounts. What making queues takes
//! is measured apart, from the first operation on ([`making`]).

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use matching::measured::{Clock, MeasuredTime};
use matching::{HostEngine, Queue, TagLayout};
use nic::clusters::Own;
use nic::config::DeviceConfig;
use nic::replay::Replay;
use nic::report::ContextCounters;
use nic::trace::Op;

use crate::error::Error;
use crate::workload::generate;
use crate::workload::pattern::Pattern;
use crate::workload::stream::{Place, Role};

/// Turns of each engine with one seed.
const TURNS: u32 = 3;
/// Steps of a turn before those that are measured, and that are measured at least.
const WARM_UP: usize = 2;
const MEASURED: usize = 4;
/// Steps in which making queues is measured, as many as `tcam workload` has.
pub(super) const MAKING_STEPS: usize = 10;
/// Operations of a sample at least.
const SAMPLE: u64 = 1024;
/// Messages in all steps that are prepared, and steps at least: the branch predictor
/// learns few short ones.
const MESSAGES: usize = 16_384;
const STEPS: u32 = 8;

/// An engine as it is measured.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub(super) engine: HostEngine,
    pub(super) queue: Queue,
    /// k_C and k_P.
    pub(super) k: u32,
    /// Those of `kmeans`.
    pub(super) clusters: Option<Own>,
}

impl Contender {
    /// One without clusters.
    pub(super) const fn new(engine: HostEngine, queue: Queue, k: u32) -> Self {
        Self { engine, queue, k, clusters: None }
    }

    /// The paper's theta for lists, ours for arrays.
    const fn theta(&self) -> &'static str {
        match self.queue {
            Queue::Linked => "100",
            Queue::Packed => "512",
        }
    }

    fn config(&self, ranks: u32) -> Result<DeviceConfig, Error> {
        let k = self.k.to_string();
        let set = [
            ("prq_entries", "0"),
            ("umq_entries", "0"),
            ("host_engine", self.engine.name()),
            ("queue", self.queue.name()),
            ("theta", self.theta()),
            ("k_col", &k),
            ("k_pnp", &k),
            ("clusters", "made of the stream"),
        ];
        let params = generate::params(ranks, &set)?;
        let clusters = self.clusters.clone();
        Ok(DeviceConfig { clusters, ..DeviceConfig::from_params(&params, TagLayout::Mpich) })
    }
}

/// What is timed together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    role: Role,
    collective: bool,
    operations: Range<usize>,
}

/// A step of a stream.
#[derive(Clone, Debug, Default)]
struct Step {
    operations: Vec<Op>,
    sections: Vec<Section>,
}

impl Step {
    fn push(&mut self, role: Role, collective: bool, op: Op) {
        let at = self.operations.len();
        self.operations.push(op);
        match self.sections.last_mut() {
            Some(last) if (last.role, last.collective) == (role, collective) => {
                last.operations.end += 1;
            }
            _ => self.sections.push(Section { role, collective, operations: at..at + 1 }),
        }
    }
}

/// A stream, prepared.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) ranks: u32,
    steps: Vec<Step>,
    /// The first step is not repeated.
    once: bool,
}

impl Stream {
    /// Steps of operations, each with its role.
    pub(super) fn of(ranks: u32, steps: impl Iterator<Item = Vec<(Role, Op)>>) -> Self {
        let prepare = |operations: Vec<(Role, Op)>| {
            let mut made = Step::default();
            operations.into_iter().for_each(|(role, op)| made.push(role, false, op));
            made
        };
        Self { ranks, steps: steps.map(prepare).collect(), once: false }
    }

    /// A step that is done once, and one that is repeated for ever.
    pub(super) fn once_and(first: Vec<(Role, Op)>, rest: Vec<(Role, Op)>) -> Self {
        Self { once: true, ..Self::of(2, [first, rest].into_iter()) }
    }

    /// What rank 0 is sent and receives.
    pub(super) fn new(pattern: Pattern, ranks: u32, seed: u64) -> Self {
        let place = Place { rank: 0, ranks };
        let flight = pattern.usual_flight();
        let prepare = |step: u32| {
            let mut made = Step::default();
            generate::generate(pattern, place, seed, step..step + 1, flight, |event| {
                made.push(event.role, event.collective, event.op);
            });
            made
        };
        let first = prepare(0);
        let steps = STEPS.max((MESSAGES / first.operations.len().max(1)) as u32);
        let rest = (1..steps).map(prepare);
        Self { ranks, steps: std::iter::once(first).chain(rest).collect(), once: false }
    }
}

impl Stream {
    /// The step of a number.
    fn step(&self, number: usize) -> &Step {
        let (all, once) = (self.steps.len(), usize::from(self.once));
        let at = if number < all { number } else { once + (number - all) % (all - once) };
        &self.steps[at]
    }
}

/// Nanoseconds an operation of one kind.
#[derive(Clone, Debug, Default)]
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

    /// Of the samples; of what there is if that is less than one.
    fn median(&self) -> Option<f64> {
        let mut sorted = self.all.clone();
        if sorted.is_empty() && self.operations > 0 {
            sorted.push(self.time / self.operations as f64);
        }
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

/// What an engine took, and what it made.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    samples: [[Samples; 2]; 4],
    pub(super) counters: ContextCounters,
}

impl Costs {
    /// Median of the operations with a role, of collective traffic or not; of both
    /// kinds, weighted, if that is left open. None if there are none.
    pub(super) fn of(&self, role: Role, collective: Option<bool>) -> Option<f64> {
        let kinds = &self.samples[role as usize];
        if let Some(collective) = collective {
            return kinds[usize::from(collective)].median();
        }
        let mut sum = (0.0, 0.0);
        for samples in kinds {
            if let Some(median) = samples.median() {
                sum.0 += median * samples.total as f64;
                sum.1 += samples.total as f64;
            }
        }
        (sum.1 > 0.0).then(|| sum.0 / sum.1)
    }
}

/// An engine in the middle of a stream.
struct Runner {
    replay: Replay,
    next: usize,
    samples: [[Samples; 2]; 4],
}

impl Runner {
    fn turn(&mut self, stream: &Stream, clock: f64, time: Duration) {
        let began = Instant::now();
        let mut done = 0;
        while done < WARM_UP + MEASURED || began.elapsed() < time {
            let step = stream.step(self.next);
            for section in &step.sections {
                let operations = &step.operations[section.operations.clone()];
                let before = Instant::now();
                for op in operations {
                    self.replay.play(op);
                }
                let time = before.elapsed().as_nanos() as f64 - clock;
                if done >= WARM_UP {
                    self.samples[section.role as usize][usize::from(section.collective)]
                        .add(time, operations.len() as u64);
                }
            }
            self.next += 1;
            done += 1;
        }
    }
}

/// Nanoseconds that reading the clock adds to a time: of the batch of readings that
/// nothing came between.
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

/// Measures every contender for so long.
pub(super) fn all(
    stream: &Stream,
    contenders: &[Contender],
    time: Duration,
) -> Result<Vec<Costs>, Error> {
    let runner = |contender: &Contender| {
        let replay = Replay::new(&contender.config(stream.ranks)?)?;
        Ok(Runner { replay, next: 0, samples: Default::default() })
    };
    let mut runners = contenders.iter().map(runner).collect::<Result<Vec<_>, Error>>()?;
    let clock = clock();
    for _ in 0..TURNS {
        for runner in &mut runners {
            runner.turn(stream, clock, time / TURNS);
        }
    }
    let costs =
        |runner: Runner| Costs { counters: runner.replay.counters(), samples: runner.samples };
    Ok(runners.into_iter().map(costs).collect())
}

/// Nanoseconds since it was made.
#[derive(Debug)]
struct Steady(Instant);

impl Clock for Steady {
    fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// Nanoseconds of a run from its first operation on, in both queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Making {
    /// Insertions that made queues: reading the profile or counting sources, the queues
    /// themselves, the elements that had waited for one.
    pub(super) queues: f64,
    /// All searches.
    pub(super) searches: f64,
}

/// What making queues took in the first steps, as `FI_TCAM_TIMES` has it.
pub(super) fn making(stream: &Stream, contender: &Contender) -> Result<Making, Error> {
    let config = DeviceConfig {
        clock: Some(Arc::new(Steady(Instant::now()))),
        times: true,
        ..contender.config(stream.ranks)?
    };
    let mut replay = Replay::new(&config)?;
    for step in stream.steps.iter().cycle().take(MAKING_STEPS) {
        step.operations.iter().for_each(|op| replay.play(op));
    }
    let counters = replay.counters();
    let both = [counters.prq.measured, counters.umq.measured];
    let sum = |part: fn(&MeasuredTime) -> u64| both.iter().map(part).sum::<u64>() as f64;
    Ok(Making { queues: sum(|of| of.dedicate.ns), searches: sum(|of| of.search.host.ns) })
}

/// What queues counted in two steps: how long they were and, where depths are wanted, who added
/// what and what searches traversed.
pub(super) fn count(
    stream: &Stream,
    contender: &Contender,
    depths: bool,
) -> Result<ContextCounters, Error> {
    let mut config = contender.config(stream.ranks)?;
    (config.prq.depths, config.umq.depths) = (depths, depths);
    let mut replay = Replay::new(&config)?;
    for step in stream.steps.iter().take(2) {
        step.operations.iter().for_each(|op| replay.play(op));
    }
    Ok(replay.counters())
}

/// The longest that each queue was in two steps, and the most elements that a search of it
/// traversed: of the PRQ, then of the UMQ.
pub(super) fn extremes(stream: &Stream, contender: &Contender) -> Result<[[u64; 2]; 2], Error> {
    let mut config = contender.config(stream.ranks)?;
    (config.prq.depths, config.umq.depths) = (true, true);
    let mut replay = Replay::new(&config)?;
    let traversed = |replay: &Replay| replay.context().traversals().map(|of| of.entries);
    let (mut deepest, mut before) = ([0; 2], traversed(&replay));
    for op in stream.steps.iter().take(2).flat_map(|step| &step.operations) {
        replay.play(op);
        let after = traversed(&replay);
        for queue in 0..2 {
            deepest[queue] = deepest[queue].max(after[queue] - before[queue]);
        }
        before = after;
    }
    let counters = replay.counters();
    Ok([[counters.prq.high_water, deepest[0]], [counters.umq.high_water, deepest[1]]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_of_a_stream_is_timed() {
        let stream = Stream::new(Pattern::Fds, 64, 1);
        let contender = |engine| Contender::new(engine, Queue::Linked, 8);
        let contenders = [HostEngine::List, HostEngine::ColPnp].map(contender);
        let costs = all(&stream, &contenders, Duration::from_millis(5)).unwrap();
        for costs in &costs {
            assert_eq!(costs.counters.check(), Ok(()));
            for role in [Role::Waits, Role::FindsReceive, Role::Unexpected, Role::FindsMessage] {
                assert!(costs.of(role, None).is_some_and(|time| time > 0.0), "{role:?}");
            }
        }
        assert_eq!(costs[0].counters.prq.dedicated_collective, 0);
        assert!(costs[1].counters.prq.dedicated_collective > 0);
    }

    #[test]
    fn making_queues_is_timed_where_queues_are_made() {
        let stream = Stream::new(Pattern::Fds, 64, 1);
        let of = |engine| making(&stream, &Contender::new(engine, Queue::Linked, 8)).unwrap();
        let (list, col_pnp) = (of(HostEngine::List), of(HostEngine::ColPnp));
        assert_eq!(list.queues, 0.0);
        assert!(list.searches > 0.0 && col_pnp.queues > 0.0, "{list:?} {col_pnp:?}");
    }

    #[test]
    fn both_storages_of_a_list_traverse_as_many_elements() {
        let stream = Stream::new(Pattern::Fds, 64, 1);
        let of = |queue| extremes(&stream, &Contender::new(HostEngine::List, queue, 8)).unwrap();
        let [[longest, deepest], [_, of_messages]] = of(Queue::Linked);
        assert!(deepest > longest / 2 && deepest <= longest && of_messages > 0);
        assert_eq!(of(Queue::Packed), of(Queue::Linked));
    }

    #[test]
    fn sections_are_of_one_kind() {
        let stream = Stream::new(Pattern::Nbody, 64, 1);
        for step in &stream.steps {
            let end = step.sections.iter().fold(0, |end, section| {
                assert_eq!(section.operations.start, end);
                section.operations.end
            });
            assert_eq!(end, step.operations.len());
        }
    }
}
