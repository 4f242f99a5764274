// SPDX-License-Identifier: BSD-2-Clause
//! Serves the requests of peers for local memory (`fi_rma(3)`, `fi_atomic(3)`); see [`super::rma`].

use channel::{
    bytes::SharedBytes,
    way::{Body, CopyError, Direction, Link},
    wire::{Flags, Frame, Header, Kind, LONGEST},
};
use ffi::{
    Errno, Result, flags,
    ops::{cq::Completion, ep::rma::RemoteParts},
};

use super::{
    Engine,
    atomic::accesses_of_atomic,
    check::is_frame_damaged,
    completions::Counters,
    deferred::MOST,
    request::{Access, Served, answer_to},
    transfers::{LongCopy, MemoryCopy, UNLOCKED},
};
use crate::{
    attr,
    regions::{Accesses, Target},
};

impl Engine {
    /// Handles a request of a peer for local memory.
    pub(crate) fn serve(&mut self, from: u32, header: &Header, payload: SharedBytes<'_>) {
        if let Err(errno) = self.peers.link(from) {
            tracing::warn!("a request for memory is lost, who made it is gone: {errno}");
            return;
        }
        let untaken = self.peers.unanswered(from);
        if untaken >= MOST {
            if untaken < 2 * MOST {
                self.answer_request(from, header, Err(Errno::ENOBUFS));
            }
            return;
        }
        // Taken for a moment, so that the bytes can be lent.
        let Some(link) = self.peers.take(from) else { return };
        let served = match link.body(header, payload) {
            None => Err(Errno::EPROTO),
            Some(body) if is_frame_damaged(header, self.slot_check, &body) => Err(Errno::ECRC),
            Some(body) => self.execute(&link, from, header, &body),
        };
        self.peers.put_back(from, link);
        self.answer_request(from, header, served);
    }

    /// Answers a request, unless it is executed later.
    fn answer_request(&mut self, from: u32, header: &Header, served: Result<Served>) {
        let whole = !header.flags.contains(Flags::PART);
        match served {
            Ok(Served::Later) => {}
            Ok(Served::Done) if !whole => {}
            Ok(Served::Done) => self.peers.answer(from, Kind::Done, header.op, 0),
            Ok(Served::Data(target)) => {
                let answer = answer_to(header, header.len as usize);
                self.peers.reply_memory(from, answer, &target);
            }
            Ok(Served::Results(len)) => {
                let scratch = std::mem::take(&mut self.scratch);
                let answer = answer_to(header, len);
                self.peers.reply_bytes(from, answer, &scratch[..len]);
                self.scratch = scratch;
            }
            Ok(Served::Refused) => self.peers.answer(from, Kind::Pull, header.op, header.len),
            Err(errno) => {
                tracing::info!("a request for memory is refused: {errno}");
                self.peers.answer(from, Kind::Failed, header.op, errno.get() as u64);
            }
        }
    }

    fn execute(
        &mut self,
        link: &Link,
        from: u32,
        header: &Header,
        body: &Body<'_>,
    ) -> Result<Served> {
        let (frame, bytes) = (Frame::unpack(header.count), body.bytes());
        let parts = bytes.parts(frame.parts).ok_or(Errno::EPROTO)?;
        let rest = bytes.skip(size_of_val(parts.as_slice()));
        let len = usize::try_from(header.len).map_err(|_| Errno::EPROTO)?;
        if parts.len() != header.len || body.is_lent() && frame.segments > 0 {
            return Err(Errno::EPROTO);
        }
        let access = match header.kind {
            Kind::Write => self.serve_write(header, frame, &parts, rest)?,
            Kind::Read => self.serve_read(len, frame, &parts)?,
            _ => Access::Over(self.serve_atomic(header, &parts, rest)?),
        };
        let served = match access {
            Access::Over(served) => served,
            Access::Copy(direction, target) => {
                let count = u32::from(frame.segments);
                let remote = rest.remote(count, header.len).ok_or(Errno::EPROTO)?;
                if self.domain.locked
                    && len >= UNLOCKED
                    && let Some(exchanger) = link.exchanger(self.peers.own())
                {
                    let (epoch, header) = (self.peers.epoch(from), *header);
                    self.copy_later(MemoryCopy {
                        exchanger,
                        direction,
                        remote,
                        target,
                        peer: from,
                        epoch,
                        header,
                        parts,
                    });
                    return Ok(Served::Later);
                }
                let what = (&remote, header.op);
                copied(link.exchange(self.peers.own(), direction, what, target.placed()))?
            }
        };
        if !matches!(served, Served::Refused) {
            self.served(header, &parts, len);
        }
        Ok(served)
    }

    /// Later slots must wait: they may read what this copy writes.
    #[cold]
    fn copy_later(&mut self, copy: MemoryCopy) {
        self.copies.push_back(LongCopy::Memory(Box::new(copy)));
        self.holds_arrivals = true;
    }

    /// Handles the result of a copy that was made without the lock. The requesting peer may have
    /// gone meanwhile.
    pub(super) fn memory_copied(
        &mut self,
        copy: &MemoryCopy,
        exchanged: std::result::Result<(), CopyError>,
    ) {
        self.holds_arrivals = false;
        let MemoryCopy { peer, header, parts, .. } = copy;
        if copy.epoch != self.peers.epoch(*peer) {
            return;
        }
        let served = copied(exchanged);
        if let Ok(Served::Done) = served {
            self.served(header, parts, parts.len() as usize);
        }
        self.answer_request(*peer, header, served);
    }

    /// Counts a request that was served, and reports its remote CQ data.
    fn served(&mut self, header: &Header, parts: &RemoteParts, len: usize) {
        if header.flags.contains(Flags::PART) {
            return;
        }
        self.peers.channels.rma.received += 1;
        self.peers.channels.rma.received_bytes += len as u64;
        let accesses = match header.kind {
            Kind::Write => Accesses { reads: false, writes: true },
            Kind::Atomic => accesses_of_atomic(header.bits),
            _ => Accesses { reads: true, writes: false },
        };
        let Counters { remote_read, remote_write, .. } = &self.completions.counters;
        accesses.count(remote_read.as_ref(), remote_write.as_ref());
        self.domain.regions.count(parts, accesses);
        if header.flags.contains(Flags::DATA) {
            let completion = Completion {
                flags: flags::RMA | flags::REMOTE_WRITE | flags::REMOTE_CQ_DATA,
                len: usize::try_from(header.bits).unwrap_or(len),
                data: header.data,
                source: flags::ADDR_UNSPEC,
                ..Default::default()
            };
            self.completions.rx.complete(true, completion);
        }
    }

    /// The memory that a request names.
    ///
    /// # Errors
    /// `EACCES` if the endpoint was opened without the capability, and the errors of
    /// [`crate::regions::Regions::resolve`].
    pub(super) fn target(&self, parts: &RemoteParts, class: u64, access: u64) -> Result<Target> {
        if (class | access) & !self.caps != 0 {
            return Err(Errno::EACCES);
        }
        self.domain.regions.resolve(parts, access, self.peers.own_address())
    }

    fn serve_write(
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

    fn serve_read(&self, len: usize, frame: Frame, parts: &RemoteParts) -> Result<Access> {
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
}

/// The result of a request after a kernel copy.
fn copied(exchanged: std::result::Result<(), CopyError>) -> Result<Served> {
    match exchanged {
        Ok(()) => Ok(Served::Done),
        Err(CopyError::Refused) => Ok(Served::Refused),
        Err(CopyError::Failed(errno)) => Err(errno),
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
