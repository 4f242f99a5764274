// SPDX-License-Identifier: BSD-2-Clause
//! Storage of the engines with more than one queue: linked lists that share
//! their nodes, and one list of all of them in age order.
//!
//! ```text
//! queue 0    head -> [ 4 ] ----------------> [ 2 ] <- tail
//! queue 1    head -----------> [ 0 ] <- tail
//! all        head -> [ 4 ] --> [ 0 ] ------> [ 2 ] <- tail
//! ```
//!
//! Every list is in age order, because elements come in age order. So a search
//! takes the first match of each queue that may hold one, the oldest of them
//! wins, and a queue whose head is younger than what was found is not walked.

use super::{HostHandle, HostHit};
use crate::{Element, Key};

/// No node.
const NIL: u32 = u32::MAX;

/// Neighbours of a node in one list.
#[derive(Clone, Copy)]
struct Links {
    next: u32,
    prev: u32,
}

struct Node {
    element: Element,
    age: u64,
    queue: u32,
    all: Links,
    own: Links,
}

/// First and last node of a list.
#[derive(Clone, Copy)]
struct Ends {
    head: u32,
    tail: u32,
}

const EMPTY: Ends = Ends { head: NIL, tail: NIL };

/// See the module.
pub(super) struct Queues {
    nodes: Vec<Node>,
    queues: Vec<Ends>,
    all: Ends,
    unused: u32,
    len: usize,
}

/// Which of a node's links a list uses.
type Which = fn(&mut Node) -> &mut Links;

fn append(nodes: &mut [Node], ends: &mut Ends, index: u32, which: Which) {
    *which(&mut nodes[index as usize]) = Links { next: NIL, prev: ends.tail };
    match ends.tail {
        NIL => ends.head = index,
        tail => which(&mut nodes[tail as usize]).next = index,
    }
    ends.tail = index;
}

fn unlink(nodes: &mut [Node], ends: &mut Ends, index: u32, which: Which) {
    let Links { next, prev } = *which(&mut nodes[index as usize]);
    match prev {
        NIL => ends.head = next,
        prev => which(&mut nodes[prev as usize]).next = next,
    }
    match next {
        NIL => ends.tail = prev,
        next => which(&mut nodes[next as usize]).prev = prev,
    }
}

impl Queues {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), queues: Vec::new(), all: EMPTY, unused: NIL, len: 0 }
    }

    /// Makes sure that there are queues 0 to `count - 1`.
    pub(super) fn ensure(&mut self, count: usize) {
        if count > self.queues.len() {
            self.queues.resize(count, EMPTY);
        }
    }

    /// Queues there are, empty ones too.
    pub(super) fn count(&self) -> usize {
        self.queues.len()
    }

    /// Appends an element, the youngest of all, to a queue.
    pub(super) fn insert(&mut self, queue: usize, element: Element, age: u64) -> HostHandle {
        let none = Links { next: NIL, prev: NIL };
        let node = Node { element, age, queue: queue as u32, all: none, own: none };
        let index = match self.unused {
            NIL => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 elements")
            }
            index => {
                self.unused = self.nodes[index as usize].own.next;
                self.nodes[index as usize] = node;
                index
            }
        };
        append(&mut self.nodes, &mut self.queues[queue], index, |node| &mut node.own);
        append(&mut self.nodes, &mut self.all, index, |node| &mut node.all);
        self.len += 1;
        HostHandle(index)
    }

    /// Takes an element out of its queue.
    pub(super) fn remove(&mut self, handle: HostHandle) -> Element {
        let index = handle.0;
        let Node { element, queue, .. } = self.nodes[index as usize];
        unlink(&mut self.nodes, &mut self.queues[queue as usize], index, |node| &mut node.own);
        unlink(&mut self.nodes, &mut self.all, index, |node| &mut node.all);
        self.nodes[index as usize].own.next = self.unused;
        self.unused = index;
        self.len -= 1;
        element
    }

    /// The older of `best` and the first match of a queue.
    pub(super) fn older_match(
        &self,
        queue: usize,
        key: &Key,
        best: Option<HostHit>,
    ) -> Option<HostHit> {
        let mut index = self.queues.get(queue).map_or(NIL, |ends| ends.head);
        while let Some(node) = self.nodes.get(index as usize) {
            if best.is_some_and(|best| best.age < node.age) {
                break;
            }
            if node.element.matches(key) {
                return Some(hit(index, node));
            }
            index = node.own.next;
        }
        best
    }

    /// The oldest element of all.
    pub(super) fn oldest(&self) -> Option<HostHit> {
        self.nodes.get(self.all.head as usize).map(|node| hit(self.all.head, node))
    }

    /// Rank by age of an element, from 1.
    pub(super) fn depth(&self, handle: HostHandle) -> usize {
        self.walk().position(|(index, _)| index == handle.0).map_or(0, |before| before + 1)
    }

    /// Elements in all queues.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Tokens and ages, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.walk().map(|(_, node)| (node.element.token, node.age))
    }

    fn walk(&self) -> impl Iterator<Item = (u32, &Node)> + '_ {
        let node = |index: u32| self.nodes.get(index as usize).map(|node| (index, node));
        std::iter::successors(node(self.all.head), move |(_, last)| node(last.all.next))
    }
}

fn hit(index: u32, node: &Node) -> HostHit {
    HostHit { handle: HostHandle(index), token: node.element.token, age: node.age }
}
