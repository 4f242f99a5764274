// SPDX-License-Identifier: BSD-2-Clause
//! The queue of UCX: 1021 hash buckets of lists for exact entries, and one list for entries with
//! wildcards. The older match wins. Unexpected messages are in a bucket and in a list of all
//! messages, which a key with wildcards searches (src/ucp/tag/tag_match.{h,c,inl}).

use super::slab::{NIL, Queue, Slab};
use crate::matcher::Matcher;
use ternary_cam::{Entry, Key, Source};

/// `UCP_TAG_MATCH_HASH_SIZE`.
const BUCKETS: u64 = 1021;

/// The kind of queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Posted receives: a bucket, or the wildcard list.
    Posted,
    /// Unexpected messages: a bucket and the list of all.
    Unexpected,
}

pub(crate) struct Ucx {
    queue: Use,
    slab: Slab,
    buckets: Vec<Queue>,
    /// For [`Use::Posted`], the entries with wildcards; for [`Use::Unexpected`], all entries.
    list: Queue,
    /// For [`Use::Unexpected`]: the nodes of `list`. The token of each is the number of the entry's
    /// node in `slab`.
    all: Slab,
    /// For [`Use::Unexpected`], indexed by node of `slab`: the entry's node in `all`.
    list_node: Vec<u32>,
}

impl Ucx {
    pub(crate) fn new(capacity: usize, unexpected: bool) -> Self {
        Self {
            queue: if unexpected { Use::Unexpected } else { Use::Posted },
            slab: Slab::new(capacity),
            buckets: vec![Queue::EMPTY; BUCKETS as usize],
            list: Queue::EMPTY,
            all: Slab::new(capacity),
            list_node: vec![NIL; capacity],
        }
    }

    /// Returns the bucket. UCX packs the source rank into the tag; here the hash includes the
    /// source.
    #[inline(always)]
    fn bucket(bits: u64, source: Source) -> usize {
        let source = u64::from(source.get().unwrap_or(0));
        ((bits ^ source << 20) % BUCKETS) as usize
    }

    /// Returns the node of the oldest match, or [`NIL`], and true if the node is from a bucket.
    #[inline(always)]
    fn find_node(&self, key: &Key) -> (u32, bool) {
        if key.ignore != 0 || key.source.is_any() {
            return (self.list.find(self.list_slab(), key), false);
        }
        let hit = self.buckets[Self::bucket(key.bits, key.source)].find(&self.slab, key);
        if self.queue == Use::Unexpected || self.list.head == NIL {
            return (hit, true);
        }
        let wild = self.list.find(&self.slab, key);
        let older =
            |a: u32, b: u32| self.slab.nodes[a as usize].age < self.slab.nodes[b as usize].age;
        if wild != NIL && (hit == NIL || older(wild, hit)) { (wild, false) } else { (hit, true) }
    }

    #[inline(always)]
    fn list_slab(&self) -> &Slab {
        if self.queue == Use::Unexpected { &self.all } else { &self.slab }
    }
}

impl Matcher for Ucx {
    #[inline(always)]
    fn insert(&mut self, entry: Entry) {
        let index = self.slab.take(entry);
        if self.queue == Use::Unexpected {
            // Adds a node to the list of all entries. The token of this node is the number of the
            // entry's node in `slab`.
            let list_node = self.all.take(Entry { token: index, ..entry });
            self.list.push(&mut self.all, list_node);
            self.list_node[index as usize] = list_node;
        } else if entry.ignore != 0 || entry.source.is_any() {
            return self.list.push(&mut self.slab, index);
        }
        self.buckets[Self::bucket(entry.bits, entry.source)].push(&mut self.slab, index);
    }

    #[inline(always)]
    fn take(&mut self, key: &Key) -> Option<u32> {
        let (found, in_bucket) = self.find_node(key);
        if found == NIL {
            return None;
        }
        let index = match self.queue {
            Use::Unexpected if !in_bucket => self.all.nodes[found as usize].entry.token,
            _ => found,
        };
        let entry = self.slab.nodes[index as usize].entry;
        if self.queue == Use::Unexpected {
            let list_node = self.list_node[index as usize];
            self.list.unlink(&mut self.all, list_node);
            self.all.give_back(list_node);
        }
        if self.queue == Use::Unexpected || in_bucket {
            let bucket = Self::bucket(entry.bits, entry.source);
            self.buckets[bucket].unlink(&mut self.slab, index);
        } else {
            self.list.unlink(&mut self.slab, index);
        }
        self.slab.give_back(index);
        Some(entry.token)
    }

    #[inline(always)]
    fn find(&self, key: &Key) -> Option<u32> {
        let (found, in_bucket) = self.find_node(key);
        if found == NIL {
            return None;
        }
        let index = match self.queue {
            Use::Unexpected if !in_bucket => self.all.nodes[found as usize].entry.token,
            _ => found,
        };
        Some(self.slab.nodes[index as usize].entry.token)
    }
}
