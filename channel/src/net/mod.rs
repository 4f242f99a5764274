// SPDX-License-Identifier: BSD-2-Clause
//! The network: messages to endpoints of other hosts.
//!
//! - [`connections`]: a TCP connection to each peer. Both ends prove that they know the secret
//!   ([`secret`], [`handshake`]), and each notices that the other is gone.
//! - [`input`]: received bytes of a connection. [`frame`]: the head of a frame.
//! - [`peer`], [`peers`]: known peers, by number.
//! - [`end`]: the local end; [`link`], [`inbox`]: the interface for the endpoint.
//!
//! An address is an address of this host with the port that the endpoint holds. Numbers and tokens
//! belong to one incarnation of an endpoint, so that no incarnation receives messages for an
//! earlier one.
//!
//! Memory: each peer takes about 600 bytes and a descriptor. Its receive buffer is empty until data
//! comes. The buffer then has 4 KiB, grows up to 128 KiB under load, and is freed when the
//! connection is idle. A peer that does not read holds up to one frame of 256 KiB.
//!
//! Rejected: docs/decisions/network.md.

mod connections;
pub mod end;
pub mod frame;
mod handshake;
pub(crate) mod inbox;
mod input;
pub mod link;
mod peer;
mod peers;
pub mod secret;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
