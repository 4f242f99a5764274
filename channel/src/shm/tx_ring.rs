// SPDX-License-Identifier: BSD-2-Clause
//! A tx ring: the sending end of a peer's ring, which [`super::tx_queue`] uses.
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{ptr, sync::Arc};

use ffi::{Buffer, ops::ep::rma::RemotePart};

use super::{
    bell,
    eager_policy::EagerPolicy,
    ring::Sender,
    segment::{BUFFER, Segment},
};
use crate::{
    bytes::Remote,
    lines,
    wire::{Frame, Header, INLINE, Kind},
};

/// See the module.
#[derive(Debug)]
pub(super) struct TxRing {
    segment: Arc<Segment>,
    sender: Sender,
    /// This endpoint's number in the peer's list of senders.
    number: u16,
    /// The eager policy for the peer.
    pub(super) eager_policy: EagerPolicy,
}

impl TxRing {
    pub(super) fn new(peer: &Arc<Segment>, number: u16, thread: usize, checks: bool) -> Self {
        let mut sender = Sender::new(peer.identity(), thread);
        if checks {
            sender.add_checks();
        }
        Self { segment: Arc::clone(peer), sender, number, eager_policy: EagerPolicy::new() }
    }

    /// Sets the checksum of the payload of the next slot.
    pub(super) fn set_check(&mut self, check: u32) {
        self.sender.set_check(check);
    }

    /// Returns whether the peer has not closed its endpoint.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.segment.is_open()
    }

    /// Sends a message in a slot.
    #[inline(always)]
    pub(super) fn push_inline(&mut self, own: &Segment, header: &Header, buffer: &Buffer) -> bool {
        debug_assert!(buffer.len() <= INLINE);
        let header = Header { kind: Kind::Inline, count: buffer.len() as u32, ..*header };
        self.push(own, header, |payload| {
            // SAFETY: a payload has room for INLINE bytes.
            unsafe { buffer.copy_out(payload, buffer.len().min(INLINE)) };
        })
    }

    /// Sends a slot without payload.
    pub(super) fn push_bare(&mut self, own: &Segment, header: &Header) -> bool {
        self.push(own, *header, |_| ())
    }

    /// Sends the location of a message that stays in local memory.
    pub(super) fn push_rendezvous(
        &mut self,
        own: &Segment,
        header: &Header,
        buffer: &Buffer,
    ) -> bool {
        let count = buffer.segments().len() as u32;
        let header = Header { kind: Kind::Rendezvous, count, ..*header };
        self.push(own, header, |payload| {
            let mut remote = Remote::default();
            remote[..buffer.segments().len()].copy_from_slice(buffer.segments());
            // SAFETY: four segments of 16 bytes fit a payload, which is aligned to 16.
            unsafe { payload.cast::<Remote>().write(remote) };
        })
    }

    /// Sends a slot whose payload is remote parts and data, together at most [`INLINE`] bytes.
    #[inline]
    pub(super) fn push_frame(
        &mut self,
        own: &Segment,
        header: &Header,
        parts: &[RemotePart],
        data: &[Buffer],
    ) -> bool {
        // SAFETY: a payload has room for INLINE bytes.
        self.push(own, *header, |payload| unsafe { write_frame(payload, INLINE, parts, data) })
    }

    /// Sends a slot with at most [`INLINE`] bytes that are not in a [`Buffer`].
    #[inline]
    pub(super) fn push_bytes(&mut self, own: &Segment, header: &Header, bytes: &[u8]) -> bool {
        self.push(own, *header, |payload| {
            let len = bytes.len().min(INLINE);
            // SAFETY: a payload has room for INLINE bytes, and does not overlap `bytes`.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), payload, len) };
        })
    }

    /// Sends a slot with remote parts and the local segments that belong to them.
    pub(super) fn push_segments(
        &mut self,
        own: &Segment,
        header: &Header,
        parts: &[RemotePart],
        here: &Buffer,
    ) -> bool {
        let (parts_count, segments) = (parts.len() as u8, here.segments().len() as u8);
        let frame = Frame { parts: parts_count, segments, buffer: None };
        self.push(own, Header { count: frame.pack(), ..*header }, |payload| {
            let segments = here.segments();
            // SAFETY: four parts of 24 bytes and four segments of 16 fit a payload.
            unsafe {
                write_frame(payload, INLINE, parts, &[]);
                let at = payload.add(size_of_val(parts)).cast();
                ptr::copy_nonoverlapping(segments.as_ptr(), at, segments.len());
            }
        })
    }

    #[inline(always)]
    fn push(&mut self, own: &Segment, mut header: Header, payload: impl FnOnce(*mut u8)) -> bool {
        header.peer = self.number.into();
        if !self.sender.push(own, &self.segment, &header, payload) {
            return false;
        }
        bell::ring(&self.segment);
        true
    }
}

/// Fills a buffer of the own segment, which was taken from the pool.
pub(super) fn fill_buffer(own: &Segment, buffer: usize, from: &Buffer) {
    let len = from.len().min(BUFFER);
    lines::expect_writes(own.buffer(buffer), len);
    // SAFETY: the pool lent this buffer of BUFFER bytes to us alone.
    unsafe { from.copy_out(own.buffer(buffer), len) };
}

/// Fills a buffer of the own segment, which was taken from the pool, with a frame of at most
/// [`BUFFER`] bytes.
pub(super) fn fill_frame(own: &Segment, buffer: usize, parts: &[RemotePart], data: &[Buffer]) {
    let len = size_of_val(parts) + data.iter().map(Buffer::len).sum::<usize>();
    lines::expect_writes(own.buffer(buffer), len.min(BUFFER));
    // SAFETY: the pool lent this buffer of BUFFER bytes to us alone.
    unsafe { write_frame(own.buffer(buffer), BUFFER, parts, data) };
}

/// Fills a buffer of the own segment, which was taken from the pool, with bytes.
pub(super) fn fill_bytes(own: &Segment, buffer: usize, bytes: &[u8]) {
    let len = bytes.len().min(BUFFER);
    lines::expect_writes(own.buffer(buffer), len);
    // SAFETY: the pool lent this buffer of BUFFER bytes to us alone.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), own.buffer(buffer), len) };
}

/// Writes remote parts and then data, as much as there is room for.
///
/// # Safety
/// `to` is valid for writes of `room` bytes, which four parts fit.
#[inline]
unsafe fn write_frame(to: *mut u8, room: usize, parts: &[RemotePart], data: &[Buffer]) {
    let mut at = size_of_val(parts);
    debug_assert!(at + data.iter().map(Buffer::len).sum::<usize>() <= room);
    // SAFETY: a call names at most four parts of 24 bytes, and each copy of data stops
    // where the room ends.
    unsafe {
        ptr::copy_nonoverlapping(parts.as_ptr().cast(), to, at);
        for buffer in data {
            at += buffer.copy_out(to.add(at), buffer.len().min(room - at));
        }
    }
}
