// SPDX-License-Identifier: BSD-2-Clause
//! Tests of the conditions under which the small set is in use. Every search result is checked.

use super::policy::{ALIKE, ENTER_AFTER, GROUP, LEAVE_AFTER, REVIEW};
use crate::entry::{Entry, Key, Source};
use crate::handle::Handle;
use crate::index::TICK;
use crate::kernel::Kernel;
use crate::table::Table;
use crate::wildcards::Wildcards;

/// A table, and the list that it must agree with.
struct Queue {
    table: Table,
    naive: Vec<(Handle, Entry)>,
    token: u32,
    /// True if ranks are requested, so that the scan is maintained.
    ranks: bool,
}

impl Queue {
    fn new(kernel: Kernel) -> Self {
        let table = Table::new(100, kernel).unwrap();
        Self { table, naive: Vec::new(), token: 0, ranks: true }
    }

    fn is_in_small_set(&self) -> bool {
        self.table.index().small_set.in_use
    }

    /// Inserts entries, every third with any source if `wild`, and keeps at most `length`. Keys
    /// have any source if `any`.
    fn run(&mut self, inserts: usize, length: usize, wild: bool, any: bool) {
        for _ in 0..inserts {
            self.take_down_to(length, |_| (0, any));
            let source = source(wild && (self.token + 1).is_multiple_of(3));
            self.push(u64::from((self.token + 1) % 8), 0, source);
        }
    }

    /// Like [`run`](Self::run), with entries that all ignore different bits.
    fn run_differing(&mut self, inserts: usize, length: usize) {
        for _ in 0..inserts {
            self.take_down_to(length, |_| (0, false));
            let number = u64::from(self.token + 1);
            self.push(number << 32, number, Source::new(1));
        }
    }

    /// Like [`run`](Self::run), with exact entries and keys of three kinds with wildcards.
    fn run_keys(&mut self, inserts: usize, length: usize) {
        self.run_kinds(inserts, length, &[(0xff, false), (0, true), (0xff, true)]);
    }

    /// Like [`run`](Self::run), with exact entries and keys of these kinds.
    fn run_kinds(&mut self, inserts: usize, length: usize, kinds: &[(u64, bool)]) {
        for _ in 0..inserts {
            self.take_down_to(length, |token| kinds[token as usize % kinds.len()]);
            self.push(u64::from((self.token + 1) % 8), 0, Source::new(1));
        }
    }

    /// Inserts exact entries. At `length` entries, takes the oldest entry after the first `stay`,
    /// which remain.
    fn run_oldest(&mut self, inserts: usize, stay: usize, length: usize) {
        for _ in 0..inserts {
            while self.naive.len() >= length {
                let (handle, entry) = self.naive.remove(stay);
                let key = Key { bits: entry.bits, ignore: 0, source: Source::new(1) };
                assert_eq!(self.table.first_match(&key).unwrap().handle, handle);
                assert_eq!(self.table.remove(handle), Some(entry));
            }
            self.push(u64::from(self.token + 1), 0, Source::new(1));
        }
    }

    fn push(&mut self, bits: u64, ignore: u64, source: Source) {
        self.token += 1;
        let entry = Entry { bits, ignore, source, token: self.token };
        self.naive.push((self.table.insert(entry).unwrap(), entry));
    }

    /// Takes entries until one more fits into `length`. `ignore` returns the bits that a key
    /// ignores, and true if the key also ignores the source.
    fn take_down_to(&mut self, length: usize, ignore: impl Fn(u32) -> (u64, bool)) {
        while self.naive.len() >= length {
            let (ignore, any) = ignore(self.token + self.naive.len() as u32);
            self.take(ignore, source(any));
        }
    }

    fn take(&mut self, ignore: u64, source: Source) {
        let wanted = self.naive[self.token as usize % self.naive.len()].1;
        let key = Key { bits: wanted.bits, ignore, source };
        let rank = self.naive.iter().position(|(_, entry)| entry.matches(&key)).unwrap();
        let (handle, entry) = self.naive.remove(rank);
        assert_eq!(self.table.first_match(&key).unwrap().handle, handle);
        assert!(!self.ranks || self.table.depth(handle) == rank + 1);
        assert_eq!(self.table.remove(handle), Some(entry));
    }
}

fn source(any: bool) -> Source {
    if any { Source::ANY } else { Source::new(1) }
}

/// Returns the number of inserts in `count` ticks.
const fn ticks(count: u32) -> usize {
    count as usize * TICK
}

#[test]
fn few_entries_of_several_kinds_are_in_the_small_set() {
    for kernel in Kernel::available() {
        let mut queue = Queue::new(kernel);
        queue.run(16, 10, true, false);
        assert!(queue.is_in_small_set());
        queue.run(30, 50, true, false);
        assert!(!queue.is_in_small_set(), "too many");
        queue.run(ticks(ENTER_AFTER), 10, true, false);
        assert!(!queue.is_in_small_set(), "there were many recently");
        queue.run(ticks(2), 10, true, false);
        assert!(queue.is_in_small_set());
        queue.run(4, 50, true, false);
        assert!(queue.is_in_small_set(), "all came one by one");
    }
}

#[test]
fn more_entries_of_many_kinds_are_in_the_small_set() {
    for kernel in Kernel::available() {
        let mut queue = Queue::new(kernel);
        queue.run_differing(60, 60);
        queue.run_differing(if cfg!(miri) { 100 } else { 1000 }, 40);
        assert!(queue.is_in_small_set(), "40 entries ignore different bits");
        queue.run_differing(60, 70);
        assert!(!queue.is_in_small_set(), "too many");
    }
    for kernel in Kernel::available() {
        let mut queue = Queue::new(kernel);
        queue.run(32, 16, false, true);
        queue.run_keys(if cfg!(miri) { 500 } else { 5000 }, 40);
        assert!(queue.is_in_small_set(), "three kinds of keys");
        if cfg!(miri) {
            continue;
        }
        queue.run(ticks(REVIEW + 2), 40, false, true);
        assert!(!queue.is_in_small_set(), "one kind of keys");
        queue.run_keys(ticks(2 * ENTER_AFTER), 40);
        assert!(queue.is_in_small_set(), "three kinds again");
    }
}

/// The small set is left because its entries would close up at nearly every insert.
#[test]
fn the_small_set_is_left_if_its_positions_are_used_up_at_once() {
    for kernel in Kernel::available() {
        let mut queue = Queue::new(kernel);
        queue.run_differing(56, 60);
        assert!(queue.is_in_small_set());
        for _ in 0..if cfg!(miri) { 2 } else { 20 } {
            queue.run_differing(TICK, 56);
            assert!(!queue.is_in_small_set());
        }
    }
}

/// A few entries of another kind stay. Keys with wildcards are used at first, and then only exact
/// keys until an insert leaves the small set. There may then be more entries than fit into it.
#[test]
fn no_more_entries_are_moved_to_the_small_set_than_fit() {
    for kernel in Kernel::available() {
        for batch in if cfg!(miri) { 62..64 } else { 48..72 } {
            let mut queue = Queue::new(kernel);
            for _ in 0..4 {
                queue.push(1 << 40, 0, Source::ANY);
            }
            for round in 0..if cfg!(miri) { 25 } else { 40 } {
                let keys = [(0, 10), (0xff, 20)].iter().find(|(_, end)| round < *end);
                let inserts = if round < 22 { 20 } else { batch };
                let of_round = |at: u64| round << 16 | at << 8;
                for at in 0..inserts {
                    queue.push(of_round(at), 0, Source::new(1));
                    if let Some((ignore, _)) = keys {
                        let source = source(*ignore == 0);
                        let key = Key { bits: 1 << 50, ignore: *ignore, source };
                        assert_eq!(queue.table.first_match(&key), None);
                    }
                }
                for at in 0..inserts {
                    let key = Key { bits: of_round(at), ignore: 0, source: Source::new(1) };
                    let (handle, entry) = queue.naive.remove(4);
                    assert_eq!(queue.table.first_match(&key).unwrap().handle, handle);
                    assert_eq!(queue.table.remove(handle), Some(entry));
                }
            }
        }
    }
}

/// Exact entries are added and removed; the entry of the other kind stays.
#[test]
fn the_small_set_is_in_use_while_there_are_several_kinds() {
    for kernel in Kernel::available() {
        let mut queue = Queue::new(kernel);
        queue.push(1 << 40, 0, Source::ANY);
        for _ in 0..4 * LEAVE_AFTER {
            queue.run_oldest(TICK, 1, 12);
            assert!(queue.is_in_small_set());
        }
    }
}

#[test]
fn few_entries_of_one_kind_are_not_in_the_small_set() {
    for kernel in Kernel::available() {
        let mut queue = Queue::new(kernel);
        queue.run(100, 10, false, true);
        assert!(queue.is_in_small_set(), "keys with any source");
        for handle in queue.naive.drain(..).map(|(handle, _)| handle).collect::<Vec<_>>() {
            queue.table.remove(handle).unwrap();
        }
        for token in 0..ticks(LEAVE_AFTER + 2) as u32 {
            let entry = Entry { bits: token.into(), ignore: 0, source: Source::new(1), token };
            for _ in 0..8 {
                queue.table.insert(entry).unwrap();
            }
            let key = Key { bits: token.into(), ignore: 0, source: Source::new(1) };
            while let Some(hit) = queue.table.first_match(&key) {
                queue.table.remove(hit.handle).unwrap();
            }
        }
        assert!(!queue.is_in_small_set());
        queue.run(16, 10, false, true);
        assert!(queue.is_in_small_set());
    }
}

/// For keys of one kind with wildcards, an index is faster than the small set, unless there are
/// very few entries. For keys of two kinds, the small set is faster.
#[test]
fn few_entries_under_keys_of_one_kind_are_not_in_the_small_set() {
    const ANY_SOURCE: (u64, bool) = (0, true);
    const ANY_TAG: (u64, bool) = (0xff, false);
    let inserts = if cfg!(miri) { 100 } else { ticks(2 * ALIKE) };
    for kernel in Kernel::available() {
        let mut queue = Queue::new(kernel);
        queue.push(0, 0, Source::ANY);
        let few = queue.table.index().small_set.policy.few - GROUP;
        for (kinds, length, stays) in [
            (&[ANY_SOURCE][..], few, false),
            (&[ANY_SOURCE], few / 2, true),
            (&[ANY_TAG], few, false),
            (&[ANY_TAG, (0, false)], few, true),
            (&[ANY_TAG, ANY_SOURCE], few, true),
        ] {
            let mut queue = Queue { ranks: false, ..Queue::new(kernel) };
            queue.run_kinds(GROUP + 1, GROUP, kinds);
            queue.run_kinds(2 * length, length, kinds);
            assert!(queue.is_in_small_set(), "{kinds:?} of {length}, {kernel}");
            queue.run_kinds(inserts, length, kinds);
            assert!(
                cfg!(miri) || queue.is_in_small_set() == stays,
                "{kinds:?} of {length}, {kernel}"
            );
            let (ignore, any_source) = kinds[0];
            let keys = queue.table.index().primary.keys;
            assert!(cfg!(miri) || stays || keys == Wildcards { ignore, any_source });
        }
        let mut queue = Queue::new(kernel);
        queue.run(inserts, few, false, true);
        assert!(queue.is_in_small_set(), "ranks are requested");
    }
}

/// The primary index serves any-source keys when the small set is taken into use, and is then
/// empty. When any-source entries are added later, it must serve exact keys again.
#[test]
fn the_primary_index_serves_exact_keys_again_where_it_must() {
    for kernel in Kernel::available() {
        let mut queue = Queue::new(kernel);
        queue.run(if cfg!(miri) { 1000 } else { 3000 }, 60, false, true);
        assert_eq!(queue.table.index().primary.keys, Wildcards { ignore: 0, any_source: true });
        queue.run(ticks(ENTER_AFTER + 2), 10, false, true);
        assert!(queue.is_in_small_set());
        for _ in 0..3 {
            queue.run(100, 90, true, false);
            assert!(!queue.is_in_small_set());
            queue.take_down_to(3, |_| (0, false));
        }
    }
}

/// Uniform entries do not enter the small set while there are secondary indexes. They enter it
/// after an entry without a class has taken it into use, at whichever insert that happens.
#[test]
fn uniform_entries_enter_the_small_set_once_it_is_in_use() {
    const KINDS: &[(u64, bool)] = &[(0, false), (0xff, false)];
    let steps = if cfg!(miri) { 1 } else { ticks(ENTER_AFTER + 4) / 8 };
    for at in 0..steps {
        let mut queue = Queue { ranks: false, ..Queue::new(Kernel::Scalar) };
        queue.run_differing(ticks(1), 90);
        queue.take_down_to(1, |_| (0, false));
        queue.run_kinds(ticks(if cfg!(miri) { 4 } else { 32 }), 90, KINDS);
        queue.run_kinds(8 * at, 8, KINDS);
        queue.run_differing(1, 12);
        queue.run_kinds(ticks(1), 12, KINDS);
    }
}
