// SPDX-License-Identifier: BSD-2-Clause
//! The network: messages to endpoints of other hosts.
//!
//! - [`connections`]: a connection over TCP to each peer. Both ends prove that they know the secret
//!   ([`secret`], [`hello`]), and each notices that the other is gone.
//! - [`input`]: what has come over one. [`frame`]: what goes before a header.
//! - [`contact`], [`contacts`]: the peers that are known, by the number that each has here.
//! - [`end`]: an endpoint's end of it; [`link`], [`inbox`]: what the endpoint sees.
//!
//! An address is one of this host's, with the port that the endpoint holds. A number and a token belong
//! to one incarnation of an endpoint, so that what an earlier one was sent never reaches a later one.
//!
//! Memory of an endpoint: each peer takes some 600 bytes and a descriptor. Its receive buffer is empty until
//! something comes. It then has 4 KiB, up to 128 KiB while much comes, and is freed when the connection is
//! idle. A peer that takes nothing holds up to one frame of 256 KiB.
//!
//! Rejected: docs/decisions/network.md.

mod connections;
mod contact;
mod contacts;
pub mod end;
pub mod frame;
mod hello;
pub(crate) mod inbox;
mod input;
pub mod link;
pub mod secret;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
