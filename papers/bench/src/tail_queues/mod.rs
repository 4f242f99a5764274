// SPDX-License-Identifier: BSD-2-Clause
//! Tail queues: a matching unit for several threads (Dosanjh, Grant, Schonbein, Bridges, *Tail
//! queues: A multi-threaded matching architecture*, CCPE 2019, section 3).
//!
//! Each list (the posted receives and the unexpected messages) has a lock of its own, so one thread
//! can search the unexpected messages while another one searches the posted receives. A new element
//! goes into the inbox of its list. One short critical section covers both inboxes.
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
//!     empty UMQT into a local list
//!     unlock TL
//!     append the local list to UMQ
//!     unlock UMQL
//! ```
//!
//! Elements move from UMQT to UMQ only while UMQL is held. For the owner of UMQL, UMQ followed by
//! UMQT is therefore one list in the order of arrival. An operation takes effect
//!
//! - when it acquires UMQL, if it finds its match in UMQ. No older element matches, and younger
//!   elements do not matter;
//! - otherwise when it acquires TL. UMQ and UMQT then have no match, and no message enters UMQT and
//!   no receive enters PRQT until TL is released. A concurrent message either is in UMQT already or
//!   will find R in PRQT, or in PRQ if another arrival has moved R there, because the message does
//!   not yet hold both PRQL and TL.
//!
//! Algorithm 2 as printed has no race. It does not cover three points:
//!
//! - *Bins.* UMQL and PRQL become several locks, and a thread holds none between two of them: see
//!   `bins.rs`. TL is acquired only with the lock of the last bin, to which elements of the inbox
//!   move.
//! - *Moving.* The paper appends UMQT to UMQ under TL. Here the inbox is emptied under TL and
//!   appended afterwards, under UMQL. In between, these elements are in neither list. No search
//!   misses them: a search for a message must hold UMQL, and arrivals do not search for messages.
//! - *Cancels and probes* search a list and then its inbox without releasing the lock. Otherwise
//!   they would miss an element that another thread moves to the list in between.
//!
//! [`OneLock`] is the baseline, and the way of the provider's device
//! (`docs/decisions/tail-queues.md`).

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

/// The data that TL protects.
#[derive(Default)]
struct Tail {
    receives: Inbox,
    messages: Inbox,
}

/// A unit with tail queues: see the module documentation.
pub struct TailQueues<Q: Queues + Send, L: Locks> {
    receives: Bins<Q, L>,
    messages: Bins<Q, L>,
    tail: Apart<L::Lock<Tail>>,
}

impl Inbox {
    fn find(&self, key: &Key) -> Option<usize> {
        self.0.iter().position(|element| element.matches(key))
    }

    /// Removes the oldest match and returns its token. The match is mostly the youngest element,
    /// whose removal moves no other element.
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
    /// Returns an empty unit. `make` makes the storage of each bin.
    pub fn new(binning: Binning, mut make: impl FnMut() -> Q) -> Self {
        Self {
            receives: Bins::new(binning, &mut make),
            messages: Bins::new(binning, &mut make),
            tail: Apart(L::Lock::new(Tail::default())),
        }
    }

    /// Removes the oldest match of `own` from a list or its inbox and returns its token. Without a
    /// match, adds `own` to the other inbox and returns `None`. `inboxes` returns the inbox of the
    /// list and the other inbox.
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
