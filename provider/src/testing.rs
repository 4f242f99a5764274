// SPDX-License-Identifier: BSD-2-Clause
//! Test code for the unit tests and for `provider/fuzz`: arbitrary bytes choose what an endpoint
//! (without libfabric) and a hostile peer of it do.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use channel::{
    contract::Settings,
    shm::segment::Segment,
    testing,
    wire::{Flags, Header, INLINE, Kind},
};
use ffi::{
    Buffer, OpContext,
    atomic::{Datatype, Form, Op},
    flags,
    memory::RegionMemory,
    ops::{
        ep::{
            OpFlags, Recv, Send,
            atomic::Atomic,
            rma::{RemotePart, RemoteParts, Rma},
        },
        mr,
    },
};

use crate::{address, engine::Engine, wait::pollable::Progress};

mod peers;

#[cfg(test)]
pub(crate) use peers::endpoint;
use peers::{Ports, TestPeers, address_of};
#[cfg(test)]
pub(crate) use peers::{engine_of, net_endpoint};

/// Input bytes that are taken from the front. After the end, every byte is 0.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Returns an offset in a segment, more often in its header than in its buffers.
    fn offset(&mut self) -> usize {
        let byte = usize::from(self.byte());
        if byte & 1 == 0 { byte * 8 } else { usize::from(self.short()) * 24 }
    }

    /// Returns a number that is small, near a power of two, or arbitrary.
    fn word(&mut self) -> u64 {
        let byte = self.byte();
        match byte >> 6 {
            0 => u64::from(byte),
            1 => (1_u64 << (byte & 63)).wrapping_sub(u64::from(self.byte() & 3)),
            2 => u64::from(self.short()),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }
}

/// Size in bytes of the memory that peers may read and write, and that messages are received into.
const MEMORY: usize = 40_000;
const KEY: u64 = 5;
/// Longest wait for a message over loopback.
const PATIENCE: Duration = Duration::from_secs(10);
/// Match bits of the healthy peer.
const HEALTHY_BITS: u64 = 1 << 60;

struct Play {
    ports: Ports,
    own: Arc<Segment>,
    engine: Engine,
    peers: TestPeers,
    memory: RegionMemory,
    /// Whether the input has changed the endpoint's own segment, so that any message may be lost.
    damaged: bool,
}

impl Play {
    fn start((ports, own, mut engine, peers): peers::Met, memory: &RegionMemory) -> Self {
        // Kernel copies are off. The hostile peer would choose their addresses, and since it is in
        // this process, the kernel would overwrite memory of the test.
        engine.peers.transports.set(Settings { checks: false, copies: false });
        let access = flags::REMOTE_READ | flags::REMOTE_WRITE;
        let window = memory.clone();
        let attr = mr::MrAttr { window, access, offset: 0, requested_key: KEY, flags: 0 };
        engine.domain.regions.register(&attr).unwrap();
        if let Some(av) = &engine.peers.av {
            assert_eq!(av.insert_one(&address::to_bytes(address_of(ports.peer))), Some(0));
        }
        Self { ports, own, engine, peers, memory: memory.clone(), damaged: false }
    }

    fn buffer(&self, input: &mut Input<'_>) -> Buffer {
        let len = usize::from(input.short()) % MEMORY;
        self.memory.part(usize::from(input.byte()), len).unwrap_or_default()
    }

    fn post(&mut self, input: &mut Input<'_>) {
        let how = input.byte();
        let multi = if how & 2 != 0 { flags::MULTI_RECV } else { 0 };
        let recv = Recv {
            buffer: self.buffer(input),
            source: if how & 4 != 0 { 0 } else { u64::MAX },
            tag: (how & 1 != 0).then(|| (u64::from(input.byte() & 3), u64::from(how >> 6))),
            context: OpContext(usize::from(how >> 3 & 3)),
            flags: OpFlags::Given(if how & 1 == 0 { multi } else { 0 }),
        };
        let _ = self.engine.recv(&recv);
    }

    fn remote(len: usize) -> RemoteParts {
        let part = RemotePart { addr: 0, len: len as u64, key: KEY };
        RemoteParts::new([part]).unwrap_or_default()
    }

    /// Starts an operation, which the peer may answer, rightly or not.
    fn operate(&mut self, input: &mut Input<'_>) {
        let how = input.byte();
        let buffer = self.buffer(input);
        let (flags, context) = (OpFlags::Default, OpContext(1));
        let _ = match how & 3 {
            0 | 1 => {
                let op = Rma {
                    write: how & 1 != 0,
                    remote: Self::remote(buffer.len()),
                    buffer,
                    peer: 0,
                    data: (how & 4 != 0).then_some(7),
                    context,
                    flags,
                };
                self.engine.rma(&op)
            }
            2 => {
                let ack = if how & 4 != 0 { flags::DELIVERY_COMPLETE } else { 0 };
                let tag = (how & 8 != 0).then_some(1);
                let flags = OpFlags::Given(ack);
                let op = Send { buffer, dest: 0, tag, data: None, context, flags };
                self.engine.send(&op)
            }
            _ => {
                let operand =
                    buffer.part(0, 4096 - buffer.len() % 8).part(0, buffer.len().min(4096) & !7);
                let op = Atomic {
                    form: if how & 4 != 0 { Form::Fetch } else { Form::Base },
                    datatype: Datatype::Uint64,
                    op: Op::Sum,
                    remote: Self::remote(operand.len()),
                    result: operand.clone(),
                    operand,
                    compare: Buffer::default(),
                    peer: 0,
                    context,
                    flags,
                };
                self.engine.atomic(&op)
            }
        };
    }

    /// Lets the peer send a slot: a message, or one with arbitrary changes.
    fn slot(&mut self, input: &mut Input<'_>) {
        let kind = input.byte();
        let count = match kind >> 6 {
            0 => u64::from(input.byte()),
            // A `channel::wire::Frame`: numbers of parts, of segments, and of a buffer.
            1 => {
                u64::from(input.byte() % 6)
                    | u64::from(input.byte() % 6) << 8
                    | u64::from(input.byte() % 70) << 16
            }
            _ => input.word() & 0xffff_ffff,
        };
        let flags = u64::from(input.byte());
        // The number of the peer that sends, or one that is not in the list of senders; never that
        // of the healthy peer.
        let number = if flags & 0x80 == 0 { 0 } else { u64::from(input.short()).max(2) };
        let first =
            u64::from(kind & 0x0f) | (flags & 0x0f) << 8 | (number & 0xffff) << 16 | count << 32;
        let mut words = [first, input.word(), input.word(), input.word(), input.word()];
        if words[4] < 64 {
            // An arbitrary number hardly ever names an operation in progress, because numbers
            // contain the age of their operation. So this one names one of the first operations.
            let key = words[4] as usize;
            words[4] = self.engine.tx.ops.number_at(key);
        }
        let mut payload = [0; INLINE / 8];
        let parts = usize::from(input.byte() % 27);
        payload.iter_mut().take(parts).for_each(|word| *word = input.word());
        let change = (input.byte() < 8).then(|| (input.byte(), input.byte()));
        self.peers.push_words(words, &payload, change);
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 16 {
            0..6 => self.slot(input),
            6 => self.post(input),
            7..9 => self.operate(input),
            9 => self.peers.scribble(input.offset(), input.word()),
            10 => {
                testing::scribble(&self.own, input.offset(), input.word());
                self.damaged = true;
            }
            11 => {
                self.engine.checks.hurry();
                self.engine.look_around();
            }
            12 => drop(self.engine.cancel(OpContext(usize::from(input.byte() & 3)))),
            13 if self.peers.are_far() => {
                let (how, len) = (input.byte(), usize::from(input.byte()));
                let bytes: Vec<u8> = (0..len.min(input.0.len())).map(|_| input.byte()).collect();
                self.peers.push_bytes(&bytes, how);
            }
            _ => self.progress(),
        }
    }

    /// Makes progress, but not for ever: with wrong heads and tails of the ring, there may always
    /// be another slot.
    fn progress(&mut self) {
        for _ in 0..100 {
            self.peers.progress();
            if !self.engine.make_copy() && self.engine.progress() == Progress::None {
                return;
            }
        }
    }

    /// Makes progress until `is_so` holds: up to [`PATIENCE`] with a network, and otherwise once.
    /// Returns whether it holds.
    fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) -> bool {
        let start = Instant::now();
        loop {
            self.progress();
            if is_so(self) {
                return true;
            }
            if !self.peers.are_far() || start.elapsed() > PATIENCE {
                return false;
            }
        }
    }

    /// Checks that messages of the healthy peer arrive, each once.
    fn check(&mut self) {
        for count in 0..3 {
            let header = Header {
                kind: Kind::Inline,
                flags: Flags::TAGGED,
                peer: 1,
                count: 0,
                bits: HEALTHY_BITS | count,
                data: 0,
                len: 0,
                op: 0,
            };
            assert!(self.until(|it| it.peers.push_healthy(&it.own, header)), "no room");
        }
        self.progress();
        // The other peer may have used the same match bits, so the source is compared too.
        let from = self.engine.domain.peers.number(address_of(self.ports.healthy));
        for count in 0..3 {
            let arrives = |it: &mut Self| {
                let mut device = it.engine.rx.device.lock();
                let found = device.context(true).drop_unexpected(|envelope, _| {
                    envelope.source == from && envelope.bits == HEALTHY_BITS | count
                });
                assert!(found <= 1, "message {count} of the healthy peer, {found} times");
                found == 1
            };
            assert!(self.until(arrives), "message {count} of the healthy peer");
        }
        assert_eq!(self.engine.rx.device.lock_own().tagged.counters().check(), Ok(()));
        assert_eq!(self.engine.rx.device.lock_own().msg.counters().check(), Ok(()));
    }
}

/// Lets an endpoint and a hostile peer on this host act as the bytes choose. Checks that nothing
/// crashes and, if the endpoint's own segment stayed intact, that messages of another peer arrive.
/// AddressSanitizer, if it is on, finds accesses to other memory.
///
/// # Panics
/// If a check fails.
pub fn survive(data: &[u8]) {
    survive_of(peers::near(), data);
}

/// As [`survive`], with peers on the network.
///
/// # Panics
/// If a check fails.
pub fn survive_far(data: &[u8]) {
    survive_of(peers::far(), data);
}

fn survive_of(met: peers::Met, data: &[u8]) {
    static SHARED: LazyLock<RegionMemory> =
        LazyLock::new(|| RegionMemory::from(&mut *vec![0_u8; MEMORY].leak()));
    let mut play = Play::start(met, &SHARED);
    let mut input = Input(data);
    while !input.0.is_empty() {
        play.step(&mut input);
    }
    play.progress();
    if !play.damaged {
        play.check();
    }
}
