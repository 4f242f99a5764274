// SPDX-License-Identifier: BSD-2-Clause
//! The receiving ends of an endpoint, one for each transport. They contain the slots
//! (`channel::wire`) that have come and were not handled yet.

use channel::{
    rx::{NET, Receivers, Rx, TRANSPORTS},
    tx::Tx,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Inbound {
    receivers: Receivers,
    /// Whether a slot waits until descriptors or memory are available to open its sender.
    is_short: bool,
}

impl Inbound {
    pub(super) fn new(transports: &Tx) -> Self {
        Self { receivers: transports.receivers(), is_short: false }
    }

    /// Returns whether there are slots to handle. If the network is open, polls it too.
    #[inline]
    pub(crate) fn has_any(&mut self) -> bool {
        self.receivers.iter_mut().flatten().any(|receiver| !receiver.is_empty())
    }

    /// Returns whether there are slots to handle that came over other transports than the network.
    /// This takes no system call.
    #[inline]
    pub(crate) fn has_local(&mut self) -> bool {
        let local = self.receivers.iter_mut().flatten().filter(|receiver| !receiver.is_net());
        local.into_iter().any(|receiver| !receiver.is_empty())
    }

    /// Returns whether there are slots to handle that came over a transport other than the network.
    #[inline(always)]
    pub(super) fn has_over(&mut self, transport: usize) -> bool {
        self.receivers[transport].as_mut().is_some_and(|receiver| !receiver.is_empty())
    }

    /// Returns the position after all slots that were sent over a transport or are being sent.
    /// `None` if the transport is not open.
    pub(super) fn end_over(&mut self, transport: usize) -> Option<u64> {
        self.receivers[transport].as_mut().map(|receiver| receiver.end())
    }

    /// Returns the number of slots that were handled over a transport.
    pub(super) fn position_over(&self, transport: usize) -> u64 {
        self.receivers[transport].as_ref().map_or(u64::MAX, |receiver| receiver.position())
    }

    /// Returns whether a transport other than shared memory is open; always true in tests, which
    /// have the loopback.
    #[inline]
    pub(super) fn has_others(&self) -> bool {
        TRANSPORTS > NET + 1 || self.has_net()
    }

    /// Returns whether the network is open.
    #[inline]
    pub(super) fn has_net(&self) -> bool {
        self.receivers[NET].is_some()
    }

    /// Takes the receiving end of a transport until [`Self::put_back`], so that its slots can be
    /// borrowed while the engine is used. Returns `None` if there are no slots, or if the transport
    /// is not open.
    #[inline(always)]
    pub(super) fn take(&mut self, transport: usize) -> Option<Box<Rx>> {
        self.receivers[transport].take_if(|receiver| !receiver.is_empty())
    }

    #[inline(always)]
    pub(super) fn put_back(&mut self, transport: usize, receiver: Box<Rx>) {
        self.receivers[transport] = Some(receiver);
    }

    /// Notes whether the next slot of a receiving end waits until descriptors or memory are
    /// available.
    #[inline]
    pub(super) fn set_short(&mut self, is_short: bool) {
        self.is_short = is_short;
    }

    /// Returns whether a slot waits until descriptors or memory are available.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Returns, for each transport that is open, the position after all slots that were sent or are
    /// being sent. For the network, this is the position after the next slot, if one has come.
    pub(super) fn ends(&mut self) -> [Option<u64>; TRANSPORTS] {
        self.receivers.each_mut().map(|receiver| receiver.as_mut().map(|receiver| receiver.end()))
    }

    /// Returns whether all slots before `ends` were handled.
    pub(super) fn has_reached(&self, ends: &[Option<u64>; TRANSPORTS]) -> bool {
        let mut receivers = self.receivers.iter().zip(ends);
        receivers
            .all(|(receiver, end)| receiver.as_ref().map(|receiver| receiver.position()) >= *end)
    }

    /// Skips a slot of the ring whose sender died while it wrote the slot, after two calls in a row
    /// have found the ring at this slot.
    pub(super) fn skip_stuck(&mut self) {
        for receiver in self.receivers.iter_mut().flatten() {
            if receiver.skip_stuck() {
                tracing::warn!("lost a message, because its sender died while it wrote the slot");
            }
        }
    }
}
