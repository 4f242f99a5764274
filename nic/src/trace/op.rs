// SPDX-License-Identifier: BSD-2-Clause
//! What is recorded: operations on a context, who does them, and who keeps them.

use matching::{Key, Source};

use crate::message::{Envelope, MultiRecv, Receive};

/// One operation on a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A receive is posted.
    Post(Posted),
    /// A receive is posted that is not held back.
    PostAnyway(Posted),
    /// A receive was held back.
    Held(Posted),
    /// A message arrives.
    Arrive(Envelope),
    /// A look at the unexpected messages.
    Peek(Key),
    /// The oldest unexpected message that matches is set aside to be received.
    Claim(Key),
    /// The oldest unexpected message that matches is dropped by who looks for it.
    Discard(Key),
    /// A posted receive is cancelled: the number of those posted before it.
    Cancel(u64),
    /// An unexpected message is dropped: the number of those that arrived before it.
    Drop(u64),
    /// This endpoint sent a message.
    Send(Sent),
    /// So many processes there are.
    Processes(u32),
    /// The recording ends here.
    Stop(Stop),
}

/// A receive that is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// What it matches.
    pub key: Key,
    /// Bytes of its buffer.
    pub len: u64,
    /// Set for a buffer that takes several messages.
    pub multi: Option<MultiRecv>,
    /// Whether its buffer is in more than one part.
    pub non_contiguous: bool,
}

impl<R> From<&Receive<R>> for Posted {
    #[inline(always)]
    fn from(receive: &Receive<R>) -> Self {
        let Receive { key, len, multi, non_contiguous, .. } = *receive;
        Self { key, len, multi, non_contiguous }
    }
}

/// A message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Peer number of the receiver.
    pub peer: u32,
    /// Match bits; 0 for untagged messages.
    pub bits: u64,
    /// Bytes of the message.
    pub len: u64,
}

/// The thread that does an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its number in its process: how many were recorded before it.
    pub number: u32,
    /// Whether it is one of the provider, which makes progress (`FI_PROGRESS_AUTO`).
    pub is_device: bool,
    /// Nanoseconds that it kept a processor busy since it began (`CLOCK_THREAD_CPUTIME_ID`), if that is
    /// recorded.
    pub cpu_ns: Option<u64>,
}

/// Why a recording ended before its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The file has the size that `FI_TCAM_TRACE_MAX` allows.
    Size,
    /// The disk is full.
    Disk,
}

/// How a recording stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It goes on, or its process was ended in the middle of it.
    Open,
    /// It ended before its program.
    Stopped(Stop),
    /// It has all that was asked.
    Closed,
}

/// Word 0 of an operation with a key, the key's place left to be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(pub(super) u32);

/// Who keeps a trace.
pub trait Recorder: Send {
    /// Keeps an operation, as [`Op::short`] tells it: so much fits into registers.
    fn short(&mut self, head: Head, bits: u64, ignore: u64, source: Source);

    /// Keeps any operation.
    fn record(&mut self, op: &Op);

    /// Nothing happened for a while: a good moment to look at the clock.
    fn idle(&mut self) {}

    /// Nothing comes any more.
    fn close(&mut self) {}
}
