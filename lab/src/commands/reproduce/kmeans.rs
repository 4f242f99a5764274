// SPDX-License-Identifier: BSD-2-Clause
//! K-means in this process: Figures 2, 3 and 8 to 10 of Ghazimirsaeed, Afsahi: *Accelerating MPI
//! Message Matching by a Data Clustering Strategy*, on generated streams.
//!
//! ```text
//! for each stream, for each seed:
//!     who added what -> K-means, k = 1 to 32 -> clusters
//!     every engine in turns -> nanoseconds of a search; traversals, counted
//! ```

use std::sync::Arc;

use matching::{Clusters, HostEngine, Key, Queue, Source};
use nic::clusters::Own;
use nic::message::Envelope;
use nic::report::ContextCounters;
use nic::trace::{Op, Posted};

use super::case::{Case, Cases, name, verdict};
use super::colpnp::{Effort, seeds};
use super::figure::{Cell, Figure, digits};
use super::measure::{self, Contender, Stream};
use crate::error::Error;
use crate::experiment::kmeans;
use crate::launch::signals::Signals;
use crate::text::progress;
use crate::workload::generate;
use crate::workload::pattern::Pattern;
use crate::workload::stream::Role;

/// Clusters of Figures 8 to 10.
const KS: [u16; 6] = [1, 2, 4, 8, 16, 32];
/// Messages of a process in the groups of Table 1: small, medium, large, very large.
const GROUPS: [u32; 4] = [2, 10, 50, 100];
/// Processes that send in Figures 2 and 3; the paper names none.
const SENDERS: u32 = 128;
/// Queue of each group in clusterings 1 to 7 of Table 1.
const CLUSTERINGS: [[u16; 4]; 7] = [
    [0, 0, 1, 1],
    [0, 1, 0, 1],
    [0, 1, 1, 0],
    [0, 0, 0, 1],
    [1, 0, 0, 0],
    [0, 0, 1, 0],
    [0, 1, 0, 0],
];
/// Sources of rank 0 in a step of AMG and what each of them adds, by the levels of the multigrid
/// on which it is a neighbour: few on all, most on coarse ones only. In all there are as many
/// elements as *Tail queues*, Table 2, has on 4096 processes.
const AMG_POSTED: [(u32, u32); 5] = [(20, 7), (40, 4), (50, 2), (90, 1), (53, 1)];
const AMG_UNEXPECTED: [(u32, u32); 5] = [(14, 7), (30, 4), (40, 2), (60, 1), (60, 1)];
const RANKS: u32 = 4096;

/// A number in the paper's text: the largest over its k and processes.
struct Claim {
    at: &'static str,
    case: &'static str,
    figure: f64,
}

const CLAIMS: [Claim; 6] = [
    Claim { at: "Fig. 8", case: "AMG-like PRQ", figure: 2.2 },
    Claim { at: "Fig. 8", case: "AMG-like UMQ", figure: 1.5 },
    Claim { at: "Fig. 9", case: "LAMMPS-like PRQ", figure: 1.37 },
    Claim { at: "Fig. 9", case: "LAMMPS-like UMQ", figure: 1.0 },
    Claim { at: "Fig. 10", case: "FDS-like PRQ", figure: 2.0 },
    Claim { at: "Fig. 10", case: "FDS-like UMQ", figure: 2.0 },
];

/// What is searched.
const QUEUES: [(&str, Role); 2] = [("PRQ", Role::FindsReceive), ("UMQ", Role::FindsMessage)];

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            items.swap(at, (self.0 % (at as u64 + 1)) as usize);
        }
    }
}

fn post(source: u32, tag: u32) -> Op {
    let key = Key { bits: u64::from(tag), ignore: 0, source: Source::new(source) };
    Op::Post(Posted { key, len: 8, non_contiguous: false, multi: None })
}

fn arrive(source: u32, tag: u32) -> Op {
    Op::Arrive(Envelope { source, bits: u64::from(tag), len: 8 })
}

/// `(source, tag)` of each message: all of a source, then all of the next.
fn messages(each: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let all = each.enumerate();
    all.flat_map(|(source, each)| (0..each).map(move |tag| (source as u32 + 1, tag))).collect()
}

/// Messages come before their receives, which take the youngest first.
fn reverse(each: &[u32]) -> Stream {
    let messages = messages(each.iter().copied());
    let arrivals = messages.iter().map(|&(source, tag)| (Role::Unexpected, arrive(source, tag)));
    let receives = messages.iter().rev();
    let receives = receives.map(|&(source, tag)| (Role::FindsMessage, post(source, tag)));
    let step: Vec<_> = arrivals.chain(receives).collect();
    Stream::of(RANKS, std::iter::repeat_n(step, 8))
}

/// Receives are posted, then messages come in another order; then messages that nothing was
/// posted for, whose receives take them in another order.
fn amg(seed: u64) -> Stream {
    let each = |of: [(u32, u32); 5]| {
        messages(of.into_iter().flat_map(|(sources, each)| (0..sources).map(move |_| each)))
    };
    let (posted, unexpected) = (each(AMG_POSTED), each(AMG_UNEXPECTED));
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let step = move |_| {
        let shuffled = |random: &mut Random, of: &[(u32, u32)]| {
            let mut of = of.to_vec();
            random.shuffle(&mut of);
            of
        };
        let mut step = Vec::new();
        let mut add = |role, op: fn(u32, u32) -> Op, of: Vec<(u32, u32)>| {
            step.extend(of.into_iter().map(|(source, tag)| (role, op(source, tag))));
        };
        add(Role::Waits, post, shuffled(&mut random, &posted));
        add(Role::FindsReceive, arrive, shuffled(&mut random, &posted));
        add(Role::Unexpected, arrive, shuffled(&mut random, &unexpected));
        add(Role::FindsMessage, post, shuffled(&mut random, &unexpected));
        step
    };
    Stream::of(RANKS, (0..32).map(step))
}

fn list() -> Contender {
    Contender::new(HostEngine::List, Queue::Linked, 8)
}

fn clustered(storage: Queue, prq: Vec<Option<u16>>, umq: Vec<Option<u16>>) -> Contender {
    let clusters = |of| Arc::new(Clusters::new(of).expect("few clusters"));
    let own = Own { prq: clusters(prq), umq: clusters(umq) };
    Contender { clusters: Some(own), ..Contender::new(HostEngine::Kmeans, storage, 8) }
}

/// A contender with what it is called.
type Named = (String, Contender);

/// The list, K-means of what a stream adds, and both on packed queues.
fn of_profile(stream: &Stream) -> Result<Vec<Named>, Error> {
    let counted = measure::count(stream, &list(), true)?;
    let made = |storage, k| {
        let of = |added: &[(u32, u64)]| kmeans::kmeans(added, k).of;
        clustered(storage, of(&counted.prq.added), of(&counted.umq.added))
    };
    let packed = Contender::new(HostEngine::List, Queue::Packed, 8);
    let mut all = vec![(name(&list()), list())];
    all.extend(KS.map(|k| (format!("kmeans k={k}"), made(Queue::Linked, k))));
    all.push((name(&packed), packed));
    all.push(("kmeans k=16 packed".to_owned(), made(Queue::Packed, 16)));
    Ok(all)
}

/// The same clusters of both queues, given.
fn given(name: &str, queue_of: impl Fn(u32) -> u16) -> Named {
    let of: Vec<_> = (0..=SENDERS).map(|source| source.checked_sub(1).map(&queue_of)).collect();
    (name.to_owned(), clustered(Queue::Linked, of.clone(), of))
}

/// Elements that searches of a queue traversed, each.
fn traversed(counted: &ContextCounters, queue: &str) -> f64 {
    let of = if queue == "PRQ" { &counted.prq } else { &counted.umq };
    of.traversals.entries as f64 / (of.traversals.hit.total() + of.traversals.miss.total()) as f64
}

/// Measures contenders on streams of a figure, by seed: times, speedups over the first, and
/// traversals.
fn put(
    cases: &mut Cases,
    (figure, case): (&str, &str),
    streams: &[(Stream, Vec<Named>)],
    queues: &[(&str, Role)],
    effort: Effort,
) -> Result<(), Error> {
    let mut costs = Vec::new();
    for (stream, named) in streams {
        let contenders: Vec<_> = named.iter().map(|(_, contender)| contender.clone()).collect();
        let counted = contenders.iter().map(|contender| measure::count(stream, contender, true));
        let counted = counted.collect::<Result<Vec<_>, _>>()?;
        costs.push((measure::all(stream, &contenders, effort.time)?, counted));
    }
    for &(queue, role) in queues {
        let case = format!("{case} {queue}");
        for (at, (engine, _)) in streams[0].1.iter().enumerate() {
            let times = costs.iter().filter_map(|(costs, _)| costs[at].of(role, None));
            let times: Vec<f64> = times.collect();
            let lists = costs.iter().filter_map(|(costs, _)| costs[0].of(role, None));
            let faster = lists.zip(&times).map(|(list, time)| list / time).collect();
            let deep = costs.iter().map(|(_, counted)| traversed(&counted[at], queue)).collect();
            cases.put([figure, &case, engine, "ns"], None, times);
            cases.put([figure, &case, engine, "speedup"], None, faster);
            cases.put([figure, &case, engine, "traversed"], None, deep);
        }
    }
    Ok(())
}

/// Measures everything, up to a signal.
pub(super) fn measure(effort: Effort, signals: &mut Signals) -> Result<Cases, Error> {
    let mut cases = Cases::default();
    let bar = generate::progress(6);
    let step = |what: &str, signals: &mut Signals| {
        progress::step(&format!("{} of 6: {what}", bar.position() + 1));
        bar.set_message(what.to_owned());
        bar.inc(1);
        if signals.caught().is_some() { Err(Error::Interrupted) } else { Ok(()) }
    };
    let umq = &QUEUES[1..];
    for each in [10, 50] {
        step(&format!("reverse search, M={each}"), signals)?;
        let stream = reverse(&vec![each; SENDERS as usize]);
        let halves = given("two queues", |source| u16::from(source >= SENDERS / 2));
        let named = vec![(name(&list()), list()), halves];
        let streams: Vec<_> = seeds(effort).map(|_| (stream.clone(), named.clone())).collect();
        put(&mut cases, ("2", &format!("M={each}")), &streams, umq, effort)?;
    }
    step("clusterings 1 to 7", signals)?;
    let each: Vec<_> = (0..SENDERS as usize).map(|source| GROUPS[source % 4]).collect();
    let mut named = vec![(name(&list()), list()), given("four queues", |source| source as u16 % 4)];
    for (number, queues) in CLUSTERINGS.into_iter().enumerate() {
        let name = format!("clustering {}", number + 1);
        named.push(given(&name, |source| queues[source as usize % 4]));
    }
    let streams: Vec<_> = seeds(effort).map(|_| (reverse(&each), named.clone())).collect();
    put(&mut cases, ("3", "groups"), &streams, umq, effort)?;
    for (figure, case, ranks) in
        [("8", "AMG-like", RANKS), ("9", "LAMMPS-like", 240), ("10", "FDS-like", 1024)]
    {
        step(case, signals)?;
        let stream = |seed| match figure {
            "8" => amg(seed),
            "9" => Stream::new(Pattern::Lammps, ranks, seed),
            _ => Stream::new(Pattern::Fds, ranks, seed),
        };
        let of = |seed| {
            let stream = stream(seed);
            let named = of_profile(&stream)?;
            Ok((stream, named))
        };
        let streams = seeds(effort).map(of).collect::<Result<Vec<_>, Error>>()?;
        put(&mut cases, (figure, case), &streams, &QUEUES, effort)?;
    }
    bar.finish_and_clear();
    Ok(cases)
}

/// The best of k for a claim: with the paper's list.
fn best<'a>(cases: &'a Cases, claim: &Claim) -> Option<&'a Case> {
    let of = cases.0.iter().filter(|case| {
        case.case == claim.case
            && case.metric == "speedup"
            && case.engine.starts_with("kmeans")
            && !case.engine.ends_with("packed")
            && case.engine != "kmeans k=1"
    });
    of.max_by(|one, other| one.ours.total_cmp(&other.ours))
}

/// Verdicts on what the paper's text says, for docs/papers.md as well.
pub(super) fn verdicts(cases: &Cases) -> Figure {
    let mut figure = Figure::new(
        "Verdicts",
        "Up to so much faster searches than in one list, over k = 2 to 32. Lists are linked, as the \
         paper's.",
        ["said in", "of", "paper", "here", "with", "verdict"],
    );
    for claim in &CLAIMS {
        let best = best(cases, claim);
        figure.row(vec![
            claim.at.into(),
            claim.case.into(),
            digits(claim.figure).into(),
            best.into(),
            best.map_or("", |best| best.engine.as_str()).into(),
            best.map_or_else(String::new, |best| verdict(best.ours, claim.figure)).into(),
        ]);
    }
    figure.footnotes = REASONS.map(str::to_owned).to_vec();
    figure
}

/// Why ours differ.
const REASONS: [&str; 4] = [
    "The paper prints neither lengths nor who added how much. AMG-like has the lengths of *Tail \
     queues*, Table 2, for 4096 processes, from sources that are neighbours on few or many levels; \
     LAMMPS-like and FDS-like are `tcam workload lammps` and `fds`. What K-means gains follows from \
     how unequal sources are: sources that add equally stay in one queue, whatever k.",
    "The orders of arrival here are random. The paper's programs matched nearer to the head of the \
     list, so that a shorter queue gained them less.",
    "LAMMPS-like queues have 15 and 6 elements: a search of the list takes about as long as finding \
     the queue. The paper says the same of its UMQ.",
    "FDS-like: everything is gathered on rank 0, as the paper has it; its speedup of 2 is of 1024 \
     processes, with 8 and 16 clusters.",
];

/// Every figure.
pub(super) fn figures(cases: &Cases) -> Vec<Figure> {
    let mut all = vec![verdicts(cases)];
    let note = format!(
        "{SENDERS} processes send to rank 0, which then receives the youngest message first. ns is \
         the time of a search with the removal, by the device without table entries. The paper \
         prints bars without numbers: two queues are faster, clusterings 3 and 4 beat four queues, \
         clustering 5 is as one queue."
    );
    all.push(table(
        "Figs. 2 and 3: reverse search, and clusterings 1 to 7",
        &note,
        cases,
        &["2", "3"],
    ));
    let note = "Searches in lists of all, in linked queues of k clusters, and in packed ones. \
                *Traversed* are the elements that a search passed.";
    all.push(table("Figs. 8 to 10: applications", note, cases, &["8", "9", "10"]));
    all
}

fn table(title: &'static str, note: &str, cases: &Cases, figures: &[&str]) -> Figure {
    let header = ["figure", "case", "queues", "ns", "speedup", "traversed"];
    let mut table = Figure::new(title, note, header);
    for figure in figures {
        for case in cases.cases(figure) {
            for engine in cases.engines(figure) {
                let of = |metric| Cell::from(cases.get([figure, case, engine, metric]));
                table.row(vec![
                    format!("Fig. {figure}").into(),
                    case.into(),
                    engine.into(),
                    of("ns"),
                    of("speedup"),
                    of("traversed"),
                ]);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_the_lengths_they_say() {
        let counted = measure::count(&amg(1), &list(), true).unwrap();
        assert_eq!((counted.prq.high_water, counted.umq.high_water), (543, 418));
        let sources = |added: &[(u32, u64)]| added.len();
        assert!(sources(&counted.prq.added) > 200 && sources(&counted.umq.added) > 150);
        let counted = measure::count(&reverse(&[10; 8]), &list(), true).unwrap();
        assert_eq!((counted.umq.high_water, traversed(&counted, "UMQ")), (80, 40.5));
    }

    #[test]
    fn clusterings_of_table_1_search_what_they_should() {
        let each: Vec<_> = (0..SENDERS as usize).map(|source| GROUPS[source % 4]).collect();
        let stream = reverse(&each);
        let of =
            |named: &Named| traversed(&measure::count(&stream, &named.1, true).unwrap(), "UMQ");
        let one = traversed(&measure::count(&stream, &list(), true).unwrap(), "UMQ");
        let fifth = of(&given("", |source| CLUSTERINGS[4][source as usize % 4]));
        let fourth = of(&given("", |source| CLUSTERINGS[3][source as usize % 4]));
        assert!(fifth > 0.9 * one && fourth < 0.6 * one, "{one} {fourth} {fifth}");
    }
}
