// SPDX-License-Identifier: BSD-2-Clause
//! A peer as an endpoint sees it: its segment, the sending end of its ring,
//! and our number in its list of senders.
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{fs::File, ptr, sync::atomic::AtomicU32};

use ffi::{Buffer, Errno, ops::ep::rma::RemotePart};
use host::owner::Look;

use super::{
    bell,
    copy::{self, CopyError, Direction},
    fills::Fills,
    image::Image,
    ring::Sender,
    segment::{BUFFER, Liveness, Segment},
};
use crate::{
    bytes::{Remote, SharedBytes},
    contract::Settings,
    identity::Identity,
    lines,
    wire::{Frame, Header, INLINE, Kind},
};

/// A peer that can be sent to.
#[derive(Debug)]
pub struct Link {
    segment: Segment,
    sender: Sender,
    /// Our number in the peer's list of senders.
    number: u16,
    /// How quickly buffers fill for the peer.
    pub(super) fills: Fills,
    /// Whether the kernel copies from this peer and to it: it may be forbidden, and has refused
    /// or would copy from another if the peer's process cannot be told.
    copies: bool,
    /// Whether what is copied in place of being sent goes in pieces.
    pieces: bool,
}

impl Link {
    /// Opens whichever endpoint holds `port` now, and enters us into its list of senders.
    ///
    /// # Errors
    /// As [`Segment::open`]; `ENOSPC` if there is no room for the list.
    pub(crate) fn open(own: &Segment, port: u16, settings: Settings) -> Result<Self, Errno> {
        Self::enter(own, Segment::open(port)?, settings)
    }

    /// The same of one endpoint and of no other that has its port since.
    ///
    /// # Errors
    /// As [`Link::open`]; `ECONNREFUSED` if it is gone.
    pub(crate) fn open_only(
        own: &Segment,
        peer: Identity,
        settings: Settings,
    ) -> Result<Self, Errno> {
        Self::enter(own, Segment::open_only(peer)?, settings)
    }

    fn enter(
        own: &Segment,
        (segment, file): (Segment, File),
        settings: Settings,
    ) -> Result<Self, Errno> {
        let number = segment.enter(&file, own.identity())?;
        let copies = settings.copies && segment.is_of_our_processes();
        let mut sender = Sender::new(segment.identity());
        if settings.checks {
            sender.add_checks();
        }
        Ok(Self { sender, segment, number, fills: Fills::new(), copies, pieces: !settings.copies })
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

    /// Offers a message that stays in our memory.
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

    /// Sends a slot whose payload is remote parts and what follows them; together at
    /// most [`INLINE`] bytes.
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

    /// Sends a slot with bytes of ours; at most [`INLINE`].
    #[inline]
    pub(super) fn push_bytes(&mut self, own: &Segment, header: &Header, bytes: &[u8]) -> bool {
        self.push(own, *header, |payload| {
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

    /// Whether the peer's ring takes another slot.
    pub(crate) fn has_room(&self) -> bool {
        self.sender.has_room(&self.segment)
    }

    /// Whether the peer has not closed its endpoint.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.segment.is_open()
    }

    /// What goes with a slot of the peer: in the slot, or in one of its buffers. None if there is no
    /// such buffer.
    #[inline]
    pub(crate) fn body<'a>(
        &'a self,
        header: &Header,
        payload: SharedBytes<'a>,
    ) -> Option<(SharedBytes<'a>, Option<&'a AtomicU32>)> {
        let (buffer, len) = match header.kind {
            Kind::Buffered | Kind::Chunk => (header.count as usize, header.len),
            Kind::Write | Kind::Read | Kind::Atomic | Kind::Answer => {
                match Frame::unpack(header.count).buffer {
                    Some(buffer) => (usize::from(buffer), BUFFER as u64),
                    None => return Some((payload, None)),
                }
            }
            _ => return Some((payload, None)),
        };
        let bytes = self.segment.buffer_bytes(buffer, len)?;
        Some((bytes, Some(self.segment.buffer_state(buffer))))
    }

    /// Whose memory the kernel is to copy from; none if it does not.
    pub(crate) fn image(&self) -> Option<Image> {
        self.copies.then(|| self.segment.image())
    }

    pub(crate) fn goes_in_pieces(&self) -> bool {
        self.pieces
    }

    pub(crate) fn note_pull(&mut self) {
        self.pieces = true;
    }

    /// What a copy that was made brought: the message only if its sender had not closed its endpoint
    /// meanwhile, and then done something else with that memory.
    pub(crate) fn confirm(&mut self, copied: Result<(), CopyError>) -> Result<(), CopyError> {
        if copied == Err(CopyError::Refused) && self.copies {
            tracing::info!("the kernel refuses to copy between processes, using buffers");
            self.copies = false;
        }
        if self.is_open() { copied } else { Err(CopyError::Failed(Errno::ECONNABORTED)) }
    }

    /// Copies between memory of the peer's process and of ours, a piece after the other, each for
    /// an offset in the peer's.
    pub(crate) fn exchange<'a>(
        &self,
        own: &Segment,
        direction: Direction,
        remote: &Remote,
        pieces: impl IntoIterator<Item = (usize, &'a Buffer)>,
    ) -> Result<(), CopyError> {
        let image = self.image().ok_or(CopyError::Refused)?;
        let reach = own.reach(&self.segment);
        let _reach = reach.ok_or(CopyError::Failed(Errno::ECONNABORTED))?;
        pieces
            .into_iter()
            .try_for_each(|(at, here)| copy::between(direction, image, remote, at, here))
    }

    /// Whether the peer copies from or to memory of ours, who have closed.
    pub(crate) fn reaches(&self, own: &Segment) -> bool {
        self.segment.reaches(own)
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
