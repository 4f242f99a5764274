// SPDX-License-Identifier: BSD-2-Clause
//! The peers of a domain. Each address that was ever named has a number, which matching compares.
//! Address vectors map each `fi_addr_t` to such a number.

use std::{
    collections::HashMap,
    net::SocketAddrV4,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use channel::address::{pack, unpack};
use parking_lot::Mutex;

use crate::address;

/// An array of words that grows without moving them, so that readers need no lock.
///
/// ```text
/// block 0: 64 words, block 1: 128, block 2: 256, ...
/// ```
#[derive(Debug, Default)]
pub(crate) struct GrowingArray {
    blocks: [OnceLock<Box<[AtomicU64]>>; BLOCKS],
}

const FIRST: usize = 64;
const BLOCKS: usize = 26;

impl GrowingArray {
    fn place(index: usize) -> (usize, usize) {
        let block = (index / FIRST + 1).ilog2() as usize;
        (block, index - ((1 << block) - 1) * FIRST)
    }

    /// Returns the word at an index; zero if it was never set.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> u64 {
        let (block, offset) = Self::place(index);
        let block = self.blocks.get(block).and_then(OnceLock::get);
        block.map_or(0, |words| words[offset].load(Ordering::Acquire))
    }

    /// Sets a word.
    pub(crate) fn set(&self, index: usize, value: u64) {
        let (block, offset) = Self::place(index);
        let words = self.blocks[block].get_or_init(|| {
            std::iter::repeat_with(AtomicU64::default).take(FIRST << block).collect()
        });
        words[offset].store(value, Ordering::Release);
    }
}

/// The numbers of all addresses.
#[derive(Debug, Default)]
pub(crate) struct PeerNumbers {
    numbers: Mutex<HashMap<SocketAddrV4, u32>>,
    addresses: GrowingArray,
    /// By peer number: 1 if the peer's endpoint was seen, and was not seen to close since.
    seen: GrowingArray,
    /// By peer number: the secret in the peer's name, or 0.
    secrets: GrowingArray,
}

impl PeerNumbers {
    /// Returns the number of an address, and assigns one to a new address. All addresses of this
    /// host with the same port name one endpoint, and so have one number.
    pub(crate) fn number(&self, address: SocketAddrV4) -> u32 {
        let mut key = address;
        if address::is_local(*address.ip()) {
            key.set_ip(std::net::Ipv4Addr::LOCALHOST);
        }
        let mut numbers = self.numbers.lock();
        let next = numbers.len() as u32;
        *numbers.entry(key).or_insert_with(|| {
            self.addresses.set(next as usize, pack(address));
            next
        })
    }

    /// Stores the secret in a peer's name. Does nothing if `secret` is 0.
    pub(crate) fn learn_secret(&self, number: u32, secret: u64) {
        if secret != 0 {
            self.secrets.set(number as usize, secret);
        }
    }

    /// Returns the secret in a peer's name, or 0 if there is no secret.
    pub(crate) fn secret(&self, number: u32) -> u64 {
        self.secrets.get(number as usize)
    }

    /// Notes that a peer's endpoint exists or existed.
    pub(crate) fn saw_open(&self, number: u32) {
        self.seen.set(number as usize, 1);
    }

    /// Notes that a peer has closed its endpoint.
    pub(crate) fn saw_close(&self, number: u32) {
        self.seen.set(number as usize, 0);
    }

    /// Returns whether a peer's endpoint was seen, and was not seen to close since. If the endpoint
    /// does not exist now, it died.
    pub(crate) fn was_last_seen_open(&self, number: u32) -> bool {
        self.seen.get(number as usize) != 0
    }

    /// Returns the number of addresses that have a number.
    pub(crate) fn len(&self) -> usize {
        self.numbers.lock().len()
    }

    /// Returns the address to which a number was assigned.
    pub(crate) fn address(&self, number: u32) -> SocketAddrV4 {
        unpack(self.addresses.get(number as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_grow_in_place() {
        let words = GrowingArray::default();
        for index in [0, 63, 64, 191, 192, 1_000_000] {
            assert_eq!(words.get(index), 0);
            words.set(index, index as u64 + 1);
        }
        for index in [0, 63, 64, 191, 192, 1_000_000] {
            assert_eq!(words.get(index), index as u64 + 1);
        }
        assert_eq!(words.get(usize::MAX / 2), 0);
    }

    #[test]
    fn addresses_of_this_host_are_one_peer() {
        let peers = PeerNumbers::default();
        let number = |text: &str| peers.number(text.parse().unwrap());
        let first = number("127.0.0.1:5000");
        assert_eq!(number("127.0.0.2:5000"), first);
        assert_ne!(number("127.0.0.1:5001"), first);
        assert_ne!(number("240.0.0.1:5000"), first);
        assert_eq!(peers.address(first).to_string(), "127.0.0.1:5000");
    }
}
