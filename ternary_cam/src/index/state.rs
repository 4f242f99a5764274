// SPDX-License-Identifier: BSD-2-Clause
//! The state of a table, one byte that every operation reads first.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::slot::Class;

/// Maximum number of classes, since a search probes once for each class with entries. Classes after
/// the pairs have arbitrary patterns; entries of further patterns go to the scan.
pub(crate) const CLASSES: usize = 6;

// Flags lie above the classes.
const _: () = assert!(1 << CLASSES <= TableState::WILD_KEYS.0);

/// A bit for each class with entries, and two flags.
///
/// ```text
/// 7            6           5        0
/// [ extra work | wild keys | classes ]
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableState(u8);

impl TableState {
    /// No entries and no flags.
    pub(crate) const EMPTY: Self = Self(0);
    /// Only entries of the base class, and no flags.
    pub(crate) const ONLY_BASE: Self = Self(1);
    /// Flag: an index, or the small set, serves keys with wildcards.
    pub(crate) const WILD_KEYS: Self = Self(1 << 6);
    /// Flag: inserts and removes must update more than the primary index, or fulfil a request.
    pub(crate) const EXTRA_WORK: Self = Self(1 << 7);

    /// Returns a bitmap: bit `i` is set if class `i` has entries.
    #[inline(always)]
    pub(crate) const fn live(self) -> u8 {
        self.0 & (Self::WILD_KEYS.0 - 1)
    }

    #[inline(always)]
    pub(crate) const fn with_class(self, class: Class) -> Self {
        Self(self.0 | 1 << class.pattern())
    }

    #[inline(always)]
    pub(crate) const fn without_class(self, class: Class) -> Self {
        Self(self.0 & !(1 << class.pattern()))
    }

    #[inline(always)]
    pub(crate) const fn has_flags(self) -> bool {
        self.0 >= Self::WILD_KEYS.0
    }

    #[inline(always)]
    pub(crate) const fn has_extra_work(self) -> bool {
        self.0 & Self::EXTRA_WORK.0 != 0
    }

    /// Returns a state with these classes and exactly these flags.
    pub(crate) const fn with_flags(self, wild_keys: bool, extra_work: bool) -> Self {
        let wild_keys = if wild_keys { Self::WILD_KEYS.0 } else { 0 };
        let extra_work = if extra_work { Self::EXTRA_WORK.0 } else { 0 };
        Self(self.live() | wild_keys | extra_work)
    }
}

/// The state of a table, in which searches can raise [`TableState::EXTRA_WORK`]. The state is a
/// byte, because the byte store that sets a bit cannot be forwarded to a wider load.
pub(crate) struct StateCell(AtomicU8);

impl StateCell {
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(TableState::EMPTY.0))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> TableState {
        TableState(self.0.load(Relaxed))
    }

    #[inline(always)]
    pub(crate) fn change(&mut self, change: impl FnOnce(TableState) -> TableState) {
        let state = self.0.get_mut();
        *state = change(TableState(*state)).0;
    }

    /// Raises [`TableState::EXTRA_WORK`]. Concurrent searches may raise the flag as well, but
    /// [`StateCell::change`] has exclusive access, so no update is lost.
    pub(crate) fn raise_extra_work(&self) {
        if !self.get().has_extra_work() {
            self.0.fetch_or(TableState::EXTRA_WORK.0, Relaxed);
        }
    }
}
