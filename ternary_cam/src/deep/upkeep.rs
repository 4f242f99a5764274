// SPDX-License-Identifier: BSD-2-Clause
//! What is built, turned and dropped as searches come to need it or cease to.

use super::{Deep, OTHERS};
use crate::age_log::Bits;
use crate::classes::{Classes, UNCLASSED};
use crate::demand::{Keep, Wish};
use crate::pattern::Kind;
use crate::slot::Slot;

impl Deep {
    /// Builds what searches have asked for.
    #[cold]
    #[inline(never)]
    pub(super) fn fulfil(&mut self, slots: &mut [Slot]) {
        for wish in self.demand.take() {
            match wish {
                Wish::Mirror if !self.scan_keep.is_awake() => {
                    self.scan_keep.wake();
                    self.fill_scan(slots, |_| true);
                }
                Wish::Keys(keys) if self.home.may_serve(keys) && self.entries_are_exact() => {
                    self.turn_home(slots, keys);
                }
                Wish::Keys(keys) => self.wake_other(slots, keys),
                Wish::Apart => self.part_home(slots),
                Wish::NoNotes => self.classes.take_note(),
                Wish::Mirror => {}
            }
        }
        self.note_unusual();
    }

    /// Fills the scan with the entries of some classes.
    fn fill_scan(&mut self, slots: &[Slot], wanted: impl Fn(u8) -> bool) {
        self.scan.clear();
        for at in 0..self.in_order(slots).len() {
            let id = self.order[at];
            let slot = &slots[usize::from(id)];
            if wanted(slot.stamp.class()) {
                self.scan.push(slot, id);
            }
        }
    }

    /// Finds out what is unusual.
    pub(super) fn note_unusual(&mut self) {
        if self.tray.is_in_use() {
            self.classes.suspend_usual();
            return self.classes.set_unusual(Classes::TURNED | Classes::BUSY);
        }
        let turned = self.home.keys != Kind::EXACT || self.awake != 0;
        let turned = if turned { Classes::TURNED } else { 0 };
        let busy = self.is_more_than_indexes() || self.awake != 0;
        self.classes.set_unusual(turned | if busy { Classes::BUSY } else { 0 });
        self.find_usual();
    }

    /// Finds out if one pattern serves all entries, and the keys that other indexes do not.
    pub(super) fn find_usual(&mut self) {
        let others = self.awake != 0 && !self.is_more_than_indexes();
        self.classes.find_usual(self.home.keys, others);
    }

    /// Whether there is more to care for than the indexes.
    fn is_more_than_indexes(&self) -> bool {
        self.scan_keep.is_awake() || self.unclassed != 0 || self.demand.is_pending()
    }

    /// What need not happen at every insert: drops what nobody has used for long.
    #[cold]
    pub(super) fn housekeeping(&mut self, slots: &mut [Slot]) {
        if self.demand.is_pending() {
            self.fulfil(slots);
        }
        let inserts = std::mem::take(&mut self.since_tick);
        let longest = std::mem::take(&mut self.longest);
        self.used = self.used.max(longest);
        if self.tick_tray(slots, longest) {
            return;
        }
        let len = self.len();
        for which in 0..OTHERS {
            if self.others[which].keep.tick(inserts, len) {
                self.put_to_sleep(which);
            }
        }
        self.tick_home(slots, inserts, len);
        if self.scan_keep.tick(inserts, len) {
            self.fill_scan(slots, |class| class == UNCLASSED);
        }
        self.spread_anew(slots, inserts);
        self.note_unusual();
    }

    /// Builds an index with a bucket that was long to walk anew with another hash, unless
    /// that was done not long ago.
    fn spread_anew(&mut self, slots: &mut [Slot], inserts: usize) {
        self.since_spread = self.since_spread.saturating_add(inserts);
        if self.since_spread < Keep::PER_ENTRY * self.used {
            return;
        }
        if self.home.index.take_long() {
            self.home.index.spread_anew();
            self.fill_home(slots);
            self.since_spread = 0;
        }
        for which in Bits(self.awake.into()) {
            let index = &mut self.others[which].index;
            if index.take_long() {
                index.spread_anew();
                self.fill_other(slots, which);
                self.since_spread = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::entry::{Entry, Key, Source};
    use crate::kernel::Kernel;
    use crate::pattern::Kind;
    use crate::table::Table;

    #[test]
    fn kinds_of_keys_in_one_cell_are_both_served() {
        let cell = |ignore| Kind { ignore, any_source: false }.cell();
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

    /// Phases of entries of one kind and keys of one kind, one or the other exact, and between
    /// them some of the next phase among the last ones'.
    #[test]
    fn whatever_one_pattern_serves_becomes_usual() {
        const TAG: u64 = 0xff;
        let kinds = [(0, false), (0, true), (TAG, false), (TAG, true)];
        let of = |(ignore, any_source)| Kind { ignore, any_source };
        let phases =
            kinds.into_iter().flat_map(|kind| [(of(kind), Kind::EXACT), (Kind::EXACT, of(kind))]);
        let source = |any_source| if any_source { Source::ANY } else { Source::new(1) };
        let mut table = Table::new(64, Kernel::Scalar).unwrap();
        let mut naive = Vec::new();
        let mut token = 0;
        for (entries, keys) in phases.clone().chain(phases) {
            for _ in 0..if cfg!(miri) { 5 } else { 200 } {
                while naive.len() < 48 {
                    token += 1;
                    let Kind { ignore, any_source } = entries;
                    let bits = u64::from(token % 7) << 8 | u64::from(token % 3);
                    let entry = Entry { bits, ignore, source: source(any_source), token };
                    naive.push((table.insert(entry).unwrap(), entry));
                }
                while naive.len() > 8 {
                    let Kind { ignore, any_source } = keys;
                    let wanted = naive[token as usize % naive.len()].1.bits;
                    let key = Key { bits: wanted, ignore, source: source(any_source) };
                    let rank = naive.iter().position(|(_, entry)| entry.matches(&key)).unwrap();
                    let (handle, entry) = naive.remove(rank);
                    assert_eq!(table.first_match(&key).unwrap().handle, handle);
                    assert_eq!(table.remove(handle), Some(entry));
                    if !cfg!(miri) {
                        table.check();
                    }
                }
            }
            let classes = &table.deep().classes;
            assert!(cfg!(miri) || classes.usual().holds(classes.state()), "{entries:?}, {keys:?}");
        }
    }

    /// Receives that ignore something, then plain ones, which must count as exact in the end:
    /// only then does an index serve keys with wildcards.
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
        let deep = table.deep();
        assert_eq!(deep.home.keys, Kind { ignore: 0, any_source: true });
    }
}
