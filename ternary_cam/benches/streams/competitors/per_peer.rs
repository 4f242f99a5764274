// SPDX-License-Identifier: BSD-2-Clause
//! The queue of Open MPI's ob1: one list per source rank and one list of any-source receives. The
//! older match of both wins (ompi/mca/pml/ob1/pml_ob1_recvfrag.c, match_one). An any-source key
//! searches every list.

use super::slab::{NIL, Queue, Slab};
use crate::matcher::Matcher;
use ternary_cam::{Entry, Key};

pub(crate) struct PerPeer {
    slab: Slab,
    /// Indexed by source; the last queue holds the any-source entries.
    queues: Vec<Queue>,
}

impl PerPeer {
    pub(crate) fn new(capacity: usize, sources: usize) -> Self {
        Self { slab: Slab::new(capacity), queues: vec![Queue::EMPTY; sources + 1] }
    }

    #[inline(always)]
    fn queue_of(&self, entry: &Entry) -> usize {
        entry.source.get().map_or(self.queues.len() - 1, |source| source as usize)
    }

    #[inline(always)]
    fn older(&self, a: u32, b: u32) -> u32 {
        match (a, b) {
            (NIL, other) | (other, NIL) => other,
            (a, b) if self.slab.nodes[a as usize].age < self.slab.nodes[b as usize].age => a,
            (_, b) => b,
        }
    }

    #[inline(always)]
    fn find_node(&self, key: &Key) -> u32 {
        match key.source.get() {
            Some(source) => {
                let any = self.queues[self.queues.len() - 1].find(&self.slab, key);
                self.older(self.queues[source as usize].find(&self.slab, key), any)
            }
            None => self
                .queues
                .iter()
                .map(|queue| queue.find(&self.slab, key))
                .fold(NIL, |best, node| self.older(best, node)),
        }
    }
}

impl Matcher for PerPeer {
    #[inline(always)]
    fn insert(&mut self, entry: Entry) {
        let queue = self.queue_of(&entry);
        let index = self.slab.take(entry);
        self.queues[queue].push(&mut self.slab, index);
    }

    #[inline(always)]
    fn take(&mut self, key: &Key) -> Option<u32> {
        let index = self.find_node(key);
        if index == NIL {
            return None;
        }
        let entry = self.slab.nodes[index as usize].entry;
        let queue = self.queue_of(&entry);
        self.queues[queue].unlink(&mut self.slab, index);
        self.slab.give_back(index);
        Some(entry.token)
    }

    #[inline(always)]
    fn find(&self, key: &Key) -> Option<u32> {
        match self.find_node(key) {
            NIL => None,
            index => Some(self.slab.nodes[index as usize].entry.token),
        }
    }
}
