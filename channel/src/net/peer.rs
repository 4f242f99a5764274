// SPDX-License-Identifier: BSD-2-Clause
//! A peer on the network: its state, and sending frames to it.

use std::sync::Arc;

use ffi::{Buffer, ops::ep::rma::RemotePart};
use host::clock;

use super::{
    Net,
    connections::front_of,
    frame::{self, FrameHeader, HEAD, TIMES},
    input::FRONT,
    peer_clock::Times,
    peer_table::PeerTable,
};
use crate::{
    bytes::{Remote, SharedBytes},
    contract::{Body, Liveness, Payload, Sent, Settings},
    identity::Identity,
    wire::{self, Flags, Header, Kind},
};

/// Maximum number of payload bytes that are copied behind the head without new memory: the remote
/// parts of a request, and short data.
const MAX_COPIED: usize = 192;

/// A peer on the network.
#[derive(Debug)]
pub struct NetPeer {
    net: Arc<Net>,
    number: u16,
    who: Identity,
    check: u32,
    checks: bool,
    /// Whether a message to this peer waits for room.
    pub(crate) has_waiting: bool,
}

impl NetPeer {
    pub(crate) fn new(net: &Arc<Net>, number: u16, who: Identity, settings: Settings) -> Self {
        if let Some(peer) = net.peers.lock().get_mut(number) {
            peer.is_held = true;
        }
        Self {
            net: Arc::clone(net),
            number,
            who,
            check: 0,
            checks: settings.checks,
            has_waiting: false,
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        self.who
    }

    pub(crate) fn is_open(&self) -> bool {
        if !self.net.is_ours() {
            return false;
        }
        let peers = self.net.peers.lock();
        let peer = peers.get(self.number.into());
        peer.is_some_and(|peer| peer.who == Some(self.who) && peer.is_open())
    }

    /// Returns whether the peer is alive, closed or dead. A peer that was removed from the table or
    /// cannot be reached is dead. In a forked child, every peer is dead.
    pub(crate) fn liveness(&self) -> Liveness {
        self.net.liveness(self.number, self.who)
    }

    /// Returns whether the connection to the peer has room for another slot.
    pub(crate) fn has_room(&self) -> bool {
        self.net.peers.lock().has_room(self.number)
    }

    pub(crate) fn set_check(&mut self, check: u32) {
        self.check = check;
    }

    pub(crate) fn body<'a>(header: &Header, payload: SharedBytes<'a>) -> Option<Body<'a>> {
        let is_whole = frame::is_whole(header, payload.len());
        is_whole.then_some(Body { bytes: payload, buffer_state: None })
    }

    /// Returns the maximum length in bytes of a part of a long message.
    pub(crate) fn part_len(&self) -> usize {
        // A part with a checksum or a seal goes through the receiver's buffer.
        if self.checks || self.net.seals { wire::LONGEST } else { frame::PART }
    }

    /// Makes the connection write the parts of a message directly to `to`, until the result is
    /// dropped. `transfer` is the number under which this endpoint receives the parts.
    pub(crate) fn expect(&self, transfer: u64, to: &Buffer) -> Landing {
        let key = (self.number, transfer);
        self.net.peers.lock().connections.landings.insert(key, to.clone());
        Landing { net: Arc::clone(&self.net), key }
    }

    pub(crate) fn send(&mut self, mut header: Header, payload: Payload<'_>) -> Sent {
        if !self.net.is_ours() {
            return Sent::NoRoom;
        }
        let mut peers = self.net.peers.lock();
        let peer = peers.get(self.number.into()).filter(|it| it.who == Some(self.who));
        let Some(peer) = peer else { return Sent::Yes };
        match peer.liveness() {
            Liveness::Alive => {}
            // A closed peer reads nothing more, so the slot is dropped.
            Liveness::Closed => return Sent::Yes,
            // The operation must not complete. It fails when the engine removes the dead peer.
            _ => return Sent::NoRoom,
        }
        header.peer = peer.number_there.into();
        if self.checks {
            header.flags |= Flags::CHECKED;
        }
        let content = Content::of(&mut header, payload);
        // Parts of long messages have no times, so that they can skip the receiver's buffer.
        let clock = peer.clock.filter(|_| header.kind != Kind::Chunk);
        header.flags.set(Flags::TIMED, clock.is_some());
        let words = header.words();
        let mut head = FrameHeader { token: peer.token_there, sum: 0, check: self.check, words };
        let times = clock.map(|clock| clock.times(clock::now()));
        if self.checks {
            let mut bytes = vec![0; len_of(times) + content.len()];
            let at = write_times(times, &mut bytes);
            content.write(&mut bytes[at..]);
            head.sum = FrameHeader::sum_of(&words, &bytes);
        }
        if !content.send(&mut peers, self.number, head, times) {
            return Sent::NoRoom;
        }
        self.check = 0;
        Sent::Yes
    }
}

/// A registration of memory into which parts of a message are written, until this value is dropped.
#[derive(Debug)]
pub struct Landing {
    net: Arc<Net>,
    key: (u16, u64),
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.net.peers.lock().connections.give_up(self.key);
    }
}

impl Drop for NetPeer {
    fn drop(&mut self) {
        self.net.peers.lock().release(self.number, self.who);
    }
}

/// The payload of a frame that is to be sent.
enum Content<'a> {
    /// Parts of the peer's memory, and data.
    Parts(&'a [RemotePart], &'a [Buffer]),
    Bytes(&'a [u8]),
    /// The length of a rendezvous message, whose bytes the receiver requests later.
    Length(u64),
}

impl<'a> Content<'a> {
    /// Creates the content of a frame with this payload. Completes its header.
    fn of(header: &mut Header, payload: Payload<'a>) -> Self {
        match payload {
            Payload::Nothing => Self::Bytes(&[]),
            Payload::Message(message) | Payload::IfQuick(message) => {
                header.kind = Kind::Inline;
                Self::Parts(&[], std::slice::from_ref(message))
            }
            Payload::Part(part) => Self::Parts(&[], std::slice::from_ref(part)),
            Payload::PartsAndData(parts, data) => {
                header.count =
                    wire::Frame { parts: parts.len() as u8, ..Default::default() }.pack();
                Self::Parts(parts, data)
            }
            Payload::Bytes(bytes) => {
                header.count = 0;
                Self::Bytes(bytes)
            }
            Payload::Where(message) => {
                header.kind = Kind::Rendezvous;
                header.count = 1;
                Self::Length(message.len() as u64)
            }
            // The peer cannot access local memory.
            Payload::Segments(parts, _) => {
                header.count =
                    wire::Frame { parts: parts.len() as u8, ..Default::default() }.pack();
                Self::Parts(parts, &[])
            }
        }
    }

    /// Sends the frame over the connection of a peer. A single buffer of the application is copied
    /// behind the head if the whole payload has at most [`MAX_COPIED`] bytes; other buffers are not
    /// copied here. Returns false if the frame was not sent; see [`PeerTable::send`].
    fn send(
        &self,
        peers: &mut PeerTable,
        number: u16,
        head: FrameHeader,
        times: Option<Times>,
    ) -> bool {
        let data: &[Buffer] = if let Self::Parts(_, data) = self { data } else { &[] };
        let words = Self::Parts(if let Self::Parts(parts, _) = self { parts } else { &[] }, &[]);
        let before = if let Self::Parts(..) = self { &words } else { self };
        // The head, the times, and the payload without the buffers of the application.
        let mut short = [0; FRONT + MAX_COPIED];
        let mut long = Vec::new();
        let len = FRONT + len_of(times) + before.len();
        let front = if len <= short.len() {
            &mut short[..len]
        } else {
            long.resize(len, 0);
            &mut long[..]
        };
        front[..FRONT - HEAD].copy_from_slice(&front_of(len_of(times) + self.len()));
        front[FRONT - HEAD..FRONT].copy_from_slice(&head.to_bytes());
        let at = FRONT + write_times(times, &mut front[FRONT..]);
        before.write(&mut front[at..]);
        if let [one] = data
            && len + one.len() <= short.len()
        {
            // One piece is faster than two.
            one.read_to(&mut short[len..]);
            return peers.send(number, &short[..len + one.len()], &[]);
        }
        peers.send(number, if long.is_empty() { &short[..len] } else { &long }, data)
    }

    fn len(&self) -> usize {
        match self {
            Self::Parts(parts, data) => {
                size_of_val(*parts) + data.iter().map(Buffer::len).sum::<usize>()
            }
            Self::Bytes(bytes) => bytes.len(),
            Self::Length(_) => size_of::<Remote>(),
        }
    }

    fn write(&self, to: &mut [u8]) -> usize {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            to[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        match self {
            Self::Parts(parts, data) => {
                let words = parts.iter().flat_map(|part| [part.addr, part.len, part.key]);
                words.for_each(|word| put(&word.to_ne_bytes()));
                for buffer in *data {
                    at += buffer.read_to(&mut to[at..]);
                }
            }
            Self::Bytes(bytes) => put(bytes),
            Self::Length(len) => {
                // In the format of a list of segments: the first has a length, and no segment has
                // an address.
                let mut remote = [0_u64; size_of::<Remote>() / 8];
                remote[1] = *len;
                remote.iter().for_each(|word| put(&word.to_ne_bytes()));
            }
        }
        at
    }
}

/// Returns the number of bytes of the times in a frame.
fn len_of(times: Option<Times>) -> usize {
    times.map_or(0, |_| TIMES)
}

/// Writes the times of a frame to the start of `to`. Returns their number of bytes.
fn write_times(times: Option<Times>, to: &mut [u8]) -> usize {
    let words = times.iter().flatten();
    to.chunks_exact_mut(8)
        .zip(words)
        .for_each(|(to, word)| to.copy_from_slice(&word.to_ne_bytes()));
    len_of(times)
}
