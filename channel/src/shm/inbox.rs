// SPDX-License-Identifier: BSD-2-Clause
//! The receiving end of an endpoint: its ring, and the positions in it that dead senders claimed.

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
    /// Position that was claimed and not filled at the last check.
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

    /// The position after all slots that were sent or are being sent.
    pub(crate) fn end(&self) -> u64 {
        self.own.tail().load(Ordering::Acquire)
    }

    /// Skips the current position if it was claimed but not filled at the last call already, and no
    /// living sender intends it. Returns whether it skipped it.
    pub(crate) fn skip_stuck(&mut self) -> bool {
        let stuck = self.stands().then(|| self.position());
        let before = std::mem::replace(&mut self.stuck, stuck);
        // A sender that has replaced its intent meanwhile has filled the position.
        let skips = stuck.is_some() && before == stuck && !self.is_intended() && self.stands();
        if skips {
            self.receiver.skip(&self.own);
        }
        skips
    }

    fn stands(&self) -> bool {
        self.is_empty() && self.receiver.is_claimed(&self.own)
    }

    /// Returns whether a living peer announced a claim of the current position, even one from which
    /// nothing has come yet.
    fn is_intended(&self) -> bool {
        let mut senders = (0..self.own.list_pages()).flat_map(|page| self.own.listed_in(page));
        senders.any(|(_, who)| self.may_intend(who))
    }

    /// Returns whether a sender announced a claim of the current position and is alive.
    fn may_intend(&self, who: Identity) -> bool {
        match Segment::open_only(who) {
            Ok((segment, _)) => {
                self.receiver.is_intent_of(&self.own, &segment)
                    && segment.liveness(Look::Closely) == Liveness::Alive
            }
            // Its state is unknown, so it may be alive.
            Err(errno) => is_short(errno),
        }
    }
}
