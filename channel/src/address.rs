// SPDX-License-Identifier: BSD-2-Clause
//! Packs the address of an endpoint into one word, and unpacks it; the backlog of its listener.

use std::net::SocketAddrV4;

/// Maximum number of connections that the kernel keeps until they are accepted, if
/// `net.core.somaxconn` is not less.
pub const BACKLOG: i32 = 4096;

/// Returns an address as one word, which is never zero.
#[must_use]
pub fn pack(address: SocketAddrV4) -> u64 {
    1 << 63 | u64::from(address.ip().to_bits()) << 16 | u64::from(address.port())
}

/// Returns the address in a word that [`pack`] returned.
#[must_use]
pub fn unpack(word: u64) -> SocketAddrV4 {
    SocketAddrV4::new(((word >> 16) as u32).into(), word as u16)
}
