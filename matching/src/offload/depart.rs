// SPDX-License-Identifier: BSD-2-Clause
//! Removal of elements, and promotion of others.

use super::{Found, Location, Offload, Place, Stay};

impl Offload {
    /// Removes the element that the last [`Offload::search`] found, and promotes into the entry
    /// that frees. Returns false if there is no such element.
    ///
    /// An element that the last search did not find counts as cancelled.
    #[inline(always)]
    pub fn remove_matched(&mut self, token: u32) -> bool {
        if self.matched.is_none_or(|found| found.token != token) {
            return self.cancel(token);
        }
        self.matched = None;
        self.take(token).is_some()
    }

    /// Leaves the element that the last [`Offload::search`] found in place: a multi-receive buffer
    /// with room left.
    #[inline]
    pub fn keep_matched(&mut self, token: u32) {
        debug_assert!(
            self.matched.is_some_and(|found| found.token == token),
            "the last search did not find token {token}"
        );
        self.settle();
    }

    /// Removes an element without a match: a cancelled receive or a dropped message. Returns false
    /// if there is no such element.
    pub fn cancel(&mut self, token: u32) -> bool {
        self.settle();
        if self.observed {
            self.observe_cancel(token);
        }
        let place = self.take(token);
        match place {
            Some(Place::Table) => self.counters.table_cancels += 1,
            Some(Place::Host) => self.counters.host_cancels += 1,
            None => {}
        }
        place.is_some()
    }

    /// Counts a match that was not removed as kept.
    #[inline]
    pub(super) fn settle(&mut self) {
        let matched = self.matched.take();
        if let (Some(_), Some(curve)) = (matched, &mut self.curve) {
            curve.keep();
        }
        match matched {
            None => {}
            Some(Found { place: Place::Table, .. }) => self.counters.table_kept += 1,
            Some(Found { place: Place::Host, .. }) => self.counters.host_kept += 1,
        }
    }

    /// Frees the place of an element and promotes.
    #[inline(always)]
    fn take(&mut self, token: u32) -> Option<Place> {
        if self.observed {
            self.observe_departure(token);
        }
        let location = self.locations.get_mut(token as usize)?;
        match std::mem::replace(location, Location::Nowhere) {
            Location::Nowhere => None,
            Location::Host { handle, stay } => {
                let refused = stay != Stay::No;
                self.remove_from_host(handle);
                self.refused -= usize::from(refused);
                self.waiting -= usize::from(!refused);
                if self.overflow.promotes() && (refused || self.pool.is_some()) {
                    // If an older element must stay, those behind it go on waiting.
                    let _ = self.promote_waiting();
                }
                Some(Place::Host)
            }
            Location::Table { handle, .. } => {
                self.remove_from_table(handle);
                if !self.plain || self.waiting > 0 {
                    let _ = self.pass_on();
                }
                Some(Place::Table)
            }
        }
    }
}
