// SPDX-License-Identifier: BSD-2-Clause
//! Computes the number of entries that a recording needs: in the tables of each rank, and in the
//! NIC that the ranks of a node share.
//!
//! All ranks of a node are replayed together in the order of their times, on the given device. If
//! the size of the tables is sought, the tables have the largest size; if the size of the pool is
//! sought, the pool never runs out. Up to the first spill a device holds every element of its
//! queues. So the smallest size without a spill is the largest number of elements at one moment.
//! Elements that spill in this replay spill at every size.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;
use matching::pool::{EntryPool, Refusal, Share};
use matching::{BlockReasons, Overflow};
use nic::params::{Params, types::PoolOwner};
use rayon::prelude::*;
use serde::Serialize;

use crate::error::Error;
use crate::options::LARGEST;
use crate::settings::Settings;
use crate::text::{count, entries, whole};
use crate::traces::together::share_of;
use crate::traces::{JointReplay, NicEngines, Trace, files};

/// Lengths of the queues. Each length counts the elements in the table and those on the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Held {
    /// Receives that the program posted.
    pub(crate) prq: u64,
    /// Unexpected messages of the program.
    pub(crate) umq: u64,
    /// Receives that the MPI posted for itself, and unexpected messages for them.
    pub(crate) internal: u64,
}

impl Held {
    pub(crate) fn all(&self) -> u64 {
        self.prq + self.umq + self.internal
    }

    fn each_most(&mut self, now: &Self) {
        self.prq = self.prq.max(now.prq);
        self.umq = self.umq.max(now.umq);
        self.internal = self.internal.max(now.internal);
    }
}

/// The largest numbers of elements of a rank, or of all ranks of a NIC together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct PeakNeed {
    /// Numbers of the ranks; empty if they are unknown.
    pub(crate) ranks: Vec<u32>,
    /// Largest length of each queue. The queues may have had these lengths at different moments.
    pub(crate) each: Held,
    /// Length of each queue at the moment when the sum of all lengths was largest.
    pub(crate) at_once: Held,
    /// Recorded time of that moment, in seconds since the run began.
    pub(crate) at_s: f64,
    #[serde(skip)]
    now: Held,
    #[serde(skip)]
    at_ns: u64,
}

impl PeakNeed {
    fn change(&mut self, before: &Held, after: &Held, time: u64) {
        let now = &mut self.now;
        now.prq = now.prq - before.prq + after.prq;
        now.umq = now.umq - before.umq + after.umq;
        now.internal = now.internal - before.internal + after.internal;
        self.each.each_most(now);
        if now.all() > self.at_once.all() {
            (self.at_once, self.at_ns) = (*now, time);
        }
    }

    /// Returns text such as `rank 3`, `ranks 0-7` or `8 ranks`; `a process` if no rank is known.
    pub(crate) fn name(&self) -> String {
        let consecutive = self.ranks.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        match (&self.ranks[..], consecutive) {
            ([], _) => "a process".to_owned(),
            ([rank], _) => format!("rank {rank}"),
            ([first, .., last], true) => format!("ranks {first}-{last}"),
            (ranks, false) => count(ranks.len() as u64, "rank"),
        }
    }

    /// Returns text such as `30 receives, 6 unexpected messages and 64 of the MPI itself`.
    pub(crate) fn parts(&self) -> String {
        let Held { prq, umq, internal } = self.at_once;
        let own = match internal {
            0 => String::new(),
            internal => format!(" and {} of the MPI itself", whole(internal)),
        };
        let and = if internal == 0 { " and" } else { "," };
        format!("{}{and} {}{own}", count(prq, "receive"), count(umq, "unexpected message"))
    }
}

/// Entries that a recording needs, see the module.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Need {
    /// Each endpoint, the one that needs most first.
    pub(crate) ranks: Vec<PeakNeed>,
    /// Each NIC, the one that needs most first.
    pub(crate) nics: Vec<PeakNeed>,
    /// Entries of the smallest tables without a spill on any rank: PRQ and UMQ.
    pub(crate) tables: [u64; 2],
    /// Entries of the smallest pool without a spill on any NIC.
    pub(crate) pool: u64,
    /// Elements that spill at every size, by reason.
    pub(crate) never: BlockReasons,
    /// Largest number of seconds by which recorded times of ranks that share a NIC may be too
    /// early. Within this time the order of these ranks is uncertain. 0 if the recorder read its
    /// clock often, or if no ranks share a NIC.
    pub(crate) early_s: f64,
}

/// The size that a sweep varies, or that is sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Knob {
    /// Size of the tables of each endpoint.
    Tables,
    /// Size of the pool that the endpoints of a node share.
    Pool,
}

impl Knob {
    /// Returns the size that limits a device: that of its pool if it has one, otherwise that of its
    /// tables.
    pub(crate) fn of(params: &Params) -> Self {
        if params.pool == PoolOwner::Node { Self::Pool } else { Self::Tables }
    }

    /// Returns settings with these sizes. For [`Self::Pool`], `prq` is the size of the pool.
    pub(crate) fn set(self, settings: &Settings, (prq, umq): (usize, usize)) -> Settings {
        match self {
            Self::Tables => settings.with([("prq_entries", &prq), ("umq_entries", &umq)]),
            Self::Pool => settings.with([("pool_entries", &prq)]),
        }
    }
}

impl Need {
    /// Computes the need of traces on a device.
    pub(crate) fn of(
        traces: &[Trace],
        settings: &Settings,
        knob: Knob,
        bar: &ProgressBar,
    ) -> Result<Self, Error> {
        let params = files::params(traces, settings)?;
        let mut settings = settings.clone();
        if knob == Knob::Tables {
            // A table that the device does not have stays absent.
            if params.iter().any(|params| params.prq_entries > 0) {
                settings.set("prq_entries", &LARGEST);
            }
            if params.iter().any(|params| params.umq_entries > 0) {
                settings.set("umq_entries", &LARGEST);
            }
        }
        let mut nodes: BTreeMap<_, Vec<&Trace>> = BTreeMap::new();
        traces.iter().for_each(|trace| nodes.entry(trace.host()).or_default().push(trace));
        let nodes: Vec<_> = nodes.into_values().collect();
        let needs: Vec<_> =
            nodes.par_iter().map(|traces| of_node(traces, &settings, knob, bar)).collect();
        let mut need = Self::default();
        for of in needs {
            let mut of = of?;
            need.ranks.append(&mut of.ranks);
            need.nics.append(&mut of.nics);
            need.tables = [0, 1].map(|queue: usize| need.tables[queue].max(of.tables[queue]));
            need.pool = need.pool.max(of.pool);
            need.never.merge(&of.never);
            need.early_s = need.early_s.max(of.early_s);
        }
        for most in need.ranks.iter_mut().chain(&mut need.nics) {
            most.at_s = most.at_ns as f64 * 1e-9;
        }
        for all in [&mut need.ranks, &mut need.nics] {
            all.sort_by_key(|most| std::cmp::Reverse(most.at_once.all()));
        }
        Ok(need)
    }

    /// Returns the smallest size without a spill: of the larger table, or of the pool. Returns
    /// `None` if elements spill at every size for another reason than that their queue has no
    /// table.
    pub(crate) fn size(&self, knob: Knob) -> Option<u64> {
        let others =
            self.never.iter().any(|(reason, elements)| reason != "disabled" && elements > 0);
        (!others).then_some(match knob {
            Knob::Tables => self.tables[0].max(self.tables[1]),
            Knob::Pool => self.pool,
        })
    }

    /// Returns the NIC that needs most. Panics if the need was computed without traces.
    pub(crate) fn nic(&self) -> &PeakNeed {
        &self.nics[0]
    }

    /// Returns the reasons why elements spill at every size, such as `refused 40, short 16,004`, or
    /// `None` if no element does.
    pub(crate) fn why_never(&self) -> Option<String> {
        let reasons: Vec<_> = self
            .never
            .iter()
            .filter(|(_, elements)| *elements > 0)
            .map(|(reason, elements)| format!("{reason} {}", whole(elements)))
            .collect();
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }
}

/// Returns text on the need of a NIC in the recording that needs most, with the range of all
/// recordings. Returns `None` without recordings.
pub(crate) fn nic_sentence<'a>(
    needs: impl IntoIterator<Item = &'a Need, IntoIter: Clone>,
) -> Option<String> {
    let nics = needs.into_iter().map(Need::nic);
    let most = nics.clone().max_by_key(|nic| nic.at_once.all())?;
    let least = nics.map(|nic| nic.at_once.all()).min()?;
    let all = most.at_once.all();
    let range = if least < all { format!("{} to ", whole(least)) } else { String::new() };
    Some(format!(
        "a NIC of {} needs {range}{}: {} at once",
        most.name(),
        entries(all),
        most.parts()
    ))
}

/// Returns a note that the order of ranks at a NIC is uncertain, if an earlier version of tcam
/// recorded the traces. Returns `None` if the error of the times is below [`SHOWS`].
pub(crate) fn coarse_times_note<'a>(needs: impl IntoIterator<Item = &'a Need>) -> Option<String> {
    let early = needs.into_iter().map(|need| need.early_s).fold(0.0, f64::max);
    (early >= SHOWS).then(|| {
        format!(
            "An earlier version recorded this with times that are at most {early:.3} s too early: the \
             need of a NIC depends on the order of its ranks within that time; record again."
        )
    })
}

/// Smallest error in seconds that is printed.
const SHOWS: f64 = 0.001;

/// The readings of a recorder's clock.
#[derive(Clone, Copy, Debug, Default)]
struct ClockReadings {
    last: u64,
    operations: u64,
    /// Longest time in nanoseconds between two readings that had several operations between them.
    longest: u64,
}

impl ClockReadings {
    fn note(&mut self, time: u64) {
        if time == self.last {
            self.operations += 1;
            return;
        }
        if self.operations > 1 {
            self.longest = self.longest.max(time.saturating_sub(self.last));
        }
        (self.last, self.operations) = (time, 1);
    }
}

/// Returns the need of the endpoints of one node.
fn of_node(
    traces: &[&Trace],
    settings: &Settings,
    knob: Knob,
    bar: &ProgressBar,
) -> Result<Need, Error> {
    let params = traces[0].params(settings)?;
    let mut engines = NicEngines::new(&params, |_| Arc::new(Mutex::new(EntriesTaken::default())));
    let mut engine_of = BTreeMap::new();
    let mut together = JointReplay::new(traces.iter().copied(), settings, 1, |trace, params| {
        let engine = engines.next();
        engine_of.insert(trace.endpoint(), Arc::clone(engine));
        let share = match Knob::of(params) {
            Knob::Pool => share_of(params),
            Knob::Tables => Share { reserved: 0, max: u32::MAX },
        };
        Ok(Arc::new(Meter::join(Arc::clone(engine), share)))
    })?;
    let engine_of: Vec<_> =
        traces.iter().map(|trace| Arc::clone(&engine_of[&trace.endpoint()])).collect();
    let mut endpoints = BTreeMap::new();
    let (mut ranks, mut nic): (Vec<PeakNeed>, _) = (Vec::new(), PeakNeed::default());
    let of: Vec<usize> = traces
        .iter()
        .map(|trace| {
            *endpoints.entry(trace.endpoint()).or_insert_with(|| {
                ranks.push(PeakNeed {
                    ranks: trace.header.rank.into_iter().collect(),
                    ..PeakNeed::default()
                });
                ranks.len() - 1
            })
        })
        .collect();
    nic.ranks = ranks.iter().flat_map(|rank| &rank.ranks).copied().collect();
    nic.ranks.sort_unstable();
    nic.ranks.dedup();
    let mut held = vec![Held::default(); traces.len()];
    let mut clocks = vec![ClockReadings::default(); traces.len()];
    while let Some((at, time)) = together.step(bar)? {
        clocks[at].note(time);
        let context = together.players[at].replay().context();
        let [prq, umq] = [context.posted(), context.unexpected()].map(|elements| elements as u64);
        let now = match traces[at].header.context.as_str() {
            "tagged" => Held { prq, umq, internal: 0 },
            _ => Held { prq: 0, umq: 0, internal: prq + umq },
        };
        ranks[of[at]].change(&held[at], &now, time);
        nic.change(&held[at], &now, time);
        held[at] = now;
        lock(&engine_of[at]).note();
    }
    let (mut tables, mut never) = ([0; 2], BlockReasons::default());
    for (trace, player) in traces.iter().zip(&together.players) {
        let counters = player.replay().counters();
        let is_tagged = trace.header.context == "tagged";
        for (table, queue) in tables.iter_mut().zip([&counters.prq, &counters.umq]) {
            if is_tagged {
                *table = queue.table_high_water.max(*table);
            }
            // Untagged messages have separate tables, except if all draw from one pool.
            if is_tagged || knob == Knob::Pool {
                never.merge(&queue.block_reasons);
            }
        }
    }
    let leaves_half = params.overflow == Overflow::Sticky && params.preemptive.has("pool");
    let engine = |taken: &Arc<Mutex<EntriesTaken>>| {
        let EntriesTaken { most, most_promised, .. } = *lock(taken);
        let half = if leaves_half { 2 * most.saturating_sub(1) } else { 0 };
        most_promised.max(half)
    };
    let pool = match knob {
        Knob::Tables => nic.at_once.all(),
        Knob::Pool => {
            let most = engines.engines.iter().map(engine).max().unwrap_or(0);
            most * engines.engines.len() as u64
        }
    };
    let coarse = traces.iter().zip(&clocks).filter(|(trace, _)| !trace.has_dense_times());
    let early = coarse.map(|(_, clock)| clock.longest).max().filter(|_| ranks.len() > 1);
    let early_s = early.unwrap_or(0) as f64 * 1e-9;
    Ok(Need { ranks, nics: vec![nic], tables, pool, never, early_s })
}

/// Entries that endpoints took from the pool of one matching engine of a NIC. The pool has no
/// limit.
#[derive(Clone, Copy, Debug, Default)]
struct EntriesTaken {
    taken: u64,
    most: u64,
    /// Entries taken, plus entries that are reserved for endpoints and not taken.
    promised: u64,
    most_promised: u64,
}

impl EntriesTaken {
    /// Updates the maxima. Called after an operation, because an operation may take an entry and
    /// return it.
    fn note(&mut self) {
        self.most = self.most.max(self.taken);
        self.most_promised = self.most_promised.max(self.promised);
    }
}

fn lock(taken: &Mutex<EntriesTaken>) -> std::sync::MutexGuard<'_, EntriesTaken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pool as one endpoint sees it. Counts the entries that the endpoint takes, and refuses an
/// entry only if the endpoint already holds the maximum of its share.
#[derive(Debug)]
struct Meter {
    engine: Arc<Mutex<EntriesTaken>>,
    share: Share,
    held: AtomicU64,
}

impl Meter {
    fn join(engine: Arc<Mutex<EntriesTaken>>, share: Share) -> Self {
        let mut entries = lock(&engine);
        entries.promised += u64::from(share.reserved);
        entries.note();
        drop(entries);
        Self { engine, share, held: AtomicU64::new(0) }
    }
}

impl EntryPool for Meter {
    fn take(&self) -> Result<(), Refusal> {
        let held = self.held.load(Ordering::Relaxed);
        if held >= u64::from(self.share.max) {
            return Err(Refusal::Share);
        }
        self.held.store(held + 1, Ordering::Relaxed);
        let mut entries = lock(&self.engine);
        entries.taken += 1;
        entries.promised += u64::from(held >= u64::from(self.share.reserved));
        Ok(())
    }

    fn give_back(&self) {
        let held = self.held.load(Ordering::Relaxed).saturating_sub(1);
        self.held.store(held, Ordering::Relaxed);
        let mut entries = lock(&self.engine);
        entries.taken -= 1;
        entries.promised -= u64::from(held >= u64::from(self.share.reserved));
    }

    fn is_half_taken(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "need_tests.rs"]
mod tests;
