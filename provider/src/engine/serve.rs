// SPDX-License-Identifier: BSD-2-Clause
//! What peers ask of our memory (`fi_rma(3)`, `fi_atomic(3)`): see [`super::rma`].

use ffi::{
    Errno, Result, flags,
    ops::{cq::Completion, ep::rma::RemoteParts},
};

use super::{
    Engine,
    atomic::answers,
    check::is_frame_damaged,
    request::{Served, answer_to},
    side::count,
};
use crate::{
    channel::{
        bytes::SharedBytes,
        copy::{self, CopyError, Direction},
        outbox::{Payload, Sent},
        segment::{BUFFER, Segment},
        wire::{DATA, Frame, Header, Kind, PART, PIECES},
    },
    regions::Target,
};

impl Engine {
    /// A request of a peer for our memory.
    pub(crate) fn serve(
        &mut self,
        own: &Segment,
        from: u32,
        header: &Header,
        payload: SharedBytes<'_>,
    ) {
        if let Err(errno) = self.link(from) {
            tracing::warn!("a request for memory is lost, who made it is gone: {errno}");
            return;
        }
        let frame = Frame::unpack(header.count);
        let served = match frame.buffer {
            None => self.execute(own, from, header, frame, payload),
            Some(buffer) => {
                // Out of `links` for a moment, so that the bytes can be lent.
                let Some(link) = self.links[from as usize].take() else { return };
                let bytes = link.buffer(u32::from(buffer), BUFFER as u64).ok_or(Errno::EPROTO);
                let check = self.slot_check;
                let bytes = match bytes {
                    Ok(bytes) if is_frame_damaged(header, check, bytes) => Err(Errno::ECRC),
                    bytes => bytes,
                };
                let served = bytes.and_then(|bytes| self.execute(own, from, header, frame, bytes));
                link.free_buffer(u32::from(buffer));
                self.links[from as usize] = Some(link);
                served
            }
        };
        let whole = header.flags & PART == 0;
        match served {
            Ok(Served::Done) if !whole => {}
            Ok(Served::Done) => self.answer(own, from, Kind::Done, header.op, 0),
            Ok(Served::Data(target)) => self.answer_data(own, from, header, &target),
            Ok(Served::Results(len)) => {
                let scratch = std::mem::take(&mut self.scratch);
                let answer = answer_to(header, len);
                self.reply_bytes(own, from, answer, &scratch[..len]);
                self.scratch = scratch;
            }
            Ok(Served::Refused) => self.answer(own, from, Kind::Pull, header.op, header.len),
            Err(errno) => {
                tracing::info!("a request for memory is refused: {errno}");
                self.answer(own, from, Kind::Failed, header.op, errno.get() as u64);
            }
        }
    }

    fn execute(
        &mut self,
        own: &Segment,
        from: u32,
        header: &Header,
        frame: Frame,
        bytes: SharedBytes<'_>,
    ) -> Result<Served> {
        let parts = bytes.parts(frame.parts).ok_or(Errno::EPROTO)?;
        let rest = bytes.skip(size_of_val(parts.as_slice()));
        let len = usize::try_from(header.len).map_err(|_| Errno::EPROTO)?;
        if parts.len() != header.len || frame.buffer.is_some() && frame.segments > 0 {
            return Err(Errno::EPROTO);
        }
        let served = match header.kind {
            Kind::Write => self.serve_write(own, from, header, frame, &parts, rest)?,
            Kind::Read => self.serve_read(own, from, (len, frame), &parts, rest)?,
            _ => self.serve_atomic(header, &parts, rest)?,
        };
        if !matches!(served, Served::Refused) && header.flags & PART == 0 {
            self.served(header, &parts, len);
        }
        Ok(served)
    }

    /// Counts a request, and reports its remote CQ data.
    fn served(&mut self, header: &Header, parts: &RemoteParts, len: usize) {
        self.channels.rma.received += 1;
        self.channels.rma.received_bytes += len as u64;
        let write = match header.kind {
            Kind::Write => true,
            Kind::Atomic => !answers(header.bits),
            _ => false,
        };
        let counters = &self.counters;
        let counter = if write { &counters.remote_write } else { &counters.remote_read };
        count(counter.as_ref(), false);
        self.domain.regions.count(parts, write);
        if header.flags & DATA != 0 {
            let completion = Completion {
                flags: flags::RMA | flags::REMOTE_WRITE | flags::REMOTE_CQ_DATA,
                len: usize::try_from(header.bits).unwrap_or(len),
                data: header.data,
                source: flags::ADDR_UNSPEC,
                ..Default::default()
            };
            self.rx.complete(true, completion);
        }
    }

    fn serve_write(
        &mut self,
        own: &Segment,
        from: u32,
        header: &Header,
        frame: Frame,
        parts: &RemoteParts,
        rest: SharedBytes<'_>,
    ) -> Result<Served> {
        let len = parts.len() as usize;
        let target = self.domain.regions.resolve(parts, flags::REMOTE_WRITE, self.address)?;
        if header.flags & PIECES != 0 {
            return Ok(Served::Refused);
        }
        if frame.segments > 0 {
            return self.copy(own, Direction::Read, from, (len, frame), &target, rest);
        }
        if rest.len() < len {
            return Err(Errno::EPROTO);
        }
        for (at, buffer) in target.placed() {
            rest.skip(at).first(buffer.len()).deliver(buffer);
        }
        Ok(Served::Done)
    }

    fn serve_read(
        &mut self,
        own: &Segment,
        from: u32,
        (len, frame): (usize, Frame),
        parts: &RemoteParts,
        rest: SharedBytes<'_>,
    ) -> Result<Served> {
        let target = self.domain.regions.resolve(parts, flags::REMOTE_READ, self.address)?;
        if len <= self.eager_size.min(BUFFER) || frame.segments == 0 {
            return if len <= BUFFER { Ok(Served::Data(target)) } else { Err(Errno::EPROTO) };
        }
        self.copy(own, Direction::Write, from, (len, frame), &target, rest)
    }

    /// Lets the kernel copy between memory of ours and of who asks.
    fn copy(
        &mut self,
        own: &Segment,
        direction: Direction,
        from: u32,
        (len, frame): (usize, Frame),
        target: &Target,
        rest: SharedBytes<'_>,
    ) -> Result<Served> {
        let remote = rest.remote(u32::from(frame.segments), len as u64).ok_or(Errno::EPROTO)?;
        let allowed = self.kernel_copy;
        let link = self.link(from)?;
        if !allowed || link.kernel_refuses {
            return Ok(Served::Refused);
        }
        let Some(_reach) = own.reach(link.segment()) else {
            return Err(Errno::ECONNABORTED);
        };
        let image = link.segment().image();
        for (at, buffer) in target.placed() {
            match copy::between(direction, image, &remote, at, buffer) {
                Ok(()) => {}
                Err(CopyError::Refused) => return Ok(Served::Refused),
                Err(CopyError::Failed(errno)) => return Err(errno),
            }
        }
        Ok(Served::Done)
    }

    fn answer_data(&mut self, own: &Segment, to: u32, header: &Header, target: &Target) {
        let len = header.len as usize;
        let answer = answer_to(header, len);
        let payload = Payload::Frame(&[], target.buffers());
        if self.deferred.is_empty() && self.push(own, to, answer, payload) == Ok(Sent::Yes) {
            return;
        }
        let mut bytes = vec![0; len];
        for (at, buffer) in target.placed() {
            buffer.read_to(&mut bytes[at..]);
        }
        self.deferred.push_back((to, answer, bytes.into()));
    }

    /// Sends bytes, now or when there is room.
    fn reply_bytes(&mut self, own: &Segment, peer: u32, header: Header, bytes: &[u8]) {
        let waits = !self.deferred.is_empty()
            || self
                .push(own, peer, header, Payload::Bytes(bytes))
                .is_ok_and(|sent| sent != Sent::Yes);
        if waits {
            self.deferred.push_back((peer, header, bytes.into()));
        }
    }
}
