// SPDX-License-Identifier: BSD-2-Clause
//! `libtcam-fi.so`, the libfabric provider `tcam`.
//!
//! The files have the names that libfabric's providers use. A call enters through `ffi`, which
//! checks the arguments from C. [`ep`] passes it to the endpoint's [`engine`]. The crate
//! [`channel`] moves bytes between processes, and the model in `nic` decides which receive gets
//! which message. Threads wait in [`wait`]. The reports and traces of a run come from [`record`].
//! docs/ARCHITECTURE.md lists which files may import which.
#![deny(unsafe_code)]

mod address;
mod attr;
mod av;
mod bind;
mod cntr;
mod context;
mod cq;
mod device;
mod diagnosis;
mod domain;
mod engine;
mod ep;
mod ep_shared;
mod eq;
mod fabric;
mod init;
mod job;
mod mr;
mod mr_mode;
mod network;
mod open;
mod params;
mod peer_numbers;
mod poll;
mod record;
mod regions;
mod rx_contexts;
mod rx_fast_path;
mod sep;
mod sizes;
mod srx;
mod stx;
mod tx_fast_path;
mod wait;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod panic_tests;

#[allow(unsafe_code, reason = "the entry point that libfabric looks up")]
mod export {
    ffi::export_provider!(crate::init::Tcam);
}
