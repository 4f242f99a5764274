// SPDX-License-Identifier: BSD-2-Clause
//! A peer of an endpoint, over any transport: its state, the payloads of its slots, and copies from
//! and to its memory.
//!
//! ```text
//! receiving    Peer::body            the payload of a slot; dropping it frees its buffer
//! copying      Peer::read, copier    Refused: ask for parts | Failed: the operation fails
//! state        Peer::liveness, is_open, copies_our_memory
//! ```

use ffi::Buffer;
use host::owner::Look;

#[cfg(any(test, feature = "testing"))]
use crate::testing::loopback::{LoopbackMemory, LoopbackPeer};
use crate::{
    bytes::{Remote, SharedBytes},
    contract::{Body, CopyError, Direction, Liveness},
    identity::Identity,
    net::peer::{Landing, NetPeer},
    shm::{cma::PeerMemory, peer::ShmPeer},
    wire::{self, Header},
};

/// Copies between a peer's memory and local memory. It does not need the lock of the endpoint.
#[derive(Clone, Debug)]
pub struct Copier(Memory);

#[derive(Clone, Debug)]
enum Memory {
    Process(PeerMemory),
    #[cfg(any(test, feature = "testing"))]
    Loopback(LoopbackMemory),
}

/// Calls a method on the memory of a copier.
macro_rules! on_memory {
    ($self:expr, $memory:ident => $call:expr) => {
        match &$self.0 {
            Memory::Process($memory) => $call,
            #[cfg(any(test, feature = "testing"))]
            Memory::Loopback($memory) => $call,
        }
    };
}

impl Copier {
    /// Reads `to.len()` bytes from the start of `remote`. If it fails, the contents of `to` are
    /// undefined.
    ///
    /// # Errors
    /// The result is preliminary: pass it to [`Peer::confirm`], which returns the errors of
    /// [`Peer::read`].
    pub fn read(&self, remote: &Remote, to: &Buffer) -> Result<(), CopyError> {
        on_memory!(self, memory => memory.read(remote, to))
    }

    fn read_whole(&self, remote: &Remote, len: usize) -> Result<Box<[u8]>, CopyError> {
        on_memory!(self, memory => memory.read_whole(remote, len))
    }

    /// Copies between the peer's memory and local memory, piece by piece. `what` consists of the
    /// peer's memory and the number of the peer's operation to which this memory belongs. A piece
    /// consists of an offset in that memory and a local buffer. An endpoint makes only one such
    /// copy at a time.
    ///
    /// # Errors
    /// Those of [`Peer::read`]. [`CopyError::Refused`] is possible after some pieces were copied.
    pub fn exchange<'a>(
        &self,
        direction: Direction,
        what: (&Remote, u64),
        pieces: impl IntoIterator<Item = (usize, &'a Buffer)>,
    ) -> Result<(), CopyError> {
        on_memory!(self, memory => memory.exchange(direction, what, pieces))
    }
}

/// Calls a method on the transport of a peer.
macro_rules! on_transport {
    ($self:expr, $peer:ident => $call:expr) => {
        match $self {
            Self::Shm($peer) => $call,
            Self::Net($peer) => $call,
            #[cfg(any(test, feature = "testing"))]
            Self::Loopback($peer) => $call,
        }
    };
}

/// A peer, by the transport over which it is reached.
#[derive(Debug)]
pub enum Peer {
    /// Over shared memory.
    Shm(ShmPeer),
    /// Over the network.
    Net(NetPeer),
    /// Within this process.
    #[cfg(any(test, feature = "testing"))]
    Loopback(LoopbackPeer),
}

impl Peer {
    /// Returns the identity of the peer.
    #[must_use]
    pub fn identity(&self) -> Identity {
        on_transport!(self, peer => peer.identity())
    }

    /// Returns whether the peer has not closed its endpoint and is not marked as dead.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        on_transport!(self, peer => peer.is_open())
    }

    /// Returns whether the peer is alive, closed or dead. `look` has no effect over the network.
    #[must_use]
    pub fn liveness(&self, look: Look) -> Liveness {
        match self {
            Self::Shm(peer) => peer.liveness(look),
            Self::Net(peer) => peer.liveness(),
            #[cfg(any(test, feature = "testing"))]
            Self::Loopback(peer) => peer.liveness(look),
        }
    }

    /// Returns whether the peer has room for another slot.
    #[must_use]
    pub fn has_room(&self) -> bool {
        on_transport!(self, peer => peer.has_room())
    }

    /// Returns the payload of a slot of this peer. `payload` contains the bytes that came with the
    /// slot, as returned by [`Arrivals::payload`](crate::contract::Arrivals::payload).
    /// Returns `None` if the payload is incomplete or its buffer does not exist.
    #[inline]
    #[must_use]
    pub fn body<'a>(&'a self, header: &Header, payload: SharedBytes<'a>) -> Option<Body<'a>> {
        match self {
            Self::Shm(peer) => peer.body(header, payload),
            Self::Net(_) => NetPeer::body(header, payload),
            #[cfg(any(test, feature = "testing"))]
            Self::Loopback(peer) => peer.body(header, payload),
        }
    }

    /// Returns whether the peer is reached over the network.
    #[inline]
    #[must_use]
    pub fn is_net(&self) -> bool {
        matches!(self, Self::Net(_))
    }

    /// Returns the maximum length in bytes of a part of a message. All parts of a message but the
    /// last have [`Flags::PART`](wire::Flags::PART).
    #[must_use]
    pub fn part_len(&self) -> usize {
        if let Self::Net(peer) = self { peer.part_len() } else { wire::LONGEST }
    }

    /// Makes the network write the parts of a message directly to `to`, until the result is
    /// dropped. `transfer` is the number under which this endpoint receives the message in parts.
    /// Parts with a checksum or a seal come as slots with a body nevertheless. Returns `None` for
    /// other transports, over which all parts come as slots with a body.
    #[must_use]
    pub fn expect(&self, transfer: u64, to: &Buffer) -> Option<Landing> {
        if let Self::Net(peer) = self { Some(peer.expect(transfer, to)) } else { None }
    }

    /// Returns a copier for the peer's memory; `None` if that memory cannot be copied, so that
    /// messages, reads and writes come in parts.
    #[must_use]
    pub fn copier(&self) -> Option<Copier> {
        match self {
            Self::Shm(peer) => peer.memory().map(|memory| Copier(Memory::Process(memory))),
            Self::Net(_) => None,
            #[cfg(any(test, feature = "testing"))]
            Self::Loopback(peer) => peer.memory().map(|memory| Copier(Memory::Loopback(memory))),
        }
    }

    /// Reads `to.len()` bytes of the peer's memory from the start of `remote`. If it fails, the
    /// contents of `to` are undefined. The memory belongs to the peer's operation `op`, or to the
    /// peer's copy of a message if `op` is `None`.
    ///
    /// # Errors
    /// [`CopyError::Refused`] if nothing was copied and nothing ever will be. `ECONNABORTED` if the
    /// peer or the context of the operation has closed, or if the memory belongs to another program
    /// by now. `EIO` if the memory cannot be read.
    pub fn read(&mut self, remote: &Remote, to: &Buffer, op: Option<u64>) -> Result<(), CopyError> {
        if to.is_empty() {
            return Ok(());
        }
        let copied = match self {
            Self::Shm(peer) => peer.read(remote, to),
            Self::Net(_) => Err(CopyError::Refused),
            #[cfg(any(test, feature = "testing"))]
            Self::Loopback(peer) => peer.read(remote, to),
        };
        self.confirm(copied, op)
    }

    /// Reads `len` bytes of the peer's copy of a message into new memory; see [`Peer::read`].
    ///
    /// # Errors
    /// Those of [`Peer::read`].
    pub fn read_whole(&mut self, remote: &Remote, len: usize) -> Result<Box<[u8]>, CopyError> {
        let read = self.copier().ok_or(CopyError::Refused)?.read_whole(remote, len);
        self.confirm(read.as_ref().map(|_| ()).map_err(|&error| error), None)?;
        read
    }

    /// Returns whether long reads and writes of the peer's memory go in pieces through slots and
    /// buffers, and not by kernel copy. Returns `None` if none has ended yet: the kernel may refuse
    /// to copy, and the peer then asks for pieces.
    #[must_use]
    pub fn goes_in_pieces(&self) -> Option<bool> {
        match self {
            Self::Shm(peer) => peer.goes_in_pieces(),
            Self::Net(_) => Some(true),
            #[cfg(any(test, feature = "testing"))]
            Self::Loopback(peer) => peer.goes_in_pieces(),
        }
    }

    /// Notes that the peer could not copy and asked for pieces: long reads and writes go in pieces
    /// from now on.
    pub fn note_pull(&mut self) {
        match self {
            Self::Shm(peer) => peer.note_pull(),
            Self::Net(_) => {}
            #[cfg(any(test, feature = "testing"))]
            Self::Loopback(peer) => peer.note_pull(),
        }
    }

    /// Notes that a long read or write has ended without a request for pieces, so that the kernel
    /// copies between the two processes.
    pub fn note_copied(&mut self) {
        if let Self::Shm(peer) = self {
            peer.note_copied();
        }
    }

    /// Returns the final result of a copy by a [`Copier`] of this peer: an error if the memory was
    /// no longer valid at the end. After a refusal, the peer's memory is not copied again. See
    /// [`Peer::read`] for `op`.
    ///
    /// # Errors
    /// Those of [`Peer::read`].
    pub fn confirm(
        &mut self,
        copied: Result<(), CopyError>,
        op: Option<u64>,
    ) -> Result<(), CopyError> {
        match self {
            Self::Shm(peer) => peer.confirm(copied, op),
            Self::Net(_) => copied,
            #[cfg(any(test, feature = "testing"))]
            Self::Loopback(peer) => peer.confirm(copied),
        }
    }

    /// Returns whether the peer is copying from or to memory of this endpoint, which has closed.
    #[must_use]
    pub fn copies_our_memory(&self) -> bool {
        match self {
            Self::Shm(peer) => peer.copies_our_memory(),
            // A peer on the network cannot access the memory of this endpoint.
            Self::Net(_) => false,
            // The thread that closes also makes all copies, so no copy is in progress.
            #[cfg(any(test, feature = "testing"))]
            Self::Loopback(_) => false,
        }
    }
}
