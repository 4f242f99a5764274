// SPDX-License-Identifier: BSD-2-Clause
//! The slots that have come to an endpoint, over each transport.

use channel::{
    rx::{NET, Receivers, Rx, TRANSPORTS},
    tx::Tx,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Inbound {
    inboxes: Receivers,
    /// A slot waits until descriptors or memory are available.
    is_short: bool,
}

impl Inbound {
    pub(super) fn new(home: &Tx) -> Self {
        Self { inboxes: home.receivers(), is_short: false }
    }

    /// Returns whether there are slots to handle.
    #[inline]
    pub(crate) fn has_any(&mut self) -> bool {
        self.inboxes.iter_mut().flatten().any(|inbox| !inbox.is_empty())
    }

    /// Returns whether there are slots of this host to handle, which is a quick check.
    #[inline]
    pub(crate) fn has_near(&mut self) -> bool {
        let near = self.inboxes.iter_mut().flatten().filter(|inbox| !inbox.is_net());
        near.into_iter().any(|inbox| !inbox.is_empty())
    }

    /// Returns whether a transport other than shared memory is open.
    #[inline]
    pub(super) fn has_others(&self) -> bool {
        TRANSPORTS > NET + 1 || self.has_net()
    }

    #[inline]
    pub(super) fn has_net(&self) -> bool {
        self.inboxes[NET].is_some()
    }

    /// Takes the inbox of a transport if it has slots, so that they can be lent, until
    /// [`Self::put_back`].
    #[inline(always)]
    pub(super) fn take(&mut self, transport: usize) -> Option<Box<Rx>> {
        self.inboxes[transport].take_if(|inbox| !inbox.is_empty())
    }

    #[inline(always)]
    pub(super) fn put_back(&mut self, transport: usize, inbox: Box<Rx>) {
        self.inboxes[transport] = Some(inbox);
    }

    /// Notes whether the first slot of an inbox waits until descriptors or memory are available.
    #[inline]
    pub(super) fn set_short(&mut self, is_short: bool) {
        self.is_short = is_short;
    }

    /// Returns whether a slot waits until descriptors or memory are available.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// The positions after all slots that were claimed before.
    pub(super) fn ends(&mut self) -> [Option<u64>; TRANSPORTS] {
        self.inboxes.each_mut().map(|inbox| inbox.as_mut().map(|inbox| inbox.end()))
    }

    /// Returns whether all slots before `ends` were handled.
    pub(super) fn has_reached(&self, ends: &[Option<u64>; TRANSPORTS]) -> bool {
        let mut inboxes = self.inboxes.iter().zip(ends);
        inboxes.all(|(inbox, end)| inbox.as_ref().map(|inbox| inbox.position()) >= *end)
    }

    /// Skips slots that were claimed one interval ago by senders that have died.
    pub(super) fn skip_stuck(&mut self) {
        for inbox in self.inboxes.iter_mut().flatten() {
            if inbox.skip_stuck() {
                tracing::warn!("a message is lost, its sender died while it wrote it");
            }
        }
    }

    /// Number of slots over shared memory that were handled.
    #[cfg(test)]
    pub(super) fn position(&self) -> u64 {
        self.inboxes[0].as_ref().map_or(0, |inbox| inbox.position())
    }
}
