// SPDX-License-Identifier: BSD-2-Clause
//! Tests every interleaving of two threads with up to three operations each, with loom. The results
//! and the remaining elements must equal those of a sequential order of the operations that keeps
//! the order of each thread.

use std::collections::HashSet;

use loom::{
    model::Builder,
    sync::{Arc, Mutex, atomic::AtomicU64 as Number, atomic::Ordering},
    thread,
};

use super::model::{Answer, Model, Op};
use super::{Binning, Lock, Locks, Mark, TailQueues, Unit};
use matching::{Element, Key, Linked, Source};

struct Loom;

impl Locks for Loom {
    type Lock<T: Send> = Mutex<T>;
    type Mark = Number;
    const NAME: &'static str = "loom";
}

impl<T: Send> Lock<T> for Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.lock().unwrap())
    }
}

impl Mark for Number {
    fn new() -> Self {
        Self::new(0)
    }

    fn get(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    fn raise(&self, to: u64) {
        self.fetch_max(to, Ordering::AcqRel);
    }
}

/// The results of both threads, and the tokens that remain.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Outcome {
    answers: [Vec<Answer>; 2],
    left: [Vec<u32>; 2],
}

/// The operations before the threads start, and the operations of each thread.
struct Program {
    before: Vec<Op>,
    threads: [Vec<Op>; 2],
}

impl Program {
    /// Adds the outcome of every sequential order of the remaining operations. `answers` has the
    /// results of the previous operations.
    fn allowed(&self, model: &Model, answers: &[Vec<Answer>; 2], outcomes: &mut HashSet<Outcome>) {
        let mut at_end = true;
        for which in [0, 1] {
            if let Some(&op) = self.threads[which].get(answers[which].len()) {
                at_end = false;
                let (mut model, mut answers) = (model.clone(), answers.clone());
                answers[which].push(model.run(op));
                self.allowed(&model, &answers, outcomes);
            }
        }
        if at_end {
            outcomes.insert(Outcome { answers: answers.clone(), left: model.tokens() });
        }
    }

    /// Runs every interleaving.
    fn check(self, binning: Binning) {
        let mut model = Model::default();
        for &op in &self.before {
            model.run(op);
        }
        let mut allowed = HashSet::new();
        self.allowed(&model, &[Vec::new(), Vec::new()], &mut allowed);
        let (program, allowed) = (std::sync::Arc::new(self), std::sync::Arc::new(allowed));
        Builder::new().check(move || {
            let unit = Arc::new(TailQueues::<Linked, Loom>::new(binning, Linked::default));
            for op in &program.before {
                op.run(&*unit);
            }
            let run = |ops: &[Op], unit: &TailQueues<Linked, Loom>| -> Vec<Answer> {
                ops.iter().map(|op| op.run(unit)).collect()
            };
            let other = {
                let (unit, program) = (Arc::clone(&unit), std::sync::Arc::clone(&program));
                thread::spawn(move || run(&program.threads[1], &unit))
            };
            let answers = [run(&program.threads[0], &unit), other.join().unwrap()];
            let mut unit = Arc::try_unwrap(unit).ok().expect("the other thread has ended");
            let outcome = Outcome { answers, left: [unit.receives(), unit.messages()] };
            assert!(allowed.contains(&outcome), "{outcome:?} is none of {allowed:?}");
        });
    }
}

const ANY_TAG: u64 = 0xff;

fn post(token: u32, bits: u64, ignore: u64, source: Source) -> Op {
    Op::Post(Element { bits, ignore, source, token })
}

fn exact(token: u32) -> Op {
    post(token, 1, 0, Source::new(1))
}

fn any(token: u32) -> Op {
    post(token, 0, ANY_TAG, Source::ANY)
}

fn message(token: u32, bits: u64) -> Op {
    Op::Arrive(Element { bits, ignore: 0, source: Source::new(1), token })
}

fn probe() -> Op {
    Op::Probe(Key { bits: 0, ignore: ANY_TAG, source: Source::ANY })
}

/// Returns a list with one bin, and a list whose bins have room for one element each.
fn binnings() -> [Binning; 2] {
    [Binning::OFF, Binning::new(2, 1).unwrap()]
}

/// Fills the bins of both lists and puts an element into each inbox, so that an operation may end
/// in any of them.
fn lists() -> Vec<Op> {
    let receive = |token| post(token, 7, 0, Source::new(7));
    let other = |token| message(token, 9);
    vec![receive(90), receive(91), other(92), other(93), receive(94), other(95)]
}

fn check(threads: [&[Op]; 2]) {
    for binning in binnings() {
        for before in [Vec::new(), lists()] {
            Program { before, threads: threads.map(<[Op]>::to_vec) }.check(binning);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "every interleaving takes hours there")]
fn receives_meet_messages() {
    check([&[exact(0), exact(1), exact(2)], &[message(10, 1), message(11, 1), message(12, 1)]]);
}

#[test]
#[cfg_attr(miri, ignore = "every interleaving takes hours there")]
fn wildcards_take_the_earliest() {
    check([&[any(0), exact(1), any(2)], &[message(10, 2), message(11, 1), message(12, 1)]]);
}

#[test]
#[cfg_attr(miri, ignore = "every interleaving takes hours there")]
fn threads_that_do_both_meet_each_other() {
    check([&[exact(0), message(10, 1), any(1)], &[message(11, 1), exact(2), message(12, 2)]]);
}

#[test]
#[cfg_attr(miri, ignore = "every interleaving takes hours there")]
fn two_threads_search_one_list() {
    check([&[exact(0), any(1), message(10, 1)], &[any(2), exact(3), message(11, 1)]]);
}

#[test]
#[cfg_attr(miri, ignore = "every interleaving takes hours there")]
fn a_receive_is_cancelled_or_matched() {
    check([&[exact(0), Op::Cancel(0), probe()], &[message(10, 1), exact(1), message(11, 1)]]);
}

#[test]
#[cfg_attr(miri, ignore = "every interleaving takes hours there")]
fn a_probe_finds_the_message_that_a_receive_would_take() {
    check([&[message(10, 1), message(11, 2), any(0)], &[probe(), any(1), probe()]]);
}

/// Another thread moves the element from an inbox to its list during the cancel or the probe.
#[test]
#[cfg_attr(miri, ignore = "every interleaving takes hours there")]
fn an_element_on_its_way_is_cancelled_and_probed() {
    check([&[exact(0), Op::Cancel(0)], &[message(10, 2), message(11, 2)]]);
    let receive = |token| post(token, 5, 0, Source::new(1));
    check([&[message(10, 1), probe()], &[receive(0), receive(1)]]);
}

/// Bins are emptied, passed and reused while a thread is between two bins.
#[test]
#[cfg_attr(miri, ignore = "every interleaving takes hours there")]
fn bins_are_used_again() {
    let before = vec![message(90, 1), message(91, 1), message(92, 2), post(93, 7, 0, Source::ANY)];
    let threads = [vec![exact(0), message(10, 1), exact(1)], vec![any(2), message(11, 1), any(3)]];
    for binning in [(2, 1), (2, 2), (4, 1)].map(|(bins, elements)| Binning::new(bins, elements)) {
        let binning = binning.unwrap();
        Program { before: before.clone(), threads: threads.clone() }.check(binning);
    }
}
