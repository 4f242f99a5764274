// SPDX-License-Identifier: BSD-2-Clause
//! Checksums of transferred data (`FI_TCAM_CHECK=on`).
//!
//! ```text
//! every slot           words and payload           slots of a ring (channel/src/shm/ring)
//! a message            its bytes, in the memory of the sender and in that of the receiver, over
//!                      any transport
//! reads, writes,       the buffer that carries them; kernel copies have no checksum, since other
//! atomic operations    threads may change that memory meanwhile
//!
//! Wrong bytes cause an error completion (`FI_ECRC`) and a log message. The error of a damaged slot
//! goes to the receive that waits for the message. If there is no such receive, the slot could be
//! anything: its error names no operation. It ends no operation that a peer may still copy for.

use ffi::{
    Buffer, Errno, flags,
    ops::cq::{Completion, Failure},
};
use nic::message::{Envelope, Grant, Receive};

use channel::{
    way::{Arrivals, Body},
    wire::{Flags, Header, Kind},
};

use crate::{
    device::carried::{About, RecvOp},
    engine::Engine,
};

/// Bytes that are read at a time.
const STEP: usize = 4096;

/// The checksum of a buffer of the application.
fn of(buffer: &Buffer) -> u32 {
    let mut bytes = [0; STEP];
    (0..buffer.len()).step_by(STEP).fold(0, |sum, at| {
        let read = buffer.part(at, STEP).read_to(&mut bytes);
        crc32c::crc32c_append(sum, &bytes[..read])
    })
}

/// Returns whether the buffer of a frame differs from what its sender wrote. A frame in a slot is
/// checked with the slot.
pub(crate) fn is_frame_damaged(header: &Header, check: u32, body: &Body<'_>) -> bool {
    let is_checked = header.flags.contains(Flags::CHECKED) && body.is_lent();
    let is_damaged = is_checked && crc32c::crc32c(&body.bytes().keep()) != check;
    if is_damaged {
        tracing::error!("FI_TCAM_CHECK: a buffer does not hold what was put into it");
    }
    is_damaged
}

impl Engine {
    /// Sets the checksum of the next message to a peer.
    #[inline]
    pub(crate) fn note_message(&mut self, peer: u32, message: &Buffer) {
        if self.check {
            self.peers.set_check(peer, of(message));
        }
    }

    /// Returns whether a completely received message differs from what was sent.
    #[cold]
    pub(crate) fn is_damaged(
        &self,
        grant: &Grant<RecvOp>,
        envelope: &Envelope,
        received: usize,
    ) -> bool {
        let is_whole = received as u64 == envelope.len;
        let is_damaged = is_whole
            && of(&grant.data.buffer.part(grant.offset as usize, received)) != self.slot_check;
        if is_damaged {
            tracing::error!(
                "FI_TCAM_CHECK: a message of {}, {received} bytes with match bits {:#x}, is not \
                 what was sent",
                self.peers.address_of(envelope.source),
                envelope.bits
            );
        }
        is_damaged
    }

    /// The data that completes the message of a slot.
    #[inline(always)]
    pub(crate) fn about(&self, header: &Header) -> About {
        let Header { flags, data, op, .. } = *header;
        About { flags, data, op, check: self.slot_check }
    }

    /// Returns whether the next slot, which has checksums, is what its sender wrote.
    #[cold]
    pub(crate) fn is_slot_whole(&mut self, inbox: &impl Arrivals) -> bool {
        let check = inbox.check();
        self.slot_check = check.unwrap_or_default();
        check.is_some()
    }

    /// Reports that the next slot differs from what its sender wrote.
    #[cold]
    pub(crate) fn fail_damaged(&mut self, inbox: &mut impl Arrivals) {
        tracing::error!("FI_TCAM_CHECK: a slot does not hold what was put into it");
        let header = inbox.peek().and_then(|slot| slot.header);
        if header.is_some_and(|header| self.fail_expected(&header)) {
            return;
        }
        let completion =
            Completion { flags: flags::RECV, source: flags::ADDR_UNSPEC, ..Default::default() };
        self.completions.rx.fail(Failure { completion, overflow: 0, errno: Errno::ECRC });
    }

    /// Fails the receive that waits for the message in a damaged slot. Returns false if there is
    /// none.
    fn fail_expected(&mut self, header: &Header) -> bool {
        if !matches!(header.kind, Kind::Inline | Kind::Buffered | Kind::Rendezvous) {
            return false;
        }
        let Ok(source) = self.source_of(header) else { return false };
        let is_for = |receive: &Receive<RecvOp>| {
            let key = &receive.key;
            (key.bits ^ header.bits) & !key.ignore == 0
                && key.source.get().is_none_or(|named| named == source)
        };
        let tagged = header.is_tagged();
        let mut device = self.device.lock();
        let Some(receive) = device.context(tagged).cancel(is_for) else { return false };
        device.begin(&receive.data, true);
        drop(device);
        self.fail_recv(&receive.data, tagged, header.bits, true, Errno::ECRC);
        true
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
