// SPDX-License-Identifier: BSD-2-Clause
//! Reads one trace, and replays it on tables.
//!
//! # Times
//! Each operation has its own time, except in traces of earlier versions. Those recorders read the
//! clock every 64 operations, at each cancel and drop, and at the first operation after a poll that
//! found nothing (at most every 10 us). So several operations have one time; they are a *group*.
//! Each operation of a group was made between this reading of the clock and the next one. If a
//! group is full, the program made its operations one after the other. A replay then spreads them
//! evenly over that time, because it needs one time for each:
//!
//! ```text
//! recorded   t0 t0 t0 ... t0               t1
//! spread     t0    t0 + (t1 - t0) i / n    t1
//! ```
//! A smaller group ended early, with a poll, a cancel or a drop. Its operations keep their time.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::ProgressBar;
use matching::measured::Clock;
use nic::config::DeviceConfig;
use nic::replay::{Change, Replay};
use nic::trace::{Address, Op, Reader, Stop, Thread, Timed, TraceError};

use super::node::NodeFilter;
use super::{Counted, Trace};
use crate::error::Error;
use crate::settings::Settings;

/// Bytes of records from one step of a progress bar to the next.
const STEP: u64 = 1 << 18;
/// Maximum number of operations that are read at a time.
pub(super) const BATCH: usize = 4096;
/// Minimum size of a group whose times are spread: the number of operations between two readings of
/// the clock.
const FULL: usize = 64;
/// Maximum number of operations in a group.
const MOST: usize = 4096;

fn note_stop(trace: &Trace, op: &Op) {
    let why = match op {
        Op::Stop(Stop::Size) => "FI_TCAM_TRACE_MAX or ulimit -f was reached",
        Op::Stop(Stop::Disk) => "the disk was full",
        _ => return,
    };
    trace.tell(&format!("the recording ended before its program: {why}"));
}

/// Facts on an operation that was read ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    thread: Thread,
    /// Its recorded time.
    recorded: u64,
    /// Time of the next reading of the clock; the largest number if it is unknown.
    until: u64,
}

/// The reader of a trace.
pub(super) struct TraceReader<'a> {
    pub(super) trace: &'a Trace,
    reader: Reader<fs::File>,
    /// Reads coarse times. `None` if times are exact, or if times between two readings of the clock
    /// do not matter.
    coarse: Option<CoarseTimes>,
    /// The last operation, if operations are read ahead (`coarse` is set).
    known: Known,
    /// Leaves out messages between ranks of the same node. `None` if all messages stay.
    filter: Option<NodeFilter<'a>>,
    /// Time of the last operation, even if it was left out. 0 unless `filter` is set.
    last: u64,
}

impl<'a> TraceReader<'a> {
    /// Reads a trace. Coarse times are spread if one of the devices has a timing model.
    pub(super) fn new<'d>(
        trace: &'a Trace,
        mut devices: impl Iterator<Item = &'d DeviceConfig>,
    ) -> Result<Self, Error> {
        let is_timed = devices.any(|device| device.timing.is_some());
        let (known, filter) = (Known::default(), trace.node_filter());
        let reader = trace.reader()?;
        let mut source = Self { trace, reader, coarse: None, known, filter, last: 0 };
        if is_timed {
            source.spread();
        }
        Ok(source)
    }

    /// Spreads the times from now on, if they are coarse.
    fn spread(&mut self) {
        if !self.trace.has_exact_times() {
            self.coarse.get_or_insert_default();
        }
    }

    /// Returns the next operation and its spread time, in nanoseconds since the start of the
    /// recording. Returns `None` at the end of the trace.
    #[inline]
    fn next(&mut self) -> Result<Option<Timed>, Error> {
        if self.filter.is_none() { self.read_spread() } else { self.next_filtered() }
    }

    /// Returns the next operation that is not left out. Times are spread over all operations,
    /// including those that are left out.
    #[cold]
    fn next_filtered(&mut self) -> Result<Option<Timed>, Error> {
        if let Some(op) = self.filter.as_mut().and_then(|filter| filter.follow_up.take()) {
            return Ok(Some((self.last, op)));
        }
        while let Some((time, op)) = self.read_spread()? {
            self.last = time;
            let Some(filter) = &mut self.filter else { return Ok(Some((time, op))) };
            if let Some(op) = filter.keep(op, self.reader.peers()) {
                return Ok(Some((time, op)));
            }
        }
        Ok(None)
    }

    #[inline]
    fn read_spread(&mut self) -> Result<Option<Timed>, Error> {
        match self.coarse.take() {
            None => self.read(),
            Some(mut coarse) => {
                let next: Result<_, Error> = coarse.next(|| {
                    let next = self.read()?;
                    let thread = self.reader.thread();
                    Ok(next
                        .map(|timed| (timed, Known { thread, recorded: timed.0, until: u64::MAX })))
                });
                self.coarse = Some(coarse);
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

    /// Replaces `batch` by up to [`BATCH`] next operations. Returns false at the end of the trace.
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

    /// Returns the bytes of records that were read.
    pub(super) fn taken(&self) -> u64 {
        self.reader.bytes_read()
    }
}

/// The clock of a replay. It shows the time of the operation that is replayed.
#[derive(Debug, Default)]
struct TraceClock(AtomicU64);

impl TraceClock {
    /// Sets the time in nanoseconds since the start.
    fn set(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }
}

impl Clock for TraceClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Spreads coarse times of operations. A group is kept until the time of the next group is known.
#[derive(Debug, Default)]
struct CoarseTimes {
    group: VecDeque<(Timed, Known)>,
    /// The first operation of the next group.
    next: Option<(Timed, Known)>,
}

impl CoarseTimes {
    /// Returns the next of the operations that `read` returns, with its spread time. The order
    /// stays the same.
    fn next<E>(
        &mut self,
        mut read: impl FnMut() -> Result<Option<(Timed, Known)>, E>,
    ) -> Result<Option<(Timed, Known)>, E> {
        if let Some(timed) = self.group.pop_front() {
            return Ok(Some(timed));
        }
        let first = match self.next.take() {
            Some(timed) => timed,
            None => match read()? {
                Some(timed) => timed,
                None => return Ok(None),
            },
        };
        let start = first.0.0;
        self.group.push_back(first);
        while self.group.len() < MOST {
            match read()? {
                Some(timed) if timed.0.0 == start => self.group.push_back(timed),
                other => {
                    self.next = other;
                    break;
                }
            }
        }
        let (count, end) = (self.group.len(), self.next.as_ref().map(|next| next.0.0));
        if let Some(time) = end.and_then(|end| end.checked_sub(start)).filter(|time| *time > 0) {
            for (at, (timed, known)) in self.group.iter_mut().enumerate() {
                known.until = start + time;
                if count >= FULL {
                    timed.0 = start + (u128::from(time) * at as u128 / count as u128) as u64;
                }
            }
        }
        Ok(self.group.pop_front())
    }
}

/// A replay of a trace on one table.
pub(super) struct TableReplay<'a> {
    trace: &'a Trace,
    pub(super) replay: Replay,
    clock: Arc<TraceClock>,
    last: u64,
    operations: u64,
    /// Largest number of elements that a queue may have.
    longest: usize,
}

impl<'a> TableReplay<'a> {
    /// Makes an empty replay. A queue may have up to `max_queue / tables_at_once` elements, because
    /// this number of tables is replayed at the same time.
    pub(super) fn new(
        trace: &'a Trace,
        device: DeviceConfig,
        tables_at_once: usize,
    ) -> Result<Self, Error> {
        let clock = Arc::new(TraceClock::default());
        let device = DeviceConfig { clock: Some(Arc::clone(&clock) as Arc<dyn Clock>), ..device };
        let replay = Replay::new(&device).map_err(|error| Error::Replay(error.to_string()))?;
        let longest = trace.take.max_queue / tables_at_once;
        Ok(Self { trace, replay, clock, last: 0, operations: 0, longest })
    }

    pub(super) fn steps(&mut self, batch: &[Timed]) -> Result<(), Error> {
        batch.iter().try_for_each(|timed| self.step(timed))
    }

    #[inline]
    fn step(&mut self, timed: &Timed) -> Result<(), Error> {
        self.step_with_changes(timed, |_| {})
    }

    #[inline]
    fn step_with_changes(
        &mut self,
        (time, op): &Timed,
        tell: impl FnMut(Change),
    ) -> Result<(), Error> {
        note_stop(self.trace, op);
        self.clock.set(*time);
        self.replay.play_with(op, tell);
        self.last = *time;
        // A send is no operation on the device.
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

    /// Returns the counts. All operations of `source` must have been replayed.
    pub(super) fn counted(&self, source: &TraceReader<'_>) -> Counted {
        Counted {
            trace: self.trace.clone(),
            counters: self.replay.counters(),
            operations: self.operations,
            seconds: self.last.max(source.last) as f64 * 1e-9,
        }
    }
}

/// A trace and its replay, one operation at a time.
pub(crate) struct Player<'a> {
    pub(super) source: TraceReader<'a>,
    pub(super) played: TableReplay<'a>,
    /// Bytes of records that were added to a progress bar.
    shown: u64,
}

impl<'a> Player<'a> {
    /// Makes a player on a device with the recorded parameters; those of `settings` have priority.
    pub(crate) fn new(trace: &'a Trace, settings: &Settings) -> Result<Self, Error> {
        let device = trace.device(&trace.params(settings)?)?;
        let source = TraceReader::new(trace, std::iter::once(&device))?;
        Ok(Self { source, played: TableReplay::new(trace, device, 1)?, shown: 0 })
    }

    /// Makes a player whose operations are merged with those of other players, in the order of
    /// their times. For this order, coarse times are always spread. For `tables_at_once` see
    /// [`TableReplay::new`].
    pub(super) fn together(
        trace: &'a Trace,
        device: DeviceConfig,
        tables_at_once: usize,
    ) -> Result<Self, Error> {
        let mut source = TraceReader::new(trace, std::iter::once(&device))?;
        source.spread();
        Ok(Self { source, played: TableReplay::new(trace, device, tables_at_once)?, shown: 0 })
    }

    /// Returns the next operation without replaying it, and its spread time in nanoseconds since
    /// the start of the recording. Returns `None` at the end of the trace.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Timed>, Error> {
        self.source.next()
    }

    #[inline]
    pub(crate) fn step(&mut self, timed: &Timed) -> Result<(), Error> {
        self.played.step(timed)
    }

    /// Replays an operation, and calls `tell` for each change in the queues.
    #[inline]
    pub(crate) fn step_with_changes(
        &mut self,
        timed: &Timed,
        tell: impl FnMut(Change),
    ) -> Result<(), Error> {
        self.played.step_with_changes(timed, tell)
    }

    /// Returns the thread of the operation that was read last.
    pub(crate) fn thread(&self) -> Thread {
        let source = &self.source;
        if source.coarse.is_some() { source.known.thread } else { source.reader.thread() }
    }

    /// Returns the recorded time of the last operation, before coarse times are spread.
    pub(crate) fn recorded(&self, timed: &Timed) -> u64 {
        if self.source.coarse.is_some() { self.source.known.recorded } else { timed.0 }
    }

    /// Returns the times between which the last operation was made: its own time with the error of
    /// the clocks if times are exact, otherwise its reading of the clock and the next one.
    pub(super) fn between(&self, timed: &Timed) -> (u64, u64) {
        if self.source.coarse.is_some() {
            return (self.source.known.recorded, self.source.known.until);
        }
        let error = self.source.reader.error(&timed.1);
        (timed.0.saturating_sub(error), timed.0.saturating_add(error))
    }

    /// Returns the addresses of the peers that the trace has named up to now.
    pub(crate) fn peers(&self) -> &BTreeMap<u32, Address> {
        self.source.reader.peers()
    }

    /// Advances a progress bar, if it is more than [`STEP`] bytes behind.
    pub(crate) fn tick(&mut self, bar: &ProgressBar) {
        if self.source.taken() - self.shown > STEP {
            bar.inc(self.source.taken() - std::mem::replace(&mut self.shown, self.source.taken()));
        }
    }

    /// Returns the replay.
    pub(crate) fn replay(&self) -> &Replay {
        &self.played.replay
    }

    /// Replays all operations.
    pub(super) fn play(&mut self, bar: &ProgressBar) -> Result<(), Error> {
        while let Some(timed) = self.next()? {
            self.step(&timed)?;
            self.tick(bar);
        }
        Ok(())
    }

    pub(super) fn counted(&self) -> Counted {
        self.played.counted(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(times: &[u64]) -> Vec<u64> {
        let mut spread = CoarseTimes::default();
        let known = |recorded| Known { recorded, until: u64::MAX, ..Known::default() };
        let mut given = times.iter().map(|&time| ((time, Op::Processes(1)), known(time)));
        let mut read = || Ok::<_, ()>(given.next());
        let mut told = Vec::new();
        while let Some((timed, known)) = spread.next(&mut read).unwrap() {
            let recorded = times[told.len()];
            assert_eq!(known.recorded, recorded, "the facts belong to the operation");
            let until = times.iter().find(|time| **time > recorded);
            assert_eq!(known.until, until.copied().unwrap_or(u64::MAX));
            told.push(timed.0);
        }
        told
    }

    #[test]
    fn full_groups_are_spread_and_shorter_ones_are_not() {
        let mut times = vec![0; 64];
        times.extend([640; 63]);
        times.push(9000);
        let spread = spread(&times);
        let expected: Vec<u64> = (0..64).map(|at| at * 10).chain([640; 63]).chain([9000]).collect();
        assert_eq!(spread, expected);
    }

    #[test]
    fn no_operation_is_lost_without_another_time() {
        assert_eq!(spread(&[]), Vec::<u64>::new());
        assert_eq!(spread(&vec![7; 10_000]), vec![7; 10_000]);
    }
}
