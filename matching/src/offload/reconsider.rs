// SPDX-License-Identifier: BSD-2-Clause
//! `auto`: what is on the host moves to the engine that was chosen.

use super::{Location, Offload};
use crate::Element;
use crate::engine::{Engine, HostEngine};

impl Offload {
    /// Before an element goes to the host: moves what is there to another engine, if one suits
    /// what comes better.
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
        let mut host = self.plan.make(engine).expect("the kernel was there before");
        let all: Vec<_> = self.host.iter().collect();
        for (token, age) in all {
            let Location::Host { handle, .. } = &mut self.locations[token as usize] else {
                unreachable!("the host's elements are on the host");
            };
            *handle = host.insert(self.host.element(*handle), age);
        }
        self.host = host;
    }
}
