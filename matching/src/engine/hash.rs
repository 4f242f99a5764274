// SPDX-License-Identifier: BSD-2-Clause
//! `hash`: a hash table of (communicator, source, tag), each with a queue (Algorithm 1 of
//! *Hint-driven matching*, section III), for programs that promise to use no wildcard.
//!
//! ```text
//! insert(e):  key = {communicator, source, tag} of e
//!             if the table has this key: append e to its queue; else: make a queue with e
//! search(k):  the first match in the queue of k, or nothing
//! ```
//!
//! Details that the paper leaves open:
//! - *A wildcard despite the promise*. An element with a wildcard goes to a separate list, which
//!   every search visits up to the age of the match in the table. A search with a wildcard uses the
//!   list of all elements.
//! - *Other bits*, such as those of an MPI's protocol, which a receive ignores, are not part of the
//!   key. So not every element of the queue matches, and a search takes the first one that does.
//!
//! Elements are always stored in the linked storage, whatever storage is configured.

use super::{
    contract::{Engine, key_of},
    fifos::Fifos,
    hit::{HostHandle, HostHit},
    names::{Names, OpenFields},
    queue::{Linked, Queues},
};
use crate::{Element, Key, TagLayout};

/// The engine; see the module.
pub struct Hash {
    /// All elements.
    list: Linked,
    names: Names,
    table: Fifos,
    /// Elements with a wildcard.
    wild: Fifos,
}

impl Hash {
    /// Creates an empty engine for match bits of this layout.
    #[must_use]
    pub fn new(layout: TagLayout) -> Self {
        Self {
            list: Linked::default(),
            names: Names::new(&layout.fields()),
            table: Fifos::default(),
            wild: Fifos::default(),
        }
    }

    /// The oldest match. `compared` is called for each element that is compared.
    #[inline(always)]
    fn search<const COUNTS: bool>(&self, key: &Key, mut compared: impl FnMut()) -> Option<u32> {
        let Self { list, names, table, wild } = self;
        if names.class(key) != Some(OpenFields::EXACT) {
            let found = list.oldest_match_of(key);
            if COUNTS {
                (0..list.traversed_of_all(found)).for_each(|_| compared());
            }
            return Linked::number(found);
        }
        let name = names.name(OpenFields::EXACT, key);
        let first = table.first(name.hash(), |at| {
            compared();
            names.name(OpenFields::EXACT, &key_of(list.at(at))) == name
        });
        let found = table.from(first).find(|&at| {
            if Some(at) != first {
                compared();
            }
            list.at(at).matches(key)
        });
        let age = found.map_or(u64::MAX, |at| list.age(at));
        let older = wild.from(wild.first(0, |_| true)).take_while(|&at| list.age(at) < age);
        let mut older = older.inspect(|_| compared());
        older.find(|&at| list.at(at).matches(key)).or(found)
    }
}

impl Engine for Hash {
    type Storage = Linked;

    fn storage(&self) -> &Linked {
        &self.list
    }

    #[inline(always)]
    fn insert(&mut self, element: Element, age: u64) -> HostHandle {
        let Self { list, names, table, wild } = self;
        let handle = list.push(element, age);
        let key = key_of(&element);
        if names.class(&key) == Some(OpenFields::EXACT) {
            let name = names.name(OpenFields::EXACT, &key);
            let same = |at| names.name(OpenFields::EXACT, &key_of(list.at(at))) == name;
            table.append(Linked::index(handle), name.hash(), same);
        } else {
            wild.append(Linked::index(handle), 0, |_| true);
        }
        handle
    }

    #[inline(always)]
    fn first_match(&self, key: &Key) -> Option<HostHit> {
        self.search::<false>(key, || {}).map(|at| self.list.hit_at(at))
    }

    #[inline(always)]
    fn remove(&mut self, handle: HostHandle) {
        let Self { list, names, table, wild } = self;
        let at = Linked::index(handle);
        if names.class(&key_of(list.at(at))) == Some(OpenFields::EXACT) {
            table.remove(at);
        } else {
            wild.remove(at);
        }
        list.remove(handle, |_, _| {});
    }

    fn traversed(&self, key: &Key) -> u64 {
        let mut compared = 0;
        self.search::<true>(key, || compared += 1);
        compared
    }
}
