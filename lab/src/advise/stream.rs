// SPDX-License-Identifier: BSD-2-Clause
//! A stream of operations in memory, replayed to engines for counts or for time.
//!
//! ```text
//! count:  play all once with search depths, which give the same counts every time
//! time:   for some rounds, for each engine:       whatever slows the machine hits all
//!             an empty context, all operations    without depths, at least a millisecond of it
//!         the median of the rounds
//! ```
//! Time is that of the processor: of a machine that others use, too, it tells least of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use matching::TagLayout;
use nic::device::DeviceConfig;
use nic::params::Params;
use nic::replay::Replay;
use nic::report::ContextCounters;
use nic::trace::Op;
use rustix::time::{ClockId, clock_gettime};

use super::contender::Contender;
use crate::environment::Settings;
use crate::error::Error;
use crate::traces::Trace;

/// Rounds of a measurement.
const ROUNDS: usize = 7;
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

/// What posts and arrivals of a stream tell without a replay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Census {
    pub(crate) receives: u64,
    /// Receives that leave source or tag open.
    pub(crate) wildcards: u64,
    pub(crate) sources: BTreeSet<u32>,
}

impl Census {
    /// Counts one operation.
    pub(crate) fn note(&mut self, op: &Op, layout: TagLayout) {
        match op {
            Op::Post(posted) | Op::PostAnyway(posted) => {
                let open = layout.is_any_source(&posted.key) || layout.is_any_tag(&posted.key);
                self.receives += 1;
                self.wildcards += u64::from(open);
            }
            Op::Arrive(envelope) => {
                self.sources.insert(envelope.source);
            }
            _ => {}
        }
    }

    /// Adds another stream's. Its sources are others, at another process.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.receives += other.receives;
        self.wildcards += other.wildcards;
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

    pub(crate) fn census(&self) -> Census {
        let mut census = Census::default();
        self.ops.iter().for_each(|op| census.note(op, self.layout));
        census
    }

    /// Nanoseconds of one replay.
    fn time(&self, config: &DeviceConfig) -> Result<f64, Error> {
        let (mut spent, mut replays) = (Duration::ZERO, 0);
        while replays == 0 || spent < SPAN && replays < REPLAYS {
            let mut replay = Replay::new(config)?;
            let before = processor_time();
            self.ops.iter().for_each(|op| replay.play(op));
            spent += processor_time().saturating_sub(before);
            replays += 1;
        }
        Ok(spent.as_nanos() as f64 / f64::from(replays))
    }
}

/// What this thread kept a processor busy.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Nanoseconds that each contender takes for all streams, one after the other: the median.
pub(crate) fn measure(streams: &[Stream], contenders: &[Contender]) -> Result<Vec<f64>, Error> {
    let mut configs = Vec::with_capacity(contenders.len());
    for &contender in contenders {
        let of: Result<Vec<_>, _> =
            streams.iter().map(|stream| stream.device(contender, false)).collect();
        configs.push(of?);
    }
    let mut rounds = vec![Vec::with_capacity(ROUNDS); contenders.len()];
    for _ in 0..ROUNDS {
        for (times, configs) in rounds.iter_mut().zip(&configs) {
            let each = streams.iter().zip(configs).map(|(stream, config)| stream.time(config));
            times.push(each.sum::<Result<f64, Error>>()?);
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    Ok(rounds.into_iter().map(median).collect())
}
