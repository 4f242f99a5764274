// SPDX-License-Identifier: BSD-2-Clause
//! Replays the traces of several endpoints together, in the order of the times of their operations.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use indicatif::ProgressBar;
use matching::pool::{EntryPool, Refusal};
use nic::params::Params;
use nic::replay::Change;
use nic::trace::{Op, Timed};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::{Player, Trace};
use crate::error::Error;
use crate::results::Endpoint;
use crate::settings::Settings;

/// An operation that was replayed. Its times are in nanoseconds since the run began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Index of its trace.
    pub(crate) at: usize,
    /// Recorded time.
    pub(crate) recorded: u64,
    /// Time before which it was not made.
    pub(crate) earliest: u64,
    /// Time after which it was not made.
    pub(crate) latest: u64,
}

/// Traces of several endpoints that are replayed together.
pub(crate) struct JointReplay<'a> {
    pub(crate) players: Vec<Player<'a>>,
    /// The time of the next operation of each trace, in nanoseconds since the run began, and the
    /// index of the trace. Of equal times, the lower index comes first.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// The next operation of each trace; `None` at its end.
    next: Vec<Option<Timed>>,
}

impl<'a> JointReplay<'a> {
    /// Prepares replays of traces on the devices of these settings. `join` is called once for each
    /// endpoint, and returns its share of a pool. A queue may have up to
    /// `max_queue / tables_at_once` elements, because this number of tables is replayed at the same
    /// time.
    pub(crate) fn new(
        traces: impl Iterator<Item = &'a Trace>,
        settings: &Settings,
        tables_at_once: usize,
        mut join: impl FnMut(&Trace, &Params) -> Result<Arc<dyn EntryPool>, Error>,
    ) -> Result<Self, Error> {
        // Each trace is an open file, so the limit on open files is raised.
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
        let mut members: Vec<(Endpoint, Arc<dyn EntryPool>)> = Vec::new();
        let mut together = Self { players: Vec::new(), queue: BinaryHeap::new(), next: Vec::new() };
        for trace in traces {
            let params = trace.params(settings)?;
            let endpoint = trace.endpoint();
            let pool = match members.iter().find(|(member, _)| *member == endpoint) {
                Some((_, pool)) => Arc::clone(pool),
                None => {
                    let pool = join(trace, &params)?;
                    members.push((endpoint, Arc::clone(&pool)));
                    pool
                }
            };
            let mut device = trace.device(&params)?;
            device.pool = Some(pool);
            together.players.push(Player::on(trace, device, tables_at_once)?);
            together.next.push(None);
            together.read(together.players.len() - 1)?;
        }
        Ok(together)
    }

    /// Prepares replays of traces whose endpoints share no pool.
    pub(crate) fn without_pool(
        traces: impl Iterator<Item = &'a Trace>,
        settings: &Settings,
    ) -> Result<Self, Error> {
        Self::new(traces, settings, 1, |_, _| Ok(Arc::new(UnlimitedPool)))
    }

    /// Replays the next operation. Returns the step, the operation, and its first change in the
    /// queues, or `None` at the end.
    pub(crate) fn step_with_changes(
        &mut self,
        bar: &ProgressBar,
    ) -> Result<Option<(Step, Op, Option<Change>)>, Error> {
        let mut done = None;
        let step = self.step_with(bar, |player, timed| {
            let mut changed = None;
            player.step_with_changes(timed, |change| changed = changed.or(Some(change)))?;
            done = Some((timed.1, changed));
            Ok(())
        })?;
        Ok(step.zip(done).map(|(step, (op, changed))| (step, op, changed)))
    }

    /// Replays the next operation, or returns `None` at the end.
    pub(crate) fn step(&mut self, bar: &ProgressBar) -> Result<Option<Step>, Error> {
        self.step_with(bar, Player::step)
    }

    /// Returns the earliest time at which an operation was made that is still to be replayed, in
    /// nanoseconds since the run began.
    pub(crate) fn earliest(&self) -> u64 {
        let next = self.players.iter().zip(&self.next);
        let times = next.filter_map(|(player, next)| {
            Some(player.source.trace.since_ns().saturating_add(player.between(next.as_ref()?).0))
        });
        times.min().unwrap_or(u64::MAX)
    }

    fn step_with(
        &mut self,
        bar: &ProgressBar,
        play: impl FnOnce(&mut Player<'a>, &Timed) -> Result<(), Error>,
    ) -> Result<Option<Step>, Error> {
        let Some(Reverse((_, at))) = self.queue.pop() else { return Ok(None) };
        let player = &mut self.players[at];
        let since = player.source.trace.since_ns();
        let mut step = Step { at, recorded: since, earliest: since, latest: since };
        if let Some(timed) = self.next[at].take() {
            let (earliest, latest) = player.between(&timed);
            step.recorded = since.saturating_add(timed.0);
            step.earliest = since.saturating_add(earliest);
            step.latest = since.saturating_add(latest);
            play(player, &timed)?;
        }
        player.tick(bar);
        self.read(at)?;
        Ok(Some(step))
    }

    fn read(&mut self, at: usize) -> Result<(), Error> {
        let player = &mut self.players[at];
        self.next[at] = player.next()?;
        let since = player.source.trace.since_ns();
        self.queue.extend(self.next[at].map(|(time, _)| Reverse((since.saturating_add(time), at))));
        Ok(())
    }
}

/// A pool that never runs out.
#[derive(Debug)]
struct UnlimitedPool;

impl EntryPool for UnlimitedPool {
    fn take(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn give_back(&self) {}

    fn is_half_taken(&self) -> bool {
        false
    }
}
