// SPDX-License-Identifier: BSD-2-Clause
//! The queue of MPICH: one linked list, searched from the oldest entry
//! (src/mpid/ch4/src/mpidig_recvq.c and libfabric's shared receive queues).

use super::slab::{NIL, Queue, Slab};
use crate::matcher::Matcher;
use ternary_cam::{Entry, Key};

pub(crate) struct List {
    slab: Slab,
    queue: Queue,
}

impl List {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { slab: Slab::new(capacity), queue: Queue::EMPTY }
    }
}

impl Matcher for List {
    #[inline(always)]
    fn insert(&mut self, entry: Entry) {
        let index = self.slab.take(entry);
        self.queue.push(&mut self.slab, index);
    }

    #[inline(always)]
    fn take(&mut self, key: &Key) -> Option<u32> {
        let index = self.queue.find(&self.slab, key);
        if index == NIL {
            return None;
        }
        let token = self.slab.nodes[index as usize].entry.token;
        self.queue.unlink(&mut self.slab, index);
        self.slab.give_back(index);
        Some(token)
    }

    #[inline(always)]
    fn find(&self, key: &Key) -> Option<u32> {
        match self.queue.find(&self.slab, key) {
            NIL => None,
            index => Some(self.slab.nodes[index as usize].entry.token),
        }
    }
}
