// SPDX-License-Identifier: BSD-2-Clause
//! Tests of the structures that the index maintains.

use crate::entry::{Entry, Key, Source};
use crate::kernel::Kernel;
use crate::table::Table;
use crate::wildcards::Wildcards;

#[test]
fn kinds_of_keys_in_one_cell_are_both_served() {
    let cell = |ignore| Wildcards { ignore, any_source: false }.cell();
    let same = (1..).map(|i: u64| i << 32).filter(|&ignore| cell(ignore) == cell(1 << 32));
    let kinds: Vec<u64> = same.take(2).collect();
    let mut table = Table::new(64, Kernel::Scalar).unwrap();
    for _ in 0..if cfg!(miri) { 4 } else { 1000 } {
        for token in 0..16 {
            let bits = u64::from(token);
            table.insert(Entry { bits, ignore: 0, source: Source::new(1), token }).unwrap();
        }
        for token in 0..16 {
            let ignore = kinds[token as usize % 2];
            let bits = u64::from(token) | ignore;
            let key = Key { bits, ignore, source: Source::new(1) };
            let hit = table.first_match(&key).unwrap();
            assert_eq!(hit.token, token);
            table.remove(hit.handle).unwrap();
        }
    }
}

/// In each phase, entries are of one kind and keys are of one kind, and the entries or the keys are
/// exact. At the start of a phase, entries of the previous phase remain.
#[test]
fn a_queue_that_one_pattern_serves_becomes_uniform() {
    const TAG: u64 = 0xff;
    let kinds = [(0, false), (0, true), (TAG, false), (TAG, true)];
    let of = |(ignore, any_source)| Wildcards { ignore, any_source };
    let phases = kinds
        .into_iter()
        .flat_map(|kind| [(of(kind), Wildcards::NONE), (Wildcards::NONE, of(kind))]);
    let source = |any_source| if any_source { Source::ANY } else { Source::new(1) };
    let mut table = Table::new(64, Kernel::Scalar).unwrap();
    let mut naive = Vec::new();
    let mut token = 0;
    for (entries, keys) in phases.clone().chain(phases) {
        for _ in 0..if cfg!(miri) { 5 } else { 200 } {
            while naive.len() < 48 {
                token += 1;
                let Wildcards { ignore, any_source } = entries;
                let bits = u64::from(token % 7) << 8 | u64::from(token % 3);
                let entry = Entry { bits, ignore, source: source(any_source), token };
                naive.push((table.insert(entry).unwrap(), entry));
            }
            while naive.len() > 8 {
                let Wildcards { ignore, any_source } = keys;
                let wanted = naive[token as usize % naive.len()].1.bits;
                let key = Key { bits: wanted, ignore, source: source(any_source) };
                let rank = naive.iter().position(|(_, entry)| entry.matches(&key)).unwrap();
                let (handle, entry) = naive.remove(rank);
                assert_eq!(table.first_match(&key).unwrap().handle, handle);
                assert_eq!(table.remove(handle), Some(entry));
            }
            // The check reads the whole index, which is slow in Miri; damage would persist
            // until the next check.
            if !cfg!(miri) {
                table.check();
            }
        }
        let classes = &table.index().classes;
        assert!(cfg!(miri) || classes.uniform().holds(classes.state()), "{entries:?}, {keys:?}");
    }
}

#[test]
fn a_secondary_index_has_more_buckets_where_there_are_more_entries() {
    let mut table = Table::new(2048, Kernel::Scalar).unwrap();
    let insert = |table: &mut Table, token: u32| {
        let entry = Entry { bits: token.into(), ignore: 0, source: Source::new(1), token };
        table.insert(entry).unwrap()
    };
    let mut handles: Vec<_> = (0..64).map(|token| insert(&mut table, token)).collect();
    for token in 64..if cfg!(miri) { 300 } else { 1500 } {
        // Keys of two kinds, of which the primary index serves one.
        for ignore in [0, 1 << 40] {
            let oldest = token / 2;
            let key = Key { bits: oldest.into(), ignore, source: Source::new(1) };
            let hit = table.first_match(&key).unwrap();
            assert_eq!((hit.token, hit.handle), (oldest, handles[oldest as usize]));
        }
        handles.push(insert(&mut table, token));
        if token % 100 == 0 {
            table.check();
        }
    }
    let index = table.index();
    assert_ne!(index.active, 0);
    for which in crate::bits::Bits(index.active.into()) {
        assert!(!index.secondary[which].lists.is_narrow(index.high_water));
    }
}

/// The structure that is maintained for ranks slows down inserts and removes, but not searches.
#[test]
fn searches_are_uniform_while_ranks_are_requested() {
    let mut table = Table::new(256, Kernel::Scalar).unwrap();
    let bits = |token: u32| u64::from(token * 7 % 100);
    for token in 0..if cfg!(miri) { 300 } else { 5000 } {
        let entry = Entry { bits: bits(token), ignore: 0, source: Source::new(1), token };
        table.insert(entry).unwrap();
        let Some(oldest) = token.checked_sub(80) else { continue };
        let key = Key { bits: bits(oldest), ignore: 0, source: Source::new(1) };
        let hit = table.first_match(&key).unwrap();
        assert_eq!((hit.token, table.depth(hit.handle)), (oldest, 1));
        table.remove(hit.handle).unwrap();
        if token % 50 == 0 {
            table.check();
        }
    }
    let index = table.index();
    assert!(index.scan_timeout.is_active());
    let (uniform, state) = (index.classes.uniform(), index.classes.state());
    assert!(uniform.holds_quietly(state) && !uniform.will_hold(state));
}

/// Adds receives that ignore some bits, and then receives that ignore no bits. The second receives
/// must count as exact: only then does an index serve keys with wildcards.
#[test]
fn plain_entries_do_not_stay_in_another_class() {
    let mut table = Table::new(256, Kernel::Scalar).unwrap();
    let insert = |table: &mut Table, ignore, token: u32| {
        let entry = Entry { bits: token.into(), ignore, source: Source::new(1), token };
        table.insert(entry).unwrap()
    };
    let base: Vec<_> = (0..64).map(|token| insert(&mut table, 1 << 60, token)).collect();
    let mut plain: Vec<_> = (64..128).map(|token| insert(&mut table, 0, token)).collect();
    for handle in base {
        table.remove(handle).unwrap();
    }
    plain.extend((128..192).map(|token| insert(&mut table, 0, token)));
    for handle in plain {
        table.remove(handle).unwrap();
    }
    for round in 0..64 {
        let handles: Vec<_> = (0..64).map(|token| insert(&mut table, 0, token)).collect();
        for handle in handles {
            let bits = table.get(handle).unwrap().bits;
            let key = Key { bits, ignore: 0, source: Source::ANY };
            assert_eq!(table.first_match(&key).unwrap().handle, handle, "round {round}");
            table.remove(handle).unwrap();
        }
    }
    let index = table.index();
    assert_eq!(index.primary.keys, Wildcards { ignore: 0, any_source: true });
}
