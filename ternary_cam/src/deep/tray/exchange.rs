// SPDX-License-Identifier: BSD-2-Clause
//! Entries move to the tray, and from it to the indexes and the scan.

use super::policy::{ENTER_AFTER, REVIEW};
use super::room::POSITIONS;
use crate::bits::Bits;
use crate::deep::parts::Deep;
use crate::nursery::Nursery;
use crate::slot::Slot;

impl Deep {
    /// Adds those of a nursery to the tray. If there are too many it is no longer in use.
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
            // So it would be again before long.
            return self.outgrow_tray(slots, nursery, REVIEW);
        }
        self.tray.push(slots, nursery.all());
    }

    /// Adds those for which there is no room. The tray is left for so many ticks.
    #[cold]
    fn outgrow_tray(&mut self, slots: &mut [Slot], nursery: Nursery, ticks: u32) {
        self.tray.policy.wait(ticks);
        self.leave_tray(slots);
        self.insert_general(slots, nursery);
    }

    /// Moves every entry from the indexes and the scan.
    #[cold]
    pub(in crate::deep) fn enter_tray(&mut self, slots: &mut [Slot]) {
        // What searches have wished for they find in the tray.
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

    /// Moves every entry to where it would be without a tray.
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
