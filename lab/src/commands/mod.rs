// SPDX-License-Identifier: BSD-2-Clause
//! The commands, each with its arguments.

pub(crate) mod answer;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod settings;
pub(crate) mod show;
pub(crate) mod sweep;
pub(crate) mod workload;
