// SPDX-License-Identifier: BSD-2-Clause
//! Moves entries to the tray, and from it to the indexes and the scan.

use super::policy::{ENTER_AFTER, REVIEW};
use super::room::POSITIONS;
use crate::bits::Bits;
use crate::deep::parts::Deep;
use crate::nursery::Nursery;
use crate::slot::Slot;

impl Deep {
    /// Adds the entries of a nursery to the tray. If there are too many, the tray is left.
    #[inline(never)]
    pub(in crate::deep) fn insert_in_tray(
        &mut self,
        slots: &mut [Slot],
        nursery: Nursery,
        taken: usize,
    ) {
        if !self.tray.has_room_for(taken, slots) {
            return self.outgrow_tray(slots, nursery, ENTER_AFTER);
        }
        if self.tray.is_sparse() {
            self.tray.close_up(slots);
        }
        if self.tray.tail == POSITIONS {
            // After closing up, it would be full again soon.
            return self.outgrow_tray(slots, nursery, REVIEW);
        }
        self.tray.push(slots, nursery.all());
    }

    /// Leaves the tray for this many ticks, because the entries do not fit.
    #[cold]
    fn outgrow_tray(&mut self, slots: &mut [Slot], nursery: Nursery, ticks: u32) {
        self.tray.policy.wait(ticks);
        self.leave_tray(slots);
        self.insert_general(slots, nursery);
    }

    /// Moves all entries from the indexes and the scan to the tray.
    #[cold]
    pub(in crate::deep) fn enter_tray(&mut self, slots: &mut [Slot]) {
        // The tray serves all keys that searches requested structures for.
        self.wishes.take().for_each(drop);
        self.tray.policy.enter(self.have_many_kinds());
        let len = self.in_order(slots).len();
        for at in 0..len {
            let id = self.order[at];
            self.remove_everywhere(slots, id, slots[usize::from(id)].stamp.class());
            self.tray.entries.ids[at] = id;
        }
        self.tray.fill(slots, len);
        self.tray.in_use = true;
        self.refresh_state();
    }

    /// Moves all entries to the structures that contain them without a tray.
    pub(super) fn leave_tray(&mut self, slots: &mut [Slot]) {
        let (ids, live) = (self.tray.entries.ids, self.tray.entries.live);
        self.tray.entries.live = 0;
        self.tray.tail = 0;
        self.tray.in_use = false;
        self.refresh_state();
        for at in Bits(live) {
            self.insert_one(slots, ids[at]);
        }
    }
}
