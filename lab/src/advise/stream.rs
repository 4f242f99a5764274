// SPDX-License-Identifier: BSD-2-Clause
//! A stream of operations in memory, replayed to engines for counts or for time.
//!
//! ```text
//! count:  play all once with search depths, which give the same counts every time
//! time:   for some rounds, for each engine:       whatever slows the machine hits all
//!             an empty context, all operations    without depths, at least a millisecond of it
//!     divided by the time of a yardstick before and after; the median of the rounds
//! ```
//! Time is that of the processor: of a machine that others use, too, it tells least of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use matching::{HostEngine, Queue, TagLayout};
use nic::config::DeviceConfig;
use nic::params::Params;
use nic::replay::{Change, Replay};
use nic::report::ContextCounters;
use nic::trace::Op;
use rustix::time::{ClockId, clock_gettime};

use super::contender::Contender;
use super::math::quantile;
use crate::error::Error;
use crate::settings::Settings;
use crate::traces::trace::Trace;
use crate::workload::generate;
use crate::workload::pattern::Pattern;
use crate::workload::stream::Place;

/// Rounds of a measurement.
const ROUNDS: usize = 15;
/// Time that one replay, or several of a short stream, take in a round at least.
const SPAN: Duration = Duration::from_millis(1);
/// Most replays of a round: making a context takes time, too.
const REPLAYS: u32 = 100;

/// See the module.
pub(crate) struct Stream {
    pub(crate) ops: Vec<Op>,
    layout: TagLayout,
    /// Parameters by name.
    base: BTreeMap<String, String>,
}

/// What a stream is like, whatever the engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Census {
    pub(crate) receives: u64,
    /// Receives that leave source or tag open.
    pub(crate) wildcards: u64,
    /// Probes, also those that take a message, with a wildcard.
    pub(crate) open_probes: u64,
    pub(crate) sources: BTreeSet<u32>,
    /// Operations with which something else happens than with the one before: what a processor
    /// guesses wrong.
    pub(crate) turns: u64,
    /// Elements found that are no neighbours of the one found before: what lies elsewhere.
    pub(crate) jumps: u64,
}

/// What happens with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Waits,
    FindsMessage,
    FindsReceive,
    Unexpected,
    Other,
}

impl Census {
    /// Of operations in order, by a replay without tables.
    pub(crate) fn of(
        ops: impl Iterator<Item = Op>,
        layout: TagLayout,
        params: &Params,
        most: usize,
    ) -> Result<Self, Error> {
        let params = Params::from_lookup(|name| match name {
            "host_engine" => Some(HostEngine::default().name().to_owned()),
            "prq_entries" | "umq_entries" => Some("0".to_owned()),
            _ => params.recorded().get(name).cloned(),
        })?;
        let mut config = DeviceConfig::from_params(&params, layout);
        (config.prq.depths, config.umq.depths, config.times) = (false, false, false);
        let mut replay = Replay::new(&config)?;
        let (mut census, mut last, mut before) = (Self::default(), Role::Other, [0_u64; 2]);
        for op in ops {
            let mut role = Role::Other;
            replay.play_and_tell(&op, |change| {
                let found = match (change, &op) {
                    (Change::Posted(..), _) => return role = Role::Waits,
                    (Change::Kept(..), _) => return role = Role::Unexpected,
                    (Change::Matched(number) | Change::Met(number), Op::Arrive(_)) => {
                        role = Role::FindsReceive;
                        (0, number)
                    }
                    (Change::Taken(number), Op::Post(_) | Op::PostAnyway(_)) => {
                        role = Role::FindsMessage;
                        (1, number)
                    }
                    _ => return,
                };
                let (queue, number) = found;
                census.jumps += u64::from(number.abs_diff(before[queue]) > 1);
                before[queue] = number;
            });
            census.note(&op, layout);
            census.turns += u64::from(role != last);
            last = role;
            if replay.context().posted().max(replay.context().unexpected()) > most {
                break;
            }
        }
        Ok(census)
    }

    /// Counts one operation.
    fn note(&mut self, op: &Op, layout: TagLayout) {
        match op {
            Op::Post(posted) | Op::PostAnyway(posted) => {
                let open = layout.is_any_source(&posted.key) || layout.is_any_tag(&posted.key);
                self.receives += 1;
                self.wildcards += u64::from(open);
            }
            Op::Peek(key) | Op::Claim(key) | Op::Discard(key) => {
                let open = layout.is_any_source(key) || layout.is_any_tag(key);
                self.open_probes += u64::from(open);
            }
            Op::Arrive(envelope) => {
                self.sources.insert(envelope.source);
            }
            _ => {}
        }
    }

    /// Whether a program without wildcards would have done the same.
    pub(crate) const fn has_wildcards(&self) -> bool {
        self.wildcards > 0 || self.open_probes > 0
    }

    /// The same without what its receives and probes name: they are of the MPI itself.
    pub(crate) fn of_the_mpi(self) -> Self {
        Self { receives: 0, wildcards: 0, open_probes: 0, ..self }
    }

    /// Adds another stream's. Its sources are others, at another process.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.receives += other.receives;
        self.wildcards += other.wildcards;
        self.open_probes += other.open_probes;
        self.turns += other.turns;
        self.jumps += other.jumps;
        if other.sources.len() > self.sources.len() {
            self.sources.clone_from(&other.sources);
        }
    }
}

impl Stream {
    pub(crate) fn new(ops: Vec<Op>, layout: TagLayout, params: &Params) -> Self {
        Self { ops, layout, base: params.recorded() }
    }

    /// All of a trace, with what is set here.
    pub(crate) fn of(trace: &Trace, settings: &Settings) -> Result<Self, Error> {
        let params = trace.params(settings)?;
        let layout = trace.layout(&params)?;
        let mut ops = Vec::new();
        for timed in trace.reader()? {
            match timed {
                Ok((_, Op::Send(_))) => {}
                Ok((_, op)) => ops.push(op),
                Err(error) if trace.take.cut_off => {
                    trace.tell(&error.to_string());
                    break;
                }
                Err(error) => return Err(trace.error(error)),
            }
        }
        Ok(Self::new(ops, layout, &params))
    }

    fn device(&self, contender: Contender, depths: bool) -> Result<DeviceConfig, Error> {
        let params = Params::from_lookup(|name| match name {
            "host_engine" => Some(contender.engine.name().to_owned()),
            "queue" => Some(contender.queue.name().to_owned()),
            _ => self.base.get(name).cloned(),
        })?;
        let mut config = DeviceConfig::from_params(&params, self.layout);
        (config.prq.depths, config.umq.depths) = (depths, depths);
        config.times = false;
        Ok(config)
    }

    /// What an engine counts.
    pub(crate) fn count(&self, contender: Contender) -> Result<ContextCounters, Error> {
        let mut replay = Replay::new(&self.device(contender, true)?)?;
        self.ops.iter().for_each(|op| replay.play(op));
        Ok(replay.counters())
    }

    pub(crate) fn census(&self) -> Result<Census, Error> {
        let params = Params::from_lookup(|name| self.base.get(name).cloned())?;
        Census::of(self.ops.iter().copied(), self.layout, &params, usize::MAX)
    }

    /// Time of one replay.
    fn time(&self, config: &DeviceConfig) -> Result<Duration, Error> {
        let mut replay = Replay::new(config)?;
        let before = processor_time();
        self.ops.iter().for_each(|op| replay.play(op));
        Ok(processor_time().saturating_sub(before))
    }
}

/// Nanoseconds of all streams, one after the other: of one replay, or of several where these are
/// short.
fn time(streams: &[Stream], configs: &[DeviceConfig]) -> Result<f64, Error> {
    let (mut spent, mut replays) = (Duration::ZERO, 0);
    while replays == 0 || spent < SPAN && replays < REPLAYS {
        for (stream, config) in streams.iter().zip(configs) {
            spent += stream.time(config)?;
        }
        replays += 1;
    }
    Ok(spent.as_nanos() as f64 / f64::from(replays))
}

/// What this thread kept a processor busy.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// A stream that is always the same, whose time tells how fast the machine is at the moment: it may
/// have others to serve, or another clock, for seconds at a time.
pub(crate) struct Yardstick {
    streams: [Stream; 1],
    configs: [DeviceConfig; 1],
}

impl Yardstick {
    pub(crate) fn new() -> Result<Self, Error> {
        const RANKS: u32 = 27;
        const STEPS: u32 = 48;
        let (pattern, place) = (Pattern::Halo, Place { rank: 0, ranks: RANKS });
        let mut ops = Vec::new();
        generate::generate(pattern, place, 1, 0..STEPS, pattern.usual_flight(), |event| {
            ops.push(event.op);
        });
        let params = generate::params(RANKS, &[("prq_entries", "0"), ("umq_entries", "0")])?;
        let stream = Stream::new(ops, TagLayout::Mpich, &params);
        let default = Contender { engine: HostEngine::default(), queue: Queue::default() };
        let configs = [stream.device(default, false)?];
        Ok(Self { streams: [stream], configs })
    }

    fn time(&self) -> Result<f64, Error> {
        time(&self.streams, &self.configs)
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// What each contender takes for all streams, one after the other, by what the yardstick takes
    /// at the moment: medians of the rounds.
    pub(crate) times: Vec<f64>,
    /// Nanoseconds that the yardstick takes: the median.
    pub(crate) yardstick_ns: f64,
}

/// Measures.
pub(crate) fn measure(
    streams: &[Stream],
    contenders: &[Contender],
    yardstick: &Yardstick,
) -> Result<Measured, Error> {
    let mut configs = Vec::with_capacity(contenders.len());
    for &contender in contenders {
        let of: Result<Vec<_>, _> =
            streams.iter().map(|stream| stream.device(contender, false)).collect();
        configs.push(of?);
    }
    let mut rounds = vec![Vec::with_capacity(ROUNDS); contenders.len()];
    let mut yardsticks = Vec::with_capacity(2 * ROUNDS);
    for _ in 0..ROUNDS {
        let before = yardstick.time()?;
        let times: Result<Vec<_>, _> =
            configs.iter().map(|configs| time(streams, configs)).collect();
        let after = yardstick.time()?;
        let now = f64::midpoint(before, after);
        rounds.iter_mut().zip(times?).for_each(|(round, time)| round.push(time / now));
        yardsticks.extend([before, after]);
    }
    Ok(Measured {
        times: rounds.iter().map(|times| quantile(times, 0.5)).collect(),
        yardstick_ns: quantile(&yardsticks, 0.5),
    })
}
