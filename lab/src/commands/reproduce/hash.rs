// SPDX-License-Identifier: BSD-2-Clause
//! Hint-driven matching: Table I and Figures 3, 5 and 6 of the paper, in this process and through
//! an MPI.
//!
//! ```text
//! in this process, for each seed:  streams -> the list, the hash table, NewMadeleine in turns
//! through an MPI, as often as there are seeds:
//!     tests/apps/hints.c with each engine in turn, without a report -> microseconds
//! ```

use std::ffi::OsString;
use std::path::Path;

use matching::{HostEngine, Key, Queue, Source};
use nic::message::Envelope;
use nic::trace::{Op, Posted};

use super::case::{Case, Cases, name, verdict};
use super::colpnp::{Effort, seeds};
use super::figure::{Cell, Figure, digits};
use super::measure::{self, Contender, Costs, Stream};
use super::through_mpi::{self, Job};
use crate::error::Error;
use crate::launch::signals::Signals;
use crate::text::progress;
use crate::workload::generate;
use crate::workload::stream::Role;

/// Requests of Table I; the paper does not say how many.
const REQUESTS: [u32; 3] = [1_000, 10_000, 100_000];
/// Those that its figures are compared with.
const TABLE: u32 = REQUESTS[1];
/// Messages in flight of shuffle and burst.
const IN_FLIGHT: [u32; 7] = [1, 4, 16, 64, 256, 1024, 4096];
/// Receives that wait in the ping-pong (Figure 6), and bytes through an MPI.
const STANDING: [u32; 5] = [0, 10, 50, 100, 200];
const BYTES: [u32; 4] = [1, 64, 1024, 8192];
/// Messages in flight through an MPI.
const THROUGH_MPI: [u32; 5] = [1, 16, 128, 1024, 4096];

/// The paths of Table I, each with the role of its operations and the paper's microseconds of a
/// request with the hash table and with NewMadeleine.
const PATHS: [(&str, Role, [f64; 2]); 4] = [
    ("fail from receive", Role::Waits, [0.44, 0.44]),
    ("success from receive", Role::FindsMessage, [0.30, 0.42]),
    ("fail from send", Role::Unexpected, [0.44, 1.25]),
    ("success from send", Role::FindsReceive, [0.30, 0.30]),
];

/// The list on both storages, the hash table, NewMadeleine.
fn contenders() -> [Contender; 4] {
    [
        (HostEngine::List, Queue::Linked),
        (HostEngine::List, Queue::Packed),
        (HostEngine::Hash, Queue::Packed),
        (HostEngine::NewMadeleine, Queue::Packed),
    ]
    .map(|(engine, queue)| Contender::new(engine, queue, 8))
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed) * u128::from(n)) >> 64) as u32
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u32 + 1) as usize);
        }
    }
}

/// What a request names: match bits as MPICH has them, and a source.
type Name = (u64, u32);

fn post((bits, source): Name) -> Op {
    let key = Key { bits, ignore: 0, source: Source::new(source) };
    Op::Post(Posted { key, len: 8, non_contiguous: false, multi: None })
}

fn arrive((bits, source): Name) -> Op {
    Op::Arrive(Envelope { source, bits, len: 8 })
}

/// Receives, then as many messages that find them; then the other way round.
fn both_ways(names: &[Name], found: &[Name]) -> Vec<(Role, Op)> {
    let of = |names: &[Name], role, op: fn(Name) -> Op| -> Vec<_> {
        names.iter().map(|&name| (role, op(name))).collect()
    };
    [
        of(names, Role::Waits, post),
        of(found, Role::FindsReceive, arrive),
        of(names, Role::Unexpected, arrive),
        of(found, Role::FindsMessage, post),
    ]
    .concat()
}

/// Requests of Table I: communicator and tag up to 100, source up to 500.
fn requests(count: u32, seed: u64) -> Stream {
    let mut random = Random(seed);
    let steps = (MESSAGES / count).max(4);
    let step = move |_| {
        let mut name = || {
            let (communicator, tag, source) =
                (random.below(101), random.below(101), random.below(501));
            (u64::from(communicator) << 32 | u64::from(tag), source)
        };
        let names: Vec<_> = (0..count).map(|_| name()).collect();
        both_ways(&names, &names)
    };
    Stream::of(512, (0..steps).map(step))
}

/// Messages in all steps that are prepared: the branch predictor learns few short ones.
const MESSAGES: u32 = 32_768;

/// Shuffle and burst: receives in the order of their tags, messages in another or the same.
fn in_flight(count: u32, in_order: bool, seed: u64) -> Stream {
    let mut random = Random(seed);
    let steps = (MESSAGES / count).max(8);
    let names: Vec<Name> = (0..count).map(|tag| (u64::from(tag), 1)).collect();
    let step = move |_| {
        let mut found = names.clone();
        if !in_order {
            random.shuffle(&mut found);
        }
        both_ways(&names, &found)
    };
    Stream::of(2, (0..steps).map(step))
}

/// A ping-pong behind receives that wait for ever.
fn behind(standing: u32) -> Stream {
    let waiting = (0..standing).map(|tag| (Role::Waits, post((1 << 20 | u64::from(tag), 1))));
    let pairs = |count: usize| {
        let pair = [(Role::Waits, post((7, 1))), (Role::FindsReceive, arrive((7, 1)))];
        pair.into_iter().cycle().take(2 * count)
    };
    // The receives are posted once, by the first step.
    let first = waiting.chain(pairs(64)).collect();
    Stream::once_and(first, pairs(1024).collect())
}

/// Nanoseconds of a message: its receive, and its arrival.
fn pair(costs: &Costs, roles: [Role; 2]) -> Option<f64> {
    Some(
        roles
            .map(|role| costs.of(role, None))
            .into_iter()
            .collect::<Option<Vec<_>>>()?
            .iter()
            .sum(),
    )
}

/// Measures a case: by seed, what each contender took of something.
fn put(
    cases: &mut Cases,
    [figure, case]: [&str; 2],
    contenders: &[Contender],
    costs: &[Vec<Costs>],
    of: impl Fn(&Costs) -> Option<f64>,
) {
    let times = |at: usize| costs.iter().map(move |costs| &costs[at]).filter_map(&of);
    for (at, contender) in contenders.iter().enumerate() {
        let engine = name(contender);
        cases.put([figure, case, &engine, "ns"], None, times(at).collect());
        let faster = times(0).zip(times(at)).map(|(first, time)| first / time).collect();
        cases.put([figure, case, &engine, "speedup"], None, faster);
    }
}

/// Measures everything in this process, up to a signal.
pub(super) fn measure(effort: Effort, signals: &mut Signals) -> Result<Cases, Error> {
    let mut cases = Cases::default();
    let steps = (REQUESTS.len() + 2 * IN_FLIGHT.len() + STANDING.len()) as u64;
    let bar = generate::progress(steps);
    let step = |what: String, signals: &mut Signals| {
        progress::step(&format!("{} of {steps}: {what}", bar.position() + 1));
        bar.set_message(what);
        bar.inc(1);
        if signals.caught().is_some() { Err(Error::Interrupted) } else { Ok(()) }
    };
    let all = contenders();
    for count in REQUESTS {
        step(format!("{count} requests"), signals)?;
        // A list of so many is no contender of the paper's.
        let tables = &all[2..];
        let of = |seed| measure::all(&requests(count, seed), tables, effort.time);
        let costs = seeds(effort).map(of).collect::<Result<Vec<_>, _>>()?;
        for (path, role, paper) in PATHS {
            let case = format!("{path}, N={count}");
            put(&mut cases, ["I", &case], tables, &costs, |costs| costs.of(role, None));
            let of = |at: usize| {
                costs.iter().filter_map(move |costs: &Vec<Costs>| costs[at].of(role, None))
            };
            let ratios = of(1).zip(of(0)).map(|(madeleine, hash)| madeleine / hash).collect();
            let paper = (count == TABLE).then_some(paper[1] / paper[0]);
            cases.put(["I", &case, "hash", "newmadeleine / hash"], paper, ratios);
        }
    }
    let roles = [Role::Waits, Role::FindsReceive];
    for (figure, in_order) in [("3", false), ("5a", true)] {
        for count in IN_FLIGHT {
            let what = if in_order { "burst" } else { "shuffle" };
            step(format!("{what} of {count}"), signals)?;
            let of = |seed| measure::all(&in_flight(count, in_order, seed), &all, effort.time);
            let costs = seeds(effort).map(of).collect::<Result<Vec<_>, _>>()?;
            let case = format!("{what}, N={count}");
            put(&mut cases, [figure, &case], &all, &costs, |costs| pair(costs, roles));
        }
    }
    for count in STANDING {
        step(format!("ping-pong behind {count}"), signals)?;
        let of = |_| measure::all(&behind(count), &all, effort.time);
        let costs = seeds(effort).map(of).collect::<Result<Vec<_>, _>>()?;
        let case = format!("behind {count}");
        put(&mut cases, ["6", &case], &all, &costs, |costs| pair(costs, roles));
    }
    bar.finish_and_clear();
    Ok(cases)
}

/// Name of the program, as its line has it.
const PROGRAM: &str = "hints";

/// A program with its launcher, checked.
pub(super) fn job<'a>(
    words: &'a [OsString],
    provider: Option<&Path>,
    signals: &mut Signals,
) -> Result<Option<Job<'a>>, Error> {
    Job::new(words, provider, PROGRAM, &["burst", "1", "1"], signals)
}

/// Measures through an MPI, every engine in turn.
pub(super) fn through_mpi(
    job: &Job<'_>,
    rounds: u32,
    signals: &mut Signals,
    cases: &mut Cases,
) -> Result<(), Error> {
    let place = tempfile::tempdir().map_err(Error::io(std::env::temp_dir()))?;
    let all = contenders();
    let mut runs: Vec<(&str, String, Vec<String>)> = Vec::new();
    for (figure, what) in [("3 MPI", "shuffle"), ("5a MPI", "burst")] {
        for count in THROUGH_MPI {
            let steps = (200_000 / count).clamp(20, 20_000);
            let words = [what.to_owned(), count.to_string(), steps.to_string()];
            runs.push((figure, format!("{what}, N={count}"), words.into()));
        }
    }
    for bytes in BYTES {
        for standing in STANDING {
            let words = ["pingpong", &standing.to_string(), "10000", &bytes.to_string()];
            let words = words.map(str::to_owned);
            runs.push(("6 MPI", format!("{bytes} B behind {standing}"), words.into()));
        }
    }
    for (figure, case, words) in runs {
        progress::step(&format!("{case} through MPI"));
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let mut times = vec![Vec::new(); all.len()];
        for _ in 0..rounds {
            for (contender, times) in all.iter().zip(&mut times) {
                let settings =
                    through_mpi::settings(contender.engine, contender.queue, contender.k);
                let text = job.output(signals, &settings, &words, place.path(), false)?;
                times.push(job.value(&text, "us")?);
            }
        }
        for (at, contender) in all.iter().enumerate() {
            let engine = name(contender);
            let faster = times[0].iter().zip(&times[at]).map(|(list, time)| list / time).collect();
            cases.put([figure, &case, &engine, "us"], None, times[at].clone());
            cases.put([figure, &case, &engine, "speedup"], None, faster);
        }
    }
    Ok(())
}

/// Verdicts on Table I and what the paper's text says, for docs/papers.md as well.
pub(super) fn verdicts(cases: &Cases) -> Figure {
    let mut figure = Figure::new(
        "Verdicts",
        "Times of a request in the hash table and in the tables of NewMadeleine, as ratios; the \
         gain over a linked list is 1 less the time with the hash table over that with the list. \
         In this process.",
        ["said in", "of", "paper", "here", "verdict"],
    );
    for (path, ..) in PATHS {
        let at = format!("{path}, N={TABLE}");
        if let Some(case) = cases.get(["I", &at, "hash", "newmadeleine / hash"])
            && let Some(paper) = case.paper
        {
            figure.row(vec![
                "Table I".into(),
                format!("{path}: NewMadeleine over hash [1]").into(),
                digits(paper).into(),
                Some(case).into(),
                verdict(case.ours, paper).into(),
            ]);
        }
    }
    let gain = |figure: &str, case: &str| {
        let case = cases.get([figure, case, "hash", "speedup"])?;
        Some((1.0 - 1.0 / case.ours, [1.0 - 1.0 / case.lowest, 1.0 - 1.0 / case.highest]))
    };
    for (at, what, case, paper) in [
        ("section I", "shuffle of 1024: gain over the list [2]", "shuffle, N=1024", 0.93),
        ("section IV.D", "burst of 1024: gain over the list [3]", "burst, N=1024", f64::NAN),
    ] {
        let figure_of = if case.starts_with("shuffle") { "3" } else { "5a" };
        if let Some((ours, range)) = gain(figure_of, case) {
            let says =
                if paper.is_nan() { "\"significant overhead\"".to_owned() } else { digits(paper) };
            let found = if paper.is_nan() && ours < 0.0 {
                "reproduced".to_owned()
            } else if paper.is_nan() {
                "differs".to_owned()
            } else {
                verdict(ours, paper)
            };
            figure.row(vec![
                at.into(),
                what.into(),
                says.into(),
                Cell::ranged(ours, range),
                found.into(),
            ]);
        }
    }
    figure.footnotes = REASONS.map(str::to_owned).to_vec();
    figure
}

const REASONS: [&str; 3] = [
    "The paper's tables are uthash in MPC: 0.30 to 1.25 us a request. A receive that succeeds and a \
     message that fails touch one table or four, here as there. A message that succeeds looks up \
     four tables here; the paper counts one lookup for its own NewMadeleine. The paper does not say \
     how many requests wait; 1,000 and 100,000 are on the page as well.",
    "The paper says up to 93 % for some microbenchmarks and has shuffle of up to some thousand \
     requests; that is of the whole message through its MPI.",
    "A list whose first element matches takes 5 to 10 ns, which no table can beat: the price in the \
     engine. The paper prints bars; through an MPI the price is in the section below.",
];

/// Every figure.
pub(super) fn figures(cases: &Cases) -> Vec<Figure> {
    let mut all = vec![verdicts(cases)];
    all.push(table(
        "Table I: time of a request",
        "Nanoseconds of an operation of the device without table entries, by path: requests with \
         communicator and tag up to 100 and source up to 500, N of them waiting. The paper has \
         microseconds in MPC: 0.44, 0.30, 0.44, 0.30 with the hash table, 0.44, 0.42, 1.25, 0.30 \
         with NewMadeleine.",
        cases,
        &["I"],
        "ns",
    ));
    all.push(table(
        "Figs. 3, 5a and 6: shuffle, burst and ping-pong in the engine",
        "Nanoseconds of a message, its receive and its arrival, with N in flight or behind N \
         receives that wait. Behind them the speedup over the linked list.",
        cases,
        &["3", "5a", "6"],
        "ns",
    ));
    if cases.of("3 MPI").next().is_some() {
        all.push(table(
            "The same through an MPI",
            "`tests/apps/hints.c` over tcam without table entries, two ranks: microseconds of a \
             message of shuffle and burst, and half a round trip of the ping-pong, by its bytes and \
             the receives that wait (Figure 6). Behind them the speedup over the linked list.",
            cases,
            &["3 MPI", "5a MPI", "6 MPI"],
            "us",
        ));
    }
    all
}

/// A row a case, a column an engine.
fn table(title: &'static str, note: &str, cases: &Cases, figures: &[&str], metric: &str) -> Figure {
    let engines = cases.engines(figures[0]);
    let header = ["figure", "case"].into_iter().chain(engines.iter().copied());
    let mut table = Figure::new(title, note, header);
    for figure in figures {
        for case in cases.cases(figure) {
            let cell = |engine: &&str| -> Cell {
                let of = |metric| cases.get([figure, case, engine, metric]);
                let faster = |of: &Case| format!(", {}x", digits(of.ours));
                let faster = of("speedup").filter(|_| *engine != engines[0]).map(faster);
                Cell::from(of(metric)).with(&faster.unwrap_or_default())
            };
            let head = [Cell::from(figure.trim_end_matches(" MPI")), case.into()];
            table.row(head.into_iter().chain(engines.iter().map(cell)).collect());
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_table_1_is_taken() {
        let costs = measure::all(
            &requests(1000, 1),
            &contenders()[2..],
            std::time::Duration::from_millis(2),
        );
        for costs in costs.unwrap() {
            for (path, role, _) in PATHS {
                assert!(costs.of(role, None).is_some_and(|ns| ns > 0.0), "{path}");
            }
            let counters = costs.counters;
            assert_eq!(counters.prq.host_matches, counters.umq.host_matches);
            assert_eq!(counters.prq.host_matches, counters.prq.inserts);
        }
    }

    #[test]
    fn receives_wait_behind_a_ping_pong_once() {
        let list = &contenders()[..1];
        let costs = measure::all(&behind(50), list, std::time::Duration::from_millis(2)).unwrap();
        assert_eq!(costs[0].counters.prq.high_water, 51);
        assert_eq!(costs[0].counters.prq.host_occupancy, 50);
    }
}
