// SPDX-License-Identifier: BSD-2-Clause
//! Checksums of transferred data (`FI_TCAM_CHECK=on`).
//!
//! ```text
//! every slot           header and payload, over any transport (channel/src/shm/ring.rs,
//!                      channel/src/net/frame.rs)
//! a message            its bytes, in the memory of the sender and in that of the receiver, over
//!                      any transport
//! reads, writes,       the buffer of shared memory that carries them. Kernel copies have no
//! atomic operations    checksum, since other threads may change that memory meanwhile
//! ```
//!
//! Wrong bytes cause an error completion (`FI_ECRC`) and a log message. The error of a damaged slot
//! goes to the receive that waits for the message. If there is no such receive, the slot may belong
//! to any operation, so the error names none. Operations in progress do not end with that error,
//! because a peer may still copy for them.

use channel::{
    contract::Body,
    wire::{Flags, Header},
};
use ffi::Buffer;
use nic::message::{Envelope, Grant};

use super::peers::Peers;
use crate::device::carried::RecvOp;

/// Bytes that are read at a time.
const STEP: usize = 4096;

/// Returns the CRC-32C of a buffer of the application.
pub(super) fn sum(buffer: &Buffer) -> u32 {
    let mut bytes = [0; STEP];
    (0..buffer.len()).step_by(STEP).fold(0, |sum, at| {
        let read = buffer.part(at, STEP).read_to(&mut bytes);
        crc32c::crc32c_append(sum, &bytes[..read])
    })
}

/// Returns whether the payload of a request or an answer is in a buffer of shared memory that
/// differs from what its sender wrote. `check` is the checksum that the sender computed. Returns
/// false if there is no checksum, or if the payload is in the slot, which is checked separately.
pub(crate) fn is_frame_damaged(header: &Header, check: u32, body: &Body<'_>) -> bool {
    let is_checked = header.flags.contains(Flags::CHECKED) && body.is_in_buffer();
    let is_damaged = is_checked && crc32c::crc32c(&body.bytes().keep()) != check;
    if is_damaged {
        tracing::error!("FI_TCAM_CHECK: a buffer differs from what its sender wrote");
    }
    is_damaged
}

/// Returns whether a completely received message differs from what was sent. `check` is the
/// checksum that the sender computed.
#[cold]
pub(super) fn is_message_damaged(
    peers: &Peers,
    grant: &Grant<RecvOp>,
    envelope: &Envelope,
    check: u32,
) -> bool {
    let len = envelope.len as usize;
    let is_damaged = sum(&grant.data.buffer.part(grant.offset as usize, len)) != check;
    if is_damaged {
        tracing::error!(
            "FI_TCAM_CHECK: a message from {}, {len} bytes with match bits {:#x}, differs from \
             what was sent",
            peers.address_of(envelope.source),
            envelope.bits
        );
    }
    is_damaged
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
