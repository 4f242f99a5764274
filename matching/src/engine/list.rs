// SPDX-License-Identifier: BSD-2-Clause
//! `list`: one doubly linked list in age order, searched from the oldest, as
//! MPICH's posted and unexpected queues (src/mpid/ch4/src/ch4r_recvq.h, the paper's
//! baseline LL).
//!
//! ```text
//!         head                           tail
//!          |                              |
//!          v   next        next           v
//! nodes  [ 4 ]----->[ 0 ]----->  ...  ->[ 2 ]      unused: 1 -> 3 (by next)
//!              <-----      <-----
//!               prev        prev
//! ```

use super::{Engine, HostHandle, HostHit};
use crate::{Element, Key};

/// No node.
const NIL: u32 = u32::MAX;

struct Node {
    element: Element,
    age: u64,
    next: u32,
    prev: u32,
}

/// See the module. Nodes live in one vector that grows when more elements are
/// live than ever before, and are reused.
pub struct List {
    nodes: Vec<Node>,
    head: u32,
    tail: u32,
    unused: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { nodes: Vec::new(), head: NIL, tail: NIL, unused: NIL, len: 0 }
    }
}

impl List {
    fn walk(&self) -> impl Iterator<Item = (u32, &Node)> + '_ {
        let node = |index: u32| self.nodes.get(index as usize).map(|node| (index, node));
        std::iter::successors(node(self.head), move |(_, last)| node(last.next))
    }

    fn hit(index: u32, node: &Node) -> HostHit {
        HostHit { handle: HostHandle(index), token: node.element.token, age: node.age }
    }
}

impl Engine for List {
    fn insert(&mut self, element: Element, age: u64) -> HostHandle {
        let node = Node { element, age, next: NIL, prev: self.tail };
        let index = self.unused;
        let index = if index == NIL {
            let index = u32::try_from(self.nodes.len()).expect("fewer than 2^32 elements");
            self.nodes.push(node);
            index
        } else {
            self.unused = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        match self.tail {
            NIL => self.head = index,
            tail => self.nodes[tail as usize].next = index,
        }
        self.tail = index;
        self.len += 1;
        HostHandle(index)
    }

    fn first_match(&self, key: &Key) -> Option<HostHit> {
        self.walk()
            .find(|(_, node)| node.element.matches(key))
            .map(|(index, node)| Self::hit(index, node))
    }

    fn remove(&mut self, handle: HostHandle) -> Element {
        let index = handle.0;
        let node = &mut self.nodes[index as usize];
        let (element, next, prev) = (node.element, node.next, node.prev);
        node.next = self.unused;
        self.unused = index;
        match prev {
            NIL => self.head = next,
            prev => self.nodes[prev as usize].next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => self.nodes[next as usize].prev = prev,
        }
        self.len -= 1;
        element
    }

    fn oldest(&self) -> Option<HostHit> {
        self.nodes.get(self.head as usize).map(|node| Self::hit(self.head, node))
    }

    fn depth(&self, handle: HostHandle) -> usize {
        self.walk().position(|(index, _)| index == handle.0).map_or(0, |before| before + 1)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.walk().map(|(_, node)| (node.element.token, node.age))
    }
}
