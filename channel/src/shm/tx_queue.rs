// SPDX-License-Identifier: BSD-2-Clause
//! The tx queue: the sending end of an endpoint. The payload of a slot is in the slot, or in a
//! buffer of the sender's segment that the slot names.
//!
//! ```text
//! send(peer, header, payload):
//!     nothing, or it fits a slot      slot                                 else NoRoom
//!     it does not                     buffer = a free one                  else NoBuffer
//!                                     fill it; slot with its number        else give it back: NoRoom
//! ```
//! A thread announces in its segment which slot of which ring it claims. The segment has a few
//! intent words for that, so a few threads can send at a time, each with a set of tx rings
//! ([`crate::sending`]). All but the first send only what fits a slot.
//!
//! Functions between a message and its slot are `inline(always)`: out of line, they take 20 to 48
//! instructions per message.

use std::time::Instant;

use ffi::{Buffer, ops::ep::rma::RemotePart};

use super::{
    buffers::Buffers,
    segment::{BUFFER, Segment},
    tx_ring::{TxRing, fill_buffer, fill_bytes, fill_frame},
    tx_rings::TxRings,
};
use crate::{
    contract::{Payload, Sent},
    wire::{CHECKED_INLINE, Frame, Header, INLINE, Kind},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct TxQueue {
    pub(crate) tx_rings: TxRings,
    buffers: Buffers,
    /// Longest payload of a slot.
    room: usize,
    /// Whether slots have checksums.
    checks: bool,
}

impl TxQueue {
    pub(crate) fn new(checks: bool) -> Self {
        Self { tx_rings: TxRings::new(0), buffers: Buffers::new(), room: room(checks), checks }
    }

    /// Reclaims the buffers that a disconnected peer still holds.
    pub(crate) fn reclaim(&mut self, own: &Segment, peer: u32) {
        self.buffers.reclaim(own, peer);
    }

    /// Sets the checksum of the payload of the next slot to a peer. Returns whether there is a tx
    /// ring to it.
    pub(crate) fn set_check(&mut self, peer: u32, check: u32) -> bool {
        let tx_ring = self.tx_rings.get(peer);
        tx_ring.map(|tx_ring| tx_ring.set_check(check)).is_some()
    }

    /// Sends a message. Returns `None` if there is no open tx ring to its receiver.
    #[inline(always)]
    pub(crate) fn send_to_open(
        &mut self,
        own: &Segment,
        peer: u32,
        header: &Header,
        message: &Buffer,
    ) -> Option<Sent> {
        if message.len() <= self.room {
            return self.tx_rings.send_short(own, peer, header, message);
        }
        self.send_noted(own, peer, header, Payload::Message(message))
    }

    /// Sends and counts a message that may need a buffer. Returns `None` if there is no open tx
    /// ring to its receiver.
    #[inline(always)]
    pub(crate) fn send_noted(
        &mut self,
        own: &Segment,
        peer: u32,
        header: &Header,
        payload: Payload<'_>,
    ) -> Option<Sent> {
        self.tx_rings.open(peer)?;
        let sent = self.send(own, peer, header, payload)?;
        self.tx_rings.note(sent, header);
        Some(sent)
    }

    /// Sends a slot and its payload to a peer. Returns `None` if there is no tx ring to it.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        own: &Segment,
        peer: u32,
        header: &Header,
        payload: Payload<'_>,
    ) -> Option<Sent> {
        let Self { tx_rings, buffers, room, checks } = self;
        let tx_ring = tx_rings.get(peer)?;
        let mut load = Load { own, tx_ring, peer, buffers, room: *room, checks: *checks };
        Some(match payload {
            Payload::Nothing => Sent::if_room(load.tx_ring.push_bare(own, header)),
            Payload::Message(message) if message.len() <= load.room => {
                Sent::if_room(load.tx_ring.push_inline(own, header, message))
            }
            Payload::Message(message) => load.send_buffered(header, message),
            Payload::IfQuick(message) => load.send_if_quick(header, message),
            Payload::Part(part) => load.send_part(header, part),
            Payload::Frame(parts, data) => load.send_frame(header, parts, data),
            Payload::Bytes(bytes) => load.send_bytes(header, bytes),
            Payload::Where(message) => {
                Sent::if_room(load.tx_ring.push_rendezvous(own, header, message))
            }
            Payload::Segments(parts, here) => {
                Sent::if_room(load.tx_ring.push_segments(own, header, parts, here))
            }
        })
    }

    /// Returns whether requests for a buffer have failed for a while.
    pub(crate) fn is_stuck(&self) -> bool {
        self.buffers.is_stuck()
    }

    /// Returns whether a buffer is free.
    pub(crate) fn has_room(&mut self, own: &Segment) -> bool {
        self.buffers.has_room(own)
    }

    /// Returns whether receivers still hold buffers.
    pub(crate) fn is_lent(&mut self, own: &Segment) -> bool {
        self.buffers.is_lent(own)
    }

    /// Lends all buffers.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn take_all(&mut self, own: &Segment, peer: u32) {
        while self.buffers.take(own, peer).is_some() {}
    }
}

/// Longest payload of a slot.
pub(crate) fn room(checks: bool) -> usize {
    if checks { CHECKED_INLINE } else { INLINE }
}

/// A send: its peer, and what it needs.
struct Load<'a> {
    own: &'a Segment,
    tx_ring: &'a mut TxRing,
    peer: u32,
    buffers: &'a mut Buffers,
    room: usize,
    checks: bool,
}

impl Load<'_> {
    /// Sends a slot whose buffer is filled. If there is no room, returns the buffer.
    fn send_filled(&mut self, header: &Header) -> Sent {
        let there_is = self.tx_ring.push_bare(self.own, header);
        if !there_is {
            self.buffers.untake(self.own);
        }
        Sent::if_room(there_is)
    }

    /// Sends a message in a buffer.
    #[inline(never)]
    fn send_buffered(&mut self, header: &Header, message: &Buffer) -> Sent {
        self.send_part(&Header { kind: Kind::Buffered, ..*header }, message)
    }

    #[inline(never)]
    fn send_part(&mut self, header: &Header, part: &Buffer) -> Sent {
        let Some(buffer) = self.buffers.take(self.own, self.peer) else { return Sent::NoBuffer };
        fill_buffer(self.own, buffer, part);
        self.send_filled(&Header { count: buffer as u32, ..*header })
    }

    #[inline(never)]
    fn send_if_quick(&mut self, header: &Header, message: &Buffer) -> Sent {
        let is_alone = self.buffers.last_is_back(self.own);
        let Some(is_timed) = self.tx_ring.eager_policy.ask(is_alone) else { return Sent::NoBuffer };
        let Some(buffer) = self.buffers.take(self.own, self.peer) else { return Sent::NoBuffer };
        let start = is_timed.then(Instant::now);
        fill_buffer(self.own, buffer, message);
        let header = Header { kind: Kind::Buffered, count: buffer as u32, ..*header };
        let sent = self.send_filled(&header);
        if let (Sent::Yes, Some(start)) = (sent, start) {
            self.tx_ring.eager_policy.note(message.len(), start.elapsed());
        }
        sent
    }

    #[inline(never)]
    fn send_frame(&mut self, header: &Header, parts: &[RemotePart], data: &[Buffer]) -> Sent {
        let len = size_of_val(parts) + data.iter().map(Buffer::len).sum::<usize>();
        let mut frame = Frame { parts: parts.len() as u8, ..Frame::default() };
        if len <= self.room {
            let header = Header { count: frame.pack(), ..*header };
            return Sent::if_room(self.tx_ring.push_frame(self.own, &header, parts, data));
        }
        let Some(buffer) = self.buffers.take(self.own, self.peer) else { return Sent::NoBuffer };
        fill_frame(self.own, buffer, parts, data);
        frame.buffer = Some(buffer as u16);
        self.note_checksum(buffer);
        self.send_filled(&Header { count: frame.pack(), ..*header })
    }

    #[inline(never)]
    fn send_bytes(&mut self, header: &Header, bytes: &[u8]) -> Sent {
        if bytes.len() <= self.room {
            return Sent::if_room(self.tx_ring.push_bytes(self.own, header, bytes));
        }
        let Some(buffer) = self.buffers.take(self.own, self.peer) else { return Sent::NoBuffer };
        fill_bytes(self.own, buffer, bytes);
        let frame = Frame { buffer: Some(buffer as u16), ..Frame::default() };
        self.note_checksum(buffer);
        self.send_filled(&Header { count: frame.pack(), ..*header })
    }

    /// Sets the checksum of the next slot to that of a buffer.
    fn note_checksum(&mut self, buffer: usize) {
        if self.checks
            && let Some(bytes) = self.own.buffer_bytes(buffer, BUFFER as u64)
        {
            self.tx_ring.set_check(crc32c::crc32c(&bytes.keep()));
        }
    }
}
