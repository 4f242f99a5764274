// SPDX-License-Identifier: BSD-2-Clause
//! `fi_rx_addr`: the peer of a `fi_addr_t` that contains the index of a receive context.
//!
//! ```text
//! fi_addr_t   [ context: rx_ctx_bits | index in the address vector ]
//! ```
//!
//! Context 0 has the inserted address. Context N has the port that is N higher, and therefore
//! another peer number, which is looked up once and kept here.

use std::{ffi::c_int, net::SocketAddrV4, sync::OnceLock};

use ffi::{Errno, Result};

use crate::{
    attr::MAX_CONTEXTS,
    peer_numbers::{GrowingArray, PeerNumbers},
};

/// Maximum of `rx_ctx_bits`, the number of bits of a `fi_addr_t` that name a context.
const MOST_BITS: c_int = 16;

/// The receive contexts that the addresses of one vector may name.
#[derive(Debug)]
pub(crate) struct RxContexts {
    bits: u32,
    /// For each context: peer number + 1 by index of the address; 0 if not yet looked up.
    peers: Box<[OnceLock<Box<GrowingArray>>]>,
}

impl RxContexts {
    /// Creates the contexts of a vector whose addresses have `bits` bits for a context.
    ///
    /// # Errors
    /// `EINVAL` if addresses cannot have that many bits for a context.
    pub(crate) fn new(bits: c_int) -> Result<Self> {
        if !(0..=MOST_BITS).contains(&bits) {
            tracing::info!("fi_av_open: rx_ctx_bits is {bits}, and may be at most {MOST_BITS}");
            return Err(Errno::EINVAL);
        }
        let contexts = if bits == 0 { 0 } else { (1 << bits).min(MAX_CONTEXTS) };
        let peers = std::iter::repeat_with(OnceLock::new).take(contexts).collect();
        Ok(Self { bits: bits.cast_unsigned(), peers })
    }

    /// Splits an address into context and index.
    fn split(&self, address: u64) -> (usize, u64) {
        match self.bits {
            0 => (0, address),
            bits => ((address >> (64 - bits)) as usize, address & (u64::MAX >> bits)),
        }
    }

    /// Returns the index in an address, which may also contain a context.
    pub(crate) fn index(&self, address: u64) -> u64 {
        self.split(address).1
    }

    /// Returns the peer of the context that an address names. `peer_of` returns the peer of an
    /// index. Returns `None` for context 0, for a context that does not exist, and if the index is
    /// empty.
    pub(crate) fn peer(
        &self,
        address: u64,
        peers: &PeerNumbers,
        peer_of: impl Fn(u64) -> Option<u32>,
    ) -> Option<u32> {
        let (context, index) = self.split(address);
        let known = self.peers.get(context)?;
        if context == 0 {
            return None;
        }
        let base = peer_of(index)?;
        let known = known.get_or_init(|| Box::new(GrowingArray::default()));
        if let Some(peer) = (known.get(index as usize) as u32).checked_sub(1) {
            return Some(peer);
        }
        let address = peers.address(base);
        let port = address.port().checked_add(context as u16)?;
        let peer = peers.number(SocketAddrV4::new(*address.ip(), port));
        // The contexts of a scalable endpoint share its secret.
        peers.learn_secret(peer, peers.secret(base));
        known.set(index as usize, u64::from(peer) + 1);
        Some(peer)
    }

    /// Forgets the contexts of an index, whose address was removed.
    pub(crate) fn forget(&self, index: u64) {
        for known in self.peers.iter().filter_map(OnceLock::get) {
            if known.get(index as usize) != 0 {
                known.set(index as usize, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rx_addr(index: u64, context: u64, bits: u32) -> u64 {
        context << (64 - bits) | index
    }

    #[test]
    fn contexts_have_the_ports_after_the_first() {
        let peers = PeerNumbers::default();
        let base = peers.number("127.0.0.1:5000".parse().unwrap());
        let contexts = RxContexts::new(2).unwrap();
        let peer = |address| contexts.peer(address, &peers, |index| (index == 7).then_some(base));
        let third = peer(rx_addr(7, 3, 2)).unwrap();
        assert_eq!(peers.address(third).port(), 5003);
        assert_eq!(peer(rx_addr(7, 3, 2)), Some(third));
        assert_eq!(contexts.index(rx_addr(7, 3, 2)), 7);
        // The vector itself handles context 0, and index 8 is empty.
        assert_eq!((peer(7), peer(rx_addr(8, 1, 2))), (None, None));
    }

    #[test]
    fn a_reused_index_has_new_contexts() {
        let peers = PeerNumbers::default();
        let [first, second] =
            ["127.0.0.1:5000", "127.0.0.1:6000"].map(|text| peers.number(text.parse().unwrap()));
        let contexts = RxContexts::new(1).unwrap();
        let port = |base| {
            let peer = contexts.peer(rx_addr(0, 1, 1), &peers, |_| Some(base)).unwrap();
            peers.address(peer).port()
        };
        assert_eq!(port(first), 5001);
        contexts.forget(0);
        assert_eq!(port(second), 6001);
    }

    #[test]
    fn bits_are_checked() {
        assert_eq!(RxContexts::new(-1).unwrap_err(), Errno::EINVAL);
        assert_eq!(RxContexts::new(17).unwrap_err(), Errno::EINVAL);
        let none = RxContexts::new(0).unwrap();
        assert_eq!(none.index(u64::MAX), u64::MAX);
        assert_eq!(none.peer(1 << 63, &PeerNumbers::default(), |_| Some(0)), None);
        let many = RxContexts::new(16).unwrap();
        assert_eq!(many.peer(rx_addr(0, 256, 16), &PeerNumbers::default(), |_| Some(0)), None);
    }
}
