// SPDX-License-Identifier: BSD-2-Clause
//! Checksums of what travels (`FI_TCAM_CHECK=on`).
//!
//! ```text
//! every slot           words and payload           slots of a ring (channel/ring)
//! a message            its bytes, in the memory of who sends it and of who received it,
//!                      whichever way they took
//! reads, writes,       the buffer that they go through; what the kernel copies has none,
//! atomic operations    since others may change that memory meanwhile
//! ```
//!
//! Wrong bytes are an error completion (`FI_ECRC`) and a line of the log. A damaged slot could be
//! of anything: its error names no operation.

use ffi::{
    Buffer, Errno, Result, flags,
    ops::cq::{Completion, Failure},
};
use nic::device::{Envelope, Grant};

use crate::{
    channel::{
        bytes::SharedBytes,
        segment::{BUFFER, Segment},
        wire::{CHECKED, Header},
    },
    engine::{Engine, RecvOp},
    rendezvous::About,
};

/// Bytes that are looked at together.
const STEP: usize = 4096;

/// The checksum of what a buffer of the application holds.
fn of(buffer: &Buffer) -> u32 {
    let mut bytes = [0; STEP];
    (0..buffer.len()).step_by(STEP).fold(0, |sum, at| {
        let read = buffer.part(at, STEP).read_to(&mut bytes);
        crc32c::crc32c_append(sum, &bytes[..read])
    })
}

/// The bytes of a buffer that a frame lies in, if they are what its sender put there.
///
/// # Errors
/// `ECRC` if they are not.
pub(crate) fn frame<'a>(header: &Header, bytes: SharedBytes<'a>) -> Result<SharedBytes<'a>> {
    if header.flags & CHECKED != 0 && crc32c::crc32c(&bytes.keep()) != header.check {
        tracing::error!("FI_TCAM_CHECK: a buffer does not hold what was put into it");
        return Err(Errno::ECRC);
    }
    Ok(bytes)
}

impl Engine {
    /// The checksum of a message that is sent, if it has one.
    #[inline]
    pub(crate) fn check_of(&self, buffer: &Buffer) -> u32 {
        if self.check { of(buffer) } else { 0 }
    }

    /// The checksum of a buffer of ours, if there is one.
    #[inline]
    pub(crate) fn check_of_buffer(&self, own: &Segment, buffer: usize) -> u32 {
        match own.buffer_bytes(buffer, BUFFER as u64) {
            Some(bytes) if self.check => crc32c::crc32c(&bytes.keep()),
            _ => 0,
        }
    }

    /// Whether a message that was received as a whole is not what was sent.
    #[cold]
    pub(crate) fn is_damaged(
        &self,
        grant: &Grant<RecvOp>,
        envelope: &Envelope,
        about: About,
        received: usize,
    ) -> bool {
        let is_whole = received as u64 == envelope.len;
        let is_damaged =
            is_whole && of(&grant.data.buffer.part(grant.offset as usize, received)) != about.check;
        if is_damaged {
            tracing::error!(
                "FI_TCAM_CHECK: a message of {}, {received} bytes with match bits {:#x}, is not \
                 what was sent",
                self.domain.peers.address(envelope.source),
                envelope.bits
            );
        }
        is_damaged
    }

    /// A slot holds something else than its sender put there.
    #[cold]
    pub(crate) fn fail_damaged(&mut self) {
        tracing::error!("FI_TCAM_CHECK: a slot does not hold what was put into it");
        let completion =
            Completion { flags: flags::RECV, source: flags::ADDR_UNSPEC, ..Default::default() };
        self.rx.fail(Failure { completion, overflow: 0, errno: Errno::ECRC });
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
