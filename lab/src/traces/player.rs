// SPDX-License-Identifier: BSD-2-Clause
//! One trace, read and played to tables.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use indicatif::ProgressBar;
use matching::measured::Clock;
use nic::config::DeviceConfig;
use nic::replay::{Change, Replay};
use nic::trace::{Address, Op, Reader, Stop, Thread, Timed, TraceError};

use super::clock::TraceClock;
use super::counted::Counted;
use super::even_times::EvenTimes;
use super::node::Remote;
use super::trace::Trace;
use crate::error::Error;

/// Operations that are read at a time.
pub(super) const BATCH: usize = 4096;

fn note_stop(trace: &Trace, op: &Op) {
    let why = match op {
        Op::Stop(Stop::Size) => "FI_TCAM_TRACE_MAX was reached",
        Op::Stop(Stop::Disk) => "the disk was full",
        _ => return,
    };
    trace.tell(&format!("the recording ended before its program: {why}"));
}

/// The thread of an operation and the time that was recorded for it.
type Known = (Thread, u64);

/// A trace that is read.
pub(super) struct Source<'a> {
    pub(super) trace: &'a Trace,
    reader: Reader<fs::File>,
    /// Where times between two looks at the clock matter.
    even: Option<EvenTimes<Known>>,
    /// Of the last operation, where these are read ahead of their turn.
    known: Known,
    /// Where messages of ranks on the same node are left out.
    remote: Option<Remote<'a>>,
}

impl<'a> Source<'a> {
    /// The operations of a trace for the timing model of a device, if it has one.
    pub(super) fn new<'d>(
        trace: &'a Trace,
        mut devices: impl Iterator<Item = &'d DeviceConfig>,
    ) -> Result<Self, Error> {
        let is_timed = devices.any(|device| device.timing.is_some());
        let even = is_timed.then(EvenTimes::default);
        let (known, remote) = ((Thread::default(), 0), trace.remote());
        Ok(Self { trace, reader: trace.reader()?, even, known, remote })
    }

    /// The next operation, with its time since the start.
    #[inline]
    fn next(&mut self) -> Result<Option<Timed>, Error> {
        if self.remote.is_none() { self.read_even() } else { self.next_remote() }
    }

    /// Times are spread over all operations, also over those that are left out.
    #[cold]
    fn next_remote(&mut self) -> Result<Option<Timed>, Error> {
        while let Some((time, op)) = self.read_even()? {
            let Some(remote) = &mut self.remote else { return Ok(Some((time, op))) };
            if let Some(op) = remote.keep(op, self.reader.peers()) {
                return Ok(Some((time, op)));
            }
        }
        Ok(None)
    }

    #[inline]
    fn read_even(&mut self) -> Result<Option<Timed>, Error> {
        match self.even.take() {
            None => self.read(),
            Some(mut even) => {
                let next: Result<_, Error> = even.next(|| {
                    let next = self.read()?;
                    Ok(next.map(|timed| (timed, (self.reader.thread(), timed.0))))
                });
                self.even = Some(even);
                Ok(next?.map(|(timed, known)| {
                    self.known = known;
                    timed
                }))
            }
        }
    }

    #[inline]
    fn read(&mut self) -> Result<Option<Timed>, Error> {
        let next: Option<Result<Timed, TraceError>> = self.reader.next();
        match next.transpose() {
            Ok(next) => Ok(next),
            Err(error) => self.end(error),
        }
    }

    #[cold]
    fn end(&self, error: TraceError) -> Result<Option<Timed>, Error> {
        if matches!(error, TraceError::Cut(_)) && self.trace.take.cut_off {
            self.trace.tell(&error.to_string());
            return Ok(None);
        }
        Err(self.trace.error(error))
    }

    /// The next operations, in place of those of `batch`; whether there may be more behind them.
    pub(super) fn batch(&mut self, batch: &mut Vec<Timed>) -> Result<bool, Error> {
        batch.clear();
        while batch.len() < BATCH {
            match self.next()? {
                Some(timed) => batch.push(timed),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The thread that does the last operation.
    fn thread(&self) -> Thread {
        if self.even.is_some() { self.known.0 } else { self.reader.thread() }
    }

    /// The time that was recorded for the last operation: at most that of it.
    pub(super) fn recorded(&self, (time, _): &Timed) -> u64 {
        if self.even.is_some() { self.known.1 } else { *time }
    }

    /// Bytes of records read so far.
    pub(super) fn taken(&self) -> u64 {
        self.reader.taken()
    }
}

/// What a trace is played to.
pub(super) struct Played<'a> {
    trace: &'a Trace,
    pub(super) replay: Replay,
    clock: Arc<TraceClock>,
    last: u64,
    operations: u64,
    /// Most elements of a queue.
    longest: usize,
}

impl<'a> Played<'a> {
    /// `shares`: how many tables share the longest queue that is allowed.
    pub(super) fn new(
        trace: &'a Trace,
        device: DeviceConfig,
        shares: usize,
    ) -> Result<Self, Error> {
        let clock = Arc::new(TraceClock::default());
        let device = DeviceConfig { clock: Some(Arc::clone(&clock) as Arc<dyn Clock>), ..device };
        let replay = Replay::new(&device).map_err(|error| Error::Replay(error.to_string()))?;
        let longest = trace.take.max_queue / shares;
        Ok(Self { trace, replay, clock, last: 0, operations: 0, longest })
    }

    pub(super) fn steps(&mut self, batch: &[Timed]) -> Result<(), Error> {
        batch.iter().try_for_each(|timed| self.step(timed))
    }

    #[inline]
    fn step(&mut self, timed: &Timed) -> Result<(), Error> {
        self.step_and_tell(timed, |_| {})
    }

    #[inline]
    fn step_and_tell(&mut self, (time, op): &Timed, tell: impl FnMut(Change)) -> Result<(), Error> {
        note_stop(self.trace, op);
        self.clock.set(*time);
        self.replay.play_and_tell(op, tell);
        self.last = *time;
        // Nothing is asked of the device.
        self.operations += u64::from(!matches!(op, Op::Send(_)));
        let context = self.replay.context();
        for (queue, elements) in [("PRQ", context.posted()), ("UMQ", context.unexpected())] {
            if elements > self.longest {
                return Err(self.too_long(queue));
            }
        }
        Ok(())
    }

    #[cold]
    fn too_long(&self, queue: &'static str) -> Error {
        let Trace { path, header, take, .. } = self.trace;
        let of =
            header.rank.map_or(format!("process {}", header.pid), |rank| format!("rank {rank}"));
        Error::QueueTooLong { path: path.clone(), queue, of, limit: take.max_queue }
    }

    pub(super) fn counted(&self) -> Counted {
        Counted {
            trace: self.trace.clone(),
            counters: self.replay.counters(),
            operations: self.operations,
            seconds: self.last as f64 * 1e-9,
        }
    }
}

/// A trace that is read, and what it is played to, an operation at a time.
pub(crate) struct Player<'a> {
    pub(super) source: Source<'a>,
    pub(super) played: Played<'a>,
}

impl<'a> Player<'a> {
    pub(crate) fn new(trace: &'a Trace, device: DeviceConfig) -> Result<Self, Error> {
        Self::with_share(trace, device, 1)
    }

    fn with_share(trace: &'a Trace, device: DeviceConfig, shares: usize) -> Result<Self, Error> {
        let source = Source::new(trace, std::iter::once(&device))?;
        Ok(Self { source, played: Played::new(trace, device, shares)? })
    }

    /// One whose operations are merged with those of others.
    pub(super) fn together(
        trace: &'a Trace,
        device: DeviceConfig,
        shares: usize,
    ) -> Result<Self, Error> {
        let mut player = Self::with_share(trace, device, shares)?;
        player.source.even.get_or_insert_default();
        Ok(player)
    }

    /// The next operation, with its time since the start.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Timed>, Error> {
        self.source.next()
    }

    #[inline]
    pub(crate) fn step(&mut self, timed: &Timed) -> Result<(), Error> {
        self.played.step(timed)
    }

    /// The same, telling what changed in the queues.
    #[inline]
    pub(crate) fn step_and_tell(
        &mut self,
        timed: &Timed,
        tell: impl FnMut(Change),
    ) -> Result<(), Error> {
        self.played.step_and_tell(timed, tell)
    }

    /// The thread that does the last operation.
    pub(crate) fn thread(&self) -> Thread {
        self.source.thread()
    }

    /// The time that was recorded for the last operation, before times are spread evenly.
    pub(crate) fn recorded(&self, timed: &Timed) -> u64 {
        self.source.recorded(timed)
    }

    /// Where the peers are that were named up to now.
    pub(crate) fn peers(&self) -> &BTreeMap<u32, Address> {
        self.source.reader.peers()
    }

    /// Bytes of records read so far.
    pub(crate) fn taken(&self) -> u64 {
        self.source.taken()
    }

    /// What it is played to.
    pub(crate) fn replay(&self) -> &Replay {
        &self.played.replay
    }

    /// Plays all.
    pub(super) fn play(&mut self, bar: &ProgressBar) -> Result<(), Error> {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let before = self.taken();
            let more = self.source.batch(&mut batch)?;
            for timed in &batch {
                self.step(timed)?;
            }
            bar.inc(self.taken() - before);
            if !more {
                return Ok(());
            }
        }
    }

    pub(super) fn counted(&self) -> Counted {
        self.played.counted()
    }
}
