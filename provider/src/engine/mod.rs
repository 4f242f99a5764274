// SPDX-License-Identifier: BSD-2-Clause
//! The work of one endpoint. [`state`] has its state; the other files are its operations.
//!
//! ```text
//! msg  tagged  rma  atomic        operations of the application
//! progress  serve                 arriving messages, and requests for local memory
//! rendezvous  inject              long messages, and messages without a buffer
//! liveness                        peers that come, go and die
//! contexts                        contexts that open and close
//! check  completion               checksums; the end of operations
//! state                           Engine
//! peers  completions  publisher
//! peer_checks                     parts of it, each with its state
//! ops  transfers  request         operations, long messages, requests
//! deferred                        answers that wait for room
//! ```

mod atomic;
mod check;
mod completion;
pub(crate) mod completions;
mod contexts;
mod deferred;
mod inject;
mod liveness;
mod msg;
pub(crate) mod ops;
pub(crate) mod outgoing;
mod peer_checks;
mod peers;
mod progress;
mod publisher;
mod rendezvous;
mod request;
pub(crate) mod rma;
mod serve;
mod state;
pub(crate) mod tagged;
mod transfers;

pub(crate) use state::Engine;

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod pairs;
#[cfg(test)]
mod transport_tests;
