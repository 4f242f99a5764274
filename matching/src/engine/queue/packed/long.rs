// SPDX-License-Identifier: BSD-2-Clause
//! Searches a long array of all elements. A search finds elements without wildcards by an index of
//! tag and source (`exact.rs`). It finds elements with wildcards by comparing the pages that
//! contain them.
//!
//! ```text
//! first(key), if the key has no wildcard:
//!     exact = the oldest with this tag and source that matches
//!     wild  = the first match in pages with wildcards, before exact
//!     the one of both at the lower place
//! ```
//!
//! Keys with wildcards are compared with all elements. The counted search lengths are those without
//! the index.

use ternary_cam::{Compare, Search};

use super::index::LONG;
use super::{INDEXED, Packed, PackedSlot, STEP, number};
use crate::engine::hit::HostHandle;
use crate::engine::queue::age_array::{AgeArray, PAGE};
use crate::engine::queue::contract::{Best, Queues as _};
use crate::engine::queue::exact::{Hash, LINE};
use crate::engine::queue::fingerprint::Fingerprint;
use crate::engine::queue::page::NO_PLACE;
use crate::traffic::Fields;
use crate::{Element, Key, Source};

/// Number of elements down to which an array stays indexed.
const SHORT: u32 = LONG / 4;

/// Fractional parts of the golden ratio and of the square root of 3, made odd.
const OF_TAG: u64 = 0x9e37_79b9_7f4a_7c15;
const OF_SOURCE: u64 = 0xbb67_ae85_84ca_a73b;

/// The tag (with communicator) and source of an element or a key without wildcards.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Name {
    tag: u64,
    source: Source,
}

impl Name {
    /// The tag and source of a key; `None` if it has wildcards in them.
    #[inline(always)]
    fn of(fields: &Fields, key: &Key) -> Option<Self> {
        let identity_bits = fields.identity_bits;
        let source = fields.source(key);
        let named = key.ignore & identity_bits == 0 && !source.is_any();
        named.then_some(Self { tag: key.bits & identity_bits, source })
    }

    /// The tag and source of an element; `None` if it has wildcards in them.
    #[inline(always)]
    fn of_element(fields: &Fields, element: &Element) -> Option<Self> {
        let &Element { bits, ignore, source, .. } = element;
        Self::of(fields, &Key { bits, ignore, source })
    }

    #[inline(always)]
    fn hash(self) -> Hash {
        let (tags, tag) = (self.tag / LINE, self.tag % LINE);
        let source = u64::from(number(self.source));
        let hash = tags.wrapping_mul(OF_TAG).wrapping_add(source.wrapping_mul(OF_SOURCE));
        // Tags that are a multiple of `LINE` apart have the same `tag`.
        Hash { line: hash, within: (tag ^ hash >> 40) % LINE }
    }
}

impl Packed {
    /// Does the work of [`Queues::push`](crate::Queues::push) for an array that has an index, or
    /// enough elements for one. Never inlined, and with arguments in registers, because a push into
    /// a short array would otherwise take longer.
    #[inline(never)]
    pub(super) fn push_long(
        &mut self,
        bits: u64,
        ignore: u64,
        source: Source,
        token: u32,
        age: u64,
    ) -> HostHandle {
        if self.all.len == 0 {
            // The index is empty. It is not used, but keeps its memory.
            (self.search_range, self.after_removed) = (STEP, NO_PLACE);
            return self.push_again(bits, ignore, source, token, age);
        }
        if self.search_range != INDEXED {
            self.build_index();
        } else if self.index.after_removed == self.all.tail {
            self.draw_back();
            self.index.after_removed = NO_PLACE;
        }
        let Some((page, slot)) = self.slots.at_mut(self.all.tail) else {
            self.close_up_all();
            return self.push_again(bits, ignore, source, token, age);
        };
        let at =
            self.all.push_to(page, Fingerprint::new(&self.fields, &Key { bits, ignore, source }));
        *slot = PackedSlot { element: Element { bits, ignore, source, token }, age };
        self.enter(at);
        self.after_removed = self.all.tail;
        self.handle(at)
    }

    /// Repeats a push, after the array closed up or an empty index was dropped.
    #[cold]
    pub(super) fn push_again(
        &mut self,
        bits: u64,
        ignore: u64,
        source: Source,
        token: u32,
        age: u64,
    ) -> HostHandle {
        self.push(Element { bits, ignore, source, token }, age)
    }

    /// Indexes all elements.
    #[cold]
    fn build_index(&mut self) {
        self.index.exact.make_room(self.slots.len());
        self.index.wild.clear();
        self.search_range = INDEXED;
        let mut next = self.all.next(0, &self.slots);
        while let Some(at) = next {
            self.enter(at);
            next = self.all.next(at + 1, &self.slots);
        }
        (self.after_removed, self.index.after_removed) = (self.all.tail, NO_PLACE);
    }

    /// Clears the index before elements move.
    pub(super) fn leave_index(&mut self) {
        let Self { all, slots, fields, index, .. } = self;
        for PackedSlot { element, .. } in all.iter(slots) {
            if let Some(name) = Name::of_element(fields, &element) {
                index.exact.clear(name.hash());
            }
        }
    }

    /// Builds the index after elements moved, if there are enough of them. `indexed` is true if
    /// there was an index before.
    pub(super) fn enter_index(&mut self, indexed: bool) {
        if self.all.len >= if indexed { SHORT } else { self.index.from } {
            self.build_index();
        }
    }

    fn is_named(&self, at: u32, name: Name) -> bool {
        Name::of_element(&self.fields, &self.slot(at).element) == Some(name)
    }

    /// Adds the youngest element to the index.
    #[inline]
    fn enter(&mut self, at: u32) {
        let Some(name) = Name::of_element(&self.fields, &self.slot(at).element) else {
            let page = at / PAGE;
            while self.index.wild.last().is_some_and(|&last| last > page) {
                self.index.wild.pop();
            }
            if self.index.wild.last() != Some(&page) {
                self.index.wild.push(page);
            }
            return;
        };
        let hash = name.hash();
        let oldest = self.index.exact.oldest(hash, |at| self.is_named(at, name));
        self.index.exact.push(hash, at, oldest);
    }

    /// Removes an element from the index while it is still in the array.
    #[inline]
    pub(super) fn leave(&mut self, at: u32) {
        if let Some(name) = Name::of_element(&self.fields, &self.slot(at).element) {
            self.index.exact.remove(name.hash(), at);
        }
    }

    /// The first match among all elements.
    #[inline(never)]
    pub(super) fn first_indexed(&self, key: &Key) -> Best {
        let Some(name) = Name::of(&self.fields, key) else { return self.first_of_all_pages(key) };
        let exact = &self.index.exact;
        let oldest = exact.oldest(name.hash(), |at| self.is_named(at, name));
        let matches = |&at: &u32| self.slot(at).matches(key);
        let found = oldest.and_then(|oldest| exact.ring(oldest).find(matches));
        let before = found.unwrap_or(NO_PLACE);
        let wild = if self.index.wild.is_empty() {
            None
        } else {
            self.scanner.run(Wild { packed: self, key, before })
        };
        wild.or(found).map_or(Best::NONE, |at| Best { at, age: self.slot(at).age })
    }

    /// The first match of a long queue, or [`Best::NONE`], if the index of all elements shows it.
    /// `None` if there is no index, the queue is short, the key has wildcards, or the first match
    /// among all elements is in another queue.
    pub(super) fn first_of_all_in(
        &self,
        queue: usize,
        array: &AgeArray,
        key: &Key,
    ) -> Option<Best> {
        if self.search_range != INDEXED || array.len < LONG {
            return None;
        }
        let best = Name::of(&self.fields, key).map(|_| self.first_indexed(key))?;
        if best == Best::NONE {
            // No element of any queue matches.
            return Some(best);
        }
        let own = self.own.get(best.at as usize)?;
        (best.at < self.unplaced && own.queue == queue as u32).then_some(best)
    }
}

/// Searches the pages with wildcards for the first match before a place.
struct Wild<'s> {
    packed: &'s Packed,
    key: &'s Key,
    before: u32,
}

impl Search for Wild<'_> {
    type Found = Option<u32>;

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Option<u32> {
        let Self { packed: Packed { fields, index, slots, .. }, key, before } = self;
        let fingerprint = Fingerprint::new(fields, key);
        for &page in &index.wild {
            let first = page * PAGE;
            if first >= before {
                break;
            }
            let mut hits = slots.page(page).agree_with_wildcards(compare, fingerprint);
            while hits != 0 {
                let at = first + hits.trailing_zeros();
                if at >= before {
                    return None;
                }
                if slots.item(at).is_some_and(|slot| slot.matches(key)) {
                    return Some(at);
                }
                hits &= hits - 1;
            }
        }
        None
    }
}
