// SPDX-License-Identifier: BSD-2-Clause
//! A hash index of a long queue's elements without wildcards in tag or source.
//!
//! ```text
//! heads      [  3  |  -  |  8  |  -  ]          a place per bucket, `NO_PLACE` if empty
//!               |           |
//!               3 -> 5      8 -> 2             sibling: the oldest element of another key
//!              / \
//!             4 - 7                            ring of the elements with the key of 3, each
//!                                              to the next younger, the youngest to the oldest
//! ```
//!
//! The oldest element of a key is found through its bucket alone, however many elements have the
//! same key. The removal of an element visits at most the oldest elements of the other keys in its
//! bucket.

use super::page::NO_PLACE;

/// Buckets per cache line.
pub(super) const LINE: u64 = 16;

/// Selects a bucket. Consecutive keys should share a cache line, since they usually come one after
/// the other.
#[derive(Clone, Copy)]
pub(super) struct Hash {
    /// Hash that selects the cache line. Its high bits are mixed best.
    pub(super) line: u64,
    /// Bucket within the line, below [`LINE`].
    pub(super) within: u64,
}

/// The links of an element, indexed by its place.
#[derive(Clone, Copy)]
struct ExactNode {
    /// The next younger element with the same key; for the youngest, the oldest.
    next: u32,
    /// The next older element with the same key; for the oldest, the youngest.
    prev: u32,
    /// For the oldest element of a key: the oldest of another key in the same bucket.
    sibling: u32,
}

/// The index; see the module.
#[derive(Default)]
pub(super) struct Exact {
    /// Length is a power of two.
    heads: Vec<u32>,
    nodes: Vec<ExactNode>,
}

impl Exact {
    /// Makes room for this many places. If the index grows, it is empty afterwards.
    pub(super) fn make_room(&mut self, places: usize) {
        if self.nodes.len() < places {
            self.heads = vec![NO_PLACE; places.next_power_of_two().max(2 * LINE as usize)];
            self.nodes = vec![ExactNode { next: 0, prev: 0, sibling: 0 }; places];
        }
    }

    #[inline]
    fn bucket(&self, Hash { line, within }: Hash) -> usize {
        let lines = self.heads.len() as u64 / LINE;
        ((line >> (u64::BITS - lines.trailing_zeros())) * LINE + within) as usize
    }

    /// Clears the bucket of a hash.
    pub(super) fn clear(&mut self, hash: Hash) {
        let bucket = self.bucket(hash);
        self.heads[bucket] = NO_PLACE;
    }

    /// The oldest element with a key; `same` returns true if an element has the key.
    #[inline]
    pub(super) fn oldest(&self, hash: Hash, same: impl Fn(u32) -> bool) -> Option<u32> {
        let mut head = self.heads[self.bucket(hash)];
        while head != NO_PLACE && !same(head) {
            head = self.nodes[head as usize].sibling;
        }
        (head != NO_PLACE).then_some(head)
    }

    /// All elements with the key of `oldest`, in age order.
    #[inline]
    pub(super) fn ring(&self, oldest: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(oldest), move |&at| {
            Some(self.nodes[at as usize].next).filter(|&next| next != oldest)
        })
    }

    /// Adds the youngest element. `oldest` is the oldest element of its key, if there is one.
    #[inline]
    pub(super) fn push(&mut self, hash: Hash, at: u32, oldest: Option<u32>) {
        let Some(oldest) = oldest else {
            let bucket = self.bucket(hash);
            let sibling = std::mem::replace(&mut self.heads[bucket], at);
            self.nodes[at as usize] = ExactNode { next: at, prev: at, sibling };
            return;
        };
        let youngest = std::mem::replace(&mut self.nodes[oldest as usize].prev, at);
        self.nodes[youngest as usize].next = at;
        self.nodes[at as usize] = ExactNode { next: oldest, prev: youngest, sibling: NO_PLACE };
    }

    /// Removes an element.
    #[inline]
    pub(super) fn remove(&mut self, hash: Hash, at: u32) {
        let ExactNode { next, prev, sibling } = self.nodes[at as usize];
        let alone = next == at;
        if !alone {
            self.nodes[prev as usize].next = next;
            self.nodes[next as usize].prev = prev;
        }
        let successor = if alone { sibling } else { next };
        let bucket = self.bucket(hash);
        let mut head = self.heads[bucket];
        if head == at {
            self.heads[bucket] = successor;
        } else {
            // Finds the oldest element of another key whose sibling is this element. There is none
            // if this element is not the oldest of its key.
            while head != NO_PLACE && self.nodes[head as usize].sibling != at {
                head = self.nodes[head as usize].sibling;
            }
            if head == NO_PLACE {
                return;
            }
            self.nodes[head as usize].sibling = successor;
        }
        if !alone {
            self.nodes[next as usize].sibling = sibling;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses few buckets for many keys, and removes elements in random order.
    #[test]
    fn rings_share_buckets() {
        const PLACES: u32 = 64;
        let mut random = 1_u32;
        let mut below = |n: usize| {
            random = random.wrapping_mul(0x915f_77f5).wrapping_add(1);
            (random >> 16) as usize % n
        };
        for keys in [1, 2, 5, 64] {
            let mut exact = Exact::default();
            exact.make_room(PLACES as usize);
            // The keys share four buckets.
            let hash =
                |key: usize| Hash { line: (key as u64 & 1) << 63, within: key as u64 / 2 % 2 };
            let mut key_of = vec![usize::MAX; PLACES as usize];
            let mut live: Vec<u32> = Vec::new();
            let mut free: Vec<u32> = (0..PLACES).collect();
            for _ in 0..if cfg!(miri) { 300 } else { 20_000 } {
                if below(2) == 0 && !free.is_empty() {
                    let (at, key) = (free.swap_remove(below(free.len())), below(keys));
                    let oldest = exact.oldest(hash(key), |at| key_of[at as usize] == key);
                    exact.push(hash(key), at, oldest);
                    key_of[at as usize] = key;
                    live.push(at);
                } else if !live.is_empty() {
                    let at = live.remove(below(live.len()));
                    exact.remove(hash(key_of[at as usize]), at);
                    free.push(at);
                }
                let key = below(keys);
                let mine = |&at: &u32| key_of[at as usize] == key;
                let expected: Vec<u32> = live.iter().copied().filter(mine).collect();
                let oldest = exact.oldest(hash(key), |at| mine(&at));
                let found: Vec<u32> = oldest.into_iter().flat_map(|at| exact.ring(at)).collect();
                assert_eq!(found, expected);
            }
        }
    }
}
