// SPDX-License-Identifier: BSD-2-Clause
//! Reads one trace, and replays it on tables.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::ProgressBar;
use matching::measured::Clock;
use nic::config::DeviceConfig;
use nic::replay::{Change, Replay};
use nic::trace::{Address, Op, Reader, Sites, Stop, Thread, Timed, TraceError};

use super::node::NodeFilter;
use super::{Counted, Trace};
use crate::error::Error;
use crate::settings::Settings;

/// Bytes of records from one step of a progress bar to the next.
const STEP: u64 = 1 << 18;
/// Maximum number of operations that are read at a time.
pub(super) const BATCH: usize = 4096;

fn note_stop(trace: &Trace, op: &Op) {
    let why = match op {
        Op::Stop(Stop::Size) => "FI_TCAM_TRACE_MAX or ulimit -f was reached",
        Op::Stop(Stop::Disk) => "the disk was full",
        _ => return,
    };
    trace.tell(&format!("the recording ended before its program: {why}"));
}

/// The reader of a trace.
pub(super) struct TraceReader<'a> {
    pub(super) trace: &'a Trace,
    reader: Reader<fs::File>,
    /// Leaves out messages between ranks of the same node. `None` if all messages stay.
    filter: Option<NodeFilter<'a>>,
    /// Time of the last operation, even if it was left out. 0 unless `filter` is set.
    last: u64,
}

impl<'a> TraceReader<'a> {
    pub(super) fn new(trace: &'a Trace) -> Result<Self, Error> {
        Ok(Self { trace, reader: trace.reader()?, filter: trace.node_filter(), last: 0 })
    }

    /// Returns the next operation and its time in nanoseconds since the start of the recording.
    /// Returns `None` at the end of the trace.
    #[inline]
    fn next(&mut self) -> Result<Option<Timed>, Error> {
        if self.filter.is_none() { self.read() } else { self.next_filtered() }
    }

    /// Returns the next operation that is not left out.
    #[cold]
    fn next_filtered(&mut self) -> Result<Option<Timed>, Error> {
        if let Some(op) = self.filter.as_mut().and_then(|filter| filter.follow_up.take()) {
            return Ok(Some((self.last, op)));
        }
        while let Some((time, op)) = self.read()? {
            self.last = time;
            let Some(filter) = &mut self.filter else { return Ok(Some((time, op))) };
            if let Some(op) = filter.keep(op, self.reader.peers()) {
                return Ok(Some((time, op)));
            }
        }
        Ok(None)
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

    /// Reads the trace, and calls `each` with every operation, the number of its site, and the peers.
    /// Returns the sites.
    pub(super) fn scan(
        mut self,
        mut each: impl FnMut(&Op, u32, &BTreeMap<u32, Address>),
    ) -> Result<Sites, Error> {
        while let Some((_, op)) = self.next()? {
            each(&op, self.reader.site(), self.reader.peers());
        }
        Ok(self.reader.sites().clone())
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
        Self::on(trace, trace.device(&trace.params(settings)?)?, 1)
    }

    /// Makes a player on this device. For `tables_at_once` see [`TableReplay::new`].
    pub(super) fn on(
        trace: &'a Trace,
        device: DeviceConfig,
        tables_at_once: usize,
    ) -> Result<Self, Error> {
        let played = TableReplay::new(trace, device, tables_at_once)?;
        Ok(Self { source: TraceReader::new(trace)?, played, shown: 0 })
    }

    /// Returns the next operation without replaying it, and its time in nanoseconds since
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
        self.source.reader.thread()
    }

    /// Returns the number of the site of the last post or send; 0 if it is unknown.
    pub(crate) fn site(&self) -> u32 {
        self.source.reader.site()
    }

    /// Returns the time of the last poll before the operation that was read last, in nanoseconds since
    /// the start of the recording, if there was one since the last call. At the end of the trace,
    /// returns that of the last poll.
    pub(crate) fn take_polled(&mut self) -> Option<u64> {
        self.source.reader.take_polled()
    }

    /// Returns the times between which the last operation was made: its time, minus and plus the
    /// error of the clocks.
    pub(super) fn between(&self, timed: &Timed) -> (u64, u64) {
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
