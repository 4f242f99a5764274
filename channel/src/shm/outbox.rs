// SPDX-License-Identifier: BSD-2-Clause
//! The sending end of an endpoint: what goes with a slot lies in its payload, or in a buffer of the
//! sender's segment that the slot names.
//!
//! ```text
//! send(header, payload):
//!     nothing, or it fits a slot      slot                                 else NoRoom
//!     it does not                     buffer = a free one                  else NoBuffer
//!                                     fill it; slot with its number        else give it back: NoRoom
//! ```
//! What a message passes on its way into a slot is inlined by force (`inline(always)`): out of line
//! it costs 20 to 48 instructions a message.

use std::time::Instant;

use ffi::{Buffer, ops::ep::rma::RemotePart};

use super::{
    buffers::Buffers,
    link::{Link, fill_buffer, fill_bytes, fill_frame},
    segment::{BUFFER, Segment},
};
use crate::{
    contract::{Payload, Sent},
    wire::{CHECKED_INLINE, Frame, Header, INLINE, Kind},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Outbox {
    buffers: Buffers,
    /// Longest payload of a slot.
    room: usize,
    /// Whether slots have checksums.
    checks: bool,
}

impl Outbox {
    pub(crate) fn new(checks: bool) -> Self {
        Self { buffers: Buffers::new(), room: if checks { CHECKED_INLINE } else { INLINE }, checks }
    }

    /// Whether so many bytes go with a slot without a buffer.
    #[inline(always)]
    pub(crate) fn fits(&self, len: usize) -> bool {
        len <= self.room
    }

    /// Sends a slot and what goes with it to a peer of this number.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        own: &Segment,
        link: &mut Link,
        peer: u32,
        header: &Header,
        payload: Payload<'_>,
    ) -> Sent {
        match payload {
            Payload::Nothing => Sent::if_room(link.push_bare(own, header)),
            Payload::Message(message) if self.fits(message.len()) => {
                Sent::if_room(link.push_inline(own, header, message))
            }
            Payload::Message(message) => self.send_buffered(own, link, peer, header, message),
            Payload::IfQuick(message) => self.send_if_quick(own, link, peer, header, message),
            Payload::Part(part) => self.send_part(own, link, peer, header, part),
            Payload::Frame(parts, data) => self.send_frame(own, link, peer, header, parts, data),
            Payload::Bytes(bytes) => self.send_bytes(own, link, peer, header, bytes),
            Payload::Where(message) => Sent::if_room(link.push_rendezvous(own, header, message)),
            Payload::Segments(parts, here) => {
                Sent::if_room(link.push_segments(own, header, parts, here))
            }
        }
    }

    /// Sends a slot whose buffer is filled.
    fn send_filled(&mut self, own: &Segment, link: &mut Link, header: &Header) -> Sent {
        let there_is = link.push_bare(own, header);
        if !there_is {
            self.buffers.untake(own);
        }
        Sent::if_room(there_is)
    }

    /// Sends a message in a buffer.
    #[inline(never)]
    fn send_buffered(
        &mut self,
        own: &Segment,
        link: &mut Link,
        peer: u32,
        header: &Header,
        message: &Buffer,
    ) -> Sent {
        self.send_part(own, link, peer, &Header { kind: Kind::Buffered, ..*header }, message)
    }

    #[inline(never)]
    fn send_part(
        &mut self,
        own: &Segment,
        link: &mut Link,
        peer: u32,
        header: &Header,
        part: &Buffer,
    ) -> Sent {
        let Some(buffer) = self.buffers.take(own, peer) else { return Sent::NoBuffer };
        fill_buffer(own, buffer, part);
        self.send_filled(own, link, &Header { count: buffer as u32, ..*header })
    }

    #[inline(never)]
    fn send_if_quick(
        &mut self,
        own: &Segment,
        link: &mut Link,
        peer: u32,
        header: &Header,
        message: &Buffer,
    ) -> Sent {
        let is_alone = self.buffers.last_is_back(own);
        let Some(is_timed) = link.fills.ask(is_alone) else { return Sent::NoBuffer };
        let Some(buffer) = self.buffers.take(own, peer) else { return Sent::NoBuffer };
        let start = is_timed.then(Instant::now);
        fill_buffer(own, buffer, message);
        let header = Header { kind: Kind::Buffered, count: buffer as u32, ..*header };
        let sent = self.send_filled(own, link, &header);
        if let (Sent::Yes, Some(start)) = (sent, start) {
            link.fills.note(message.len(), start.elapsed());
        }
        sent
    }

    #[inline(never)]
    fn send_frame(
        &mut self,
        own: &Segment,
        link: &mut Link,
        peer: u32,
        header: &Header,
        parts: &[RemotePart],
        data: &[Buffer],
    ) -> Sent {
        let len = size_of_val(parts) + data.iter().map(Buffer::len).sum::<usize>();
        let mut frame = Frame { parts: parts.len() as u8, ..Frame::default() };
        if self.fits(len) {
            let header = Header { count: frame.pack(), ..*header };
            return Sent::if_room(link.push_frame(own, &header, parts, data));
        }
        let Some(buffer) = self.buffers.take(own, peer) else { return Sent::NoBuffer };
        fill_frame(own, buffer, parts, data);
        frame.buffer = Some(buffer as u16);
        self.note_checksum(own, link, buffer);
        self.send_filled(own, link, &Header { count: frame.pack(), ..*header })
    }

    #[inline(never)]
    fn send_bytes(
        &mut self,
        own: &Segment,
        link: &mut Link,
        peer: u32,
        header: &Header,
        bytes: &[u8],
    ) -> Sent {
        if self.fits(bytes.len()) {
            return Sent::if_room(link.push_bytes(own, header, bytes));
        }
        let Some(buffer) = self.buffers.take(own, peer) else { return Sent::NoBuffer };
        fill_bytes(own, buffer, bytes);
        let frame = Frame { buffer: Some(buffer as u16), ..Frame::default() };
        self.note_checksum(own, link, buffer);
        self.send_filled(own, link, &Header { count: frame.pack(), ..*header })
    }

    /// What goes with the next slot is in this buffer.
    fn note_checksum(&self, own: &Segment, link: &mut Link, buffer: usize) {
        if self.checks
            && let Some(bytes) = own.buffer_bytes(buffer, BUFFER as u64)
        {
            link.set_check(crc32c::crc32c(&bytes.keep()));
        }
    }

    /// Whether no buffer was free for a while, all along.
    pub(crate) fn is_stuck(&self) -> bool {
        self.buffers.is_stuck()
    }

    /// Whether a buffer is free.
    pub(crate) fn has_room(&mut self, own: &Segment) -> bool {
        self.buffers.has_room(own)
    }

    /// Whether receivers have not emptied all that was sent.
    pub(crate) fn is_lent(&mut self, own: &Segment) -> bool {
        self.buffers.is_lent(own)
    }

    /// Takes back what a peer has that is gone.
    pub(crate) fn reclaim(&mut self, own: &Segment, peer: u32) {
        self.buffers.reclaim(own, peer);
    }

    /// Lends all buffers.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn take_all(&mut self, own: &Segment, peer: u32) {
        while self.buffers.take(own, peer).is_some() {}
    }
}
