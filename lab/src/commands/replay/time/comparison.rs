// SPDX-License-Identifier: BSD-2-Clause
//! Counts the operations of every host engine and compares their times, for `tcam replay --time`.

use matching::HostEngine;
use nic::params::Params;
use nic::report::ContextCounters;
use serde::Serialize;

use super::measure::{Contender, LoadedTrace, Middle, Rounds, WildcardCounts};
use crate::capacity::{Knob, curve};
use crate::error::Error;
use crate::results::Completeness;
use crate::settings::Settings;
use crate::text::{count, entries, progress, share, whole};
use crate::traces::{Found, play};

/// Smallest share of the time that another engine must save to count as faster (*Hint-driven
/// matching*, section V).
const WORTH: f64 = 0.05;
const BAR: &str = "{bar:30} {pos}/{len} rounds of engines, {left}";

/// The numbers of the page and of the JSON file.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    pub(super) title: String,
    pub(super) runs: Vec<Completeness>,
    /// Sum of the messages that were measured in each run.
    pub(super) messages: u64,
    /// Operations of all runs.
    pub(super) operations: u64,
    /// Sum of the operations that were measured in each run.
    pub(super) measured_operations: u64,
    #[serde(flatten)]
    pub(super) wildcards: WildcardCounts,
    pub(super) cases: Vec<Case>,
}

/// All engines with tables of one size.
#[derive(Debug, Serialize)]
pub(super) struct Case {
    pub(super) prq_entries: u64,
    pub(super) umq_entries: u64,
    /// Share of the elements that did not fit the tables, in per cent.
    pub(super) spilled_percent: f64,
    pub(super) engines: Vec<EngineResult>,
    /// The result as a sentence.
    pub(super) reading: String,
}

/// An engine on a storage.
#[derive(Debug, Serialize)]
pub(super) struct EngineResult {
    #[serde(flatten)]
    pub(super) of: Contender,
    /// True for the engine that was recorded, or set.
    pub(super) is_now: bool,
    /// Processor time of matching per message, without the rest of a call of the MPI.
    pub(super) ns_a_message: Middle,
    /// Time relative to the engine that was recorded, or set.
    pub(super) beside_now: Middle,
    /// Mean number of elements that a search of the engine traverses; `None` without searches.
    pub(super) traversed_a_search: Option<f64>,
    /// Sum of all ranks and runs.
    pub(super) counters: ContextCounters,
}

impl Comparison {
    /// Counts all operations, and measures the first `most` operations of all traces together.
    ///
    /// # Errors
    ///
    /// If a trace cannot be replayed, or no trace has an operation.
    pub(super) fn of(found: &[Found], settings: &Settings, most: u64) -> Result<Self, Error> {
        let params = found[0][0].params(settings)?;
        let entries = [params.prq_entries as u64, params.umq_entries as u64];
        let now = now(&params);
        // The traces are read once to count their operations, without keeping them.
        let count = |trace| Ok(LoadedTrace::of(trace, settings, 0)?.operations);
        let counts = found.iter().flat_map(|found| found.iter()).map(count);
        let most = level(counts.collect::<Result<_, Error>>()?, most);
        let mut runs = Vec::with_capacity(found.len());
        for found in found {
            let loaded = found.iter().map(|trace| LoadedTrace::of(trace, settings, most));
            runs.push(loaded.collect::<Result<Vec<_>, _>>()?);
        }
        let loaded = || runs.iter().flatten();
        let measured_operations = loaded().map(|trace| trace.ops.len() as u64).sum();
        if measured_operations == 0 {
            fail!(
                "{}: no operation is recorded there, so that no engine has anything to do",
                found[0][0].path.display()
            );
        }
        let wildcards = loaded()
            .map(|trace| trace.wildcards)
            .fold(WildcardCounts::default(), WildcardCounts::plus);
        let mut cases = Vec::new();
        // Ranks are measured one by one, so they share no pool.
        let is_pooled = Knob::of(&params) == Knob::Pool;
        let sizes = match entries {
            [0, 0] => vec![entries],
            _ if is_pooled => vec![[0, 0]],
            _ => vec![entries, [0, 0]],
        };
        for sizes in sizes {
            let settings = settings.with([("prq_entries", &sizes[0]), ("umq_entries", &sizes[1])]);
            let mut case = Case::count(found, &settings, sizes, now)?;
            if case.uses_host() {
                case.measure(&runs)?;
            }
            case.reading = case.read(wildcards, found.len());
            cases.push(case);
        }
        Ok(Self {
            title: curve::title(&found[0]),
            runs: found.iter().map(|found| found.ranks().completeness()).collect(),
            messages: loaded().map(|trace| trace.messages() as u64).sum(),
            operations: loaded().map(|trace| trace.operations).sum(),
            measured_operations,
            wildcards,
            cases,
        })
    }
}

/// Returns the engine and storage that traces were recorded with, or that are set. The default
/// engine replaces an engine that is not measured, and a message says so.
fn now(params: &Params) -> Contender {
    let queue = params.host_storage;
    let mut engine = params.host_engine;
    if Contender::left_out().iter().any(|(left_out, _)| *left_out == engine) {
        engine = HostEngine::default();
        eprintln!("{} is not measured: {engine} stands in its place", params.host_engine);
    }
    Contender { engine, queue }
}

impl Case {
    /// Counts the operations of each engine.
    fn count(
        found: &[Found],
        settings: &Settings,
        sizes: [u64; 2],
        now: Contender,
    ) -> Result<Self, Error> {
        let contenders = Contender::all();
        let each: Vec<_> = contenders.iter().map(|of| of.set(settings)).collect();
        let mut sums = vec![ContextCounters::default(); contenders.len()];
        for found in found {
            let play = |bar: &_| play::all_to_each(found, &each, bar);
            let counted = play::with_bar(found, each.len(), play)?;
            for (sum, counted) in sums.iter_mut().zip(counted) {
                counted.iter().for_each(|counted| sum.merge(&counted.counters));
            }
        }
        let spilled = sums[0].prq.spills + sums[0].umq.spills;
        let inserts = sums[0].prq.inserts + sums[0].umq.inserts;
        let engines =
            contenders.iter().zip(sums).map(|(of, counters)| EngineResult::of(*of, now, counters));
        Ok(Self {
            prq_entries: sizes[0],
            umq_entries: sizes[1],
            spilled_percent: 100.0 * spilled as f64 / inserts.max(1) as f64,
            engines: engines.collect(),
            reading: String::new(),
        })
    }

    /// Returns true if an element spilled, so that the host engine has something to match.
    pub(super) fn uses_host(&self) -> bool {
        self.spilled_percent > 0.0
    }

    /// Measures the time of each engine in each run, and sorts the engines by it.
    fn measure(&mut self, runs: &[Vec<LoadedTrace>]) -> Result<(), Error> {
        let contenders = Contender::all();
        let now = self.engines.iter().position(|engine| engine.is_now).unwrap_or(0);
        let bar = progress::bar(Rounds::steps(contenders.len()) * runs.len() as u64, BAR);
        let mut times = vec![(Vec::new(), Vec::new()); contenders.len()];
        for loaded in runs {
            let messages = loaded.iter().map(LoadedTrace::messages).sum::<usize>().max(1) as f64;
            let entries = [self.prq_entries, self.umq_entries];
            let rounds = Rounds::measure(loaded, &contenders, entries, &bar)?;
            for (at, (ns, beside)) in times.iter_mut().enumerate() {
                ns.extend(rounds.of(at, messages));
                beside.extend(rounds.beside(at, now));
            }
        }
        bar.finish_and_clear();
        for (engine, (ns, beside)) in self.engines.iter_mut().zip(times) {
            (engine.ns_a_message, engine.beside_now) = (Middle::of(ns), Middle::of(beside));
        }
        self.engines
            .sort_by(|one, other| one.beside_now.median.total_cmp(&other.beside_now.median));
        Ok(())
    }

    fn tables(&self) -> String {
        match (self.prq_entries, self.umq_entries) {
            (0, 0) => "Without tables".to_owned(),
            (prq, umq) => format!("With tables of {} + {}", whole(prq), entries(umq)),
        }
    }

    /// Returns one or two sentences: which engine is the fastest, by how much, and whether the
    /// program may use it.
    fn read(&self, wildcards: WildcardCounts, runs: usize) -> String {
        let tables = self.tables();
        if !self.uses_host() {
            return format!("{tables} nothing spills: the host engine has nothing to do.");
        }
        let spilled = match self.spilled_percent {
            100.0 => String::new(),
            percent => format!(", from which {} spill", share(percent)),
        };
        let is_open = wildcards.wildcards + wildcards.open_probes > 0;
        let may = |engine: &&EngineResult| !(is_open && engine.of.promises());
        let (Some(fastest), Some(now)) =
            (self.engines.iter().find(may), self.engines.iter().find(|engine| engine.is_now))
        else {
            return tables;
        };
        let mut text = format!("{tables}{spilled}, ");
        let Middle { median, low, high } = fastest.beside_now;
        if fastest.is_now || median > 1.0 - WORTH || high >= 1.0 {
            text += &format!("no engine is clearly faster than {}.", now.of);
        } else {
            let [least, most] = [high, low].map(|of| format!("{:.0}", 100.0 * (1.0 - of)));
            let saved = if least == most { least } else { format!("{least} to {most}") };
            let [was, is] =
                [now, fastest].map(|engine| format!("{:.1}", engine.ns_a_message.median));
            text += &format!(
                "{} is the fastest: {is} ns a message, {saved} % less than the {was} ns of {}.",
                fastest.of, now.of
            );
        }
        let runs = count(runs as u64, "run");
        if fastest.of.promises() {
            text += &format!(
                " It is for programs that promise to use no wildcard. Here are none in {runs}."
            );
        } else if let Some(first) = self.engines.first().filter(|first| !may(first)) {
            let WildcardCounts { receives, wildcards, open_probes } = wildcards;
            let what = match wildcards {
                0 => format!("{} have one", count(open_probes, "probe")),
                _ => format!(
                    "{} of the receives have one",
                    share(100.0 * wildcards as f64 / receives.max(1) as f64)
                ),
            };
            text += &format!(
                " {} takes {:.1} ns, but is for programs without wildcards: {what}.",
                first.of, first.ns_a_message.median
            );
        }
        text
    }
}

/// Returns the maximum number of operations to measure of each trace, so that all traces together
/// have up to `most`. Short traces leave their part to longer ones. The result is at least 1.
fn level(mut counts: Vec<u64>, mut most: u64) -> usize {
    counts.sort_unstable();
    for (at, &count) in counts.iter().enumerate() {
        let level = most / (counts.len() - at) as u64;
        if count > level {
            return level.max(1) as usize;
        }
        most -= count;
    }
    usize::MAX
}

impl EngineResult {
    fn of(of: Contender, now: Contender, counters: ContextCounters) -> Self {
        let mut traversals = counters.prq.traversals.found.clone();
        for more in [
            &counters.prq.traversals.not_found,
            &counters.umq.traversals.found,
            &counters.umq.traversals.not_found,
        ] {
            traversals.merge(more);
        }
        Self {
            of,
            is_now: of == now,
            ns_a_message: Middle::default(),
            beside_now: Middle::default(),
            traversed_a_search: traversals.mean(),
            counters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_traces_leave_their_part_to_long_ones() {
        assert_eq!(level(vec![10, 0, 100, 5], 1000), usize::MAX);
        assert_eq!(level(vec![10, 0, 100, 5], 55), 40);
        assert_eq!(level(vec![100, 100], 50), 25);
        assert_eq!(level(vec![100], 0), 1);
    }
}
