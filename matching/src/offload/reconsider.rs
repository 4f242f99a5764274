// SPDX-License-Identifier: BSD-2-Clause
//! `auto`: moves the elements on the host to the chosen engine.

use super::{Location, Offload};
use crate::Element;
use crate::engine::{Engine, HostEngine};

impl Offload {
    /// Called before an element goes to the host. Moves the elements there to another engine if one
    /// suits the traffic better.
    #[inline]
    pub(super) fn reconsider(&mut self, element: &Element) {
        let length = self.on_host();
        let Some(chooser) = &mut self.chooser else { return };
        if let Some(engine) = chooser.note_element(element, length) {
            self.move_to(engine);
        }
    }

    #[cold]
    fn move_to(&mut self, engine: HostEngine) {
        let mut host = self.plan.make(engine).expect("the kernel was accepted before");
        let all: Vec<_> = self.host.iter().collect();
        for (token, age) in all {
            let Location::Host { handle, .. } = &mut self.locations[token as usize] else {
                unreachable!("the host's elements have a place on the host");
            };
            *handle = host.insert(self.host.element(*handle), age);
        }
        self.host = host;
    }
}
