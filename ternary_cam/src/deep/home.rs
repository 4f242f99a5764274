// SPDX-License-Identifier: BSD-2-Clause
//! The home index, and which keys it serves.
//!
//! ```text
//! keys of one kind                         an index under their pattern
//! those that name a source and those       an index that does not compare sources, unless too
//!     that do not, with the same bits      many entries of other sources are passed there
//! of other kinds                           the most used ones; the others have an index each
//! ```
//!
//! What is asked for it learns from notes of searches (`demand.rs`). A note of each search with its
//! own keys would cost 0.3 ns, so only the first one in a while leaves one:
//!
//! ```text
//! every NOTE ticks:                 nothing is `unnoted` (classes.rs)
//! a search with one of its keys:    finds so, goes the long way, notes its use, and asks to
//!                                   be spared further notes
//! the next remove or insert:        what is usual is `unnoted`, and is searched the short way
//! no note for long (Keep):          serves other keys
//! keys that name a source among     count the entries they pass (`Index::walked`), and have the
//!     those that do not:            index serve them alone when these are too many
//! ```

use super::{Deep, HOME};
use crate::age_log::Bits;
use crate::classes::{TRAY, UNCLASSED};
use crate::demand::Keep;
use crate::index::Index;
use crate::pattern::{EXACT, Kind, Pattern};
use crate::slot::Slot;

/// Entries that searches may pass in the home index for each insert: to serve some of the keys
/// beside it costs as much.
const WALK: usize = 2;

/// Entries that they may pass beyond that for each entry, of which many may be searched for
/// between two inserts.
const TOO_FAR: usize = 8;

/// Ticks for which the home index then serves the others alone, for the first time. Each time they
/// are twice as many.
const APART: u32 = 2048;

/// How often they double.
const MOST_APART: u32 = 16;

/// Ticks from one note of a search to the next: seldom enough to cost nothing, and often enough
/// for [`Keep`].
const NOTE: u32 = 4;

/// The home index: entries under the pattern of their class, exact ones under its own. What
/// every operation loads comes first, in one line of the cache.
#[repr(C, align(64))]
pub(super) struct Home {
    pub(super) keys: Kind,
    /// Of exact entries under these keys.
    pub(super) pattern: Pattern,
    pub(super) index: Index,
    pub(super) keep: Keep,
    /// Of keys that name no source.
    pub(super) keep_any: Keep,
    /// Entries that searches may pass.
    far: u32,
    /// Ticks before it serves keys that name no source beside those that do.
    apart: u32,
    /// How often it ceased to.
    parted: u32,
    /// Ticks there were.
    ticks: u32,
}

impl Home {
    /// For exact keys.
    pub(super) fn new() -> Self {
        Self {
            keys: Kind::EXACT,
            pattern: Pattern::EXACT,
            index: Index::new(),
            keep: Keep::awake(),
            keep_any: Keep::default(),
            far: 0,
            apart: 0,
            parted: 0,
            ticks: 0,
        }
    }

    /// Whether it may serve these keys, which name no source, beside its own.
    pub(super) fn may_serve(&self, keys: Kind) -> bool {
        self.apart == 0 && keys.any_source && self.keys == keys.named()
    }

    /// Notes a search with what are its keys, not such that it serves beside them.
    #[inline(always)]
    pub(super) fn note_use(&self) {
        self.keep.note_use();
        self.keep_any.note_use();
    }

    /// Entries that searches may pass where there were at most so many.
    const fn far(used: usize) -> u32 {
        (TOO_FAR * used) as u32
    }

    /// Whether searches passed so many entries that it should serve keys of one kind only.
    #[inline(always)]
    pub(super) fn is_walked_too_far(&self) -> bool {
        self.index.walked() > self.far
    }
}

impl Deep {
    /// Builds the home index anew, for keys of this kind.
    #[cold]
    pub(super) fn turn_home(&mut self, slots: &mut [Slot], keys: Kind) {
        self.set_home(keys);
        self.home.index.clear();
        self.home.far = Home::far(self.used.max(self.longest));
        self.fill_home(slots);
        self.note_unusual();
    }

    /// Has the home index, which is empty, serve keys of this kind.
    pub(super) fn set_home(&mut self, keys: Kind) {
        let home = &mut self.home;
        home.keys = keys;
        home.pattern = match keys {
            Kind::EXACT => self.classes.exact(),
            _ => Pattern::new(keys),
        };
        home.keep.wake();
        match keys.any_source {
            true => home.keep_any.wake(),
            false => home.keep_any.sleep(),
        }
    }

    /// Fills the empty home index with the entries that have a class.
    pub(super) fn fill_home(&mut self, slots: &mut [Slot]) {
        for at in 0..self.in_order(slots).len() {
            let id = self.order[at];
            let pattern = match slots[usize::from(id)].stamp.class() {
                EXACT => &self.home.pattern,
                TRAY | UNCLASSED => continue,
                class => self.classes.pattern(class),
            };
            self.home.index.insert_marked(slots, HOME, pattern, id);
        }
    }

    /// Has the home index serve what it is asked for.
    pub(super) fn tick_home(&mut self, slots: &mut [Slot], inserts: usize, len: usize) {
        let home = &mut self.home;
        home.apart = home.apart.saturating_sub(1);
        home.far = Home::far(self.used);
        home.index.forgive(WALK * inserts);
        if self.awake == 0 {
            // Searches with exact keys leave no note then.
            home.keep.note_use();
        }
        home.ticks = home.ticks.wrapping_add(1);
        if home.ticks.is_multiple_of(NOTE) {
            self.classes.ask_for_note();
        }
        if home.keep.tick(inserts, len) {
            home.keep.wake();
            self.find_home(slots);
        } else if home.keep_any.tick(inserts, len) {
            let keys = home.keys.named();
            self.turn_home(slots, keys);
        }
    }

    /// Keys that name a source pass too many entries of others in the home index: has it serve
    /// these alone, for longer each time.
    #[cold]
    pub(super) fn part_home(&mut self, slots: &mut [Slot]) {
        let home = &mut self.home;
        let keys = home.keys;
        if keys.any_source && home.is_walked_too_far() {
            home.parted = MOST_APART.min(home.parted + 1);
            home.apart = APART << home.parted;
            self.turn_home(slots, keys.named());
            self.wake_other(slots, keys);
        }
    }

    /// Nobody has used the home index for long: has it serve the keys of another
    /// index, in place of that.
    fn find_home(&mut self, slots: &mut [Slot]) {
        if !self.entries_are_exact() {
            return;
        }
        let idle = |&which: &usize| self.others[which].keep.idle();
        if let Some(which) = Bits(self.awake.into()).min_by_key(idle)
            && let Some(keys) = self.put_to_sleep(which)
        {
            self.turn_home(slots, keys);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::age_log::Bits;
    use crate::entry::{Entry, Key, Source};
    use crate::kernel::Kernel;
    use crate::pattern::Kind;
    use crate::table::Table;

    const EXACT: Kind = Kind::EXACT;
    const ANY_SOURCE: Kind = Kind { ignore: 0, any_source: true };
    const ANY_TAG: Kind = Kind { ignore: 0xff, any_source: false };

    /// Messages of some sources with some tags, taken by keys of these kinds in turn.
    fn take(table: &mut Table, sources: u32, tags: u64, kinds: &[Kind]) {
        let mut naive = Vec::new();
        for token in 0..if cfg!(miri) { 300 } else { 20_000 } {
            let bits = 0x100 | (u64::from(token) * 7 % tags);
            let entry = Entry { bits, ignore: 0, source: Source::new(token % sources), token };
            naive.push((table.insert(entry).unwrap(), entry));
            if naive.len() <= 100 {
                continue;
            }
            let wanted = naive[token as usize * 31 % naive.len()].1;
            let Kind { ignore, any_source } = kinds[token as usize % kinds.len()];
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
    fn served(table: &Table) -> (Kind, Vec<Kind>) {
        let deep = table.deep();
        let awake = Bits(deep.awake.into());
        (deep.home.keys, awake.filter_map(|which| deep.others[which].keys).collect())
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
    fn keys_in_each_others_way_are_parted_without_an_insert() {
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
