// SPDX-License-Identifier: BSD-2-Clause
//! `linked`: linked lists that share their nodes, and one list of all nodes in age order, as in the
//! papers.
//!
//! ```text
//! queue 0    head -> [ 4 ] ----------------> [ 2 ] <- tail
//! queue 1    head -----------> [ 0 ] <- tail
//! all        head -> [ 4 ] --> [ 0 ] ------> [ 2 ] --> [ 1 ] <- tail
//!                                                        ^ unplaced
//! ```
//!
//! A queue whose head is younger than the best match so far is not searched.

use super::contract::{Best, Lookup, Queues};
use crate::engine::hit::{HostHandle, HostHit};
use crate::{Element, Key};

/// No node, no queue.
const NIL: u32 = u32::MAX;

/// Indexes of the lists that contain a node: the list of all nodes, and the list of its queue.
const ALL: usize = 0;
const OWN: usize = 1;

/// Number of oldest elements that are compared before many queues are searched.
const NEAR: usize = 100;

/// An element, with everything that is needed while it is in no queue.
struct ListNode {
    element: Element,
    age: u64,
    next: [u32; 2],
    /// The previous node in the list of all.
    prev: u32,
    queue: u32,
}

/// First node, last node and length of a list.
#[derive(Clone, Copy)]
struct Ends {
    head: u32,
    tail: u32,
    len: u32,
}

const EMPTY: Ends = Ends { head: NIL, tail: NIL, len: 0 };

/// The storage; see the module.
pub struct Linked {
    nodes: Vec<ListNode>,
    /// The previous node of each node in its queue.
    own_prev: Vec<u32>,
    queues: Vec<Ends>,
    all: Ends,
    /// Youngest element with a queue; the elements after it have no queue.
    placed: u32,
    unused: u32,
}

impl Default for Linked {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            own_prev: Vec::new(),
            queues: Vec::new(),
            all: EMPTY,
            placed: NIL,
            unused: NIL,
        }
    }
}

impl Linked {
    /// The number by which engines with separate tables identify an element. Numbers are small and
    /// are reused after a removal.
    pub(crate) const fn index(handle: HostHandle) -> u32 {
        handle.0 as u32
    }

    /// The number of the element that a search found; `None` if it found none.
    pub(crate) fn number(found: Best) -> Option<u32> {
        (found.at != NIL).then_some(found.at)
    }

    /// The element with a number.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> &Element {
        &self.nodes[index as usize].element
    }

    /// The age of the element with a number.
    #[inline]
    pub(crate) fn age(&self, index: u32) -> u64 {
        self.nodes[index as usize].age
    }

    /// Converts an element for callers outside the storage.
    #[inline]
    pub(crate) fn hit_at(&self, index: u32) -> HostHit {
        hit(index, &self.nodes[index as usize])
    }

    fn next_unplaced(&self) -> u32 {
        self.nodes.get(self.placed as usize).map_or(self.all.head, |node| node.next[ALL])
    }

    /// The oldest match among the `limit` oldest elements, if there is one.
    fn match_within(&self, limit: usize, key: &Key) -> Option<Best> {
        let mut walk = self.walk(self.all.head, ALL).take(limit);
        walk.find(|(_, node)| node.element.matches(key)).map(|(index, node)| best(index, node))
    }

    fn leave_queue(&mut self, index: u32) {
        let node = &self.nodes[index as usize];
        let next = node.next[OWN];
        if self.placed == index {
            self.placed = node.prev;
        }
        let ends = &mut self.queues[node.queue as usize];
        let prev = self.own_prev[index as usize];
        ends.len -= 1;
        match prev {
            NIL => ends.head = next,
            prev => self.nodes[prev as usize].next[OWN] = next,
        }
        match next {
            NIL => ends.tail = prev,
            next => self.own_prev[next as usize] = prev,
        }
    }

    fn walk(&self, head: u32, list: usize) -> impl Iterator<Item = (u32, &ListNode)> + '_ {
        let node = |index: u32| self.nodes.get(index as usize).map(|node| (index, node));
        std::iter::successors(node(head), move |(_, last)| node(last.next[list]))
    }
}

impl Lookup for Linked {
    type Probe<'k> = &'k Key;

    #[inline]
    fn probe<'k>(&self, key: &'k Key) -> &'k Key {
        key
    }

    fn count(&self) -> usize {
        self.queues.len()
    }

    #[inline]
    fn older_match(&self, queue: usize, key: &&Key, oldest: Best) -> Best {
        let mut index = self.queues.get(queue).map_or(NIL, |ends| ends.head);
        while let Some(node) = self.nodes.get(index as usize) {
            if node.age > oldest.age {
                break;
            }
            if node.element.matches(key) {
                return best(index, node);
            }
            index = node.next[OWN];
        }
        oldest
    }

    fn profiled(&self, queue: usize, best: Best) -> u64 {
        self.compared(queue, best)
    }

    #[inline]
    fn oldest_match(&self, key: &&Key) -> Best {
        let mut index = self.all.head;
        while let Some(node) = self.nodes.get(index as usize) {
            if node.element.matches(key) {
                return best(index, node);
            }
            index = node.next[ALL];
        }
        Best::NONE
    }

    fn oldest_match_in(
        &self,
        count: usize,
        queues: impl Iterator<Item = usize>,
        key: &&Key,
    ) -> Best {
        if count >= self.len() {
            return self.oldest_match(key);
        }
        let near = self.match_within(NEAR, key);
        let fold = || queues.fold(Best::NONE, |best, queue| self.older_match(queue, key, best));
        near.unwrap_or_else(fold)
    }

    #[inline]
    fn prefers_list(&self, short: usize, _: bool) -> bool {
        self.len() <= short
    }
}

impl Queues for Linked {
    const LIST: usize = 32;

    fn ensure(&mut self, count: usize) {
        if count > self.queues.len() {
            self.queues.resize(count, EMPTY);
        }
    }

    #[inline]
    fn push(&mut self, element: Element, age: u64) -> HostHandle {
        let tail = self.all.tail;
        let node = ListNode { element, age, next: [NIL; 2], prev: tail, queue: NIL };
        let index = match self.unused {
            NIL => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 elements")
            }
            index => {
                self.unused = self.nodes[index as usize].next[ALL];
                self.nodes[index as usize] = node;
                index
            }
        };
        match tail {
            NIL => self.all.head = index,
            tail => self.nodes[tail as usize].next[ALL] = index,
        }
        self.all.tail = index;
        self.all.len += 1;
        handle(index)
    }

    fn unplaced(&self) -> Option<HostHandle> {
        let next = self.next_unplaced();
        (next != NIL).then_some(handle(next))
    }

    #[inline]
    fn element(&self, handle: HostHandle) -> &Element {
        &self.nodes[handle.0 as usize].element
    }

    fn handle_of(&self, token: u32) -> Option<HostHandle> {
        let mut walk = self.walk(self.all.head, ALL);
        walk.find(|(_, node)| node.element.token == token).map(|(index, _)| handle(index))
    }

    #[inline]
    fn place(&mut self, handle: HostHandle, queue: usize) {
        debug_assert_eq!(self.unplaced(), Some(handle), "older elements are placed first");
        let index = handle.0 as u32;
        self.placed = index;
        self.nodes[index as usize].queue = queue as u32;
        let ends = &mut self.queues[queue];
        if self.own_prev.len() < self.nodes.len() {
            self.own_prev.resize(self.nodes.capacity(), NIL);
        }
        self.own_prev[index as usize] = ends.tail;
        match ends.tail {
            NIL => ends.head = index,
            tail => self.nodes[tail as usize].next[OWN] = index,
        }
        ends.tail = index;
        ends.len += 1;
    }

    #[inline]
    fn remove(&mut self, handle: HostHandle, leaves: impl FnOnce(&Element, usize)) {
        let index = handle.0 as u32;
        let node = &self.nodes[index as usize];
        if node.queue != NIL {
            leaves(&node.element, node.queue as usize);
            self.leave_queue(index);
        }
        let node = &mut self.nodes[index as usize];
        let (next, prev) = (node.next[ALL], node.prev);
        node.next[ALL] = self.unused;
        self.unused = index;
        match prev {
            NIL => self.all.head = next,
            prev => self.nodes[prev as usize].next[ALL] = next,
        }
        match next {
            NIL => self.all.tail = prev,
            next => self.nodes[next as usize].prev = prev,
        }
        self.all.len -= 1;
    }

    fn compared(&self, queue: usize, best: Best) -> u64 {
        let walk = self.walk(self.queues[queue].head, OWN);
        walk.take_while(|(_, node)| node.age <= best.age).count() as u64
    }

    fn traversed_in(
        &self,
        count: usize,
        queues: impl Iterator<Item = usize>,
        key: &&Key,
        found: Best,
    ) -> u64 {
        let of_all = self.traversed_of_all(found);
        if count >= self.len() || of_all <= NEAR as u64 {
            return of_all;
        }
        let of_queues = queues.fold((Best::NONE, NEAR as u64), |(best, sum), queue| {
            let best = self.older_match(queue, key, best);
            (best, sum + self.compared(queue, best))
        });
        of_queues.1
    }

    #[inline]
    fn hit(&self, best: Best) -> Option<HostHit> {
        self.nodes.get(best.at as usize).map(|node| hit(best.at, node))
    }

    fn len_of(&self, queue: usize) -> usize {
        self.queues[queue].len as usize
    }

    fn elements(&self, queue: usize) -> impl Iterator<Item = &Element> + '_ {
        self.walk(self.queues[queue].head, OWN).map(|(_, node)| &node.element)
    }

    fn oldest(&self) -> Option<HostHit> {
        self.nodes.get(self.all.head as usize).map(|node| hit(self.all.head, node))
    }

    fn depth(&self, handle: HostHandle) -> usize {
        let mut walk = self.walk(self.all.head, ALL);
        walk.position(|(index, _)| u64::from(index) == handle.0).map_or(0, |before| before + 1)
    }

    fn len(&self) -> usize {
        self.all.len as usize
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.walk(self.all.head, ALL).map(|(_, node)| (node.element.token, node.age))
    }
}

fn handle(index: u32) -> HostHandle {
    HostHandle(index.into())
}

fn hit(index: u32, node: &ListNode) -> HostHit {
    HostHit { handle: handle(index), token: node.element.token, age: node.age }
}

const fn best(index: u32, node: &ListNode) -> Best {
    Best { at: index, age: node.age }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    /// Searches of several queues compare the oldest elements first, then each queue up to the age
    /// of the match.
    #[test]
    fn a_search_of_several_queues_traverses_the_oldest_and_then_each_queue() {
        const LEN: usize = 300;
        let queue_of = |rank: usize| rank * 7 % 3;
        let mut linked = Linked::default();
        linked.ensure(3);
        for rank in 0..LEN {
            let token = rank as u32;
            let element = Element { bits: rank as u64, ignore: 0, source: Source::ANY, token };
            linked.insert(queue_of(rank), element, rank as u64);
        }
        for rank in [0, 50, NEAR - 1, NEAR, NEAR + 1, 177, 298, LEN] {
            let key = Key { bits: rank as u64, ignore: 0, source: Source::ANY };
            let expected = (rank < LEN).then_some(rank as u32);
            let traversed = |count: usize, queues: [usize; 3]| {
                let found = linked.oldest_match_in(count, queues.into_iter(), &&key);
                assert_eq!(Linked::number(found), expected, "{rank}");
                linked.traversed_in(count, queues.into_iter(), &&key, found)
            };
            let of_all = LEN.min(rank + 1) as u64;
            assert_eq!(traversed(LEN, [0, 1, 2]), of_all);
            for queues in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
                let mut sum = NEAR;
                let mut youngest = LEN;
                for queue in queues {
                    if queue_of(rank) == queue {
                        youngest = rank;
                    }
                    let compared = |&at: &usize| queue_of(at) == queue && at <= youngest;
                    sum += (0..LEN).filter(compared).count();
                }
                let expected = if rank < NEAR { of_all } else { sum as u64 };
                assert_eq!(traversed(3, queues), expected, "{rank} {queues:?}");
                assert_eq!(traversed(LEN - 1, queues), expected, "{rank} {queues:?}");
            }
        }
        assert!(linked.prefers_list(LEN, true) && !linked.prefers_list(LEN - 1, false));
    }
}
