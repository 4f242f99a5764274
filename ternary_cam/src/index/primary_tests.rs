// SPDX-License-Identifier: BSD-2-Clause
//! Tests of the keys that the primary index serves.

use crate::bits::Bits;
use crate::entry::{Entry, Key, Source};
use crate::kernel::Kernel;
use crate::table::Table;
use crate::wildcards::Wildcards;

const EXACT: Wildcards = Wildcards::NONE;
const ANY_SOURCE: Wildcards = Wildcards { ignore: 0, any_source: true };
const ANY_TAG: Wildcards = Wildcards { ignore: 0xff, any_source: false };

/// Inserts messages of some sources with some tags, and takes them by keys of these kinds in turn.
fn take(table: &mut Table, sources: u32, tags: u64, kinds: &[Wildcards]) {
    let mut naive = Vec::new();
    for token in 0..if cfg!(miri) { 300 } else { 20_000 } {
        let bits = 0x100 | (u64::from(token) * 7 % tags);
        let entry = Entry { bits, ignore: 0, source: Source::new(token % sources), token };
        naive.push((table.insert(entry).unwrap(), entry));
        if naive.len() <= 100 {
            continue;
        }
        let wanted = naive[token as usize * 31 % naive.len()].1;
        let Wildcards { ignore, any_source } = kinds[token as usize % kinds.len()];
        let source = if any_source { Source::ANY } else { wanted.source };
        let key = Key { bits: wanted.bits & !ignore, ignore, source };
        let rank = naive.iter().position(|(_, entry)| entry.matches(&key)).unwrap();
        let (handle, entry) = naive.remove(rank);
        assert_eq!(table.first_match(&key).unwrap().handle, handle);
        assert_eq!(table.remove(handle), Some(entry));
        if token % 512 == 0 {
            table.check();
        }
    }
    for (handle, entry) in naive {
        assert_eq!(table.remove(handle), Some(entry));
    }
}

/// Returns the keys that the primary index serves, and the keys that each secondary index serves.
fn served(table: &Table) -> (Wildcards, Vec<Wildcards>) {
    let index = table.index();
    let active = Bits(index.active.into());
    (index.primary.keys, active.filter_map(|which| index.secondary[which].keys).collect())
}

/// Keys with and without a source share an index if that is fast. Otherwise they have separate
/// indexes and find the same entries. An index whose keys are no longer used is dropped.
#[test]
fn each_kind_of_keys_is_served_where_it_should_be() {
    let mut table = Table::new(256, Kernel::Scalar).unwrap();
    for (sources, tags, kinds, expected) in [
        (7, 256, &[EXACT, ANY_SOURCE][..], (ANY_SOURCE, vec![])),
        (7, 256, &[EXACT], (EXACT, vec![])),
        (97, 2, &[EXACT, ANY_SOURCE], (EXACT, vec![ANY_SOURCE])),
        (7, 256, &[EXACT, EXACT, ANY_TAG], (EXACT, vec![ANY_TAG])),
        (7, 256, &[ANY_TAG], (ANY_TAG, vec![])),
    ] {
        take(&mut table, sources, tags, kinds);
        assert!(cfg!(miri) || served(&table) == expected, "{kinds:?}: {:?}", served(&table));
    }
}

const fn message(bits: u64, source: u32, token: u32) -> Entry {
    Entry { bits, ignore: 0, source: Source::new(source), token }
}

const fn any_source(bits: u64) -> Key {
    Key { bits, ignore: 0, source: Source::ANY }
}

fn take_from(table: &mut Table, bits: u64, source: u32) -> u32 {
    let key = Key { bits, ignore: 0, source: Source::new(source) };
    let hit = table.first_match(&key).unwrap();
    table.remove(hit.handle).unwrap();
    hit.token
}

/// Each message is first searched for from any source, with and without success, and then taken by
/// its source.
#[test]
fn keys_that_only_probe_stay_served() {
    for finds in [false, true] {
        let mut table = Table::new(256, Kernel::Scalar).unwrap();
        for token in 0..if cfg!(miri) { 300 } else { 50_000 } {
            let bits = u64::from(token % 200);
            table.insert(message(bits, token % 7, token)).unwrap();
            let Some(oldest) = token.checked_sub(100) else { continue };
            let bits = u64::from(oldest % 200);
            let found = table.first_match(&any_source(if finds { bits } else { 777 }));
            assert_eq!(found.map(|hit| hit.token), finds.then_some(oldest));
            assert_eq!(take_from(&mut table, bits, oldest % 7), oldest);
            assert!(token < 2000 || served(&table) == (ANY_SOURCE, vec![]), "{token}");
        }
    }
}

#[test]
fn keys_that_slow_each_other_down_are_split_without_an_insert() {
    const MESSAGES: u32 = if cfg!(miri) { 200 } else { 3000 };
    let mut table = Table::new(MESSAGES as usize, Kernel::Scalar).unwrap();
    for token in 0..MESSAGES {
        table.insert(message(5, token, token)).unwrap();
    }
    for token in 0..8 {
        let hit = table.first_match(&any_source(5)).unwrap();
        assert_eq!(hit.token, token);
        table.remove(hit.handle).unwrap();
    }
    assert_eq!(served(&table), (ANY_SOURCE, vec![]));
    for token in (8..MESSAGES).rev() {
        assert_eq!(take_from(&mut table, 5, token), token);
    }
    assert_eq!(served(&table), (EXACT, vec![ANY_SOURCE]));
}

/// Only recent entries are added and removed; the entries in the index do not change.
#[test]
fn keys_are_served_although_all_entries_leave_young() {
    let mut table = Table::new(256, Kernel::Scalar).unwrap();
    for token in 0..200 {
        table.insert(message(u64::from(token), 1, token)).unwrap();
    }
    for token in 200..210 {
        let handle = table.insert(message(777, 1, token)).unwrap();
        assert!(table.first_match(&any_source(u64::from(token) + 1000)).is_none());
        table.remove(handle).unwrap();
    }
    assert_eq!(served(&table), (ANY_SOURCE, vec![]));
}
