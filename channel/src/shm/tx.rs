// SPDX-License-Identifier: BSD-2-Clause
//! The sending end of an endpoint over shared memory. Threads use it with or without the lock of
//! the endpoint's engine.
//!
//! ```text
//! queue   tx rings, buffers   with the engine: all slots; without it: messages that need a buffer,
//!                             and all messages if `more` is empty
//! more    tx rings            without the engine: messages that fit a slot, or stay in place; each
//!                             thread tries a set of its own first, and then the next free one
//!
//! send(peer, header, payload):
//!     nothing, or it fits a slot      slot                                 else NoRoom
//!     it does not                     buffer = a free one                  else NoBuffer
//!                                     fill it; slot with its number        else free it: NoRoom
//! ```
//! The messages of all threads arrive in the order in which the threads claimed slots of the
//! receiver's ring. A thread announces in the segment of its endpoint which slot of which ring it
//! claims. The segment has a few intent words for that, one for each set of tx rings.
//!
//! Functions between a message and its slot are `inline(always)`: out of line, they cost 20 to 48
//! instructions per message.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_utils::CachePadded;
use ffi::{
    Buffer,
    serial::{Serial, SerialGuard},
    thread,
};

use super::{
    buffers::Buffers,
    peer::ShmPeer,
    ring::TxRing,
    segment::{BUFFER, INTENTS, Segment},
};
use crate::{
    bytes::{Remote, Room},
    contract::{Payload, Sent},
    wire::{CHECKED_INLINE, Frame, Header, INLINE, Kind},
};

/// The sending end of an endpoint over shared memory; see the module.
#[derive(Debug)]
pub struct ShmTx {
    pub(crate) own: Arc<Segment>,
    /// Maximum length in bytes of the payload of a slot to any peer: that of the connected peer
    /// whose slots have least room. [`Self::connect`] lowers it before the tx rings of that peer
    /// exist. So a thread that holds a set of tx rings reads a length that all of them can send.
    inline_len: AtomicUsize,
    /// Whether slots have checksums.
    checks: bool,
    queue: CachePadded<Serial<TxQueue>>,
    /// Further sets of tx rings, for threads that do not hold the engine. Empty if one thread at a
    /// time uses the endpoint.
    more: Box<[CachePadded<Serial<TxRings>>]>,
}

/// The tx rings of the thread that holds the engine, and the buffers of the endpoint.
#[derive(Debug)]
struct TxQueue {
    rings: TxRings,
    buffers: Buffers,
}

/// The tx rings to all peers, for one thread at a time.
#[derive(Debug)]
struct TxRings {
    /// Index of the intent word in which the thread announces its claims.
    thread: usize,
    /// By peer number.
    all: Vec<Option<Box<TxRing>>>,
    /// Number of messages that were sent to open peers, and of their bytes.
    sent: (u64, u64),
}

impl ShmTx {
    /// Creates the sending end of the endpoint that owns this segment. `locked`: several threads
    /// use it.
    pub(crate) fn new(own: &Arc<Segment>, checks: bool, locked: bool) -> Self {
        let threads = if locked { 1..INTENTS } else { 1..1 };
        let queue = TxQueue { rings: TxRings::new(0), buffers: Buffers::new() };
        let more = |thread| CachePadded::new(Serial::new(TxRings::new(thread), locked));
        Self {
            own: Arc::clone(own),
            inline_len: AtomicUsize::new(if checks { CHECKED_INLINE } else { INLINE }),
            checks,
            queue: CachePadded::new(Serial::new(queue, locked)),
            more: threads.map(more).collect(),
        }
    }

    /// Returns whether a payload of `len` bytes fits a slot without a buffer.
    #[inline(always)]
    #[must_use]
    pub(crate) fn fits(&self, len: usize) -> bool {
        len <= self.inline_len.load(Ordering::Relaxed)
    }

    /// Sends and counts a message. Returns `None` if the peer is not connected over shared memory,
    /// is closed or is marked as dead.
    #[inline(always)]
    pub fn send_to_open(&self, peer: u32, header: &Header, message: &Buffer) -> Option<Sent> {
        if !self.more.is_empty() && self.fits(message.len()) {
            let mut rings = self.own_rings();
            // Another thread may have connected a peer whose slots have less room.
            if self.fits(message.len()) {
                return rings.send_short(&self.own, peer, header, message);
            }
        }
        let mut queue = self.queue.lock();
        if self.fits(message.len()) {
            return queue.rings.send_short(&self.own, peer, header, message);
        }
        self.send_counted(&mut queue, peer, header, Payload::Message(message))
    }

    /// Sends a message that needs a buffer, if that is faster than a kernel copy by the receiver,
    /// and returns [`Sent::NoBuffer`] otherwise. `None`: see [`Self::send_to_open`].
    pub fn send_if_quick(&self, peer: u32, header: &Header, message: &Buffer) -> Option<Sent> {
        self.send_counted(&mut self.queue.lock(), peer, header, Payload::IfQuick(message))
    }

    /// Sends a peer the location of a message that stays in local memory. The peer reports when it
    /// has read the message. `None`: see [`Self::send_to_open`].
    pub fn send_where(&self, peer: u32, header: &Header, message: &Buffer) -> Option<Sent> {
        let send = |rings: &mut TxRings| {
            Some(send_rendezvous(rings.open(peer)?, &self.own, header, message))
        };
        if self.more.is_empty() {
            send(&mut self.queue.lock().rings)
        } else {
            send(&mut self.own_rings())
        }
    }

    /// Locks a set of tx rings for this thread. Each set serves one thread at a time.
    #[inline(always)]
    fn own_rings(&self) -> SerialGuard<'_, TxRings> {
        let first = thread::current_of(self.more.len());
        let mut sets = self.more[first..].iter().chain(&self.more[..first]);
        let free = sets.find_map(|rings| rings.try_lock());
        free.unwrap_or_else(|| self.more[first].lock())
    }

    /// Returns the number of messages that [`Self::send_to_open`] and [`Self::send_if_quick`] sent,
    /// and of their bytes.
    #[must_use]
    pub fn sent_to_open(&self) -> (u64, u64) {
        let mut all = (0, 0);
        self.on_rings(|rings| all = (all.0 + rings.sent.0, all.1 + rings.sent.1));
        all
    }

    /// Disconnects all peers. The buffers that they hold stay lent.
    pub fn disconnect_all(&self) {
        self.on_rings(|rings| rings.all.clear());
    }

    /// From now on, messages to `number` go to this peer.
    pub(crate) fn connect(&self, number: u32, peer: &ShmPeer) {
        let index = number as usize;
        let inline_len = peer.tx_ring(0, self.checks).inline_len();
        self.inline_len.fetch_min(inline_len, Ordering::Relaxed);
        self.on_rings(|rings| {
            if rings.all.len() <= index {
                rings.all.resize_with(index + 1, || None);
            }
            rings.all[index] = Some(Box::new(peer.tx_ring(rings.thread, self.checks)));
        });
    }

    /// Disconnects a peer, and reclaims the buffers that it still holds.
    pub fn disconnect(&self, peer: u32) {
        self.on_rings(|rings| {
            if let Some(ring) = rings.all.get_mut(peer as usize) {
                *ring = None;
            }
        });
        self.queue.lock().buffers.reclaim(&self.own, peer);
    }

    fn on_rings(&self, mut work: impl FnMut(&mut TxRings)) {
        work(&mut self.queue.lock().rings);
        self.more.iter().for_each(|rings| work(&mut rings.lock()));
    }

    /// Sets the checksum of the payload of the next slot that [`Self::send`] sends to a peer.
    pub(crate) fn set_check(&self, peer: u32, check: u32) {
        if let Some(ring) = self.queue.lock().rings.get(peer) {
            ring.set_check(check);
        }
    }

    /// Notes that a message to a peer waits until a buffer is free.
    pub fn note_waiting(&self, peer: u32) {
        if let Some(ring) = self.queue.lock().rings.get(peer) {
            ring.note_waiting(&self.own);
        }
    }

    /// Returns the number of messages that had to wait for room at their receivers.
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.own.waited()
    }

    /// Returns whether all requests for a buffer have failed for at least this time.
    pub fn is_stuck(&self, patience: Duration) -> bool {
        self.queue.lock().buffers.is_stuck(patience)
    }

    /// Returns whether a buffer is free.
    pub(crate) fn has_room(&self) -> bool {
        self.queue.lock().buffers.has_room(&self.own)
    }

    /// Returns whether receivers still hold buffers.
    pub(crate) fn has_lent_buffers(&self) -> bool {
        self.queue.lock().buffers.has_lent(&self.own)
    }

    /// Lends all free buffers to a peer.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn take_all(&self, peer: u32) {
        while self.queue.lock().buffers.take(&self.own, peer).is_some() {}
    }

    /// Sends a slot and its payload to a peer. Returns `None` if there is no tx ring to it.
    #[inline(always)]
    pub(crate) fn send(&self, peer: u32, header: &Header, payload: Payload<'_>) -> Option<Sent> {
        self.send_from(&mut self.queue.lock(), peer, header, payload)
    }

    /// Sends and counts a message that may need a buffer. Returns `None` if there is no open tx
    /// ring to its receiver.
    #[inline(always)]
    fn send_counted(
        &self,
        queue: &mut TxQueue,
        peer: u32,
        header: &Header,
        payload: Payload<'_>,
    ) -> Option<Sent> {
        queue.rings.open(peer)?;
        let sent = self.send_from(queue, peer, header, payload)?;
        queue.rings.count(sent, header);
        Some(sent)
    }

    #[inline(always)]
    fn send_from(
        &self,
        queue: &mut TxQueue,
        peer: u32,
        header: &Header,
        payload: Payload<'_>,
    ) -> Option<Sent> {
        let TxQueue { rings, buffers } = queue;
        let (ring, own) = (rings.get(peer)?, &*self.own);
        let mut to = SendTo { tx: self, ring, buffers, peer };
        Some(match payload {
            Payload::Nothing => to.ring.push(own, *header, |_| ()),
            Payload::Message(message) if self.fits(message.len()) => {
                to.ring.push_inline(own, header, message)
            }
            Payload::Message(message) => {
                to.send_part(&Header { kind: Kind::Buffered, ..*header }, message)
            }
            Payload::IfQuick(message) => to.send_if_quick(header, message),
            Payload::Part(part) => to.send_part(header, part),
            Payload::PartsAndData(parts, data) => {
                let len = size_of_val(parts) + data.iter().map(Buffer::len).sum::<usize>();
                let frame = Frame { parts: parts.len() as u8, ..Frame::default() };
                to.send_frame(&Header { count: frame.pack(), ..*header }, frame, len, |room| {
                    room.put(parts);
                    data.iter().for_each(|buffer| room.put_buffer(buffer));
                })
            }
            Payload::Bytes(bytes) => {
                to.send_frame(header, Frame::default(), bytes.len(), |room| room.put(bytes))
            }
            Payload::Where(message) => send_rendezvous(to.ring, own, header, message),
            Payload::Segments(parts, here) => {
                let (parts_count, segments) = (parts.len() as u8, here.segments().len() as u8);
                let frame = Frame { parts: parts_count, segments, buffer: None };
                to.ring.push(own, Header { count: frame.pack(), ..*header }, |room| {
                    room.put(parts);
                    room.put(here.segments());
                })
            }
        })
    }
}

impl TxRings {
    fn new(thread: usize) -> Self {
        Self { thread, all: Vec::new(), sent: (0, 0) }
    }

    /// Returns the tx ring to a peer; `None` if the peer is not connected.
    #[inline(always)]
    fn get(&mut self, peer: u32) -> Option<&mut TxRing> {
        self.all.get_mut(peer as usize)?.as_deref_mut()
    }

    /// Returns the tx ring to a peer; `None` if the peer is not connected, closed or marked as
    /// dead.
    #[inline(always)]
    fn open(&mut self, peer: u32) -> Option<&mut TxRing> {
        self.get(peer).filter(|ring| ring.is_open())
    }

    /// Sends a message that fits a slot. Returns `None` if there is no open tx ring to its
    /// receiver.
    #[inline(always)]
    fn send_short(
        &mut self,
        own: &Segment,
        peer: u32,
        header: &Header,
        message: &Buffer,
    ) -> Option<Sent> {
        let sent = self.open(peer)?.push_inline(own, header, message);
        self.count(sent, header);
        Some(sent)
    }

    #[inline(always)]
    fn count(&mut self, sent: Sent, header: &Header) {
        if sent == Sent::Yes {
            self.sent = (self.sent.0 + 1, self.sent.1 + header.len);
        }
    }
}

/// Sends the location of a message that stays in local memory.
fn send_rendezvous(ring: &mut TxRing, own: &Segment, header: &Header, message: &Buffer) -> Sent {
    let segments = message.segments();
    let count = segments.len() as u32;
    ring.push(own, Header { kind: Kind::Rendezvous, count, ..*header }, |room| {
        let mut remote = Remote::default();
        remote[..segments.len()].copy_from_slice(segments);
        room.put(&remote);
    })
}

/// The tx ring to the receiver of a slot, and the buffers that the slot may need.
struct SendTo<'a> {
    tx: &'a ShmTx,
    ring: &'a mut TxRing,
    buffers: &'a mut Buffers,
    peer: u32,
}

impl SendTo<'_> {
    /// Sends a message, or a part of one, in a buffer.
    #[inline(never)]
    fn send_part(&mut self, header: &Header, part: &Buffer) -> Sent {
        let Some(buffer) = self.take() else { return Sent::NoBuffer };
        self.fill(part.len(), |room| room.put_buffer(part));
        self.send_filled(&Header { count: buffer as u32, ..*header })
    }

    #[inline(never)]
    fn send_if_quick(&mut self, header: &Header, message: &Buffer) -> Sent {
        let is_alone = self.buffers.last_is_back(&self.tx.own);
        let Some(is_timed) = self.ring.eager_policy.decide(is_alone) else { return Sent::NoBuffer };
        let Some(buffer) = self.take() else { return Sent::NoBuffer };
        let start = is_timed.then(Instant::now);
        self.fill(message.len(), |room| room.put_buffer(message));
        let sent =
            self.send_filled(&Header { kind: Kind::Buffered, count: buffer as u32, ..*header });
        if let (Sent::Yes, Some(start)) = (sent, start) {
            self.ring.eager_policy.note(message.len(), start.elapsed());
        }
        sent
    }

    /// Sends `len` bytes that `write` writes, in the slot or in a buffer.
    #[inline(never)]
    fn send_frame(
        &mut self,
        header: &Header,
        frame: Frame,
        len: usize,
        write: impl FnOnce(&mut Room<'_>),
    ) -> Sent {
        if self.tx.fits(len) {
            return self.ring.push(&self.tx.own, *header, write);
        }
        let Some(buffer) = self.take() else { return Sent::NoBuffer };
        self.fill(len, write);
        if self.tx.checks
            && let Some(bytes) = self.tx.own.buffer_bytes(buffer, BUFFER as u64)
        {
            self.ring.set_check(crc32c::crc32c(&bytes.keep()));
        }
        let frame = Frame { buffer: Some(buffer as u16), ..frame };
        self.send_filled(&Header { count: frame.pack(), ..*header })
    }

    fn take(&mut self) -> Option<usize> {
        self.buffers.take(&self.tx.own, self.peer)
    }

    /// Writes `len` bytes into the buffer that was taken last.
    fn fill(&mut self, len: usize, write: impl FnOnce(&mut Room<'_>)) {
        let mut room = self.buffers.room(&self.tx.own);
        room.expect(len);
        write(&mut room);
    }

    /// Sends a slot whose buffer is filled. If there is no room, frees the buffer.
    fn send_filled(&mut self, header: &Header) -> Sent {
        let sent = self.ring.push(&self.tx.own, *header, |_| ());
        if sent == Sent::NoRoom {
            self.buffers.untake(&self.tx.own);
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, SocketAddrV4},
        thread,
    };

    use ffi::memory::RegionMemory;
    use nic::polling::Polling;

    use super::*;
    use crate::{
        contract::{Arrivals as _, Settings},
        polling::NetworkSchedule,
        rx::Rx,
        tx::Tx,
        wire::{Flags, Kind},
    };

    /// More than the number of sets of tx rings.
    const THREADS: u64 = 5;
    const EACH: u64 = 3000;

    fn endpoint(port: u16, locked: bool) -> (Arc<Segment>, Tx) {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let own = Arc::new(Segment::create(address).unwrap());
        let settings = Settings { checks: false, copies: true };
        let tx = Tx::new(&own, None, NetworkSchedule::new(Polling::Auto, false), settings, locked);
        (own, tx)
    }

    #[test]
    fn threads_of_an_endpoint_send_concurrently_and_each_keeps_its_order() {
        let ((one, sender), (other, receiver)) = (endpoint(287, true), endpoint(288, false));
        sender.connect(0, &sender.open(other.port()).unwrap());
        let back = receiver.open(one.port()).unwrap();
        let Some(mut rx) = receiver.receivers()[0].take() else { panic!("a receiving end") };
        let send_all = |own: u64| {
            let memory: &'static mut [u8] = vec![own as u8; 1000].leak();
            let window = RegionMemory::from(memory);
            for bits in 0..EACH {
                // Some messages need a buffer.
                let len = if bits % 7 == 0 { 1000 } else { 8 };
                let message = window.part(0, len).unwrap();
                let (kind, flags, len) = (Kind::Inline, Flags::empty(), len as u64);
                let header = Header { kind, flags, peer: 0, count: 0, bits, data: own, len, op: 0 };
                while sender.shm().send_to_open(0, &header, &message) != Some(Sent::Yes) {
                    thread::yield_now();
                }
            }
        };
        let take = |rx: &mut Rx| {
            let header = rx.peek()?.header.unwrap();
            let body = back.body(&header, rx.payload()).unwrap();
            let bytes = body.bytes().first(header.len as usize).keep();
            assert!(bytes.iter().all(|&byte| u64::from(byte) == header.data), "{header:?}");
            drop(body);
            rx.release();
            rx.publish();
            Some(header)
        };
        thread::scope(|scope| {
            for own in 0..THREADS {
                scope.spawn({
                    let send_all = &send_all;
                    move || send_all(own)
                });
            }
            let mut next = [0; THREADS as usize];
            for _ in 0..THREADS * EACH {
                let header = loop {
                    match take(&mut rx) {
                        Some(header) => break header,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(header.bits, next[header.data as usize]);
                next[header.data as usize] += 1;
            }
        });
        let long = EACH.div_ceil(7);
        let bytes = THREADS * (long * 1000 + (EACH - long) * 8);
        assert_eq!(sender.shm().sent_to_open(), (THREADS * EACH, bytes));
        sender.shm().disconnect_all();
        assert_eq!(sender.shm().sent_to_open().0, THREADS * EACH);
    }
}
