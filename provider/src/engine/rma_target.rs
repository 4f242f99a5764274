// SPDX-License-Identifier: BSD-2-Clause
//! Serves the requests of peers to read, write or atomically change local memory (`fi_rma(3)`,
//! `fi_atomic(3)`). [`super::rma`] describes the protocol.

use std::sync::Arc;

use channel::{
    bytes::SharedBytes,
    contract::{Body, CopyError, Direction},
    peer::Peer,
    wire::{Flags, Frame, Header, Kind, LONGEST},
};
use ffi::{
    Errno, Result, flags,
    ops::{cq::Completion, ep::rma::RemoteParts},
};

use super::{
    atomic::{AtomicBuffers, AtomicOp, accesses_of_atomic},
    check::is_frame_damaged,
    completions::{Completions, Counters},
    copies::{Copies, MemoryCopy, UNLOCKED},
    deferred::MOST,
    peers::Peers,
};
use crate::{
    attr,
    domain::Domain,
    regions::{Accesses, Target},
};

/// The result of a request.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "the hot path allocates nothing")]
enum Served {
    /// The request is executed, and its answer has no data.
    Done,
    /// The answer is the contents of this memory.
    Data(Target),
    /// The answer is this many bytes of the results of an atomic operation.
    Results(usize),
    /// The data was not copied, or only a part of it, because the kernel does not copy between the
    /// two processes, or because the peer announced a write in pieces. The peer gets a
    /// [`Kind::Pull`], and goes on in pieces.
    Refused,
    /// The copy is queued, to be made without the lock.
    Later,
}

/// The next step of a read or a write.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "the hot path allocates nothing")]
enum Access {
    /// The request needs no kernel copy, and has this result.
    Over(Served),
    /// The kernel is to copy between this memory and that of the requesting peer.
    Copy(Direction, Target),
}

/// Returns the header of an answer with `len` bytes of data.
fn answer_to(request: &Header, len: usize) -> Header {
    // Atomic operations have no offset.
    let data = if request.kind == Kind::Read { request.data } else { 0 };
    let (flags, len) = (request.flags & Flags::PART, len as u64);
    Header { flags, data, len, ..Header::of(Kind::Answer, request.op) }
}

/// A request of a peer.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) from: u32,
    pub(super) header: &'a Header,
    pub(super) payload: SharedBytes<'a>,
    /// Checksum of the payload.
    pub(super) check: u32,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct RmaTarget {
    domain: Arc<Domain>,
    /// The address under which peers list the endpoint.
    address: u64,
    /// Capabilities of the endpoint.
    pub(super) caps: u64,
    eager_size: usize,
    atomic: AtomicBuffers,
}

impl RmaTarget {
    pub(super) fn new(domain: &Arc<Domain>, address: u64, caps: u64, eager_size: usize) -> Self {
        let (domain, caps) = (Arc::clone(domain), attr::capabilities(caps));
        Self { domain, address, caps, eager_size, atomic: AtomicBuffers::default() }
    }

    /// Handles a request of a peer for local memory.
    pub(super) fn serve(
        &mut self,
        peers: &mut Peers,
        completions: &Completions,
        copies: &mut Copies,
        request: Request<'_>,
    ) {
        let Request { from, header, payload, check } = request;
        let Some(link) = peers.get(from) else {
            tracing::warn!("a request for memory is lost, who made it is gone");
            return;
        };
        let untaken = peers.unanswered(from);
        if untaken >= MOST {
            if untaken < 2 * MOST {
                self.answer(peers, from, header, Err(Errno::ENOBUFS));
            }
            // Dropping the body gives the buffer with the request back to the peer.
            drop(peers.get(from).and_then(|link| link.body(header, payload)));
            return;
        }
        let served = match link.body(header, payload) {
            None => Err(Errno::EPROTO),
            Some(body) if is_frame_damaged(header, check, &body) => Err(Errno::ECRC),
            Some(body) => self.execute(peers, link, copies, (from, header), &body),
        };
        if let Ok((Served::Done | Served::Data(_) | Served::Results(_), parts)) = &served {
            self.count(peers, completions, header, parts);
        }
        self.answer(peers, from, header, served.map(|(served, _)| served));
    }

    /// Answers a request. Sends nothing if the request is executed later, or if it succeeded
    /// without data and more parts of it follow.
    fn answer(&self, peers: &mut Peers, from: u32, header: &Header, served: Result<Served>) {
        let whole = !header.flags.contains(Flags::PART);
        match served {
            Ok(Served::Later) => {}
            Ok(Served::Done) if !whole => {}
            Ok(Served::Done) => peers.answer(from, Kind::Done, header.op, 0),
            Ok(Served::Data(target)) => {
                peers.reply_memory(from, answer_to(header, header.len as usize), &target);
            }
            Ok(Served::Results(len)) => {
                peers.reply_bytes(from, answer_to(header, len), self.atomic.results(len));
            }
            Ok(Served::Refused) => peers.answer(from, Kind::Pull, header.op, header.len),
            Err(errno) => {
                tracing::info!("a request for memory is refused: {errno}");
                peers.answer(from, Kind::Failed, header.op, errno.get() as u64);
            }
        }
    }

    /// Executes a request, or queues its copy. Returns the result, and the parts of local memory
    /// that the request names.
    ///
    /// # Errors
    /// The error that the peer is to get.
    fn execute(
        &mut self,
        peers: &Peers,
        link: &Peer,
        copies: &mut Copies,
        (from, header): (u32, &Header),
        body: &Body<'_>,
    ) -> Result<(Served, RemoteParts)> {
        let (frame, bytes) = (Frame::unpack(header.count), body.bytes());
        // A request of no parts would be reported to this process, although it names no region that
        // the peer may write.
        if frame.parts == 0 {
            return Err(Errno::EPROTO);
        }
        let parts = bytes.parts(frame.parts).ok_or(Errno::EPROTO)?;
        let rest = bytes.skip(size_of_val(parts.as_slice()));
        let len = usize::try_from(header.len).map_err(|_| Errno::EPROTO)?;
        if parts.len() != header.len || body.is_in_buffer() && frame.segments > 0 {
            return Err(Errno::EPROTO);
        }
        let access = match header.kind {
            Kind::Write => self.write(header, frame, &parts, rest)?,
            Kind::Read => self.read(len, frame, &parts)?,
            _ => Access::Over(self.execute_atomic(header, &parts, rest)?),
        };
        let (direction, target) = match access {
            Access::Over(served) => return Ok((served, parts)),
            Access::Copy(direction, target) => (direction, target),
        };
        let remote = rest.remote(u32::from(frame.segments), header.len).ok_or(Errno::EPROTO)?;
        let Some(copier) = link.copier() else { return Ok((Served::Refused, parts)) };
        if self.domain.locked && len >= UNLOCKED {
            copies.push_memory(MemoryCopy {
                copier,
                direction,
                remote,
                target,
                peer: from,
                epoch: peers.epoch(from),
                header: *header,
                parts,
            });
            return Ok((Served::Later, parts));
        }
        let what = (&remote, header.op);
        let served = copied(copier.exchange(direction, what, target.placed()))?;
        Ok((served, parts))
    }

    /// Handles the result of a copy for a request that was made without the lock. Does nothing if
    /// the requesting endpoint was forgotten meanwhile.
    pub(super) fn memory_copied(
        &self,
        peers: &mut Peers,
        completions: &Completions,
        copy: &MemoryCopy,
        exchanged: std::result::Result<(), CopyError>,
    ) {
        let MemoryCopy { peer, header, parts, epoch, .. } = copy;
        if *epoch != peers.epoch(*peer) {
            return;
        }
        let served = copied(exchanged);
        if let Ok(Served::Done) = served {
            self.count(peers, completions, header, parts);
        }
        self.answer(peers, *peer, header, served);
    }

    /// Counts a request that was served, unless more parts of it follow, and reports its remote CQ
    /// data.
    fn count(
        &self,
        peers: &mut Peers,
        completions: &Completions,
        header: &Header,
        parts: &RemoteParts,
    ) {
        peers.channels.rma.received_bytes += header.len;
        if header.flags.contains(Flags::PART) {
            return;
        }
        peers.channels.rma.received += 1;
        let accesses = match header.kind {
            Kind::Write => Accesses { reads: false, writes: true },
            Kind::Atomic => accesses_of_atomic(header.bits),
            _ => Accesses { reads: true, writes: false },
        };
        let Counters { remote_read, remote_write, .. } = &completions.counters;
        accesses.count(remote_read.as_ref(), remote_write.as_ref());
        self.domain.regions.count(parts, accesses);
        if header.flags.contains(Flags::DATA) {
            let completion = Completion {
                flags: flags::RMA | flags::REMOTE_WRITE | flags::REMOTE_CQ_DATA,
                len: usize::try_from(header.bits).unwrap_or(header.len as usize),
                data: header.data,
                source: flags::ADDR_UNSPEC,
                ..Default::default()
            };
            completions.rx.complete(true, completion);
        }
    }

    /// Returns the memory that a request names. `class` is `FI_RMA` or `FI_ATOMIC`, and `access` is
    /// `FI_REMOTE_READ` or `FI_REMOTE_WRITE`.
    ///
    /// # Errors
    /// `EACCES` if the endpoint does not have the capabilities `class` and `access`, and the errors
    /// of [`crate::regions::Regions::resolve`].
    fn target(&self, parts: &RemoteParts, class: u64, access: u64) -> Result<Target> {
        if (class | access) & !self.caps != 0 {
            return Err(Errno::EACCES);
        }
        self.domain.regions.resolve(parts, access, self.address)
    }

    fn write(
        &self,
        header: &Header,
        frame: Frame,
        parts: &RemoteParts,
        rest: SharedBytes<'_>,
    ) -> Result<Access> {
        let len = parts.len() as usize;
        let target = self.target(parts, flags::RMA, flags::REMOTE_WRITE)?;
        if header.flags.contains(Flags::PIECES) {
            return Ok(Access::Over(Served::Refused));
        }
        if frame.segments > 0 {
            return Ok(Access::Copy(Direction::Read, target));
        }
        if rest.len() < len {
            return Err(Errno::EPROTO);
        }
        for (at, buffer) in target.placed() {
            rest.skip(at).first(buffer.len()).deliver(buffer);
        }
        Ok(Access::Over(Served::Done))
    }

    fn read(&self, len: usize, frame: Frame, parts: &RemoteParts) -> Result<Access> {
        let target = self.target(parts, flags::RMA, flags::REMOTE_READ)?;
        if len <= attr::short_size(self.eager_size) || frame.segments == 0 {
            return if len <= LONGEST {
                Ok(Access::Over(Served::Data(target)))
            } else {
                Err(Errno::EPROTO)
            };
        }
        Ok(Access::Copy(Direction::Write, target))
    }

    fn execute_atomic(
        &mut self,
        header: &Header,
        parts: &RemoteParts,
        rest: SharedBytes<'_>,
    ) -> Result<Served> {
        let op = AtomicOp::read(header, parts, rest)?;
        let target = self.target(parts, flags::ATOMIC, op.access())?;
        let has_results = self.atomic.execute(&op, &target, rest);
        Ok(if has_results { Served::Results(header.len as usize) } else { Served::Done })
    }
}

/// Returns the result of a request after a kernel copy.
///
/// # Errors
/// The reason why the memory could not be copied.
fn copied(exchanged: std::result::Result<(), CopyError>) -> Result<Served> {
    match exchanged {
        Ok(()) => Ok(Served::Done),
        Err(CopyError::Refused) => Ok(Served::Refused),
        Err(CopyError::Failed(errno)) => Err(errno),
    }
}

#[cfg(test)]
#[path = "rma_target_tests.rs"]
mod tests;
