// SPDX-License-Identifier: BSD-2-Clause
//! The baseline of the measurements: a matching unit with one lock (ML) around both lists.
//!
//! ```text
//! post(R) (the paper's Algorithm 1; arrive is its mirror image):
//!     lock ML
//!     if an element of UMQ matches R: remove the oldest, unlock ML, return it
//!     append R to PRQ
//!     unlock ML
//! ```

use super::{
    lock::{Apart, Lock, Locks},
    unit::{Unit, key_of, peek, take, withdraw},
};
use matching::{Element, Key, Queues};

/// One of the lists.
struct List<Q> {
    queue: Q,
    age: u64,
}

struct Both<Q> {
    receives: List<Q>,
    messages: List<Q>,
}

/// A unit with one lock: see the module documentation.
pub struct OneLock<Q: Queues + Send, L: Locks> {
    both: Apart<L::Lock<Both<Q>>>,
}

impl<Q: Queues> List<Q> {
    fn push(&mut self, element: Element) {
        self.age += 1;
        self.queue.push(element, self.age);
    }

    fn tokens(&self) -> Vec<u32> {
        self.queue.iter().map(|(token, _)| token).collect()
    }
}

impl<Q: Queues + Send, L: Locks> OneLock<Q, L> {
    /// Returns an empty unit. `make` makes the storage of each list.
    pub fn new(mut make: impl FnMut() -> Q) -> Self {
        let mut list = || List { queue: make(), age: 0 };
        Self { both: Apart(L::Lock::new(Both { receives: list(), messages: list() })) }
    }
}

impl<Q: Queues + Send, L: Locks> Unit for OneLock<Q, L> {
    fn post(&self, receive: Element) -> Option<u32> {
        self.both.0.with(|Both { receives, messages }| {
            let taken = take(&mut messages.queue, &key_of(&receive));
            if taken.is_none() {
                receives.push(receive);
            }
            taken
        })
    }

    fn arrive(&self, message: Element) -> Option<u32> {
        self.both.0.with(|Both { receives, messages }| {
            let taken = take(&mut receives.queue, &key_of(&message));
            if taken.is_none() {
                messages.push(message);
            }
            taken
        })
    }

    fn cancel(&self, token: u32) -> bool {
        self.both.0.with(|both| withdraw(&mut both.receives.queue, token))
    }

    fn probe(&self, key: &Key) -> Option<u32> {
        self.both.0.with(|both| peek(&both.messages.queue, key))
    }

    fn receives(&mut self) -> Vec<u32> {
        self.both.0.with(|both| both.receives.tokens())
    }

    fn messages(&mut self) -> Vec<u32> {
        self.both.0.with(|both| both.messages.tokens())
    }
}
