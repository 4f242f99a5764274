// SPDX-License-Identifier: BSD-2-Clause
//! Where an endpoint's messages are matched: in its own device, or in that of a shared context.
//!
//! The device of an endpoint that several threads use is not part of its engine: a receive is posted
//! without the lock of the engine, beside a thread that sends, polls or copies. Who has the engine
//! may take the device as well, and nobody takes them the other way round.
//!
//! ```text
//! post      device locked: match, or wait there; unlocked: if it matched, engine locked: deliver
//! arrival   engine locked: device locked: match or keep; unlocked: deliver
//! ```

use std::{fmt::Debug, sync::Arc};

use nic::{
    device::Device,
    message::{Envelope, Grant},
};

use super::{
    carried::{Kept, RecvOp},
    shared::{Matcher, Shared},
};

/// Where an endpoint's messages are matched.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "each search would have a pointer more to follow")]
pub(crate) enum Matching {
    /// In the engine: one thread at a time uses the endpoint, and all of it.
    Here(Device<RecvOp, Kept>),
    /// Beside it: several threads use the endpoint.
    Beside(Arc<Shared>),
    /// In a shared context. What was there before says what is sent.
    Context(Member, Box<Self>),
}

/// What an endpoint knows of the context it is bound to.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) shared: Arc<Shared>,
    /// The same as an object, which is open as long as an endpoint is bound to it.
    context: Arc<dyn Holders>,
    /// Its number there.
    pub(crate) holder: u32,
}

/// A shared receive context, to the endpoints that are bound to it.
pub(crate) trait Holders: Debug + Send + Sync {
    /// An endpoint leaves.
    fn remove(&self, holder: u32);
}

impl Member {
    pub(crate) fn new(shared: &Arc<Shared>, context: Arc<dyn Holders>, holder: u32) -> Self {
        Self { shared: Arc::clone(shared), context, holder }
    }
}

impl Matching {
    /// A message arrives: the earliest receive that matches gets it, or it is kept as `make` makes it,
    /// and its sender may have to wait.
    pub(crate) fn arrive(
        &mut self,
        tagged: bool,
        envelope: &Envelope,
        make: impl FnOnce() -> Kept,
    ) -> (Option<Grant<RecvOp>>, bool) {
        if let Some(shared) = self.tails() {
            return (shared.arrive_at_tails(tagged, envelope, make), false);
        }
        let mut device = self.lock();
        let context = device.context(tagged);
        let grant = context.arrive(envelope);
        match &grant {
            Some(grant) => device.begin(&grant.data, grant.last),
            None => {
                context.keep(*envelope, make());
                return (grant, context.holds_back());
            }
        }
        (grant, false)
    }

    /// The own device if it is one of tail queues.
    #[inline]
    pub(crate) fn tails(&self) -> Option<&Arc<Shared>> {
        self.own_beside().filter(|shared| matches!(***shared, Shared::Tail(..)))
    }

    #[inline]
    pub(crate) fn lock(&mut self) -> Matcher<'_> {
        match self {
            Self::Here(device) => Matcher::Own(device),
            Self::Beside(shared) | Self::Context(Member { shared, .. }, _) => shared.lock(),
        }
    }

    /// The endpoint's own device, whether its messages are matched there or not.
    pub(crate) fn lock_own(&mut self) -> Matcher<'_> {
        match self {
            Self::Context(_, own) => own.lock(),
            own => own.lock(),
        }
    }

    /// The device of an endpoint that one thread at a time uses, if it is no shared context's.
    #[inline]
    pub(crate) fn own_here(&mut self) -> Option<&mut Device<RecvOp, Kept>> {
        match self {
            Self::Here(device) => Some(device),
            _ => None,
        }
    }

    /// What receives are posted to that go past the engine, if it is no shared context's.
    pub(crate) fn own_beside(&self) -> Option<&Arc<Shared>> {
        match self {
            Self::Beside(shared) => Some(shared),
            _ => None,
        }
    }

    /// Whether no thread is in the middle of a post that it never ends, since the process exits.
    pub(crate) fn is_free_at_exit(&self) -> bool {
        self.own_beside().is_none_or(|shared| shared.lock_at_exit().is_some())
    }

    /// What counts the parts of buffers for several messages, if not the engine does.
    pub(crate) fn counts_parts(&self) -> Option<&Arc<Shared>> {
        match self {
            Self::Here(_) => None,
            Self::Beside(shared) | Self::Context(Member { shared, .. }, _) => Some(shared),
        }
    }

    /// Nobody looks after a peer any more, until a receive names it again.
    pub(crate) fn unwatch(&mut self, peer: u32) {
        if let Some(shared) = self.counts_parts() {
            shared.unwatch(peer);
        }
    }

    /// Whether messages are matched in the device of a shared context.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Context(..))
    }

    /// Has them matched there from now on.
    pub(crate) fn share(&mut self, member: Member) {
        let own = std::mem::replace(self, Self::Beside(Arc::clone(&member.shared)));
        *self = Self::Context(member, Box::new(own));
    }

    /// Who holds what this endpoint keeps.
    #[inline]
    pub(crate) fn holder(&self) -> u32 {
        if let Self::Context(member, _) = self { member.holder } else { 0 }
    }

    /// Leaves the shared context, if there is one: what it held for the endpoint is lost.
    pub(crate) fn leave(&mut self) {
        let Self::Context(Member { shared, context, holder }, _) = self else { return };
        // Another endpoint looks after peers from now on.
        shared.unwatch_all();
        let mut device = shared.lock();
        let contexts = device.contexts().into_iter();
        let lost: usize =
            contexts.map(|context| context.drop_unexpected(|_, kept| kept.holder == *holder)).sum();
        drop(device);
        if lost > 0 {
            tracing::warn!("{lost} messages that nobody received are lost with their endpoint");
        }
        context.remove(*holder);
    }
}
