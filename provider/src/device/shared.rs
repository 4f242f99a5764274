// SPDX-License-Identifier: BSD-2-Clause
//! A device that is used without the lock of an engine: that of an endpoint with several threads,
//! or that of a shared receive context. It has one lock, or those of tail queues
//! (`nic::device::tail`), with which one thread can post while another handles a message.

use std::{
    collections::HashMap,
    ops::{Deref, DerefMut},
};

use ffi::{
    OpContext, Result,
    serial::{self, Serial, SerialGuard},
};
use matching::Source;
use nic::{
    device::{
        Device,
        tail::{TailDevice, Whole},
    },
    message::{Envelope, Grant, Post, Receive},
};
use parking_lot::Mutex;

use super::{
    carried::{Kept, RecvOp},
    flow::Flow,
};

/// Exclusive use of a device.
pub(crate) enum Matcher<'a> {
    Own(&'a mut Device<RecvOp, Kept>),
    Shared(SerialGuard<'a, LockedDevice>),
    /// Boxed, because every message would otherwise execute the code that drops the three lock
    /// guards, even without tail queues. That code has 31 instructions.
    Tail(Box<Whole<'a, RecvOp, Kept>>, &'a Mutex<ReceiveState>),
}

impl Deref for Matcher<'_> {
    type Target = Device<RecvOp, Kept>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Own(device) => device,
            Self::Shared(state) => &state.device,
            Self::Tail(device, _) => device,
        }
    }
}

impl DerefMut for Matcher<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Own(device) => device,
            Self::Shared(state) => &mut state.device,
            Self::Tail(device, _) => device,
        }
    }
}

impl Matcher<'_> {
    /// Notes that data will go into a receive's buffer, or an error to its queue, and releases the
    /// device.
    #[inline(always)]
    pub(crate) fn begin(self, op: &RecvOp, last: bool) {
        match self {
            Self::Own(_) => {}
            Self::Shared(mut state) => state.receives.begin(op, last),
            Self::Tail(_device, receives) => receives.lock().begin(op, last),
        }
    }

    /// Does the same as [`Matcher::begin`] for several receives, each with its last data.
    pub(crate) fn begin_all<'o>(self, ops: impl Iterator<Item = &'o RecvOp>) {
        match self {
            Self::Own(_) => {}
            Self::Shared(mut state) => ops.for_each(|op| state.receives.begin(op, true)),
            Self::Tail(_device, receives) => {
                let mut receives = receives.lock();
                ops.for_each(|op| receives.begin(op, true));
            }
        }
    }
}

/// A device that is used without the lock of an engine.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is behind an `Arc`")]
pub(crate) enum Shared {
    /// With one lock, or none if one thread at a time uses the device.
    One(Serial<LockedDevice>),
    /// With the locks of tail queues.
    Tail(Box<TailDevice<RecvOp, Kept>>, Mutex<ReceiveState>),
}

/// State that one thread at a time uses.
#[derive(Debug)]
pub(crate) struct LockedDevice {
    device: Device<RecvOp, Kept>,
    receives: ReceiveState,
}

/// State for receives, besides the device.
#[derive(Debug)]
pub(crate) struct ReceiveState {
    flow: Flow,
    /// Messages in progress into multi-receive buffers, by context and address of the buffer. The
    /// endpoint that ends the last one returns the buffer to the application.
    parts: HashMap<(OpContext, usize), Parts>,
    /// Peers that an endpoint watches, one bit each by number. A receive that names a peer sets its
    /// bit. [`Shared::unwatch`] clears it.
    watched: Vec<u64>,
}

#[derive(Debug, Default)]
struct Parts {
    under_way: u32,
    /// Whether no further message goes into the buffer.
    ended: bool,
}

impl Shared {
    /// Creates a device with one lock, or without one if one thread at a time uses it.
    pub(crate) fn one(device: Device<RecvOp, Kept>, flow: Flow, locked: bool) -> Self {
        Self::One(Serial::new(LockedDevice { device, receives: ReceiveState::new(flow) }, locked))
    }

    /// Creates a device with tail queues.
    pub(crate) fn of_tails(device: TailDevice<RecvOp, Kept>, flow: Flow) -> Self {
        Self::Tail(Box::new(device), Mutex::new(ReceiveState::new(flow)))
    }

    /// Handles a message that arrives at tail queues; see [`TailDevice::arrive`]. Returns `None` if
    /// no receive matches; the message is then kept. The device must have tail queues. Messages of
    /// an endpoint arrive in one thread at a time, so no other message into the same buffer ends
    /// before this one begins.
    pub(crate) fn arrive_at_tails(
        &self,
        tagged: bool,
        envelope: &Envelope,
        make: impl FnOnce() -> Kept,
    ) -> Option<Grant<RecvOp>> {
        let Self::Tail(device, receives) = self else { return None };
        let grant = device.arrive(tagged, envelope, make)?;
        if grant.data.multi {
            receives.lock().begin(&grant.data, grant.last);
        }
        Some(grant)
    }

    pub(crate) fn lock(&self) -> Matcher<'_> {
        match self {
            Self::One(state) => Matcher::Shared(state.lock()),
            Self::Tail(device, receives) => Matcher::Tail(Box::new(device.whole()), receives),
        }
    }

    /// Locks the device when the process exits. Returns `None` if another thread does not release
    /// it in time, because it may never do so.
    pub(crate) fn lock_at_exit(&self) -> Option<Matcher<'_>> {
        match self {
            Self::One(state) => state.lock_at_exit().map(Matcher::Shared),
            Self::Tail(device, receives) => {
                let whole = serial::try_lock_at_exit(|| device.try_whole())?;
                Some(Matcher::Tail(Box::new(whole), receives))
            }
        }
    }

    fn with_receives<T>(&self, work: impl FnOnce(&mut ReceiveState) -> T) -> T {
        match self {
            Self::One(state) => work(&mut state.lock().receives),
            Self::Tail(_, receives) => work(&mut receives.lock()),
        }
    }

    /// Ends a message that [`Matcher::begin`] announced. Returns whether its completion must return
    /// the multi-receive buffer to the application.
    pub(crate) fn end(&self, op: &RecvOp) -> bool {
        self.with_receives(|receives| receives.end(op))
    }

    /// Notes that no endpoint watches a peer any more. [`Self::post`] returns the peer again for
    /// the next receive that names it.
    pub(crate) fn unwatch(&self, peer: u32) {
        self.with_receives(|receives| receives.unwatch(peer));
    }

    /// Notes that no endpoint watches any peer any more; see [`Self::unwatch`].
    pub(crate) fn unwatch_all(&self) {
        self.with_receives(|receives| receives.watched.clear());
    }

    /// Posts a receive. If an unexpected message matches, calls `deliver`, without the lock, to
    /// give the message to the receive. `deliver` returns false if the message was lost meanwhile.
    /// If the receive waits for a peer that it names and that no endpoint watches yet, returns this
    /// peer. The caller must let an endpoint watch the peer, so that the receive fails if the peer
    /// dies.
    ///
    /// # Errors
    /// Those of a receive that is held back ([`super::flow`]).
    pub(crate) fn post(
        &self,
        tagged: bool,
        receive: &mut Receive<RecvOp>,
        mut deliver: impl FnMut(Grant<RecvOp>, &Envelope, Kept) -> bool,
    ) -> Result<Option<u32>> {
        let mut posted = self.post_once(tagged, receive, false);
        loop {
            match posted.0 {
                Post::Pending => return Ok(posted.1),
                Post::HeldBack => self.with_receives(|receives| receives.flow.hold_post(tagged))?,
                Post::Matched { grant, envelope, message, again } => {
                    let (offset, op, last) = (grant.offset, grant.data.clone(), grant.last);
                    if deliver(grant, &envelope, message) {
                        if !again {
                            return Ok(None);
                        }
                    } else {
                        self.with_receives(|receives| receives.take_back(&op, last));
                        // The receive continues as if the message had not existed.
                        if let Some(multi) = &mut receive.multi {
                            multi.used = offset;
                        }
                    }
                }
            }
            posted = self.post_once(tagged, receive, true);
        }
    }

    /// Posts a receive once. `again`: the receive was tried before, and must not be held back now.
    /// Returns the peer that must be watched, as [`Self::post`] does.
    fn post_once(
        &self,
        tagged: bool,
        receive: &mut Receive<RecvOp>,
        again: bool,
    ) -> (Post<RecvOp, Kept>, Option<u32>) {
        let after = |receives: &mut ReceiveState,
                     receive: &Receive<RecvOp>,
                     posted: &Post<RecvOp, Kept>| {
            match posted {
                Post::Pending => {
                    if !again {
                        receives.flow.posted(tagged);
                    }
                    receives.watch(receive.key.source)
                }
                Post::HeldBack => None,
                Post::Matched { grant, .. } => {
                    receives.begin(&grant.data, grant.last);
                    None
                }
            }
        };
        match self {
            Self::One(state) => {
                let LockedDevice { device, receives } = &mut *state.lock();
                let context = device.context(tagged);
                let posted =
                    if again { context.post_anyway(receive) } else { context.post(receive) };
                let named = after(receives, receive, &posted);
                (posted, named)
            }
            Self::Tail(device, receives) => {
                let posted = device.post(tagged, receive, again);
                let is_plain = match &posted {
                    Post::Pending => receive.key.source.is_any(),
                    Post::HeldBack => true,
                    Post::Matched { grant, .. } => !grant.data.multi,
                };
                let named =
                    if is_plain { None } else { after(&mut receives.lock(), receive, &posted) };
                (posted, named)
            }
        }
    }
}

impl ReceiveState {
    fn new(flow: Flow) -> Self {
        Self { flow, parts: HashMap::new(), watched: Vec::new() }
    }

    /// Marks the peer of a source as watched. Returns it if it was not marked before.
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

    /// See [`Matcher::begin`].
    fn begin(&mut self, op: &RecvOp, last: bool) {
        if op.multi {
            let parts = self.parts.entry((op.context, op.buffer.addr())).or_default();
            parts.under_way += 1;
            parts.ended |= last;
        }
    }

    /// Undoes [`Self::begin`]: nothing goes into the receive's buffer.
    fn take_back(&mut self, op: &RecvOp, last: bool) {
        if let Some(parts) = self.parts.get_mut(&(op.context, op.buffer.addr())) {
            parts.ended &= !last;
        }
        self.end(op);
    }

    /// See [`Shared::end`].
    fn end(&mut self, op: &RecvOp) -> bool {
        let key = (op.context, op.buffer.addr());
        let Some(parts) = self.parts.get_mut(&key) else { return false };
        parts.under_way -= 1;
        let (over, ended) = (parts.under_way == 0, parts.ended);
        if over {
            self.parts.remove(&key);
        }
        over && ended
    }
}
