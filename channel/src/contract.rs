// SPDX-License-Identifier: BSD-2-Clause
//! What all transports share: payloads, results and settings, and the interface of a receiving end.

use std::sync::atomic::{AtomicU32, Ordering};

use ffi::{Buffer, Errno, ops::ep::rma::RemotePart};

use crate::{bytes::SharedBytes, wire::Header};

/// The payload of a slot.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// Nothing.
    Nothing,
    /// A message of up to [`LONGEST`](crate::wire::LONGEST) bytes. The transport sets the kind of
    /// the header.
    Message(&'a Buffer),
    /// As `Message`. Shared memory refuses it with [`Sent::NoBuffer`] if a kernel copy by the
    /// receiver would be faster.
    IfQuick(&'a Buffer),
    /// A part of a message.
    Part(&'a Buffer),
    /// Parts of the peer's memory, and the data for them.
    Frame(&'a [RemotePart], &'a [Buffer]),
    /// Bytes that are not in a buffer of the application.
    Bytes(&'a [u8]),
    /// The location of a message that stays in local memory:
    /// [`Kind::Rendezvous`](crate::wire::Kind).
    Where(&'a Buffer),
    /// Parts of the peer's memory, and the local memory that corresponds to them.
    Segments(&'a [RemotePart], &'a Buffer),
}

/// Result of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The slot was sent.
    Yes,
    /// The peer accepts nothing more for now.
    NoRoom,
    /// No buffer is free for the payload, or a buffer would be slower than a kernel copy.
    NoBuffer,
}

/// Settings for all peers of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Whether messages carry checksums (`FI_TCAM_CHECK`).
    pub checks: bool,
    /// Whether the kernel may copy between processes (`FI_TCAM_KERNEL_COPY`).
    pub copies: bool,
}

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It holds its segment or its connection.
    Alive,
    /// It closed its endpoint.
    Closed,
    /// It died without closing.
    Dead,
}

/// The reason why a peer's memory was not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// The kernel never copies (no permission, another process namespace): use buffers.
    Refused,
    /// The memory cannot be read or the process is gone.
    Failed(Errno),
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Out of the other process.
    Read,
    /// Into the other process.
    Write,
}

/// The payload of a slot. Dropping it returns its buffer to the sender.
#[derive(Debug)]
pub struct Body<'a> {
    pub(crate) bytes: SharedBytes<'a>,
    /// The state of its buffer; `None` if the payload is in the slot.
    pub(crate) lent: Option<&'a AtomicU32>,
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

/// A slot that has come.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Its header; `None` if a peer wrote an invalid one.
    pub header: Option<Header>,
}

/// What has come over a transport, slot by slot.
pub trait Arrivals {
    /// The next slot.
    fn peek(&mut self) -> Option<Received>;

    /// The payload of the slot that `peek` returned, valid until `release`; see
    /// [`Peer::body`](crate::peer::Peer::body).
    fn payload(&self) -> SharedBytes<'_>;

    /// The checksum of the payload of that slot; `None` if the checksum of the slot is wrong.
    fn check(&self) -> Option<u32>;

    /// Prefetches a later slot. Call it if several slots were found.
    fn expect_more(&self) {}

    /// Goes on to the next slot.
    fn release(&mut self);

    /// Makes the released slots available to senders.
    fn publish(&mut self) {}
}

/// Returns whether an error means a temporary shortage in this process or on this host.
#[must_use]
pub fn is_short(errno: Errno) -> bool {
    host::directory::is_short(&std::io::Error::from_raw_os_error(errno.get()))
}
