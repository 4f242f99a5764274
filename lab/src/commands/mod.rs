// SPDX-License-Identifier: BSD-2-Clause
//! The commands, each with its arguments.

pub(crate) mod answer;
pub(crate) mod cluster;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod engines;
pub(crate) mod export;
pub(crate) mod plot;
pub(crate) mod profile;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod stats;
pub(crate) mod sweep;
pub(crate) mod tune;
pub(crate) mod watch;
pub(crate) mod workload;
