// SPDX-License-Identifier: BSD-2-Clause
//! Channels: the transport of messages between endpoints.
//!
//! - [`way`]: the interface of all transports: a [`way::Link`] to each peer and a [`way::Inbox`]
//!   for each transport. [`home`] is the local end: it opens links and sends.
//! - [`contract`]: payloads, results and settings of all transports.
//! - [`shm`]: shared memory and kernel copies. [`net`]: TCP connections to other hosts.
//! - `twin` (tests): a loopback within a process, which can inject faults.
//! - [`wire`]: headers. [`bytes`]: payloads, as a peer wrote them.
//! - [`polling`]: when the network is polled.
//! - [`identity`]: the identity of an endpoint. [`address`]: its address as a word.
//!
//! The crates above do not know how bytes travel: slots, buffers, checksums of frames and system
//! calls are internal to each transport.
#![deny(unsafe_code)]

pub mod address;
pub mod bytes;
pub mod contract;
pub mod home;
pub mod identity;
mod lines;
pub mod net;
pub mod polling;
pub mod sending;
pub mod shm;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(any(test, feature = "testing"))]
pub mod twin;
pub mod way;
pub mod wire;

#[cfg(test)]
mod conformance_tests;
