// SPDX-License-Identifier: BSD-2-Clause
//! What searches ask for, noted without changing the table.
//!
//! A search takes the table by shared reference, so it cannot build what it
//! misses. It leaves a note; the next insert or remove acts on it. Notes are
//! relaxed atomics (plain stores on every processor we know): they steer cost,
//! never an answer, so a torn or lost one does no harm.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::pattern::Kind;

/// Searches with one kind of key before something is built for it: kinds that all
/// differ must not build one each.
const PATIENCE: u64 = 4;

/// Kinds counted at a time.
const CELLS: usize = 8;

/// Bits of a cell that count; the others recognise the kind.
const COUNT: u64 = 0xff;

/// What to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// What serves keys of this kind.
    Keys(Kind),
    /// The scan, for keys that nothing else serves.
    Mirror,
    /// That the home index serves keys of one kind only.
    Apart,
    /// That searches with what are usual keys leave no more notes.
    NoNotes,
}

/// Notes of searches. See the module.
#[derive(Default)]
pub(crate) struct Demand {
    pending: AtomicBool,
    mirror: AtomicBool,
    apart: AtomicBool,
    usual: AtomicBool,
    keys: AtomicBool,
    ignore: AtomicU64,
    any_source: AtomicBool,
    cells: [AtomicU64; CELLS],
}

impl Demand {
    /// Notes that a key that nothing else serves found no scan either.
    #[cold]
    pub(crate) fn wish_mirror(&self) {
        self.mirror.store(true, Relaxed);
        self.pending.store(true, Relaxed);
    }

    /// Notes that keys of two kinds in the home index are in each other's way.
    #[cold]
    pub(crate) fn wish_apart(&self) {
        self.apart.store(true, Relaxed);
        self.pending.store(true, Relaxed);
    }

    /// Notes that there was a search with a key that is usual.
    #[cold]
    pub(crate) fn note_usual(&self) {
        self.usual.store(true, Relaxed);
        self.pending.store(true, Relaxed);
    }

    /// Counts a search with a kind of key that nothing serves, and wishes for that when there
    /// have been enough.
    #[cold]
    pub(crate) fn count_keys(&self, kind: Kind) -> bool {
        let mixed = kind.hash();
        let cell = &self.cells[(mixed >> 56) as usize % CELLS];
        let known = cell.load(Relaxed);
        let count = if (known ^ mixed) & !COUNT == 0 { (known & COUNT) + 1 } else { 1 };
        if count < PATIENCE {
            cell.store(mixed & !COUNT | count, Relaxed);
            return false;
        }
        cell.store(0, Relaxed);
        self.ignore.store(kind.ignore, Relaxed);
        self.any_source.store(kind.any_source, Relaxed);
        self.keys.store(true, Relaxed);
        self.pending.store(true, Relaxed);
        true
    }

    /// Whether there is a note to act on.
    #[inline]
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Relaxed)
    }

    /// Takes every note.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Wish> + use<> {
        *self.pending.get_mut() = false;
        let kind = Kind { ignore: *self.ignore.get_mut(), any_source: *self.any_source.get_mut() };
        [
            std::mem::take(self.keys.get_mut()).then_some(Wish::Keys(kind)),
            std::mem::take(self.mirror.get_mut()).then_some(Wish::Mirror),
            std::mem::take(self.apart.get_mut()).then_some(Wish::Apart),
            std::mem::take(self.usual.get_mut()).then_some(Wish::NoNotes),
        ]
        .into_iter()
        .flatten()
    }
}

/// Whether a structure is kept up, and since when nobody has used it.
#[derive(Default)]
pub(crate) struct Keep {
    awake: bool,
    used: AtomicBool,
    /// Inserts since the last use.
    idle: usize,
}

impl Keep {
    /// Inserts without a search after which a structure is dropped, above
    /// [`Keep::PER_ENTRY`] for each entry: building it again then costs less than
    /// keeping it up has.
    const LEAST: usize = 512;
    pub(crate) const PER_ENTRY: usize = 4;

    /// A structure that is kept up from the start.
    pub(crate) fn awake() -> Self {
        Self { awake: true, ..Self::default() }
    }

    #[inline]
    pub(crate) fn is_awake(&self) -> bool {
        self.awake
    }

    /// Inserts since the last search, without end while asleep.
    pub(crate) fn idle(&self) -> usize {
        match self.awake {
            false => usize::MAX,
            true if self.used.load(Relaxed) => 0,
            true => self.idle,
        }
    }

    /// Notes a search.
    #[inline]
    pub(crate) fn note_use(&self) {
        self.used.store(true, Relaxed);
    }

    pub(crate) fn sleep(&mut self) {
        self.awake = false;
    }

    pub(crate) fn wake(&mut self) {
        self.awake = true;
        self.idle = 0;
    }

    /// Counts inserts; whether the structure, in a table of `len` entries, is to be
    /// dropped, which has happened then.
    #[inline]
    pub(crate) fn tick(&mut self, inserts: usize, len: usize) -> bool {
        if !self.awake {
            return false;
        }
        if std::mem::take(self.used.get_mut()) {
            self.idle = 0;
        }
        self.idle += inserts;
        if self.idle <= Self::LEAST + Self::PER_ENTRY * len {
            return false;
        }
        self.awake = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Demand, Keep, Kind, PATIENCE, Wish};

    #[test]
    fn a_repeated_kind_is_wished_for_and_different_ones_are_not() {
        let mut demand = Demand::default();
        for ignore in 0..1000 {
            assert!(!demand.count_keys(Kind { ignore, any_source: false }));
        }
        assert!(!demand.is_pending());
        let kind = Kind { ignore: 7, any_source: true };
        for count in 1..=PATIENCE {
            assert!(!demand.is_pending());
            assert_eq!(demand.count_keys(kind), count == PATIENCE);
        }
        assert!(demand.is_pending());
        assert!(demand.take().eq([Wish::Keys(kind)]));
        assert!(!demand.is_pending());
        assert_eq!(demand.take().count(), 0);
    }

    #[test]
    fn what_nobody_uses_is_dropped() {
        let mut keep = Keep::awake();
        let limit = Keep::LEAST + 10 * Keep::PER_ENTRY;
        for _ in 0..limit {
            assert!(!keep.tick(1, 10));
        }
        keep.note_use();
        assert!(!keep.tick(limit, 10));
        assert!(keep.tick(1, 10));
        assert!(!keep.is_awake());
        assert!(!keep.tick(1, 10));
        keep.wake();
        assert!(keep.is_awake());
    }
}
