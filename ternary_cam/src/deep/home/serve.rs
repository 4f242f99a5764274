// SPDX-License-Identifier: BSD-2-Clause
//! The keys that the home index serves are those that come.
//!
//! Whether keys of its kind still come, it learns from wishes of searches. A wish of each would
//! cost 0.3 ns, so only the first in a while has one:
//!
//! ```text
//! every ASK ticks:                     no state is quiet any more (uniform.rs)
//! a search with uniform keys:          finds so, goes its general way, notes its use, and wishes
//!                                      for Wish::HomeUsed
//! a later remove or insert:            the present state is quiet again, searches go the short way
//! no use for long (Keep):              serves other keys
//! ```
//!
//! Keys with a source among those without count the entries that they pass
//! ([`crate::deep::index::Index::walked`]), and wish for [`crate::deep::wishes::Wish::SplitHome`]
//! when these are too many.

use super::WALK_PER_INSERT;
use crate::bits::Bits;
use crate::deep::parts::{Deep, put_in_order};
use crate::deep::pattern::Pattern;
use crate::slot::{Class, Slot};
use crate::wildcards::Wildcards;

/// Ticks for which the home index is split when that happens for the first time. Each time
/// they are twice as many.
const SPLIT_TICKS: u32 = 4096;

/// How often they double.
const MOST_DOUBLINGS: u32 = 15;

/// Ticks from one wish for [`crate::deep::wishes::Wish::HomeUsed`] to the next: seldom enough to
/// cost nothing, and often enough for [`crate::deep::keep::Keep`].
const ASK: u32 = 4;

impl Deep {
    /// Builds the home index anew, for keys of this kind.
    #[cold]
    pub(in crate::deep) fn rebuild_home(&mut self, slots: &mut [Slot], keys: Wildcards) {
        self.set_home(keys);
        self.home.index.clear(self.classes.live());
        self.home.set_walk_budget(self.high_water.max(self.peak));
        self.fill_home(slots);
        self.refresh_state();
    }

    /// Has the home index, which is empty, serve keys of this kind.
    pub(in crate::deep) fn set_home(&mut self, keys: Wildcards) {
        let home = &mut self.home;
        home.keys = keys;
        home.pattern = match keys {
            Wildcards::NONE => self.classes.base(),
            _ => Pattern::new(keys),
        };
        home.keep.wake();
        match keys.any_source {
            true => home.keep_any_source.wake(),
            false => home.keep_any_source.sleep(),
        }
    }

    /// Fills the empty home index with the entries that have a class.
    pub(in crate::deep) fn fill_home(&mut self, slots: &mut [Slot]) {
        let used = self.slots_used(slots);
        for &id in put_in_order(&mut self.order, used) {
            let class = slots[usize::from(id)].stamp.class();
            let pattern = match class {
                Class::BASE => &self.home.pattern,
                Class::TRAY | Class::NONE => continue,
                class => self.classes.pattern(class),
            };
            self.home.index.insert_marked(slots, (class, pattern), id);
        }
    }

    /// Has the home index serve the keys that come.
    pub(in crate::deep) fn tick_home(&mut self, slots: &mut [Slot], inserts: usize, len: usize) {
        let home = &mut self.home;
        home.split = home.split.saturating_sub(1);
        home.set_walk_budget(self.high_water);
        home.index.credit(WALK_PER_INSERT * inserts);
        if self.awake == 0 {
            // Searches with exact keys leave no wish then.
            home.keep.note_use();
        }
        home.ticks = home.ticks.wrapping_add(1);
        if home.ticks.is_multiple_of(ASK) {
            self.classes.ask_whether_home_is_used();
        }
        if home.keep.tick(inserts, len) {
            home.keep.wake();
            self.serve_other_keys(slots);
        } else if home.keep_any_source.tick(inserts, len) {
            let keys = home.keys.with_source();
            self.rebuild_home(slots, keys);
        }
    }

    /// Keys with a source pass too many entries in the home index: has it serve these alone, for
    /// longer each time, and a side index those without.
    #[cold]
    pub(in crate::deep) fn split_home(&mut self, slots: &mut [Slot]) {
        let home = &mut self.home;
        let keys = home.keys;
        if keys.any_source && home.is_walked_too_far() {
            home.split = SPLIT_TICKS << home.doublings;
            home.doublings = MOST_DOUBLINGS.min(home.doublings + 1);
            self.rebuild_home(slots, keys.with_source());
            self.wake_side(slots, keys);
        }
    }

    /// Nobody has used the home index for long: has it serve the keys of a side index, in place
    /// of that.
    fn serve_other_keys(&mut self, slots: &mut [Slot]) {
        if !self.entries_are_exact() {
            return;
        }
        let idle = |&which: &usize| self.side[which].keep.idle();
        if let Some(which) = Bits(self.awake.into()).min_by_key(idle)
            && let Some(keys) = self.put_to_sleep(which)
        {
            self.rebuild_home(slots, keys);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::bits::Bits;
    use crate::entry::{Entry, Key, Source};
    use crate::kernel::Kernel;
    use crate::table::Table;
    use crate::wildcards::Wildcards;

    const EXACT: Wildcards = Wildcards::NONE;
    const ANY_SOURCE: Wildcards = Wildcards { ignore: 0, any_source: true };
    const ANY_TAG: Wildcards = Wildcards { ignore: 0xff, any_source: false };

    /// Messages of some sources with some tags, taken by keys of these kinds in turn.
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

    /// What the home index serves, and what else is.
    fn served(table: &Table) -> (Wildcards, Vec<Wildcards>) {
        let deep = table.deep();
        let awake = Bits(deep.awake.into());
        (deep.home.keys, awake.filter_map(|which| deep.side[which].keys).collect())
    }

    /// Keys that name a source and such that do not have one index if that is quick, and find the
    /// same if it is not; of what is asked for no longer nothing is left.
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

    /// Messages are taken by their source, but first looked for from any, in vain or not.
    #[test]
    fn what_only_looks_stays_served() {
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
    fn keys_in_each_others_way_are_split_without_an_insert() {
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

    /// Nothing comes to or leaves what is searched.
    #[test]
    fn keys_are_served_though_all_entries_leave_young() {
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
}
