// SPDX-License-Identifier: BSD-2-Clause
//! Finds the oldest entry that matches a key.
//!
//! ```text
//! first_match                base entries, exact key; else
//!  +- first_match_exact      exact key, only the home index
//!  |   +- .._uniform           one pattern serves all entries
//!  |   +- .._classes           several (tuple_space.rs)
//!  +- first_match_flagged    key with wildcards, or anything else
//!      +- .._uniform           one pattern serves all entries and keys of this kind
//!      +- .._named             as above, but this key names its source
//!      +- .._in_side           as above, but a side index serves this key (side/)
//!      +- tray.first           few entries (tray.rs)
//!      +- .._general
//!          +- first_in_scan    no entry has a class
//!          +- .._wild          wildcards: the scan of all, or classes or home, and the scan
//!          +- .._home          exact entries, the home index serves the key
//!          +- .._in_side       the side index of its cell, or else
//!              +- .._unserved  any side index, the scan, a pass over the slots
//! ```
//!
//! The comment of a function states the conditions under which it is called.
//!
//! Likely cases come first and do the least work. Each path is a separate function, so that none
//! saves registers for another. Rare cases are called last, which makes the call a jump.

use super::parts::{Deep, entries};
use crate::deep::pattern::Pattern;
use crate::deep::state::State;
use crate::deep::uniform::Uniform;
use crate::deep::wishes::Wish;
use crate::entry::Key;
use crate::slot::{Class, Slot};
use crate::wildcards::Wildcards;

/// Number of slots up to which a pass over the slots leaves no wish for a faster structure.
const CHEAP_PASS: usize = 8;

impl Deep {
    /// Returns the oldest entry that matches, and its slot.
    #[inline(always)]
    pub(crate) fn first_match<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let state = self.classes.state();
        if state == State::EMPTY {
            return None;
        }
        if state.has_flags() || !key.is_exact() {
            return self.first_match_flagged(slots, key);
        }
        if state != State::ONLY_BASE {
            return self.first_match_exact(slots, key);
        }
        self.first_match_with_source(slots, key, (Class::BASE, &self.classes.base()))
    }

    /// All entries are of one class; one pattern, which compares the source, serves them and this
    /// key.
    #[inline(always)]
    fn first_match_with_source<'a>(
        &self,
        slots: &'a [Slot],
        key: &Key,
        (class, pattern): (Class, &Pattern),
    ) -> Option<(u16, &'a Slot)> {
        self.home.index.first_named(slots, (class, &pattern.with_source(true)), key)
    }

    /// The key is exact, and there is only the home index.
    #[inline(never)]
    fn first_match_exact<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.classes.uniform().holds(self.classes.state()) {
            return self.first_match_uniform(slots, key);
        }
        self.first_match_classes(slots, key)
    }

    /// One pattern serves all entries and this key.
    #[inline(never)]
    fn first_match_uniform<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let Uniform { class, ref pattern, .. } = *self.classes.uniform();
        if !pattern.wildcards().any_source {
            return self.first_match_with_source(slots, key, (class, pattern));
        }
        let pattern = pattern.with_source(false);
        let care = pattern.care();
        // Index::first_for would make this function save more registers.
        let agrees = move |slot: &Slot| (slot.bits ^ key.bits) & care == 0;
        self.home.index.first(slots, (class, &pattern), (key.bits, key.source.0), agrees)
    }

    /// The key has wildcards, or there are structures besides the home index.
    #[inline(never)]
    fn first_match_flagged<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let uniform = self.classes.uniform();
        if uniform.holds_quietly(self.classes.state()) {
            if uniform.keys == key.wildcards() {
                return self.first_match_uniform(slots, key);
            }
            if uniform.keys.serves(key) {
                return self.first_match_named(slots, key);
            }
            if self.awake != 0 && uniform.are_exact() {
                return self.first_match_in_side(slots, key);
            }
        }
        if self.tray.is_in_use() {
            return self.tray.first(self.kernel, slots, key);
        }
        self.first_match_general(slots, key)
    }

    /// Only known: the tray is not in use. If no entry has a class, all entries are in the scan.
    #[inline(never)]
    fn first_match_general<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.classes.is_empty() {
            return self.first_in_scan(slots, key);
        }
        if !self.entries_are_exact() {
            return self.first_match_wild(slots, key);
        }
        if self.home.keys.serves(key) {
            return self.first_match_home(slots, key);
        }
        self.first_match_in_side(slots, key)
    }

    /// All entries with a class are in the home index, under patterns that serve this key.
    #[inline(always)]
    fn first_match_home<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.home.keys.any_source && !key.source.is_any() {
            return self.first_match_named(slots, key);
        }
        self.home.note_use();
        if self.classes.uniform().holds(self.classes.state()) {
            self.wish(Wish::HomeUsed);
        }
        self.home.index.first_for(slots, &self.home.pattern, key)
    }

    /// The key names a source; the home index also serves keys without one.
    #[inline(never)]
    fn first_match_named<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        self.home.keep.note_use();
        let pattern = self.home.pattern.with_source(false);
        let found = self.home.index.first_named(slots, (Class::BASE, &pattern), key);
        if self.home.is_walked_too_far() {
            self.wish(Wish::SplitHome);
        }
        found
    }

    /// There are entries with wildcards, or the base ignores some bits.
    #[inline(never)]
    fn first_match_wild<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        if self.unclassed != 0 && self.scan_keep.is_awake() {
            self.scan_keep.note_use();
            return self.first_in_scan(slots, key);
        }
        if !self.home.keys.serves(key) || self.unclassed > self.classes.len() {
            return self.first_match_unserved(slots, key);
        }
        let oldest = if self.home.keys == Wildcards::NONE {
            self.first_match_classes(slots, key)
        } else {
            self.first_match_home(slots, key)
        };
        if self.unclassed == 0 {
            return oldest;
        }
        older(oldest, self.first_in_scan(slots, key))
    }

    /// Neither the home index nor the side index of its cell serves the key, or most entries are in
    /// no index.
    #[inline(never)]
    pub(super) fn first_match_unserved<'a>(
        &self,
        slots: &'a [Slot],
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        let slots_used = self.slots_used(slots);
        let is_cheap = slots_used.len() <= CHEAP_PASS;
        if self.entries_are_exact() {
            let keys = key.wildcards();
            if let Some(which) = self.side.iter().position(|side| side.keys == Some(keys)) {
                return self.side[which].first(slots, key);
            }
            if !is_cheap && self.wishes.count(keys) {
                self.wish(Wish::Keys(keys));
            }
        }
        if self.scan_keep.is_awake() {
            self.scan_keep.note_use();
            return self.first_in_scan(slots, key);
        }
        if is_cheap {
            // The next insert takes its general path, on which it may take the tray into use.
            self.classes.raise_extra_work();
        } else {
            self.wish(Wish::ScanAll);
        }
        entries(slots_used).filter(|(_, slot)| slot.matches(key)).min_by_key(|(_, slot)| slot.stamp)
    }

    #[inline(always)]
    fn first_in_scan<'a>(&self, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        self.scan.first_match(self.kernel, key).map(|id| (id, &slots[usize::from(id)]))
    }
}

/// Returns the older of two matches.
#[inline(always)]
pub(super) fn older<'a>(
    a: Option<(u16, &'a Slot)>,
    b: Option<(u16, &'a Slot)>,
) -> Option<(u16, &'a Slot)> {
    let (Some((_, x)), Some((_, y))) = (a, b) else { return a.or(b) };
    if x.stamp < y.stamp { a } else { b }
}
