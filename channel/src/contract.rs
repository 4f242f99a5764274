// SPDX-License-Identifier: BSD-2-Clause
//! What every way takes and answers.

use ffi::{Buffer, Errno, ops::ep::rma::RemotePart};

/// What goes with a header.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// Nothing.
    Nothing,
    /// A message of up to [`LONGEST`](crate::wire::LONGEST) bytes: the channel says of which kind.
    Message(&'a Buffer),
    /// The same, unless it is quicker to have it read from where it is.
    IfQuick(&'a Buffer),
    /// A part of a message.
    Part(&'a Buffer),
    /// Parts of the peer's memory, and data for them.
    Frame(&'a [RemotePart], &'a [Buffer]),
    /// Data of ours that is in no buffer of the application.
    Bytes(&'a [u8]),
    /// Where a message is that stays in our memory: [`Kind::Rendezvous`](crate::wire::Kind).
    Where(&'a Buffer),
    /// Parts of the peer's memory, and where the memory here is that belongs to them.
    Segments(&'a [RemotePart], &'a Buffer),
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way.
    Yes,
    /// The peer takes no more for now.
    NoRoom,
    /// There is no buffer for what goes with it, or one would not be quick.
    NoBuffer,
}

impl Sent {
    #[inline(always)]
    pub(crate) fn if_room(there_is: bool) -> Self {
        if there_is { Self::Yes } else { Self::NoRoom }
    }
}

/// What holds for every link of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Whether what travels has checksums (`FI_TCAM_CHECK`).
    pub checks: bool,
    /// Whether the kernel may be asked to copy (`FI_TCAM_KERNEL_COPY`).
    pub copies: bool,
}

/// Whether an error says that this process or host lacks something for now.
#[must_use]
pub fn is_short(errno: Errno) -> bool {
    host::directory::is_short(&std::io::Error::from_raw_os_error(errno.get()))
}
