// SPDX-License-Identifier: BSD-2-Clause
//! The sending end of an endpoint to peers of this host: one thread after the other sends, whether it
//! has the rest of the endpoint or not.

use std::sync::Arc;

use ffi::{
    Buffer,
    serial::{Serial, SerialGuard},
};

use crate::{
    contract::{Payload, Sent},
    shm::{outbox::Outbox, segment::Segment},
    way::Link,
    wire::Header,
};

/// See the module.
#[derive(Debug)]
pub struct Sending {
    own: Arc<Segment>,
    outbox: Serial<Outbox>,
}

impl Sending {
    /// That of the endpoint with this segment, which several threads use if it is `locked`.
    pub(crate) fn new(own: &Arc<Segment>, checks: bool, locked: bool) -> Self {
        Self { own: Arc::clone(own), outbox: Serial::new(Outbox::new(checks), locked) }
    }

    /// Sends a message; none if there is no endpoint of this host at the peer's address, or nobody has
    /// met it yet.
    #[inline(always)]
    pub fn send_to_open(&self, peer: u32, header: &Header, message: &Buffer) -> Option<Sent> {
        let mut outbox = self.outbox.lock();
        if !outbox.is_open(peer) {
            return None;
        }
        let sent = outbox.send(&self.own, peer, header, Payload::Message(message));
        if sent == Some(Sent::Yes) {
            let (messages, bytes) = outbox.sent_to_open;
            outbox.sent_to_open = (messages + 1, bytes + header.len);
        }
        sent
    }

    /// Messages that were sent so, and their bytes.
    #[must_use]
    pub fn sent_to_open(&self) -> (u64, u64) {
        self.outbox.lock().sent_to_open
    }

    /// Sends a slot and what goes with it to whoever was met.
    #[inline(always)]
    pub(crate) fn send(&self, peer: u32, header: &Header, payload: Payload<'_>) -> Option<Sent> {
        self.outbox.lock().send(&self.own, peer, header, payload)
    }

    /// From now on there is nobody to send to.
    pub fn stop(&self) {
        self.outbox.lock().disconnect_all();
    }

    pub(crate) fn connect(&self, peer: u32, link: &Link) {
        if let Link::Shm(link) = link {
            self.outbox.lock().connect(peer, link);
        }
    }

    pub(crate) fn disconnect(&self, peer: u32) {
        self.outbox.lock().disconnect(&self.own, peer);
    }

    /// The outbox, for who has the rest of the endpoint.
    pub(crate) fn outbox(&self) -> (SerialGuard<'_, Outbox>, &Segment) {
        (self.outbox.lock(), &self.own)
    }
}
