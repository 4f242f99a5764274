// SPDX-License-Identifier: BSD-2-Clause
//! What an endpoint sees of a channel, whichever it is.
//!
//! ```text
//! sending      Home::send(link, header, payload)    Yes | NoRoom: try again | NoBuffer: another way
//! receiving    Inbox::peek   header of the next slot
//!              Link::body    what goes with it; given back when it is dropped
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
    shm::{self, copy, image::Image, segment::Segment},
    wire::{self, Header},
};

/// What goes with a slot. Dropped, it is given back to who sent it.
#[derive(Debug)]
pub struct Body<'a> {
    bytes: SharedBytes<'a>,
    lent: Option<&'a AtomicU32>,
}

impl<'a> Body<'a> {
    /// The bytes: at least as many as the header says of a message or a part of one.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> SharedBytes<'a> {
        self.bytes
    }

    /// Whether it is in a buffer of who sent it, and not in the slot.
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

/// Reads messages out of a peer's memory, also without the lock of the endpoint.
#[derive(Clone, Debug)]
pub struct Copier(Memory);

#[derive(Clone, Debug)]
enum Memory {
    Process(Image),
    #[cfg(any(test, feature = "testing"))]
    Twin(twin::Memory),
}

impl Copier {
    /// Reads `to.len()` bytes from the start of `remote`. Where it fails, anything may be in `to`.
    ///
    /// # Errors
    /// As of [`Link::read`], which [`Link::confirm`] makes of the result.
    pub fn read(&self, remote: &Remote, to: &Buffer) -> Result<(), CopyError> {
        match &self.0 {
            Memory::Process(image) => copy::read(*image, remote, to),
            #[cfg(any(test, feature = "testing"))]
            Memory::Twin(memory) => memory.read(remote, to),
        }
    }

    fn read_whole(&self, remote: &Remote, len: usize) -> Result<Box<[u8]>, CopyError> {
        match &self.0 {
            Memory::Process(image) => copy::read_whole(*image, remote, len),
            #[cfg(any(test, feature = "testing"))]
            Memory::Twin(memory) => memory.read_whole(remote, len),
        }
    }
}

/// Copies between a peer's memory and ours without the lock of the endpoint.
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
    /// As [`Link::read`].
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

/// The same call on whichever way a link or an inbox is of.
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
#[allow(clippy::large_enum_variant, reason = "the one that is large is the one there is")]
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
    /// Who the peer is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        on_way!(self, link => link.identity())
    }

    /// Whether the peer has not closed its endpoint.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        on_way!(self, link => link.is_open())
    }

    /// Whether the peer lives.
    #[must_use]
    pub fn liveness(&self, look: Look) -> Liveness {
        match self {
            Self::Shm(link) => link.liveness(look),
            Self::Net(link) => link.liveness(),
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.liveness(look),
        }
    }

    /// Whether the peer takes another slot.
    #[must_use]
    pub fn has_room(&self) -> bool {
        on_way!(self, link => link.has_room())
    }

    /// The checksum of what goes with the next slot; see [`crate::home::Home::set_check`].
    pub(crate) fn set_check(&mut self, check: u32) {
        match self {
            // Its lane has it.
            Self::Shm(_) => {}
            Self::Net(link) => link.set_check(check),
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.set_check(check),
        }
    }

    /// What goes with a slot of the peer that has this payload; none if it is not there.
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

    /// Whether it goes over the network.
    #[inline]
    #[must_use]
    pub fn is_net(&self) -> bool {
        matches!(self, Self::Net(_))
    }

    /// Longest part of a message that goes in parts. All but the last say that there is more to come
    /// ([`Flags::PART`](wire::Flags::PART)).
    #[must_use]
    pub fn part_len(&self) -> usize {
        if let Self::Net(link) = self { link.part_len() } else { wire::LONGEST }
    }

    /// Has parts of a message written where they go, which belong to the transfer of this number, as
    /// long as the result lives; none if they come as slots with a body.
    #[must_use]
    pub fn expect(&self, transfer: u64, to: &Buffer) -> Option<net::link::Landing> {
        if let Self::Net(link) = self { Some(link.expect(transfer, to)) } else { None }
    }

    /// What reads out of the peer's memory; none if messages come as parts.
    #[must_use]
    pub fn copier(&self) -> Option<Copier> {
        match self {
            Self::Shm(link) => link.image().map(|image| Copier(Memory::Process(image))),
            Self::Net(_) => None,
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.memory().map(|memory| Copier(Memory::Twin(memory))),
        }
    }

    /// Reads `to.len()` bytes of the peer's memory from the start of `remote`. Where it fails, anything
    /// may be in `to`. The memory is that of the peer's operation `op`, or its own copy if there is none.
    ///
    /// # Errors
    /// [`CopyError::Refused`] if nothing was copied and never will be, `ECONNABORTED` if the peer has
    /// closed, or the context of the operation, or the memory is no longer its own.
    pub fn read(&mut self, remote: &Remote, to: &Buffer, op: Option<u64>) -> Result<(), CopyError> {
        if to.is_empty() {
            return Ok(());
        }
        let copied = self.copier().ok_or(CopyError::Refused)?.read(remote, to);
        self.confirm(copied, op)
    }

    /// The same of a copy into memory of ours, `len` bytes.
    ///
    /// # Errors
    /// As [`Link::read`].
    pub fn read_whole(&mut self, remote: &Remote, len: usize) -> Result<Box<[u8]>, CopyError> {
        let read = self.copier().ok_or(CopyError::Refused)?.read_whole(remote, len);
        self.confirm(read.as_ref().map(|_| ()).map_err(|&error| error), None)?;
        read
    }

    /// Whether long reads and writes of the peer's memory go in pieces, and are not copied.
    #[must_use]
    pub fn goes_in_pieces(&self) -> bool {
        match self {
            Self::Shm(link) => link.goes_in_pieces(),
            Self::Net(_) => true,
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.goes_in_pieces(),
        }
    }

    /// The peer has pulled one of these, which it could not copy: from now on they go in pieces.
    pub fn note_pull(&mut self) {
        match self {
            Self::Shm(link) => link.note_pull(),
            Self::Net(_) => {}
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.note_pull(),
        }
    }

    /// What a [`Copier`] of this peer has read, by the time it has: see [`Link::read`].
    ///
    /// # Errors
    /// As [`Link::read`].
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

    /// Copies between the peer's memory and ours, piece after piece, each for an offset in the
    /// peer's, as its operation of this number asks.
    ///
    /// # Errors
    /// As [`Link::read`].
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

    /// What exchanges without the lock of the endpoint that has the segment `own`; none if reads and
    /// writes come as parts.
    #[must_use]
    pub fn exchanger(&self, own: &Arc<Segment>) -> Option<Exchanger> {
        match self {
            Self::Shm(link) => link.exchanger(own).map(|it| Exchanger(Between::Processes(it))),
            Self::Net(_) => None,
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(link) => link.memory().map(|memory| Exchanger(Between::Twin(memory))),
        }
    }

    /// Whether the peer copies from memory of the endpoint that has the segment `own`, or to it.
    #[must_use]
    pub fn reaches(&self, own: &Segment) -> bool {
        match self {
            Self::Shm(link) => link.reaches(own),
            // Nobody copies from memory here, or to it, but this process.
            Self::Net(_) => false,
            // Its copies are made in the thread that closes.
            #[cfg(any(test, feature = "testing"))]
            Self::Twin(_) => false,
        }
    }
}

/// What a receiver does with an inbox, of one way or of whichever it is: a loop over the slots of shared
/// memory is compiled for it alone.
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

/// What has come for an endpoint, over one way.
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
    /// Whether there is no slot. Of the network's this makes progress.
    #[inline]
    #[must_use]
    pub fn is_empty(&mut self) -> bool {
        on_way!(self, inbox => inbox.is_empty())
    }

    /// Whether it is that of the network.
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

    /// What the slot that `peek` answered has with it, until `release`; see [`Link::body`].
    #[inline]
    #[must_use]
    pub fn payload(&self) -> SharedBytes<'_> {
        on_way!(self, inbox => inbox.payload())
    }

    /// The checksum of what goes with that slot; none if the slot's own is wrong.
    #[cold]
    #[must_use]
    pub fn check(&self) -> Option<u32> {
        on_way!(self, inbox => inbox.check())
    }

    /// Has a slot further on fetched, where several were found.
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

    /// Lets senders use what was released.
    #[inline]
    pub fn publish(&mut self) {
        if let Self::Shm(inbox) = self {
            inbox.publish();
        }
    }

    /// How many slots were released.
    #[must_use]
    pub fn position(&self) -> u64 {
        on_way!(self, inbox => inbox.position())
    }

    /// How many were sent up to now, or are being sent.
    #[must_use]
    pub fn end(&mut self) -> u64 {
        on_way!(self, inbox => inbox.end())
    }

    /// Goes past a slot that a dead sender began; whether there was one. It must stand there at two
    /// calls.
    pub fn skip_stuck(&mut self) -> bool {
        match self {
            Self::Shm(inbox) => inbox.skip_stuck(),
            _ => false,
        }
    }
}
