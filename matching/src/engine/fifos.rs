// SPDX-License-Identifier: BSD-2-Clause
//! A hash table that maps each key to a queue: the elements with this key, in the order of their
//! insertion.
//!
//! ```text
//! buckets    first        first          chain: first elements whose hashes share a bucket
//!   [0] ---> [ 7 ] -----> [ 2 ]
//!   [1]       |  ^
//!   [2]       v  |        next, prev: elements of one key, in a ring: `prev` of the first
//!            [ 9 ]        element is the last one, so an element is added without a search
//! ```
//!
//! Elements are numbers chosen by the caller, which also compares keys. The links lie in an array
//! indexed by number. The buckets are doubled when there are more keys than buckets.
//!
//! Rejected: the elements of all keys of a bucket in one chain, as in UCX. This needs no ring, but
//! one long queue slows down every key that shares its bucket.

/// No element.
const NIL: u32 = u32::MAX;
/// Value of `chain` for an element that is not the first of its key.
const BEHIND: u32 = u32::MAX - 1;

/// The links of an element.
#[derive(Clone, Copy)]
struct FifoLink {
    hash: u32,
    next: u32,
    prev: u32,
    chain: u32,
}

const UNUSED: FifoLink = FifoLink { hash: 0, next: NIL, prev: NIL, chain: BEHIND };

/// Minimum number of buckets.
const FEWEST: usize = 16;

/// The table; see the module.
#[derive(Default)]
pub(super) struct Fifos {
    /// A power of two of buckets, or none before the first insertion.
    buckets: Vec<u32>,
    /// Indexed by element.
    links: Vec<FifoLink>,
    keys: usize,
}

impl Fifos {
    #[inline]
    const fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// The first element of a key, if there is one. `same` must return true if an element has this
    /// key; it is called for the first elements of keys with this hash until it returns true.
    #[inline]
    pub(super) fn first(&self, hash: u32, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.keys == 0 {
            return None;
        }
        let mut at = self.buckets[self.bucket(hash)];
        while let Some(link) = self.links.get(at as usize) {
            if link.hash == hash && same(at) {
                return Some(at);
            }
            at = link.chain;
        }
        None
    }

    /// The next element of the same key; `None` after the last one.
    #[inline]
    pub(super) fn next(&self, at: u32) -> Option<u32> {
        let next = self.links[at as usize].next;
        (self.links[next as usize].chain == BEHIND).then_some(next)
    }

    /// An element and the elements of its key after it.
    pub(super) fn from(&self, first: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(first, |&at| self.next(at))
    }

    /// Adds the youngest element of a key; `same` as for [`first`](Self::first).
    #[inline]
    pub(super) fn append(&mut self, at: u32, hash: u32, same: impl FnMut(u32) -> bool) {
        if at as usize >= self.links.len() {
            self.widen(at as usize);
        }
        if let Some(first) = self.first(hash, same) {
            let last = self.links[first as usize].prev;
            self.links[at as usize] = FifoLink { hash, next: first, prev: last, chain: BEHIND };
            self.links[last as usize].next = at;
            self.links[first as usize].prev = at;
            return;
        }
        if self.keys >= self.buckets.len() {
            self.grow();
        }
        self.keys += 1;
        let bucket = self.bucket(hash);
        let chain = std::mem::replace(&mut self.buckets[bucket], at);
        self.links[at as usize] = FifoLink { hash, next: at, prev: at, chain };
    }

    /// Removes an element.
    #[inline]
    pub(super) fn remove(&mut self, at: u32) {
        let FifoLink { hash, next, prev, chain } = self.links[at as usize];
        self.links[prev as usize].next = next;
        self.links[next as usize].prev = prev;
        if chain == BEHIND {
            return;
        }
        let heir = if next == at { chain } else { next };
        if next == at {
            self.keys -= 1;
        } else {
            self.links[next as usize].chain = chain;
        }
        let bucket = self.bucket(hash);
        if self.buckets[bucket] == at {
            self.buckets[bucket] = heir;
            return;
        }
        let mut before = self.buckets[bucket];
        while self.links[before as usize].chain != at {
            before = self.links[before as usize].chain;
        }
        self.links[before as usize].chain = heir;
    }

    #[cold]
    fn widen(&mut self, at: usize) {
        self.links.resize((at + 1).next_power_of_two().max(FEWEST), UNUSED);
    }

    #[cold]
    fn grow(&mut self) {
        let count = (self.buckets.len() * 2).max(FEWEST);
        let old = std::mem::replace(&mut self.buckets, vec![NIL; count]);
        for mut first in old {
            while first != NIL {
                let FifoLink { hash, chain, .. } = self.links[first as usize];
                let bucket = self.bucket(hash);
                self.links[first as usize].chain = self.buckets[bucket];
                self.buckets[bucket] = first;
                first = chain;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Adds and removes elements, with several keys per hash and several elements per key.
        #[test]
        fn elements_of_a_key_come_in_order(
            ops in prop::collection::vec((0..40_u32, any::<bool>(), 0..8_usize), 0..400)
        ) {
            let mut fifos = Fifos::default();
            let mut expected: HashMap<u32, Vec<u32>> = HashMap::new();
            let mut keys: Vec<Option<u32>> = Vec::new();
            for (key, add, pick) in ops {
                let hash = key % 7;
                let queue = expected.entry(key).or_default();
                if add {
                    let at = keys.iter().position(Option::is_none).unwrap_or(keys.len());
                    keys.resize(keys.len().max(at + 1), None);
                    keys[at] = Some(key);
                    fifos.append(at as u32, hash, |other| keys[other as usize] == Some(key));
                    queue.push(at as u32);
                } else if !queue.is_empty() {
                    let at = queue.remove(pick % queue.len());
                    fifos.remove(at);
                    keys[at as usize] = None;
                }
                for (key, queue) in &expected {
                    let first = fifos.first(key % 7, |at| keys[at as usize] == Some(*key));
                    prop_assert!(fifos.from(first).eq(queue.iter().copied()), "{key}");
                }
            }
            prop_assert_eq!(fifos.keys, expected.values().filter(|queue| !queue.is_empty()).count());
        }
    }
}
