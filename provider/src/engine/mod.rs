// SPDX-License-Identifier: BSD-2-Clause
//! The work of one endpoint. [`state`] has its state; the other files are its operations.
//!
//! ```text
//! msg  tagged  rma  atomic        operations of the application
//! progress  serve                 arriving messages, and requests for local memory
//! rendezvous  inject              long messages, and messages without a buffer
//! completion                      completions of operations
//! peer  liveness                  peers that come, go and die
//! contexts                        contexts that open and close
//! check  counted                  checksums; counters of a report
//! state                           Engine
//! ops  cq_binding  transfers
//! request                         operations, queues and counters, long messages, requests
//! deferred                        answers that wait for room
//! ```

mod atomic;
mod check;
mod completion;
mod contexts;
mod counted;
pub(crate) mod cq_binding;
mod deferred;
mod inject;
pub(crate) mod liveness;
mod msg;
pub(crate) mod ops;
pub(crate) mod outgoing;
mod peer;
mod progress;
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
