// SPDX-License-Identifier: BSD-2-Clause
//! The interface of a matching unit for several threads, and the steps that all units share.

use matching::{Element, Key, Queues};

/// Both queues of a receive context, for several threads.
///
/// Every operation takes effect at one moment between its call and its return. In the order of
/// these moments the unit behaves like the two lists of MPI. An arrival takes the earliest posted
/// receive that matches, and a receive takes the earliest unexpected message that matches. A
/// receive and a message that match never both wait. Overlapping operations of two threads have no
/// defined order. Therefore a caller must deliver the messages of one sender in one thread, or one
/// after the other.
pub trait Unit: Sync {
    /// Posts a receive. Returns the token of the unexpected message that it takes, or `None` if it
    /// waits.
    fn post(&self, receive: Element) -> Option<u32>;

    /// Delivers a message. Returns the token of the receive that it takes, or `None` if it waits.
    fn arrive(&self, message: Element) -> Option<u32>;

    /// Removes a waiting receive. Returns false if no receive with this token waits. Tokens are
    /// unique.
    fn cancel(&self, token: u32) -> bool;

    /// Returns the token of the unexpected message that a receive with this key would take, or
    /// `None` if no message matches. Removes nothing.
    fn probe(&self, key: &Key) -> Option<u32>;

    /// Returns the tokens of the waiting receives, earliest first. `&mut` excludes other
    /// operations.
    fn receives(&mut self) -> Vec<u32>;

    /// Returns the tokens of the waiting messages, earliest first.
    fn messages(&mut self) -> Vec<u32>;
}

/// Returns the key with the match bits, ignore bits and source of an element.
pub(super) const fn key_of(element: &Element) -> Key {
    Key { bits: element.bits, ignore: element.ignore, source: element.source }
}

/// Removes the oldest match from a queue and returns its token; `None` if no element matches.
#[inline]
pub(super) fn take(queue: &mut impl Queues, key: &Key) -> Option<u32> {
    let found = queue.hit(queue.oldest_match_of(key))?;
    queue.remove(found.handle, |_, _| {});
    Some(found.token)
}

/// Returns the token of the oldest match; `None` if no element matches.
pub(super) fn peek(queue: &impl Queues, key: &Key) -> Option<u32> {
    queue.hit(queue.oldest_match_of(key)).map(|found| found.token)
}

/// Removes an element. Returns false if the queue does not have it.
pub(super) fn withdraw(queue: &mut impl Queues, token: u32) -> bool {
    let handle = queue.handle_of(token);
    handle.map(|handle| queue.remove(handle, |_, _| {})).is_some()
}
