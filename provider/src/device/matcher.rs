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

use std::{
    collections::HashMap,
    fmt::Debug,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use ffi::{
    Context, Result,
    serial::{Serial, SerialGuard},
};
use matching::Source;
use nic::{
    device::Device,
    message::{Envelope, Grant, Post, Receive},
};

use super::{
    carried::{Kept, RecvOp},
    flow::Flow,
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

/// Exclusive use of the device.
pub(crate) enum Matcher<'a> {
    Own(&'a mut Device<RecvOp, Kept>),
    Shared(SerialGuard<'a, State>),
}

impl Deref for Matcher<'_> {
    type Target = Device<RecvOp, Kept>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Own(device) => device,
            Self::Shared(state) => &state.device,
        }
    }
}

impl DerefMut for Matcher<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Own(device) => device,
            Self::Shared(state) => &mut state.device,
        }
    }
}

impl Matcher<'_> {
    /// Something goes into a receive's buffer, or an error to its queue.
    #[inline]
    pub(crate) fn begin(&mut self, op: &RecvOp, last: bool) {
        if let Self::Shared(state) = self {
            state.begin(op, last);
        }
    }
}

impl Matching {
    /// That of an endpoint that one thread at a time uses.
    pub(crate) fn here(own: Device<RecvOp, Kept>) -> Self {
        Self::Here(own)
    }

    /// That of an endpoint that several threads use.
    pub(crate) fn beside(own: Device<RecvOp, Kept>, flow: Flow) -> Self {
        Self::Beside(Arc::new(Shared::new(own, flow, true)))
    }

    #[inline]
    pub(crate) fn lock(&mut self) -> Matcher<'_> {
        match self {
            Self::Here(device) => Matcher::Own(device),
            Self::Beside(shared) | Self::Context(Member { shared, .. }, _) => {
                Matcher::Shared(shared.state.lock())
            }
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
        self.own_beside().is_none_or(|shared| shared.state.lock_at_exit().is_some())
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
        if let Matcher::Shared(mut state) = self.lock() {
            state.unwatch(peer);
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
        let mut state = shared.state.lock();
        // Another endpoint looks after them from now on.
        state.watched.clear();
        let contexts = state.device.contexts().into_iter();
        let lost: usize =
            contexts.map(|context| context.drop_unexpected(|_, kept| kept.holder == *holder)).sum();
        drop(state);
        if lost > 0 {
            tracing::warn!("{lost} messages that nobody received are lost with their endpoint");
        }
        context.remove(*holder);
    }
}

/// A device with a lock of its own, and what its receives need.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: Serial<State>,
}

impl Shared {
    pub(crate) fn new(device: Device<RecvOp, Kept>, flow: Flow, locked: bool) -> Self {
        Self {
            state: Serial::new(
                State { device, flow, parts: HashMap::new(), watched: Vec::new() },
                locked,
            ),
        }
    }

    /// Posts a receive. `deliver` gives it an unexpected message, without the lock; it answers false if
    /// the message was lost meanwhile. Answers whom the receive names, if it waits and nobody looks
    /// after that peer yet: the caller has somebody do so.
    ///
    /// # Errors
    /// Those of a receive that is held back ([`super::flow`]).
    pub(crate) fn post(
        &self,
        tagged: bool,
        receive: &mut Receive<RecvOp>,
        mut deliver: impl FnMut(Grant<RecvOp>, &Envelope, Kept) -> bool,
    ) -> Result<Option<u32>> {
        let mut state = self.state.lock();
        let mut posted = state.device.context(tagged).post(receive);
        if let Post::Pending = posted {
            state.flow.posted(tagged);
        }
        loop {
            match posted {
                Post::Pending => return Ok(state.watch(receive.key.source)),
                Post::HeldBack => state.flow.hold_post(tagged)?,
                Post::Matched { grant, envelope, message, again } => {
                    state.begin(&grant.data, grant.last);
                    drop(state);
                    let (offset, op, last) = (grant.offset, grant.data.clone(), grant.last);
                    let delivered = deliver(grant, &envelope, message);
                    state = self.state.lock();
                    if !delivered {
                        state.take_back(&op, last);
                        // The receive goes on as if the message had not been there.
                        if let Some(multi) = &mut receive.multi {
                            multi.used = offset;
                        }
                    } else if !again {
                        return Ok(None);
                    }
                }
            }
            posted = state.device.context(tagged).post_anyway(receive);
        }
    }

    /// What [`Matcher::begin`] began is told; whether the buffer is given back with it.
    pub(crate) fn end(&self, op: &RecvOp) -> bool {
        let mut state = self.state.lock();
        let key = (op.context, op.buffer.addr());
        let Some(parts) = state.parts.get_mut(&key) else { return false };
        parts.under_way -= 1;
        let (over, ended) = (parts.under_way == 0, parts.ended);
        if over {
            state.parts.remove(&key);
        }
        over && ended
    }
}

/// What one thread at a time uses.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) device: Device<RecvOp, Kept>,
    pub(crate) flow: Flow,
    /// Messages under way into multi-receive buffers, by the context and address of these:
    /// whichever endpoint has the last one gives the buffer back.
    parts: HashMap<(Context, usize), Parts>,
    /// Peers that somebody looks after, a bit each by number: those that receives name which were
    /// posted since the peer was last without a link.
    watched: Vec<u64>,
}

#[derive(Debug, Default)]
struct Parts {
    under_way: u32,
    /// No further message goes into the buffer.
    ended: bool,
}

impl State {
    /// The peer of a source, if nobody looks after it yet.
    fn watch(&mut self, source: Source) -> Option<u32> {
        let peer = source.get()?;
        let (word, bit) = (peer as usize / 64, 1 << (peer % 64));
        if word >= self.watched.len() {
            self.watched.resize(word + 1, 0);
        }
        let is_new = self.watched[word] & bit == 0;
        self.watched[word] |= bit;
        is_new.then_some(peer)
    }

    fn unwatch(&mut self, peer: u32) {
        if let Some(word) = self.watched.get_mut(peer as usize / 64) {
            *word &= !(1 << (peer % 64));
        }
    }

    pub(crate) fn begin(&mut self, op: &RecvOp, last: bool) {
        if op.multi {
            let parts = self.parts.entry((op.context, op.buffer.addr())).or_default();
            parts.under_way += 1;
            parts.ended |= last;
        }
    }

    /// Nothing goes into a receive's buffer after all: as if it had not begun.
    pub(crate) fn take_back(&mut self, op: &RecvOp, last: bool) {
        let key = (op.context, op.buffer.addr());
        if let Some(parts) = self.parts.get_mut(&key) {
            parts.under_way -= 1;
            parts.ended &= !last;
            if parts.under_way == 0 {
                self.parts.remove(&key);
            }
        }
    }
}
