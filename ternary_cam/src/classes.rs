// SPDX-License-Identifier: BSD-2-Clause
//! The patterns of wildcards among the entries: an MPI has four at most (exact,
//! any tag, any source, both), an arbitrary program as many as entries.
//!
//! MPIs also ignore a few bits of their own in every receive: MPICH and Open MPI the
//! ones that tell a synchronous send. Entries that ignore just these, the *base*,
//! are as good as exact and have class [`EXACT`].

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::age_log::Bits;
use crate::pattern::{EXACT, Kind, Pattern};

/// Classes that are hashed; each one live costs a search a probe. Those behind the pairs are
/// of any pattern; entries of further patterns go to the scan.
pub(crate) const CLASSES: usize = 6;

/// Classes in pairs, which are all that an MPI has: entries of an even one name their source,
/// those of the odd one behind it do not, and both ignore the same bits. A search hashes these
/// once for both.
const PAIRED: usize = 4;

/// Room for patterns, a power of two: an index is bounded by a mask.
const ROOM: usize = 8;

/// Class of entries in the tray (see `deep/tray.rs`).
pub(crate) const TRAY: u8 = 12;

/// Class of entries whose pattern is not hashed.
pub(crate) const UNCLASSED: u8 = 13;

/// Class of the entries in the nursery, which are not counted here. 15 is that of
/// slots without an entry.
pub(crate) const YOUNG: u8 = 14;

/// What entries and keys are where one pattern serves all of them: entries of one class
/// and exact keys, or exact entries and keys of one kind. Most queues are like this most of
/// the time, and nothing is quicker. Other keys are served beside these.
#[derive(Clone, Copy)]
pub(crate) struct Usual {
    /// The state in which all entries are these.
    state: u8,
    /// The same where searches need leave no note, otherwise none.
    unnoted: u8,
    pub(crate) class: u8,
    pub(crate) entries: Kind,
    pub(crate) keys: Kind,
    pub(crate) pattern: Pattern,
}

impl Usual {
    /// Holds for no entry.
    const NOTHING: Self = Self {
        state: Classes::EMPTY,
        unnoted: Classes::EMPTY,
        class: EXACT,
        entries: Kind::EXACT,
        keys: Kind::EXACT,
        pattern: Pattern::EXACT,
    };

    /// Whether all entries are these where the classes are in this state.
    #[inline(always)]
    pub(crate) const fn holds(&self, state: u8) -> bool {
        state == self.state
    }

    /// The same where searches need leave no note of themselves. There are entries.
    #[inline(always)]
    pub(crate) const fn holds_unnoted(&self, state: u8) -> bool {
        state == self.unnoted
    }

    /// The same, once one of these was added.
    #[inline(always)]
    pub(crate) const fn will_hold(&self, state: u8) -> bool {
        state | 1 << self.class == self.state
    }

    /// Whether the entries are exact and ignore nothing.
    #[inline(always)]
    pub(crate) fn are_exact(&self) -> bool {
        self.class == EXACT && self.entries.ignore == 0
    }

    /// Whether both entries and keys are exact.
    #[inline(always)]
    pub(crate) const fn is_exact(&self) -> bool {
        self.state == Classes::ONLY_EXACT
    }
}

/// The patterns of the entries.
#[repr(C)]
pub(crate) struct Classes {
    /// What an operation must know first, in one byte: bit `i` for class `i` that has
    /// entries, and [`Classes::TURNED`], [`Classes::BUSY`]. A byte, since bits of it
    /// are set by a store of a byte, which cannot be forwarded to a load of more.
    state: AtomicU8,
    usual: Usual,
    /// Whether keys that are usual came since this was last asked.
    are_noted: bool,
    /// Entries of each class.
    len: [u32; ROOM],
    patterns: [Pattern; ROOM],
    variety: Variety,
}

/// How much the patterns that have no class differ. Where they all do, a class each
/// costs searches a probe and saves the scan nothing.
#[derive(Default)]
struct Variety {
    /// The last pattern of each hash.
    seen: [u64; Self::SEEN],
    /// Falls with each pattern seen before, rises with each that was not.
    level: u32,
}

impl Variety {
    const SEEN: usize = 8;
    const RISE: u32 = 4;
    const TOO_MUCH: u32 = 32;
    const MOST: u32 = 64;

    /// Notes a pattern; whether there are too many for classes.
    fn is_too_much(&mut self, kind: Kind) -> bool {
        let hash = kind.hash();
        let seen = &mut self.seen[(hash >> (u64::BITS - Self::SEEN.trailing_zeros())) as usize];
        self.level = match std::mem::replace(seen, hash) == hash {
            true => self.level.saturating_sub(1),
            false => Self::MOST.min(self.level + Self::RISE),
        };
        self.level > Self::TOO_MUCH
    }
}

impl Classes {
    /// State: no entry, and nothing unusual.
    pub(crate) const EMPTY: u8 = 0;
    /// State: exact entries, and nothing unusual.
    pub(crate) const ONLY_EXACT: u8 = 1 << EXACT;
    /// In the state: keys with wildcards have an index, the home index or another.
    pub(crate) const TURNED: u8 = 1 << 6;
    /// In the state: there is more to care for than the home index, or a search has
    /// asked for more.
    pub(crate) const BUSY: u8 = 1 << 7;
    const UNUSUAL: u8 = Self::TURNED | Self::BUSY;

    pub(crate) fn new() -> Self {
        Self {
            patterns: std::array::from_fn(|at| Pattern::EXACT.with_source(at.is_multiple_of(2))),
            len: [0; ROOM],
            state: AtomicU8::new(Self::EMPTY),
            usual: Usual::NOTHING,
            are_noted: false,
            variety: Variety::default(),
        }
    }

    #[inline(always)]
    pub(crate) fn state(&self) -> u8 {
        self.state.load(Relaxed)
    }

    /// Says what is unusual.
    pub(crate) fn set_unusual(&mut self, unusual: u8) {
        let state = self.state.get_mut();
        *state = *state & !Self::UNUSUAL | unusual;
    }

    /// Has the next operation look at what searches have asked for.
    pub(crate) fn call(&self) {
        // Searches may run at the same time, changes may not: no update is lost.
        self.state.fetch_or(Self::BUSY, Relaxed);
    }

    /// Counts an entry in that is not exact and returns its class, [`UNCLASSED`] if there
    /// are too many others.
    #[inline(always)]
    pub(crate) fn enter_wild(&mut self, kind: Kind) -> u8 {
        for class in Bits((self.live() & !Self::ONLY_EXACT).into()) {
            if self.patterns[class % ROOM].kind() == kind {
                self.len[class % ROOM] += 1;
                return class as u8;
            }
        }
        self.make(kind)
    }

    /// Whether a paired class has entries that ignore what this kind does, which names a source
    /// or not as the class does.
    #[inline(always)]
    pub(crate) const fn has<const CLASS: usize>(&self, kind: Kind) -> bool {
        self.patterns[CLASS].ignore() == kind.ignore && self.len[CLASS] != 0
    }

    /// Counts an entry of a class that has others in.
    #[inline(always)]
    pub(crate) const fn enter_another<const CLASS: usize>(&mut self) {
        self.len[CLASS] += 1;
    }

    /// Counts an entry in if it is exact; whether it is.
    #[inline(always)]
    pub(crate) fn enter_exact(&mut self, kind: Kind) -> bool {
        if kind != self.exact().kind() {
            return false;
        }
        self.len[usize::from(EXACT)] += 1;
        *self.state.get_mut() |= Self::ONLY_EXACT;
        true
    }

    /// Counts so many entries in.
    #[inline(always)]
    pub(crate) fn enter_several(&mut self, class: u8, entries: usize) {
        self.len[usize::from(class) % ROOM] += entries as u32;
        *self.state.get_mut() |= 1 << class;
    }

    #[inline(always)]
    pub(crate) fn usual(&self) -> &Usual {
        &self.usual
    }

    /// Says that nothing is usual, whatever state comes.
    pub(crate) fn suspend_usual(&mut self) {
        (self.usual.state, self.usual.unnoted) = (Self::EMPTY, Self::EMPTY);
    }

    /// Has the first search with a key that is usual leave a note, where there are other keys.
    pub(crate) fn ask_for_note(&mut self) {
        self.are_noted = false;
        self.usual.unnoted = Self::EMPTY;
    }

    /// Such a note was left.
    pub(crate) fn take_note(&mut self) {
        self.are_noted = true;
    }

    /// Finds out what is usual from now on, where the home index serves these keys.
    pub(crate) fn find_usual(&mut self, keys: Kind, others: bool) {
        let last = std::mem::replace(&mut self.usual, Usual::NOTHING).class;
        let class = match self.live() {
            0 if keys == Kind::EXACT => last,
            0 => EXACT,
            live => live.trailing_zeros() as u8,
        };
        let bits = Self::TURNED | if others { Self::BUSY } else { 0 };
        let state = self.state() & !bits | 1 << class;
        let entries = *self.pattern(class);
        // Left there, entries without wildcards would not count as exact.
        if class != EXACT && entries == Pattern::EXACT {
            return;
        }
        let pattern = match keys {
            Kind::EXACT => entries,
            _ if class == EXACT && entries == Pattern::EXACT => Pattern::new(keys),
            _ => return,
        };
        if state.is_power_of_two() {
            let state = state | self.state() & bits;
            let unnoted = if self.are_noted { state } else { Self::EMPTY };
            self.usual = Usual { state, unnoted, class, entries: entries.kind(), keys, pattern };
        }
    }

    /// The pattern of exact entries: they ignore the base and name their source.
    #[inline(always)]
    pub(crate) fn exact(&self) -> Pattern {
        self.pattern(EXACT).with_source(true)
    }

    /// Makes a class for one entry, if classes are worth it. What the first of all
    /// ignores is the base.
    #[inline(always)]
    fn make(&mut self, kind: Kind) -> u8 {
        if self.variety.is_too_much(kind) {
            return UNCLASSED;
        }
        let is_base = self.state() == Self::EMPTY && !kind.any_source;
        let class = if is_base { Some(EXACT.into()) } else { self.find_free(kind) };
        let Some(class) = class else { return UNCLASSED };
        self.set_pattern(class, kind);
        self.len[class] = 1;
        *self.state.get_mut() |= 1 << class;
        class as u8
    }

    /// A class without entries for this kind: in the pair that ignores its bits, in a pair
    /// without entries, or else an unpaired one.
    fn find_free(&self, kind: Kind) -> Option<usize> {
        let is_free = |&class: &usize| self.len[class] == 0;
        let is_beside = |&class: &usize| self.patterns[class ^ 1].ignore() == kind.ignore;
        let is_alone = |&class: &usize| class > 1 && self.len[class ^ 1] == 0;
        let own = (usize::from(kind.any_source)..PAIRED).step_by(2).filter(is_free);
        let found = own.clone().find(is_beside).or_else(|| own.clone().find(is_alone));
        found.or_else(|| (PAIRED..CLASSES).find(is_free))
    }

    /// Gives a class without entries a pattern, and the other one of its pair.
    fn set_pattern(&mut self, class: usize, kind: Kind) {
        let other = Kind { any_source: !kind.any_source, ..kind };
        for (class, kind) in [(class, kind), (class ^ 1, other)] {
            if class == usize::from(self.usual.class) {
                self.usual = Usual::NOTHING;
            }
            self.patterns[class] = Pattern::new(kind);
            if class >= PAIRED {
                break;
            }
        }
    }

    /// Counts an entry that has a class out.
    #[inline(always)]
    pub(crate) fn leave(&mut self, class: u8) {
        let len = &mut self.len[usize::from(class) % ROOM];
        *len -= 1;
        if *len == 0 {
            *self.state.get_mut() &= !(1 << class);
        }
    }

    #[inline(always)]
    pub(crate) fn pattern(&self, class: u8) -> &Pattern {
        &self.patterns[usize::from(class) % ROOM]
    }

    /// Bit `i`: class `i` has entries.
    #[inline(always)]
    pub(crate) fn live(&self) -> u8 {
        self.state() & ((1 << CLASSES) - 1)
    }

    /// The patterns that have entries.
    #[inline(always)]
    pub(crate) fn live_patterns(&self) -> impl Iterator<Item = &Pattern> + '_ {
        Bits(self.live().into()).map(|class| &self.patterns[class % ROOM])
    }

    /// Whether there are entries with wildcards that have a class.
    #[inline(always)]
    pub(crate) fn has_wild(&self) -> bool {
        self.live() > Self::ONLY_EXACT
    }

    /// Whether there are entries of several classes.
    #[inline(always)]
    pub(crate) fn are_several(&self) -> bool {
        !self.live().is_power_of_two() && self.live() != 0
    }

    /// Whether no entry has a class.
    pub(crate) fn is_empty(&self) -> bool {
        self.live() == 0
    }

    /// Entries that have a class.
    pub(crate) fn len(&self) -> usize {
        self.len.iter().map(|&len| len as usize).sum()
    }
}

#[cfg(test)]
impl Classes {
    /// What is paired is so, and the state says which classes have entries.
    pub(crate) fn check(&self) {
        for (class, pattern) in self.patterns[..PAIRED].iter().enumerate() {
            let ignore = self.patterns[class & !1].ignore();
            let paired = Kind { ignore, any_source: class % 2 == 1 };
            assert_eq!(pattern.kind(), paired);
        }
        for class in 0..CLASSES {
            assert_eq!(self.live() >> class & 1 == 1, self.len[class] != 0);
        }
    }
}
