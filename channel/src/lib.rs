// SPDX-License-Identifier: BSD-2-Clause
//! Channels: how messages get from endpoint to endpoint.
//!
//! - [`way`]: what an endpoint sees of them, whichever it is: a [`way::Link`] to each peer and a
//!   [`way::Inbox`] for each way. [`home`] is its own end: it opens links and sends.
//! - [`contract`]: what every way takes and answers.
//! - [`shm`]: shared memory, and copies by the kernel. [`net`]: another provider, to other hosts.
//! - `twin` (tests): a channel within a process, with faults where a test wants them.
//! - [`wire`]: the headers, [`bytes`] what goes with them, as a peer wrote it.
//! - [`polling`]: when the network is asked.
//! - [`identity`]: who an endpoint is. [`address`]: where.
//!
//! Nothing above knows how bytes travel: slots, buffers, checksums of frames and calls to the kernel
//! are each way's own.
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
