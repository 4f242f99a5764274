// SPDX-License-Identifier: BSD-2-Clause
//! Starts reads and writes of a peer's memory (`fi_rma(3)`), and handles the answers.
//!
//! The peer executes them in the order in which they arrive, together with the messages of the same
//! ring or connection. Only the peer knows its regions. A request names parts of these regions.
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
//!   longer ones if the kernel does not copy between the two processes, or over the network:
//!   Write (parts, flag PIECES) -------->  checks all parts, copies nothing
//!   <------------------------------ Pull  (also after a kernel copy that was refused)
//!   Write/Read (piece), ... (last) ---->  each as above, without a kernel copy; reads begin here
//!   <----------------- Answer, ... / Done
//! ```
//!
//! Rejected: the initiator copies, with a table of regions in shared memory. Then the peer need not
//! make progress. But a region could be closed during a copy, and order, counters and atomic
//! operations need the peer anyway.

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
    Buffer, Errno, Result, flags,
    ops::ep::rma::{RemoteParts, Rma},
};

use super::{
    check::is_frame_damaged,
    completions::Completions,
    ops::{OpKind, SendOp},
    outgoing::Outgoing,
    peers::Peers,
    tx::{Tx, TxStream},
};
use crate::attr;

/// A close that has waited for copies for this time logs a message, and checks less often from then
/// on.
const SILENCE: Duration = Duration::from_secs(2);
const BACKOFF: Duration = Duration::from_millis(1);
/// Maximum length in bytes of one piece of a read or write that goes in pieces.
const PIECE: usize = LONGEST - 256;
/// Maximum number of bytes of one read in pieces that are requested and not answered. If the peer
/// has no room for an answer, it keeps the answer in its memory ([`super::deferred`]).
const READ_AHEAD: usize = 64 * PIECE;
/// Maximum number of bytes of all reads in pieces that are requested and not answered.
const ALL_AHEAD: usize = 4 * READ_AHEAD;

/// Flags of operations on memory.
pub(crate) const FLAGS: u64 = attr::TX_OP_FLAGS
    | flags::REMOTE_CQ_DATA
    | flags::MORE
    | flags::FENCE
    | flags::RMA
    | flags::ATOMIC
    | flags::READ
    | flags::WRITE;

/// Waits until `is_reached` returns false, which means that no peer copies from or to memory of the
/// endpoint at `address` any more ([`Peers::is_any_reaching`]). The wait has no time limit, because
/// a peer that was stopped in the middle of a copy would continue the copy later.
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

/// Returns the header of a request for parts of a peer's memory. The payload of the request
/// contains the parts and, depending on the request, data or the location of local memory.
#[inline]
pub(super) fn request(kind: Kind, parts: &RemoteParts, op: u64) -> Header {
    Header { len: parts.len(), ..Header::of(kind, op) }
}

impl Tx {
    /// Returns whether a message could overtake a read or write of the peer's memory: one that goes
    /// in pieces, or may go in pieces after the kernel has refused to copy (`FI_ORDER_SAR`,
    /// `FI_ORDER_SAW`).
    #[cold]
    pub(super) fn overtakes(&self, peers: &mut Peers, peer: u32) -> bool {
        let at_once = attr::order_size(self.settings.eager.size);
        let piecemeal = |op: &SendOp| {
            op.peer == peer
                && matches!(op.kind, OpKind::Read | OpKind::Write)
                && op.buffer.len() > at_once
        };
        // The operations are not searched if the kernel copies at this peer.
        peers.link(peer).is_ok_and(|link| link.goes_in_pieces() != Some(false))
            && self.ops.any(piecemeal)
    }

    /// Starts an operation of `len` bytes on a peer's memory: enters it, and calls `send` with its
    /// number to send the request.
    ///
    /// # Errors
    /// Those of `send`. The operation has not started then.
    pub(super) fn start_rma(
        &mut self,
        peers: &mut Peers,
        op: SendOp,
        len: u64,
        send: impl FnOnce(&mut Self, &mut Peers, u64) -> Result<()>,
    ) -> Result<()> {
        let number = self.ops.enter(op);
        let sent = send(self, peers, number);
        if sent.is_err() {
            self.ops.take(number);
            return sent;
        }
        self.rma_under_way.start();
        peers.channels.rma.sent += 1;
        peers.channels.rma.sent_bytes += len;
        Ok(())
    }

    /// Starts a read or a write of a peer's memory. `work`: the deferred work that it is, or 0.
    ///
    /// # Errors
    /// `EAGAIN` if there is no room, `ECONNABORTED` if the peer is gone.
    pub(super) fn rma(
        &mut self,
        peers: &mut Peers,
        work: u32,
        peer: u32,
        op: &Rma,
        options: Outgoing,
    ) -> Result<()> {
        let kind = if op.write { OpKind::Write } else { OpKind::Read };
        let entry = SendOp {
            remote: op.remote,
            data: op.data,
            acknowledged: true,
            work,
            ..SendOp::new(kind, peer, &op.buffer, op.context, options.report)
        };
        self.start_rma(peers, entry, op.buffer.len() as u64, |tx, peers, number| {
            if op.write {
                tx.write(peers, peer, op, number, options.inject)
            } else {
                tx.read(peers, peer, op, number)
            }
        })
    }

    fn write(
        &mut self,
        peers: &mut Peers,
        peer: u32,
        op: &Rma,
        number: u64,
        inject: bool,
    ) -> Result<()> {
        let parts = op.remote.as_slice();
        let len = op.buffer.len();
        let frame_len = size_of_val(parts) + len;
        let mut header = request(Kind::Write, &op.remote, number);
        header.bits = len as u64;
        header.data = op.data.unwrap_or(0);
        header.flags = if op.data.is_some() { Flags::DATA } else { Flags::empty() };
        let short = inject || frame_len <= attr::short_size(self.settings.eager.size);
        if short {
            let data = slice::from_ref(&op.buffer);
            match peers.push(peer, &header, Payload::PartsAndData(parts, data))? {
                Sent::Yes => return Ok(()),
                Sent::NoRoom => return Err(Errno::EAGAIN),
                Sent::NoBuffer => {}
            }
        }
        let in_pieces = goes_in_pieces(peers, peer)?;
        if short && (inject || in_pieces) {
            // A later operation may overtake a write in pieces. This is allowed only for writes
            // that are longer than this one.
            return Err(Errno::EAGAIN);
        }
        if in_pieces {
            header.flags |= Flags::PIECES;
        }
        let sent = peers.push(peer, &header, Payload::Segments(parts, &op.buffer))?;
        if sent == Sent::Yes { Ok(()) } else { Err(Errno::EAGAIN) }
    }

    fn read(&mut self, peers: &mut Peers, peer: u32, op: &Rma, number: u64) -> Result<()> {
        let len = op.buffer.len();
        let in_pieces = goes_in_pieces(peers, peer)?;
        if in_pieces && len > attr::order_size(self.settings.eager.size) {
            self.stream(number, peer, 0, len);
            return Ok(());
        }
        let header = request(Kind::Read, &op.remote, number);
        let parts = op.remote.as_slice();
        // A request without local segments is answered with the data, whatever the
        // `FI_TCAM_EAGER_SIZE` of the peer is.
        let payload = match in_pieces {
            true => Payload::PartsAndData(parts, &[]),
            false => Payload::Segments(parts, &op.buffer),
        };
        let sent = peers.push(peer, &header, payload)?;
        if sent == Sent::Yes { Ok(()) } else { Err(Errno::EAGAIN) }
    }

    /// Sends pieces of a write, or requests pieces of a read. Returns whether any piece was sent or
    /// requested.
    pub(super) fn pump_rma(&self, peers: &mut Peers, stream: &mut TxStream, op: &SendOp) -> bool {
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
            let payload = Payload::PartsAndData(parts.as_slice(), data);
            if peers.push(stream.peer, &header, payload) != Ok(Sent::Yes) {
                break;
            }
            stream.offset += len;
        }
        stream.offset > start
    }

    /// Handles an answer to a read or a fetching atomic operation, or a part of an answer. If bytes
    /// are missing or damaged, the operation fails. `check`: checksum of the slot's payload.
    pub(super) fn answered(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        check: u32,
        from: u32,
        header: &Header,
        payload: SharedBytes<'_>,
    ) {
        let Ok(link) = peers.link(from) else { return };
        let body = link.body(header, payload);
        let Some(to) = self.answer_buffer(from, header) else {
            tracing::debug!("an answer to a read that is not under way any more");
            return;
        };
        let error = match body {
            Some(body) if header.len <= body.bytes().len() as u64 => {
                body.bytes().first(to.len()).deliver(&to);
                is_frame_damaged(header, check, &body).then_some(Errno::ECRC)
            }
            _ => {
                tracing::error!("an answer to a read without all its bytes: the read fails");
                Some(Errno::EPROTO)
            }
        };
        if let Some(errno) = error {
            if let Some(op) = self.take(header.op) {
                self.fail(completions, &op, errno);
            }
        } else if header.flags.contains(Flags::PART) {
            let mut streams = self.streams.iter_mut();
            if let Some(stream) = streams.find(|stream| stream.op == header.op) {
                // A peer may claim to have sent more than was requested.
                let answered = stream.answered.saturating_add(header.len as usize);
                stream.answered = answered.min(stream.offset);
            }
        } else if let Some(op) = self.take(header.op) {
            self.complete(completions, &op);
        }
    }

    /// Returns the memory for the bytes of an answer; `None` if the operation is not in progress at
    /// this peer.
    fn answer_buffer(&self, from: u32, header: &Header) -> Option<Buffer> {
        let offset = usize::try_from(header.data).unwrap_or(usize::MAX);
        let to = self.ops.find(header.op, |op| {
            let is_ours = op.peer == from && matches!(op.kind, OpKind::Read | OpKind::Fetch);
            is_ours.then(|| op.buffer.part(offset, header.len as usize))
        });
        to.flatten()
    }
}

/// Returns whether longer reads and writes of a peer's memory go in pieces. They do over the
/// network, and if it is known that the kernel does not copy between the two processes.
///
/// # Errors
/// `ECONNABORTED` if the peer is gone.
fn goes_in_pieces(peers: &mut Peers, peer: u32) -> Result<bool> {
    Ok(peers.link(peer)?.goes_in_pieces() == Some(true))
}
