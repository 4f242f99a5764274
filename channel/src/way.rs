// SPDX-License-Identifier: BSD-2-Clause
//! The interface of all transports.
//!
//! ```text
//! sending      Home::send(link, header, payload)    Yes | NoRoom: later | NoBuffer: another payload
//! receiving    Inbox::peek   header of the next slot
//!              Link::body    its payload; returned when it is dropped
//!              Inbox::release, publish              the slot is done; senders may use it
//! copying      Link::read, exchange, copier         Refused: as parts | Failed: the peer is gone
//! peers        Link::liveness, is_open, reaches
//! ```

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use ffi::Buffer;
use host::owner::Look;

pub use crate::shm::{
    copy::{CopyError, Direction},
    ring::Slot,
    segment::Liveness,
};
#[cfg(any(test, feature = "testing"))]
use crate::twin;
use crate::{
    bytes::{Remote, SharedBytes},
    identity::Identity,
    net,
    shm::{self, copy, exec_id::ExecId, segment::Segment},
    wire::{self, Header},
};

/// The payload of a slot. Dropping it returns its buffer to the sender.
#[derive(Debug)]
pub struct Body<'a> {
    bytes: SharedBytes<'a>,
    lent: Option<&'a AtomicU32>,
}

impl<'a> Body<'a> {
    /// The bytes of the payload. A message, or a part of one, has at least as many as its header
    /// says.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> SharedBytes<'a> {
        self.bytes
    }

    /// Returns whether the payload is in a buffer of the sender, and not in the slot.
    #[inline]
    #[must_use]
    pub fn is_lent(&self) -> bool {
        self.lent.is_some()
    }
}

impl Drop for Body<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(lent) = self.lent {
            lent.store(0, Ordering::Release);
        }
    }
}

/// Reads messages out of a peer's memory. It does not need the lock of the endpoint.
#[derive(Clone, Debug)]
pub struct Copier(Memory);

#[derive(Clone, Debug)]
enum Memory {
    Process(ExecId),
    #[cfg(any(test, feature = "testing"))]
    Twin(twin::Memory),
}

impl Copier {
    /// Reads `to.len()` bytes from the start of `remote`. If it fails, the contents of `to` are
    /// undefined.
    ///
    /// # Errors
    /// Pass the result to [`Link::confirm`], which returns the errors of [`Link::read`].
    pub fn read(&self, remote: &Remote, to: &Buffer) -> Result<(), CopyError> {
        match &self.0 {
            Memory::Process(exec_id) => copy::read(*exec_id, remote, to),
            #[cfg(any(test, feature = "testing"))]
            Memory::Twin(memory) => memory.read(remote, to),
        }
    }

    fn read_whole(&self, remote: &Remote, len: usize) -> Result<Box<[u8]>, CopyError> {
        match &self.0 {
            Memory::Process(exec_id) => copy::read_whole(*exec_id, remote, len),
            #[cfg(any(test, feature = "testing"))]
            Memory::Twin(memory) => memory.read_whole(remote, len),
        }
    }
}

/// Copies between a peer's memory and local memory. It does not need the lock of the endpoint.
#[derive(Debug)]
pub struct Exchanger(Between);

#[derive(Debug)]
enum Between {
    Processes(shm::link::Exchanger),
    #[cfg(any(test, feature = "testing"))]
    Twin(twin::Memory),
}

impl Exchanger {
    /// As [`Link::exchange`]; an endpoint makes one such copy at a time.
    ///
    /// # Errors
    /// Those of [`Link::read`].
    pub fn exchange<'a>(
        &self,
        direction: Direction,
        what: (&Remote, u64),
        pieces: impl IntoIterator<Item = (usize, &'a Buffer)>,
    ) -> Result<(), CopyError> {
        match &self.0 {
            Between::Processes(both) => both.exchange(direction, what, pieces),
            #[cfg(any(test, feature = "testing"))]
            Between::Twin(memory) => memory.exchange(direction, what.0, pieces),
        }
    }
}

/// Calls a method on the transport of a link or an inbox.
macro_rules! on_way {
    ($self:expr, $way:ident => $call:expr) => {
        match $self {
            Self::Shm($way) => $call,
            Self::Net($way) => $call,
            #[cfg(any(test, feature = "testing"))]
            Self::Twin($way) => $call,
        }
    };
}

/// A peer that can be sent to.
#[derive(Debug)]
pub enum Link {
    /// Over shared memory.
    Shm(shm::link::Link),
    /// Over the network.
    Net(net::link::Link),
    /// Within this process.
    #[cfg(any(test, feature = "testing"))]
    Twin(twin::Link),
}

impl Link {
    /// The identity of the peer.
    #[must_use]
    pub fn identity(&self) -> Identity {
        on_way!(self, link => link.identity())
    }

    /// Returns whether the peer has not closed its endpoint.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        on_way!(self, link => link.is_open())
    }

    /// Returns whether the peer is alive, closed or dead.
    #[must_use]
    pub fn liveness(&self, look: Look) -> Liveness {
        match self {
            Self::Shm(link) => link.liveness(look),
            Self::Net(link) => link.liveness(),
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.liveness(look),
        }
    }

    /// Returns whether the peer takes another slot.
    #[must_use]
    pub fn has_room(&self) -> bool {
        on_way!(self, link => link.has_room())
    }

    /// Sets the checksum of the payload of the next slot; see [`crate::home::Home::set_check`].
    pub(crate) fn set_check(&mut self, check: u32) {
        match self {
            // Its tx ring has the checksum.
            Self::Shm(_) => {}
            Self::Net(link) => link.set_check(check),
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.set_check(check),
        }
    }

    /// The payload of a slot of this peer, whose slot holds the bytes `payload`. Returns `None` if
    /// the payload is incomplete or its buffer does not exist.
    #[inline]
    #[must_use]
    pub fn body<'a>(&'a self, header: &Header, payload: SharedBytes<'a>) -> Option<Body<'a>> {
        let (bytes, lent) = match self {
            Self::Shm(link) => link.body(header, payload),
            Self::Net(_) => net::link::Link::body(header, payload),
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.body(header, payload),
        }?;
        Some(Body { bytes, lent })
    }

    /// Returns whether the link uses the network.
    #[inline]
    #[must_use]
    pub fn is_net(&self) -> bool {
        matches!(self, Self::Net(_))
    }

    /// Longest part of a message that is sent in parts. All parts but the last have
    /// [`Flags::PART`](wire::Flags::PART).
    #[must_use]
    pub fn part_len(&self) -> usize {
        if let Self::Net(link) = self { link.part_len() } else { wire::LONGEST }
    }

    /// Has the parts of the transfer with this number written directly to `to`, as long as the
    /// result lives. Returns `None` if parts come as slots with a body.
    #[must_use]
    pub fn expect(&self, transfer: u64, to: &Buffer) -> Option<net::link::Landing> {
        if let Self::Net(link) = self { Some(link.expect(transfer, to)) } else { None }
    }

    /// A reader of the peer's memory; `None` if messages come in parts.
    #[must_use]
    pub fn copier(&self) -> Option<Copier> {
        match self {
            Self::Shm(link) => link.exec_id().map(|exec_id| Copier(Memory::Process(exec_id))),
            Self::Net(_) => None,
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.memory().map(|memory| Copier(Memory::Twin(memory))),
        }
    }

    /// Reads `to.len()` bytes of the peer's memory from the start of `remote`. If it fails, the
    /// contents of `to` are undefined. The memory belongs to the peer's operation `op`, or to the
    /// peer's copy of a message if `op` is `None`.
    ///
    /// # Errors
    /// [`CopyError::Refused`] if nothing was copied and nothing ever will be. `ECONNABORTED` if the
    /// peer or the context of the operation has closed, or if the memory belongs to another program
    /// by now.
    pub fn read(&mut self, remote: &Remote, to: &Buffer, op: Option<u64>) -> Result<(), CopyError> {
        if to.is_empty() {
            return Ok(());
        }
        let copied = self.copier().ok_or(CopyError::Refused)?.read(remote, to);
        self.confirm(copied, op)
    }

    /// Reads `len` bytes of the peer's memory into new memory; see [`Link::read`].
    ///
    /// # Errors
    /// Those of [`Link::read`].
    pub fn read_whole(&mut self, remote: &Remote, len: usize) -> Result<Box<[u8]>, CopyError> {
        let read = self.copier().ok_or(CopyError::Refused)?.read_whole(remote, len);
        self.confirm(read.as_ref().map(|_| ()).map_err(|&error| error), None)?;
        read
    }

    /// Returns whether long reads and writes of the peer's memory go in pieces instead of being
    /// copied.
    #[must_use]
    pub fn goes_in_pieces(&self) -> bool {
        match self {
            Self::Shm(link) => link.goes_in_pieces(),
            Self::Net(_) => true,
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.goes_in_pieces(),
        }
    }

    /// Notes that the peer could not copy and asked for pieces: long reads and writes go in pieces
    /// from now on.
    pub fn note_pull(&mut self) {
        match self {
            Self::Shm(link) => link.note_pull(),
            Self::Net(_) => {}
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.note_pull(),
        }
    }

    /// Checks, after a copy by a [`Copier`] of this peer, that the memory was still valid; see
    /// [`Link::read`].
    ///
    /// # Errors
    /// Those of [`Link::read`].
    pub fn confirm(
        &mut self,
        copied: Result<(), CopyError>,
        op: Option<u64>,
    ) -> Result<(), CopyError> {
        match self {
            Self::Shm(link) => link.confirm(copied, op),
            Self::Net(_) => copied,
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.confirm(copied),
        }
    }

    /// Copies between the peer's memory and local memory, piece by piece, each with its offset in
    /// the peer's memory. `what` is that memory and the number of the peer's operation.
    ///
    /// # Errors
    /// Those of [`Link::read`].
    pub fn exchange<'a>(
        &self,
        own: &Segment,
        direction: Direction,
        what: (&Remote, u64),
        pieces: impl IntoIterator<Item = (usize, &'a Buffer)>,
    ) -> Result<(), CopyError> {
        match self {
            Self::Shm(link) => link.exchange(own, direction, what, pieces),
            Self::Net(_) => Err(CopyError::Refused),
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.exchange(direction, what.0, pieces),
        }
    }

    /// Does the work of [`Link::exchange`] without the lock of the endpoint that owns the segment
    /// `own`. Returns `None` if reads and writes come in parts.
    #[must_use]
    pub fn exchanger(&self, own: &Arc<Segment>) -> Option<Exchanger> {
        match self {
            Self::Shm(link) => link.exchanger(own).map(|it| Exchanger(Between::Processes(it))),
            Self::Net(_) => None,
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.memory().map(|memory| Exchanger(Between::Twin(memory))),
        }
    }

    /// Returns whether the peer copies from or to memory of the endpoint that owns the segment
    /// `own`.
    #[must_use]
    pub fn reaches(&self, own: &Segment) -> bool {
        match self {
            Self::Shm(link) => link.reaches(own),
            // Only this process accesses its memory.
            Self::Net(_) => false,
            // The thread that closes makes the copies.
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(_) => false,
        }
    }
}

/// The operations of a receiver on an inbox. Both the inbox of shared memory and [`Inbox`]
/// implement it, so that the loop over slots of shared memory is compiled without dispatch.
pub trait Arrivals {
    /// See [`Inbox::peek`].
    fn peek(&mut self) -> Option<Slot>;
    /// See [`Inbox::payload`].
    fn payload(&self) -> SharedBytes<'_>;
    /// See [`Inbox::check`].
    fn check(&self) -> Option<u32>;
    /// See [`Inbox::expect_more`].
    fn expect_more(&self);
    /// See [`Inbox::release`].
    fn release(&mut self);
    /// See [`Inbox::publish`].
    fn publish(&mut self);
}

macro_rules! arrivals {
    ($of:ty) => {
        impl Arrivals for $of {
            #[inline(always)]
            fn peek(&mut self) -> Option<Slot> {
                <$of>::peek(self)
            }

            #[inline(always)]
            fn payload(&self) -> SharedBytes<'_> {
                <$of>::payload(self)
            }

            #[cold]
            fn check(&self) -> Option<u32> {
                <$of>::check(self)
            }

            #[inline(always)]
            fn expect_more(&self) {
                <$of>::expect_more(self);
            }

            #[inline(always)]
            fn release(&mut self) {
                <$of>::release(self);
            }

            #[inline(always)]
            fn publish(&mut self) {
                <$of>::publish(self);
            }
        }
    };
}

arrivals!(shm::inbox::Inbox);
arrivals!(Inbox);

/// The messages that have come over one transport.
#[derive(Debug)]
pub enum Inbox {
    /// Over shared memory.
    Shm(shm::inbox::Inbox),
    /// Over the network.
    Net(net::inbox::Inbox),
    /// Within this process.
    #[cfg(any(test, feature = "testing"))]
    Twin(twin::Inbox),
}

impl Inbox {
    /// Returns whether there is no slot. On the network, this makes progress.
    #[inline]
    #[must_use]
    pub fn is_empty(&mut self) -> bool {
        on_way!(self, inbox => inbox.is_empty())
    }

    /// Returns whether this is the inbox of the network.
    #[inline]
    #[must_use]
    pub fn is_net(&self) -> bool {
        matches!(self, Self::Net(_))
    }

    /// The next slot.
    #[inline]
    pub fn peek(&mut self) -> Option<Slot> {
        on_way!(self, inbox => inbox.peek())
    }

    /// The payload of the slot that `peek` returned, valid until `release`; see [`Link::body`].
    #[inline]
    #[must_use]
    pub fn payload(&self) -> SharedBytes<'_> {
        on_way!(self, inbox => inbox.payload())
    }

    /// The checksum of the payload of that slot; `None` if the checksum of the slot is wrong.
    #[cold]
    #[must_use]
    pub fn check(&self) -> Option<u32> {
        on_way!(self, inbox => inbox.check())
    }

    /// Prefetches a later slot. Call it if several slots were found.
    #[inline]
    pub fn expect_more(&self) {
        if let Self::Shm(inbox) = self {
            inbox.expect_more();
        }
    }

    /// Goes on to the next slot.
    #[inline]
    pub fn release(&mut self) {
        on_way!(self, inbox => inbox.release());
    }

    /// Makes the released slots available to senders.
    #[inline]
    pub fn publish(&mut self) {
        if let Self::Shm(inbox) = self {
            inbox.publish();
        }
    }

    /// The number of released slots.
    #[must_use]
    pub fn position(&self) -> u64 {
        on_way!(self, inbox => inbox.position())
    }

    /// The number of slots that were sent or are being sent.
    #[must_use]
    pub fn end(&mut self) -> u64 {
        on_way!(self, inbox => inbox.end())
    }

    /// Skips a slot that a dead sender claimed and did not fill. Returns whether it skipped one.
    /// Two calls in a row must find the ring at this slot.
    pub fn skip_stuck(&mut self) -> bool {
        match self {
            Self::Shm(inbox) => inbox.skip_stuck(),
            _ => false,
        }
    }
}
