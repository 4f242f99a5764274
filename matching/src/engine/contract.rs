// SPDX-License-Identifier: BSD-2-Clause
//! What an engine does.

use crate::{Element, Key};

/// Names an element of an [`Engine`] from its insertion to its removal. What a search gives may
/// be another name of it, good until the next insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHandle(pub(crate) u64);

/// An element of an [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostHit {
    /// The element.
    pub handle: HostHandle,
    /// Its token.
    pub token: u32,
    /// Its age as given to [`Engine::insert`].
    pub age: u64,
}

/// A software matching engine.
///
/// Elements come in age order, oldest first, each with an age larger than all
/// before; a search must return the oldest that matches.
pub trait Engine {
    /// Adds an element, the youngest.
    fn insert(&mut self, element: Element, age: u64) -> HostHandle;

    /// The oldest element that matches.
    fn first_match(&self, key: &Key) -> Option<HostHit>;

    /// The token of the oldest element that matches, where that is enough: it comes in a
    /// register.
    #[inline(always)]
    fn first_token(&self, key: &Key) -> Option<u32> {
        self.first_match(key).map(|hit| hit.token)
    }

    /// An element. The handle must be live.
    fn element(&self, handle: HostHandle) -> Element;

    /// Takes an element out. The handle must be live.
    fn remove(&mut self, handle: HostHandle);

    /// The oldest element of all: a match in the table that is older needs no
    /// search here, and this is the one to promote.
    fn oldest(&self) -> Option<HostHit>;

    /// Elements a list in age order would have compared to reach this one, itself
    /// counted.
    fn depth(&self, handle: HostHandle) -> usize;

    /// Elements that a search for the key traverses in the queues of this engine, the found
    /// one counted.
    fn traversed(&self, key: &Key) -> u64;

    /// Elements held.
    fn len(&self) -> usize;

    /// Whether it holds nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queues made for one operation or source, of collective and of
    /// point-to-point elements.
    fn dedicated(&self) -> (usize, usize) {
        (0, 0)
    }

    /// The same by level, first level first.
    fn levels(&self) -> [Vec<u64>; 2] {
        Default::default()
    }

    /// Elements whose source no cluster names (`kmeans`).
    fn unclustered(&self) -> u64 {
        0
    }

    /// Tells how many processes there are: n of the caps on dedicated queues.
    fn set_processes(&mut self, _n: u32) {}

    /// Tokens and ages, oldest first.
    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_;
}

/// The key that matches what the element matches.
pub(super) fn key_of(element: &Element) -> Key {
    Key { bits: element.bits, ignore: element.ignore, source: element.source }
}
