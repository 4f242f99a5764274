// SPDX-License-Identifier: BSD-2-Clause
//! The device of an endpoint, or of a shared receive context. It has a lock, or none if one thread at
//! a time uses it.

use std::{
    collections::HashMap,
    ops::{Deref, DerefMut},
};

use ffi::{
    OpContext, Result,
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

/// Exclusive use of a device.
pub(crate) struct Matcher<'a>(SerialGuard<'a, LockedDevice>);

impl Deref for Matcher<'_> {
    type Target = Device<RecvOp, Kept>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0.device
    }
}

impl DerefMut for Matcher<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0.device
    }
}

impl Matcher<'_> {
    /// See [`Flow::posted`].
    #[inline]
    pub(crate) fn posted(&mut self, tagged: bool) {
        self.0.receives.flow.posted(tagged);
    }

    /// See [`Flow::hold_post`].
    pub(crate) fn hold_post(&mut self, tagged: bool) -> Result<()> {
        self.0.receives.flow.hold_post(tagged)
    }

    /// See [`Flow::check_ids`].
    #[inline(always)]
    pub(crate) fn check_ids(&self) -> Result<()> {
        self.0.check_ids()
    }

    /// Notes that data will go into a receive's buffer, or an error to its queue, and releases the
    /// device.
    #[inline(always)]
    pub(crate) fn begin(mut self, op: &RecvOp, last: bool) {
        self.0.receives.begin(op, last);
    }

    /// Does the same as [`Matcher::begin`] for several receives, each with its last data.
    pub(crate) fn begin_all<'o>(mut self, ops: impl Iterator<Item = &'o RecvOp>) {
        ops.for_each(|op| self.0.receives.begin(op, true));
    }
}

/// A device, and the state of its receives.
#[derive(Debug)]
pub(crate) struct Shared(Serial<LockedDevice>);

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
    /// Creates a device with a lock, or without one if one thread at a time uses it.
    pub(crate) fn new(device: Device<RecvOp, Kept>, flow: Flow, locked: bool) -> Self {
        Self(Serial::new(LockedDevice { device, receives: ReceiveState::new(flow) }, locked))
    }

    #[inline]
    pub(crate) fn lock(&self) -> Matcher<'_> {
        Matcher(self.0.lock())
    }

    /// Locks the device when the process exits. Returns `None` if another thread does not release
    /// it in time, because it may never do so.
    pub(crate) fn lock_at_exit(&self) -> Option<Matcher<'_>> {
        self.0.lock_at_exit().map(Matcher)
    }

    /// Ends a message that [`Matcher::begin`] announced. Returns whether its completion must return
    /// the multi-receive buffer to the application.
    pub(crate) fn end(&self, op: &RecvOp) -> bool {
        self.0.lock().receives.end(op)
    }

    /// Notes that no endpoint watches a peer any more. [`Self::post`] returns the peer again for
    /// the next receive that names it.
    pub(crate) fn unwatch(&self, peer: u32) {
        self.0.lock().receives.unwatch(peer);
    }

    /// Notes that no endpoint watches any peer any more; see [`Self::unwatch`].
    pub(crate) fn unwatch_all(&self) {
        self.0.lock().receives.watched.clear();
    }

    /// Posts a receive. If an unexpected message matches, calls `deliver`, without the lock, to
    /// give the message to the receive. `deliver` returns false if the message was lost meanwhile.
    /// If the receive waits for a peer that it names and that no endpoint watches yet, returns this
    /// peer. The caller must let an endpoint watch the peer, so that the receive fails if the peer
    /// dies.
    ///
    /// # Errors
    /// Those of a receive that is held back, and of one without an ID ([`super::flow`]).
    pub(crate) fn post(
        &self,
        tagged: bool,
        receive: &mut Receive<RecvOp>,
        mut deliver: impl FnMut(Grant<RecvOp>, &Envelope, Kept) -> bool,
    ) -> Result<Option<u32>> {
        let mut posted = self.post_once(tagged, receive, false)?;
        loop {
            match posted.0 {
                Post::Pending => return Ok(posted.1),
                Post::HeldBack => self.0.lock().receives.flow.hold_post(tagged)?,
                Post::Matched { grant, envelope, message, again } => {
                    let (offset, op, last) = (grant.offset, grant.data.clone(), grant.last);
                    if deliver(grant, &envelope, message) {
                        if !again {
                            return Ok(None);
                        }
                    } else {
                        self.0.lock().receives.take_back(&op, last);
                        // The receive continues as if the message had not existed.
                        if let Some(multi) = &mut receive.multi {
                            multi.used = offset;
                        }
                    }
                }
            }
            posted = self.post_once(tagged, receive, true)?;
        }
    }

    /// Posts a receive once. `again`: the receive was tried before, and must not be held back now.
    /// Returns the peer that must be watched, as [`Self::post`] does.
    fn post_once(
        &self,
        tagged: bool,
        receive: &mut Receive<RecvOp>,
        again: bool,
    ) -> Result<(Post<RecvOp, Kept>, Option<u32>)> {
        let mut locked = self.0.lock();
        if !again {
            locked.check_ids()?;
        }
        let LockedDevice { device, receives } = &mut *locked;
        let context = device.context(tagged);
        let posted = if again { context.post_anyway(receive) } else { context.post(receive) };
        let named = match &posted {
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
        };
        Ok((posted, named))
    }
}

impl LockedDevice {
    /// See [`Flow::check_ids`].
    #[inline(always)]
    fn check_ids(&self) -> Result<()> {
        let LockedDevice { device, receives } = self;
        if receives.flow.needs_ids() {
            receives.flow.check_ids(device.tagged.posted() + device.msg.posted())?;
        }
        Ok(())
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
    #[inline(always)]
    fn begin(&mut self, op: &RecvOp, last: bool) {
        if op.multi {
            self.begin_part(op, last);
        }
    }

    #[cold]
    fn begin_part(&mut self, op: &RecvOp, last: bool) {
        let parts = self.parts.entry((op.context, op.buffer.addr())).or_default();
        parts.under_way += 1;
        parts.ended |= last;
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
