// SPDX-License-Identifier: BSD-2-Clause
//! The recorded operations, the threads that do them, and the recorder.

use matching::{Key, Source};

use crate::message::{Envelope, MultiRecv, Receive};

/// One operation on a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A receive is posted.
    Post(Posted),
    /// A receive is posted that is never held back.
    PostAnyway(Posted),
    /// A receive was held back.
    Held(Posted),
    /// A message arrives.
    Arrive(Envelope),
    /// A probe of the unexpected messages.
    Peek(Key),
    /// The oldest unexpected message that matches is set aside for a later receive.
    Claim(Key),
    /// The oldest unexpected message that matches is dropped by a probe.
    Discard(Key),
    /// A posted receive is cancelled. The value is the number of receives posted before it.
    Cancel(u64),
    /// An unexpected message is dropped. The value is the number of messages that arrived before
    /// it.
    Drop(u64),
    /// This endpoint sent a message.
    Send(Sent),
    /// The number of processes is set.
    Processes(u32),
    /// The recording ends here.
    Stop(Stop),
}

/// A receive that is posted or held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The key that it matches.
    pub key: Key,
    /// Bytes of its buffer.
    pub len: u64,
    /// Set for a buffer that takes several messages.
    pub multi: Option<MultiRecv>,
    /// Whether its buffer has more than one part.
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
    /// Number of the thread in its process: the number of threads recorded before it.
    pub number: u32,
    /// Whether it is the provider's progress thread (`FI_PROGRESS_AUTO`).
    pub is_device: bool,
    /// Processor time of the thread in nanoseconds (`CLOCK_THREAD_CPUTIME_ID`), if that is
    /// recorded.
    pub cpu_ns: Option<u64>,
}

/// Why a recording ended before its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The file has the size that `FI_TCAM_TRACE_MAX` or `ulimit -f` allows.
    Size,
    /// The disk is full.
    Disk,
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The recording is in progress, or its process was killed.
    Open,
    /// The recording ended before its program.
    Stopped(Stop),
    /// The recording is complete, and this many words of the window are records; 0 if the recorder
    /// did not write their number.
    Closed(u32),
}

/// Word 0 of an operation with a key, without the key's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpWord(pub(super) u32);

/// Records the operations of a context.
pub trait Recorder: Send {
    /// Records an operation encoded by [`Op::short`], whose parts fit into registers.
    fn short(&mut self, head: OpWord, bits: u64, ignore: u64, source: Source);

    /// Records any operation.
    fn record(&mut self, op: &Op);

    /// Sets the time at which the message of the next recorded arrival came, in nanoseconds of the
    /// host's `CLOCK_MONOTONIC`, and the largest error of this time; `u32::MAX` if it is unknown.
    /// Without a call, an arrival has the time at which it is recorded.
    fn came(&mut self, _ns: u64, _error_ns: u32) {}

    /// Called if the last operation took an unexpected message, which completes at the next poll.
    fn took(&mut self) {}

    /// Called at the end of each poll of the program.
    fn polled(&mut self) {}

    /// Called when no operation was done for a while. The recorder then reads the processor time of
    /// the thread with the next operation, if it records processor times.
    fn idle(&mut self) {}

    /// Called when no operation will follow.
    fn close(&mut self) {}
}
