// SPDX-License-Identifier: BSD-2-Clause
//! What a matching unit for several threads does, and the steps that all of them share.

use matching::{Element, Key, Queues};

/// Both queues of a receive context, for several threads.
///
/// Every operation takes effect at one moment between its call and its return. In the order of
/// these moments the unit is the two lists of MPI: of all posted receives that match an arrival the
/// earliest wins, of all unexpected messages that match a receive the earliest wins, and a receive
/// and a message that match never wait both. Operations of two threads that overlap are in no
/// order before: who hands over messages of one sender does so in one thread, or one after the
/// other.
pub trait Unit: Sync {
    /// Posts a receive. The token of the unexpected message that it takes; nothing if it waits.
    fn post(&self, receive: Element) -> Option<u32>;

    /// Hands over a message. The token of the receive that it takes; nothing if it waits.
    fn arrive(&self, message: Element) -> Option<u32>;

    /// Takes a waiting receive out. Whether it waited; its token is that of no other.
    fn cancel(&self, token: u32) -> bool;

    /// The token of the unexpected message that a receive would take.
    fn probe(&self, key: &Key) -> Option<u32>;

    /// Tokens of the receives that wait, earliest first. The reference says that no operation runs.
    fn receives(&mut self) -> Vec<u32>;

    /// Tokens of the messages that wait, earliest first.
    fn messages(&mut self) -> Vec<u32>;
}

/// The key that matches what the element matches.
pub(super) const fn key_of(element: &Element) -> Key {
    Key { bits: element.bits, ignore: element.ignore, source: element.source }
}

/// Takes the oldest match out of a queue.
#[inline]
pub(super) fn take(queue: &mut impl Queues, key: &Key) -> Option<u32> {
    let found = queue.hit(queue.oldest_match_of(key))?;
    queue.remove(found.handle, |_, _| {});
    Some(found.token)
}

/// The token of the oldest match.
pub(super) fn peek(queue: &impl Queues, key: &Key) -> Option<u32> {
    queue.hit(queue.oldest_match_of(key)).map(|found| found.token)
}

/// Takes an element out; whether it was there.
pub(super) fn withdraw(queue: &mut impl Queues, token: u32) -> bool {
    let handle = queue.handle_of(token);
    handle.map(|handle| queue.remove(handle, |_, _| {})).is_some()
}
