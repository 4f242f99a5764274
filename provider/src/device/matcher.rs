// SPDX-License-Identifier: BSD-2-Clause
//! Where an endpoint's messages are matched: in its own device, or in that of a shared context.

use std::{
    collections::HashMap,
    fmt::Debug,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use ffi::{
    Context,
    serial::{Serial, SerialGuard},
};
use nic::device::Device;

use super::{
    carried::{Kept, RecvOp},
    flow::Flow,
};

/// Where an endpoint's messages are matched.
#[derive(Debug)]
pub(crate) struct Matching {
    pub(crate) own: Device<RecvOp, Kept>,
    pub(crate) shared: Option<Member>,
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
    pub(crate) fn new(own: Device<RecvOp, Kept>) -> Self {
        Self { own, shared: None }
    }

    #[inline]
    pub(crate) fn lock(&mut self) -> Matcher<'_> {
        match &self.shared {
            None => Matcher::Own(&mut self.own),
            Some(member) => Matcher::Shared(member.shared.state.lock()),
        }
    }

    /// Who holds what this endpoint keeps.
    #[inline]
    pub(crate) fn holder(&self) -> u32 {
        self.shared.as_ref().map_or(0, |member| member.holder)
    }

    /// Leaves the shared context, if there is one: what it held for the endpoint is lost.
    pub(crate) fn leave(&mut self) {
        let Some(Member { shared, context, holder }) = self.shared.take() else { return };
        let mut state = shared.state.lock();
        let contexts = state.device.contexts().into_iter();
        let lost: usize =
            contexts.map(|context| context.drop_unexpected(|_, kept| kept.holder == holder)).sum();
        drop(state);
        if lost > 0 {
            tracing::warn!("{lost} messages that nobody received are lost with their endpoint");
        }
        context.remove(holder);
    }
}

/// The device of a shared receive context, and what its receives need.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: Serial<State>,
}

impl Shared {
    pub(crate) fn new(device: Device<RecvOp, Kept>, flow: Flow, locked: bool) -> Self {
        Self { state: Serial::new(State { device, flow, parts: HashMap::new() }, locked) }
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
}

#[derive(Debug, Default)]
struct Parts {
    under_way: u32,
    /// No further message goes into the buffer.
    ended: bool,
}

impl State {
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
