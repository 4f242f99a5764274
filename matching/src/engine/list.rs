// SPDX-License-Identifier: BSD-2-Clause
//! `list`: one queue in age order, searched from the oldest, like the posted and unexpected queues
//! of MPICH (src/mpid/ch4/src/ch4r_recvq.h). On linked storage, it is the baseline LL of the paper.

use super::{
    contract::Engine,
    hit::{HostHandle, HostHit},
    queue::Queues,
};
use crate::{Element, Key};

/// The engine; see the module. It uses the storage's list of all elements and puts no element into
/// a queue.
pub struct List<Q>(Q);

impl<Q: Queues> List<Q> {
    /// Creates an engine on an empty storage.
    pub const fn new(queues: Q) -> Self {
        Self(queues)
    }
}

impl<Q: Queues> Engine for List<Q> {
    type Storage = Q;

    fn storage(&self) -> &Q {
        &self.0
    }

    #[inline(always)]
    fn insert(&mut self, element: Element, age: u64) -> HostHandle {
        self.0.push(element, age)
    }

    #[inline(always)]
    fn first_match(&self, key: &Key) -> Option<HostHit> {
        self.0.hit(self.0.oldest_match_of(key))
    }

    #[inline(always)]
    fn remove(&mut self, handle: HostHandle) {
        self.0.remove(handle, |_, _| {});
    }

    fn traversed(&self, key: &Key) -> u64 {
        self.0.traversed_of_all(self.0.oldest_match_of(key))
    }
}
