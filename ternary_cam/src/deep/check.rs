// SPDX-License-Identifier: BSD-2-Clause
//! What holds between two operations, for tests.

use super::others::links;
use super::{Deep, HOME};
use crate::age_log::Bits;
use crate::classes::{TRAY, UNCLASSED};
use crate::pattern::EXACT;
use crate::slot::Slot;

impl Deep {
    /// Every entry is where its class says, and what is usual is so.
    pub(crate) fn check(&self, slots: &[Slot]) {
        let classes = || self.slots(slots).map(|(_, slot)| slot.stamp.class());
        let classed = classes().filter(|class| ![TRAY, UNCLASSED].contains(class)).count();
        let exact = classes().filter(|&class| class == EXACT).count();
        let pattern_of = |slot: &Slot| match slot.stamp.class() {
            EXACT => &self.home.pattern,
            class => self.classes.pattern(class),
        };
        assert_eq!(self.home.index.check(slots, HOME, pattern_of), classed);
        for which in Bits(self.awake.into()) {
            let other = &self.others[which];
            assert_eq!(other.index.check(slots, links(which), |_| &other.pattern), exact);
        }
        self.classes.check();
        let usual = self.classes.usual();
        if usual.holds(self.classes.state()) {
            assert_eq!(self.home.keys, usual.keys);
            for (_, slot) in self.slots(slots) {
                assert_eq!((slot.stamp.class(), slot.kind()), (usual.class, usual.entries));
            }
            self.home.index.check(slots, HOME, |_| &usual.pattern);
        }
    }
}
