// SPDX-License-Identifier: BSD-2-Clause
//! Pooled nodes and doubly linked queues of them, equivalent to the request pools and list macros
//! of the MPIs. A node is one cache line, like the matched fields of a request.

use ternary_cam::{Entry, Key, Source};

pub(crate) const NIL: u32 = u32::MAX;

/// A pooled request.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Node {
    pub(crate) entry: Entry,
    /// Insertion number.
    pub(crate) age: u64,
    pub(crate) next: u32,
    pub(crate) prev: u32,
}

/// A pool of nodes. The unused nodes are linked by `next`, last freed first.
pub(crate) struct Slab {
    pub(crate) nodes: Vec<Node>,
    unused: u32,
    age: u64,
}

impl Slab {
    pub(crate) fn new(capacity: usize) -> Self {
        let entry = Entry { bits: 0, ignore: 0, source: Source::ANY, token: 0 };
        let last = capacity as u32 - 1;
        let node = |index| Node {
            entry,
            age: 0,
            next: if index == last { NIL } else { index + 1 },
            prev: NIL,
        };
        Self { nodes: (0..=last).map(node).collect(), unused: 0, age: 0 }
    }

    #[inline]
    pub(crate) fn take(&mut self, entry: Entry) -> u32 {
        let index = self.unused;
        let node = &mut self.nodes[index as usize];
        self.unused = node.next;
        node.entry = entry;
        node.age = self.age;
        self.age += 1;
        index
    }

    #[inline]
    pub(crate) fn give_back(&mut self, index: u32) {
        self.nodes[index as usize].next = self.unused;
        self.unused = index;
    }
}

/// A queue of nodes in age order.
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    pub(crate) head: u32,
    tail: u32,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { head: NIL, tail: NIL };

    #[inline]
    pub(crate) fn push(&mut self, slab: &mut Slab, index: u32) {
        let node = &mut slab.nodes[index as usize];
        (node.next, node.prev) = (NIL, self.tail);
        match self.tail {
            NIL => self.head = index,
            tail => slab.nodes[tail as usize].next = index,
        }
        self.tail = index;
    }

    #[inline]
    pub(crate) fn unlink(&mut self, slab: &mut Slab, index: u32) {
        let Node { next, prev, .. } = slab.nodes[index as usize];
        match prev {
            NIL => self.head = next,
            prev => slab.nodes[prev as usize].next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => slab.nodes[next as usize].prev = prev,
        }
    }

    /// Returns the oldest node that matches, or [`NIL`].
    #[inline]
    pub(crate) fn find(&self, slab: &Slab, key: &Key) -> u32 {
        let mut at = self.head;
        while at != NIL {
            let node = &slab.nodes[at as usize];
            if node.entry.matches(key) {
                break;
            }
            at = node.next;
        }
        at
    }
}
