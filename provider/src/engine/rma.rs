// SPDX-License-Identifier: BSD-2-Clause
//! `fi_rma(3)`: reads and writes of a peer's memory.
//!
//! The peer executes them, in the order in which they arrive, between the messages of the same
//! ring. It knows its regions, and no other process accesses its memory.
//!
//! ```text
//! initiator                               target
//!   Write (parts, data) --------------->  checks, copies            up to eager size
//!   Write (parts, where data is) ------>  checks, process_vm_readv  longer
//!   <------------------------- Done / Failed
//!   Read (parts, where it goes) ------->  checks
//!   <-------------------- Answer (data)                             up to eager size
//!   <------------------------------ Done  process_vm_writev         longer
//!
//!   and if the kernel refuses, or must not be asked:
//!   <------------------------------ Pull  checked as a whole
//!   Write/Read (piece), ... (last) ---->  each as above, in buffers
//!   <----------------- Answer, ... / Done
//! ```
//!
//! Rejected: the initiator copies, with a table of regions in shared memory. That saves the peer's
//! progress, but a region could be closed during a copy, and order, counters and atomic operations
//! need the peer anyway.

use std::{
    net::SocketAddrV4,
    slice,
    time::{Duration, Instant},
};

use channel::{
    bytes::SharedBytes,
    contract::{Payload, Sent},
    wire::{Flags, Header, Kind, LONGEST},
};
use ffi::{
    Errno, Result, flags,
    ops::ep::{OpFlags, rma::Rma},
};

use super::request::{Start, request};
use crate::{
    attr,
    engine::{
        Engine,
        check::is_frame_damaged,
        ops::{OpKind, SendOp},
        transfers::Stream,
    },
    sizes::Class,
};

/// A close that has waited for copies for this time logs a message, and checks less often from then
/// on.
const SILENCE: Duration = Duration::from_secs(2);
const BACKOFF: Duration = Duration::from_millis(1);
/// Bytes of one piece if the kernel refuses to copy.
const PIECE: usize = LONGEST - 256;
/// Most bytes of one read that are requested and not answered, if the kernel refuses to copy. The
/// peer keeps answers without a buffer in its memory ([`super::deferred`]).
const READ_AHEAD: usize = 16 * PIECE;
/// Most bytes of all reads that are requested and not answered, if the kernel refuses to copy.
const ALL_AHEAD: usize = 16 * READ_AHEAD;

/// Flags of operations on memory.
pub(crate) const FLAGS: u64 = attr::TX_OP_FLAGS
    | flags::REMOTE_CQ_DATA
    | flags::MORE
    | flags::FENCE
    | flags::RMA
    | flags::ATOMIC
    | flags::READ
    | flags::WRITE;

/// Waits while peers copy from or to memory of an endpoint ([`Engine::is_reached`]). A peer that
/// was stopped in the middle of a copy would continue it later.
pub(crate) fn wait_for_copies(address: SocketAddrV4, mut is_reached: impl FnMut() -> bool) {
    let said_at = Instant::now() + SILENCE;
    let mut is_said = false;
    while is_reached() {
        if is_said {
            std::thread::sleep(BACKOFF);
        } else if Instant::now() < said_at {
            std::thread::yield_now();
        } else {
            is_said = true;
            tracing::warn!(
                "closing {address} waits for a process that is in the middle of a copy from its memory \
                 or to it: is it stopped?"
            );
        }
    }
}

impl Engine {
    /// Begins an operation on `len` bytes of a peer's memory. `sent` bytes are sent to the peer.
    #[inline]
    pub(crate) fn start_rma(
        &mut self,
        peer: u64,
        op_flags: OpFlags,
        (class, len, sent): (Class, usize, usize),
    ) -> Result<Start> {
        if !self.enabled {
            return Err(Errno::EOPBADSTATE);
        }
        let (op_flags, silent) = match op_flags {
            OpFlags::Default => (self.completions.tx.op_flags, false),
            OpFlags::Given(given) => {
                ffi::object::only(given, FLAGS)?;
                (given, false)
            }
            OpFlags::Inject => (flags::INJECT, true),
        };
        if self.rma_under_way.get() >= self.rma_limit {
            return Err(Errno::EAGAIN);
        }
        let inject = op_flags & flags::INJECT != 0;
        self.sizes.check(class, len, if inject { sent } else { 0 })?;
        let peer = self.peers.at(peer)?;
        self.link_to(peer)?;
        if op_flags & flags::FENCE != 0 && self.has_under_way(peer) {
            return Err(Errno::EAGAIN);
        }
        let report =
            !silent && (!self.completions.tx.selective || op_flags & flags::COMPLETION != 0);
        Ok(Start { peer, report, inject })
    }

    /// Returns whether a message would overtake a read or write of the peer's memory that goes in
    /// pieces (`FI_ORDER_SAR`, `FI_ORDER_SAW`).
    #[cold]
    pub(crate) fn overtakes(&mut self, peer: u32) -> bool {
        let at_once = attr::order_size(self.eager_size);
        let piecemeal = |op: &SendOp| {
            op.peer == peer
                && matches!(op.kind, OpKind::Read | OpKind::Write)
                && op.buffer.len() > at_once
        };
        // If the kernel copies, the operations are not searched before each message.
        self.goes_in_pieces(peer) == Ok(true) && self.sends.any(piecemeal)
    }

    /// Returns whether a living peer copies from or to local memory. Once its operations are void,
    /// or the endpoint is closed, no new copy begins.
    pub(crate) fn is_reached(&self) -> bool {
        self.peers.is_any_reaching()
    }

    /// Returns whether operations at a peer are in progress: `FI_FENCE` waits for them.
    #[cold]
    pub(crate) fn has_under_way(&self, peer: u32) -> bool {
        self.sends.any(|op| op.peer == peer)
    }

    /// Any form of `fi_read` and `fi_write`.
    pub(crate) fn rma(&mut self, op: &Rma) -> Result<()> {
        let len = op.buffer.len();
        if op.remote.len() != len as u64 {
            return Err(Errno::EINVAL);
        }
        let sent = if op.write { len } else { 0 };
        let start = self.start_rma(op.peer, op.flags, (Class::Rma, len, sent))?;
        let peer = start.peer;
        let number = self.sends.enter(SendOp {
            kind: if op.write { OpKind::Write } else { OpKind::Read },
            peer,
            buffer: op.buffer.clone(),
            remote: op.remote,
            data: op.data,
            context: op.context,
            report: start.report,
            acknowledged: true,
            work: self.completions.work(),
            age: 0,
        });
        let sent = if op.write {
            self.write(peer, op, number, start.inject)
        } else {
            self.read(peer, op, number)
        };
        if sent.is_err() {
            self.sends.take(number);
            return sent;
        }
        self.rma_under_way.start();
        self.peers.channels.rma.sent += 1;
        self.peers.channels.rma.sent_bytes += len as u64;
        Ok(())
    }

    fn write(&mut self, peer: u32, op: &Rma, number: u64, inject: bool) -> Result<()> {
        let parts = op.remote.as_slice();
        let len = op.buffer.len();
        let frame_len = size_of_val(parts) + len;
        let mut header = request(Kind::Write, &op.remote, number);
        header.bits = len as u64;
        header.data = op.data.unwrap_or(0);
        header.flags = if op.data.is_some() { Flags::DATA } else { Flags::empty() };
        let short = inject || frame_len <= attr::short_size(self.eager_size);
        if short {
            let data = slice::from_ref(&op.buffer);
            match self.peers.push(peer, &header, Payload::Frame(parts, data))? {
                Sent::Yes => return Ok(()),
                Sent::NoRoom => return Err(Errno::EAGAIN),
                Sent::NoBuffer => {}
            }
        }
        let in_pieces = self.goes_in_pieces(peer)?;
        if short && (inject || in_pieces) {
            // Longer writes may be overtaken, this one may not.
            return Err(Errno::EAGAIN);
        }
        if in_pieces {
            header.flags |= Flags::PIECES;
        }
        let sent = self.peers.push(peer, &header, Payload::Segments(parts, &op.buffer))?;
        if sent == Sent::Yes { Ok(()) } else { Err(Errno::EAGAIN) }
    }

    fn read(&mut self, peer: u32, op: &Rma, number: u64) -> Result<()> {
        let len = op.buffer.len();
        let in_pieces = self.goes_in_pieces(peer)?;
        if in_pieces && len > attr::order_size(self.eager_size) {
            self.stream(number, peer, 0, len);
            return Ok(());
        }
        let header = request(Kind::Read, &op.remote, number);
        let parts = op.remote.as_slice();
        // Without local segments, the answer comes at once, whatever the peer's sizes are.
        let payload = match in_pieces {
            true => Payload::Frame(parts, &[]),
            false => Payload::Segments(parts, &op.buffer),
        };
        let sent = self.peers.push(peer, &header, payload)?;
        if sent == Sent::Yes { Ok(()) } else { Err(Errno::EAGAIN) }
    }

    fn goes_in_pieces(&mut self, peer: u32) -> Result<bool> {
        Ok(self.peers.link(peer)?.goes_in_pieces())
    }

    /// Sends pieces of an operation. Returns whether any piece was sent.
    pub(crate) fn pump_rma(&mut self, stream: &mut Stream) -> bool {
        let Some(op) = self.sends.find(stream.op, SendOp::clone) else { return false };
        let start = stream.offset;
        let write = op.kind == OpKind::Write;
        // This stream is not in `streams` now.
        let share = ALL_AHEAD / (self.streams.len() + 1);
        let ahead = if write { usize::MAX } else { share.clamp(PIECE, READ_AHEAD) };
        while stream.offset < stream.len && stream.offset - stream.answered < ahead {
            let len = PIECE.min(stream.len - stream.offset);
            let parts = op.remote.part(stream.offset as u64, len as u64);
            let kind = if write { Kind::Write } else { Kind::Read };
            let mut header = request(kind, &parts, stream.op);
            header.bits = stream.len as u64;
            header.data = stream.offset as u64;
            if stream.offset + len < stream.len {
                header.flags = Flags::PART;
            } else if let (true, Some(data)) = (write, op.data) {
                header.flags = Flags::DATA;
                header.data = data;
            }
            let data = [op.buffer.part(stream.offset, len)];
            let data = if write { &data[..] } else { &[] };
            let payload = Payload::Frame(parts.as_slice(), data);
            if self.peers.push(stream.peer, &header, payload) != Ok(Sent::Yes) {
                break;
            }
            stream.offset += len;
        }
        stream.offset > start
    }

    /// Handles an answer to a read, or a part of one.
    pub(crate) fn answered(&mut self, from: u32, header: &Header, payload: SharedBytes<'_>) {
        let Ok(link) = self.peers.link(from) else { return };
        let body = link.body(header, payload);
        let is_damaged =
            body.as_ref().is_some_and(|body| is_frame_damaged(header, self.slot_check, body));
        let offset = usize::try_from(header.data).unwrap_or(usize::MAX);
        let to = self.sends.find(header.op, |op| {
            let is_ours = op.peer == from && matches!(op.kind, OpKind::Read | OpKind::Fetch);
            is_ours.then(|| op.buffer.part(offset, header.len as usize))
        });
        let Some(to) = to.flatten() else {
            tracing::debug!("an answer to a read that is not under way any more");
            return;
        };
        match body.filter(|body| header.len <= body.bytes().len() as u64) {
            Some(body) => _ = body.bytes().first(to.len()).deliver(&to),
            None => tracing::warn!("an answer to a read without its bytes"),
        }
        if is_damaged {
            self.streams.retain(|stream| stream.op != header.op);
            if let Some(op) = self.sends.take(header.op) {
                self.fail_op(&op, Errno::ECRC);
            }
            return;
        }
        if header.flags.contains(Flags::PART) {
            let mut streams = self.streams.iter_mut();
            if let Some(stream) = streams.find(|stream| stream.op == header.op) {
                // No more than was requested, whatever the peer says.
                let answered = stream.answered.saturating_add(header.len as usize);
                stream.answered = answered.min(stream.offset);
            }
        } else if let Some(op) = self.sends.take(header.op) {
            self.streams.retain(|stream| stream.op != header.op);
            self.complete_op(&op);
        }
    }
}
