// SPDX-License-Identifier: BSD-2-Clause
//! Queues in which one pattern serves all entries and keys.

use crate::deep::pattern::Pattern;
use crate::deep::state::State;
use crate::slot::Class;
use crate::wildcards::Wildcards;

/// What all entries and all keys are, where one pattern serves them: entries of one class and
/// exact keys, or exact entries and keys of one kind. Most queues are like this most of the
/// time, and nothing is quicker. Keys of other kinds are served beside these.
#[derive(Clone, Copy)]
pub(crate) struct Uniform {
    /// The state in which all entries are these; [`State::EMPTY`] if none is.
    pub(crate) state: State,
    /// The same where inserts have nothing to care for but the home index and side indexes;
    /// otherwise [`State::EMPTY`].
    pub(crate) insert_state: State,
    /// The same where searches need not wish for [`crate::deep::wishes::Wish::HomeUsed`];
    /// otherwise [`State::EMPTY`].
    pub(crate) quiet_state: State,
    pub(crate) class: Class,
    pub(crate) entries: Wildcards,
    pub(crate) keys: Wildcards,
    pub(crate) pattern: Pattern,
}

impl Uniform {
    /// Holds for no entry.
    pub(crate) const NOTHING: Self = Self {
        state: State::EMPTY,
        insert_state: State::EMPTY,
        quiet_state: State::EMPTY,
        class: Class::BASE,
        entries: Wildcards::NONE,
        keys: Wildcards::NONE,
        pattern: Pattern::EXACT,
    };

    /// Whether all entries are these in `state`, which has entries.
    #[inline(always)]
    pub(crate) fn holds(&self, state: State) -> bool {
        state == self.state
    }

    /// The same, and a search need not wish for [`crate::deep::wishes::Wish::HomeUsed`].
    #[inline(always)]
    pub(crate) fn holds_quietly(&self, state: State) -> bool {
        state == self.quiet_state
    }

    /// Whether all entries are these once one of them was added in this state, to the home index
    /// and side indexes alone.
    #[inline(always)]
    pub(crate) fn will_hold(&self, state: State) -> bool {
        state.with_class(self.class) == self.insert_state
    }

    /// Whether the entries are exact.
    #[inline(always)]
    pub(crate) fn are_exact(&self) -> bool {
        self.class == Class::BASE && self.entries.ignore == 0
    }

    /// Whether the entries are of the base class and keys are exact.
    #[inline(always)]
    pub(crate) fn is_base(&self) -> bool {
        self.state == State::ONLY_BASE
    }
}
