// SPDX-License-Identifier: BSD-2-Clause
//! Removes entries.

use super::parts::Deep;
use crate::slot::{Class, Slot};

impl Deep {
    /// Fulfils wishes if entries are removed while they are still in the nursery.
    #[inline(always)]
    pub(crate) fn fulfil_if_pending(&mut self, slots: &mut [Slot]) {
        if self.classes.state().has_extra_work() && self.wishes.are_pending() {
            self.fulfil(slots);
        }
    }

    /// Removes an entry.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slots: &mut [Slot], id: u16, class: Class) {
        if self.classes.state().has_extra_work() {
            if class == Class::TRAY {
                return self.tray.remove(&slots[usize::from(id)]);
            }
            return self.remove_everywhere(slots, id, class);
        }
        self.classes.leave(class);
        self.home.index.remove(slots, id);
    }

    /// Removes an entry if there are structures besides the home index.
    #[inline(never)]
    pub(super) fn remove_everywhere(&mut self, slots: &mut [Slot], id: u16, class: Class) {
        if class == Class::NONE {
            self.scan.remove(id);
            self.unclassed -= 1;
            if self.unclassed == 0 {
                self.refresh_state();
            }
            return;
        }
        self.classes.leave(class);
        self.home.index.remove(slots, id);
        if class == Class::BASE {
            self.remove_from_side(id);
        }
        if self.scan_keep.is_awake() {
            self.scan.remove(id);
        }
        if self.wishes.are_pending() {
            self.fulfil(slots);
        }
    }
}
