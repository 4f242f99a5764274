// SPDX-License-Identifier: BSD-2-Clause
//! Checks invariants between two operations, for tests.

use super::parts::{Deep, entries};
use crate::bits::Bits;
use crate::slot::{Class, Slot};

impl Deep {
    /// Checks that every entry is where its class says, and that a uniform queue is uniform.
    pub(crate) fn check(&self, slots: &[Slot]) {
        let classes = || entries(self.slots_used(slots)).map(|(_, slot)| slot.stamp.class());
        let classed = classes().filter(|class| ![Class::TRAY, Class::NONE].contains(class)).count();
        let base = classes().filter(|&class| class == Class::BASE).count();
        let under = |slot: &Slot| match slot.stamp.class() {
            Class::BASE => (Class::BASE, &self.home.pattern),
            class => (class, self.classes.pattern(class)),
        };
        assert_eq!(self.home.index.check(slots, under), classed);
        for which in Bits(self.awake.into()) {
            let side = &self.side[which];
            assert_eq!(side.rings.check(slots, &side.pattern), base);
        }
        self.classes.check();
        let uniform = self.classes.uniform();
        if uniform.holds(self.classes.state()) {
            assert_eq!(self.home.keys, uniform.keys);
            for (_, slot) in entries(self.slots_used(slots)) {
                assert_eq!(
                    (slot.stamp.class(), slot.wildcards()),
                    (uniform.class, uniform.entries)
                );
            }
            self.home.index.check(slots, |_| (uniform.class, &uniform.pattern));
        }
    }
}
