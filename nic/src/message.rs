// SPDX-License-Identifier: BSD-2-Clause
//! What is handed to a device and what comes back: receives, messages, and where these go.

use matching::Key;

/// What arrives: who sent it, its match bits, its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Peer number of the sender.
    pub source: u32,
    /// Match bits; 0 for untagged messages.
    pub bits: u64,
    /// Length of the whole message.
    pub len: u64,
}

/// A receive to post.
#[derive(Clone, Debug)]
pub struct Receive<R> {
    /// Match bits, ignore bits and source.
    pub key: Key,
    /// Bytes of the buffer.
    pub len: u64,
    /// Set for a buffer that takes several messages (`FI_MULTI_RECV`).
    pub multi: Option<MultiRecv>,
    /// Whether the buffer has several parts.
    pub non_contiguous: bool,
    /// The caller's part.
    pub data: R,
}

impl<R: Clone> Receive<R> {
    /// Room for a message of `len` bytes.
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
    /// The buffer is given back when less than this is left.
    pub min: u64,
}

/// Permission to put a message into a receive's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant<R> {
    /// The receive's part of the caller.
    pub data: R,
    /// Where the message goes in the buffer.
    pub offset: u64,
    /// Whether the buffer is given back with this message.
    pub last: bool,
}

/// Result of [`Context::post`](crate::device::Context::post).
#[derive(Debug)]
pub enum Post<R, M> {
    /// The receive waits.
    Pending,
    /// The table has no room, and the receive was not posted (`flow-control`): to be
    /// posted again when an entry frees, or to the host with
    /// [`Context::post_anyway`](crate::device::Context::post_anyway).
    HeldBack,
    /// An unexpected message goes to it.
    Matched {
        /// Where the message goes.
        grant: Grant<R>,
        /// The message's envelope.
        envelope: Envelope,
        /// The message.
        message: M,
        /// Whether it is a multi-receive buffer with room left, to be posted again.
        again: bool,
    },
}
