// SPDX-License-Identifier: BSD-2-Clause
//! When the tray is in use.
//!
//! ```text
//! taken into use    entries of several kinds, or keys with wildcards, come, and there were few
//!                   entries for ENTER_AFTER ticks, as there were in a new table
//! left              when there are too many entries, or positions are used up at once,
//!                   after LEAVE_AFTER ticks with entries of one kind and exact keys,
//!                   after ALIKE samples of keys, all of one kind, of exact entries
//! ```
//!
//! For entries and keys of one kind the home index is quicker. What is too many depends on what
//! would be in the place of the tray: one index, for entries of few kinds and their keys; an index
//! for each kind of keys; a scan, for entries that all differ.

use std::sync::atomic::{AtomicBool, AtomicI8, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::room::{GROUP, POSITIONS};
use crate::entry::Key;
use crate::kernel::{Available, Kernel};
use crate::wildcards::Wildcards;

/// Ticks with few entries after which it may be taken into use.
pub(super) const ENTER_AFTER: u32 = 4;

/// Ticks with entries of one kind and exact keys after which it is left.
pub(super) const LEAVE_AFTER: u32 = 8;

/// Samples in a row, two a tick, that show keys of one kind, after which it is left.
pub(super) const ALIKE: u32 = 64;

/// Keys from the first sample of a tick to the second: 0 to one fewer than this, in turn, or else a
/// program that does the same again and again would always show the same of them.
const STRIDE: u32 = 8;

/// Ticks after which it is forgotten what kinds there were, or that the positions were used up as
/// soon as it was in use.
pub(super) const REVIEW: u32 = 512;

/// Kinds of keys with wildcards that are many: an index for each would be kept up.
pub(super) const MANY: u32 = 2;

/// See the module.
pub(super) struct Policy {
    /// Entries at most while the tray is in use: `few`, or [`POSITIONS`] if there are many
    /// kinds.
    pub(super) most: usize,
    /// Entries of few kinds up to which it is quicker than an index.
    pub(super) few: usize,
    /// The cells of some kinds of keys with wildcards.
    pub(super) wild_keys: AtomicU64,
    pub(super) sample: Sample,
    /// Ticks while in use, since what kinds there were was forgotten.
    pub(super) ticks: u32,
    pub(super) noting: AtomicI8,
    pub(super) last: LastEntry,
    /// Ticks in a row while in use with entries of one kind and exact keys.
    pub(super) plain: u32,
    /// Ticks with few entries to pass before it may be taken into use.
    pub(super) wait: u32,
}

/// What a search is to note of its key, and so what there was since the last tick. A search
/// compares it with [`Noting::WILD`]: what is above is to be noted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Noting(pub(super) i8);

impl Noting {
    /// Nothing: there were several kinds of entries, or somebody asked for a rank.
    pub(super) const SEVERAL: Self = Self(-1);
    /// Nothing more: there was a key with wildcards.
    const WILD: Self = Self(0);
    /// The first key with wildcards: all so far were exact.
    pub(super) const EXACT: Self = Self(1);
    /// Any key: there was none so far.
    pub(super) const NONE: Self = Self(2);
    /// Any key, as the second sample: the first had wildcards.
    const SECOND: Self = Self(3);

    /// [`Noting::SECOND`] after so many keys.
    const fn second_after(keys: u32) -> Self {
        Self(Self::SECOND.0 + keys as i8)
    }

    /// One key fewer to the second sample.
    const fn countdown(self) -> Self {
        Self(self.0 - 1)
    }
}

/// The kind of the last entry that came; at first exact.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LastEntry {
    ignore: u64,
    /// 1 if it names no source.
    any_source: u64,
}

impl LastEntry {
    /// Takes the next one; returns zero if it is of the same kind.
    #[inline(always)]
    pub(super) fn next(&mut self, entry: Wildcards) -> u64 {
        let next = Self { ignore: entry.ignore, any_source: entry.any_source.into() };
        let last = std::mem::replace(self, next);
        last.ignore ^ next.ignore | last.any_source ^ next.any_source
    }
}

/// The kind of the last sampled key, and how many in a row were of it.
#[derive(Default)]
pub(super) struct Sample {
    ignore: AtomicU64,
    any_source: AtomicBool,
    pub(super) alike: AtomicU32,
}

impl Sample {
    pub(super) fn keys(&self) -> Wildcards {
        Wildcards { ignore: self.ignore.load(Relaxed), any_source: self.any_source.load(Relaxed) }
    }

    fn note(&self, keys: Wildcards) {
        let alike = if keys == self.keys() { self.alike.load(Relaxed) } else { 0 };
        self.alike.store(alike.saturating_add(1), Relaxed);
        self.ignore.store(keys.ignore, Relaxed);
        self.any_source.store(keys.any_source, Relaxed);
    }

    /// Starts over: there are others.
    pub(super) fn reject(&self) {
        self.alike.store(0, Relaxed);
    }
}

impl Policy {
    pub(super) fn new(kernel: Available) -> Self {
        // Two steps of a vector kernel.
        let few = if kernel.get() == Kernel::Scalar { 16 } else { 32 };
        Self {
            most: few,
            few,
            wild_keys: AtomicU64::new(0),
            sample: Sample::default(),
            ticks: 0,
            noting: AtomicI8::new(Noting::NONE.0),
            last: LastEntry::default(),
            plain: 0,
            wait: 0,
        }
    }

    #[inline(always)]
    fn noting(&self) -> Noting {
        Noting(self.noting.load(Relaxed))
    }

    /// Notes several kinds of entries, or a question for a rank.
    #[inline]
    pub(super) fn note_several(&self) {
        self.noting.store(Noting::SEVERAL.0, Relaxed);
    }

    /// Whether this key is to be noted. The first condition is nearly always false where keys of
    /// several kinds come, the second is not predicted there.
    #[inline(always)]
    pub(super) fn wants(&self, key: &Key) -> bool {
        let noting = self.noting();
        noting > Noting::WILD && (noting != Noting::EXACT || !key.is_exact())
    }

    /// Notes a key, one of few between two ticks: seldom are they all of the same kind, and where
    /// they are, or entries of several kinds come first, only time is lost.
    pub(super) fn note(&self, key: &Key) {
        let (keys, noting) = (key.wildcards(), self.noting());
        let next = match noting {
            Noting::NONE => {
                self.sample.note(keys);
                match keys {
                    Wildcards::NONE => Noting::EXACT,
                    _ => Noting::second_after(self.ticks % STRIDE),
                }
            }
            Noting::EXACT if key.is_exact() => Noting::EXACT,
            Noting::EXACT => {
                self.sample.reject();
                Noting::WILD
            }
            Noting::SECOND => {
                self.sample.note(keys);
                Noting::WILD
            }
            later if later > Noting::SECOND => later.countdown(),
            // Another search was quicker.
            enough => enough,
        };
        self.noting.store(next.0, Relaxed);
        if keys != Wildcards::NONE {
            self.wild_keys.store(self.wild_keys.load(Relaxed) | 1 << keys.cell(), Relaxed);
        }
    }

    /// Notes the entries that came since [`Policy::last`] was read, of which this is the last one.
    #[inline(always)]
    pub(super) fn note_entries(&mut self, last: LastEntry, differ: u64) {
        self.last = last;
        if differ != 0 {
            self.note_several();
        }
    }

    /// For how many entries the tray is good.
    #[inline(always)]
    pub(super) fn good_for(&self, many_kinds: bool) -> usize {
        if many_kinds { POSITIONS } else { self.few }
    }

    /// Whether there is room where there were at most so many entries since the last tick.
    #[inline(always)]
    pub(super) fn has_room(&self, peak: usize, many_kinds: bool) -> bool {
        peak + GROUP <= self.good_for(many_kinds)
    }

    /// Not to be taken into use for so many ticks.
    pub(super) fn wait(&mut self, ticks: u32) {
        self.wait = ticks;
    }

    /// Taken into use.
    pub(super) fn enter(&mut self, many_kinds: bool) {
        self.forget_kinds();
        self.most = self.good_for(many_kinds);
        self.plain = 0;
    }

    /// Forgets which kinds there were.
    pub(super) fn forget_kinds(&mut self) {
        self.most = self.few;
        *self.wild_keys.get_mut() = 0;
        self.ticks = 0;
    }
}
