// SPDX-License-Identifier: BSD-2-Clause
//! `newmadeleine`: a hash table for each combination of wildcards, as the communication library
//! NewMadeleine and the authors of *Hint-driven matching* have it (section III.C, Figure 2: four
//! tables, because communicators must be matched as well).
//!
//! ```text
//! tables:       (source, tag)  (source, *)  (*, tag)  (*, *)
//!
//! posted        insert(receive):   into the table of its wildcards
//!               search(message):   the first of its queue in each of the four, the oldest wins
//!
//! unexpected    insert(message):   into all four
//!               search(receive):   the first of its queue in the table of its wildcards
//! ```
//!
//! What the paper leaves open: a pattern that is of no class ([`super::names`]) goes to one list
//! beside the tables, which every search walks up to the age of what the tables gave. A search
//! with such a pattern, or one with wildcards for what itself may have some, walks the list of
//! all.
//!
//! Elements are those of the linked storage, on either storage.

use super::{
    config::Role,
    contract::{Engine, HostHandle, HostHit, key_of},
    fifos::Fifos,
    names::{CLASSES, Class, Names},
    queue::{Linked, Queues},
};
use crate::{Element, Key, TagLayout};

/// See the module.
pub struct NewMadeleine {
    /// All elements.
    list: Linked,
    names: Names,
    role: Role,
    /// By class.
    tables: [Fifos; CLASSES],
    /// Elements that are in no table.
    others: Fifos,
}

impl NewMadeleine {
    /// An empty engine, for match bits of this layout.
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

    pub(super) const fn list(&self) -> &Linked {
        &self.list
    }

    /// The tables of a pattern that may have wildcards: that of its class, if it has one.
    #[inline]
    fn table_of(&self, key: &Key) -> &'static [Class] {
        self.names.class(key).map_or(&[], |class| std::slice::from_ref(&Class::ALL[class.index()]))
    }

    /// The tables of a pattern that has none: all, or none if it has.
    #[inline]
    fn tables_if_exact(&self, key: &Key) -> &'static [Class] {
        if self.names.class(key) == Some(Class::EXACT) { &Class::ALL } else { &[] }
    }

    /// Those that an element is in.
    #[inline]
    fn tables_of(&self, element: &Element) -> &'static [Class] {
        match self.role {
            Role::Posted => self.table_of(&key_of(element)),
            Role::Unexpected => self.tables_if_exact(&key_of(element)),
        }
    }

    /// Those that a search looks at; none if it is not served by them.
    #[inline]
    fn tables_for(&self, key: &Key) -> &'static [Class] {
        match self.role {
            Role::Posted => self.tables_if_exact(key),
            Role::Unexpected => self.table_of(key),
        }
    }

    /// The oldest match; `compared` is told of each element that is compared.
    #[inline(always)]
    fn search(&self, key: &Key, mut compared: impl FnMut()) -> Option<u32> {
        let Self { list, names, tables, others, .. } = self;
        let classes = self.tables_for(key);
        if classes.is_empty() {
            let found = list.oldest_match_of(key);
            (0..list.traversed_of_all(found)).for_each(|_| compared());
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
        self.search(key, || {}).map(|at| self.list.hit_at(at))
    }

    fn element(&self, handle: HostHandle) -> Element {
        *self.list.element(handle)
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

    fn oldest(&self) -> Option<HostHit> {
        self.list.oldest()
    }

    fn depth(&self, handle: HostHandle) -> usize {
        self.list.depth(handle)
    }

    fn traversed(&self, key: &Key) -> u64 {
        let mut compared = 0;
        self.search(key, || compared += 1);
        compared
    }

    fn len(&self) -> usize {
        self.list.len()
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.list.iter()
    }
}
