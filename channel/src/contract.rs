// SPDX-License-Identifier: BSD-2-Clause
//! The interface that every transport implements: payloads, results and settings.

use ffi::{Buffer, Errno, ops::ep::rma::RemotePart};

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

impl Sent {
    #[inline(always)]
    pub(crate) fn if_room(there_is: bool) -> Self {
        if there_is { Self::Yes } else { Self::NoRoom }
    }
}

/// Settings of all links of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Whether messages carry checksums (`FI_TCAM_CHECK`).
    pub checks: bool,
    /// Whether the kernel may copy between processes (`FI_TCAM_KERNEL_COPY`).
    pub copies: bool,
}

/// Returns whether an error means a temporary shortage in this process or on this host.
#[must_use]
pub fn is_short(errno: Errno) -> bool {
    host::directory::is_short(&std::io::Error::from_raw_os_error(errno.get()))
}
