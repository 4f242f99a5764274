// SPDX-License-Identifier: BSD-2-Clause
//! The receiving end of an endpoint over the network.

use std::sync::Arc;

use host::clock;

use super::{
    Net,
    frame::{FrameHeader, TIMES},
    input::{Frame, Payload},
};
use crate::{
    bytes::SharedBytes,
    contract::{Arrivals, Came, Received},
    wire::{FAR, Flags, Header, Kind, TIME},
};

/// The frame that is being handled.
#[derive(Clone, Debug)]
struct Current {
    /// Number of its connection.
    connection: usize,
    /// Number of its sender.
    number: u16,
    head: FrameHeader,
    header: Option<Header>,
    payload: Payload,
    /// Moment at which it came; `None` if it has no times.
    came: Option<Came>,
}

/// The receiving end of an endpoint over the network.
#[derive(Debug)]
pub struct NetRx {
    net: Arc<Net>,
    current: Option<Current>,
    released: u64,
}

impl NetRx {
    pub(crate) fn new(net: &Arc<Net>) -> Self {
        Self { net: Arc::clone(net), current: None, released: 0 }
    }

    /// Returns whether no frame has come. If no frame waits, makes progress first.
    pub(crate) fn is_empty(&mut self) -> bool {
        if self.current.is_some() {
            return false;
        }
        if !self.net.is_ours() {
            return true;
        }
        let mut peers = self.net.peers.lock();
        if peers.connections.has_frame() {
            return false;
        }
        peers.progress();
        !peers.connections.has_frame()
    }

    /// Takes the next frame.
    fn next(&self) -> Option<Current> {
        let mut peers = self.net.peers.lock();
        let (connection, number, frame) = peers.take()?;
        let came = frame.times().and_then(|times| {
            let clock = peers.get_mut(number)?.clock.as_mut()?;
            Some(clock.note(times, clock::now()))
        });
        drop(peers);
        let Frame { head, payload } = frame;
        let header = Header::read(head.words).map(|header| {
            let kind = if payload.is_none() { Kind::Landed } else { header.kind };
            Header { kind, peer: FAR + u32::from(number), ..header }
        });
        Some(Current { connection, number, head, header, payload, came })
    }

    /// Returns the payload of the current frame, including its times.
    fn whole_payload(&self) -> SharedBytes<'_> {
        let payload = self.current.as_ref().and_then(|current| current.payload.as_ref());
        let bytes = payload.and_then(|(bytes, at, len)| bytes.get(*at..at + len));
        SharedBytes::from(bytes.unwrap_or_default())
    }

    pub(crate) fn position(&self) -> u64 {
        self.released
    }

    /// Returns the number of released frames, plus one if another frame has come.
    pub(crate) fn end(&mut self) -> u64 {
        self.released + u64::from(!self.is_empty())
    }
}

impl Arrivals for NetRx {
    fn peek(&mut self) -> Option<Received> {
        if self.current.is_none() && self.net.is_ours() {
            self.current = self.next();
        }
        self.current.as_ref().map(|current| Received { header: current.header })
    }

    fn payload(&self) -> SharedBytes<'_> {
        let header = self.current.as_ref().and_then(|current| current.header);
        let is_timed = header.is_some_and(|header| header.flags.contains(Flags::TIMED));
        // As in a slot, the time of the send comes before the payload.
        self.whole_payload().skip(if is_timed { TIMES - TIME } else { 0 })
    }

    fn time(&self) -> Option<Came> {
        self.current.as_ref()?.came
    }

    fn check(&self) -> Option<u32> {
        let current = self.current.as_ref()?;
        let sum = FrameHeader::sum_of(&current.head.words, &self.whole_payload().keep());
        (sum == current.head.sum).then_some(current.head.check)
    }

    fn release(&mut self) {
        if let Some(Current { connection, number, payload, .. }) = self.current.take() {
            // The connection cannot read into its buffer before this reference to it is dropped.
            drop(payload);
            let mut peers = self.net.peers.lock();
            peers.connections.done(connection);
            peers.frame_handled(number);
            self.released += 1;
        }
    }
}
