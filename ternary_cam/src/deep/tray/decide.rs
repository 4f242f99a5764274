// SPDX-License-Identifier: BSD-2-Clause
//! Decides by the policy whether the tray is in use.

use std::sync::atomic::Ordering::Relaxed;

use super::policy::{ALIKE, ENTER_AFTER, LEAVE_AFTER, LastEntry, MANY, Noting, REVIEW};
use crate::deep::parts::Deep;
use crate::deep::side::SIDE_INDEXES;
use crate::slot::Slot;
use crate::wildcards::Wildcards;

impl Deep {
    /// Takes the tray into use if there are few entries, of several kinds.
    #[inline(never)]
    pub(in crate::deep) fn consider_tray(&mut self, slots: &mut [Slot]) {
        if self.tray_suits() && (self.classes.are_several() || self.unclassed != 0) {
            self.enter_tray(slots);
        }
    }

    /// Returns true if the tray may be taken into use.
    #[inline(always)]
    pub(in crate::deep) fn tray_suits(&self) -> bool {
        let policy = &self.tray.policy;
        policy.wait == 0 && policy.has_room(self.peak, self.have_many_kinds())
    }

    /// Returns true if indexes for many kinds of keys are kept up, if most entries have no class,
    /// or if the scan compares keys of several kinds with entries of several kinds.
    #[inline(always)]
    pub(super) fn have_many_kinds(&self) -> bool {
        self.awake.count_ones() >= MANY
            || self.unclassed > self.classes.len()
            || self.scan_keep.is_awake() && self.classes.has_wild()
    }

    /// If the tray is in use, leaves it if it is no longer needed; otherwise checks whether it
    /// would suit. Returns true if it is in use.
    pub(in crate::deep) fn tick_tray(&mut self, slots: &mut [Slot], peak: usize) -> bool {
        let noting = std::mem::replace(self.tray.policy.noting.get_mut(), Noting::NONE.0);
        if !self.tray.in_use {
            let has_room = self.tray.policy.has_room(peak, self.have_many_kinds());
            let wait = &mut self.tray.policy.wait;
            *wait = if has_room { wait.saturating_sub(1) } else { ENTER_AFTER.max(*wait) };
            return false;
        }
        let noting = Noting(noting);
        // Entries of several kinds may stay although none was added since the last tick.
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

    /// Returns true if for long all entries were exact and all keys of one kind, and there are
    /// enough entries for an index to be faster.
    fn keys_are_alike(&self, peak: usize) -> bool {
        let policy = &self.tray.policy;
        policy.sample.alike.load(Relaxed) >= ALIKE
            && peak > policy.few / 2
            && policy.last == LastEntry::default()
            && self.classes.base().wildcards() == Wildcards::NONE
    }

    /// Moves all entries to the home index, which then serves keys of this kind. No other structure
    /// is kept up.
    #[cold]
    fn leave_tray_for(&mut self, slots: &mut [Slot], keys: Wildcards) {
        self.tray.policy.sample.reject();
        self.sleep_all_but_home();
        self.scan_keep.sleep();
        self.set_home(keys);
        self.leave_tray(slots);
    }

    /// Stops keeping up the side indexes, which are empty. Keys may request them again.
    fn sleep_all_but_home(&mut self) {
        for which in 0..SIDE_INDEXES {
            self.put_to_sleep(which);
        }
    }
}
