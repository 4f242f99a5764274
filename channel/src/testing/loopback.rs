// SPDX-License-Identifier: BSD-2-Clause
//! A transport within one process, for tests. It keeps the guarantees of shared memory, has few
//! slots, and injects faults.
//!
//! ```text
//! Loopback       ends by port
//! LoopbackEnd    arrived parcels, up to PLACES | senders | state | faults to inject
//! LoopbackPeer   puts a parcel, header and payload, into the end of the peer
//! ```
//!
//! As in a frame of the network, the payload is in the parcel, and never in a buffer of the sender.
//! An end that dies sends nothing more. Messages that it sent before arrive.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use ffi::{Buffer, Errno, ops::ep::rma::RemotePart};
use host::{
    live::{CLOSED, DEAD, OPEN},
    owner::Look,
};
use parking_lot::Mutex;

use crate::{
    bytes::{Remote, SharedBytes},
    contract::{Arrivals, Body, CopyError, Direction, Liveness, Payload, Received, Sent, Settings},
    identity::{ExecId, Identity},
    shm::cma,
    wire::{Flags, Frame, Header, Kind},
};

/// Maximum number of parcels that wait at an end.
pub const PLACES: usize = 16;

/// A point at which a fault can be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The end opens a peer.
    Open,
    /// The end sends a slot of this kind.
    Send(Kind),
    /// The end copies from a peer's memory or to it.
    Copy,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The send returns [`Sent::NoRoom`].
    Full,
    /// The send returns [`Sent::NoBuffer`].
    NoBuffer,
    /// The copy is refused, so that no memory is copied from then on.
    Refuse,
    /// The copy fails, or the peer cannot be opened.
    Fail(Errno),
    /// A byte of the payload changes, or a word of the header if there is no payload.
    Damage,
    /// The end dies before this phase. In [`Phase::Copy`], it also dies if a peer copies from its
    /// memory or to it.
    Die,
}

/// All ends, by port.
#[derive(Debug, Default)]
pub struct Loopback(Mutex<HashMap<u16, Arc<LoopbackEnd>>>);

/// One slot and its payload.
#[derive(Debug)]
struct Parcel {
    words: [u64; 5],
    payload: Box<[u8]>,
    /// Checksum of the payload, from the sender.
    check: u32,
    /// Checksum of the words and the payload.
    sum: u32,
}

fn sum(words: &[u64; 5], payload: &[u8]) -> u32 {
    words
        .iter()
        .fold(crc32c::crc32c(payload), |sum, word| crc32c::crc32c_append(sum, &word.to_ne_bytes()))
}

/// An endpoint on the loopback.
#[derive(Debug)]
pub struct LoopbackEnd {
    net: Arc<Loopback>,
    identity: Identity,
    state: AtomicU32,
    arrived: Mutex<VecDeque<Parcel>>,
    /// Number of parcels that ever arrived.
    count: AtomicU64,
    senders: Mutex<Vec<Option<Identity>>>,
    faults: Mutex<Vec<(Phase, u32, Fault)>>,
    /// Phases that the end has gone through since the last call of [`Self::phases`].
    phases: Mutex<Vec<Phase>>,
}

impl Loopback {
    /// Creates an end and registers its port.
    pub fn end(self: &Arc<Self>, identity: Identity) -> Arc<LoopbackEnd> {
        let end = Arc::new(LoopbackEnd {
            net: Arc::clone(self),
            identity,
            state: AtomicU32::new(OPEN),
            arrived: Mutex::default(),
            count: AtomicU64::new(0),
            senders: Mutex::default(),
            faults: Mutex::default(),
            phases: Mutex::default(),
        });
        self.0.lock().insert(identity.port(), Arc::clone(&end));
        end
    }
}

impl LoopbackEnd {
    /// Injects a fault once, after the end has gone through the phase `after` times.
    pub fn inject(&self, phase: Phase, after: u32, fault: Fault) {
        self.faults.lock().push((phase, after, fault));
    }

    /// Returns whether all injected faults have happened.
    pub fn has_failed(&self) -> bool {
        self.faults.lock().is_empty()
    }

    /// Returns the phases that the end has gone through since the last call.
    pub fn phases(&self) -> Vec<Phase> {
        std::mem::take(&mut self.phases.lock())
    }

    /// Makes the end die, as if its process had died.
    pub fn die(&self) {
        self.leave(DEAD);
    }

    /// Closes the end.
    pub fn close(&self) {
        self.leave(CLOSED);
    }

    fn leave(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        let mut ends = self.net.0.lock();
        if ends.get(&self.identity.port()).is_some_and(|end| end.identity == self.identity) {
            ends.remove(&self.identity.port());
        }
    }

    fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) == OPEN
    }

    /// Returns whether the end has died.
    pub fn is_dead(&self) -> bool {
        self.state.load(Ordering::Acquire) == DEAD
    }

    /// Notes a phase. Returns the fault that happens in it, if there is one.
    fn fault(&self, phase: Phase) -> Option<Fault> {
        self.phases.lock().push(phase);
        self.fault_that(phase, |_| true)
    }

    fn fault_that(&self, phase: Phase, may_be: impl Fn(Fault) -> bool) -> Option<Fault> {
        let mut faults = self.faults.lock();
        let due = faults.iter_mut().position(|(at, after, fault)| {
            *at == phase && may_be(*fault) && {
                let is_due = *after == 0;
                *after = after.saturating_sub(1);
                is_due
            }
        })?;
        let (.., fault) = faults.remove(due);
        drop(faults);
        if fault == Fault::Die {
            self.die();
        }
        Some(fault)
    }

    pub(crate) fn has_end(&self, port: u16) -> bool {
        self.net.0.lock().contains_key(&port)
    }

    pub(crate) fn open(
        self: &Arc<Self>,
        port: u16,
        settings: Settings,
    ) -> Result<LoopbackPeer, Errno> {
        if let Some(Fault::Fail(errno)) = self.fault(Phase::Open) {
            return Err(errno);
        }
        let peer = self.net.0.lock().get(&port).cloned().ok_or(Errno::ECONNREFUSED)?;
        let number = peer.enter(self.identity);
        let Settings { checks, copies } = settings;
        Ok(LoopbackPeer {
            own: Arc::clone(self),
            peer,
            number,
            check: 0,
            checks,
            copies,
            pieces: !copies,
        })
    }

    pub(crate) fn open_only(
        self: &Arc<Self>,
        who: Identity,
        settings: Settings,
    ) -> Result<LoopbackPeer, Errno> {
        let peer = self.open(who.port(), settings)?;
        if peer.identity() == who { Ok(peer) } else { Err(Errno::ECONNREFUSED) }
    }

    fn enter(&self, who: Identity) -> u16 {
        let mut senders = self.senders.lock();
        let free = senders.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            senders.push(None);
            senders.len() - 1
        });
        senders[number] = Some(who);
        number as u16
    }

    pub(crate) fn sender(&self, number: u16) -> Option<Identity> {
        self.senders.lock().get(usize::from(number)).copied().flatten()
    }

    pub(crate) fn strike(&self, number: u16, who: Identity) {
        let mut senders = self.senders.lock();
        let entry = senders.get_mut(usize::from(number)).filter(|entry| **entry == Some(who));
        if let Some(entry) = entry {
            *entry = None;
        }
    }
}

/// A peer on the loopback.
#[derive(Debug)]
pub struct LoopbackPeer {
    own: Arc<LoopbackEnd>,
    peer: Arc<LoopbackEnd>,
    number: u16,
    check: u32,
    checks: bool,
    copies: bool,
    pieces: bool,
}

impl LoopbackPeer {
    pub(crate) fn identity(&self) -> Identity {
        self.peer.identity
    }

    pub(crate) fn is_open(&self) -> bool {
        self.peer.is_open()
    }

    pub(crate) fn liveness(&self, _: Look) -> Liveness {
        match self.peer.state.load(Ordering::Acquire) {
            CLOSED => Liveness::Closed,
            DEAD => Liveness::Dead,
            _ => Liveness::Alive,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.peer.arrived.lock().len() < PLACES
    }

    pub(crate) fn set_check(&mut self, check: u32) {
        self.check = check;
    }

    pub(crate) fn body<'a>(&self, header: &Header, payload: SharedBytes<'a>) -> Option<Body<'a>> {
        let is_whole = !matches!(header.kind, Kind::Chunk | Kind::Answer | Kind::Inline)
            || header.len <= payload.len() as u64;
        is_whole.then_some(Body { bytes: payload, buffer_state: None })
    }

    pub(crate) fn memory(&self) -> Option<LoopbackMemory> {
        let (own, peer) = (Arc::clone(&self.own), Arc::clone(&self.peer));
        self.copies.then_some(LoopbackMemory { own, peer })
    }

    pub(crate) fn goes_in_pieces(&self) -> Option<bool> {
        Some(self.pieces)
    }

    pub(crate) fn note_pull(&mut self) {
        self.pieces = true;
    }

    pub(crate) fn confirm(&mut self, copied: Result<(), CopyError>) -> Result<(), CopyError> {
        self.copies &= copied != Err(CopyError::Refused);
        if self.is_open() { copied } else { Err(CopyError::Failed(Errno::ECONNABORTED)) }
    }

    pub(crate) fn read(&self, remote: &Remote, to: &Buffer) -> Result<(), CopyError> {
        self.memory().ok_or(CopyError::Refused)?.read(remote, to)
    }

    pub(crate) fn send(&mut self, mut header: Header, payload: Payload<'_>) -> Sent {
        let bytes = bytes_of(&mut header, payload);
        let fault = self.own.fault(Phase::Send(header.kind));
        match fault {
            Some(Fault::Full) => return Sent::NoRoom,
            Some(Fault::NoBuffer) => return Sent::NoBuffer,
            _ => {}
        }
        if !self.own.is_open() || !self.peer.is_open() {
            // A dead end does not notice its death. Messages to a closed or dead peer are dropped.
            return Sent::Yes;
        }
        let mut arrived = self.peer.arrived.lock();
        if arrived.len() >= PLACES {
            return Sent::NoRoom;
        }
        header.peer = self.number.into();
        if self.checks {
            header.flags |= Flags::CHECKED;
        }
        let (mut words, mut payload) = (header.words(), bytes);
        let sum = sum(&words, &payload);
        if fault == Some(Fault::Damage) {
            match payload.first_mut() {
                Some(first) => *first ^= 1,
                None => words[4] ^= 1,
            }
        }
        let check = std::mem::take(&mut self.check);
        arrived.push_back(Parcel { words, payload, check, sum });
        self.peer.count.fetch_add(1, Ordering::Release);
        Sent::Yes
    }
}

/// Completes the header. Returns the payload as bytes.
fn bytes_of(header: &mut Header, payload: Payload<'_>) -> Box<[u8]> {
    let read = |buffers: &[Buffer]| {
        let mut bytes = vec![0; buffers.iter().map(Buffer::len).sum()];
        let mut at = 0;
        for buffer in buffers {
            at += buffer.read_to(&mut bytes[at..]);
        }
        bytes
    };
    let parts_of = |parts: &[RemotePart]| -> Vec<u8> {
        let words = parts.iter().flat_map(|part| [part.addr, part.len, part.key]);
        words.flat_map(u64::to_ne_bytes).collect()
    };
    let segments_of = |buffer: &Buffer| -> Vec<u8> {
        let mut remote = Remote::default();
        remote[..buffer.segments().len()].copy_from_slice(buffer.segments());
        remote.iter().flat_map(|part| [part.addr, part.len]).flat_map(usize::to_ne_bytes).collect()
    };
    match payload {
        Payload::Nothing => Box::default(),
        Payload::Message(message) | Payload::IfQuick(message) => {
            header.kind = Kind::Inline;
            read(std::slice::from_ref(message)).into()
        }
        Payload::Part(part) => read(std::slice::from_ref(part)).into(),
        Payload::PartsAndData(parts, data) => {
            header.count = Frame { parts: parts.len() as u8, ..Frame::default() }.pack();
            [parts_of(parts), read(data)].concat().into()
        }
        Payload::Bytes(bytes) => {
            header.count = 0;
            bytes.into()
        }
        Payload::Where(message) => {
            header.kind = Kind::Rendezvous;
            header.count = message.segments().len() as u32;
            segments_of(message).into()
        }
        Payload::Segments(parts, here) => {
            let (parts_count, segments) = (parts.len() as u8, here.segments().len() as u8);
            header.count = Frame { parts: parts_count, segments, buffer: None }.pack();
            [parts_of(parts), segments_of(here)].concat().into()
        }
    }
}

/// Memory of a peer, which is memory of this process.
#[derive(Clone, Debug)]
pub(crate) struct LoopbackMemory {
    own: Arc<LoopbackEnd>,
    peer: Arc<LoopbackEnd>,
}

impl LoopbackMemory {
    /// Returns the exec id of this process, or the error of a fault or of a peer that is not open.
    fn exec_id(&self) -> Result<ExecId, CopyError> {
        match self.own.fault(Phase::Copy) {
            Some(Fault::Refuse) => return Err(CopyError::Refused),
            Some(Fault::Fail(errno)) => return Err(CopyError::Failed(errno)),
            _ => {}
        }
        // The peer may die during the copy.
        let _ = self.peer.fault_that(Phase::Copy, |fault| fault == Fault::Die);
        if !self.peer.is_open() {
            return Err(CopyError::Failed(Errno::ECONNABORTED));
        }
        ExecId::own().map_err(CopyError::Failed)
    }

    pub(crate) fn read(&self, remote: &Remote, to: &Buffer) -> Result<(), CopyError> {
        cma::read(self.exec_id()?, remote, to)
    }

    pub(crate) fn read_whole(&self, remote: &Remote, len: usize) -> Result<Box<[u8]>, CopyError> {
        cma::read_whole(self.exec_id()?, remote, len)
    }

    pub(crate) fn exchange<'a>(
        &self,
        direction: Direction,
        (remote, _): (&Remote, u64),
        pieces: impl IntoIterator<Item = (usize, &'a Buffer)>,
    ) -> Result<(), CopyError> {
        let exec_id = self.exec_id()?;
        pieces
            .into_iter()
            .try_for_each(|(at, here)| cma::between(direction, exec_id, remote, at, here))
    }
}

/// The parcels that have arrived at an end.
#[derive(Debug)]
pub struct LoopbackRx {
    own: Arc<LoopbackEnd>,
    current: Option<Parcel>,
    released: u64,
}

impl LoopbackRx {
    pub(crate) fn new(own: &Arc<LoopbackEnd>) -> Self {
        Self { own: Arc::clone(own), current: None, released: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_none() && self.own.arrived.lock().is_empty()
    }

    pub(crate) fn position(&self) -> u64 {
        self.released
    }

    pub(crate) fn end(&self) -> u64 {
        self.own.count.load(Ordering::Acquire)
    }
}

impl Arrivals for LoopbackRx {
    fn peek(&mut self) -> Option<Received> {
        if self.current.is_none() {
            self.current = self.own.arrived.lock().pop_front();
        }
        self.current.as_ref().map(|parcel| Received { header: Header::read(parcel.words) })
    }

    fn payload(&self) -> SharedBytes<'_> {
        self.current.as_ref().map_or(&[][..], |parcel| &*parcel.payload).into()
    }

    fn check(&self) -> Option<u32> {
        let parcel = self.current.as_ref()?;
        (parcel.sum == sum(&parcel.words, &parcel.payload)).then_some(parcel.check)
    }

    fn release(&mut self) {
        self.current = None;
        self.released += 1;
    }
}
