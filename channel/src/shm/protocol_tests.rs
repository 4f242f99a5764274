// SPDX-License-Identifier: BSD-2-Clause
//! Loom models, which run every interleaving of small rings, lists and doorbells, up to a number of
//! preemptions.
#![allow(unsafe_code, reason = "payloads that loom watches")]

use std::ops::Range;

use loom::{
    cell::UnsafeCell,
    model::Builder,
    sync::{
        Arc,
        atomic::{self, AtomicU32 as Flag, AtomicU64 as Number},
    },
    thread::{self, JoinHandle},
};

use super::*;

impl Word for Number {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    fn replace(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Relaxed)
    }
}

impl DoorbellFlags for Flag {
    fn load(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }

    fn add(&self, flags: u32) {
        self.fetch_or(flags, Ordering::SeqCst);
    }

    fn take(&self) -> u32 {
        self.swap(0, Ordering::AcqRel)
    }

    fn fence() {
        atomic::fence(Ordering::SeqCst);
    }
}

const SLOTS: usize = 2;
const RING: u32 = 7;

/// A ring of two slots. Loom checks that no two threads access a payload at once.
struct Small {
    tail: Number,
    head: Number,
    turns: [Number; SLOTS],
    payloads: [UnsafeCell<u64>; SLOTS],
}

impl Ring for Small {
    type Word = Number;
    const SLOTS: u64 = SLOTS as u64;

    fn tail(&self) -> &Number {
        &self.tail
    }

    fn head(&self) -> &Number {
        &self.head
    }

    fn turn(&self, position: u64) -> &Number {
        &self.turns[position as usize % SLOTS]
    }
}

impl Small {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            tail: Number::new(0),
            head: Number::new(0),
            turns: [Number::new(0), Number::new(0)],
            payloads: [UnsafeCell::new(0), UnsafeCell::new(0)],
        })
    }

    /// Sends a value. Returns false if the ring is full, and does not wait for room: loom cannot
    /// explore a loop without end.
    fn send(&self, own: &Number, head: &mut u64, value: u64) -> bool {
        let Some(position) = claim(self, own, RING, head) else { return false };
        // SAFETY: the claim makes this the only writer; loom checks that it does.
        self.payloads[position as usize % SLOTS].with_mut(|payload| unsafe { *payload = value });
        fill(self, position);
        true
    }

    fn take(&self, position: &mut u64) -> Option<u64> {
        if !is_filled(self, *position) {
            return None;
        }
        // SAFETY: filled and not given back; loom checks that no thread writes.
        let value = self.payloads[*position as usize % SLOTS].with(|payload| unsafe { *payload });
        *position += 1;
        give_back(self, *position);
        Some(value)
    }
}

/// Checks all interleavings with at most `preemptions` preemptions.
fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(run);
}

/// Starts a thread that sends some values. It returns those for which there was room.
fn sender(ring: &Arc<Small>, own: &Arc<Number>, values: Range<u64>) -> JoinHandle<Vec<u64>> {
    let (ring, own) = (Arc::clone(ring), Arc::clone(own));
    thread::spawn(move || {
        let mut head = 0;
        values.filter(|&value| ring.send(&own, &mut head, value)).collect()
    })
}

#[test]
fn two_senders_lose_nothing_over_more_than_a_lap() {
    model(3, || {
        let ring = Small::new();
        let own = || Arc::new(Number::new(0));
        let senders = [sender(&ring, &own(), 10..12), sender(&ring, &own(), 20..21)];
        let (mut position, mut came) = (0, Vec::new());
        for _ in 0..2 {
            came.extend(ring.take(&mut position));
        }
        let sent = senders.map(|sender| sender.join().unwrap());
        came.extend(std::iter::from_fn(|| ring.take(&mut position)));
        // Each value came once, and those of a sender came in order.
        for (sent, first) in sent.iter().zip([10, 20]) {
            let of_it: Vec<_> = came.iter().filter(|&v| v / 10 * 10 == first).collect();
            assert!(of_it.into_iter().eq(sent), "{came:?} came, {sent:?} sent");
        }
        assert_eq!(came.len(), sent.concat().len());
    });
}

#[test]
fn only_claims_of_dead_senders_are_skipped() {
    model(3, || {
        let ring = Small::new();
        let living = Arc::new(Number::new(0));
        let dead = {
            let ring = Arc::clone(&ring);
            // This sender is killed after its claim and before it stores the turn. The owner does
            // not read its intent.
            thread::spawn(move || {
                let _ = claim(&*ring, &Number::new(0), RING, &mut 0);
            })
        };
        let sender = sender(&ring, &living, 1..3);
        let (mut position, mut came) = (0, Vec::new());
        let mut look = || {
            if let Some(value) = ring.take(&mut position) {
                came.push(value);
                return true;
            }
            let passed = is_claimed(&*ring, position)
                && !is_intent(&*living, RING, position)
                && !is_filled(&*ring, position);
            if passed {
                position += 1;
                give_back(&*ring, position);
            }
            passed
        };
        for _ in 0..2 {
            look();
        }
        let sent = sender.join().unwrap();
        dead.join().unwrap();
        while look() {}
        assert_eq!(came, sent);
    });
}

#[test]
fn a_sleeping_owner_is_rung_or_has_seen_the_message() {
    model(5, || {
        let ring = Small::new();
        let words = Arc::new((Flag::new(1), Flag::new(0)));
        let sender = {
            let (ring, words) = (Arc::clone(&ring), Arc::clone(&words));
            thread::spawn(move || {
                assert!(ring.send(&Number::new(0), &mut 0, 5));
                let (sleeps, doorbell) = &*words;
                must_ring(sleeps, doorbell) && doorbell.take() != 0
            })
        };
        let (_, doorbell) = &*words;
        arm(doorbell, 1);
        let seen = ring.take(&mut 0).is_some();
        let rung = sender.join().unwrap();
        assert!(seen || rung, "sleeps for ever");
    });
}

/// A list of senders that has three numbers.
struct Three {
    next: Number,
    end: Number,
    entries: [Number; 3],
}

impl SenderList for Three {
    type Word = Number;
    const NUMBERS: u64 = 3;

    fn next(&self) -> &Number {
        &self.next
    }

    fn end(&self) -> &Number {
        &self.end
    }

    fn entry(&self, number: u64) -> &Number {
        &self.entries[number as usize]
    }
}

#[test]
fn two_senders_never_share_a_number_while_another_is_freed() {
    model(3, || {
        let list = Arc::new(Three {
            next: Number::new(1),
            end: Number::new(1),
            entries: [Number::new(9), Number::new(0), Number::new(0)],
        });
        let enters = |who: u64| {
            let list = Arc::clone(&list);
            thread::spawn(move || {
                let ready = |_| Ok::<(), ()>(());
                enter(&*list, who, ready).ok().flatten()
            })
        };
        let senders = [1, 2].map(|who| (who, enters(who)));
        strike(&*list, 0, 9);
        let numbers = senders.map(|(who, sender)| {
            let number = sender.join().unwrap().expect("a number is free");
            assert_eq!(list.entry(number).load(Ordering::Relaxed), who);
            assert!(list.end().load(Ordering::Relaxed) > number, "the owner looks at this number");
            number
        });
        assert_ne!(numbers[0], numbers[1]);
        // The third number is found in every interleaving.
        let third = enter(&*list, 3, |_| Ok::<(), ()>(())).ok().flatten();
        assert_eq!(numbers.iter().sum::<u64>() + third.expect("the last is free"), 3);
    });
}
