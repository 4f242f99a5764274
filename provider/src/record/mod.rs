// SPDX-License-Identifier: BSD-2-Clause
//! The records of a run: reports, traces, and the counters of `fi_profile(3)`.

mod caller;
pub(crate) mod exit;
mod message;
pub(crate) mod profile;
pub(crate) mod report;
mod sites;
mod summary;
pub(crate) mod trace;
