// SPDX-License-Identifier: BSD-2-Clause
//! Checksums of what travels (`FI_TCAM_CHECK=on`).
//!
//! ```text
//! every slot           words and payload           slots of a ring (channel/src/shm/ring)
//! a message            its bytes, in the memory of who sends it and of who received it,
//!                      whichever way they took
//! reads, writes,       the buffer that they go through; what the kernel copies has none,
//! atomic operations    since others may change that memory meanwhile
//! ```
//!
//! Wrong bytes are an error completion (`FI_ECRC`) and a line of the log. The error of a damaged slot
//! is that of the receive that waits for the message. If no receive does, the slot could be of anything:
//! its error names no operation. It ends no operation that a peer may still copy for.

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

/// Whether the buffer that a frame lies in is not what its sender put there. What lies in a slot is
/// checked with it.
pub(crate) fn is_frame_damaged(header: &Header, check: u32, body: &Body<'_>) -> bool {
    let is_checked = header.flags.contains(Flags::CHECKED) && body.is_lent();
    let is_damaged = is_checked && crc32c::crc32c(&body.bytes().keep()) != check;
    if is_damaged {
        tracing::error!("FI_TCAM_CHECK: a buffer does not hold what was put into it");
    }
    is_damaged
}

impl Engine {
    /// What goes to a peer next is this message.
    #[inline]
    pub(crate) fn note_message(&mut self, peer: u32, message: &Buffer) {
        if self.check {
            self.note(peer, of(message));
        }
    }

    #[cold]
    fn note(&mut self, peer: u32, check: u32) {
        if let Some(Some(link)) = self.links.get_mut(peer as usize) {
            self.home.set_check(peer, link, check);
        }
    }

    /// Whether a message that was received as a whole is not what was sent.
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
                self.domain.peers.address(envelope.source),
                envelope.bits
            );
        }
        is_damaged
    }

    /// What completes the message of a slot, wherever it goes.
    #[inline(always)]
    pub(crate) fn about(&self, header: &Header) -> About {
        let Header { flags, data, op, .. } = *header;
        About { flags, data, op, check: self.slot_check }
    }

    /// Whether the next slot, which has checksums, is what its sender put there.
    #[cold]
    pub(crate) fn is_slot_whole(&mut self, inbox: &impl Arrivals) -> bool {
        let check = inbox.check();
        self.slot_check = check.unwrap_or_default();
        check.is_some()
    }

    /// The next slot holds something else than its sender put there.
    #[cold]
    pub(crate) fn fail_damaged(&mut self, inbox: &mut impl Arrivals) {
        tracing::error!("FI_TCAM_CHECK: a slot does not hold what was put into it");
        let header = inbox.peek().and_then(|slot| slot.header);
        if header.is_some_and(|header| self.fail_expected(&header)) {
            return;
        }
        let completion =
            Completion { flags: flags::RECV, source: flags::ADDR_UNSPEC, ..Default::default() };
        self.rx.fail(Failure { completion, overflow: 0, errno: Errno::ECRC });
    }

    /// Fails the receive that waits for the message in a damaged slot; false if there is none.
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
