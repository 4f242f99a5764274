// SPDX-License-Identifier: BSD-2-Clause
//! A sans-IO model of a NIC's tag-matching unit.
//!
//! - [`device`]: posted receives, arrivals, capacity and counters.
//! - [`params`]: the `FI_TCAM_*` parameters.
//! - [`report`]: the final report of an endpoint; [`draft`]: the report while the endpoint is open.
//! - [`trace`]: the recorded operations; [`replay`]: the same operations on another configuration.
//!
//! The crate has no sockets, no clocks and no unsafe code. The provider passes the operations of a
//! program to a device, and the lab passes the operations of a trace. Both get the same results.
#![forbid(unsafe_code)]

pub mod clusters;
pub mod config;
pub mod device;
pub mod draft;
mod json;
pub mod latency;
pub mod lengths;
pub mod message;
pub mod models;
mod names;
pub mod origin;
pub mod params;
pub mod plain;
pub mod polling;
mod receives;
pub mod replay;
pub mod report;
pub mod timings;
pub mod trace;
