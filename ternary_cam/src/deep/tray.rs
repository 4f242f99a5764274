// SPDX-License-Identifier: BSD-2-Clause
//! Few entries of several kinds, in age order and in no index.
//!
//! Where there are few, to compare a key with all of them costs less than to look up the
//! class of an entry or the index for a key and to mispredict which it is. A search is one
//! comparison with 16 to 64 positions; that it could stop at the first match is not used, since
//! where that is cannot be predicted either.
//!
//! The tray is taken into use when entries of several kinds or keys with wildcards come and
//! there have been few entries for some time, as there have in a new table. It is left at
//! once when there are too many, and after some time with entries of one kind and exact
//! keys, or exact entries and keys of one kind, for which the home index is quicker. What is too many depends on what would be in its
//! place: one index for entries of few kinds and their keys; one for each kind of keys; a scan
//! for entries of which all are different. The indexes keep what they serve, and are empty
//! meanwhile.

use std::sync::atomic::{AtomicBool, AtomicI8, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::{Deep, HOME, OTHERS, at};
use crate::age_log::Bits;
use crate::classes::{CLASSES, TRAY};
use crate::entry::{Key, Source};
use crate::kernel::{self, Kernel, LANES, Named, STEP};
use crate::nursery::{CAPACITY, Nursery};
use crate::pattern::Kind;
use crate::slot::Slot;

/// Periods of [`super::TICK`] inserts with few entries before it is taken into use.
const PATIENCE: u32 = 4;

/// Such periods with entries of one kind and exact keys after which it is left.
const UNIFORM: u32 = 8;

/// Samples in a row, two in such a period, of which all are keys of one kind after which it is left.
const ALIKE: u32 = 64;

/// Keys from the first sample to the second: as many in turn as are fewer than this, or else a
/// program that does the same again and again would always show the same of them.
const APART: u32 = 8;

/// Such periods after which it is forgotten what kinds there were, or that the places were used
/// up as soon as it was in use.
const REVIEW: u32 = 512;

/// Kinds of keys with wildcards that are many: an index for each would be kept up.
const MANY: u32 = 2;

/// Positions: bits of a word.
const ROOM: usize = LANES;

/// Entries that come at once: those of a nursery.
const GROUP: usize = CAPACITY as usize;

/// What searches are to note, more of it the higher: nothing more, since there were several kinds
/// of entries since the last tick, or somebody asked for a rank.
const SEVERAL: i8 = -1;
/// Nothing more, since there was a key with wildcards.
const WILD: i8 = 0;
/// A key with wildcards. So far there were exact ones.
const EXACT: i8 = 1;
/// Any key: there was none.
const NONE: i8 = 2;
/// Any key, to take it for a sample; one before it if one more, and so on. The first one had
/// wildcards.
const SAMPLE: i8 = 3;

/// See the module.
///
/// ```text
/// position   0     1     2     3     4    ...  63
/// block    [ a  |  -  |  b  |  c  |  -  |  unused ]     what is compared
/// names    [ a  |  -  |  b  |  c  |  -  |  unused ]     slots
/// live       1     0     1     1     0     0
///            oldest            youngest   ^ tail
/// ```
///
/// The slot of an entry names its position. Entries come at the tail and leave holes; they
/// close up when that spares searches a step, and the tail starts over when none is left.
pub(super) struct Tray {
    entries: Named,
    tail: usize,
    in_use: bool,
    /// Entries at most while it is: `few`, or [`ROOM`] where there are many kinds.
    most: usize,
    /// Entries of few kinds up to which it is quicker than an index.
    few: usize,
    /// The cells of some kinds of keys with wildcards.
    wild_keys: AtomicU64,
    sample: Sample,
    /// Ticks while in use, since what kinds there were was forgotten.
    ticks: u32,
    /// While in use: what was noted since the last tick.
    noted: AtomicI8,
    /// Ignore bits of the last entry, and 1 if it names no source.
    last: (u64, u64),
    /// Ticks in a row while in use with entries of one kind and exact keys.
    uniform: u32,
    /// Ticks with few entries to pass before it may be taken into use.
    wait: u32,
}

/// Keys after ticks.
#[derive(Default)]
struct Sample {
    /// The last one's wildcards.
    ignore: AtomicU64,
    any_source: AtomicBool,
    /// How many in a row had these.
    alike: AtomicU32,
}

impl Sample {
    fn keys(&self) -> Kind {
        Kind { ignore: self.ignore.load(Relaxed), any_source: self.any_source.load(Relaxed) }
    }

    fn note(&self, keys: Kind) {
        let alike = if keys == self.keys() { self.alike.load(Relaxed) } else { 0 };
        self.alike.store(alike.saturating_add(1), Relaxed);
        self.ignore.store(keys.ignore, Relaxed);
        self.any_source.store(keys.any_source, Relaxed);
    }

    /// Notes that it does not stand for all.
    fn reject(&self) {
        self.alike.store(0, Relaxed);
    }
}

impl Tray {
    pub(super) fn new(kernel: Kernel) -> Self {
        // Two steps of a vector kernel.
        let few = if kernel == Kernel::Scalar { 16 } else { 32 };
        Self {
            entries: Named::EMPTY,
            tail: 0,
            in_use: false,
            most: few,
            few,
            wild_keys: AtomicU64::new(0),
            sample: Sample::default(),
            ticks: 0,
            noted: AtomicI8::new(NONE),
            last: (0, 0),
            uniform: 0,
            wait: 0,
        }
    }

    #[inline(always)]
    pub(super) fn is_in_use(&self) -> bool {
        self.in_use
    }

    /// Notes several kinds of entries, or a question for a rank.
    #[inline]
    pub(super) fn note_several(&self) {
        self.noted.store(SEVERAL, Relaxed);
    }

    /// For how many entries it is good.
    #[inline(always)]
    fn good_for(&self, many_kinds: bool) -> usize {
        if many_kinds { ROOM } else { self.few }
    }

    /// Notes a key, one of few between two ticks: seldom are they all of the same kind, and where
    /// they are, or entries of several kinds come first, only time is lost.
    fn note_key(&self, key: &Key) {
        let (keys, noted) = (key.kind(), self.noted.load(Relaxed));
        match noted {
            EXACT => self.sample.reject(),
            NONE | SAMPLE => self.sample.note(keys),
            _ => {}
        }
        let next = match noted {
            NONE if keys == Kind::EXACT => EXACT,
            NONE => SAMPLE + (self.ticks % APART) as i8,
            EXACT | SAMPLE => WILD,
            _ => noted - 1,
        };
        self.noted.store(next, Relaxed);
        if keys != Kind::EXACT {
            self.wild_keys.store(self.wild_keys.load(Relaxed) | 1 << keys.cell(), Relaxed);
        }
    }

    /// Whether there have been few entries for some time.
    #[inline(always)]
    fn is_due(&self) -> bool {
        self.wait == 0
    }

    /// Whether it has room where there were at most so many entries since the last tick.
    #[inline(always)]
    fn has_room(&self, longest: usize, many_kinds: bool) -> bool {
        longest + GROUP <= self.good_for(many_kinds)
    }

    /// Whether there are more kinds of entries than so many.
    fn has_more_kinds<const THAN: usize>(&self, slots: &[Slot]) -> bool {
        let mut known = [Kind::EXACT; THAN];
        let mut len = 0;
        for place in Bits(self.entries.live) {
            let kind = slots[usize::from(self.entries.names[place])].kind();
            if !known[..len].contains(&kind) {
                if len == THAN {
                    return true;
                }
                known[len] = kind;
                len += 1;
            }
        }
        false
    }

    /// Finds out for how many entries it is good: more than few where there are many kinds of
    /// keys, or more of entries than have a class. Whether for so many.
    #[cold]
    fn find_room_for(&mut self, entries: usize, slots: &[Slot]) -> bool {
        let many_keys = self.wild_keys.get_mut().count_ones() >= MANY;
        self.most = self.good_for(many_keys || self.has_more_kinds::<CLASSES>(slots));
        entries <= self.most
    }

    /// Forgets which kinds there were.
    fn forget_kinds(&mut self) {
        self.most = self.few;
        *self.wild_keys.get_mut() = 0;
        self.ticks = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.entries.live.count_ones() as usize
    }

    /// How many entries are of the age of this one or older.
    pub(super) fn rank(&self, slot: &Slot) -> usize {
        (self.entries.live << (ROOM - 1 - usize::from(slot.links[HOME].bucket) % ROOM)).count_ones()
            as usize
    }

    /// The oldest entry that matches.
    #[inline(always)]
    pub(super) fn first<'a>(
        &self,
        kernel: Kernel,
        slots: &'a [Slot],
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        // The first is nearly always false where keys of several kinds come, the second is
        // not predicted there.
        let noted = self.noted.load(Relaxed);
        if noted > WILD && (noted != EXACT || !key.is_exact()) {
            return self.note_and_find(kernel, slots, key);
        }
        self.find(kernel, slots, key)
    }

    /// The same, and notes the key. Not a call between, for which registers would be saved.
    #[cold]
    #[inline(never)]
    fn note_and_find<'a>(
        &self,
        kernel: Kernel,
        slots: &'a [Slot],
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        self.note_key(key);
        self.find(kernel, slots, key)
    }

    /// The same, without a note.
    #[inline(always)]
    fn find<'a>(&self, kernel: Kernel, slots: &'a [Slot], key: &Key) -> Option<(u16, &'a Slot)> {
        let key = (key.bits, key.ignore, key.source.0);
        kernel::first_named(kernel, &self.entries, key, move |id| at(slots, id))
    }

    /// Puts an entry at a position.
    #[inline(always)]
    fn set(&mut self, at: usize, slots: &mut [Slot], id: u16) {
        let (at, slot) = (at % ROOM, &mut slots[usize::from(id)]);
        slot.stamp = slot.stamp.with_class(TRAY);
        slot.links[HOME].bucket = at as u16;
        self.entries.block.set(at, slot.bits, slot.ignore, slot.source);
        self.entries.names[at] = id;
    }

    /// Adds those of a nursery, for which there must be room, and notes if their kinds differ.
    #[inline(always)]
    fn push(&mut self, slots: &mut [Slot], ids: [u16; GROUP]) {
        let tail = self.tail;
        debug_assert!(tail + GROUP <= ROOM);
        let (mut ignore, mut source) = self.last;
        let mut differ = 0;
        for (at, id) in ids.into_iter().enumerate() {
            self.set(tail + at, slots, id);
            let slot = &slots[usize::from(id)];
            let any = u64::from(slot.source == Source::ANY.0);
            differ |= slot.ignore ^ ignore | any ^ source;
            (ignore, source) = (slot.ignore, any);
        }
        self.last = (ignore, source);
        if differ != 0 {
            self.note_several();
        }
        self.entries.live |= ((1 << GROUP) - 1) << tail;
        self.tail = tail + GROUP;
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: &Slot) {
        self.entries.live &= !(1 << (slot.links[HOME].bucket % ROOM as u16));
        if self.entries.live == 0 {
            self.tail = 0;
        }
    }

    /// Whether to close up before the next push: a step of positions has been used up, and
    /// there are as many holes.
    #[inline(always)]
    fn is_sparse(&self) -> bool {
        self.tail.is_multiple_of(STEP) && self.tail >= self.len() + STEP
    }

    /// Moves the entries together at the front.
    #[cold]
    fn close_up(&mut self, slots: &mut [Slot]) {
        let names = &mut self.entries.names;
        for (to, from) in Bits(self.entries.live).enumerate() {
            names[to] = names[from];
        }
        self.fill(slots, self.len());
    }

    /// Has the first so many names, and no others.
    fn fill(&mut self, slots: &mut [Slot], len: usize) {
        debug_assert!(len < ROOM);
        for at in 0..len {
            self.set(at, slots, self.entries.names[at]);
        }
        self.entries.live = !u64::MAX.checked_shl(len as u32).unwrap_or(0);
        self.tail = len.next_multiple_of(GROUP);
    }
}

impl Deep {
    /// Adds those of a nursery to the tray. If there are too many it is no longer in use.
    #[inline(never)]
    pub(super) fn insert_in_tray(&mut self, slots: &mut [Slot], grown: Nursery, taken: usize) {
        if taken > self.tray.most && !self.tray.find_room_for(taken, slots) {
            return self.outgrow_tray(slots, grown, PATIENCE);
        }
        if self.tray.is_sparse() {
            self.tray.close_up(slots);
        }
        if self.tray.tail == ROOM {
            // So it would be again before long.
            return self.outgrow_tray(slots, grown, REVIEW);
        }
        self.tray.push(slots, grown.all());
    }

    /// Adds those for which there is no room. The tray is left for so many ticks.
    #[cold]
    fn outgrow_tray(&mut self, slots: &mut [Slot], grown: Nursery, ticks: u32) {
        self.tray.wait = ticks;
        self.leave_tray(slots);
        self.insert_unusual(slots, grown);
    }

    /// Takes the tray into use if there are few entries, of several kinds.
    #[inline(never)]
    pub(super) fn consider_tray(&mut self, slots: &mut [Slot]) {
        if self.tray_suits() && (self.classes.are_several() || self.unclassed != 0) {
            self.enter_tray(slots);
        }
    }

    /// Whether the tray may be taken into use.
    #[inline(always)]
    pub(super) fn tray_suits(&self) -> bool {
        self.tray.is_due() && self.tray.has_room(self.longest, self.have_many_kinds())
    }

    /// Whether indexes for many kinds of keys are kept up, most entries have no class, or
    /// keys of several kinds are compared with entries of several kinds in the scan.
    #[inline(always)]
    fn have_many_kinds(&self) -> bool {
        self.awake.count_ones() >= MANY
            || self.unclassed > self.classes.len()
            || self.scan_keep.is_awake() && self.classes.has_wild()
    }

    /// Finds out whether the tray is still needed, and otherwise if it would suit; whether
    /// it is in use.
    pub(super) fn tick_tray(&mut self, slots: &mut [Slot], longest: usize) -> bool {
        let has_room = self.tray.has_room(longest, self.have_many_kinds());
        let tray = &mut self.tray;
        let noted = std::mem::replace(tray.noted.get_mut(), NONE);
        if tray.in_use {
            tray.ticks += 1;
            // Of several kinds that stay, none may have come since the last tick.
            let one_kind = noted != SEVERAL && !tray.has_more_kinds::<1>(slots);
            let uniform = one_kind && matches!(noted, NONE | EXACT);
            tray.uniform = if uniform { tray.uniform + 1 } else { 0 };
            if !one_kind {
                tray.sample.reject();
            }
            if self.tray.uniform == UNIFORM {
                self.leave_tray_for(slots, Kind::EXACT);
            } else if self.keys_are_alike(longest) {
                self.leave_tray_for(slots, self.tray.sample.keys());
            } else if self.tray.ticks == REVIEW {
                self.tray.forget_kinds();
                self.sleep_all_but_home();
            }
        } else if has_room {
            tray.wait = tray.wait.saturating_sub(1);
        } else {
            tray.wait = tray.wait.max(PATIENCE);
        }
        self.tray.in_use
    }

    /// Moves every entry from the indexes and the scan.
    #[cold]
    pub(super) fn enter_tray(&mut self, slots: &mut [Slot]) {
        // What searches have asked for they find in the tray.
        self.demand.take().for_each(drop);
        self.tray.forget_kinds();
        self.tray.most = self.tray.good_for(self.have_many_kinds());
        let len = self.in_order(slots).len();
        for at in 0..len {
            let id = self.order[at];
            self.remove_everywhere(slots, id, slots[usize::from(id)].stamp.class());
            self.tray.entries.names[at] = id;
        }
        self.tray.fill(slots, len);
        self.tray.in_use = true;
        self.tray.uniform = 0;
        self.note_unusual();
    }

    /// Whether for long all entries were exact and all keys of one kind, and there are enough for
    /// an index to be quicker.
    fn keys_are_alike(&self, longest: usize) -> bool {
        let tray = &self.tray;
        tray.sample.alike.load(Relaxed) >= ALIKE
            && longest > tray.few / 2
            && tray.last == (0, 0)
            && self.classes.exact().kind() == Kind::EXACT
    }

    /// Moves every entry to the home index, which serves keys of this kind. Nothing else is kept
    /// up.
    #[cold]
    fn leave_tray_for(&mut self, slots: &mut [Slot], keys: Kind) {
        self.tray.sample.reject();
        self.sleep_all_but_home();
        self.scan_keep.sleep();
        self.set_home(keys);
        self.leave_tray(slots);
    }

    /// Moves every entry to where it would be without a tray.
    fn leave_tray(&mut self, slots: &mut [Slot]) {
        let (ids, live) = (self.tray.entries.names, self.tray.entries.live);
        self.tray.entries.live = 0;
        self.tray.tail = 0;
        self.tray.in_use = false;
        self.note_unusual();
        for at in Bits(live) {
            self.insert_one_unusual(slots, ids[at]);
        }
    }

    /// Has the other indexes kept up no longer; they are empty. Keys may ask for them again.
    fn sleep_all_but_home(&mut self) {
        for which in 0..OTHERS {
            self.put_to_sleep(which);
        }
    }
}

#[cfg(test)]
#[path = "tray_tests.rs"]
mod tests;
