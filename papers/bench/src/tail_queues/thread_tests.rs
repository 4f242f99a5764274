// SPDX-License-Identifier: BSD-2-Clause
//! Runs random MPI operations in several threads, and compares the results with naive lists.
//!
//! The locks are wrapped so that every operation draws a ticket when it takes effect, which is
//! between its call and its return. After each round the test repeats the operations of all threads
//! on two naive lists, in the order of their tickets. The lists must give the same results and keep
//! the same elements. The unit then is linearizable, keeps the order of MPI, loses no element,
//! matches no element twice, and leaves no pair that matches.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::model::{Answer, Model, Op, check_rest};
use super::sequence_tests::packed;
use super::{Binning, Lock, Locks, Mcs, OneLock, ParkingLot, TailQueues, Unit};
use matching::{Element, Key, Linked, Queues, Source};

/// Locks that give tickets.
struct Ticketed<L>(PhantomData<L>);

struct TicketedLock<K>(K);

static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Number of locks that this thread has acquired since it last held no lock, and its ticket.
    static TAKEN: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
    /// Number of locks that this thread holds.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// Returns the ticket of this thread's last operation.
fn ticket() -> u64 {
    TAKEN.get().1
}

impl<L: Locks> Locks for Ticketed<L> {
    type Lock<T: Send> = TicketedLock<L::Lock<T>>;
    type Mark = L::Mark;
    const NAME: &'static str = L::NAME;
}

impl<T, K: Lock<T>> Lock<T> for TicketedLock<K> {
    fn new(value: T) -> Self {
        Self(K::new(value))
    }

    fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.0.with(|value| {
            let taken = if HELD.get() == 0 { 1 } else { TAKEN.get().0 + 1 };
            // The lock of a bin gives the ticket. The lock of the inboxes (TL), acquired while the
            // bin is locked, replaces the ticket. Later locks only add bins.
            let ticket =
                if taken <= 2 { NEXT.fetch_add(1, Ordering::Relaxed) } else { TAKEN.get().1 };
            TAKEN.set((taken, ticket));
            HELD.set(HELD.get() + 1);
            let result = f(value);
            HELD.set(HELD.get() - 1);
            result
        })
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % bound
    }
}

const ANY_TAG: u64 = 0xff;
/// Number of operations of a thread in a round.
const ROUND: u32 = 400;

/// Draws an operation. `lean` is the percentage of receives among receives and messages. Tokens are
/// unique.
fn draw(random: &mut Random, lean: u64, token: u32) -> Op {
    let bits = random.below(6);
    let source = Source::new(random.below(3) as u32);
    let ignore = if random.below(5) == 0 { ANY_TAG } else { 0 };
    let from = if random.below(5) == 0 { Source::ANY } else { source };
    match random.below(20) {
        0 => Op::Cancel(token - random.below(40.min(u64::from(token) + 1)) as u32),
        1 => Op::Probe(Key { bits, ignore, source: from }),
        _ if random.below(100) < lean => Op::Post(Element { bits, ignore, source: from, token }),
        _ => Op::Arrive(Element { bits, ignore: 0, source, token }),
    }
}

/// A unit, and the model after the same operations.
struct History<U> {
    unit: U,
    model: Model,
    token: u32,
    matches: u64,
}

impl<U: Unit> History<U> {
    fn new(unit: U) -> Self {
        Self { unit, model: Model::default(), token: 0, matches: 0 }
    }

    fn round(&mut self, threads: u32, seed: u64) {
        let unit = &self.unit;
        let first = self.token;
        // Lists grow in some rounds and shrink in others.
        let lean = [50, 50, 70, 30][(seed % 4) as usize];
        let run = |thread: u32| {
            let mut random = Random((seed << 8 | u64::from(thread)) * 2 + 0x9e37_79b9_7f4a_7c15);
            let ops = (0..ROUND).map(|number| {
                let op = draw(&mut random, lean, first + number * threads + thread);
                let before = NEXT.load(Ordering::Relaxed);
                let answer = op.run(unit);
                assert!((before..NEXT.load(Ordering::Relaxed)).contains(&ticket()));
                (ticket(), op, answer)
            });
            ops.collect::<Vec<_>>()
        };
        let mut ops: Vec<_> = std::thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> =
                (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        ops.sort_unstable_by_key(|(ticket, ..)| *ticket);
        for (ticket, op, answer) in ops {
            assert_eq!(answer, self.model.run(op), "{op:?}, ticket {ticket}, round {seed}");
            self.matches += u64::from(matches!(
                (op, answer),
                (Op::Post(_) | Op::Arrive(_), Answer::Token(Some(_)))
            ));
        }
        check_rest(&mut self.unit, &self.model);
        self.token += ROUND * threads;
    }
}

/// Returns the least duration of each test: `TCAM_SOAK_SECONDS`, or 0 if it is not set.
fn soak() -> Duration {
    let seconds = std::env::var("TCAM_SOAK_SECONDS").ok();
    Duration::from_secs(seconds.map_or(0, |seconds| seconds.parse().expect("seconds")))
}

fn check(unit: impl Unit, threads: u32) {
    let rounds = if cfg!(debug_assertions) { 20 } else { 400 };
    let began = Instant::now();
    let mut history = History::new(unit);
    let mut seed = 0;
    while seed < rounds || began.elapsed() < soak() {
        history.round(threads, seed);
        seed += 1;
    }
    assert!(history.matches > u64::from(history.token) / 4, "most meet");
}

fn check_on<Q: Queues + Send, L: Locks>(make: impl Fn() -> Q + Copy) {
    for threads in [2, 4] {
        check(OneLock::<Q, Ticketed<L>>::new(make), threads);
        for (bins, elements) in [(1, 1), (2, 3), (4, 1), (4, 8)] {
            let binning = Binning::new(bins, elements).unwrap();
            check(TailQueues::<Q, Ticketed<L>>::new(binning, make), threads);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn threads_keep_the_order_of_mpi_on_linked_queues() {
    check_on::<_, Mcs>(Linked::default);
    check_on::<_, ParkingLot>(Linked::default);
}

#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn threads_keep_the_order_of_mpi_on_packed_queues() {
    check_on::<_, Mcs>(packed);
    check_on::<_, ParkingLot>(packed);
}
