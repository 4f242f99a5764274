// SPDX-License-Identifier: BSD-2-Clause
//! The receiving end of an endpoint: its ring, and the positions in it that dead senders leave.

use std::sync::{Arc, atomic::Ordering};

use host::owner::Look;

use super::{
    ring::{Receiver, Slot},
    segment::{Liveness, Segment},
};
use crate::{bytes::SharedBytes, contract::is_short, identity::Identity};

/// See the module.
#[derive(Debug)]
pub struct Inbox {
    own: Arc<Segment>,
    receiver: Receiver,
    /// Position that was claimed and not filled at the last look.
    stuck: Option<u64>,
}

impl Inbox {
    pub(crate) fn new(own: &Arc<Segment>) -> Self {
        Self { own: Arc::clone(own), receiver: Receiver::default(), stuck: None }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.receiver.is_empty(&self.own)
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<Slot> {
        self.receiver.peek(&self.own)
    }

    #[inline]
    pub(crate) fn payload(&self) -> SharedBytes<'_> {
        self.receiver.payload(&self.own)
    }

    #[cold]
    pub(crate) fn check(&self) -> Option<u32> {
        self.receiver.check(&self.own)
    }

    #[inline]
    pub(crate) fn expect_more(&self) {
        self.receiver.expect_more(&self.own);
    }

    #[inline]
    pub(crate) fn release(&mut self) {
        self.receiver.release();
    }

    #[inline]
    pub(crate) fn publish(&mut self) {
        self.receiver.publish(&self.own);
    }

    pub(crate) fn position(&self) -> u64 {
        self.receiver.position()
    }

    /// Behind all that was sent up to now, or is being sent.
    pub(crate) fn end(&self) -> u64 {
        self.own.tail().load(Ordering::Acquire)
    }

    /// Goes past a position that was claimed at the last look already, by nobody who lives. Whether
    /// there was one.
    pub(crate) fn skip_stuck(&mut self) -> bool {
        let stuck = self.stands().then(|| self.position());
        let before = std::mem::replace(&mut self.stuck, stuck);
        // Who intended it and has gone on since has filled it.
        let skips = stuck.is_some() && before == stuck && !self.is_intended() && self.stands();
        if skips {
            self.receiver.skip(&self.own);
        }
        skips
    }

    fn stands(&self) -> bool {
        self.is_empty() && self.receiver.is_claimed(&self.own)
    }

    /// Whether a living peer, also one that nothing has come from yet, announced the claim
    /// of the position our ring stands at.
    fn is_intended(&self) -> bool {
        let mut senders = (0..self.own.list_pages()).flat_map(|page| self.own.listed_in(page));
        senders.any(|(_, who)| self.may_intend(who))
    }

    /// Whether one that sends to us lives: it may hold a position of our ring.
    fn may_intend(&self, who: Identity) -> bool {
        match Segment::open_only(who) {
            Ok((segment, _)) => {
                self.receiver.is_intent_of(&self.own, &segment)
                    && segment.liveness(Look::Closely) == Liveness::Alive
            }
            // Nothing is known of it: it may live.
            Err(errno) => is_short(errno),
        }
    }
}
