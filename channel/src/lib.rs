// SPDX-License-Identifier: BSD-2-Clause
//! Channels: the transport of messages between endpoints.
//!
//! - [`tx`]: the sending end of an endpoint; [`rx`]: its receiving ends; [`peer`]: a peer.
//! - [`contract`]: payloads, results and settings of all transports.
//! - [`shm`]: shared memory and kernel copies. [`net`]: TCP connections to other hosts.
//!   `testing::loopback` (tests): a transport within a process, which can inject faults.
//! - [`wire`]: the format of slots. [`bytes`]: payloads in shared memory.
//! - [`polling`]: when the network is polled.
//! - [`identity`]: the identity of an endpoint. [`address`]: its address as a word.
//!
//! The crates above do not know how bytes travel: slots, buffers, checksums of frames and system
//! calls are internal to each transport.
#![deny(unsafe_code)]

pub mod address;
pub mod bytes;
pub mod contract;
pub mod identity;
pub mod net;
pub mod peer;
pub mod polling;
mod prefetch;
pub mod rx;
pub mod shm;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tx;
pub mod wire;

#[cfg(test)]
mod conformance_tests;
