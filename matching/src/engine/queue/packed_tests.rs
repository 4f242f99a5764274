// SPDX-License-Identifier: BSD-2-Clause
//! Tests of packed queues.

use super::*;
use crate::Kernel;
use crate::engine::queue::contract::{Best, Lookup, Queues};

/// The queues, and the expected tokens and handles in age order.
struct Harness {
    queues: Packed,
    expected: Vec<(u32, HostHandle)>,
    age: u64,
}

const QUEUES: usize = 3;

impl Harness {
    fn new() -> Self {
        let scanner = Scanner::new(Kernel::best()).unwrap();
        let mut queues = Packed::new(&EngineConfig::default(), scanner);
        queues.ensure(QUEUES);
        Self { queues, expected: Vec::new(), age: 0 }
    }

    fn push(&mut self) {
        let token = self.age as u32;
        let ignore = if self.age % 50 == 49 { 1 } else { 0 };
        let bits = 2 * self.age;
        let element = Element { bits, ignore, source: Source::new(1), token };
        let handle = self.queues.insert(token as usize % QUEUES, element, self.age);
        self.expected.push((token, handle));
        self.age += 1;
    }

    fn remove(&mut self, rank: usize) {
        let (token, handle) = self.expected.remove(rank);
        let key = Key { bits: 2 * u64::from(token), ignore: 0, source: Source::new(1) };
        let probe = self.queues.probe(&key);
        let queue = token as usize % QUEUES;
        let found = self.queues.older_match(queue, &probe, Best::NONE);
        assert_eq!(self.queues.hit(found).unwrap().token, token);
        assert_eq!(self.queues.oldest_match(&probe), found);
        assert_eq!(self.queues.depth(handle), rank + 1);
        let mut left = None;
        assert_eq!(self.queues.element(handle).token, token);
        self.queues.remove(handle, |_, queue| left = Some(queue));
        assert_eq!(left, Some(queue));
        assert_eq!(self.queues.oldest_match(&probe), Best::NONE);
    }

    fn check(&self) {
        let tokens = self.expected.iter().map(|&(token, _)| token);
        assert!(self.queues.iter().map(|(token, _)| token).eq(tokens.clone()));
        assert_eq!(self.queues.oldest().map(|hit| hit.token), tokens.clone().next());
        for queue in 0..QUEUES {
            let of_queue = tokens.clone().filter(|&token| token as usize % QUEUES == queue);
            assert_eq!(self.queues.len_of(queue), of_queue.clone().count());
            assert!(self.queues.elements(queue).map(|element| element.token).eq(of_queue));
        }
    }
}

#[test]
fn arrays_grow_close_up_and_empty_in_every_order() {
    type Pick = fn(usize, usize) -> usize;
    let picks: [Pick; 4] =
        [|_, _| 0, |len, _| len - 1, |len, step| step * 37 % len, |len, _| len / 2];
    let mut harness = Harness::new();
    for pick in picks {
        let lengths = if cfg!(miri) { &[1, 5, 70][..] } else { &[1, 5, 9, 40, 70, 500, 2500] };
        for &most in lengths {
            (0..most).for_each(|_| harness.push());
            // Removes and adds elements in turn, and then removes all.
            for step in 0..2 * most {
                harness.remove(pick(harness.expected.len(), step));
                harness.push();
            }
            for step in 0..most {
                harness.remove(pick(harness.expected.len(), step));
                if step % 64 == 0 {
                    harness.check();
                }
            }
            harness.check();
        }
    }
}

/// Handles survive any number of moves, and reused places do not mix them up.
#[test]
fn handles_stay_good_while_others_come_and_go() {
    for (standing, seed) in [(1, 7), (3, 1), (20, 5), (60, 3), (200, 9)] {
        let mut harness = Harness::new();
        let mut random: u64 = seed;
        let mut below = |n: usize| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 33) as usize % n
        };
        for step in 0..if cfg!(miri) { 300 } else { 6000 } {
            let len = harness.expected.len();
            match below(8) {
                _ if len <= standing => (0..3).for_each(|_| harness.push()),
                0..4 => harness.push(),
                4 => harness.remove(len - 1),
                5 => harness.remove(below(len)),
                // The oldest element, apart from some that stay.
                _ => harness.remove(standing / 2),
            }
            if step % 100 == 0 {
                harness.check();
            }
        }
        assert!(harness.queues.shift > 0, "the array has closed up");
    }
}

#[test]
fn an_element_at_a_reused_place_keeps_its_own_handle() {
    let mut harness = Harness::new();
    let mut closed_up = 0;
    for _ in 0..3 {
        // Adds elements until the array closes up. Then the youngest elements that moved are
        // removed.
        while harness.queues.shift == closed_up {
            harness.push();
            if harness.expected.len() > 20 {
                harness.remove(19);
            }
        }
        closed_up = harness.queues.shift;
        (0..3).for_each(|_| harness.remove(harness.expected.len() - 1));
    }
    while !harness.expected.is_empty() {
        harness.remove(harness.expected.len() / 2);
    }
}

fn exact(bits: u64) -> (Element, Key) {
    let source = Source::new(1);
    (Element { bits, ignore: 0, source, token: 0 }, Key { bits, ignore: 0, source })
}

/// Removes all matches of a key, and returns their tokens.
fn drain(queues: &mut Packed, key: &Key) -> Vec<u32> {
    let mut tokens = Vec::new();
    while let Some(hit) = queues.hit(queues.oldest_match_of(key)) {
        let in_queue = queues.older_match(0, &queues.probe(key), Best::NONE);
        assert_eq!(queues.hit(in_queue).map(|hit| hit.token), Some(hit.token));
        queues.remove(hit.handle, |_, _| {});
        tokens.push(hit.token);
    }
    tokens
}

#[test]
fn the_oldest_of_equal_elements_is_found_after_holes() {
    let lengths = [(0, 3), (3, 9), (20, 40), (70, 70), (0, 64), (100, 500)];
    for (others, each) in lengths.into_iter().take(if cfg!(miri) { 3 } else { 6 }) {
        let mut queues = Harness::new().queues;
        let (equal, key) = exact(7);
        for round in 0..3 {
            for token in 0..others + each {
                let element = if token < others { exact(99).0 } else { equal };
                let age = u64::from(round * 1000 + token);
                queues.insert(0, Element { token, ..element }, age);
            }
            let expected: Vec<_> = (others..others + each).collect();
            assert_eq!(drain(&mut queues, &key), expected, "{others} others, {each}");
            // Now only the fingerprints of holes agree.
            assert_eq!(queues.len() as u32, others * (round + 1));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes an hour there")]
fn elements_with_equal_fingerprints_are_distinguished() {
    let fields = EngineConfig::default().layout.fields();
    let of = |bits| Fingerprint::new(&fields, &exact(bits).1);
    let twins: Vec<_> = (0..1 << 20).filter(|&bits| of(bits) == of(0)).take(3).collect();
    assert_eq!(twins.len(), 3);
    for others in [0, 5, 30, 90, 400] {
        let mut queues = Harness::new().queues;
        for (token, &bits) in twins.iter().enumerate() {
            for other in 0..others {
                let age = token as u64 * 1000 + other;
                queues.insert(0, exact(1 << 32 | other).0, age);
            }
            let element = Element { token: token as u32, ..exact(bits).0 };
            queues.insert(0, element, token as u64 * 1000 + others);
        }
        for token in [2, 0, 1] {
            let key = exact(twins[token as usize]).1;
            assert_eq!(drain(&mut queues, &key), [token], "{others} others");
        }
    }
}

#[test]
fn an_only_element_that_does_not_match_is_not_found() {
    let mut queues = Harness::new().queues;
    queues.insert(0, exact(1).0, 0);
    let key = exact(2).1;
    assert_eq!(queues.oldest_match_of(&key), Best::NONE);
    assert_eq!(queues.older_match(0, &queues.probe(&key), Best::NONE), Best::NONE);
}

#[test]
fn the_place_of_the_removed_youngest_is_reused_without_a_queue() {
    let mut queues = Harness::new().queues;
    let placed: Vec<_> = (0..3).map(|age| queues.insert(0, exact(age).0, age)).collect();
    queues.remove(placed[1], |_, _| {});
    assert_eq!(queues.unplaced(), None, "an older one was removed");
    queues.remove(placed[2], |_, _| {});
    let waiting = queues.push(exact(9).0, 9);
    assert_eq!(queues.unplaced(), Some(waiting));
    queues.place(waiting, 0);
    assert_eq!(queues.unplaced(), None);
    queues.remove(placed[0], |_, _| {});
    queues.remove(waiting, |_, _| {});
    let waiting = queues.push(exact(10).0, 10);
    assert_eq!(queues.unplaced(), Some(waiting), "all left");
}

#[test]
fn nothing_is_allocated_once_the_longest_is_known() {
    let mut harness = Harness::new();
    let mut lengths = Vec::new();
    for _ in 0..4 {
        (0..300).for_each(|_| harness.push());
        (0..300).for_each(|_| harness.remove(0));
        let Packed { slots, array_places, moved, own, .. } = &harness.queues;
        lengths.push([slots.len(), array_places.len(), moved.capacity(), own.capacity()]);
    }
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
}
