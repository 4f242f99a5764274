// SPDX-License-Identifier: BSD-2-Clause
//! The policy that decides when the small set is in use.
//!
//! ```text
//! taken into use    entries of several kinds, or keys with wildcards, if there were few
//!                   entries for ENTER_AFTER ticks, or the table is new
//! left              if there are too many entries, or nearly every insert would close up,
//!                   after LEAVE_AFTER ticks with entries of one kind and exact keys,
//!                   after ALIKE samples of keys, all of one kind, of exact entries
//! ```
//!
//! A tick is a call of `Index::housekeeping`, about every 64 inserts. With entries and keys of one
//! kind, the primary index is faster than the small set. The limit on entries depends on the
//! alternative to the small set: one index, for entries of few kinds and their keys; an index for
//! each kind of keys; or a scan, for entries that all differ.

use std::sync::atomic::{AtomicBool, AtomicI8, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::entry::Key;
use crate::kernel::{Available, Kernel, LANES};
use crate::recent::CAPACITY;
use crate::wildcards::Wildcards;

/// Number of positions: the bits of a word.
pub(in crate::index) const POSITIONS: usize = LANES;

/// Entries that are added at once: the recent entries.
pub(in crate::index) const GROUP: usize = CAPACITY as usize;

/// Ticks with few entries after which the small set may be taken into use.
pub(in crate::index) const ENTER_AFTER: u32 = 4;

/// Ticks with entries of one kind and exact keys after which the small set is left.
pub(in crate::index) const LEAVE_AFTER: u32 = 8;

/// Consecutive samples of keys, at most two per tick. If this many are of one kind, the small set
/// is left.
pub(in crate::index) const ALIKE: u32 = 64;

/// Between the two samples of a tick, fewer keys than this are skipped. The number changes with
/// each tick. Otherwise a program that repeats itself would always show the same keys.
const STRIDE: u32 = 8;

/// Ticks after which the observed kinds are forgotten. Also the ticks for which the small set stays
/// unused because nearly every insert would have closed it up.
pub(in crate::index) const REVIEW: u32 = 512;

/// Number of kinds of keys with wildcards that counts as many: an index for each would be
/// maintained.
pub(in crate::index) const MANY: u32 = 2;

/// The policy; see the module.
pub(in crate::index) struct Policy {
    /// Maximum number of entries while the small set is in use: `few`, or [`POSITIONS`] with many
    /// kinds.
    pub(in crate::index) most: usize,
    /// Number of entries of few kinds up to which the small set is faster than an index.
    pub(in crate::index) few: usize,
    /// Bit `i`: a key with wildcards whose [`Wildcards::cell`] is `i` was noted.
    pub(in crate::index) wild_keys: AtomicU64,
    pub(in crate::index) sample: Sample,
    /// Ticks in use since the observed kinds were forgotten.
    pub(in crate::index) ticks: u32,
    /// The value of a [`Noting`].
    pub(in crate::index) noting: AtomicI8,
    pub(in crate::index) last: LastEntry,
    /// Consecutive ticks in use with entries of one kind and exact keys.
    pub(in crate::index) plain_ticks: u32,
    /// Ticks with few entries that must pass before the small set may be taken into use.
    pub(in crate::index) wait: u32,
}

/// Selects the keys that a search must note. The value also encodes the keys seen since the last
/// tick. A search compares it with [`Noting::WILD`]: only higher values require noting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::index) struct Noting(pub(in crate::index) i8);

impl Noting {
    /// No key: there were entries of several kinds, or a rank was requested.
    pub(in crate::index) const SEVERAL: Self = Self(-1);
    /// No further key: there was a key with wildcards.
    const WILD: Self = Self(0);
    /// The first key with wildcards: since the last tick, all keys were exact.
    pub(in crate::index) const EXACT: Self = Self(1);
    /// Any key: since the last tick, there was no key.
    pub(in crate::index) const NONE: Self = Self(2);
    /// Any key, as the second sample: the first had wildcards.
    const SECOND: Self = Self(3);

    /// Returns the value that becomes [`Noting::SECOND`] after this many keys.
    const fn second_after(keys: u32) -> Self {
        Self(Self::SECOND.0 + keys as i8)
    }

    /// Returns the value with one key less until the second sample.
    const fn countdown(self) -> Self {
        Self(self.0 - 1)
    }
}

/// The kind of the last entry added; exact at first.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::index) struct LastEntry {
    ignore: u64,
    /// 1 if the entry names no source.
    any_source: u64,
}

impl LastEntry {
    /// Stores the kind of the next entry. Returns zero if the entry before had the same kind.
    #[inline(always)]
    pub(in crate::index) fn replace(&mut self, entry: Wildcards) -> u64 {
        let next = Self { ignore: entry.ignore, any_source: entry.any_source.into() };
        let last = std::mem::replace(self, next);
        last.ignore ^ next.ignore | last.any_source ^ next.any_source
    }
}

/// The kind of the last sampled key, and the number of consecutive samples of this kind.
#[derive(Default)]
pub(in crate::index) struct Sample {
    ignore: AtomicU64,
    any_source: AtomicBool,
    pub(in crate::index) alike: AtomicU32,
}

impl Sample {
    pub(in crate::index) fn keys(&self) -> Wildcards {
        Wildcards { ignore: self.ignore.load(Relaxed), any_source: self.any_source.load(Relaxed) }
    }

    fn note(&self, keys: Wildcards) {
        let alike = if keys == self.keys() { self.alike.load(Relaxed) } else { 0 };
        self.alike.store(alike.saturating_add(1), Relaxed);
        self.ignore.store(keys.ignore, Relaxed);
        self.any_source.store(keys.any_source, Relaxed);
    }

    /// Restarts the count, because keys or entries of other kinds were seen.
    pub(in crate::index) fn reject(&self) {
        self.alike.store(0, Relaxed);
    }
}

impl Policy {
    pub(in crate::index) fn new(kernel: Available) -> Self {
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
            plain_ticks: 0,
            wait: 0,
        }
    }

    #[inline(always)]
    fn noting(&self) -> Noting {
        Noting(self.noting.load(Relaxed))
    }

    /// Notes that entries of several kinds were seen, or that a rank was requested.
    #[inline]
    pub(in crate::index) fn note_several(&self) {
        self.noting.store(Noting::SEVERAL.0, Relaxed);
    }

    /// Returns true if this key must be noted. With keys of several kinds, the first condition is
    /// nearly always false, and the second is unpredictable.
    #[inline(always)]
    pub(in crate::index) fn wants(&self, key: &Key) -> bool {
        let noting = self.noting();
        noting > Noting::WILD && (noting != Noting::EXACT || !key.is_exact())
    }

    /// Notes a key, one of few between two ticks. A sample that is not typical costs only time.
    pub(in crate::index) fn note(&self, key: &Key) {
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
            // A concurrent search has changed the value.
            enough => enough,
        };
        self.noting.store(next.0, Relaxed);
        if keys != Wildcards::NONE {
            self.wild_keys.store(self.wild_keys.load(Relaxed) | 1 << keys.cell(), Relaxed);
        }
    }

    /// Notes the kinds of the entries added since [`Policy::last`] was read; `last` is the kind of
    /// the youngest.
    #[inline(always)]
    pub(in crate::index) fn note_entries(&mut self, last: LastEntry, differ: u64) {
        self.last = last;
        if differ != 0 {
            self.note_several();
        }
    }

    /// Returns the maximum number of entries for the small set.
    #[inline(always)]
    pub(in crate::index) fn good_for(&self, many_kinds: bool) -> usize {
        if many_kinds { POSITIONS } else { self.few }
    }

    /// Returns true if the small set has room for `peak` entries, the maximum since the last tick,
    /// and the next group.
    #[inline(always)]
    pub(in crate::index) fn has_room(&self, peak: usize, many_kinds: bool) -> bool {
        peak + GROUP <= self.good_for(many_kinds)
    }

    /// Called when the small set is taken into use.
    pub(in crate::index) fn enter(&mut self, many_kinds: bool) {
        self.forget_kinds();
        self.most = self.good_for(many_kinds);
        self.plain_ticks = 0;
    }

    /// Forgets the observed kinds.
    pub(in crate::index) fn forget_kinds(&mut self) {
        self.most = self.few;
        *self.wild_keys.get_mut() = 0;
        self.ticks = 0;
    }
}
