// SPDX-License-Identifier: BSD-2-Clause
//! Tail queues: a matching unit for several threads (Dosanjh, Grant, Schonbein, Bridges, *Tail
//! queues: A multi-threaded matching architecture*, CCPE 2019, section 3).
//!
//! One thread searches the unexpected messages while another one searches the posted receives. What
//! is added to either list goes into its inbox; one short critical section has both inboxes.
//!
//! ```text
//!   UMQL: UMQ  [ a, b, c ]         PRQL: PRQ  [ r, s ]       each in `bins`
//!   TL:   UMQT [ d ]                     PRQT [ t ]          inboxes: the ends of the lists
//!
//! post(R) (Algorithm 2; arrive is its mirror image: PRQL, PRQ and PRQT for UMQL, UMQ and UMQT):
//!     lock UMQL
//!     if an element of UMQ matches R: remove the oldest, unlock UMQL, return it
//!     lock TL
//!     if an element of UMQT matches R: remove the oldest
//!     else: append R to PRQT
//!     take UMQT out
//!     unlock TL
//!     append what was in UMQT to UMQ
//!     unlock UMQL
//! ```
//!
//! Elements leave UMQT, and come to UMQ, only where UMQL is held; so UMQ before UMQT is one list in
//! the order of arrival for who holds it. An operation takes effect
//!
//! - where it finds its match in UMQ: when it has UMQL. Nothing older matches, and what is younger
//!   does not matter;
//! - else when it has TL: then UMQ and UMQT have no match, and no message goes into UMQT and no
//!   receive into PRQT until TL is given back. So a message that arrives in the meantime either is
//!   in UMQT already or will find R in PRQT, or in PRQ if another arrival has moved it there: it has
//!   not yet had PRQL and TL both.
//!
//! Algorithm 2 as printed leaves no window open. Three it does not speak of:
//!
//! - *Bins.* UMQL and PRQL become several locks, and a thread holds none between two of them: see
//!   `bins.rs`. TL is taken with the lock of the last bin only, which is where elements leave the
//!   inbox for.
//! - *Moving.* The paper appends UMQT to UMQ under TL. Here the inbox is taken out under TL and
//!   appended after, under UMQL: meanwhile its elements are in neither, but nobody who looks for a
//!   message gets that far without UMQL, and arrivals do not look for messages.
//! - *Cancels and probes* look at a list and then, without letting go, at its inbox: otherwise they
//!   would miss an element that another thread moves to the list in between.
//!
//! [`OneLock`] is the baseline. The device of the provider has tail queues in front of table and host
//! engine (`nic/src/device/tail.rs`).

mod bins;
mod lock;
mod one_lock;
mod unit;

#[cfg(test)]
mod loom_tests;
#[cfg(test)]
mod model;
#[cfg(test)]
mod sequence_tests;
#[cfg(test)]
mod thread_tests;

pub use bins::{BadBinning, Binning};
pub use lock::{Lock, Locks, Mark, Mcs, ParkingLot};
pub use one_lock::OneLock;
pub use unit::Unit;

use bins::Bins;
use lock::Apart;
use unit::{key_of, peek, take, withdraw};

use matching::{Element, Key, Queues};

/// Elements that were added to a list and not yet moved to it, oldest first.
#[derive(Default)]
struct Inbox(Vec<Element>);

/// What TL protects.
#[derive(Default)]
struct Tail {
    receives: Inbox,
    messages: Inbox,
}

/// See the module.
pub struct TailQueues<Q: Queues + Send, L: Locks> {
    receives: Bins<Q, L>,
    messages: Bins<Q, L>,
    tail: Apart<L::Lock<Tail>>,
}

impl Inbox {
    fn find(&self, key: &Key) -> Option<usize> {
        self.0.iter().position(|element| element.matches(key))
    }

    /// Takes the oldest match out. It is mostly the youngest of all, which leaves without a move.
    fn take(&mut self, key: &Key) -> Option<u32> {
        let at = self.find(key)?;
        let taken = if at + 1 == self.0.len() { self.0.pop() } else { Some(self.0.remove(at)) };
        taken.map(|element| element.token)
    }

    fn tokens(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|element| element.token)
    }
}

impl<Q: Queues + Send, L: Locks> TailQueues<Q, L> {
    /// An empty unit on the storages that `make` makes, one a bin.
    pub fn new(binning: Binning, mut make: impl FnMut() -> Q) -> Self {
        Self {
            receives: Bins::new(binning, &mut make),
            messages: Bins::new(binning, &mut make),
            tail: Apart(L::Lock::new(Tail::default())),
        }
    }

    /// Takes the oldest match of `own` out of a list or its inbox, or else adds `own` to the other
    /// inbox. `inboxes` are that of the list and the other one.
    #[inline]
    fn meet(
        &self,
        list: &Bins<Q, L>,
        inboxes: impl Fn(&mut Tail) -> (&mut Inbox, &mut Inbox),
        own: Element,
    ) -> Option<u32> {
        let key = key_of(&own);
        let in_inbox = |incoming: &mut Vec<Element>| {
            self.tail.0.with(|tail| {
                let (theirs, mine) = inboxes(tail);
                let found = theirs.take(&key);
                if found.is_none() {
                    mine.0.push(own);
                }
                if !theirs.0.is_empty() {
                    std::mem::swap(&mut theirs.0, incoming);
                }
                found
            })
        };
        list.walk(|queue| take(queue, &key).map(Some), in_inbox)
    }
}

impl<Q: Queues + Send, L: Locks> Unit for TailQueues<Q, L> {
    fn post(&self, receive: Element) -> Option<u32> {
        self.meet(&self.messages, |tail| (&mut tail.messages, &mut tail.receives), receive)
    }

    fn arrive(&self, message: Element) -> Option<u32> {
        self.meet(&self.receives, |tail| (&mut tail.receives, &mut tail.messages), message)
    }

    fn cancel(&self, token: u32) -> bool {
        let in_inbox = |_: &mut Vec<Element>| {
            self.tail.0.with(|tail| {
                let at = tail.receives.tokens().position(|other| other == token);
                at.map(|at| tail.receives.0.remove(at)).is_some()
            })
        };
        self.receives.walk(|queue| withdraw(queue, token).then_some(true), in_inbox)
    }

    fn probe(&self, key: &Key) -> Option<u32> {
        let in_inbox = |_: &mut Vec<Element>| {
            self.tail.0.with(|tail| tail.messages.find(key).map(|at| tail.messages.0[at].token))
        };
        self.messages.walk(|queue| peek(queue, key).map(Some), in_inbox)
    }

    fn receives(&mut self) -> Vec<u32> {
        let mut tokens = self.receives.tokens();
        self.tail.0.with(|tail| tokens.extend(tail.receives.tokens()));
        tokens
    }

    fn messages(&mut self) -> Vec<u32> {
        let mut tokens = self.messages.tokens();
        self.tail.0.with(|tail| tokens.extend(tail.messages.tokens()));
        tokens
    }
}
