// SPDX-License-Identifier: BSD-2-Clause
//! The sending end of an endpoint to peers of this host. Threads use it with or without the lock of
//! the endpoint's engine.
//!
//! ```text
//! tx_queue    tx rings, buffers   the thread that holds the engine; messages that need a buffer
//! more        tx rings            messages that fit a slot, or stay in place: each thread tries a
//!                                 set of its own first, and then the next one that is free
//! ```
//! A receiver's ring puts the messages of all threads into one order: that of their claims.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use ffi::{
    Buffer,
    serial::{Serial, SerialGuard},
    thread,
};

use crate::{
    contract::{Payload, Sent},
    shm::{
        segment::{INTENTS, Segment},
        tx_queue::{self, TxQueue},
        tx_rings::TxRings,
    },
    way::Link,
    wire::Header,
};

/// See the module.
#[derive(Debug)]
pub struct Sending {
    own: Arc<Segment>,
    /// Longest payload of a slot.
    room: usize,
    tx_queue: CachePadded<Serial<TxQueue>>,
    /// Empty if one thread at a time uses the endpoint.
    more: Box<[CachePadded<Serial<TxRings>>]>,
}

impl Sending {
    /// Creates the sending end of the endpoint that owns this segment. `locked`: several threads
    /// use it.
    pub(crate) fn new(own: &Arc<Segment>, checks: bool, locked: bool) -> Self {
        let threads = if locked { 1..INTENTS } else { 1..1 };
        let more = |thread| CachePadded::new(Serial::new(TxRings::new(thread), locked));
        Self {
            own: Arc::clone(own),
            room: tx_queue::room(checks),
            tx_queue: CachePadded::new(Serial::new(TxQueue::new(checks), locked)),
            more: threads.map(more).collect(),
        }
    }

    /// Returns whether a payload of `len` bytes fits a slot without a buffer.
    #[inline(always)]
    #[must_use]
    pub(crate) fn fits(&self, len: usize) -> bool {
        len <= self.room
    }

    /// Sends a message. Returns `None` if no endpoint of this host is known at the peer's address,
    /// or if that endpoint has closed.
    #[inline(always)]
    pub fn send_to_open(&self, peer: u32, header: &Header, message: &Buffer) -> Option<Sent> {
        if !self.more.is_empty() && self.fits(message.len()) {
            return self.send_short(peer, header, message);
        }
        self.tx_queue.lock().send_to_open(&self.own, peer, header, message)
    }

    /// Sends a message that fits a slot, concurrently with other threads.
    #[inline(always)]
    fn send_short(&self, peer: u32, header: &Header, message: &Buffer) -> Option<Sent> {
        self.place().send_short(&self.own, peer, header, message)
    }

    /// Locks a set of tx rings for this thread. Each set serves one thread at a time.
    #[inline(always)]
    fn place(&self) -> SerialGuard<'_, TxRings> {
        let first = thread::current_of(self.more.len());
        let mut places = self.more[first..].iter().chain(&self.more[..first]);
        let free = places.find_map(|tx_rings| tx_rings.try_lock());
        free.unwrap_or_else(|| self.more[first].lock())
    }

    /// Sends a message that needs a buffer, if that is faster than a kernel copy by the receiver.
    pub fn send_if_quick(&self, peer: u32, header: &Header, message: &Buffer) -> Option<Sent> {
        let payload = Payload::IfQuick(message);
        self.tx_queue.lock().send_noted(&self.own, peer, header, payload)
    }

    /// Sends a peer the location of a message that stays in local memory.
    pub fn send_where(&self, peer: u32, header: &Header, message: &Buffer) -> Option<Sent> {
        if self.more.is_empty() {
            self.tx_queue.lock().tx_rings.send_where(&self.own, peer, header, message)
        } else {
            self.place().send_where(&self.own, peer, header, message)
        }
    }

    /// Messages that [`Self::send_to_open`] and [`Self::send_if_quick`] sent, and their bytes.
    #[must_use]
    pub fn sent_to_open(&self) -> (u64, u64) {
        let mut all = (0, 0);
        self.on_tx_rings(|tx_rings| all = (all.0 + tx_rings.sent().0, all.1 + tx_rings.sent().1));
        all
    }

    /// Sends a slot and its payload to a connected peer.
    #[inline(always)]
    pub(crate) fn send(&self, peer: u32, header: &Header, payload: Payload<'_>) -> Option<Sent> {
        self.tx_queue.lock().send(&self.own, peer, header, payload)
    }

    /// Disconnects all peers.
    pub fn stop(&self) {
        self.on_tx_rings(TxRings::disconnect_all);
    }

    pub(crate) fn connect(&self, peer: u32, link: &Link) {
        if let Link::Shm(link) = link {
            self.on_tx_rings(|tx_rings| tx_rings.connect(peer, link));
        }
    }

    pub(crate) fn disconnect(&self, peer: u32) {
        self.on_tx_rings(|tx_rings| tx_rings.disconnect(peer));
        self.tx_queue.lock().reclaim(&self.own, peer);
    }

    fn on_tx_rings(&self, mut work: impl FnMut(&mut TxRings)) {
        work(&mut self.tx_queue.lock().tx_rings);
        self.more.iter().for_each(|tx_rings| work(&mut tx_rings.lock()));
    }

    /// The tx queue, for the thread that holds the engine.
    pub(crate) fn tx_queue(&self) -> (SerialGuard<'_, TxQueue>, &Segment) {
        (self.tx_queue.lock(), &self.own)
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
        contract::Settings,
        home::Home,
        polling::Turns,
        way::Inbox,
        wire::{Flags, Kind},
    };

    /// More than there are places.
    const THREADS: u64 = 5;
    const EACH: u64 = 3000;

    fn home(port: u16, locked: bool) -> (Arc<Segment>, Home) {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let own = Arc::new(Segment::create(address).unwrap());
        let settings = Settings { checks: false, copies: true };
        let home = Home::new(&own, None, Turns::new(Polling::Auto, false), settings, locked);
        (own, home)
    }

    #[test]
    fn threads_of_an_endpoint_send_concurrently_and_each_keeps_its_order() {
        let ((one, sender), (other, receiver)) = (home(287, true), home(288, false));
        sender.connect(0, &sender.open(other.port()).unwrap());
        let back = receiver.open(one.port()).unwrap();
        let Some(mut inbox) = receiver.inboxes()[0].take() else { panic!("an inbox") };
        let send_all = |own: u64| {
            let memory: &'static mut [u8] = vec![own as u8; 1000].leak();
            let window = RegionMemory::from(memory);
            for bits in 0..EACH {
                // Some messages need a buffer.
                let len = if bits % 7 == 0 { 1000 } else { 8 };
                let message = window.part(0, len).unwrap();
                let (kind, flags, len) = (Kind::Inline, Flags::empty(), len as u64);
                let header = Header { kind, flags, peer: 0, count: 0, bits, data: own, len, op: 0 };
                while sender.near().send_to_open(0, &header, &message) != Some(Sent::Yes) {
                    thread::yield_now();
                }
            }
        };
        let take = |inbox: &mut Inbox| {
            let header = inbox.peek()?.header.unwrap();
            let body = back.body(&header, inbox.payload()).unwrap();
            let bytes = body.bytes().first(header.len as usize).keep();
            assert!(bytes.iter().all(|&byte| u64::from(byte) == header.data), "{header:?}");
            drop(body);
            inbox.release();
            inbox.publish();
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
                    match take(&mut inbox) {
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
        assert_eq!(sender.near().sent_to_open(), (THREADS * EACH, bytes));
        sender.near().stop();
        assert_eq!(sender.near().sent_to_open().0, THREADS * EACH);
    }
}
