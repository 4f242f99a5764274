// SPDX-License-Identifier: BSD-2-Clause
//! `newmadeleine`: a hash table for each combination of wildcards, as in the communication library
//! NewMadeleine and in *Hint-driven matching* (section III.C, Figure 2). There are four tables,
//! because communicators must be matched as well.
//!
//! ```text
//! tables:       (source, tag)  (source, *)  (*, tag)  (*, *)
//!
//! posted        insert(receive):   into the table of its wildcards
//!               search(message):   in each of the four tables, the first match in the queue of
//!                                  the message's name; the oldest of these matches wins
//!
//! unexpected    insert(message):   into all four tables
//!               search(receive):   in the table of its wildcards, the first match in the queue of
//!                                  the receive's name
//! ```
//!
//! [`super::names`] defines the names, and the classes, which are the combinations of wildcards.
//!
//! Detail that the paper leaves open: a posted receive without a class, or a message with a
//! wildcard, goes to a separate list. Every search visits this list up to the age of the match in
//! the tables. A search without a class, or a search of the posted queue with a wildcard, uses the
//! list of all elements.
//!
//! Elements are always stored in the linked storage, whatever storage is configured.

use super::{
    config::Role,
    contract::{Engine, key_of},
    fifos::Fifos,
    hit::{HostHandle, HostHit},
    names::{CLASSES, Names, OpenFields},
    queue::{Linked, Queues},
};
use crate::{Element, Key, TagLayout};

/// The engine; see the module.
pub struct NewMadeleine {
    /// All elements.
    list: Linked,
    names: Names,
    role: Role,
    /// Indexed by class.
    tables: [Fifos; CLASSES],
    /// Elements that are in no table.
    others: Fifos,
}

impl NewMadeleine {
    /// Creates an empty engine for match bits of this layout.
    #[must_use]
    pub fn new(layout: TagLayout, role: Role) -> Self {
        Self {
            list: Linked::default(),
            names: Names::new(&layout.fields()),
            role,
            tables: Default::default(),
            others: Fifos::default(),
        }
    }

    /// The table of the pattern's class; no table if it has no class.
    #[inline]
    fn table_of(&self, key: &Key) -> &'static [OpenFields] {
        self.names
            .class(key)
            .map_or(&[], |class| std::slice::from_ref(&OpenFields::ALL[class.index()]))
    }

    /// All tables if the pattern has no wildcard; otherwise no table.
    #[inline]
    fn tables_if_exact(&self, key: &Key) -> &'static [OpenFields] {
        if self.names.class(key) == Some(OpenFields::EXACT) { &OpenFields::ALL } else { &[] }
    }

    /// The tables that contain an element.
    #[inline]
    fn tables_of(&self, element: &Element) -> &'static [OpenFields] {
        match self.role {
            Role::Posted => self.table_of(&key_of(element)),
            Role::Unexpected => self.tables_if_exact(&key_of(element)),
        }
    }

    /// The tables that a search visits. Empty if the tables cannot serve it.
    #[inline]
    fn tables_for(&self, key: &Key) -> &'static [OpenFields] {
        match self.role {
            Role::Posted => self.tables_if_exact(key),
            Role::Unexpected => self.table_of(key),
        }
    }

    /// The oldest match. `compared` is called for each element that is compared.
    #[inline(always)]
    fn search<const COUNTS: bool>(&self, key: &Key, mut compared: impl FnMut()) -> Option<u32> {
        let Self { list, names, tables, others, .. } = self;
        let classes = self.tables_for(key);
        if classes.is_empty() {
            let found = list.oldest_match_of(key);
            if COUNTS {
                (0..list.traversed_of_all(found)).for_each(|_| compared());
            }
            return Linked::number(found);
        }
        let mut best = None;
        let mut age = u64::MAX;
        for &class in classes {
            let (name, table) = (names.name(class, key), &tables[class.index()]);
            let first = table.first(name.hash(), |at| {
                compared();
                names.name(class, &key_of(list.at(at))) == name
            });
            let mut queue = table.from(first).take_while(|&at| list.age(at) < age);
            let found = queue.find(|&at| {
                if Some(at) != first {
                    compared();
                }
                list.at(at).matches(key)
            });
            if let Some(found) = found {
                (best, age) = (Some(found), list.age(found));
            }
        }
        let older = others.from(others.first(0, |_| true)).take_while(|&at| list.age(at) < age);
        let mut older = older.inspect(|_| compared());
        older.find(|&at| list.at(at).matches(key)).or(best)
    }
}

impl Engine for NewMadeleine {
    type Storage = Linked;

    fn storage(&self) -> &Linked {
        &self.list
    }

    #[inline(always)]
    fn insert(&mut self, element: Element, age: u64) -> HostHandle {
        let classes = self.tables_of(&element);
        let Self { list, names, tables, others, .. } = self;
        let handle = list.push(element, age);
        let (at, key) = (Linked::index(handle), key_of(&element));
        for &class in classes {
            let name = names.name(class, &key);
            let same = |at| names.name(class, &key_of(list.at(at))) == name;
            tables[class.index()].append(at, name.hash(), same);
        }
        if classes.is_empty() {
            others.append(at, 0, |_| true);
        }
        handle
    }

    #[inline(always)]
    fn first_match(&self, key: &Key) -> Option<HostHit> {
        self.search::<false>(key, || {}).map(|at| self.list.hit_at(at))
    }

    #[inline(always)]
    fn remove(&mut self, handle: HostHandle) {
        let at = Linked::index(handle);
        let classes = self.tables_of(self.list.at(at));
        classes.iter().for_each(|class| self.tables[class.index()].remove(at));
        if classes.is_empty() {
            self.others.remove(at);
        }
        self.list.remove(handle, |_, _| {});
    }

    fn traversed(&self, key: &Key) -> u64 {
        let mut compared = 0;
        self.search::<true>(key, || compared += 1);
        compared
    }
}
