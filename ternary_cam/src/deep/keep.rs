// SPDX-License-Identifier: BSD-2-Clause
//! Idle timeout of a structure that only some searches need.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether a structure is kept up, and how long no search has used it.
#[derive(Default)]
pub(crate) struct Keep {
    awake: bool,
    used: AtomicBool,
    /// Inserts since the last use.
    idle: usize,
}

impl Keep {
    /// A structure is dropped after this many inserts without a search, plus [`Keep::PER_ENTRY`]
    /// for each entry. Building it again then costs less than keeping it up has cost.
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

    /// Inserts since the last search; `usize::MAX` if the structure is not kept up.
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

    /// Counts inserts into a table of `len` entries. Drops the structure if no search has used it
    /// for long. Returns true if it was just dropped.
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
    use super::Keep;

    #[test]
    fn an_unused_structure_is_dropped() {
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
