// SPDX-License-Identifier: BSD-2-Clause
//! A peer as an endpoint sees it: its segment, the sending end of its ring,
//! and our number in its list of senders.
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{fs::File, ptr, sync::atomic::Ordering};

use ffi::{Buffer, Errno, ops::ep::rma::RemotePart};
use host::owner::Look;

use super::{
    bell,
    bytes::{Remote, SharedBytes},
    fills::Fills,
    identity::Identity,
    lines,
    ring::Sender,
    segment::{BUFFER, Liveness, Segment},
    wire::{Header, INLINE, Kind},
};

/// A peer that can be sent to.
#[derive(Debug)]
pub(crate) struct Link {
    segment: Segment,
    sender: Sender,
    /// Our number in the peer's list of senders.
    number: u16,
    /// How quickly buffers fill for the peer.
    pub(super) fills: Fills,
    /// Whether the kernel has refused to copy from this peer, or would copy from another.
    pub(crate) kernel_refuses: bool,
    /// Whether the kernel has refused the peer to copy from us or to us.
    pub(crate) refused_there: bool,
}

impl Link {
    /// Opens whichever endpoint holds `port` now, and enters us into its list of senders.
    ///
    /// # Errors
    /// As [`Segment::open`]; `ENOSPC` if there is no room for the list.
    pub(crate) fn open(own: &Segment, port: u16) -> Result<Self, Errno> {
        Self::enter(own, Segment::open(port)?)
    }

    /// The same of one endpoint and of no other that has its port since.
    ///
    /// # Errors
    /// As [`Link::open`]; `ECONNREFUSED` if it is gone.
    pub(crate) fn open_only(own: &Segment, peer: Identity) -> Result<Self, Errno> {
        Self::enter(own, Segment::open_only(peer)?)
    }

    fn enter(own: &Segment, (segment, file): (Segment, File)) -> Result<Self, Errno> {
        let number = segment.enter(&file, own.identity())?;
        let kernel_refuses = !segment.is_of_our_processes();
        Ok(Self {
            sender: Sender::new(segment.identity()),
            segment,
            number,
            fills: Fills::new(),
            kernel_refuses,
            refused_there: false,
        })
    }

    /// The peer's segment.
    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// From now on slots have checksums.
    pub(crate) fn add_checks(&mut self) {
        self.sender.add_checks();
    }

    /// The checksum of what goes with the next slot.
    pub(crate) fn set_check(&mut self, check: u32) {
        self.sender.set_check(check);
    }

    /// Who the peer is.
    pub(crate) fn identity(&self) -> Identity {
        self.segment.identity()
    }

    /// Whether the peer lives.
    pub(crate) fn liveness(&self, look: Look) -> Liveness {
        self.segment.liveness(look)
    }

    /// Sends a message in a slot.
    #[inline(always)]
    pub(super) fn push_inline(
        &mut self,
        own: &Segment,
        mut header: Header,
        buffer: &Buffer,
    ) -> bool {
        debug_assert!(buffer.len() <= INLINE);
        header.kind = Kind::Inline;
        header.count = buffer.len() as u32;
        self.push(own, header, |payload| {
            // SAFETY: a payload has room for INLINE bytes.
            unsafe { buffer.copy_out(payload, buffer.len().min(INLINE)) };
        })
    }

    /// Sends a slot without payload.
    pub(super) fn push_bare(&mut self, own: &Segment, header: Header) -> bool {
        self.push(own, header, |_| ())
    }

    /// Offers a message that stays in our memory.
    pub(super) fn push_rendezvous(
        &mut self,
        own: &Segment,
        mut header: Header,
        buffer: &Buffer,
    ) -> bool {
        header.kind = Kind::Rendezvous;
        header.count = buffer.segments().len() as u32;
        self.push(own, header, |payload| {
            let mut remote = Remote::default();
            remote[..buffer.segments().len()].copy_from_slice(buffer.segments());
            // SAFETY: four segments of 16 bytes fit a payload, which is aligned to 16.
            unsafe { payload.cast::<Remote>().write(remote) };
        })
    }

    /// Sends a slot whose payload is remote parts and what follows them; together at
    /// most [`INLINE`] bytes.
    #[inline]
    pub(super) fn push_frame(
        &mut self,
        own: &Segment,
        header: Header,
        parts: &[RemotePart],
        data: &[Buffer],
    ) -> bool {
        // SAFETY: a payload has room for INLINE bytes.
        self.push(own, header, |payload| unsafe { write_frame(payload, INLINE, parts, data) })
    }

    /// Sends a slot with bytes of ours; at most [`INLINE`].
    #[inline]
    pub(super) fn push_bytes(&mut self, own: &Segment, header: Header, bytes: &[u8]) -> bool {
        self.push(own, header, |payload| {
            let len = bytes.len().min(INLINE);
            // SAFETY: a payload has room for INLINE bytes, and is not ours.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), payload, len) };
        })
    }

    /// Sends a slot with remote parts and the segments of memory here that belong to
    /// them.
    pub(super) fn push_segments(
        &mut self,
        own: &Segment,
        header: Header,
        parts: &[RemotePart],
        here: &Buffer,
    ) -> bool {
        self.push(own, header, |payload| {
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
        header.peer = self.number;
        if !self.sender.push(own, &self.segment, &header, payload) {
            return false;
        }
        bell::ring(&self.segment);
        true
    }

    /// Whether the peer's ring takes another slot.
    pub(crate) fn has_room(&self) -> bool {
        self.sender.has_room(&self.segment)
    }

    /// A message that the peer put into one of its buffers; none if there is no
    /// such buffer.
    pub(crate) fn buffer(&self, buffer: u32, len: u64) -> Option<SharedBytes<'_>> {
        self.segment.buffer_bytes(buffer as usize, len)
    }

    /// Gives one of the peer's buffers back.
    pub(crate) fn free_buffer(&self, buffer: u32) {
        self.segment.buffer_state(buffer as usize).store(0, Ordering::Release);
    }
}

/// Fills one of our own buffers, which the pool lent.
pub(super) fn fill_buffer(own: &Segment, buffer: usize, from: &Buffer) {
    let len = from.len().min(BUFFER);
    lines::expect_writes(own.buffer(buffer), len);
    // SAFETY: the pool lent this buffer of BUFFER bytes to us alone.
    unsafe { from.copy_out(own.buffer(buffer), len) };
}

/// Fills one of our own buffers, which the pool lent, with a frame of at most
/// [`BUFFER`] bytes.
pub(super) fn fill_frame(own: &Segment, buffer: usize, parts: &[RemotePart], data: &[Buffer]) {
    let len = size_of_val(parts) + data.iter().map(Buffer::len).sum::<usize>();
    lines::expect_writes(own.buffer(buffer), len.min(BUFFER));
    // SAFETY: the pool lent this buffer of BUFFER bytes to us alone.
    unsafe { write_frame(own.buffer(buffer), BUFFER, parts, data) };
}

/// Fills one of our own buffers, which the pool lent, with bytes of ours.
pub(super) fn fill_bytes(own: &Segment, buffer: usize, bytes: &[u8]) {
    let len = bytes.len().min(BUFFER);
    lines::expect_writes(own.buffer(buffer), len);
    // SAFETY: the pool lent this buffer of BUFFER bytes to us alone.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), own.buffer(buffer), len) };
}

/// Writes remote parts and, behind them, data; as much as there is room for.
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
