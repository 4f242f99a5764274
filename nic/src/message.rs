// SPDX-License-Identifier: BSD-2-Clause
//! Inputs and results of a device: receives, the headers of messages, and the buffers into which
//! messages are written.

use matching::Key;

/// Header of an arriving message: sender, match bits and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Peer number of the sender.
    pub source: u32,
    /// Match bits; 0 for untagged messages.
    pub bits: u64,
    /// Length of the whole message in bytes.
    pub len: u64,
}

/// A receive to post.
#[derive(Clone, Debug)]
pub struct Receive<R> {
    /// Match bits, ignore bits and source.
    pub key: Key,
    /// Bytes of the buffer.
    pub len: u64,
    /// State of a buffer that takes several messages (`FI_MULTI_RECV`); `None` for other buffers.
    pub multi: Option<MultiRecv>,
    /// Whether the buffer has several parts.
    pub non_contiguous: bool,
    /// Data of the caller.
    pub data: R,
}

impl<R: Clone> Receive<R> {
    /// Reserves the place in the buffer for a message of `len` bytes, and returns it.
    #[inline(always)]
    pub(crate) fn grant(&mut self, len: u64) -> Grant<R> {
        let data = self.data.clone();
        let Some(multi) = &mut self.multi else {
            return Grant { data, offset: 0, last: true };
        };
        let offset = multi.used;
        multi.used += len.min(multi.len - multi.used);
        Grant { data, offset, last: multi.len - multi.used < multi.min.max(1) }
    }
}

/// State of a multi-receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiRecv {
    /// Length of the buffer.
    pub len: u64,
    /// Bytes used so far.
    pub used: u64,
    /// The buffer is returned when fewer than `min` bytes, or none, are left.
    pub min: u64,
}

/// Permission to write a message into a receive's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant<R> {
    /// The caller's data of the receive.
    pub data: R,
    /// Offset of the message in the buffer.
    pub offset: u64,
    /// Whether this message is the last one, so that the buffer is returned with it.
    pub last: bool,
}

/// Result of [`Context::post`](crate::device::Context::post).
#[derive(Debug)]
pub enum Post<R, M> {
    /// The receive waits in the PRQ.
    Pending,
    /// The table has no room and the receive was not posted (`flow-control`). The caller posts it
    /// again when an entry becomes free, or posts it to the host with
    /// [`Context::post_anyway`](crate::device::Context::post_anyway).
    HeldBack,
    /// An unexpected message matches the receive.
    Matched {
        /// The buffer that the message goes to.
        grant: Grant<R>,
        /// The message's envelope.
        envelope: Envelope,
        /// The message.
        message: M,
        /// Whether the receive has a multi-receive buffer with room left, which the caller must
        /// post again.
        again: bool,
    },
}
