// SPDX-License-Identifier: BSD-2-Clause
//! Uniform queues, in which one pattern serves all entries and keys. The crate documentation
//! (lib.rs) defines kind, class and pattern.

use crate::index::pattern::Pattern;
use crate::index::state::TableState;
use crate::slot::Class;
use crate::wildcards::Wildcards;

/// The common kind of all entries and keys, if one pattern serves them: entries of one class with
/// exact keys, or exact entries with keys of one kind. Most queues are like this most of the time,
/// and no other path is faster. Keys of other kinds are served by secondary indexes.
#[derive(Clone, Copy)]
pub(crate) struct Uniform {
    /// The state in which all entries are of this kind; [`TableState::EMPTY`] if there is no such
    /// state.
    pub(crate) state: TableState,
    /// Equal to `state` if inserts update only the primary index and secondary indexes; otherwise
    /// [`TableState::EMPTY`].
    pub(crate) insert_state: TableState,
    /// Equal to `state` if searches need not leave the request
    /// [`RebuildRequest::PrimaryUsed`](crate::index::rebuild_requests::RebuildRequest); otherwise
    /// [`TableState::EMPTY`].
    pub(crate) quiet_state: TableState,
    pub(crate) class: Class,
    pub(crate) entries: Wildcards,
    pub(crate) keys: Wildcards,
    pub(crate) pattern: Pattern,
}

impl Uniform {
    /// A value that holds in no state with entries.
    pub(crate) const NOTHING: Self = Self {
        state: TableState::EMPTY,
        insert_state: TableState::EMPTY,
        quiet_state: TableState::EMPTY,
        class: Class::BASE,
        entries: Wildcards::NONE,
        keys: Wildcards::NONE,
        pattern: Pattern::EXACT,
    };

    /// Returns true if all entries are of this kind in `state`, which has entries.
    #[inline(always)]
    pub(crate) fn holds(&self, state: TableState) -> bool {
        state == self.state
    }

    /// Returns true if [`Uniform::holds`] is true, and no search needs to leave the request
    /// [`RebuildRequest::PrimaryUsed`](crate::index::rebuild_requests::RebuildRequest).
    #[inline(always)]
    pub(crate) fn holds_quietly(&self, state: TableState) -> bool {
        state == self.quiet_state
    }

    /// Returns true if all entries are of this kind after an entry of this kind is added in
    /// `state`, and if the insert updates only the primary index and secondary indexes.
    #[inline(always)]
    pub(crate) fn will_hold(&self, state: TableState) -> bool {
        state.with_class(self.class) == self.insert_state
    }

    /// Returns true if the entries are exact.
    #[inline(always)]
    pub(crate) fn are_exact(&self) -> bool {
        self.class == Class::BASE && self.entries.ignore == 0
    }

    /// Returns true if the entries are of the base class and the keys are exact.
    #[inline(always)]
    pub(crate) fn is_base(&self) -> bool {
        self.state == TableState::ONLY_BASE
    }
}
