// SPDX-License-Identifier: BSD-2-Clause
//! A peer on the network as an endpoint sees it.

use std::sync::{Arc, atomic::AtomicU32};

use ffi::{Buffer, ops::ep::rma::RemotePart};

use super::{
    connections::front_of,
    contacts::Contacts,
    end::{Net, State},
    frame::{self, HEAD, Head},
    input::FRONT,
};
use crate::{
    bytes::SharedBytes,
    contract::{Payload, Sent, Settings},
    identity::Identity,
    shm::segment::Liveness,
    wire::{self, Flags, Header, Kind},
};

/// Bytes behind the head of a frame that go with it in one piece: what a request says of the peer's
/// memory, or a short message.
const SHORTEST: usize = 192;
/// Bytes of a frame that may be injected.
const SHORT: usize = 256;

/// Of so many frames one tells when it has gone: providers take injected messages without end, for a
/// peer that reads none.
const TOLD: u64 = 16;

/// A peer that can be sent to.
#[derive(Debug)]
pub struct Link {
    net: Arc<Net>,
    number: u16,
    who: Identity,
    check: u32,
    checks: bool,
}

impl Link {
    pub(crate) fn new(net: &Arc<Net>, number: u16, who: Identity, settings: Settings) -> Self {
        if let Some(contact) = net.state.lock().contacts.get_mut(number) {
            contact.is_linked = true;
        }
        Self { net: Arc::clone(net), number, who, check: 0, checks: settings.checks }
    }

    pub(crate) fn identity(&self) -> Identity {
        self.who
    }

    pub(crate) fn is_open(&self) -> bool {
        if !self.net.is_ours() {
            return false;
        }
        let state = self.net.state.lock();
        let contact = state.contacts.get(self.number.into());
        contact.is_some_and(|contact| contact.who == Some(self.who) && contact.is_open())
    }

    pub(crate) fn liveness(&self) -> Liveness {
        self.net.liveness(self.number, self.who)
    }

    /// Whether another slot may go.
    pub(crate) fn has_room(&self) -> bool {
        let State { contacts, traffic } = &*self.net.state.lock();
        match traffic {
            None => contacts.has_room(self.number),
            Some(traffic) => traffic.has_room(contacts.get(self.number.into())),
        }
    }

    pub(crate) fn set_check(&mut self, check: u32) {
        self.check = check;
    }

    pub(crate) fn body<'a>(
        header: &Header,
        payload: SharedBytes<'a>,
    ) -> Option<(SharedBytes<'a>, Option<&'a AtomicU32>)> {
        frame::is_whole(header, payload.len()).then_some((payload, None))
    }

    /// Longest part of a long message that lies in one piece, or is `scattered`, and longest last one.
    pub(crate) fn part_lens(&self, scattered: bool) -> (usize, usize) {
        match &self.net.state.lock().traffic {
            // A part with a checksum goes through the receiver's buffer.
            None if self.checks => (wire::LONGEST, wire::LONGEST),
            None => (frame::PART, frame::PART),
            Some(traffic) if traffic.below.lends_memory() && !scattered => {
                (frame::PART, wire::LONGEST)
            }
            Some(_) => (wire::LONGEST, wire::LONGEST),
        }
    }

    /// Has parts of a message that belong to a transfer written where they go, as long as the result
    /// lives; none if they are to be copied.
    pub(crate) fn expect(&self, transfer: u64, to: &Buffer) -> Option<Landing> {
        let State { contacts, traffic: None } = &mut *self.net.state.lock() else { return None };
        let key = (self.number, transfer);
        contacts.connections.landings.insert(key, to.clone());
        Some(Landing { net: Arc::clone(&self.net), key })
    }

    pub(crate) fn send(&mut self, mut header: Header, payload: Payload<'_>) -> Sent {
        if !self.net.is_ours() {
            return Sent::NoRoom;
        }
        let State { contacts, traffic } = &mut *self.net.state.lock();
        let Some(contact) = contacts.get_mut(self.number) else { return Sent::Yes };
        if contact.who != Some(self.who) || contact.is_gone() {
            // Nobody reads what those are sent who are gone.
            return Sent::Yes;
        }
        // A send that were taken now would be said to have been sent. It fails once the peer is dead.
        if contact.is_lost() {
            return Sent::NoRoom;
        }
        if let Some(traffic) = traffic {
            let is_last = header.kind == Kind::Chunk && !frame::is_part(&header);
            if is_last && contact.lent > 0 && traffic.is_lent(self.number, header.op) {
                return Sent::NoRoom;
            }
        }
        let sent = contact.sent;
        header.peer = contact.number.into();
        if self.checks {
            header.flags |= Flags::CHECKED;
        }
        let content = Content::of(&mut header, payload);
        let words = header.words();
        let before = sent as u32;
        let mut head = Head { token: contact.token, sum: 0, check: self.check, before, words };
        let Some(traffic) = traffic else {
            if self.checks {
                let mut bytes = vec![0; content.len()];
                content.write(&mut bytes);
                head.sum = Head::sum_of(&words, &bytes);
            }
            let has_gone = content.send(contacts, self.number, head);
            if has_gone {
                self.check = 0;
            }
            return Sent::if_room(has_gone);
        };
        let behind = content.lends(&header, traffic.below.lends_memory());
        let has_gone = if let Some(behind) = behind {
            if self.checks {
                let mut bytes = vec![0; behind.len()];
                behind.read_to(&mut bytes);
                head.sum = Head::sum_of(&words, &bytes);
            }
            let fill = |to: &mut [u8]| {
                to[..HEAD].copy_from_slice(&head.to_bytes());
                HEAD
            };
            traffic.send(contacts, self.number, fill, Some((behind, header.op)))
        } else {
            let checks = self.checks;
            let mut fill = |to: &mut [u8]| {
                let (first, rest) = to.split_at_mut(HEAD);
                let len = content.write(rest);
                if checks {
                    head.sum = Head::sum_of(&words, &rest[..len]);
                }
                first.copy_from_slice(&head.to_bytes());
                HEAD + len
            };
            let len = HEAD + content.len();
            let is_short = len <= traffic.below.inject_size().min(SHORT);
            if is_short && !sent.is_multiple_of(TOLD) {
                let mut bytes = [0; SHORT];
                let len = fill(&mut bytes);
                traffic.inject(contacts, self.number, &bytes[..len])
            } else {
                traffic.send(contacts, self.number, fill, None)
            }
        };
        if has_gone {
            self.check = 0;
        }
        Sent::if_room(has_gone)
    }
}

/// Memory of the application that parts of a message are written into. Once it is dropped, none is.
#[derive(Debug)]
pub struct Landing {
    net: Arc<Net>,
    key: (u16, u64),
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.net.state.lock().contacts.connections.give_up(self.key);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.net.state.lock().contacts.unlink(self.number, self.who);
    }
}

/// What goes behind a header.
enum Content<'a> {
    /// Parts of the peer's memory, and data.
    Parts(&'a [RemotePart], &'a [Buffer]),
    Bytes(&'a [u8]),
    /// How long a message is that stays where it is: its receiver asks for it.
    Length(u64),
}

impl<'a> Content<'a> {
    /// What a payload is, and what its header says of it.
    fn of(header: &mut Header, payload: Payload<'a>) -> Self {
        match payload {
            Payload::Nothing => Self::Bytes(&[]),
            Payload::Message(message) | Payload::IfQuick(message) => {
                header.kind = Kind::Inline;
                Self::Parts(&[], std::slice::from_ref(message))
            }
            Payload::Part(part) => Self::Parts(&[], std::slice::from_ref(part)),
            Payload::Frame(parts, data) => {
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
            // Memory here is nothing that the peer can get at.
            Payload::Segments(parts, _) => {
                header.count =
                    wire::Frame { parts: parts.len() as u8, ..Default::default() }.pack();
                Self::Parts(parts, &[])
            }
        }
    }

    /// The buffer that is sent from where it is, if it is.
    fn lends(&self, header: &Header, can: bool) -> Option<&'a Buffer> {
        match self {
            Self::Parts([], [part]) if can && frame::is_part(header) && !part.is_scattered() => {
                Some(part)
            }
            _ => None,
        }
    }

    /// Sends it over the connection of a peer, data from where it is. False if there is no room.
    fn send(&self, contacts: &mut Contacts, number: u16, head: Head) -> bool {
        let data: &[Buffer] = if let Self::Parts(_, data) = self { data } else { &[] };
        let words = Self::Parts(if let Self::Parts(parts, _) = self { parts } else { &[] }, &[]);
        let before = if let Self::Parts(..) = self { &words } else { self };
        // A head, and what a request says of the peer's memory.
        let mut short = [0; FRONT + SHORTEST];
        let mut long = Vec::new();
        let len = FRONT + before.len();
        let front = if len <= short.len() {
            &mut short[..len]
        } else {
            long.resize(len, 0);
            &mut long[..]
        };
        front[..FRONT - HEAD].copy_from_slice(&front_of(self.len()));
        front[FRONT - HEAD..FRONT].copy_from_slice(&head.to_bytes());
        before.write(&mut front[FRONT..]);
        if let [one] = data
            && len + one.len() <= short.len()
        {
            // One piece goes quicker than two.
            one.read_to(&mut short[len..]);
            return contacts.send(number, &short[..len + one.len()], &[]);
        }
        contacts.send(number, if long.is_empty() { &short[..len] } else { &long }, data)
    }

    fn len(&self) -> usize {
        match self {
            Self::Parts(parts, data) => {
                size_of_val(*parts) + data.iter().map(Buffer::len).sum::<usize>()
            }
            Self::Bytes(bytes) => bytes.len(),
            Self::Length(_) => size_of::<crate::bytes::Remote>(),
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
                // As a list of segments, of which one has a length and none is anywhere.
                let mut remote = [0_u64; size_of::<crate::bytes::Remote>() / 8];
                remote[1] = *len;
                remote.iter().for_each(|word| put(&word.to_ne_bytes()));
            }
        }
        at
    }
}
