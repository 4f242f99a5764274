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

use super::{GROUP, POSITIONS, Tray};
use crate::bits::Bits;
use crate::deep::Deep;
use crate::deep::classes::CLASSES;
use crate::deep::side::SIDE_INDEXES;
use crate::entry::Key;
use crate::kernel::{Available, Kernel};
use crate::slot::Slot;
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
const MANY: u32 = 2;

/// See the module.
pub(super) struct Policy {
    /// Entries at most while the tray is in use: `few`, or [`POSITIONS`] if there are many
    /// kinds.
    most: usize,
    /// Entries of few kinds up to which it is quicker than an index.
    pub(super) few: usize,
    /// The cells of some kinds of keys with wildcards.
    wild_keys: AtomicU64,
    sample: Sample,
    /// Ticks while in use, since what kinds there were was forgotten.
    ticks: u32,
    noting: AtomicI8,
    pub(super) last: LastEntry,
    /// Ticks in a row while in use with entries of one kind and exact keys.
    plain: u32,
    /// Ticks with few entries to pass before it may be taken into use.
    wait: u32,
}

/// What a search is to note of its key, and so what there was since the last tick. A search
/// compares it with [`Noting::WILD`]: what is above is to be noted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Noting(i8);

impl Noting {
    /// Nothing: there were several kinds of entries, or somebody asked for a rank.
    const SEVERAL: Self = Self(-1);
    /// Nothing more: there was a key with wildcards.
    const WILD: Self = Self(0);
    /// The first key with wildcards: all so far were exact.
    const EXACT: Self = Self(1);
    /// Any key: there was none so far.
    const NONE: Self = Self(2);
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
struct Sample {
    ignore: AtomicU64,
    any_source: AtomicBool,
    alike: AtomicU32,
}

impl Sample {
    fn keys(&self) -> Wildcards {
        Wildcards { ignore: self.ignore.load(Relaxed), any_source: self.any_source.load(Relaxed) }
    }

    fn note(&self, keys: Wildcards) {
        let alike = if keys == self.keys() { self.alike.load(Relaxed) } else { 0 };
        self.alike.store(alike.saturating_add(1), Relaxed);
        self.ignore.store(keys.ignore, Relaxed);
        self.any_source.store(keys.any_source, Relaxed);
    }

    /// Starts over: there are others.
    fn reject(&self) {
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
    fn good_for(&self, many_kinds: bool) -> usize {
        if many_kinds { POSITIONS } else { self.few }
    }

    /// Whether there is room where there were at most so many entries since the last tick.
    #[inline(always)]
    fn has_room(&self, peak: usize, many_kinds: bool) -> bool {
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
    fn forget_kinds(&mut self) {
        self.most = self.few;
        *self.wild_keys.get_mut() = 0;
        self.ticks = 0;
    }
}

impl Tray {
    /// Whether so many entries are not too many.
    #[inline(always)]
    pub(super) fn has_room_for(&mut self, entries: usize, slots: &[Slot]) -> bool {
        entries <= self.policy.most || self.find_room_for(entries, slots)
    }

    /// The same, and finds out for how many entries it is good: more than few where there are many
    /// kinds of keys, or more of entries than have a class.
    #[cold]
    fn find_room_for(&mut self, entries: usize, slots: &[Slot]) -> bool {
        let many_keys = self.policy.wild_keys.get_mut().count_ones() >= MANY;
        let many_kinds = many_keys || self.has_more_kinds::<CLASSES>(slots);
        self.policy.most = self.policy.good_for(many_kinds);
        entries <= self.policy.most
    }

    /// Whether there are more kinds of entries than so many.
    fn has_more_kinds<const THAN: usize>(&self, slots: &[Slot]) -> bool {
        let mut known = [Wildcards::NONE; THAN];
        let mut len = 0;
        for position in Bits(self.entries.live) {
            let wildcards = slots[usize::from(self.entries.ids[position])].wildcards();
            if !known[..len].contains(&wildcards) {
                if len == THAN {
                    return true;
                }
                known[len] = wildcards;
                len += 1;
            }
        }
        false
    }
}

impl Deep {
    /// Takes the tray into use if there are few entries, of several kinds.
    #[inline(never)]
    pub(in crate::deep) fn consider_tray(&mut self, slots: &mut [Slot]) {
        if self.tray_suits() && (self.classes.are_several() || self.unclassed != 0) {
            self.enter_tray(slots);
        }
    }

    /// Whether the tray may be taken into use.
    #[inline(always)]
    pub(in crate::deep) fn tray_suits(&self) -> bool {
        let policy = &self.tray.policy;
        policy.wait == 0 && policy.has_room(self.peak, self.have_many_kinds())
    }

    /// Whether indexes for many kinds of keys are kept up, most entries have no class, or
    /// keys of several kinds are compared with entries of several kinds in the scan.
    #[inline(always)]
    pub(super) fn have_many_kinds(&self) -> bool {
        self.awake.count_ones() >= MANY
            || self.unclassed > self.classes.len()
            || self.scan_keep.is_awake() && self.classes.has_wild()
    }

    /// Finds out whether the tray is still needed, and otherwise if it would suit; whether
    /// it is in use.
    pub(in crate::deep) fn tick_tray(&mut self, slots: &mut [Slot], peak: usize) -> bool {
        let noting = std::mem::replace(self.tray.policy.noting.get_mut(), Noting::NONE.0);
        if !self.tray.in_use {
            let has_room = self.tray.policy.has_room(peak, self.have_many_kinds());
            let wait = &mut self.tray.policy.wait;
            *wait = if has_room { wait.saturating_sub(1) } else { ENTER_AFTER.max(*wait) };
            return false;
        }
        let noting = Noting(noting);
        // Of several kinds that stay, none may have come since the last tick.
        let one_kind = noting != Noting::SEVERAL && !self.tray.has_more_kinds::<1>(slots);
        let exact_keys = matches!(noting, Noting::NONE | Noting::EXACT);
        let policy = &mut self.tray.policy;
        policy.ticks += 1;
        policy.plain = if one_kind && exact_keys { policy.plain + 1 } else { 0 };
        if !one_kind {
            policy.sample.reject();
        }
        if self.tray.policy.plain == LEAVE_AFTER {
            self.leave_tray_for(slots, Wildcards::NONE);
        } else if self.keys_are_alike(peak) {
            self.leave_tray_for(slots, self.tray.policy.sample.keys());
        } else if self.tray.policy.ticks == REVIEW {
            self.tray.policy.forget_kinds();
            self.sleep_all_but_home();
        }
        self.tray.in_use
    }

    /// Whether for long all entries were exact and all keys of one kind, and there are enough for
    /// an index to be quicker.
    fn keys_are_alike(&self, peak: usize) -> bool {
        let policy = &self.tray.policy;
        policy.sample.alike.load(Relaxed) >= ALIKE
            && peak > policy.few / 2
            && policy.last == LastEntry::default()
            && self.classes.base().wildcards() == Wildcards::NONE
    }

    /// Moves every entry to the home index, which serves keys of this kind. Nothing else is kept
    /// up.
    #[cold]
    fn leave_tray_for(&mut self, slots: &mut [Slot], keys: Wildcards) {
        self.tray.policy.sample.reject();
        self.sleep_all_but_home();
        self.scan_keep.sleep();
        self.set_home(keys);
        self.leave_tray(slots);
    }

    /// Has the side indexes kept up no longer; they are empty. Keys may wish for them again.
    fn sleep_all_but_home(&mut self) {
        for which in 0..SIDE_INDEXES {
            self.put_to_sleep(which);
        }
    }
}
