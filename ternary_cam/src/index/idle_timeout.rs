// SPDX-License-Identifier: BSD-2-Clause
//! The idle timeout after which the index drops a structure that only some searches need.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// State of a structure: maintained or not, and the number of inserts since a search used it.
#[derive(Default)]
pub(crate) struct IdleTimeout {
    active: bool,
    used: AtomicBool,
    /// Inserts since the last use, as of the last tick.
    idle_inserts: usize,
}

impl IdleTimeout {
    /// A structure is dropped after this many inserts without a search, plus
    /// [`IdleTimeout::PER_ENTRY`] for each entry. By then, maintaining it has cost more than
    /// building it again would.
    const LEAST: usize = 512;
    pub(crate) const PER_ENTRY: usize = 4;

    /// Creates the timeout of a structure that is maintained from the start.
    pub(crate) fn active() -> Self {
        Self { active: true, ..Self::default() }
    }

    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// Returns the number of inserts between the last use and the last tick; `usize::MAX` if the
    /// structure is not maintained.
    pub(crate) fn idle_inserts(&self) -> usize {
        match self.active {
            false => usize::MAX,
            true if self.used.load(Relaxed) => 0,
            true => self.idle_inserts,
        }
    }

    /// Notes a search.
    #[inline]
    pub(crate) fn note_use(&self) {
        self.used.store(true, Relaxed);
    }

    pub(crate) fn deactivate(&mut self) {
        self.active = false;
    }

    pub(crate) fn activate(&mut self) {
        self.active = true;
        self.idle_inserts = 0;
    }

    /// Counts inserts into a table of `len` entries. If no search has used the structure for long,
    /// deactivates it and returns true; the caller then drops it.
    #[inline]
    pub(crate) fn tick(&mut self, inserts: usize, len: usize) -> bool {
        if !self.active {
            return false;
        }
        if std::mem::take(self.used.get_mut()) {
            self.idle_inserts = 0;
        }
        self.idle_inserts += inserts;
        if self.idle_inserts <= Self::LEAST + Self::PER_ENTRY * len {
            return false;
        }
        self.active = false;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::IdleTimeout;

    #[test]
    fn an_unused_structure_is_dropped() {
        let mut timeout = IdleTimeout::active();
        let limit = IdleTimeout::LEAST + 10 * IdleTimeout::PER_ENTRY;
        for _ in 0..limit {
            assert!(!timeout.tick(1, 10));
        }
        timeout.note_use();
        assert!(!timeout.tick(limit, 10));
        assert!(timeout.tick(1, 10));
        assert!(!timeout.is_active());
        assert!(!timeout.tick(1, 10));
        timeout.activate();
        assert!(timeout.is_active());
    }
}
