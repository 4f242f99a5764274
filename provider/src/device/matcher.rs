// SPDX-License-Identifier: BSD-2-Clause
//! Where an endpoint's messages are matched: in its own device, or in that of a shared context.
//!
//! A device is not part of the engine. If several threads use an endpoint, a receive is posted
//! without the lock of the engine, while another thread sends, polls or copies. Lock order: engine,
//! then device.
//!
//! ```text
//! post      device locked: match or add; unlocked; if a message matches: engine locked: deliver
//! arrival   engine locked: device locked: match or keep; device unlocked: deliver
//! ```

use std::{fmt::Debug, sync::Arc};

use channel::contract::Came;
use nic::message::{Envelope, Grant};

use super::{
    carried::{Kept, RecvOp},
    shared::{Matcher, Shared},
};

/// Where an endpoint's messages are matched.
#[derive(Debug)]
pub(crate) enum Matching {
    /// In the endpoint's own device.
    Own(Arc<Shared>),
    /// In a shared context. The endpoint's own device still records sends.
    Context(Member, Arc<Shared>),
}

/// The membership of an endpoint in a shared context.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) shared: Arc<Shared>,
    /// The context as an object, which is open as long as an endpoint is bound to it.
    context: Arc<dyn Holders>,
    /// The endpoint's number in the context.
    pub(crate) holder: u32,
}

/// A shared receive context, as its endpoints see it.
pub(crate) trait Holders: Debug + Send + Sync {
    /// Removes an endpoint.
    fn remove(&self, holder: u32);
}

impl Member {
    pub(crate) fn new(shared: &Arc<Shared>, context: Arc<dyn Holders>, holder: u32) -> Self {
        Self { shared: Arc::clone(shared), context, holder }
    }
}

impl Matching {
    /// Handles an arriving message. Returns the grant of the earliest matching receive. If no
    /// receive matches, keeps the message that `make` returns. The flag is true if the message was
    /// kept without a table entry, so that its sender must be held back (`flow-control`).
    pub(crate) fn arrive(
        &mut self,
        tagged: bool,
        envelope: &Envelope,
        make: impl FnOnce() -> Kept,
    ) -> (Option<Grant<RecvOp>>, bool) {
        let mut device = self.lock();
        let context = device.context(tagged);
        match context.arrive(envelope) {
            Some(grant) => {
                device.begin(&grant.data, grant.last);
                (Some(grant), false)
            }
            None => {
                context.keep(*envelope, make());
                (None, context.holds_back())
            }
        }
    }

    /// Notes for the recorder when the next message came.
    /// Without effect in a shared context, where another thread may handle a message before the
    /// caller does.
    #[cold]
    pub(crate) fn note_came(&mut self, tagged: bool, came: Came) {
        if !self.is_shared() {
            self.lock().context(tagged).note_came(came.ns, came.error_ns);
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Matcher<'_> {
        self.device().lock()
    }

    /// Locks the endpoint's own device, even if messages are matched in a shared context.
    pub(crate) fn lock_own(&self) -> Matcher<'_> {
        let (Self::Own(own) | Self::Context(_, own)) = self;
        own.lock()
    }

    /// Returns the device that matches the endpoint's messages.
    #[inline]
    pub(crate) fn device(&self) -> &Shared {
        let (Self::Own(shared) | Self::Context(Member { shared, .. }, _)) = self;
        shared
    }

    /// Returns the own device; `None` if receives belong to a shared context.
    #[inline]
    pub(crate) fn own(&self) -> Option<&Arc<Shared>> {
        match self {
            Self::Own(own) => Some(own),
            Self::Context(..) => None,
        }
    }

    /// For a process that exits: returns false if a thread is in the middle of a call that uses the
    /// device, and does not end this call in time.
    pub(crate) fn is_free_at_exit(&self) -> bool {
        self.device().lock_at_exit().is_some()
    }

    /// Notes that this endpoint no longer watches a peer for receives that name it.
    /// [`Shared::post`] returns the peer again for the next such receive.
    pub(crate) fn unwatch(&self, peer: u32) {
        self.device().unwatch(peer);
    }

    /// Returns whether messages are matched in the device of a shared context.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Context(..))
    }

    /// Matches messages in the device of a shared context from now on.
    pub(crate) fn share(&mut self, member: Member) {
        let (Self::Own(own) | Self::Context(_, own)) = self;
        *self = Self::Context(member, Arc::clone(own));
    }

    /// Returns the number of this endpoint in the shared context, as holder of the messages that it
    /// keeps; 0 without a shared context.
    #[inline]
    pub(crate) fn holder(&self) -> u32 {
        if let Self::Context(member, _) = self { member.holder } else { 0 }
    }

    /// Leaves the shared context, if there is one. Unexpected messages of this endpoint are lost.
    pub(crate) fn leave(&mut self) {
        let Self::Context(Member { shared, context, holder }, _) = self else { return };
        // The peers that this endpoint watched are no longer watched, so that another member
        // watches the peers of later receives.
        shared.unwatch_all();
        let mut device = shared.lock();
        let contexts = device.contexts().into_iter();
        let lost: usize =
            contexts.map(|context| context.drop_unexpected(|_, kept| kept.holder == *holder)).sum();
        drop(device);
        if lost > 0 {
            tracing::warn!(
                "lost {lost} unexpected messages, because the endpoint that holds them closes"
            );
        }
        context.remove(*holder);
    }
}
