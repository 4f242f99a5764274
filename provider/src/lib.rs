// SPDX-License-Identifier: BSD-2-Clause
//! `libtcam-fi.so`, the libfabric provider `tcam`.
//!
//! The files are named like those of libfabric's own providers. A call enters
//! through `ffi`, which checks what C passes; [`ep`] hands it to the endpoint's
//! [`engine`]; [`channel`] moves bytes between processes; the model in `nic`
//! decides which receive gets which message.
#![deny(unsafe_code)]

mod absence;
mod address;
mod atomic;
mod attr;
mod av;
mod bind;
mod callers;
mod channel;
mod check;
mod clock;
mod clusters;
mod cntr;
mod completion;
mod contact;
mod cq;
mod device_thread;
mod domain;
mod drivers;
mod engine;
mod ep;
mod eq;
mod fabric;
mod flow;
mod idle;
mod init;
mod inject;
mod liveness;
mod mr;
mod msg;
mod origin;
mod pace;
mod peers;
mod poll;
mod profile;
mod progress;
mod rendezvous;
mod report;
mod rma;
mod srx;
mod tagged;
mod trace;
mod trigger;

#[cfg(any(test, fuzzing))]
pub mod fuzzing;

#[cfg(test)]
mod hostile_tests;

#[allow(unsafe_code, reason = "the entry point that libfabric looks up")]
mod export {
    ffi::export_provider!(crate::init::Tcam);
}
