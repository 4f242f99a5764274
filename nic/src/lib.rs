// SPDX-License-Identifier: BSD-2-Clause
//! A sans-IO model of a NIC's tag-matching unit: posted receives, arrivals,
//! capacity and counters ([`device`]), the `FI_TCAM_*` parameters ([`params`]),
//! what is reported in the end ([`report`]), kept until then ([`draft`]) and seen on the way
//! ([`live`]), and what is recorded ([`trace`]) to be asked again ([`replay`]).
//!
//! No sockets, no clocks, no unsafe: the provider drives it live, the lab
//! offline, with the same answers.
#![forbid(unsafe_code)]

pub mod clusters;
pub mod config;
pub mod device;
pub mod draft;
mod json;
pub mod latency;
pub mod lengths;
pub mod live;
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
