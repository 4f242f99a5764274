// SPDX-License-Identifier: BSD-2-Clause
//! COL+PNP in this process: the numbers of Figures 1 and 5a to 10 and of Table 2 of
//! Ghazimirsaeed, Grant, Afsahi, Parallel Computing 89 (2019), on generated streams.
//!
//! ```text
//! for each application and number of processes, for each seed:
//!     the stream of rank 0 -> every engine in turns -> times, queues, lengths
//!                          -> COL+PNP anew, from the first operation on -> Table 2
//! ```

use std::time::Duration;

use matching::{HostEngine, Queue};
use nic::report::ContextCounters;

use super::judged::basis_of_queues;
use super::measure::{self, Contender, Costs, Making, Stream};
use super::number::{Number, Numbers, Place};
use super::paper::{self, K, K_OPERATIONS};
use crate::error::Error;
use crate::launch::signals::Signals;
use crate::text::numbers::whole;
use crate::text::progress;
use crate::workload::basis::Basis;
use crate::workload::generate;
use crate::workload::pattern::Pattern;
use crate::workload::stream::Role;

/// The list, ours on both storages, and the paper's others.
pub(super) const ENGINES: [(HostEngine, Queue); 6] = [
    (HostEngine::List, Queue::Linked),
    (HostEngine::ColPnp, Queue::Linked),
    (HostEngine::ColPnp, Queue::Packed),
    (HostEngine::ColList, Queue::Linked),
    (HostEngine::ListPnp, Queue::Linked),
    (HostEngine::RankArray, Queue::Linked),
];
const LIST: usize = 0;
/// The list and COL+PNP, linked and packed.
const FIRST: usize = 3;
/// k_C of gather.
pub(super) const KS: [u32; 5] = [K_OPERATIONS, 2, 4, K, 16];

/// The two queues and who searches them.
pub(super) const QUEUES: [(&str, Role); 2] =
    [("PRQ", Role::FindsReceive), ("UMQ", Role::FindsMessage)];
pub(super) const KINDS: [(&str, Option<bool>); 3] =
    [("all", None), ("collective", Some(true)), ("point-to-point", Some(false))];

/// What a measurement needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// For each engine, workload and seed, at least.
    pub(super) time: Duration,
    /// The first seed, and how many.
    pub(super) seed: u64,
    pub(super) seeds: u32,
}

/// A workload on so many processes, by seeds.
struct Run {
    pattern: Pattern,
    ranks: u32,
    k: u32,
    /// For each of the first engines.
    costs: Vec<Vec<Costs>>,
}

/// Measures everything, up to a signal.
pub(super) fn measure(effort: Effort, signals: &mut Signals) -> Result<Numbers, Error> {
    let of = |&(pattern, ranks): &(Pattern, &'static [u32])| {
        ranks.iter().map(move |&ranks| (pattern, ranks, K, ENGINES.len()))
    };
    let gathers = paper::GATHER
        .iter()
        .flat_map(|&ranks| KS.iter().map(move |&k| (Pattern::Gather, ranks, k, FIRST)));
    let all: Vec<_> = paper::APPLICATIONS.iter().flat_map(of).chain(gathers).collect();
    let steps = all.len() as u64;
    let bar = generate::progress(steps);
    let mut numbers = Numbers::default();
    for (pattern, ranks, k, engines) in all {
        let message = format!("{} on {}", pattern.name(), whole(u64::from(ranks)));
        progress::step(&format!("{} of {steps}: {message}", bar.position() + 1));
        bar.set_message(message);
        let (mut costs, mut makings) = (Vec::new(), Vec::new());
        for seed in seeds(effort) {
            if signals.caught().is_some() {
                return Err(Error::Interrupted);
            }
            let stream = Stream::new(pattern, ranks, seed);
            costs.push(measure::all(&stream, &contenders(k)[..engines], effort.time)?);
            if pattern != Pattern::Gather {
                makings.push(making(&stream, k)?);
            }
        }
        let run = Run { pattern, ranks, k, costs };
        if pattern == Pattern::Gather {
            run.put_times("5a", &mut numbers);
        } else {
            run.put_lengths(&mut numbers);
            run.put_times("6-8", &mut numbers);
            run.put_overheads(&makings, &mut numbers);
        }
        run.put_queues(if pattern == Pattern::Gather { "5a" } else { "9" }, &mut numbers);
        bar.inc(1);
    }
    put_longest(effort, &mut numbers)?;
    bar.finish_and_clear();
    Ok(numbers)
}

pub(super) fn seeds(effort: Effort) -> impl Iterator<Item = u64> {
    (0..u64::from(effort.seeds)).map(move |more| effort.seed.wrapping_add(more))
}

fn contenders(k: u32) -> Vec<Contender> {
    ENGINES.map(|(engine, queue)| Contender::new(engine, queue, k)).to_vec()
}

/// COL+PNP, linked and packed.
fn making(stream: &Stream, k: u32) -> Result<Vec<Making>, Error> {
    contenders(k)[LIST + 1..FIRST].iter().map(|of| measure::making(stream, of)).collect()
}

/// The queues of FDS on as many processes as *Tail queues* has.
fn put_longest(effort: Effort, numbers: &mut Numbers) -> Result<(), Error> {
    let pattern = Pattern::Fds;
    for &ranks in paper::LENGTHS {
        let contender = Contender::new(HostEngine::RankArray, Queue::Linked, K);
        let of = |seed| measure::count(&Stream::new(pattern, ranks, seed), &contender, false);
        let counted = seeds(effort).map(of).collect::<Result<Vec<_>, _>>()?;
        let run = Run { pattern, ranks, k: K, costs: Vec::new() };
        run.put_counted(&counted, numbers);
    }
    Ok(())
}

impl Run {
    fn place(&self, engine: usize) -> Place<'static> {
        let Self { pattern, ranks, k, .. } = *self;
        let (engine, storage) = ENGINES[engine];
        Place { pattern, ranks, queue: "", traffic: "", engine, storage, k }
    }

    fn engines(&self) -> std::ops::Range<usize> {
        0..self.costs.first().map_or(0, Vec::len)
    }

    /// A value for each seed that has one.
    fn values(&self, of: impl Fn(&[Costs]) -> Option<f64>) -> Vec<f64> {
        self.costs.iter().filter_map(|costs| of(costs)).collect()
    }

    fn put_lengths(&self, numbers: &mut Numbers) {
        let counted: Vec<_> = self.costs.iter().map(|costs| costs[LIST].counters.clone()).collect();
        self.put_counted(&counted, numbers);
    }

    /// How long queues were, and how much of what entered them was collective.
    fn put_counted(&self, counted: &[ContextCounters], numbers: &mut Numbers) {
        for (at, (queue, _)) in QUEUES.into_iter().enumerate() {
            let place = Place { queue, ..self.place(LIST) };
            let is = self.pattern.paper().basis[at];
            let of = |counters: &ContextCounters| {
                let queue = if at == 0 { &counters.prq } else { &counters.umq };
                let collective = queue.kinds.collective.inserts as f64;
                (queue.high_water as f64, collective / queue.inserts as f64)
            };
            let (longest, share) = counted.iter().map(of).unzip();
            numbers.put(Number::new("1", place, "longest", is, longest));
            numbers.put(Number::new("1", place, "share", is, share));
        }
    }

    /// Times of searches, and speedups over the list with the same seed.
    fn put_times(&self, figure: &str, numbers: &mut Numbers) {
        for (queue, role) in QUEUES {
            for (traffic, collective) in KINDS {
                for engine in self.engines() {
                    let place = Place { queue, traffic, ..self.place(engine) };
                    let time = |costs: &[Costs], engine: usize| costs[engine].of(role, collective);
                    let times = self.values(|costs| time(costs, engine));
                    numbers.put(Number::new(figure, place, "ns", Basis::Measured, times));
                    if engine != LIST {
                        let faster =
                            self.values(|costs| Some(time(costs, LIST)? / time(costs, engine)?));
                        let of = Number::new(figure, place, "speedup", Basis::Measured, faster);
                        numbers.put(of);
                    }
                }
            }
        }
    }

    fn put_queues(&self, figure: &str, numbers: &mut Numbers) {
        let makes = |engine: &usize| {
            !matches!(ENGINES[*engine].0, HostEngine::List | HostEngine::RankArray)
        };
        for engine in self.engines().filter(makes) {
            for (at, (queue, _)) in QUEUES.into_iter().enumerate() {
                for (traffic, _) in &KINDS[1..] {
                    let made = self.values(|costs| {
                        let counters = &costs[engine].counters;
                        let queue = if at == 0 { &counters.prq } else { &counters.umq };
                        Some(if *traffic == "collective" {
                            queue.dedicated_collective
                        } else {
                            queue.dedicated_point_to_point
                        } as f64)
                    });
                    let place = Place { queue, traffic, ..self.place(engine) };
                    let number = Number::new(figure, place, "queues", Basis::Predicted, made);
                    numbers.put(number.map(|number| Number {
                        is: basis_of_queues(number.ours, place, self.pattern.paper().basis[at]),
                        ..number
                    }));
                }
            }
        }
    }

    fn put_overheads(&self, makings: &[Vec<Making>], numbers: &mut Numbers) {
        for engine in LIST + 1..FIRST {
            let of = |value: fn(&Making) -> f64| -> Vec<f64> {
                makings.iter().map(|making| value(&making[engine - LIST - 1])).collect()
            };
            let mut put = |metric, values| {
                let place = self.place(engine);
                numbers.put(Number::new("T2", place, metric, Basis::Measured, values));
            };
            put("overhead", of(|making| making.queues / making.searches));
            put("ns making queues", of(|making| making.queues));
            put("ns of searches", of(|making| making.searches));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::reproduce::judged;

    #[test]
    fn what_is_measured_is_what_claims_ask_for() {
        let effort = Effort { time: Duration::from_millis(1), seed: 1, seeds: 2 };
        let mut numbers = Numbers::default();
        for (pattern, ranks) in [(Pattern::Miniamr, 512), (Pattern::Fds, 512)] {
            let streams = seeds(effort).map(|seed| Stream::new(pattern, ranks, seed));
            let streams: Vec<_> = streams.collect();
            let costs = |stream| measure::all(stream, &contenders(K), effort.time).unwrap();
            let run = Run { pattern, ranks, k: K, costs: streams.iter().map(costs).collect() };
            let makings: Vec<_> = streams.iter().map(|stream| making(stream, K).unwrap()).collect();
            run.put_lengths(&mut numbers);
            run.put_times("6-8", &mut numbers);
            run.put_queues("9", &mut numbers);
            run.put_overheads(&makings, &mut numbers);
        }
        put_longest(effort, &mut numbers).unwrap();
        for judged in judged::all(&numbers) {
            let of = (judged.claim.pattern, judged.claim.metric);
            let here = matches!(of.0, Pattern::Miniamr | Pattern::Fds) && of.1 != "time speedup";
            assert_eq!(judged.verdict != judged::Verdict::NotMeasured, here, "{of:?}");
        }
        // Elsewhere a debug build tells nothing; here a list of 1,534 is searched.
        let speedup = |number: &&Number| {
            (number.metric.as_str(), number.pattern.as_str(), number.queue.as_str())
                == ("speedup", "fds", "PRQ")
                && number.engine == "col-pnp"
        };
        assert!(numbers.0.iter().filter(speedup).all(|number| number.ours > 2.0));
    }

    #[test]
    fn the_queues_of_gather_are_the_papers() {
        for (&ranks, made) in paper::GATHER.iter().zip([32, 45, 64]) {
            let stream = Stream::new(Pattern::Gather, ranks, 1);
            let linked = contenders(K_OPERATIONS)[LIST + 1].clone();
            let costs = measure::all(&stream, &[linked], Duration::from_millis(1)).unwrap();
            assert_eq!(costs[0].counters.prq.dedicated_collective, made);
        }
    }
}
