// SPDX-License-Identifier: BSD-2-Clause
//! Measures the time that each host engine takes to replay the traces. A host engine is a data
//! structure that matches the elements outside the table.
//!
//! ```text
//! for each round, for each engine:           a slow moment of the machine slows all engines
//!     for each trace: replay all operations on empty queues
//!     again, until a millisecond has passed
//! time of an engine      median of its rounds
//! ratio of two engines   median of the ratios of both times in one round
//! ```
//! With each median, the range of 80 % of the rounds is printed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use matching::{HostEngine, HostStorage, TagLayout};
use nic::config::DeviceConfig;
use nic::params::Params;
use nic::replay::Replay;
use nic::trace::{Op, TraceError};
use rustix::time::{ClockId, clock_gettime};
use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::settings::Settings;
use crate::stats;
use crate::traces::Trace;

/// Number of rounds of a measurement. If the measurement takes longer than [`LONGEST`], there are
/// fewer rounds, but at least [`FEWEST_ROUNDS`].
const ROUNDS: usize = 15;
const FEWEST_ROUNDS: usize = 5;
const LONGEST: Duration = Duration::from_secs(10);
/// Minimum time of an engine in a round. Short traces are replayed several times to reach it.
const SPAN: Duration = Duration::from_millis(1);
/// Maximum number of replays of an engine in a round, because making a context takes time, too.
const REPLAYS: u32 = 100;

/// A host engine with a storage of its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Contender {
    #[serde(serialize_with = "name_of_engine")]
    pub(super) engine: HostEngine,
    #[serde(serialize_with = "name_of_queue")]
    pub(super) queue: HostStorage,
}

fn name_of_engine<S: Serializer>(engine: &HostEngine, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(engine.name())
}

fn name_of_queue<S: Serializer>(queue: &HostStorage, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(queue.name())
}

impl Contender {
    /// Returns every engine that is measured, on every storage.
    pub(super) fn all() -> Vec<Self> {
        let engines = HostEngine::ALL.iter().copied().filter(|&engine| why_not(engine).is_none());
        let on_each = |engine| HostStorage::ALL.iter().map(move |&queue| Self { engine, queue });
        engines.flat_map(on_each).collect()
    }

    /// Returns true if the engine is for programs that promise to use no wildcard.
    pub(super) fn promises(self) -> bool {
        self.engine == HostEngine::Hash
    }

    /// Returns these settings with this engine and storage.
    pub(super) fn set(self, settings: &Settings) -> Settings {
        settings.with([("host_engine", &self.engine.name()), ("host_storage", &self.queue.name())])
    }

    /// Returns the engines that are not measured, with the reason.
    pub(super) fn left_out() -> Vec<(HostEngine, &'static str)> {
        let engines = HostEngine::ALL.iter();
        engines.filter_map(|&engine| Some((engine, why_not(engine)?))).collect()
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.engine.name(), self.queue.name())
    }
}

/// Returns the reason why an engine is not measured, or `None` if it is measured.
fn why_not(engine: HostEngine) -> Option<&'static str> {
    match engine {
        HostEngine::Kmeans => Some("it needs clusters of an earlier run"),
        HostEngine::TailQueues => Some("it is another name of list"),
        _ => None,
    }
}

/// The operations of one trace, with its parameters.
pub(super) struct LoadedTrace {
    /// The operations that are replayed.
    pub(super) ops: Vec<Op>,
    /// Number of operations of the whole trace, without sends.
    pub(super) operations: u64,
    layout: TagLayout,
    /// Recorded parameters with the user's settings, by name.
    params: BTreeMap<String, String>,
    /// Wildcards of the whole trace; 0 for a trace of untagged messages.
    pub(super) wildcards: WildcardCounts,
}

/// Receives of a program, and the wildcards among them. Wildcards rule out engines that need exact
/// source and tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct WildcardCounts {
    pub(super) receives: u64,
    /// Receives with any source or any tag.
    pub(super) wildcards: u64,
    /// Probes with any source or any tag.
    pub(super) open_probes: u64,
}

impl WildcardCounts {
    fn add(&mut self, layout: TagLayout, op: &Op) {
        let is_open = |key| layout.is_any_source(key) || layout.is_any_tag(key);
        match op {
            Op::Post(posted) | Op::PostAnyway(posted) => {
                self.receives += 1;
                self.wildcards += u64::from(is_open(&posted.key));
            }
            Op::Peek(key) | Op::Claim(key) | Op::Discard(key) => {
                self.open_probes += u64::from(is_open(key));
            }
            _ => {}
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            receives: self.receives + other.receives,
            wildcards: self.wildcards + other.wildcards,
            open_probes: self.open_probes + other.open_probes,
        }
    }
}

impl LoadedTrace {
    /// Reads a trace, and keeps its first `most` operations. Sends are left out.
    ///
    /// # Errors
    ///
    /// If the trace cannot be read, or was cut off and that is not accepted.
    pub(super) fn of(trace: &Trace, settings: &Settings, most: usize) -> Result<Self, Error> {
        let params = trace.params(settings)?;
        let layout = trace.layout(&params)?;
        // Untagged receives are those of the MPI itself, and do not count.
        let is_tagged = trace.header.context == "tagged";
        let (mut ops, mut operations, mut wildcards) = (Vec::new(), 0, WildcardCounts::default());
        for timed in trace.reader()? {
            match timed {
                Ok((_, Op::Send(_))) => {}
                Ok((_, op)) => {
                    operations += 1;
                    if is_tagged {
                        wildcards.add(layout, &op);
                    }
                    if ops.len() < most {
                        ops.push(op);
                    }
                }
                Err(error @ TraceError::Cut(_)) if trace.take.cut_off => {
                    trace.tell(&error.to_string());
                    break;
                }
                Err(error) => return Err(trace.error(error)),
            }
        }
        Ok(Self { ops, operations, layout, params: params.recorded(), wildcards })
    }

    pub(super) fn messages(&self) -> usize {
        self.ops.iter().filter(|op| matches!(op, Op::Arrive(_))).count()
    }

    /// Returns the device of the trace with another engine and tables of these entries (PRQ, UMQ).
    /// It counts no depths and no times.
    pub(super) fn device(
        &self,
        contender: Contender,
        [prq, umq]: [u64; 2],
    ) -> Result<DeviceConfig, Error> {
        let params = Params::from_lookup(|name| match name {
            "host_engine" => Some(contender.engine.name().to_owned()),
            "host_storage" => Some(contender.queue.name().to_owned()),
            "prq_entries" => Some(prq.to_string()),
            "umq_entries" => Some(umq.to_string()),
            _ => self.params.get(name).cloned(),
        })?;
        let mut config = DeviceConfig::from_params(&params, self.layout);
        (config.prq.depths, config.umq.depths, config.times) = (false, false, false);
        Ok(config)
    }

    /// Returns the processor time of one replay on an empty context. Other programs on the machine
    /// affect processor time less than wall time.
    pub(super) fn time(&self, config: &DeviceConfig) -> Result<Duration, Error> {
        let mut replay = Replay::new(config)?;
        let before = processor_time();
        self.ops.iter().for_each(|op| replay.play(op));
        Ok(processor_time().saturating_sub(before))
    }
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// A median, and the range of 80 % of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Middle {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Middle {
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let [low, median, high] = [0.1, 0.5, 0.9].map(|part| stats::quantile(&values, part));
        Self { median, low, high }
    }
}

/// Nanoseconds that each engine took for all traces, by round.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds(Vec<Vec<f64>>);

impl Rounds {
    /// Measures all engines in turn, with tables of these entries (PRQ, UMQ). It does 15 rounds, or
    /// as many as ten seconds allow, but at least 5.
    pub(super) fn measure(
        traces: &[LoadedTrace],
        contenders: &[Contender],
        entries: [u64; 2],
        bar: &ProgressBar,
    ) -> Result<Self, Error> {
        let devices =
            |of: &Contender| traces.iter().map(|trace| trace.device(*of, entries)).collect();
        let configs: Vec<Vec<DeviceConfig>> =
            contenders.iter().map(devices).collect::<Result<_, Error>>()?;
        let mut rounds = vec![Vec::with_capacity(ROUNDS); contenders.len()];
        let began = Instant::now();
        for round in 0..ROUNDS {
            if round >= FEWEST_ROUNDS && began.elapsed() > LONGEST {
                bar.inc(((ROUNDS - round) * contenders.len()) as u64);
                break;
            }
            for (times, configs) in rounds.iter_mut().zip(&configs) {
                times.push(time(traces, configs)?);
                bar.inc(1);
            }
        }
        Ok(Self(rounds))
    }

    /// Returns the steps of a progress bar for this number of engines.
    pub(super) const fn steps(contenders: usize) -> u64 {
        (ROUNDS * contenders) as u64
    }

    /// Returns the times of the engine `at`, each divided by `by`, for example the number of
    /// messages.
    pub(super) fn of(&self, at: usize, by: f64) -> impl Iterator<Item = f64> {
        self.0[at].iter().map(move |ns| ns / by)
    }

    /// Returns the time of the engine `at` divided by that of the engine `other`, for each round.
    pub(super) fn beside(&self, at: usize, other: usize) -> impl Iterator<Item = f64> {
        self.0[at].iter().zip(&self.0[other]).map(|(ns, other)| ns / other)
    }
}

/// Returns the nanoseconds of a replay of all traces, one after the other. Short traces are
/// replayed several times, and the mean is returned.
fn time(traces: &[LoadedTrace], configs: &[DeviceConfig]) -> Result<f64, Error> {
    let (mut spent, mut replays) = (Duration::ZERO, 0);
    while replays == 0 || spent < SPAN && replays < REPLAYS {
        for (trace, config) in traces.iter().zip(configs) {
            spent += trace.time(config)?;
        }
        replays += 1;
    }
    Ok(spent.as_nanos() as f64 / f64::from(replays))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_measured_or_left_out() {
        let engines = Contender::all().len() / HostStorage::ALL.len() + Contender::left_out().len();
        assert_eq!(engines, HostEngine::ALL.len());
    }

    #[test]
    fn a_slow_machine_changes_no_ratio() {
        let rounds = Rounds(vec![vec![10.0, 40.0], vec![20.0, 80.0]]);
        assert_eq!(rounds.beside(0, 1).collect::<Vec<_>>(), [0.5, 0.5]);
        assert_eq!(rounds.of(1, 10.0).collect::<Vec<_>>(), [2.0, 8.0]);
        let far = Rounds(vec![vec![2.0], vec![90_000.0]]);
        assert_eq!(far.beside(1, 0).chain(far.beside(0, 1)).product::<f64>(), 1.0);
        assert_eq!(far.beside(1, 0).next(), Some(45_000.0), "a large ratio is not limited");
    }
}
