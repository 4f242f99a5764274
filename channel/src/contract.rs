// SPDX-License-Identifier: BSD-2-Clause
//! The interface that all transports share: payloads, results, settings, and receiving ends. Here,
//! a *slot* is a slot of a ring in shared memory, or a frame of the network.

use std::sync::atomic::{AtomicU32, Ordering};

use ffi::{Buffer, Errno, ops::ep::rma::RemotePart};

use crate::{bytes::SharedBytes, wire::Header};

/// The payload of a slot that is to be sent.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// No payload.
    Nothing,
    /// A message of up to [`LONGEST`](crate::wire::LONGEST) bytes, or of up to
    /// [`EAGER`](crate::net::frame::EAGER) bytes over the network. The transport sets the kind of
    /// the header.
    Message(&'a Buffer),
    /// As `Message`. Shared memory refuses it with [`Sent::NoBuffer`] if a kernel copy by the
    /// receiver would be faster.
    IfQuick(&'a Buffer),
    /// A part of a message, of up to [`Peer::part_len`](crate::peer::Peer::part_len) bytes.
    Part(&'a Buffer),
    /// The parts of the peer's memory that a request names (none in an answer), and data from
    /// buffers of the application.
    PartsAndData(&'a [RemotePart], &'a [Buffer]),
    /// An answer whose bytes are not in a buffer of the application.
    Bytes(&'a [u8]),
    /// The location of a message that stays in local memory:
    /// [`Kind::Rendezvous`](crate::wire::Kind). Over the network, only its length is sent.
    Where(&'a Buffer),
    /// Parts of the peer's memory, and the location of the local memory that the peer copies from
    /// or to. Over the network, the location is not sent.
    Segments(&'a [RemotePart], &'a Buffer),
}

/// Result of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The slot was sent, or it was dropped because the peer has closed or was removed.
    Yes,
    /// Nothing was sent. The peer has no room now or is not connected, or the engine has yet to
    /// notice its death or a broken connection.
    NoRoom,
    /// No buffer is free for the payload, or a buffer would be slower than a kernel copy.
    NoBuffer,
}

/// Settings for all peers of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Whether slots carry checksums (`FI_TCAM_CHECK`).
    pub checks: bool,
    /// Whether the kernel may copy between processes (`FI_TCAM_KERNEL_COPY`).
    pub copies: bool,
}

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// As far as is known, the peer has neither closed nor died.
    Alive,
    /// The peer closed its endpoint.
    Closed,
    /// The peer died without closing, or the connection to it broke.
    Dead,
}

/// The reason why a copy from or to a peer's memory failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// No copy is possible, now or later, because of the settings, a missing permission, another
    /// process namespace or the network. The bytes must go in parts instead.
    Refused,
    /// The memory cannot be read or written, or the peer has closed or died.
    Failed(Errno),
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the peer's memory to local memory.
    Read,
    /// From local memory to the peer's memory.
    Write,
}

/// The payload of a received slot. If the payload is in a buffer of the sender, dropping the `Body`
/// frees the buffer.
#[derive(Debug)]
pub struct Body<'a> {
    pub(crate) bytes: SharedBytes<'a>,
    /// The state word of the sender's buffer; `None` if the payload came with the slot.
    pub(crate) buffer_state: Option<&'a AtomicU32>,
}

impl<'a> Body<'a> {
    /// Returns the bytes of the payload. If the kind of the slot is `Buffered` or `Chunk`
    /// ([`Kind`](crate::wire::Kind)), there are at least as many bytes as its header says. For all
    /// other kinds, the caller must check this.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> SharedBytes<'a> {
        self.bytes
    }

    /// Returns whether the payload is in a buffer of the sender. Otherwise it came with the slot.
    #[inline]
    #[must_use]
    pub fn is_in_buffer(&self) -> bool {
        self.buffer_state.is_some()
    }
}

impl Drop for Body<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(state) = self.buffer_state {
            state.store(0, Ordering::Release);
        }
    }
}

/// A received slot.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// The header of the slot; `None` if it is invalid.
    pub header: Option<Header>,
}

/// The moment at which a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Nanoseconds of the `CLOCK_MONOTONIC` of this host.
    pub ns: u64,
    /// Largest error in nanoseconds, from the clocks of two hosts. 0 if the sender has the same
    /// clock, `u32::MAX` if the error is unknown.
    pub error_ns: u32,
}

/// The slots that have arrived over a transport, in order.
pub trait Arrivals {
    /// Returns the next slot; `None` if no slot has arrived. Until `release`, every call returns
    /// the same slot.
    fn peek(&mut self) -> Option<Received>;

    /// Returns the payload of the slot that `peek` returned, valid until `release`; see
    /// [`Peer::body`](crate::peer::Peer::body).
    fn payload(&self) -> SharedBytes<'_>;

    /// Returns the moment at which the timed slot that `peek` returned came; `None` if it is
    /// unknown. It derives from what the sender wrote.
    fn time(&self) -> Option<Came> {
        Some(Came { ns: self.payload().word()?, error_ns: 0 })
    }

    /// Returns the checksum of the payload of the slot that `peek` returned, as its sender set it;
    /// `None` if the checksum of the slot itself is wrong.
    fn check(&self) -> Option<u32>;

    /// Prefetches a later slot. Call it if several slots were found.
    fn expect_more(&self) {}

    /// Ends the use of the slot that `peek` returned, and goes on to the next one.
    fn release(&mut self);

    /// Makes the released slots available to senders.
    fn publish(&mut self) {}
}

/// Returns whether an error means a temporary shortage in this process or on this host.
#[must_use]
pub fn is_short(errno: Errno) -> bool {
    host::directory::is_short(&std::io::Error::from_raw_os_error(errno.get()))
}
