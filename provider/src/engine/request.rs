// SPDX-License-Identifier: BSD-2-Clause
//! Requests for a peer's memory, for initiator and target.

use ffi::ops::ep::rma::RemoteParts;

use channel::{
    contract::Direction,
    wire::{Flags, Header, Kind},
};

use crate::regions::Target;

/// The result of a request.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "the hot path allocates nothing")]
pub(crate) enum Served {
    /// Done.
    Done,
    /// The answer is in this memory.
    Data(Target),
    /// The answer is in the first bytes of the results.
    Results(usize),
    /// The kernel refuses to copy.
    Refused,
    /// It is being copied without the lock.
    Later,
}

/// The next step of a read or a write.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "the hot path allocates nothing")]
pub(crate) enum Access {
    /// There is nothing more to do.
    Over(Served),
    /// The kernel is to copy between this memory and that of the requesting peer.
    Copy(Direction, Target),
}

/// The peer and the options of an operation.
pub(crate) struct Start {
    pub(crate) peer: u32,
    pub(crate) report: bool,
    pub(crate) inject: bool,
}

/// The header of a request for parts of a peer's memory. The payload has its data.
#[inline]
pub(crate) fn request(kind: Kind, parts: &RemoteParts, op: u64) -> Header {
    let flags = Flags::empty();
    Header { kind, flags, peer: 0, count: 0, bits: 0, data: 0, len: parts.len(), op }
}

/// The header of the answer to a request, with `len` bytes.
pub(crate) fn answer_to(request: &Header, len: usize) -> Header {
    // Atomic operations have no offset.
    let data = if request.kind == Kind::Read { request.data } else { 0 };
    Header {
        kind: Kind::Answer,
        flags: request.flags & Flags::PART,
        peer: 0,
        count: 0,
        bits: 0,
        data,
        len: len as u64,
        op: request.op,
    }
}
