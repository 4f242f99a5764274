// SPDX-License-Identifier: BSD-2-Clause
//! The tables against a naive list, with every kernel.

mod common;
#[path = "table/phases.rs"]
mod phases;

use std::time::{Duration, Instant};

use common::{Tested, kernels, run};
use phases::phases_change_at_random;
use proptest::prelude::*;
use ternary_cam::{Cam, Entry, Full, Handle, Kernel, Key, Source, Table, TableError};

/// Sizes of the long tests, small in Miri, which is about a thousand times slower.
const CASES: u32 = if cfg!(miri) { 2 } else { 512 };
const SEEDS: u64 = if cfg!(miri) { 1 } else { 24 };
const BYTES: usize = if cfg!(miri) { 2_000 } else { 60_000 };
const ROUNDS: usize = if cfg!(miri) { 1_000 } else { 40_000 };

fn exact(bits: u64, source: u32, token: u32) -> Entry {
    Entry { bits, ignore: 0, source: Source::new(source), token }
}

fn key_of(entry: &Entry) -> Key {
    Key { bits: entry.bits, ignore: 0, source: Source::new(entry.source.get().unwrap_or(77)) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn random_sequences(data in prop::collection::vec(any::<u8>(), 0..1500)) {
        for kernel in kernels() {
            run(&data, kernel);
        }
    }
}

/// Runs sequences that are long enough for every index to be built, dropped and built again. If
/// `TCAM_SOAK_SECONDS` is set, the test continues with further seeds for this time.
#[test]
fn long_sequences() {
    let seconds =
        std::env::var("TCAM_SOAK_SECONDS").map_or(0, |text| text.parse().expect("seconds"));
    let (start, soak) = (Instant::now(), Duration::from_secs(seconds));
    let mut seed = 0_u64;
    while seed < SEEDS || start.elapsed() < soak {
        seed += 1;
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut data: Vec<u8> = (0..BYTES)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        // The last six values of `CAPACITIES` are large enough to use every structure.
        data[0] = 10 + (seed % 6) as u8;
        // Operation 14 sets the `Use` of the table; later bytes change it occasionally.
        data[1..3].copy_from_slice(&[14, seed as u8]);
        for kernel in kernels() {
            run(&data, kernel);
        }
    }
    eprintln!("{seed} sequences in {:?}", start.elapsed());
}

/// Kinds of entries for the exhaustive tables.
const KINDS: [fn(usize) -> Entry; 7] = [
    |i| exact(i as u64, 1, i as u32),
    // Duplicates.
    |i| exact((i % 2) as u64, 1, i as u32),
    // All bits ignored.
    |i| Entry { ignore: u64::MAX, source: Source::ANY, ..exact(i as u64, 1, i as u32) },
    // The four wildcard combinations of MPI: exact or any tag, exact or any source.
    |i| Entry {
        ignore: if i % 2 == 0 { 0 } else { 0xff },
        source: if i % 4 < 2 { Source::new(1) } else { Source::ANY },
        ..exact((i / 4) as u64, 1, i as u32)
    },
    // Different ignore bits in each entry.
    |i| Entry { ignore: (i as u64) << 32, ..exact((i % 3) as u64, 1, i as u32) },
    |i| exact(0, (i % 5) as u32, i as u32),
    // Bits that all entries ignore; some ignore a tag as well.
    |i| Entry {
        ignore: 0xf << 60 | if i % 3 == 1 { 0xff } else { 0 },
        ..exact((i % 4) as u64, 1, i as u32)
    },
];

/// Fills tables of every length from 0 to 129 (two blocks and one entry) with every kind of entry,
/// with and without holes. Each entry's key must find the oldest entry that it matches.
fn every_small_table<T: Tested>() {
    for kernel in kernels() {
        for make in KINDS {
            for length in (0..=2 * 64 + 1).step_by(if cfg!(miri) { 43 } else { 1 }) {
                for holes in [1, 2, 3, 7] {
                    let mut table = T::new(length, kernel).unwrap();
                    let mut naive = Vec::new();
                    for entry in (0..length).map(make) {
                        naive.push((table.insert(entry).unwrap(), entry));
                    }
                    assert_eq!(table.insert(make(0)), Err(Full));
                    if holes > 1 {
                        let gone = |rank: usize| rank % holes == holes / 2;
                        for (_, &(handle, entry)) in
                            naive.iter().enumerate().filter(|(rank, _)| gone(*rank))
                        {
                            assert_eq!(table.remove(handle), Some(entry));
                        }
                        let mut rank = 0;
                        naive.retain(|_| (!gone(rank), rank += 1).0);
                    }
                    for (_, entry) in &naive {
                        let key = key_of(entry);
                        let first = naive.iter().find(|(_, entry)| entry.matches(&key)).unwrap();
                        let hit = table.first_match(&key).unwrap();
                        assert_eq!((hit.handle, hit.token), (first.0, first.1.token));
                    }
                    assert!(table.iter().eq(naive.iter().copied()));
                }
            }
        }
    }
}

/// Positions are used up and used again many times while one entry stays, which must remain the
/// oldest.
fn age_order_survives_wrap_around<T: Tested>() {
    for kernel in kernels() {
        for capacity in [6, 9, 64, 100] {
            let mut table = T::new(capacity, kernel).unwrap();
            let any = Entry { ignore: u64::MAX, source: Source::ANY, ..exact(0, 0, 0) };
            let standing = table.insert(any).unwrap();
            for token in 1..if cfg!(miri) { 300 } else { 50_000 } {
                let young = table.insert(exact(token.into(), 1, token)).unwrap();
                let key = key_of(&exact(token.into(), 1, token));
                assert_eq!(table.first_match(&key).unwrap().handle, standing);
                assert_eq!((table.depth(standing), table.depth(young)), (1, table.len()));
                if table.is_full() {
                    let (youngest, _) = table.iter().last().unwrap();
                    assert_eq!(youngest, young);
                    let all: Vec<_> = table.iter().skip(1).collect();
                    assert!(all.iter().map(|(_, entry)| entry.token).is_sorted());
                    for (handle, entry) in all {
                        assert_eq!(table.remove(handle), Some(entry));
                    }
                }
            }
        }
    }
}

/// Searches unexpected messages many times with one kind of key, and then with another kind.
/// Indexes are built, dropped and replaced, and every result must be correct.
fn keys_change_their_wildcards<T: Tested>() {
    let kinds = [(0, false), (0xff, false), (0, true), (0xff, true), (0xf, false), (0xf0, true)];
    for kernel in kernels() {
        let mut table = T::new(64, kernel).unwrap();
        let mut naive: Vec<Entry> = Vec::new();
        let mut token = 0;
        for round in 0..ROUNDS {
            while naive.len() < 40 {
                let entry = exact((token % 23).into(), token % 5, token);
                table.insert(entry).unwrap();
                naive.push(entry);
                token += 1;
            }
            let (ignore, any_source) = kinds[round / (ROUNDS / 13) % kinds.len()];
            let wanted = naive[round % naive.len()];
            let source = if any_source { Source::ANY } else { wanted.source };
            let key = Key { bits: wanted.bits, ignore, source };
            let rank = naive.iter().position(|entry| entry.matches(&key)).unwrap();
            let hit = table.first_match(&key).unwrap();
            assert_eq!(hit.token, naive[rank].token, "round {round}");
            assert_eq!(table.remove(hit.handle), Some(naive.remove(rank)));
        }
    }
}

/// Grows and shrinks a queue between few and many entries, with entries and keys of one or several
/// kinds. The structures in use change, and every result must be correct.
fn short_queues_become_long_and_long_ones_short<T: Tested>() {
    let entries: [fn(u32) -> (u64, bool); 5] = [
        |_| (0, false),
        |_| (0xff, false),
        |_| (0, true),
        |i| ([0, 0xff][i as usize % 2], i % 4 > 1),
        |i| (u64::from(i % 200) << 8, false),
    ];
    let keys: [fn(u32) -> (u64, bool); 4] = [
        |_| (0, false),
        |_| (0xff, false),
        |_| (0, true),
        |i| ([0, 0xff][i as usize % 2], i % 3 == 0),
    ];
    let phases = if cfg!(miri) { 3 } else { 150 };
    for kernel in kernels() {
        let mut table = T::new(100, kernel).unwrap();
        let mut naive: Vec<(Handle, Entry)> = Vec::new();
        let mut state = 0x9e37_79b9_u32;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(0x915f_77f5).wrapping_add(1);
            (state >> 16) as usize % below
        };
        for phase in 0..phases {
            let (entry_of, key_of) = (entries[random(5)], keys[random(4)]);
            let most = [1, 6, 14, 20, 28, 40, 90][random(7)];
            for token in 0..if cfg!(miri) { 60 } else { 150 + 150 * (phase % 5) } {
                while naive.len() > most || naive.len() == most && random(3) > 0 {
                    let wanted = naive[random(naive.len())].1;
                    let (ignore, any_source) = key_of(token);
                    let source = Source::new(wanted.source.get().unwrap_or(3));
                    let source = if any_source { Source::ANY } else { source };
                    let key = Key { bits: wanted.bits, ignore, source };
                    let rank = naive.iter().position(|(_, entry)| entry.matches(&key)).unwrap();
                    let handle = naive[rank].0;
                    assert_eq!(table.first_match(&key).unwrap().handle, handle, "phase {phase}");
                    if token % 50 == 0 {
                        assert_eq!(table.depth(handle), rank + 1);
                    }
                    // One removal in four is a cancel of an arbitrary entry instead.
                    let rank = if random(4) == 0 { random(naive.len()) } else { rank };
                    let (handle, entry) = naive.remove(rank);
                    assert_eq!(table.remove(handle), Some(entry));
                }
                let (ignore, any_source) = entry_of(token);
                let source = if any_source { Source::ANY } else { Source::new(token % 5) };
                let entry = Entry { ignore, source, ..exact((token % 7).into(), 0, token) };
                naive.push((table.insert(entry).unwrap(), entry));
            }
            let none = Key { bits: 1 << 60, ignore: 0, source: Source::new(1) };
            assert_eq!(table.first_match(&none), None);
            assert!(table.iter().eq(naive.iter().copied()));
        }
    }
}

/// The provider moves tables between threads and shares them behind a lock.
#[test]
fn tables_are_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<Table>();
    check::<Cam>();
}

fn a_table_that_cannot_be_made_returns_an_error<T: Tested>() {
    let error = T::new(65_537, Kernel::Scalar).unwrap_err();
    assert_eq!(error, TableError::Capacity(65_537));
    assert_eq!(error.to_string(), "a table cannot have 65537 entries: the maximum is 65536");
    assert_eq!(
        TableError::Kernel(Kernel::Avx512).to_string(),
        "this processor does not support the kernel avx512"
    );
}

fn the_largest_table_holds_its_capacity<T: Tested>() {
    for kernel in kernels() {
        let mut table = T::new(65_536, kernel).unwrap();
        for i in 0..65_536 {
            table.insert(exact(i.into(), i % 7, i)).unwrap();
        }
        assert!(table.is_full());
        assert_eq!(table.insert(exact(0, 0, 0)), Err(Full));
        for i in (0..65_536).rev() {
            let hit = table.first_match(&key_of(&exact(i.into(), i % 7, i))).unwrap();
            assert_eq!(hit.token, i);
            assert_eq!(table.depth(hit.handle), i as usize + 1);
            table.remove(hit.handle).unwrap();
        }
        assert!(table.is_empty());
    }
}

/// Runs every test of a table with both tables.
macro_rules! with_both {
    ($($(#[$attribute:meta])* $test:ident)*) => {
        mod index {
            $(#[test] $(#[$attribute])* fn $test() { super::$test::<super::Table>(); })*
        }
        mod cam {
            $(#[test] $(#[$attribute])* fn $test() { super::$test::<super::Cam>(); })*
        }
    };
}

with_both! {
    every_small_table
    age_order_survives_wrap_around
    keys_change_their_wildcards
    short_queues_become_long_and_long_ones_short
    a_table_that_cannot_be_made_returns_an_error
    #[cfg_attr(miri, ignore = "takes hours there")]
    the_largest_table_holds_its_capacity
    phases_change_at_random
}
