// SPDX-License-Identifier: BSD-2-Clause
//! The bytes that have come over one connection, split into handshake messages and frames.
//!
//! ```text
//! message of the handshake   see super::handshake; its length is never 0
//! frame                      0 (2 bytes) | 0 (2) | length of the payload (4) | head (56) | payload |
//!                            tag (16), if frames are sealed
//!
//! buffer   [ handled ....... | frame that the endpoint handles | frames behind it | free ]
//!                            start                                               end
//! ```
//! The endpoint handles one frame at a time, in place. Meanwhile the buffer is neither filled nor
//! moved. A part of a long message that the endpoint expects ([`Landings`]) skips the buffer: it is
//! read from the socket into the memory of the application. Frames with a tag or a checksum do not
//! skip the buffer, because they are verified before anything is written. A *transfer* is a long
//! message that the endpoint receives in parts; the endpoint gives it a number.

use std::{collections::HashMap, io, os::fd::BorrowedFd, sync::Arc};

use ffi::{Buffer, Errno};

use super::{
    frame::{FrameHeader, HEAD, MAX_FRAME, MAX_STAGED},
    handshake::{DecodeError, HandshakeMessage},
    peer_clock::Times,
    secret::{Seal, TAG},
};
use crate::wire::{Flags, Header, Kind};

/// Bytes of a frame before its payload.
pub(super) const FRONT: usize = 8 + HEAD;
/// Length in bytes of the buffer of a connection when the first byte comes.
const SMALLEST: usize = 4096;
/// Maximum length in bytes of the buffer.
const LARGEST: usize = 128 * 1024;
/// Maximum length in bytes of a frame that goes through the buffer, without its tag.
const MOST_BUFFERED: usize = 8 + MAX_STAGED;

/// The memory that parts of long messages are received into, by peer and transfer number.
pub(super) type Landings = HashMap<(u16, u64), Buffer>;

/// The payload of a frame: the buffer of its connection, an offset and a length. `None` if the
/// payload is a part of a long message and is already in the memory of the application.
pub(super) type Payload = Option<(Arc<Vec<u8>>, usize, usize)>;

/// A complete frame.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) head: FrameHeader,
    pub(super) payload: Payload,
}

impl Frame {
    /// Returns the times in the frame; `None` if it is not timed.
    pub(super) fn times(&self) -> Option<Times> {
        let is_timed = Header::read(self.head.words)?.flags.contains(Flags::TIMED);
        let (bytes, at, len) = self.payload.as_ref().filter(|_| is_timed)?;
        let (words, _) = bytes.get(*at..at + len)?.as_chunks::<8>();
        let [smallest, sent, ..] = words else { return None };
        Some([u64::from_ne_bytes(*smallest), u64::from_ne_bytes(*sent)])
    }
}

/// The next handshake message or frame of a connection.
#[derive(Debug)]
pub(super) enum Next {
    Message(HandshakeMessage),
    Frame,
    /// The next message or frame is incomplete, or an earlier frame was not handled yet.
    Nothing,
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// No byte was read: none is available, or the buffer is full or in use.
    Nothing,
    /// All available bytes were read.
    All,
    /// Some bytes were read, or a signal interrupted the read. There may be more bytes.
    More,
}

/// A part of a long message that skips the buffer and is being received.
#[derive(Debug)]
struct Landing {
    key: (u16, u64),
    head: FrameHeader,
    /// Its destination; `None` if the transfer has ended or never began.
    to: Option<Buffer>,
    filled: usize,
    len: usize,
}

/// The received bytes of a connection; see the module.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Arc<Vec<u8>>,
    start: usize,
    end: usize,
    landing: Option<Landing>,
    /// Number of bytes that the frame that is next or in use takes in the buffer; 0 if it skipped
    /// the buffer, `None` if there is no such frame.
    frame: Option<usize>,
    /// Whether the frame is in use, from [`Input::take`] to [`Input::done`].
    is_taken: bool,
    /// Whether [`Input::read`] was called since the last [`Input::shrink`].
    is_used: bool,
    /// The seal of the other end, if messages are sealed.
    seal: Option<Seal>,
}

impl Input {
    /// From now on, messages and frames must have the tags of this seal.
    pub(super) fn expect_sealed(&mut self, seal: Seal) {
        self.seal = Some(seal);
    }

    fn tag_len(&self) -> usize {
        if self.seal.is_some() { TAG } else { 0 }
    }

    /// Returns whether a frame is next or in use.
    pub(super) fn has_frame(&self) -> bool {
        self.frame.is_some()
    }

    /// Reads available bytes, up to the end of the buffer or of a part that skips it.
    ///
    /// # Errors
    /// The error of the socket; `ECONNABORTED` at the end of the stream.
    pub(super) fn read(&mut self, socket: BorrowedFd<'_>) -> Result<Read, Errno> {
        let ended = |count: usize| if count == 0 { Err(Errno::ECONNABORTED) } else { Ok(count) };
        self.is_used = true;
        if let Some(Landing { to: Some(to), filled, len, .. }) = &mut self.landing
            && *filled < *len
        {
            while *filled < *len {
                match to.receive(socket, *filled) {
                    Ok(count) => *filled += ended(count)?,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        return Ok(Read::All);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            return Ok(Read::More);
        }
        let Some(free) = self.free() else { return Ok(Read::Nothing) };
        let room = free.len();
        match rustix::net::recv(socket, free, rustix::net::RecvFlags::DONTWAIT) {
            Ok((count, _)) => {
                self.end += ended(count)?;
                Ok(if count == room { Read::More } else { Read::All })
            }
            Err(rustix::io::Errno::AGAIN) => Ok(Read::Nothing),
            Err(rustix::io::Errno::INTR) => Ok(Read::More),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Returns the free part of the buffer; `None` while a frame in it is in use, or if the buffer
    /// is full. To make room, enlarges the buffer or moves its contents to its start.
    fn free(&mut self) -> Option<&mut [u8]> {
        let needed = self.needed();
        let capacity = self.bytes.len();
        if self.start == self.end && !self.is_taken {
            (self.start, self.end) = (0, 0);
        }
        let len = self.end - self.start;
        // A buffer that was filled to its end is too small.
        let grows = len == capacity || self.end == capacity && capacity < LARGEST / 2;
        let wanted =
            needed.max(if grows { 2 * capacity } else { capacity }).clamp(SMALLEST, LARGEST);
        let bytes = Arc::get_mut(&mut self.bytes)?;
        if wanted > capacity {
            let mut larger = vec![0; wanted];
            larger[..len].copy_from_slice(&bytes[self.start..self.end]);
            *bytes = larger;
            (self.start, self.end) = (0, len);
        } else if self.start > 0 && (self.end == capacity || self.start + needed > capacity) {
            bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, len);
        }
        let free = &mut bytes[self.end..];
        if free.is_empty() { None } else { Some(free) }
    }

    /// Returns the number of bytes that the next message or frame takes, as far as is known.
    fn needed(&self) -> usize {
        let tag = self.tag_len();
        self.payload_len().map_or(FRONT, |len| (FRONT + len).min(MOST_BUFFERED) + tag)
    }

    fn buffered(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Returns the payload length of the next frame; `None` until its front has come, or if a
    /// message of the handshake is next.
    fn payload_len(&self) -> Option<usize> {
        let front = self.buffered().get(..FRONT).filter(|front| front[..2] == [0, 0])?;
        Some(u32::from_ne_bytes([front[4], front[5], front[6], front[7]]) as usize)
    }

    /// Returns the next message, or whether the next frame is complete. `peer` is the number of the
    /// peer, once the peer is known and has proved that it knows the secret.
    ///
    /// # Errors
    /// The bytes are neither a message nor a frame that the peer may send, or a tag is wrong.
    pub(super) fn next(
        &mut self,
        peer: Option<u16>,
        landings: &Landings,
    ) -> Result<Next, DecodeError> {
        if self.frame.is_some() {
            return Ok(Next::Nothing);
        }
        if self.landing.is_some() {
            return Ok(self.go_on_landing());
        }
        if !self.buffered().starts_with(&[0, 0]) {
            let Some((message, len)) = HandshakeMessage::of_bytes(self.buffered())? else {
                return Ok(Next::Nothing);
            };
            return Ok(if self.verify_if_complete(len)? {
                self.start += len + self.tag_len();
                Next::Message(message)
            } else {
                Next::Nothing
            });
        }
        let peer = peer.ok_or(DecodeError::Garbage)?;
        let Some(len) = self.payload_len() else { return Ok(Next::Nothing) };
        if len > MAX_FRAME - HEAD {
            return Err(DecodeError::Garbage);
        }
        let head = self.head();
        if self.seal.is_none()
            && let Some(landing) = landing_of(head, len, peer, landings)?
        {
            self.start += FRONT;
            self.landing = Some(landing);
            return Ok(self.go_on_landing());
        }
        if FRONT + len > MOST_BUFFERED {
            return Err(DecodeError::Garbage);
        }
        if !self.verify_if_complete(FRONT + len)? {
            return Ok(Next::Nothing);
        }
        self.frame = Some(FRONT + len + self.tag_len());
        Ok(Next::Frame)
    }

    /// Returns whether the next message of `len` bytes is complete, including its tag if messages
    /// are sealed.
    ///
    /// # Errors
    /// The tag is wrong.
    fn verify_if_complete(&mut self, len: usize) -> Result<bool, DecodeError> {
        let whole = len + self.tag_len();
        let Some(bytes) = self.bytes[self.start..self.end].get(..whole) else { return Ok(false) };
        let (message, tag) = bytes.split_at(len);
        if self.seal.as_mut().is_some_and(|seal| !seal.verify_next(message, tag)) {
            return Err(DecodeError::Forged);
        }
        Ok(true)
    }

    fn head(&self) -> FrameHeader {
        let mut bytes = [0; HEAD];
        bytes.copy_from_slice(&self.buffered()[8..FRONT]);
        FrameHeader::of_bytes(&bytes)
    }

    /// Moves buffered bytes of a part that skips the buffer to their destination. Returns a frame
    /// once the part is complete.
    fn go_on_landing(&mut self) -> Next {
        let Self { bytes, start, end, landing, frame, .. } = self;
        let Some(landing) = landing else { return Next::Nothing };
        let count = (landing.len - landing.filled).min(*end - *start);
        if count > 0 {
            let part = &bytes[*start..*start + count];
            if let Some(to) = &landing.to {
                let _ = to.part(landing.filled, count).fill(part);
            }
            landing.filled += count;
            *start += count;
        }
        if landing.filled < landing.len {
            return Next::Nothing;
        }
        *frame = Some(0);
        Next::Frame
    }

    /// Takes the next frame, if one is complete. It is in use until [`Input::done`].
    pub(super) fn take(&mut self) -> Option<Frame> {
        let len = self.frame?;
        self.is_taken = true;
        Some(match &self.landing {
            Some(landing) => {
                // A part without a destination gets an empty payload, so that it is not counted as
                // received.
                let is_lost = landing.to.is_none();
                Frame { head: landing.head, payload: is_lost.then(|| (Arc::default(), 0, 0)) }
            }
            None => {
                let at = self.start + FRONT;
                let payload = (Arc::clone(&self.bytes), at, len - FRONT - self.tag_len());
                Frame { head: self.head(), payload: Some(payload) }
            }
        })
    }

    /// Notes that the frame was handled.
    pub(super) fn done(&mut self) {
        // The connection of the handled frame may have ended, and this may be another one that got
        // its number. The frame of this connection was not taken then.
        if !self.is_taken {
            return;
        }
        self.start += self.frame.take().unwrap_or(0);
        self.landing = None;
        self.is_taken = false;
    }

    /// Stops writing into the memory of a transfer. The rest of the part that is being received is
    /// discarded.
    pub(super) fn give_up(&mut self, key: (u16, u64)) {
        if let Some(landing) = self.landing.as_mut().filter(|landing| landing.key == key) {
            landing.to = None;
        }
    }

    /// Frees the buffer if it is empty and was not used since the last call.
    pub(super) fn shrink(&mut self) {
        let is_idle = !std::mem::take(&mut self.is_used);
        if is_idle && self.start == self.end && self.frame.is_none() && !self.bytes.is_empty() {
            (self.bytes, self.start, self.end) = (Arc::default(), 0, 0);
        }
    }
}

/// Returns the landing of a frame that skips the buffer: a part of a long message that the endpoint
/// expects, or one that is too long for the buffer and is discarded. Returns `None` for any other
/// frame.
///
/// # Errors
/// The part does not lie within the memory of its transfer, or its header has another length.
fn landing_of(
    head: FrameHeader,
    len: usize,
    peer: u16,
    landings: &Landings,
) -> Result<Option<Landing>, DecodeError> {
    let header = Header::read(head.words);
    let part = header.filter(|header| header.kind == Kind::Chunk && len > 0);
    let Some(header) = part.filter(|header| !header.flags.contains(Flags::CHECKED)) else {
        return Ok(None);
    };
    let key = (peer, header.op);
    let Some(all) = landings.get(&key) else {
        let goes_nowhere = FRONT + len > MOST_BUFFERED;
        let landing = Landing { key, head, to: None, filled: 0, len };
        return Ok(goes_nowhere.then_some(landing));
    };
    let offset = usize::try_from(header.data).map_err(|_| DecodeError::Garbage)?;
    let to = all.part(offset, len);
    if to.len() != len || header.len != len as u64 {
        return Err(DecodeError::Garbage);
    }
    Ok(Some(Landing { key, head, to: Some(to), filled: 0, len }))
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        os::{fd::AsFd as _, unix::net::UnixStream},
    };

    use ffi::memory::RegionMemory;
    use proptest::prelude::*;

    use super::*;
    use crate::net::{
        connections::front_of,
        secret::{HandshakeRole, Secret, Session},
    };

    const PEER: u16 = 3;
    const TRANSFER: u64 = 9;
    const MEMORY: usize = 600_000;

    fn frame(kind: Kind, offset: usize, payload: &[u8]) -> Vec<u8> {
        let len = payload.len() as u64;
        let header = Header {
            kind,
            flags: Flags::empty(),
            peer: 0,
            count: 0,
            bits: 0,
            data: offset as u64,
            len,
            op: TRANSFER,
        };
        let head = FrameHeader { token: 1, sum: 2, check: 3, words: header.words() };
        [&front_of(payload.len())[..], &head.to_bytes(), payload].concat()
    }

    fn landings() -> (Landings, Buffer) {
        let memory = RegionMemory::from(&mut *vec![0; MEMORY].leak()).part(0, MEMORY).unwrap();
        (Landings::from([((PEER, TRANSFER), memory.clone())]), memory)
    }

    /// Reads bytes that arrive in pieces. Returns the payloads of frames, with `None` for each part
    /// that skipped the buffer.
    fn read_all(
        mut input: Input,
        bytes: &[u8],
        piece: usize,
        landings: &Landings,
    ) -> Vec<Option<Vec<u8>>> {
        let (here, mut there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let mut came = Vec::new();
        for piece in bytes.chunks(piece.max(1)) {
            there.write_all(piece).unwrap();
            loop {
                let read = input.read(here.as_fd()).unwrap();
                loop {
                    match input.next(Some(PEER), landings) {
                        Ok(Next::Frame) => {}
                        Ok(Next::Message(_)) => continue,
                        Ok(Next::Nothing) => break,
                        Err(_) => return came,
                    }
                    let frame = input.take().unwrap();
                    let payload = frame.payload.as_ref();
                    came.push(payload.map(|(bytes, at, len)| bytes[*at..at + len].to_vec()));
                    drop(frame);
                    input.done();
                }
                if read == Read::Nothing || read == Read::All {
                    break;
                }
            }
            input.shrink();
        }
        came
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..Default::default() })]

        #[test]
        fn frames_come_whole_and_in_order(
            lens in prop::collection::vec(prop_oneof![0_usize..300, 0..=MOST_BUFFERED - FRONT], 1..12),
            piece in prop_oneof![1_usize..200, 1_usize..100_000],
            is_sealed in any::<bool>(),
        ) {
            let seal = Session::new(&Secret::of_job("key"), &[1; 16], &[2; 16]).seal(HandshakeRole::Dialer);
            let (mut from, mut input) = (seal.clone(), Input::default());
            if is_sealed {
                input.expect_sealed(seal);
            }
            let (landings, memory) = landings();
            let (mut bytes, mut expected, mut landed) = (Vec::new(), Vec::new(), Vec::<u8>::new());
            for (number, &len) in lens.iter().enumerate() {
                let payload: Vec<u8> = (0..len).map(|at| (at * 7 + number) as u8).collect();
                let lands = number % 2 == 1 && len > 0 && landed.len() + len <= MEMORY;
                let frame = if lands {
                    frame(Kind::Chunk, landed.len(), &payload)
                } else {
                    frame(Kind::Inline, 0, &payload)
                };
                bytes.extend(if is_sealed { from.sealed(&frame, &[]) } else { frame });
                from.count_frame();
                let lands = lands && !is_sealed;
                if lands {
                    landed.extend(&payload);
                }
                expected.push((!lands).then_some(payload));
            }
            let small = if bytes.len() > 100_000 { piece.max(1000) } else { piece };
            prop_assert_eq!(read_all(input, &bytes, small, &landings), expected);
            let mut there = vec![0; landed.len()];
            memory.read_to(&mut there);
            prop_assert!(there == landed, "other bytes have landed");
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(
            mut bytes in prop::collection::vec(any::<u8>(), 0..2000),
            flips in prop::collection::vec((0_usize..400, any::<u8>()), 0..8),
            begins_as_frame in any::<bool>(),
        ) {
            if begins_as_frame {
                let mut good = frame(Kind::Chunk, 70, &[1; 200]);
                for (at, byte) in flips {
                    let len = good.len();
                    good[at % len] ^= byte;
                }
                good.append(&mut bytes);
                bytes = good;
            }
            read_all(Input::default(), &bytes, 100, &landings().0);
        }
    }

    #[test]
    fn a_transfer_that_was_given_up_is_not_written() {
        let (mut landings, memory) = landings();
        let (here, mut there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let mut input = Input::default();
        let bytes = frame(Kind::Chunk, 0, &[7; 1000]);
        there.write_all(&bytes[..500]).unwrap();
        input.read(here.as_fd()).unwrap();
        assert!(matches!(input.next(Some(PEER), &landings), Ok(Next::Nothing)));
        landings.clear();
        input.give_up((PEER, TRANSFER));
        there.write_all(&bytes[500..]).unwrap();
        input.read(here.as_fd()).unwrap();
        assert!(matches!(input.next(Some(PEER), &landings), Ok(Next::Frame)));
        let mut written = vec![0; 1000];
        memory.read_to(&mut written);
        assert_eq!(written.iter().filter(|&&byte| byte == 7).count(), 500 - FRONT);
        // The rest is not counted as received.
        assert!(input.take().unwrap().payload.is_some_and(|(.., len)| len == 0));
        input.done();
        there.write_all(&bytes).unwrap();
        input.read(here.as_fd()).unwrap();
        // Frames of a peer that has proved nothing are refused.
        assert!(matches!(input.next(None, &landings), Err(DecodeError::Garbage)));
    }
}
