// SPDX-License-Identifier: BSD-2-Clause
//! One endpoint's work: [`state`] is what it works on, the other files are what it does.
//!
//! ```text
//! msg  tagged  rma  atomic        what the application asks for
//! progress  serve                 what arrives: messages, requests for our memory
//! rendezvous  inject              long messages, and messages without a buffer
//! completion                      how operations end
//! contact  liveness               peers that come, go and die
//! contexts                        contexts that open and close
//! check  counted                  checksums; what a report says
//! state                           Engine
//! ops  side  transfers  request   operations, queues and counters, long messages, requests
//! deferred                        answers that wait for room
//! ```

mod atomic;
mod check;
mod completion;
mod contact;
mod contexts;
mod counted;
mod deferred;
mod inject;
pub(crate) mod liveness;
mod msg;
pub(crate) mod ops;
pub(crate) mod outgoing;
mod progress;
mod rendezvous;
mod request;
pub(crate) mod rma;
mod serve;
pub(crate) mod side;
mod state;
pub(crate) mod tagged;
mod transfers;

pub(crate) use state::Engine;

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod pairs;
#[cfg(test)]
mod way_tests;
