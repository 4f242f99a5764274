// SPDX-License-Identifier: BSD-2-Clause
//! Helpers for tests and fuzzers: functions that write arbitrary data into a segment, as a hostile
//! peer can, and a transport that injects faults ([`loopback`]).

pub mod loopback;

use std::sync::{Arc, atomic::Ordering};

use ffi::Errno;
pub use host::names::apart;
use rustix::fs::{FlockOperation, flock};

use crate::{
    contract::Arrivals as _,
    identity::Identity,
    shm::{
        protocol,
        ring::{ShmRx, TxRing},
        segment::{self, BUFFERS, LENGTH, Segment},
    },
    wire::{Header, INLINE},
};

/// Payload of a slot, as words.
pub type Payload = [u64; INLINE / 8];

/// Enters an identity into the list of senders of the endpoint at a port. Returns its number.
///
/// # Errors
/// Those of [`crate::tx::Tx::open`].
pub fn enter(port: u16, who: Identity) -> Result<u16, Errno> {
    let (segment, file) = Segment::open(port)?;
    segment.enter(&file, who)
}

/// Writes slots into a ring, and does not ring the doorbell.
#[derive(Debug)]
pub struct Writer(TxRing);

impl Writer {
    /// Creates a writer to the ring of this segment.
    #[must_use]
    pub fn new(to: &Arc<Segment>) -> Self {
        Self(TxRing::new(to, 0, 0, false))
    }

    /// Writes a slot without payload. Returns whether there was room.
    pub fn push(&mut self, own: &Segment, header: &Header) -> bool {
        self.0.put(own, header.words(), |_| ())
    }

    /// Writes a slot with arbitrary words and payload. Returns whether there was room.
    pub fn push_words(&mut self, own: &Segment, words: [u64; 5], payload: &Payload) -> bool {
        self.0.put(own, words, |room| room.put(payload))
    }
}

/// Claims the first position of a ring, and never fills it.
pub fn claim(to: &Segment) {
    to.tail().store(1, Ordering::Relaxed);
}

/// Undoes [`claim`].
pub fn unclaim(to: &Segment) {
    to.tail().store(0, Ordering::Relaxed);
}

/// Announces that `own` is about to claim the first position of a ring.
pub fn intend(own: &Segment, to: &Segment) {
    own.intent(0).store(protocol::intent(to.identity().ring(), 0), Ordering::Release);
}

/// Returns the headers of the filled slots in a ring, from its first slot on; `None` for a slot
/// with an invalid header.
#[must_use]
pub fn slots(of: &Arc<Segment>) -> Vec<Option<Header>> {
    let mut rx = ShmRx::new(of);
    let next = || {
        let slot = rx.peek();
        rx.release();
        slot.map(|slot| slot.header)
    };
    std::iter::from_fn(next).collect()
}

/// Marks all buffers as free.
pub fn free_buffers(own: &Segment) {
    (0..BUFFERS).for_each(|buffer| own.buffer_state(buffer).store(0, Ordering::Release));
}

/// Makes the owner of a segment look dead: it releases the lock without closing.
///
/// # Panics
/// The segment does not belong to this process.
pub fn die(own: &Segment) {
    let file = own.file().expect("a segment of this process");
    flock(file, FlockOperation::Unlock).expect("the lock is ours");
}

/// Writes a word anywhere, as any process of this user can.
pub fn scribble(segment: &Segment, offset: usize, value: u64) {
    segment.scribble(offset % LENGTH, value);
}

/// Offset in bytes of the first slot.
pub const RING: usize = segment::RING;
/// Offset in bytes of the first buffer, which is taken first.
pub const BUFFER: usize = segment::BUFFER_AREA;
