// SPDX-License-Identifier: BSD-2-Clause
//! The interface of host engines.

use super::hit::{HostHandle, HostHit};
use super::queue::Queues;
use crate::{Element, Key};

/// A software matching engine.
///
/// Elements are inserted in age order, each with a higher age number than all before. A search must
/// return the oldest element that matches.
pub trait Engine {
    /// Type of the storage of the engine's queues.
    type Storage: Queues;

    /// The storage of the engine's queues, which holds all elements.
    fn storage(&self) -> &Self::Storage;

    /// Adds the youngest element.
    fn insert(&mut self, element: Element, age: u64) -> HostHandle;

    /// Returns the oldest element that matches; `None` if no element matches.
    fn first_match(&self, key: &Key) -> Option<HostHit>;

    /// Returns the token of the oldest element that matches. If the token is enough, this is
    /// faster, because it is returned in a register.
    #[inline(always)]
    fn first_token(&self, key: &Key) -> Option<u32> {
        self.first_match(key).map(|hit| hit.token)
    }

    /// Returns an element. The handle must be valid.
    fn element(&self, handle: HostHandle) -> Element {
        *self.storage().element(handle)
    }

    /// Removes an element. The handle must be valid.
    fn remove(&mut self, handle: HostHandle);

    /// Returns the oldest element of all, which is promoted next; `None` if the engine is empty. If
    /// a match in the table is older than this element, the host need not be searched.
    fn oldest(&self) -> Option<HostHit> {
        self.storage().oldest()
    }

    /// Number of elements that a list in age order would have compared to reach this element,
    /// including the element itself.
    fn depth(&self, handle: HostHandle) -> usize {
        self.storage().depth(handle)
    }

    /// Number of elements that a search for the key traverses in the queues of this engine,
    /// including the one found.
    fn traversed(&self, key: &Key) -> u64;

    /// Number of elements held.
    fn len(&self) -> usize {
        self.storage().len()
    }

    /// Returns true if the engine holds no element.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers of queues dedicated to an operation or a source: for collective elements, and for
    /// point-to-point elements.
    fn dedicated(&self) -> (usize, usize) {
        (0, 0)
    }

    /// Numbers of dedicated queues by level, first level first: for collective elements, and for
    /// point-to-point elements.
    fn levels(&self) -> [Vec<u64>; 2] {
        Default::default()
    }

    /// Number of elements whose source no cluster contains (`kmeans`).
    fn unclustered(&self) -> u64 {
        0
    }

    /// Sets the number of processes, which is n in the caps on dedicated queues.
    fn set_processes(&mut self, _n: u32) {}

    /// Tokens and ages, oldest element first.
    fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.storage().iter()
    }
}

/// The key with the fields of the element.
pub(super) fn key_of(element: &Element) -> Key {
    Key { bits: element.bits, ignore: element.ignore, source: element.source }
}
