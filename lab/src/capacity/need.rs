// SPDX-License-Identifier: BSD-2-Clause
//! Computes the number of entries that a recording needs: in the tables of each rank, and in the
//! NIC that the ranks of a node share.
//!
//! All ranks of a node are replayed together in the order of their times, on the given device. If
//! the size of the tables is sought, the tables have the largest size; if the size of the pool is
//! sought, the pool never runs out. Up to the first spill a device holds every element of its
//! queues. So the smallest size without a spill is the largest number of elements at one moment.
//! Elements that spill in this replay spill at every size.
//!
//! The need of a rank is exact, because a trace has the order in which the device handled the
//! operations. The order of different ranks follows from their times, which have errors
//! ([`CLOCKS_OF_HOST`], and for messages of other hosts the recorded error of the clocks). So the
//! need of a NIC is the range over all orders within these errors ([`order`](super::order)).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::ProgressBar;
use matching::pool::{EntryPool, Refusal, Share};
use matching::{BlockReasons, Overflow};
use nic::config;
use nic::params::{Params, types::PoolOwner};
use rayon::prelude::*;
use serde::Serialize;

use super::order::{Bounds, COUNTS, Counts, PeakOfSum, UncertainOrder};
use crate::error::Error;
use crate::options::LARGEST;
use crate::results::ranks;
use crate::settings::Settings;
use crate::stats::Range;
use crate::text::{count, entries, whole};
use crate::traces::together::Step;
use crate::traces::{JointReplay, NicEngines, Trace, files};

/// Largest error in nanoseconds of the time between operations of two ranks on one host. Both times
/// are of one clock, which differs by less than 50 ns between the cores. The rest is the time
/// between a reading of the clock and the moment when the operation takes effect.
const CLOCKS_OF_HOST: u64 = 100;
/// Largest error for ranks of different hosts that are placed on one node. The hosts are assumed to
/// have their time of day from one server, over a local network.
const CLOCKS_OF_HOSTS: u64 = 1_000_000;
/// Largest number of ranges of ranks that the name of a NIC has.
const NAMED: usize = 3;
/// Operations between two moments at which the changes before them are evaluated.
const EVALUATED: u32 = 1024;

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
}

/// Largest length of each queue. The queues may have had these lengths at different moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct EachMost {
    pub(crate) prq: Range<u64>,
    pub(crate) umq: Range<u64>,
    pub(crate) internal: Range<u64>,
}

/// The largest numbers of elements of a rank, or of all ranks of a NIC together. A number of a NIC
/// is a range, because the order of operations of different ranks is uncertain if their times are
/// close to each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct PeakNeed {
    /// Numbers of the ranks; empty if they are unknown.
    pub(crate) ranks: Vec<u32>,
    pub(crate) each: EachMost,
    /// Largest sum of all lengths at one moment.
    pub(crate) peak_total: Range<u64>,
    /// Length of each queue at the moment when the sum of all lengths was largest, in the order of
    /// the recorded times.
    pub(crate) at_peak: Held,
    /// Recorded time of that moment, in seconds since the run began.
    pub(crate) at_s: f64,
}

impl PeakNeed {
    /// Sets the peaks of PRQ, UMQ, receives of the MPI itself, and all together.
    fn of_peaks(mut self, [prq, umq, internal, all]: [Range<u64>; ELEMENTS]) -> Self {
        (self.each, self.peak_total) = (EachMost { prq, umq, internal }, all);
        self
    }

    /// Returns text such as `rank 3`, `ranks 0-7`, `ranks 1 and 3` or `8 ranks`; `a process` if no
    /// rank is known.
    pub(crate) fn name(&self) -> String {
        let ranges = ranks::ranges(&self.ranks.iter().copied().collect());
        match ranges.len() {
            0 => "a process".to_owned(),
            1..=NAMED => ranks::named(&ranges),
            _ => count(self.ranks.len() as u64, "rank"),
        }
    }

    /// Returns text such as `30 receives, 6 unexpected messages and 64 of the MPI itself`.
    pub(crate) fn parts(&self) -> String {
        let Held { prq, umq, internal } = self.at_peak;
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
    /// Entries of the smallest pool without a spill on any NIC. A pool of the most suffices in any
    /// order of the ranks.
    pub(crate) pool: Range<u64>,
    /// Elements that spill at every size, by reason.
    pub(crate) never: BlockReasons,
    /// Longest time in nanoseconds within which the moment of an operation is unknown.
    pub(crate) uncertain_ns: u64,
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
            need.pool = larger(need.pool, of.pool);
            need.never.merge_counters(&of.never);
            need.uncertain_ns = need.uncertain_ns.max(of.uncertain_ns);
        }
        for all in [&mut need.ranks, &mut need.nics] {
            all.sort_by_key(|most| std::cmp::Reverse(most.peak_total.most));
        }
        Ok(need)
    }

    /// Returns the range of the smallest size without a spill: of the larger table, or of the pool.
    /// Returns `None` if elements spill at every size for another reason than that their queue has
    /// no table.
    pub(crate) fn sizes(&self, knob: Knob) -> Option<Range<u64>> {
        let others =
            self.never.iter().any(|(reason, elements)| reason != "disabled" && elements > 0);
        (!others).then_some(match knob {
            Knob::Tables => Range::from(self.tables[0].max(self.tables[1])),
            Knob::Pool => self.pool,
        })
    }

    /// Returns the smallest size without a spill in any order of the ranks; see [`Self::sizes`].
    pub(crate) fn size(&self, knob: Knob) -> Option<u64> {
        Some(self.sizes(knob)?.most)
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
/// recordings. If operations are missing (`is_lower_bound`), the need is at least that. Returns
/// `None` without recordings.
pub(crate) fn nic_sentence<'a>(
    needs: impl IntoIterator<Item = &'a Need, IntoIter: Clone>,
    is_lower_bound: bool,
) -> Option<String> {
    let nics = needs.into_iter().map(Need::nic);
    let most = nics.clone().max_by_key(|nic| nic.peak_total.most)?;
    let least = nics.map(|nic| nic.peak_total.least).min()?;
    let range =
        if least < most.peak_total.most { format!("{} to ", whole(least)) } else { String::new() };
    let at_least = if is_lower_bound { "at least " } else { "" };
    let order = if most.peak_total.is_one() { "" } else { " in the order of the recorded times" };
    Some(format!(
        "A NIC of {} needs {at_least}{range}{}: {} at the same time{order}",
        most.name(),
        entries(most.peak_total.most),
        most.parts()
    ))
}

/// Returns a sentence on why the need of a NIC is a range. Returns `None` if it is one number.
pub(crate) fn range_note<'a>(
    needs: impl IntoIterator<Item = &'a Need, IntoIter: Clone>,
) -> Option<String> {
    let needs = needs.into_iter();
    if needs.clone().flat_map(|need| &need.nics).all(|nic| nic.peak_total.is_one()) {
        return None;
    }
    let ns = needs.map(|need| need.uncertain_ns).max().unwrap_or_default();
    let (time, clocks) = match ns {
        ..1000 => (format!("{ns} ns"), ""),
        _ => (format!("{} us", whole(ns.div_ceil(1000))), ": hosts have different clocks"),
    };
    Some(format!(
        "A NIC's need is a range because the order of ranks within {time} is unknown{clocks}."
    ))
}

/// Returns the range of the largest count of some ranks or NICs.
pub(crate) fn largest(units: &[PeakNeed], count: impl Fn(&PeakNeed) -> Range<u64>) -> Range<u64> {
    units.iter().map(count).fold(Range::default(), larger)
}

/// Returns the range of the larger of two numbers.
fn larger(one: Range<u64>, other: Range<u64>) -> Range<u64> {
    Range { least: one.least.max(other.least), most: one.most.max(other.most) }
}

/// Number of counts of elements: PRQ, UMQ, receives of the MPI itself, and their sum.
const ELEMENTS: usize = COUNTS - 1;
/// Place of the sum of all elements.
const ALL: usize = ELEMENTS - 1;
/// Place of the entries that were taken from the pool.
const TAKEN: usize = COUNTS - 1;

/// The elements and entries of an endpoint.
struct Member {
    need: PeakNeed,
    meter: Arc<Meter>,
    /// Its matching engine.
    engine: usize,
    /// Entries for its buffers, which no other count here contains.
    buffers: u64,
    /// Elements and entries now.
    now: Counts,
    /// Peaks, which are exact, because the order of the operations of an endpoint is.
    peaks: Counts,
    taken: Range<u64>,
}

impl Member {
    /// Returns the entries that are not available to others if this number was taken.
    fn promised(&self, taken: Range<u64>) -> Range<u64> {
        larger(taken, Range::from(u64::from(self.meter.share.reserved)))
    }
}

/// The entries of a matching engine of a NIC, which has a part of the pool.
#[derive(Clone, Copy, Debug, Default)]
struct EngineEntries {
    taken: PeakOfSum,
    /// Entries taken, plus entries that are reserved for endpoints and not taken.
    promised: PeakOfSum,
}

/// The state of the computation for one node.
struct OfNode {
    members: Vec<Member>,
    engines: Vec<EngineEntries>,
    nic: [PeakOfSum; ELEMENTS],
}

impl OfNode {
    /// Adds a change of the bounds of an endpoint to the sums.
    fn change(&mut self, member: usize, before: &Bounds, after: &Bounds) {
        let member = &mut self.members[member];
        for (sum, (before, after)) in self.nic.iter_mut().zip(before.iter().zip(after)) {
            sum.change(*before, *after);
        }
        let engine = &mut self.engines[member.engine];
        engine.taken.change(before[TAKEN], after[TAKEN]);
        let promised = member.promised(member.taken);
        member.taken.least = member.taken.least + after[TAKEN].least - before[TAKEN].least;
        member.taken.most = member.taken.most + after[TAKEN].most - before[TAKEN].most;
        engine.promised.change(promised, member.promised(member.taken));
    }

    /// Returns the entries that an engine needs. `leaves_half`: it uses the other half of its part
    /// only for elements that are in the table already.
    fn entries_of(&self, engine: usize, leaves_half: bool) -> Range<u64> {
        let EngineEntries { taken, promised } = self.engines[engine];
        // All endpoints together hold at least what one of them holds.
        let members = self.members.iter().filter(|member| member.engine == engine);
        let alone = members.clone().map(|member| member.peaks[TAKEN]).max().unwrap_or(0);
        let reserved = |member: &Member| u64::from(member.meter.share.reserved);
        let all_reserved: u64 = members.clone().map(reserved).sum();
        let beyond = members.map(|member| member.peaks[TAKEN].saturating_sub(reserved(member)));
        let alone_promised = all_reserved + beyond.max().unwrap_or(0);
        let (mut taken, mut promised) = (taken.peak, promised.peak);
        taken.least = taken.least.max(alone);
        promised.least = promised.least.max(alone_promised);
        let members = self.members.iter().filter(|member| member.engine == engine);
        let buffers: u64 = members.map(|member| member.buffers).sum();
        let half = |most: u64| match leaves_half && most > 0 {
            true => 2 * (buffers + most - 1),
            false => 0,
        };
        let promised = Range { least: buffers + promised.least, most: buffers + promised.most };
        larger(promised, Range { least: half(taken.least), most: half(taken.most) })
    }
}

/// Returns the share of an endpoint beyond the entries for its buffers.
fn beyond_buffers(params: &Params) -> Share {
    let Share { reserved, max } = config::share_of(params);
    let without = |entries: u32| entries.saturating_sub(params.pool_buffers);
    Share { reserved: without(reserved), max: without(max) }
}

/// Returns the need of the endpoints of one node.
fn of_node(
    traces: &[&Trace],
    settings: &Settings,
    knob: Knob,
    bar: &ProgressBar,
) -> Result<Need, Error> {
    let params = traces[0].params(settings)?;
    let engines = NicEngines::of(traces.iter().copied(), params.pool_engines as usize);
    let (mut members, mut numbers) = (Vec::new(), BTreeMap::new());
    let mut together = JointReplay::new(traces.iter().copied(), settings, 1, |trace, params| {
        let share = match Knob::of(params) {
            Knob::Pool => beyond_buffers(params),
            Knob::Tables => Share { reserved: 0, max: u32::MAX },
        };
        let meter = Arc::new(Meter { share, held: AtomicU64::new(0) });
        numbers.insert(trace.endpoint(), members.len());
        let ranks = trace.header.rank.into_iter().collect();
        members.push(Member {
            need: PeakNeed { ranks, ..PeakNeed::default() },
            meter: Arc::clone(&meter),
            engine: engines.engine(&trace.endpoint()),
            buffers: if knob == Knob::Pool { u64::from(params.pool_buffers) } else { 0 },
            now: Counts::default(),
            peaks: Counts::default(),
            taken: Range::default(),
        });
        Ok(meter)
    })?;
    let endpoint_of: Vec<usize> = traces.iter().map(|trace| numbers[&trace.endpoint()]).collect();
    let generated = traces.iter().all(|trace| trace.is_generated());
    let mut order = UncertainOrder::new(members.len());
    let engines = vec![EngineEntries::default(); engines.number];
    let mut node = OfNode { members, engines, nic: Default::default() };
    for member in &node.members {
        let reserved = member.promised(Range::default());
        node.engines[member.engine].promised.change(Range::default(), reserved);
    }
    let same_host = traces.iter().all(|trace| trace.header.host == traces[0].header.host);
    let error = if same_host { CLOCKS_OF_HOST } else { CLOCKS_OF_HOSTS };
    let (mut held, mut uncertain_ns) = (vec![Held::default(); traces.len()], 0);
    let (mut now, mut nic) = (Held::default(), PeakNeed::default());
    let (mut until_evaluated, mut replayed) = (EVALUATED, 0);
    while let Some(Step { at, recorded, earliest, latest }) = together.step(bar)? {
        let context = together.players[at].replay().context();
        let [prq, umq] = [context.posted(), context.unexpected()].map(|elements| elements as u64);
        let own = match traces[at].header.context.as_str() {
            "tagged" => Held { prq, umq, internal: 0 },
            _ => Held { prq: 0, umq: 0, internal: prq + umq },
        };
        let before = std::mem::replace(&mut held[at], own);
        now = Held {
            prq: now.prq - before.prq + own.prq,
            umq: now.umq - before.umq + own.umq,
            internal: now.internal - before.internal + own.internal,
        };
        if now.all() > nic.at_peak.all() {
            (nic.at_peak, nic.at_s) = (now, recorded as f64 * 1e-9);
        }
        let of = &mut node.members[endpoint_of[at]];
        let taken = of.meter.held.load(Ordering::Relaxed);
        let changes = [
            (before.prq, own.prq),
            (before.umq, own.umq),
            (before.internal, own.internal),
            (before.all(), own.all()),
            (of.now[TAKEN], taken),
        ];
        for (count, (before, own)) in of.now.iter_mut().zip(changes) {
            *count = *count + own - before;
        }
        if of.now[ALL] > of.peaks[ALL] {
            of.need.at_peak = Held { prq: of.now[0], umq: of.now[1], internal: of.now[2] };
            of.need.at_s = recorded as f64 * 1e-9;
        }
        for (most, count) in of.peaks.iter_mut().zip(of.now) {
            *most = (*most).max(count);
        }
        // The order of generated operations is given.
        replayed += 1;
        let (earliest, latest) = match generated {
            true => (replayed, replayed),
            false => (earliest.saturating_sub(error), latest.saturating_add(error)),
        };
        if !generated {
            uncertain_ns = uncertain_ns.max(latest - earliest);
        }
        order.note(endpoint_of[at], of.now, earliest, latest);
        until_evaluated -= 1;
        if until_evaluated == 0 {
            until_evaluated = EVALUATED;
            let end = if generated { replayed } else { together.earliest().saturating_sub(error) };
            order.advance(end, |member, before, after| node.change(member, before, after));
        }
    }
    order.advance(u64::MAX, |member, before, after| node.change(member, before, after));
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
                never.merge_counters(&queue.block_reasons);
            }
        }
    }
    let leaves_half = params.overflow == Overflow::Sticky && params.preemptive.has("pool");
    let engines = node.engines.len();
    let pool = (0..engines).map(|engine| node.entries_of(engine, leaves_half));
    let Range { least, most } = pool.fold(Range::default(), larger);
    let pool = Range { least: least * engines as u64, most: most * engines as u64 };
    let mut ranks = Vec::new();
    for member in node.members {
        let peaks = std::array::from_fn(|count| Range::from(member.peaks[count]));
        // All ranks together hold at least what one of them holds.
        for (nic, own) in node.nic.iter_mut().zip(&peaks) {
            nic.peak.least = nic.peak.least.max(own.least);
        }
        ranks.push(member.need.of_peaks(peaks));
    }
    nic.ranks = ranks.iter().flat_map(|rank: &PeakNeed| &rank.ranks).copied().collect();
    nic.ranks.sort_unstable();
    nic.ranks.dedup();
    let nic = nic.of_peaks(node.nic.map(|sum| sum.peak));
    let pool = if knob == Knob::Tables { nic.peak_total } else { pool };
    Ok(Need { ranks, nics: vec![nic], tables, pool, never, uncertain_ns })
}

/// The pool as one endpoint sees it. Counts the entries that the endpoint takes, and refuses an
/// entry only if the endpoint already holds the maximum of its share.
#[derive(Debug)]
struct Meter {
    share: Share,
    held: AtomicU64,
}

impl EntryPool for Meter {
    fn take(&self) -> Result<(), Refusal> {
        let held = self.held.load(Ordering::Relaxed);
        if held >= u64::from(self.share.max) {
            return Err(Refusal::Share);
        }
        self.held.store(held + 1, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self) {
        let held = self.held.load(Ordering::Relaxed).saturating_sub(1);
        self.held.store(held, Ordering::Relaxed);
    }

    fn is_half_taken(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "need_tests.rs"]
mod tests;
