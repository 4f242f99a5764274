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
const OVERFLOW: usize = 2;
const RING: u32 = 7;

/// A slot, of which loom checks that no two threads access the payload at once.
struct Slot {
    turn: Number,
    payload: UnsafeCell<u64>,
}

/// A ring of two slots, with an overflow area of two more.
struct Small {
    tail: Number,
    head: Number,
    ring: [Slot; SLOTS],
    overflow: [Slot; OVERFLOW],
    accepts: u64,
}

impl Ring for Small {
    type Word = Number;
    const SLOTS: u64 = SLOTS as u64;
    const OVERFLOW: u64 = OVERFLOW as u64;

    fn tail(&self) -> &Number {
        &self.tail
    }

    fn head(&self) -> &Number {
        &self.head
    }
}

/// The owner of a ring.
#[derive(Default)]
struct Reader {
    at: u64,
    in_overflow: bool,
}

impl Small {
    fn new() -> Arc<Self> {
        Self::accepting(0)
    }

    fn accepting(accepts: u64) -> Arc<Self> {
        let slot = || Slot { turn: Number::new(0), payload: UnsafeCell::new(0) };
        Arc::new(Self {
            tail: Number::new(0),
            head: Number::new(0),
            ring: [slot(), slot()],
            overflow: [slot(), slot()],
            accepts,
        })
    }

    /// Claims a slot. Returns it and its turn, or `None` if there is no room.
    fn claim(&self, own: &Number, head: &mut u64) -> Option<(&Slot, u64)> {
        if let Some(position) = claim(self, own, RING, *head) {
            return Some((&self.ring[position as usize % SLOTS], position + 1));
        }
        let Claim { place, turn } =
            claim_last(self, own, RING, head, |index| index < self.accepts)?;
        Some(match is_overflow(place) {
            true => (&self.overflow[index_of::<Self>(place) as usize], turn),
            false => (&self.ring[place as usize % SLOTS], turn),
        })
    }

    /// Sends a value. Returns false if the ring is full, and does not wait for room: loom cannot
    /// explore a loop without end.
    fn send(&self, own: &Number, head: &mut u64, value: u64) -> bool {
        let Some((slot, turn)) = self.claim(own, head) else { return false };
        // SAFETY: the claim makes this the only writer; loom checks that it does.
        slot.payload.with_mut(|payload| unsafe { *payload = value });
        fill(&slot.turn, turn);
        true
    }

    fn slot(&self, reader: &Reader) -> &Slot {
        match reader.in_overflow {
            true => &self.overflow[index_of::<Self>(reader.at) as usize % OVERFLOW],
            false => &self.ring[reader.at as usize % SLOTS],
        }
    }

    fn is_filled(&self, reader: &mut Reader) -> bool {
        let found = turn(&self.slot(reader).turn);
        if found == reader.at + 1 || !is_overflow(found | reader.at) {
            return found == reader.at + 1;
        }
        (reader.at, reader.in_overflow) = match follow(self, reader.at, !reader.in_overflow, found)
        {
            Step::Stay => return false,
            Step::Handover(at) | Step::Ring(at) => (at, false),
            Step::Overflow(at) => (at, true),
        };
        turn(&self.slot(reader).turn) == reader.at + 1
    }

    fn take(&self, reader: &mut Reader) -> Option<u64> {
        if !self.is_filled(reader) {
            return None;
        }
        // SAFETY: filled and not given back; loom checks that no thread writes.
        let value = self.slot(reader).payload.with(|payload| unsafe { *payload });
        reader.at += 1;
        give_back(self, reader.at);
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

/// Two senders send some values, while the owner takes up to `looks` of them.
fn nothing_is_lost(accepts: u64, values: [Range<u64>; 2], looks: usize) {
    model(3, move || {
        let ring = Small::accepting(accepts);
        let own = || Arc::new(Number::new(0));
        let senders = values.clone().map(|values| sender(&ring, &own(), values));
        let (mut reader, mut came) = (Reader::default(), Vec::new());
        for _ in 0..looks {
            came.extend(ring.take(&mut reader));
        }
        let sent = senders.map(|sender| sender.join().unwrap());
        came.extend(std::iter::from_fn(|| ring.take(&mut reader)));
        // Each value came once, and those of a sender came in order.
        for (sent, values) in sent.iter().zip(&values) {
            let of_it: Vec<_> = came.iter().filter(|&v| v / 10 * 10 == values.start).collect();
            assert!(of_it.into_iter().eq(sent), "{came:?} came, {sent:?} sent");
        }
        assert_eq!(came.len(), sent.concat().len());
        // The ring is used again.
        let mut again = 0;
        while again < SLOTS && ring.send(&own(), &mut 0, 90) {
            again += 1;
        }
        while ring.take(&mut reader).is_some() {
            again -= 1;
        }
        assert_eq!(again, 0);
    });
}

#[test]
fn two_senders_lose_nothing_over_more_than_a_lap() {
    nothing_is_lost(0, [10..12, 20..21], 2);
}

#[test]
fn two_senders_lose_nothing_when_the_ring_is_handed_over_and_back() {
    nothing_is_lost(2, [10..13, 20..21], 3);
}

#[test]
fn a_full_overflow_area_refuses_until_the_ring_is_back() {
    nothing_is_lost(1, [10..13, 20..21], 2);
}

#[test]
fn a_message_that_was_sent_before_another_arrives_before_it() {
    model(3, || {
        let ring = Small::accepting(2);
        assert!(ring.send(&Number::new(0), &mut 0, 1));
        let flag = Arc::new(Flag::new(0));
        let first = {
            let (ring, flag) = (Arc::clone(&ring), Arc::clone(&flag));
            thread::spawn(move || {
                assert!(ring.send(&Number::new(0), &mut 0, 2));
                flag.store(1, Ordering::Relaxed);
            })
        };
        let second = {
            let (ring, flag) = (Arc::clone(&ring), Arc::clone(&flag));
            thread::spawn(move || {
                let is_later = flag.load(Ordering::Relaxed) == 1;
                assert!(ring.send(&Number::new(0), &mut 0, 3));
                is_later
            })
        };
        let mut reader = Reader::default();
        let mut came: Vec<_> = ring.take(&mut reader).into_iter().collect();
        first.join().unwrap();
        let is_later = second.join().unwrap();
        came.extend(std::iter::from_fn(|| ring.take(&mut reader)));
        assert_eq!(came.len(), 3);
        assert!(!is_later || came == [1, 2, 3], "{came:?}");
    });
}

/// A sender is killed after its claim and before it stores the turn, after `before` other messages.
fn only_dead_claims_are_skipped(accepts: u64, before: u64) {
    model(3, move || {
        let ring = Small::accepting(accepts);
        let living = Arc::new(Number::new(0));
        for value in 0..before {
            assert!(ring.send(&living, &mut 0, value));
        }
        let dead = {
            let ring = Arc::clone(&ring);
            // The owner does not read the intent of this sender.
            thread::spawn(move || {
                let _ = ring.claim(&Number::new(0), &mut 0);
            })
        };
        let sender = sender(&ring, &living, 11..13);
        let (mut reader, mut came) = (Reader::default(), Vec::new());
        let mut look = || {
            if let Some(value) = ring.take(&mut reader) {
                came.push(value);
                return true;
            }
            let passed = is_claimed(&*ring, reader.at)
                && !is_intent(&*living, RING, reader.at)
                && !ring.is_filled(&mut reader)
                && is_claimed(&*ring, reader.at);
            if passed {
                reader.at = after_skipped(&*ring, reader.at);
                give_back(&*ring, reader.at);
            }
            passed
        };
        for _ in 0..2 {
            look();
        }
        let sent = sender.join().unwrap();
        dead.join().unwrap();
        while look() {}
        assert_eq!(came, (0..before).chain(sent).collect::<Vec<_>>());
    });
}

#[test]
fn only_claims_of_dead_senders_are_skipped() {
    only_dead_claims_are_skipped(0, 0);
}

#[test]
fn claims_of_dead_senders_are_skipped_at_and_after_a_handover() {
    only_dead_claims_are_skipped(2, 1);
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
        let seen = ring.take(&mut Reader::default()).is_some();
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
