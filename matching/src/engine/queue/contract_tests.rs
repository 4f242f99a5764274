// SPDX-License-Identifier: BSD-2-Clause
//! Compares both storages with a list of elements, in random sequences of operations.

use proptest::prelude::*;
use ternary_cam::{Kernel, Scanner};

use super::contract::{Best, Queues};
use super::{Linked, Packed};
use crate::engine::config::EngineConfig;
use crate::engine::hit::{HostHandle, HostHit};
use crate::{Element, Key, Source};

const QUEUES: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Adds an element to a queue; without a queue if there is none, or if older elements have none.
    Add(Element, Option<usize>),
    /// Gives a queue to this many elements without one.
    Place(usize, usize),
    /// Removes the element of this age rank, modulo the length.
    Remove(usize),
    Search(Key),
}

/// Match bits and ignore bits of few values.
fn pattern() -> impl Strategy<Value = Key> {
    let source = prop_oneof![5 => (0..3_u32).prop_map(Source::new), 1 => Just(Source::ANY)];
    (0..6_u64, prop_oneof![6 => Just(0_u64), 1 => Just(3)], source)
        .prop_map(|(bits, ignore, source)| Key { bits, ignore, source })
}

fn op() -> impl Strategy<Value = Op> {
    let element = pattern().prop_map(|Key { bits, ignore, source }| Element {
        bits,
        ignore,
        source,
        token: 0,
    });
    prop_oneof![
        8 => (element, prop::option::weighted(0.7, 0..QUEUES))
            .prop_map(|(element, queue)| Op::Add(element, queue)),
        2 => (0..9_usize, 0..QUEUES).prop_map(|(count, queue)| Op::Place(count, queue)),
        5 => any::<usize>().prop_map(Op::Remove),
        4 => pattern().prop_map(Op::Search),
    ]
}

/// An element, with everything that the storage should know about it.
#[derive(Clone, Copy)]
struct Expected {
    element: Element,
    age: u64,
    handle: HostHandle,
    queue: Option<usize>,
}

impl Expected {
    fn name(&self) -> (u32, u64) {
        (self.element.token, self.age)
    }
}

/// A storage, and the list of its elements, oldest first.
struct Harness<Q> {
    queues: Q,
    first: usize,
    all: Vec<Expected>,
    age: u64,
}

impl<Q: Queues> Harness<Q> {
    fn new(mut queues: Q) -> Self {
        assert_eq!((queues.count(), queues.is_empty(), queues.len()), (0, true, 0));
        assert_eq!(queues.make(1), 0);
        let first = queues.make(QUEUES);
        assert_eq!((first, queues.count()), (1, 1 + QUEUES));
        queues.ensure(2);
        assert_eq!(queues.count(), 1 + QUEUES, "they exist already");
        Self { queues, first, all: Vec::new(), age: 5 }
    }

    fn of_queue(&self, queue: usize) -> impl Iterator<Item = &Expected> {
        self.all.iter().filter(move |of| of.queue == Some(queue))
    }

    /// Token and age of a match. Its handle may differ from that of the insertion, but is of the
    /// same element.
    fn hit(&self, best: Best) -> Option<(u32, u64)> {
        self.named(self.queues.hit(best))
    }

    fn named(&self, hit: Option<HostHit>) -> Option<(u32, u64)> {
        let HostHit { handle, token, age } = hit?;
        assert_eq!(self.queues.element(handle).token, token);
        Some((token, age))
    }

    fn add(&mut self, element: Element, queue: Option<usize>) {
        let element = Element { token: self.age as u32, ..element };
        let waits = self.all.iter().any(|of| of.queue.is_none());
        let queue = queue.filter(|_| !waits).map(|queue| self.first + queue);
        let handle = match queue {
            Some(queue) => self.queues.insert(queue, element, self.age),
            None => self.queues.push(element, self.age),
        };
        self.all.push(Expected { element, age: self.age, handle, queue });
        self.age += 3;
    }

    fn place(&mut self, queue: usize) {
        if let Some(of) = self.all.iter_mut().find(|of| of.queue.is_none()) {
            of.queue = Some(self.first + queue);
            let unplaced = self.queues.unplaced().unwrap();
            self.queues.place(unplaced, self.first + queue);
        }
    }

    fn remove(&mut self, rank: usize) {
        let Expected { element, handle, queue, .. } = self.all.remove(rank);
        assert_eq!(*self.queues.element(handle), element);
        let mut left = None;
        self.queues.remove(handle, |element, queue| left = Some((*element, queue)));
        assert_eq!(left, queue.map(|queue| (element, queue)));
    }

    fn search(&self, key: &Key) {
        let probe = self.queues.probe(key);
        let matches = |of: &&Expected| of.element.matches(key);
        let expected = self.all.iter().find(matches).map(Expected::name);
        let found = self.queues.oldest_match(&probe);
        assert_eq!(self.hit(found), expected);
        assert_eq!(self.queues.oldest_match_of(key), found);
        let rank = self.all.iter().position(|of| of.element.matches(key));
        let traversed = rank.map_or(self.all.len(), |rank| rank + 1) as u64;
        assert_eq!(self.queues.traversed_of_all(found), traversed);
        // Each queue, given the match of another one.
        for queue in 0..self.queues.count() + 1 {
            let own = self.of_queue(queue).find(matches).map(Expected::name);
            let alone = self.queues.older_match(queue, &probe, Best::NONE);
            assert_eq!(self.hit(alone), own);
            for other in 0..self.queues.count() {
                let best = self.queues.older_match(other, &probe, Best::NONE);
                let both = [own, self.hit(best)].into_iter().flatten();
                let found = self.queues.older_match(queue, &probe, best);
                assert_eq!(self.hit(found), both.min_by_key(|&(_, age)| age));
            }
            if queue < self.queues.count() {
                let compared = self.of_queue(queue).position(|of| of.element.matches(key));
                let compared = compared.map_or(self.of_queue(queue).count(), |rank| rank + 1);
                assert_eq!(self.queues.compared(queue, alone), compared as u64);
                assert_eq!(self.queues.profiled(queue, alone), compared as u64);
            }
        }
        // All queues, if each element has one.
        if self.all.iter().all(|of| of.queue.is_some()) {
            let all = 0..self.queues.count();
            let found = self.queues.oldest_match_in(all.len(), all, &probe);
            assert_eq!(self.hit(found), expected);
        }
    }

    fn check(&self) {
        let Self { queues, all, .. } = self;
        assert_eq!((queues.len(), queues.is_empty()), (all.len(), all.is_empty()));
        assert!(queues.iter().eq(all.iter().map(Expected::name)));
        assert_eq!(self.named(queues.oldest()), all.first().map(Expected::name));
        let unplaced = all.iter().find(|of| of.queue.is_none());
        let found = queues.unplaced().map(|handle| queues.element(handle).token);
        assert_eq!(found, unplaced.map(|of| of.element.token));
        for (rank, of) in all.iter().enumerate() {
            assert_eq!(*queues.element(of.handle), of.element);
            assert_eq!(queues.depth(of.handle), rank + 1);
        }
        for queue in 0..queues.count() {
            assert_eq!(queues.len_of(queue), self.of_queue(queue).count());
            assert!(queues.elements(queue).eq(self.of_queue(queue).map(|of| &of.element)));
        }
    }

    fn play(&mut self, ops: &[Op]) {
        for op in ops {
            match *op {
                Op::Add(element, queue) => self.add(element, queue),
                Op::Place(count, queue) => (0..count).for_each(|_| self.place(queue)),
                Op::Remove(_) if self.all.is_empty() => {}
                Op::Remove(rank) => self.remove(rank % self.all.len()),
                Op::Search(key) => self.search(&key),
            }
            self.check();
        }
    }
}

fn packed() -> Packed {
    Packed::new(&EngineConfig::default(), Scanner::new(Kernel::best()).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]

    #[test]
    fn a_storage_behaves_like_a_list(
        standing in prop::collection::vec(op(), 0..100),
        ops in prop::collection::vec(op(), 0..300),
    ) {
        // The first operations only add, so that some of the queues are long.
        let standing = standing.into_iter().filter(|op| matches!(op, Op::Add(..)));
        let ops: Vec<_> = standing.chain(ops).collect();
        Harness::new(Linked::default()).play(&ops);
        Harness::new(packed()).play(&ops);
    }
}

#[test]
fn an_element_is_found_by_its_token() {
    fn check(queues: impl Queues) {
        let mut harness = Harness::new(queues);
        let element = Element { bits: 1, ignore: 0, source: Source::ANY, token: 0 };
        for _ in 0..100 {
            harness.add(element, Some(0));
        }
        for rank in [0, 97, 40, 41] {
            let of = harness.all[rank];
            harness.remove(rank);
            assert_eq!(harness.queues.handle_of(of.element.token), None);
        }
        for of in &harness.all {
            let handle = harness.queues.handle_of(of.element.token).unwrap();
            assert_eq!(*harness.queues.element(handle), of.element);
        }
        assert_eq!(harness.queues.handle_of(u32::MAX), None);
    }
    check(Linked::default());
    check(packed());
}
