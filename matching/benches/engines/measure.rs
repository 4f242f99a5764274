// SPDX-License-Identifier: BSD-2-Clause
//! Replays a stream, timed or checked.

use std::time::{Duration, Instant};

use matching::{Element, oracle::Oracle};

use crate::{
    contender::{self, Contender, Visitor},
    stream::{Kind, Order, Random, Stream},
};

/// Number of steps before the measured ones.
const WARM_UP: usize = 4;
/// Minimum number of prepared keys, and of orders of keys. The branch predictor would learn a few
/// short orders.
const KEYS: usize = 16_384;
const ORDERS: usize = 8;
/// Number of turns of each contender.
const TURNS: u32 = 5;

/// Minimum number of operations per sample, since the clock ticks every 10 ns.
const SAMPLE: usize = 1024;

/// Nanoseconds per operation; a sample covers one or several steps.
#[derive(Default)]
struct Samples {
    all: Vec<f64>,
    time: f64,
    operations: usize,
}

impl Samples {
    fn add(&mut self, time: Duration, clock: f64, operations: usize) {
        self.time += time.as_nanos() as f64 - clock;
        self.operations += operations;
        if self.operations >= SAMPLE {
            self.all.push(self.time / self.operations as f64);
            (self.time, self.operations) = (0.0, 0);
        }
    }

    fn median(&self) -> f64 {
        let mut samples = self.all.clone();
        samples.sort_by(f64::total_cmp);
        samples.get(samples.len() / 2).copied().unwrap_or(0.0)
    }
}

/// Times of a contender.
#[derive(Default)]
pub(crate) struct Costs {
    post: Samples,
    search: [Samples; 2],
    /// Number of elements of each kind in a step.
    elements: [usize; 2],
    pub(crate) dedicated: (usize, usize),
}

impl Costs {
    pub(crate) const fn has(&self, kind: Kind) -> bool {
        self.elements[kind as usize] > 0
    }

    pub(crate) fn search(&self, kind: Kind) -> f64 {
        self.search[kind as usize].median()
    }

    /// Mean over the elements of both kinds.
    pub(crate) fn searches(&self) -> f64 {
        let total: f64 = Kind::ALL
            .into_iter()
            .map(|kind| self.search(kind) * self.elements[kind as usize] as f64)
            .sum();
        total / self.elements.iter().sum::<usize>() as f64
    }

    pub(crate) fn post(&self) -> f64 {
        self.post.median()
    }
}

/// Nanoseconds that two reads of the clock add to a measured time.
fn clock() -> f64 {
    const READINGS: u32 = 10_000;
    let total: Duration = (0..READINGS)
        .map(|_| {
            let before = Instant::now();
            before.elapsed()
        })
        .sum();
    total.as_nanos() as f64 / f64::from(READINGS)
}

/// A contender in the middle of its stream.
struct Runner<C> {
    contender: C,
    step: usize,
    costs: Costs,
}

trait Run {
    fn turn(&mut self, stream: &Stream, orders: &[Order], clock: f64, time: Duration);
    fn finish(self: Box<Self>) -> Costs;
}

impl<C: Contender> Run for Runner<C> {
    fn turn(&mut self, stream: &Stream, orders: &[Order], clock: f64, time: Duration) {
        let (contender, costs) = (&mut self.contender, &mut self.costs);
        let began = Instant::now();
        let first = self.step;
        while self.step < first + WARM_UP + ORDERS || began.elapsed() < time {
            // In the first steps of a turn, the caches are full of another contender's elements.
            let measured = self.step >= first + WARM_UP;
            let in_turn = !stream.standing.is_empty();
            let at_once: &[_] = if in_turn { &[] } else { &stream.posts };
            let before = Instant::now();
            for post in at_once {
                contender.insert(post.element);
            }
            if measured {
                costs.post.add(before.elapsed(), clock, at_once.len());
            }
            for (kind, keys) in &orders[self.step % orders.len()] {
                let before = Instant::now();
                for (key, token) in keys {
                    if in_turn {
                        contender.insert(stream.posts[*token as usize].element);
                    }
                    assert_eq!(contender.take(key), Some(*token));
                }
                if measured && !keys.is_empty() {
                    costs.search[*kind as usize].add(before.elapsed(), clock, keys.len());
                }
            }
            self.step += 1;
        }
    }

    fn finish(mut self: Box<Self>) -> Costs {
        self.costs.dedicated = self.contender.dedicated();
        self.costs
    }
}

/// The contenders, which take turns.
pub(crate) struct Runners<'s> {
    runners: Vec<Box<dyn Run>>,
    elements: [usize; 2],
    standing: &'s [Element],
}

impl Visitor for Runners<'_> {
    fn visit<C: Contender + 'static>(&mut self, mut contender: C) {
        self.standing.iter().for_each(|&element| contender.insert(element));
        let costs = Costs { elements: self.elements, ..Costs::default() };
        self.runners.push(Box::new(Runner { contender, step: 0, costs }));
    }
}

/// Measures each visited contender for `time`.
pub(crate) fn all(
    stream: &Stream,
    time: Duration,
    visit_all: impl Fn(&Stream, &mut Runners<'_>),
) -> Vec<Costs> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let orders = ORDERS.max(KEYS / stream.posts.len());
    let orders: Vec<_> = (0..orders).map(|_| stream.order(&mut random)).collect();
    let elements =
        Kind::ALL.map(|kind| stream.posts.iter().filter(|post| post.kind == kind).count());
    let mut runners = Runners { runners: Vec::new(), elements, standing: &stream.standing };
    visit_all(stream, &mut runners);
    let clock = clock();
    for _ in 0..TURNS {
        for runner in &mut runners.runners {
            runner.turn(stream, &orders, clock, time / TURNS);
        }
    }
    runners.runners.into_iter().map(Run::finish).collect()
}

struct Check<'a>(&'a Stream);

impl Visitor for Check<'_> {
    /// Compares each result with the oracle. A step is posted before the step before it is matched,
    /// so that the results differ from the stream's own tokens.
    fn visit<C: Contender + 'static>(&mut self, mut contender: C) {
        let stream = self.0;
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut oracle = Oracle::default();
        for &element in &stream.standing {
            contender.insert(element);
            oracle.insert(element);
        }
        let posts = stream.posts.len();
        let post = |step: usize, contender: &mut C, oracle: &mut Oracle| {
            for (at, post) in stream.posts.iter().enumerate() {
                let element = Element { token: (step * posts + at) as u32, ..post.element };
                contender.insert(element);
                oracle.insert(element);
            }
        };
        post(0, &mut contender, &mut oracle);
        for step in 1..6 {
            post(step, &mut contender, &mut oracle);
            for (key, _) in stream.order(&mut random).into_iter().flat_map(|(_, keys)| keys) {
                let (_, token) = oracle.find(&key).expect("every key finds an element");
                assert_eq!(contender.find(&key), Some(token));
                assert_eq!(contender.take(&key), Some(token));
                oracle.remove(token);
            }
        }
        assert_eq!(oracle.elements().len(), posts + stream.standing.len());
    }
}

/// Checks every contender.
pub(crate) fn check_all(stream: &Stream) {
    contender::visit_all(stream, &mut Check(stream));
}
