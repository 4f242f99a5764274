// SPDX-License-Identifier: BSD-2-Clause
//! Finds the phases of a job: the times between collective operations that all ranks took part in.
//!
//! Only operations count that no rank leaves before all have entered. Each time the same algorithm
//! runs, a rank posts the receives of one call in the same order of sources:
//!
//! ```text
//! sources of the receives of rank r, in order: w w w ... w   (K times the word w)
//! K = gcd, over the ranks, of the number of times that the word of the rank repeats
//! call k has ended on a rank with the last receive of its k-th word
//! ```
//!
//! The end of a phase is an operation of each rank, because the recorder may read the clock only
//! every 64 operations.
//!
//! A word may itself be a repetition (a ring names one source), and the algorithm may change with
//! the length of the message. Then the receives are divided into runs: a new run begins after each
//! other receive that a rank posted in between.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use indicatif::ProgressBar;
use matching::{Key, Source, TagLayout};
use nic::message::Envelope;
use nic::trace::{Header, Op, Posted};
use rustc_hash::FxHashMap as HashMap;

use super::endpoints::tagged;
use super::fill::TimeWindow;
use crate::error::Error;
use crate::settings::Settings;
use crate::text::{count, whole};
use crate::traces::{Player, Trace, play};

/// Operations that no rank leaves before all have entered. Others, such as `alltoallv` with counts
/// of 0, may send nothing to some ranks.
const OF_ALL: [&str; 7] = [
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "barrier",
    "reduce_scatter",
    "reduce_scatter_block",
];
/// Nanoseconds in a second.
const SECOND: f64 = 1e9;
/// Source of a receive from any source.
const ANY: u32 = u32::MAX;

/// The phases, and warnings about operations whose calls could not be found.
#[derive(Debug, PartialEq)]
pub(crate) struct Phases {
    /// The time from the end of the previous phase to the end of this phase on all ranks.
    pub(crate) windows: Vec<TimeWindow>,
    /// The number of the operation that ended each phase except the last, for each trace of tagged
    /// messages. Empty for a trace without calls.
    pub(crate) ends: Vec<Vec<u64>>,
    pub(crate) warnings: Vec<String>,
}

/// An operation of a rank: its number, counted from 1, and its time in seconds since the run began.
type End = (u64, f64);

/// Receives that a rank posted for one collective operation, in order.
#[derive(Clone, Debug, Default)]
struct Receives {
    sources: Vec<u32>,
    /// For each receive, the operation after which it was posted and its message had arrived.
    /// `None` if the message never arrived.
    ends: Vec<Option<End>>,
    /// Index of the first receive of each run. A run is a sequence of these receives without any
    /// other receive in between.
    runs: Vec<usize>,
}

impl Receives {
    /// Returns the receives of one run.
    fn run(&self, at: usize) -> Range<usize> {
        self.runs[at]..self.runs.get(at + 1).copied().unwrap_or(self.sources.len())
    }

    /// Divides receives into calls, each with the same number of receives. Returns the end of each
    /// call.
    fn ends_of_calls(&self, receives: Range<usize>, calls: usize) -> Vec<End> {
        let each = receives.len() / calls;
        let first = |call: usize| receives.start + each * call;
        (0..calls).map(|call| self.end(first(call)..first(call + 1))).collect()
    }

    /// Drops the first receive whose message never arrived, and all receives after it, because the
    /// recording was cut off.
    fn cut(&mut self) {
        let whole = self.ends.iter().position(Option::is_none).unwrap_or(self.ends.len());
        self.sources.truncate(whole);
        self.ends.truncate(whole);
        self.runs.retain(|&first| first < whole);
    }

    /// Returns the end of the last of these receives.
    fn end(&self, receives: Range<usize>) -> End {
        let ends = self.ends[receives].iter().flatten().copied();
        ends.max_by_key(|(operations, _)| *operations).unwrap_or_default()
    }
}

/// The receives of one rank by collective operation.
type ReceivesByOperation = BTreeMap<&'static str, Receives>;

/// Finds the phases of traces.
pub(crate) fn of(traces: &[Trace]) -> Result<Phases, Error> {
    let tagged = tagged(traces);
    let ranks: BTreeSet<_> = tagged.iter().map(|trace| rank_or_process(&trace.header)).collect();
    let each = play::each(&tagged, &ProgressBar::hidden(), |trace, _| receives_of(trace))?;
    Ok(between(&each, ranks.len()))
}

/// Identifies a rank: by its number, or else by its host and process id.
fn rank_or_process(header: &Header) -> (Option<u32>, Option<(&str, u32)>) {
    let Header { rank, host, pid, .. } = header;
    (*rank, rank.is_none().then_some((host, *pid)))
}

fn receives_of(trace: &Trace) -> Result<ReceivesByOperation, Error> {
    let settings = Settings::default();
    let layout = trace.layout(&trace.params(&settings)?)?;
    let since = trace.since_ns();
    let mut player = Player::new(trace, &settings)?;
    let mut found = ReceivesByOperation::new();
    // Receives without a message and messages without a receive, by operation and source.
    let mut open: HashMap<_, VecDeque<usize>> = HashMap::default();
    let mut early: HashMap<_, usize> = HashMap::default();
    let (mut before, mut operations) = (None, 0);
    while let Some(timed) = player.next()? {
        operations += 1;
        let at = (operations, (since + timed.0) as f64 / SECOND);
        match timed.1 {
            Op::Post(Posted { key, .. }) | Op::PostAnyway(Posted { key, .. }) => {
                let called = operation(layout, &key);
                let last = std::mem::replace(&mut before, called.map(|(name, _)| name));
                let Some((name, source)) = called else { continue };
                let receives = found.entry(name).or_default();
                if last != Some(name) {
                    receives.runs.push(receives.sources.len());
                }
                let waiting = early.get_mut(&(name, source)).filter(|waiting| **waiting > 0);
                receives.ends.push(waiting.is_some().then_some(at));
                match waiting {
                    Some(waiting) => *waiting -= 1,
                    None => {
                        open.entry((name, source)).or_default().push_back(receives.sources.len());
                    }
                }
                receives.sources.push(source);
            }
            Op::Arrive(Envelope { source, bits, .. }) => {
                let key = Key { bits, ignore: 0, source: Source::new(source) };
                let Some(called) = operation(layout, &key) else { continue };
                match open.get_mut(&called).and_then(VecDeque::pop_front) {
                    Some(receive) => {
                        let of = found.get_mut(called.0).expect("the operation has a receive");
                        of.ends[receive] = Some(at);
                    }
                    None => *early.entry(called).or_default() += 1,
                }
            }
            _ => {}
        }
    }
    found.values_mut().for_each(Receives::cut);
    Ok(found)
}

/// Returns the operation of [`OF_ALL`] on `MPI_COMM_WORLD` that a key belongs to, and the source of
/// the key. Returns `None` for any other key.
fn operation(layout: TagLayout, key: &Key) -> Option<(&'static str, u32)> {
    let decoded = layout.decode(key);
    let name =
        decoded.operation.filter(|name| OF_ALL.contains(name) && decoded.communicator == Some(0));
    Some((name?, decoded.source.or(key.source.get()).unwrap_or(ANY)))
}

/// Returns the phases between calls of all ranks. `ranks` is the number of ranks with traces. If
/// the ranks called operations in different orders, the whole run is one phase.
fn between(each: &[ReceivesByOperation], ranks: usize) -> Phases {
    // The calls of each trace, each with the operation that ended it.
    let mut calls: Vec<Vec<(End, &str)>> = vec![Vec::new(); each.len()];
    let mut warnings = Vec::new();
    let names: BTreeSet<_> = each.iter().flat_map(BTreeMap::keys).copied().collect();
    for name in names {
        let places: Vec<_> = (0..each.len()).filter(|&at| each[at].contains_key(name)).collect();
        let of_ranks: Vec<_> = places.iter().map(|&at| &each[at][name]).collect();
        match (of_ranks.len() == ranks).then(|| ends_of(&of_ranks)) {
            Some(Some(ends)) => {
                for (at, ends) in places.into_iter().zip(ends) {
                    calls[at].extend(ends.into_iter().map(|end| (end, name)));
                }
            }
            Some(None) => warnings.push(format!(
                "WARNING: {} of {name} cannot be divided into calls: no phase ends with them",
                count(of_ranks.iter().map(|of| of.sources.len() as u64).sum(), "message"),
            )),
            None => warnings.push(format!(
                "WARNING: {} of {} have messages of {name}: no phase ends with its calls",
                whole(of_ranks.len() as u64),
                count(ranks as u64, "rank"),
            )),
        }
    }
    for calls in &mut calls {
        calls.sort_by_key(|((operations, _), _)| *operations);
    }
    let names =
        |calls: &[(End, &'static str)]| calls.iter().map(|(_, name)| *name).collect::<Vec<_>>();
    let with_calls: Vec<_> = calls.iter().filter(|calls| !calls.is_empty()).collect();
    let order = with_calls.first().map(|calls| names(calls)).unwrap_or_default();
    if with_calls.iter().any(|calls| names(calls) != order) {
        warnings.push(
            "WARNING: the ranks called collective operations in different orders: all is one phase"
                .to_owned(),
        );
        return Phases {
            windows: vec![TimeWindow::ALL],
            ends: vec![Vec::new(); each.len()],
            warnings,
        };
    }
    let time = |call: usize| with_calls.iter().map(|calls| calls[call].0.1).fold(0.0, f64::max);
    let times: Vec<_> = (0..order.len()).map(time).collect();
    let starts = std::iter::once(0.0).chain(times.iter().copied());
    let stops = times.iter().copied().chain([f64::INFINITY]);
    let windows = starts.zip(stops).map(|(from, to)| TimeWindow { from, to }).collect();
    let ends = calls.iter().map(|calls| calls.iter().map(|((end, _), _)| *end).collect());
    Phases { windows, ends: ends.collect(), warnings }
}

/// Returns the end of each call of an operation, by rank. Returns `None` if the calls cannot be
/// distinguished.
fn ends_of(ranks: &[&Receives]) -> Option<Vec<Vec<End>>> {
    let all: Vec<_> = ranks.iter().map(|rank| rank.sources.as_slice()).collect();
    let runs = ranks.first()?.runs.len();
    let aligned = ranks.iter().all(|rank| rank.runs.len() == runs);
    let calls = calls_in(&all)?;
    if calls > 1 && !(is_ring(&all) && (aligned && runs > 1 || ranks.len() > 2)) {
        let of = |rank: &&Receives| rank.ends_of_calls(0..rank.sources.len(), calls);
        return Some(ranks.iter().map(of).collect());
    }
    if !aligned {
        return None;
    }
    let mut ends = vec![Vec::new(); ranks.len()];
    for run in 0..runs {
        let words: Vec<_> = ranks.iter().map(|rank| &rank.sources[rank.run(run)]).collect();
        let calls = calls_in(&words)?;
        // The calls of a ring cannot be counted, but all have ended with the run.
        let calls = if is_ring(&words) { 1 } else { calls };
        for (ends, rank) in ends.iter_mut().zip(ranks) {
            ends.extend(rank.ends_of_calls(rank.run(run), calls));
        }
    }
    Some(ends)
}

/// Returns true if each rank names one source only, so that any number of its receives repeats.
fn is_ring(words: &[&[u32]]) -> bool {
    words.iter().all(|word| word.iter().all(|source| *source == word[0]))
}

/// Returns the number of calls that the receives of all ranks belong to: 1 if they do not repeat.
/// Returns `None` for a single rank, and if there are too few receives for one call. In a call each
/// of the n ranks depends on all others. This takes at least 2 (n - 1) messages in all.
fn calls_in(words: &[&[u32]]) -> Option<usize> {
    let least = 2 * words.len().checked_sub(1).filter(|others| *others > 0)?;
    let total: usize = words.iter().map(|word| word.len()).sum();
    if words.iter().any(|word| word.is_empty()) || total < least {
        return None;
    }
    let all = words.iter().map(|word| repeats(word)).fold(0, gcd);
    (1..=all.min(total / least)).rev().find(|calls| all.is_multiple_of(*calls))
}

/// Returns how often a word consists of the same shorter word; 1 if it does not repeat.
fn repeats(word: &[u32]) -> usize {
    // Length of the longest proper prefix of each prefix that is also its suffix (Knuth, Morris and
    // Pratt).
    let mut borders = vec![0; word.len()];
    for at in 1..word.len() {
        let mut border: usize = borders[at - 1];
        while border > 0 && word[at] != word[border] {
            border = borders[border - 1];
        }
        borders[at] = border + usize::from(word[at] == word[border]);
    }
    let period = word.len() - borders.last().copied().unwrap_or(0);
    if period > 0 && word.len().is_multiple_of(period) { word.len() / period } else { 1 }
}

fn gcd(one: usize, other: usize) -> usize {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sources of the receives of each of `n` ranks in an allreduce by recursive
    /// doubling. Ranks above the last power of two send their part to a neighbour.
    fn doubling(n: u32) -> Vec<Vec<u32>> {
        let core = 1 << n.ilog2();
        let rest = n - core;
        let real = |new: u32| if new < rest { 2 * new + 1 } else { new + rest };
        let of = |rank: u32| match rank {
            even if even < 2 * rest && even.is_multiple_of(2) => vec![even + 1],
            _ => {
                let new = if rank < 2 * rest { rank / 2 } else { rank - rest };
                let first = (rank < 2 * rest).then(|| rank - 1);
                let rounds = (0..n.ilog2()).map(|round| real(new ^ (1 << round)));
                first.into_iter().chain(rounds).collect()
            }
        };
        (0..n).map(of).collect()
    }

    /// Returns the sources of the receives of each rank in an allreduce of long messages, by
    /// halving and doubling. `n` is a power of two.
    fn halving(n: u32) -> Vec<Vec<u32>> {
        let of = |rank: u32| {
            let rounds = || (0..n.ilog2()).map(move |round| rank ^ (1 << round));
            rounds().chain(rounds().rev()).collect()
        };
        (0..n).map(of).collect()
    }

    fn ring(n: u32) -> Vec<Vec<u32>> {
        (0..n).map(|rank| vec![(rank + n - 1) % n; 2 * (n as usize - 1)]).collect()
    }

    /// Returns the phases of calls, with or without other receives in between. The k-th call ends
    /// at k on rank 0, and earlier on other ranks.
    fn phases(calls: &[Vec<Vec<u32>>], apart: bool) -> Phases {
        let mut ranks: Vec<Receives> = vec![Receives::default(); calls[0].len()];
        for (call, words) in calls.iter().enumerate() {
            for (rank, (receives, word)) in ranks.iter_mut().zip(words).enumerate() {
                if apart || call == 0 {
                    receives.runs.push(receives.sources.len());
                }
                let time = call as f64 + 1.0 - rank as f64 / 1000.0;
                let first = receives.sources.len() as u64;
                receives.ends.extend((first..).zip(word).map(|(at, _)| Some((at, time))));
                receives.sources.extend(word);
            }
        }
        let each: Vec<_> =
            ranks.into_iter().map(|of| ReceivesByOperation::from([("allreduce", of)])).collect();
        between(&each, each.len())
    }

    fn ends(of: &Phases) -> Vec<f64> {
        of.windows.iter().map(|window| window.to).collect()
    }

    #[test]
    fn calls_are_found_for_any_number_of_ranks() {
        for n in [2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 27, 64, 100] {
            let expected: Vec<_> = (1..=20).map(f64::from).chain([f64::INFINITY]).collect();
            for apart in [false, true] {
                let of = phases(&vec![doubling(n); 20], apart);
                assert_eq!((ends(&of), of.warnings.len()), (expected.clone(), 0), "{n}");
            }
            let of = phases(&vec![ring(n); 20], true);
            assert_eq!((ends(&of), of.warnings.len()), (expected.clone(), 0), "ring of {n}");
        }
        for n in [4, 8, 32] {
            // The first call has a short message.
            let mut calls = vec![halving(n); 20];
            calls[0] = doubling(n);
            for (calls, apart) in [(&calls, true), (&vec![halving(n); 20], false)] {
                let of = phases(calls, apart);
                assert_eq!((of.windows.len(), of.warnings.len()), (21, 0), "{n}");
            }
        }
    }

    #[test]
    fn calls_that_cannot_be_distinguished_get_a_warning() {
        // Only rank 0 posted another receive between its calls, and the sources do not repeat.
        let calls = [halving(4), doubling(4)].concat();
        let mut each: Vec<_> = (0..4)
            .map(|rank| {
                let sources = [calls[rank].clone(), calls[rank + 4].clone()].concat();
                let ends = (0..sources.len()).map(|at| Some((at as u64, 1.0))).collect();
                let runs = if rank == 0 { vec![0, 4] } else { vec![0] };
                ReceivesByOperation::from([("allreduce", Receives { sources, ends, runs })])
            })
            .collect();
        let of = between(&each, 4);
        assert_eq!(of.windows, [TimeWindow::ALL]);
        assert_eq!(
            of.warnings,
            [
                "WARNING: 24 messages of allreduce cannot be divided into calls: no phase ends with them"
            ]
        );
        each.truncate(3);
        let told = between(&each, 4).warnings;
        assert_eq!(
            told,
            ["WARNING: 3 of 4 ranks have messages of allreduce: no phase ends with its calls"]
        );
        let ring = phases(&vec![ring(5); 3], false);
        assert_eq!(ring.windows.len(), 2, "receives without an interruption are one run");
        assert_eq!(between(&[], 0).windows, [TimeWindow::ALL]);
    }

    #[test]
    fn each_rank_ends_a_phase_with_a_separate_operation() {
        let of = phases(&vec![doubling(3); 2], true);
        assert_eq!(of.ends, [[0, 1], [1, 3], [0, 1]]);
        let of = |first, second| {
            let receives = |at| Receives {
                sources: vec![1, 2],
                ends: vec![Some((at, 1.0)), Some((at + 1, 1.0))],
                runs: vec![0],
            };
            ReceivesByOperation::from([
                ("barrier", receives(first)),
                ("allreduce", receives(second)),
            ])
        };
        let told = between(&[of(1, 5), of(1, 5), of(1, 5)], 3);
        assert_eq!((told.windows.len(), told.ends[0].as_slice()), (3, &[2, 6][..]));
        let told = between(&[of(1, 5), of(1, 5), of(5, 1)], 3);
        assert_eq!((told.windows.len(), told.warnings.len()), (1, 1));
    }

    #[test]
    fn processes_without_a_rank_are_ranks_of_their_own() {
        let header = |rank, host: &str, pid| Header {
            rank,
            host: host.to_owned(),
            pid,
            ..Header::default()
        };
        let number =
            |headers: &[Header]| headers.iter().map(rank_or_process).collect::<BTreeSet<_>>().len();
        assert_eq!(number(&[header(None, "a", 7), header(None, "a", 8), header(None, "b", 7)]), 3);
        // Two endpoints of a process, and two processes of one rank.
        assert_eq!(number(&[header(None, "a", 7), header(None, "a", 7)]), 1);
        assert_eq!(number(&[header(Some(0), "a", 7), header(Some(0), "a", 8)]), 1);
    }

    #[test]
    fn a_call_that_was_cut_ends_no_phase() {
        let mut receives = Receives {
            sources: vec![1, 2, 1, 2],
            ends: vec![Some((1, 1.0)), Some((2, 2.0)), None, Some((4, 4.0))],
            runs: vec![0, 2],
        };
        receives.cut();
        assert_eq!((receives.sources.len(), receives.runs), (2, vec![0]));
        assert_eq!([repeats(&[1, 2, 1, 2]), repeats(&[1, 2, 1]), repeats(&[7; 6])], [2, 1, 6]);
    }
}
