// SPDX-License-Identifier: BSD-2-Clause
//! The operations of one trace in memory, replayed for time.

use std::collections::BTreeMap;
use std::time::Duration;

use matching::TagLayout;
use nic::config::DeviceConfig;
use nic::params::Params;
use nic::replay::Replay;
use nic::trace::Op;
use rustix::time::{ClockId, clock_gettime};

use super::contender::Contender;
use crate::error::Error;
use crate::settings::Settings;
use crate::traces::trace::Trace;

/// The operations of one trace, with its parameters.
pub(crate) struct Stream {
    ops: Vec<Op>,
    /// Number of operations of the whole trace.
    all: u64,
    layout: TagLayout,
    /// Recorded parameters, by name.
    params: BTreeMap<String, String>,
    /// True if the receives are those of the program, and not of the MPI itself.
    is_tagged: bool,
}

/// Receives of a program, and the wildcards among them. Wildcards rule out engines that need exact
/// source and tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wildcards {
    pub(crate) receives: u64,
    /// Receives with any source or any tag.
    pub(crate) wildcards: u64,
    /// Probes with any source or any tag.
    pub(crate) open_probes: u64,
}

impl Wildcards {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            receives: self.receives + other.receives,
            wildcards: self.wildcards + other.wildcards,
            open_probes: self.open_probes + other.open_probes,
        }
    }
}

impl Stream {
    /// Reads a trace, and keeps its first `most` operations.
    ///
    /// # Errors
    ///
    /// If the trace cannot be read, or was cut off and that is not accepted.
    pub(crate) fn of(trace: &Trace, settings: &Settings, most: usize) -> Result<Self, Error> {
        let params = trace.params(settings)?;
        let layout = trace.layout(&params)?;
        let (mut ops, mut all) = (Vec::new(), 0);
        for timed in trace.reader()? {
            match timed {
                Ok((_, Op::Send(_))) => {}
                Ok((_, op)) => {
                    all += 1;
                    if ops.len() < most {
                        ops.push(op);
                    }
                }
                Err(error) if trace.take.cut_off => {
                    trace.tell(&error.to_string());
                    break;
                }
                Err(error) => return Err(trace.error(error)),
            }
        }
        let is_tagged = trace.header.context == "tagged";
        Ok(Self { ops, all, layout, params: params.recorded(), is_tagged })
    }

    /// Returns the number of operations of the whole trace.
    pub(crate) fn operations(&self) -> u64 {
        self.all
    }

    /// Returns the number of operations that are replayed.
    pub(crate) fn measured(&self) -> usize {
        self.ops.len()
    }

    pub(crate) fn messages(&self) -> usize {
        self.ops.iter().filter(|op| matches!(op, Op::Arrive(_))).count()
    }

    /// Counts the wildcards of the program, without those of receives that the MPI posts for
    /// itself.
    pub(crate) fn wildcards(&self) -> Wildcards {
        let mut counted = Wildcards::default();
        if !self.is_tagged {
            return counted;
        }
        let is_open = |key| self.layout.is_any_source(key) || self.layout.is_any_tag(key);
        for op in &self.ops {
            match op {
                Op::Post(posted) | Op::PostAnyway(posted) => {
                    counted.receives += 1;
                    counted.wildcards += u64::from(is_open(&posted.key));
                }
                Op::Peek(key) | Op::Claim(key) | Op::Discard(key) => {
                    counted.open_probes += u64::from(is_open(key));
                }
                _ => {}
            }
        }
        counted
    }

    /// Returns the device of the trace with another engine and tables of these entries (PRQ, UMQ).
    /// It counts no depths and no times.
    pub(crate) fn device(
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
    /// change processor time less than wall time.
    pub(crate) fn time(&self, config: &DeviceConfig) -> Result<Duration, Error> {
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
